"""Words that come later in a stream, and when they are counted."""

import copy
import pickle
import threading

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer

import annealvi
from annealvi import TemperedLDA, TopicModel, Variational
from annealvi.partition import LogPartition
from annealvi.topics import TopicVectorizer, growing
from annealvi.topics.vectorizer import fewest_documents, most_documents
from tests.asserts import refusals, refused
from tests.marks import cases
from tests.topics.corpus import make_texts

pytestmark = pytest.mark.filterwarnings("ignore:.* texts contain no word of the model")

EARLY = {
    "en": "star planet orbit moon rocket comet galaxy bread butter flour oven sugar",
    "de": "Stern Mond Bahn Rakete Komet Brot Butter Mehl Ofen Zucker Öl Größe",
    "ru": "звезда луна орбита ракета комета хлеб масло мука печь сахар соль год",
}
LATE = {
    "en": "telescope exoplanet yeast airfryer",
    "de": "Teleskop Exoplanet Hefe Heißluft",
    "ru": "телескоп экзопланета дрожжи фритюрница",
}


def blocks_of(language="en", n=4, size=24, seed=0):
    """Blocks of texts; from the second on there are later words, each rarer than the one before."""
    rng, early, late = np.random.RandomState(seed), EARLY[language].split(), LATE[language].split()
    blocks = []
    for number in range(n):
        there = (rng.rand(size, len(late)) < 0.6 ** np.arange(len(late)) / 2) & (number > 0)
        blocks.append([" ".join([*rng.choice(early, 8), *np.compress(row, late)]) for row in there])
    return blocks


def make(vectorizer=None, n_topics=3, **parameters):
    lda = TemperedLDA(total_samples=96, **parameters)
    return TopicModel(n_topics, vectorizer=vectorizer, lda=lda, stop_words=None, random_state=0)


def same(a, b):
    assert_array_equal(a.feature_names_, b.feature_names_)
    assert_array_equal(a.components_, b.components_)
    assert a.vocabulary_.dropped == b.vocabulary_.dropped
    assert a.vocabulary_note_ == b.vocabulary_note_


@pytest.mark.parametrize("language", EARLY)
def test_later_words_get_topics_and_old_ones_keep_their_places(language):
    blocks = blocks_of(language)
    model = make().partial_fit(blocks[:1])
    first = model.feature_names_.tolist()
    new = {word.lower() for word in LATE[language].split()}
    assert not new & {*first}
    model.partial_fit(blocks[1:])
    assert model.feature_names_.tolist()[: len(first)] == first
    assert new & {*model.feature_names_} and model.components_.shape[1] > len(first)
    column = model.feature_names_.tolist().index(LATE[language].split()[0].lower())
    assert model.components_[:, column].max() > 5  # it was learned
    X = model.counts(blocks[1])
    assert X[:, column].sum() == sum(LATE[language].split()[0] in text for text in blocks[1])
    assert model.vocabulary_.n_documents == 96


LIMITS = {
    "auto": {},
    "counts": {"min_df": 6, "max_df": 70},
    "shares": {"min_df": 0.1, "max_df": 0.9},
    "most": {"max_features": 14, "min_df": 2},
    "stop words": {"stop_words": ["telescope", "bread"], "min_df": 3},
    "pattern": {"token_pattern": r"(?u)\b[a-m]\w+\b", "min_df": 3},
    "pairs": {"ngram_range": (1, 2), "min_df": 3},
    "binary": {"binary": True, "min_df": 0.2},
}


@pytest.mark.parametrize("name", LIMITS)
def test_the_limits_hold_for_all_texts_so_far(name):
    blocks, vectorizer = blocks_of(), TopicVectorizer(**LIMITS[name])
    model, known = make(vectorizer), []
    free = {"min_df": 1, "max_df": 1.0, "max_features": None}
    for number, block in enumerate(blocks):
        model.partial_fit(block)
        if not number:
            known = [*TopicVectorizer(**LIMITS[name]).fit(block).get_feature_names_out()]
        texts = [text for some in blocks[: number + 1] for text in some]
        all_words = TopicVectorizer(**{**LIMITS[name], **free})
        documents = np.asarray((all_words.fit_transform(texts) > 0).sum(axis=0)).ravel()
        counts = dict(zip(all_words.get_feature_names_out(), documents, strict=True))
        low, high = vectorizer.min_df, vectorizer.max_df
        low = fewest_documents(len(texts)) if low == "auto" else low
        high = most_documents(len(texts)) if high == "auto" else high
        low, high = (x * len(texts) if isinstance(x, float) else x for x in (low, high))
        here = {*all_words.fit(block).get_feature_names_out()} - {*known}
        new = sorted((w for w in here if low <= counts[w] <= high), key=lambda w: (-counts[w], w))
        most = vectorizer.max_features or 1000
        known += new[: max(0, most - len(known))]
        assert model.feature_names_.tolist() == known
        left = {word for words in model.dropped_words_.values() for word in words}
        assert {*counts} - {*known} <= left and not left & {*known}
    assert_array_equal(model.counts(texts).toarray(), model.vectorizer_.transform(texts).toarray())


class OwnFit(CountVectorizer):
    def fit_transform(self, texts, y=None):
        return super().fit_transform(texts)


class OwnCounts(TopicVectorizer):
    def transform(self, texts):
        return super().transform(texts)


@pytest.mark.filterwarnings("ignore:TfidfVectorizer computes fractions")
@cases(
    "vectorizer",
    TopicVectorizer(vocabulary=["star", "moon", "bread", "butter"]),
    CountVectorizer(vocabulary=EARLY["en"].split()),
    TfidfVectorizer(),
    OwnFit(),
    OwnCounts(),
    ids=["given", "given to scikit-learn", "weights", "own fit", "own counts"],
)
def test_given_words_and_other_vectorizers_stay(vectorizer):
    blocks = blocks_of()
    model = make(vectorizer).partial_fit(blocks[0])
    before = model.feature_names_
    assert model.partial_fit(blocks[1:]).feature_names_ is before


@pytest.mark.parametrize("analyzer", ["word", list], ids=["of the vectorizer", "of the user"])
def test_lists_of_words_as_texts(analyzer):
    blocks = [[text.split() for text in block] for block in blocks_of("de")]
    model = make(TopicVectorizer(analyzer=analyzer)).partial_fit(iter(blocks))
    word = "Teleskop" if analyzer is list else "teleskop"
    assert word in model.feature_names_
    column = [*model.feature_names_].index(word)
    there = model.counts(blocks[2])[:, column].toarray().ravel()
    assert_array_equal(there, ["Teleskop" in text for text in blocks[2]])


def test_given_counts_stay():
    X, words = np.eye(4, dtype=int).repeat(3, axis=0), ["star", "moon", "bread", "butter"]
    model = make(n_topics=2).fit_counts(X, words)
    with pytest.warns(UserWarning, match="has a counted word. Nothing is learned") as told:
        model.partial_fit(["a telescope"] * 50)
    assert len(told) == 1
    assert model.feature_names_.tolist() == words


def test_a_fit_goes_on_with_new_words():
    blocks = blocks_of()
    model = make(TopicVectorizer(max_df=0.6)).fit([f"{text} thing" for text in blocks[0]])
    assert "thing" in model.dropped_words_["max_df"]
    model.partial_fit([f"{text} thing" for text in block] for block in blocks[1:])
    assert "telescope" in model.feature_names_ and "thing" not in model.feature_names_
    assert "_candidates" not in vars(model.fit(blocks[0]))


@pytest.mark.parametrize("size", [1, 2, 5, 40, 300])
def test_documents_of_old_words_keep_their_shares(size):
    texts = make_texts(120)
    model = make(n_topics=4).partial_fit([texts[:60], texts[60:]])
    X, before = model.counts(texts), model.transform(texts)
    lda = copy.copy(model.lda_).add_words(size)
    wider = sparse.hstack([X, sparse.csr_matrix((120, size))], format="csr")
    assert_allclose(lda.transform(wider), before, rtol=0, atol=1e-4)
    assert lda.n_features_in_ == lda.components_.shape[1] == X.shape[1] + size


@cases(
    "given",
    {"temperature": "variational"},
    {"temperature": "local"},
    {"dtype": "float64", "doc_topic_prior": "learn", "topic_word_prior": "learn"},
    {"preset": "sklearn"},
    {},
    ids=["variational", "local", "learned priors", "sklearn", "default"],
)
@pytest.mark.filterwarnings("ignore:The learned temperature did not cool")
def test_killed_between_two_calls_it_goes_on(given, tmp_path, monkeypatch):
    monkeypatch.setattr(growing, "MOST", 4)
    blocks, path = blocks_of(), tmp_path / "a"
    blocks[3] += ["hapax legomenon", "others once"]
    model = make(TopicVectorizer(clean=True), **given).partial_fit(blocks[:2])
    annealvi.save(model, path)
    others = [annealvi.load(path), copy.copy(model), copy.deepcopy(model)]
    others.append(pickle.loads(pickle.dumps(model)))
    model.partial_fit(blocks[2:])
    for other in others:
        same(other.partial_fit(blocks[2:]), model)


def test_candidates_are_bounded(monkeypatch):
    monkeypatch.setattr(growing, "MOST", 100)
    model, rng = make(TopicVectorizer(min_df=4), 2), np.random.RandomState(0)
    for number, block in enumerate(blocks_of(n=30, size=10)):
        strange = ["".join(rng.choice([*"abcdefgh"], 9)) for _ in range(20)]
        often = ["twice twicely"] if number % 2 else []
        model.partial_fit([*block, " ".join(strange), *often])
        assert len(model._candidates) <= 100
    assert {"telescope", "twice", "twicely"} <= {*model.feature_names_}


def test_an_error_in_a_block_counts_its_texts_once():
    blocks = blocks_of()
    model, straight = make(), make().partial_fit(blocks[:2])
    model.partial_fit(blocks[0])
    model.lda_.set_params(total_samples=-1)
    refused("total_samples", model.partial_fit, blocks[1])
    model.lda_.set_params(total_samples=96)
    model.partial_fit(blocks[1])
    assert model.vocabulary_.n_documents == straight.vocabulary_.n_documents == 48
    assert model._candidates == straight._candidates


def test_seeded_topics_and_given_priors_get_columns():
    blocks, seeds = blocks_of(), {"space": ["star", "moon"]}
    model = make().set_params(seed_words=seeds).partial_fit(blocks)
    eta, least = model.lda_.topic_word_prior_, model.lda_.topic_word_prior_[1, -1]
    assert eta.shape == model.components_.shape == model.lda_.topic_word_prior.shape
    assert_array_equal(eta[:, -1], least)
    own = TemperedLDA(2, topic_word_prior=[0.1, 0.2, 0.3]).fit(np.eye(3, dtype=int))
    assert_allclose(own.add_words(2).topic_word_prior_, [0.1, 0.2, 0.3, 0.1, 0.1])


def test_readers_never_see_half_of_a_growth():
    model, blocks, wrong = make().partial_fit(blocks_of()[0]), blocks_of(n=40, size=6), []
    ended = threading.Event()

    def read():
        while not ended.is_set():
            try:
                model.transform(blocks[3])
                model.score(blocks[4])
            except Exception as error:
                wrong.append(error)

    reader = threading.Thread(target=read)
    reader.start()
    strange = ([*block, f"word{chr(97 + i)}" * 2] * 3 for i, block in enumerate(blocks[:20]))
    model.partial_fit(strange)
    ended.set()
    reader.join()
    assert not wrong


FITTED = TemperedLDA(2, max_iter=1).fit(np.eye(3, dtype=int))
test_wrong_numbers_of_words = refusals(
    lambda n: copy.copy(FITTED).add_words(n),
    *((n, f"'n_words' .* a positive int. Got {n!r}") for n in (0, -1, 1.5, True, "a")),
)


@pytest.mark.filterwarnings("ignore:The learned temperature did not cool")
def test_words_that_log_c_does_not_know_change_nothing():
    X, grid, made_for = np.eye(3, dtype=int), [1, 1.25], {"n_features": 3}
    log_c = LogPartition(np.array(grid), np.array([0.0, -1.0]), made_for=made_for)
    temperature = Variational(partition=log_c, grid=[1, 1.25])
    lda = TemperedLDA(2, temperature=temperature, total_samples=3).partial_fit(X)
    refused("n_features", lda.add_words, 2)
    assert lda.partial_fit(X).components_.shape == (2, 3)


def test_a_callback_adds_no_words():
    lda = TemperedLDA(2, callback=lambda lda, monitor: lda.add_words(1))
    refused("after the fit, not in a callback", lda.partial_fit, np.eye(3, dtype=int))
