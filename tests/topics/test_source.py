"""Fitted topic models of several kinds, read in one way."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.decomposition import NMF, LatentDirichletAllocation
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.pipeline import make_pipeline

from annealvi import TemperedLDA, TopicModel
from annealvi.topics.summary import Source
from annealvi.topics.vectorizer import of_each
from tests.topics.models import COMPONENTS, COUNTS, SHARES, WORDS, Given

TEXTS = ["moon orbit moon", "goal team goal", "orbit comet the", "the team"] * 5


@pytest.fixture(scope="module")
def lda():
    return TemperedLDA(3, max_iter=2, random_state=0).fit(COUNTS)


def test_topics_are_probabilities(lda):
    for model in (lda, Given()):
        topics = Source(model).components_
        weights = np.asarray(model.components_)
        assert_allclose(topics, weights / weights.sum(axis=1, keepdims=True), rtol=1e-6)


@pytest.mark.parametrize("make", [np.array, sparse.csr_matrix, sparse.coo_array, np.ndarray.tolist])
def test_counts_of_any_kind(lda, make):
    source = Source(lda)
    read = source.read(make(COUNTS), "documents")
    assert read.texts is None and sparse.issparse(read.counts)
    assert_array_equal(read.counts.toarray(), COUNTS)
    assert_allclose(source.transform(read.given), lda.transform(COUNTS))


def test_a_data_frame_has_names():
    X = pd.DataFrame(COUNTS, columns=WORDS)
    model = TemperedLDA(2, max_iter=2, random_state=0).fit(X)
    source = Source(model)
    read = source.read(X, "documents")
    assert_array_equal(source.names(None, read.given), WORDS)
    assert_allclose(source.transform(read.given), model.transform(X))  # and no warning of names
    assert_array_equal(Source(Given()).names(None, X), WORDS)
    assert_array_equal(Source(Given()).names(None, COUNTS), [str(n) for n in range(8)])
    assert_array_equal(source.names(list("abcdefgh"), X), list("abcdefgh"))


def test_a_topic_model_takes_texts_and_counts():
    model = TopicModel(2, random_state=0, seeds={"space": ["moon", "orbit"]}).fit(TEXTS)
    source = Source(model)
    assert source.model is model.lda_ and source.seed_topics == model.seed_topics_
    for texts in (TEXTS, pd.Series(TEXTS), iter(TEXTS), np.array(TEXTS)):
        read = source.read(texts, "documents")
        assert read.texts == TEXTS
        assert_array_equal(read.counts.toarray(), model.counts(TEXTS).toarray())
    assert source.read(model.counts(TEXTS), "documents").texts is None
    assert_array_equal(source.names(None, None), model.feature_names_)
    assert_allclose(source.transform(read.given), model.transform(TEXTS))


def test_a_pipeline_of_scikit_learn():
    lda = LatentDirichletAllocation(2, max_iter=2, random_state=0)
    model = make_pipeline(CountVectorizer(), lda).fit(TEXTS)
    source = Source(model)
    read = source.read(TEXTS, "documents")
    assert read.texts == TEXTS
    assert_array_equal(source.names(None, None), model[0].get_feature_names_out())
    assert_allclose(source.transform(read.given), model.transform(TEXTS))
    alone = Source(make_pipeline(lda))
    assert_allclose(alone.transform(read.counts), model.transform(TEXTS))


def test_weights_of_a_factorisation_become_shares():
    """W_dk H_kv is the number of words v that topic k has in document d."""
    model = NMF(2, random_state=0, max_iter=500).fit(COUNTS.astype(float))
    source = Source(model)
    parts = model.transform(COUNTS.astype(float))[:, :, None] * model.components_[None]
    words = parts.sum(axis=2)[:4]
    found = source.transform(COUNTS.astype(float))
    assert_allclose(found[:4], words / words.sum(axis=1, keepdims=True))
    assert_allclose(found[4], 0.5)  # no words


def test_documents_that_topics_explain_badly(lda):
    read = Source(lda).read(COUNTS, "documents")
    name, values = Source(lda).unusual(read, lda.transform(COUNTS))
    assert name == "temperature"
    assert_array_equal(values, lda.document_temperatures(COUNTS))
    source = Source(Given())
    name, values = source.unusual(read, SHARES)
    p = SHARES @ source.components_
    with np.errstate(invalid="ignore"):
        expected = np.where(COUNTS, COUNTS * np.log(p), 0).sum(axis=1) / COUNTS.sum(axis=1)
    assert name == "log_likelihood" and np.isnan(values[4])
    assert_allclose(values, expected)


def test_a_word_of_probability_0_makes_no_infinity():
    source = Source(Given([[1.0, 0.0], [1.0, 0.0]], [[0.5, 0.5]]))
    read = source.read([[0, 2]], "documents")
    assert_allclose(source.unusual(read, source.transform(read.given))[1], np.log(1e-12))


@pytest.mark.parametrize("model", [None, 3, "lda", np.eye(3), COMPONENTS, Given, object()])
def test_what_is_no_topic_model(model):
    with pytest.raises(TypeError, match="'model' parameter of describe must be a topic model"):
        Source(model)


@pytest.mark.parametrize(
    "model",
    [
        TemperedLDA(),
        TopicModel(),
        LatentDirichletAllocation(),
        make_pipeline(CountVectorizer(), LatentDirichletAllocation()),
    ],
)
def test_models_that_are_not_fitted(model):
    with pytest.raises(NotFittedError, match="not fitted"):
        Source(model)


@pytest.mark.parametrize(
    ("components", "message"),
    [
        (-COMPONENTS, "Negative values in data passed to describe as components_"),
        (COMPONENTS * np.nan, "components_ contains NaN"),
        (COMPONENTS[0], "Expected 2D array"),
        (COMPONENTS * [[1], [0], [1]], r"positive and finite sums.* Got a sum of 0.0 in topic 1\."),
        (COMPONENTS * 1e306, r"positive and finite sums.* Got a sum of inf in topic 0\."),
    ],
)
def test_components_that_cannot_be(components, message):
    with pytest.raises(ValueError, match=message):
        Source(Given(components))


@pytest.mark.parametrize(
    ("shares", "message"),
    [
        (SHARES[:, :2], r"numbers of shape \(5, 3\), one for each document .* Got shape \(5, 2\)"),
        (SHARES[:4], r"Got shape \(4, 3\)"),
        (SHARES[0], r"Got shape \(3,\)"),
        (-SHARES, "finite numbers that are not negative"),
        (SHARES * np.nan, "finite numbers that are not negative"),
        (None, "Got shape"),
    ],
)
def test_shares_that_cannot_be(shares, message):
    with pytest.raises(ValueError, match=message):
        Source(Given(shares=shares)).transform(COUNTS)


@pytest.mark.parametrize(
    ("documents", "error", "message"),
    [
        (COUNTS[:, :7], ValueError, "documents has 7 features, but Given is expecting 8 features"),
        (-COUNTS, ValueError, "Negative values in data passed to describe as documents"),
        (
            COUNTS * 0,
            ValueError,
            r"None of the 5 documents has a word of the vocabulary of 8 words",
        ),
        (COUNTS[:0], ValueError, "Found array with 0 sample"),
        (COUNTS * 1e304, ValueError, "counts in X must sum to at most"),
        (None, ValueError, "Expected 2D array|could not convert|Unsupported|dtype"),
        (TEXTS, TypeError, r"Given takes word counts and knows no texts. .* Got a list\."),
        ([], TypeError, "takes word counts and knows no texts"),
        ("moon", TypeError, r"'documents' must be a list of texts .* Got a single text"),
    ],
)
def test_documents_that_cannot_be(documents, error, message):
    with pytest.raises(error, match=message):
        Source(Given()).read(documents, "documents")


def test_texts_that_cannot_be():
    source = Source(TopicModel(2, random_state=0).fit(TEXTS))
    with pytest.raises(TypeError, match=r"documents\[1\] of describe must be a str. Got None"):
        source.read(["moon", None], "documents")
    with pytest.raises(ValueError, match=r"None of the 2 held_out has a word of the vocabulary"):
        source.read(["nothing", "here"], "held_out")
    with pytest.raises(ValueError, match="must hold at least 1 document"):
        source.read([], "documents")


def test_values_of_each_document():
    assert of_each(iter("ab"), 2, "titles") == ["a", "b"]
    with pytest.raises(ValueError, match=r"'titles' must have one entry .* 3 documents. Got 2\."):
        of_each(["a", "b"], 3, "titles")
    with pytest.raises(TypeError, match=r"'titles' must be a sequence .* Got \{1: 2\}"):
        of_each({1: 2}, 1, "titles")


def test_names_that_cannot_be():
    with pytest.raises(ValueError, match=r"one name for each of the 8 features. Got shape \(2,\)"):
        Source(Given()).names(["a", "b"], COUNTS)
