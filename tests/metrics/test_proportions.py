"""One inference for the topics of every library."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from sklearn.decomposition import LatentDirichletAllocation
from sklearn.exceptions import NotFittedError

from annealvi import TemperedLDA
from annealvi.datasets import make_topic_corpus
from annealvi.metrics import document_completion, split_tokens
from annealvi.metrics.held_out import usual_prior

METHODS = ("variational", "cvb0")


@pytest.fixture(scope="module")
def X():
    return make_topic_corpus(60, 40, 3, document_length=25, random_state=0).data


@pytest.fixture(scope="module")
def lda(X):
    return TemperedLDA(3, max_iter=3, dtype="float64", random_state=0).fit(X)


def foreign(components, theta=None):
    return SimpleNamespace(components_=components, transform=lambda X: theta)


@pytest.mark.parametrize("method", METHODS)
def test_it_is_that_of_our_own_estimator(lda, X, method):
    seen, _ = split_tokens(X, random_state=0)
    theta = lda.transform(seen, method=method)
    expected = document_completion(foreign(lda.components_, theta), X)
    assert_allclose(document_completion(lda, X, method=method), expected, rtol=1e-7)


@pytest.mark.parametrize("method", METHODS)
def test_the_same_for_every_library(lda, X, method):
    expected = document_completion(lda, X, method=method)
    for scale in (1e-3, 1e5):
        other = foreign(scale * lda.components_)
        assert_allclose(document_completion(other, X, method=method), expected, rtol=1e-9)
    theirs = LatentDirichletAllocation(3, max_iter=1, random_state=0).fit(X)
    theirs.components_ = lda.components_
    assert_allclose(document_completion(theirs, X, method=method), expected, rtol=1e-12)
    only_topics = SimpleNamespace(components_=lda.components_)  # without transform
    assert_allclose(document_completion(only_topics, X, method=method), expected, rtol=1e-12)


@pytest.mark.parametrize("n_topics", [1, 2, 10, 11, 29, 30, 100])
def test_the_usual_prior(n_topics):
    lda = TemperedLDA(n_topics)
    lda.components_ = np.ones((n_topics, 2))
    assert usual_prior(n_topics) == lda.doc_topic_prior_


def test_the_prior(lda, X):
    scores = [
        document_completion(lda, X, method="cvb0", doc_topic_prior=prior)
        for prior in (None, usual_prior(3), [0.01, 0.2, 1.0])
    ]
    assert scores[0] == scores[1] != scores[2]
    other = TemperedLDA(3, doc_topic_prior=5.0)
    other.components_ = lda.components_
    assert document_completion(other, X, method="cvb0") == scores[0]


def test_documents_alone(lda, X):
    scores = document_completion(lda, X, method="cvb0", per_document=True)
    assert scores.shape == (60,)
    _, hidden = split_tokens(X, random_state=0)
    lengths = np.asarray(hidden.sum(axis=1)).ravel()
    expected = document_completion(lda, X, method="cvb0")
    assert_allclose((scores * lengths).sum() / lengths.sum(), expected, rtol=1e-12)


def test_topics_with_zeros(X):
    """As others may have them; documents still get their topics."""
    topics = np.kron(np.eye(2), np.ones(20))
    blocks = np.repeat([[3, 0], [0, 3]], 20, axis=1)
    for method in METHODS:
        scores = document_completion(foreign(topics), blocks, method=method, per_document=True)
        assert_allclose(scores, np.log(1 / 20), atol=0.02)


def test_columns_of_a_data_frame(lda, X):
    frame = pd.DataFrame(X.toarray(), columns=[f"w{i}" for i in range(40)])
    fitted = TemperedLDA(3, max_iter=1, random_state=0).fit(frame)
    assert document_completion(fitted, frame, method="cvb0") < 0
    with pytest.raises(ValueError, match="feature names should match"):
        document_completion(fitted, frame[frame.columns[::-1]], method="cvb0")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (dict(method="gibbs"), "'method' parameter of document_completion"),
        (dict(method=1), "'method' parameter of document_completion"),
        (dict(doc_topic_prior=0.1), "'doc_topic_prior' .* must be None with method=None. Got 0.1"),
        (dict(method="cvb0", temperature=1.0), "'temperature' .* None with method='cvb0'. Got 1.0"),
        (dict(method="cvb0", doc_topic_prior=-1.0), "doc_topic_prior"),
        (dict(method="cvb0", doc_topic_prior=[0.1, 0.1]), "doc_topic_prior"),
    ],
)
def test_wrong_parameters(lda, X, given, message):
    with pytest.raises(ValueError, match=message):
        document_completion(lda, X, **given)


@pytest.mark.parametrize(
    ("components", "message"),
    [
        (np.ones((3, 39)), "one column for each of 40"),
        (np.ones((0, 40)), "and a row"),
        (np.ones(40), "numbers of shape"),
        (np.full((3, 40), "a"), "numbers of shape"),
        (np.full((3, 40), np.nan), "non-negative. Got nan"),
        (-np.ones((3, 40)), "non-negative. Got -1"),
        (np.zeros((3, 40)), "positive and finite sums"),
        (np.full((3, 40), np.inf), "positive and finite sums"),
    ],
)
def test_wrong_topics(X, components, message):
    with pytest.raises(ValueError, match=message):
        document_completion(foreign(components), X, method="cvb0")


def test_no_topic_model(X):
    with pytest.raises(TypeError, match="topic model"):
        document_completion(SimpleNamespace(transform=None), X, method="cvb0")


def test_an_estimator_that_is_not_fitted():
    X = np.ones((3, 4), dtype=int)
    for method in ("cvb0", "variational"):
        with pytest.raises(NotFittedError):
            document_completion(TemperedLDA(2), X, method=method)
        with pytest.raises(TypeError, match="a topic model with `components_`"):
            document_completion(object(), X, method=method)
