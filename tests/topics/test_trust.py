"""Which topics are weak or unclear, and why."""

from itertools import combinations, permutations
from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_matrix
from sklearn.metrics.pairwise import cosine_similarity

import annealvi
from annealvi import TemperedLDA, TopicModel, load
from annealvi.datasets import make_topic_corpus
from annealvi.metrics import topic_coherence
from annealvi.topics import describe, drop_topics, trust
from annealvi.topics.described import Topics
from tests.topics.corpus import make_texts
from tests.topics.models import COMPONENTS, COUNTS, WORDS, Given, fitted


def wide(rows):
    """With as many columns as words must be for each topic."""
    return np.hstack([rows, np.ones((len(rows), 30 - len(WORDS)), dtype=rows.dtype)])


@pytest.fixture
def summary():
    return describe(Given(wide(COMPONENTS)), wide(COUNTS))


def test_the_table_of_a_model_of_which_little_is_known(summary):
    table = summary.trust
    assert " ".join(table) == (
        "label probability found_again similarity weak "
        "coherence exclusivity overlap distinctness unclear reason"
    )
    assert table.label.tolist() == list(summary.labels) and table.index.name == "topic"
    assert table[["probability", "found_again", "similarity"]].isna().all(axis=None)
    assert table.attrs["note"].startswith("The probability that a new fit finds a topic is unknown")
    assert table.attrs["note"].endswith(" topics are fewer than 20 documents per topic.")
    expected = topic_coherence(summary.topics, summary.counts, relevance=summary.relevance)
    assert_array_equal(table.coherence, expected)
    assert_allclose(table.distinctness, (summary.similar().distances + 2 * np.eye(3)).min(axis=1))
    assert not table.weak.any()
    assert_array_equal(table.unclear, table.reason != "")
    # with few words no topic is unclear
    assert not describe(Given(), COUNTS, WORDS).trust.unclear.any()


EVIDENCE = {
    "support": np.array([0.9, 0.4, 0.75]),
    "size": np.array([0.1, 0.0, -1.0]),
    "exclusivity": np.array([0.5, 0.5, 0.1]),
}


def topics_with(evidence, similarity, components=None, words=None):
    components = wide(COMPONENTS) if components is None else components
    return Topics(
        components=components / components.sum(axis=1, keepdims=True),
        sizes=np.full(len(components), 1 / len(components)),
        words=np.array(
            [f"word {n}" for n in range(components.shape[1])] if words is None else words
        ),
        named={},
        evidence=evidence,
        similarity=np.array(similarity),
        facts={},
        random_state=0,
    )


def test_weak_topics_have_a_low_probability_and_its_reasons():
    topics = topics_with(EVIDENCE, np.empty((0, 3)))
    probability = trust.probability_of(EVIDENCE)
    log_odds = trust.INTERCEPT + sum(
        trust.COEFFICIENTS[name] * EVIDENCE[name] for name in ("support", "size", "exclusivity")
    )
    assert_allclose(probability, 1 / (1 + np.exp(-log_odds)))
    assert probability[0] > 0.9 and max(probability[1:]) < trust.LEAST_PROBABILITY
    finds = "a new fit finds it with probability"
    assert trust.why_weak(topics) == [
        "",
        f"{finds} {probability[1]:.2f} (unlike the topics of the runs)",
        f"{finds} {probability[2]:.2f} (small, other topics contain its words)",
    ]
    assert trust.reasons(topics)[1].startswith(f"weak: {finds} {probability[1]:.2f} (unlike the")
    # a single refit or two are no better evidence than the fit itself
    assert trust.why_weak(topics_with(EVIDENCE, np.full((2, 3), 0.1)))[0] == ""
    topics = topics_with(None, [[0.6, 0.71, 0.1], [0.6, 0.71, 0.3]])
    other = "other fits found no similar topic (cosine {:.2f})".format
    assert trust.why_weak(topics) == [other(0.6), "", other(0.2)]
    nearly = {name: np.full(3, value) for name, value in trust.USUAL.items()}
    nearly["support"] = np.full(3, 0.78)
    assert trust._lowered(nearly, 0) == "unlike the topics of the runs"


def test_refits_go_before_the_probability_and_other_fits():
    similarity = np.array([[0.9, 0.6, 0.8], [0.8, 0.5, 0.9], [0.9, 0.9, 0.4]])
    similarity[:2, 2] = 0.3
    refits = SimpleNamespace(similarity=similarity, found_again=np.array([1, 1 / 3, 0]))
    topics = topics_with(EVIDENCE, np.ones((1, 3)))
    together = trust.Together(np.ones(3), 0.0, np.zeros(3))
    table = trust.trust(topics, together, refits, 60)
    assert_array_equal(table.similarity, [0.9, 0.6, 0.3])
    assert_array_equal(table.probability, trust.probability_of(EVIDENCE))  # of the fit itself
    assert_array_equal(table.found_again, [1, 1 / 3, 0])
    assert table.weak.tolist() == [False, True, True] and not table.attrs["note"]
    assert table.reason[1].startswith("weak: found by 1 of 3 refits")
    assert table.reason[2].startswith("weak: found by none of 3 refits")
    similarity = np.array([[0.9] * 3, [0.498] * 3])
    refits = SimpleNamespace(similarity=similarity, found_again=np.full(3, 0.5))
    assert trust.why_weak(topics, refits)[0] == "found by 1 of 2 refits (similarity 0.699)"


def unclear(components, words=None, together=None):
    return trust.why_unclear(
        topics_with(None, np.empty((0, len(components))), components, words), together
    )


THEMES = np.kron(np.eye(4), np.linspace(10, 5, 20)) + 1e-3


def test_stop_words_of_a_language_are_unclear():
    assert unclear(THEMES) == [""] * 4
    words = [f"word {n}" for n in range(80)]
    words[:10] = ["the", "and", "of", "to", "in", "is", "that", "it", "for", "with"]
    assert unclear(THEMES, words) == ["stop words of English", "", "", ""]
    words[0] = "comet"
    words[5:10] = ["orbit", "moon", "star", "mars", "venus"]
    assert unclear(THEMES, words) == [""] * 4  # four of ten


def test_words_of_many_topics_are_unclear():
    general = np.hstack([THEMES, np.full((4, 20), 8.0)])  # the last words are in all topics
    general[0, :20] = 1e-3
    assert unclear(general) == ["many topics contain its words", "", "", ""]
    general[1:, 80:] = 1e-3
    assert unclear(general) == [""] * 4


def test_words_of_the_same_documents_and_words_of_chance_are_unclear():
    rng = np.random.default_rng(0)
    counts = np.zeros((400, 80))
    for document, row in enumerate(counts):
        if document % 20 == 0:
            row[:20] = 1  # a standard text
        else:
            row[20 * (1 + document % 3) + rng.choice(20, 6, replace=False)] = 1
    together = trust.Together.of(THEMES, csr_matrix(counts))
    assert_allclose(together.coherence, topic_coherence(THEMES, counts, relevance=0.7))
    shared = (counts[:, 20:30] > 0).astype(float)
    both = shared.T @ shared
    overlaps = [
        both[a, b] / (both[a, a] + both[b, b] - both[a, b]) for a, b in combinations(range(10), 2)
    ]
    assert together.overlap[1] == pytest.approx(np.mean(overlaps))
    assert unclear(THEMES, together=together) == [
        "its words occur in the same documents, like standard texts",
        *[""] * 3,
    ]
    mixed = THEMES.copy()
    mixed[1, 20:] = np.tile([10.0, 0.1, 0.1, 0.1, 0.1], 12)  # words of three themes
    together = trust.Together.of(mixed, csr_matrix(counts))
    why = "its words rarely occur together"
    assert why in unclear(mixed, together=together)[1]
    # the words of the documents and the other topics decide what is usual
    for chance, is_marked in ((-0.2, False), (0.0, True), (np.nan, False)):
        together = trust.Together(np.array([0.1, 0.3, 0.3, 0.4]), chance, np.zeros(4))
        assert unclear(THEMES, together=together) == [why if is_marked else "", "", "", ""]


def test_two_topics_of_the_same_words():
    twice = np.vstack([COMPONENTS[0], COMPONENTS[0] * 1.01 + 1, COMPONENTS[1]])
    table = describe(Given(twice), COUNTS, WORDS).trust
    assert table.distinctness[0] < table.distinctness[2] / 2
    assert table.reason[0] == f"unclear: nearly the same words as topic 1 ({table.label[1]})"
    assert table.unclear.tolist() == [True, True, False]
    # a single topic is distinct
    table = describe(Given(COMPONENTS[:1], np.ones((5, 1))), COUNTS, WORDS).trust
    assert np.isnan(table.distinctness[0]) and not table.unclear[0]


@pytest.mark.parametrize("n", [2, 3, 4])
def test_matches_are_the_best_pairs(n):
    rng = np.random.RandomState(n)
    topics, other = rng.rand(3, 6), rng.rand(n, 6)
    unit = [rows / np.linalg.norm(rows, axis=1, keepdims=True) for rows in (topics, other)]
    cosines = np.zeros((3, max(n, 3)))
    cosines[:, :n] = unit[0] @ unit[1].T
    best = max((cosines[range(3), list(own)] for own in permutations(range(max(n, 3)), 3)), key=sum)
    assert_allclose(trust.match(topics, other), best)


def test_refits_fill_similarity():
    lda, X = fitted()
    summary = describe(lda, X, refits=3)
    table = summary.trust
    assert_allclose(table.similarity, np.median(summary.refits.similarity, axis=0))
    assert_allclose(table.found_again, summary.refits.found_again)


def test_another_fit_fills_similarity():
    lda, X = fitted()
    other = SimpleNamespace(components_=lda.components_[[2, 0, 3, 1]], transform=lda.transform)
    summary = describe(lda, X, other=other)
    assert_allclose(summary.similarity, np.ones((1, 4)))
    assert_allclose(summary.trust.similarity, 1)
    with pytest.raises(ValueError, match="read-only"):
        summary.similarity[0, 0] = 1


@pytest.mark.slow
def test_auto_fills_stability_and_a_file_keeps_it(tmp_path):
    texts = make_texts(105)
    model = TopicModel("auto", random_state=0).fit(texts)
    K = model.choice_.recommended
    assert model.topic_similarity_.shape == (2, K) and model.choice_.topics is None
    assert_allclose(describe(model, texts).trust.similarity, np.median(model.topic_similarity_, 0))
    assert (model.topic_similarity_.min(axis=0) > 0.9).sum() >= 3  # the planted themes
    annealvi.save(model, tmp_path / "m.safetensors")
    again = load(tmp_path / "m.safetensors")
    assert_array_equal(again.topic_similarity_, model.topic_similarity_)
    assert not hasattr(drop_topics(model, [0]), "topic_similarity_")  # of other topics
    assert not hasattr(again.partial_fit(texts), "topic_similarity_")
    assert not hasattr(model.set_params(n_topics=2).fit(texts), "topic_similarity_")


def test_topics_of_chance_are_weak_and_planted_ones_are_not():
    corpus = make_topic_corpus(600, 400, 8, random_state=1)
    lda = TemperedLDA(16, random_state=0).fit(corpus.data)
    summary = describe(lda, corpus.data)
    table = summary.trust
    true = cosine_similarity(lda.components_, corpus.topics).max(axis=1) > 0.9
    assert true.sum() >= 8 and not table.weak[true].any()
    assert table.weak[~true].mean() > 0.7
    assert_array_equal(table.probability, summary.probability)
    assert_array_equal(table.probability, summary.table.probability)


def test_the_size_of_the_evidence_is_that_of_the_fit():
    lda, X = fitted()
    sizes = lda.components_.sum(axis=1) / lda.components_.sum()
    components = lda.components_ / lda.components_.sum(axis=1, keepdims=True)
    expected = trust.probability_of(trust.evidence_of(components, sizes, lda.topic_support_))
    for documents in (X, X[:3]):
        assert_allclose(describe(lda, documents).probability, expected, rtol=1e-6)
    lda = TemperedLDA(4, n_init=1, max_iter=8, random_state=0).fit(X)
    assert describe(lda, X).probability is None and "probability" not in describe(lda, X).table
