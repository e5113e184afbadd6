"""The planted number of topics is recommended; the table holds the measures."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer

import annealvi
from annealvi import TemperedLDA, TopicModel
from annealvi.datasets import make_topic_corpus
from annealvi.metrics import document_completion, topic_coherence, topic_diversity, topic_stability
from annealvi.topics import Choice, choose_n_topics
from annealvi.topics.choice import RULES
from tests.asserts import refused
from tests.marks import cases

X = make_topic_corpus(300, 150, 5, document_length=60, random_state=0).data
KS = [2, 5, 12]
FAST = TemperedLDA(max_iter=8)


@pytest.fixture(scope="module")
def choice():
    return choose_n_topics(X, KS, n_runs=2, model=FAST, random_state=0)


@pytest.mark.slow
def test_the_planted_number(choice):
    assert choice.recommended == 5
    assert RULES["held_out_log_likelihood"](choice.n_topics, choice.measures)[0] == 1
    assert choice.rule.startswith("5 topics have the highest quality")
    assert "runs)." in choice.rule and choice.rule in repr(choice)


@pytest.mark.slow
@pytest.mark.statistical
def test_planted_numbers_within_a_step():
    ks = (2, 3, 5, 8, 12)
    off = {criterion: [] for criterion in RULES}
    for seed, (k, eta) in enumerate((k, eta) for k in ks for eta in (0.05, 0.1)):
        options = dict(document_length=60, topic_word_prior=eta, random_state=seed)
        documents = make_topic_corpus(100 + 40 * k, 500, k, **options).data
        found = choose_n_topics(documents, ks, n_runs=2, random_state=0)
        for criterion, rule in RULES.items():
            off[criterion].append(abs(rule(found.n_topics, found.measures)[0] - ks.index(k)))
    for steps in off.values():
        assert sum(step <= 1 for step in steps) >= 8 and sum(step == 0 for step in steps) >= 6


def test_measures_are_those_of_the_fits():
    rng = np.random.RandomState(3)
    order, seed = rng.permutation(300), rng.randint(2**31 - 1)
    train, test = X[np.sort(order[30:])], X[np.sort(order[:30])]
    fit = TemperedLDA(5, max_iter=4, random_state=seed).fit(train)
    fast = TemperedLDA(max_iter=4)
    found = choose_n_topics(X, [5], n_runs=1, model=fast, random_state=3).measures
    coherence, diversity = topic_coherence(fit, train).mean(), topic_diversity(fit, n_words=10)
    likelihood = document_completion(fit, test, random_state=seed)
    assert found["held_out_log_likelihood"] == pytest.approx(likelihood)
    assert found["coherence"] == pytest.approx(coherence)
    assert found["diversity"] == pytest.approx(diversity)
    assert found["quality"] == pytest.approx(coherence * diversity)
    assert np.isnan(found["stability"]).all()


def test_stability_is_that_of_pairs_of_runs():
    kept = []

    class Keeping(TemperedLDA):
        def fit(self, X):
            kept.append(super().fit(X).components_.copy())
            return self

    found = choose_n_topics(X, [3], n_runs=3, model=Keeping(max_iter=2), random_state=0)
    expected = [topic_stability(kept[a], kept[b]) for a, b in ((0, 1), (0, 2), (1, 2))]
    assert_allclose(found.measures["stability"], [expected])


def test_quality_where_words_do_not_occur_together():
    noise = np.random.RandomState(0).multinomial(4, np.full(300, 1 / 300), 60)
    found = choose_n_topics(noise, [20], n_runs=1, random_state=0).measures
    assert found["coherence"] < 0
    assert_array_equal(found["quality"], found["coherence"])


def test_gain_is_over_word_frequencies():
    # with a single topic there is none
    found = choose_n_topics(X, [1, 5], n_runs=2, model=FAST, random_state=0)
    assert_allclose(found.measures["gain"][0], 0, atol=2e-3)
    assert np.all(found.measures["gain"][1] > 0.1)
    without = found.measures["held_out_log_likelihood"] - found.measures["gain"]
    assert_allclose(without[0], without[1])


def test_the_table(choice):
    table = choice.table
    assert isinstance(table, pd.DataFrame)
    assert table.index.tolist() == KS and table.index.name == "n_topics"
    assert table.index[table.recommended].tolist() == [5]
    for name, values in choice.measures.items():
        assert_allclose(table[name], values.mean(axis=1))
        if name != "stability":  # of a single pair
            assert_allclose(table[f"{name}_sd"], values.std(axis=1, ddof=1))
    assert table.stability_sd.isna().all()


@pytest.mark.slow
def test_results_repeat_and_input_stays():
    before, options = X.copy(), dict(n_runs=1, model=TemperedLDA(max_iter=2), random_state=0)
    first = choose_n_topics(X, KS, **options)
    for documents, ks in ((X, reversed(KS)), (X.toarray(), np.array(KS))):
        again = choose_n_topics(documents, ks, **options)
        assert_array_equal(again.n_topics, KS)
        for name, values in first.measures.items():
            assert_array_equal(again.measures[name], values)
    assert (before != X).nnz == 0


def of(values):
    """A choice from a given mean of each number of topics."""
    return {"quality": np.array(values)[:, None], "gain": np.array(values)[:, None]}


@pytest.mark.parametrize("values", [[[-0.1, 0.0], [0.1, -0.06], [0, 0]], [[-0.3], [-0.1], [-0.2]]])
def test_without_clear_topics_the_smallest_number_is_recommended(values):
    row, rule = RULES["quality"](np.array([2, 5, 10]), {"quality": np.array(values)})
    assert row == 0 and rule.startswith("The texts show no clear topics: the highest quality")
    assert "with 5 topics" in rule and "compare smaller" not in rule
    values = np.array([[0.1, 0.1], [0.2, 0.3], [0, 0]])  # above 0 by more than its spread
    assert RULES["quality"](np.array([2, 5, 10]), {"quality": values})[0] == 1


def test_the_rules():
    ks, gain = np.array([10, 20, 50]), RULES["held_out_log_likelihood"]
    assert RULES["quality"](ks, of([0.1, 0.3, 0.2]))[0] == 1
    flat = {"quality": np.array([[0.2, 0.2], [0.3, 0.4], [0.31, 0.31]])}
    assert RULES["quality"](ks, flat)[1].endswith(
        "The quality of 50 topics is within one standard deviation."
    )
    assert RULES["quality"](ks, of([0.3, 0.2, 0.1]))[1].endswith("compare smaller numbers too.")
    assert gain(ks, of([0.94, 0.96, 1.0]))[0] == 1 and gain(ks, of([0.94, 0.949, 1.0]))[0] == 2
    assert gain(ks, of([0.96, 1.0, 0.9]))[0] == 0 and gain(ks, of([-0.3, -0.1, -0.2]))[0] == 1
    assert "95% of the largest gain" in gain(ks, of([0.94, 0.96, 1.0]))[1]


@pytest.mark.slow
def test_a_number_at_the_edge_is_told():
    for ks, told in (([2, 5], "largest of {}: compare larger"), ([5, 20], "smallest of {}")):
        rule = choose_n_topics(X, ks, n_runs=1, random_state=0).rule
        assert f"is the {told}".format("the compared numbers") in rule


def test_large_corpora_are_sampled_and_callbacks_are_not_called():
    assert choose_n_topics(X, [3], n_runs=1, max_documents=100, random_state=0).n_documents == 100
    empty = sparse.vstack([X, sparse.csr_matrix((50, 150))]).tocsr()
    fast = TemperedLDA(max_iter=1, callback=lambda estimator, monitor: pytest.fail("called"))
    assert choose_n_topics(empty, [3], n_runs=1, max_documents=None, model=fast).n_documents == 300


@pytest.mark.slow
def test_texts():
    rng = np.random.RandomState(0)
    themes = [[f"{theme}{number}" for number in range(20)] for theme in ("star", "bread")]
    texts = [" ".join(rng.choice(themes[number % 2], 8)) for number in range(40)]
    for documents in (texts, pd.Series(texts), iter(texts)):
        found = choose_n_topics(documents, [2, 5], n_runs=1, random_state=0)
        assert isinstance(found, Choice) and found.recommended == 2
    model = TopicModel(vectorizer=CountVectorizer(), stop_words=["star1"])
    message = r"range \[1, 39\], at most the number of words of the documents. Got 41"
    refused(message, choose_n_topics, texts, [41], model=model)
    message = r"'documents\[1\]' parameter of choose_n_topics must be a str. Got None"
    refused(message, choose_n_topics, [texts[0], None], [2], error=TypeError)
    message = r"'documents' parameter of choose_n_topics must be .* Got .*csr_matrix"
    refused(message, choose_n_topics, X, [2], model=model, error=TypeError)


@pytest.mark.slow
def test_a_topic_model_chooses_for_itself(tmp_path):
    rng = np.random.RandomState(0)
    themes = [[f"{theme}{n}" for n in range(20)] for theme in ("a", "b", "c", "d", "e")]
    texts = [" ".join(rng.choice(themes[number % 5], 12)) for number in range(110)]
    model = TopicModel("auto", random_state=0).fit(texts)
    assert model.choice_.n_topics.tolist() == [2, 5]  # a topic for 20 documents
    assert len(model.components_) == model.choice_.recommended == 5 and model.n_topics == "auto"
    again = TopicModel(5, random_state=0).fit(texts)
    assert_array_equal(again.components_, model.components_)
    assert not hasattr(again, "choice_")
    annealvi.save(model, tmp_path / "model")
    loaded = annealvi.load(tmp_path / "model")
    assert_array_equal(loaded.components_, model.components_)
    assert repr(loaded.choice_) == repr(model.choice_)
    pd.testing.assert_frame_equal(loaded.choice_.table, model.choice_.table)
    seed_words = {name: [f"{name}0"] for name in "abcd"}
    seeded = TopicModel("auto", seed_words=seed_words, random_state=0).fit(texts)
    assert seeded.choice_.n_topics.tolist() == [5]
    six = TopicModel("auto", seed_words=seed_words | {"e": ["e0"], "more": ["e1"]}, random_state=0)
    assert len(six.fit(texts).components_) == 6
    refused("'n_topics' parameter of TopicModel must be", TopicModel("many").fit, texts)
    with pytest.warns(UserWarning, match="TfidfVectorizer computes fractions"):
        model = TopicModel("auto", vectorizer=TfidfVectorizer())
        refused("a vectorizer that counts", model.fit, texts)


@pytest.mark.parametrize("ks", [[5, 5], [0, 5], [151], [2.0], [True], 5, "auto"])
def test_wrong_numbers(ks):
    message = (
        r"'n_topics' parameter of choose_n_topics must be a list of different ints in .*\[1, 150\]"
    )
    refused(message + ", at", choose_n_topics, X, ks)
    refused(r"'n_topics' .* must be a list of one or more ints", choose_n_topics, X, [])


@cases(
    "documents, message",
    (X[:1], "two nonempty documents. Got '150 words and 1 documents"),
    (np.zeros((5, 10)), "Got '10 words and 0 documents"),
    (X / 2, "'documents' .* must be texts, or integer counts"),
    (-X, "Negative values in data"),
    (np.eye(10), "documents of at least two words, because"),
)
def test_wrong_documents(documents, message):
    refused(message, choose_n_topics, documents, [2], n_runs=1, random_state=0)
    message = "'model' parameter of choose_n_topics must be a TemperedLDA"
    refused(message, choose_n_topics, X, [2], model=20)
    refused("at least two words and", choose_n_topics, np.full((5, 1), 3), [1])


def test_parallel_fits_and_checkpoints_change_nothing(tmp_path, capsys):
    X = make_topic_corpus(150, 60, 3, random_state=0).data
    plain = choose_n_topics(X, [2, 3], n_runs=2, random_state=0)
    kept = {"random_state": 0, "checkpoints": tmp_path / "fits"}
    first = choose_n_topics(X, [2, 3], n_runs=2, n_jobs=2, verbose=1, **kept)
    said = capsys.readouterr().err
    assert "4 fits of 135 documents take" in said and "MB of memory" in said
    assert len([*(tmp_path / "fits").iterdir()]) == 4
    (tmp_path / "fits" / "3_topics_run_1.safetensors").unlink()
    again = choose_n_topics(X, [2, 3], n_runs=2, **kept)
    for choice in (first, again):
        assert choice.recommended == plain.recommended
        for name, values in plain.measures.items():
            assert_array_equal(choice.measures[name], values)
    other = {**kept, "random_state": 1}  # whose checkpoints would be others: they are read
    refused("X|random_state", choose_n_topics, X, [2, 3], n_runs=2, **other)
