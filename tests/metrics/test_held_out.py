"""Document completion against a loop over tokens."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.decomposition import LatentDirichletAllocation
from sklearn.exceptions import NotFittedError

from annealvi import TemperedLDA, TopicModel
from annealvi.callbacks import HeldOut
from annealvi.datasets import make_topic_corpus
from annealvi.metrics import document_completion, split_tokens
from annealvi.metrics.held_out import usual_prior
from tests.asserts import refused
from tests.marks import cases

SHAPE = r"'components_' .* numbers of shape \(n_components, 40\)"
METHODS = ("variational", "cvb0")


@pytest.fixture(scope="module")
def X():
    X = make_topic_corpus(90, 40, 3, document_length=25, random_state=0).data.tolil()
    X[5] = 0
    X[6] = 0
    X[6, 3] = 1  # nothing to hide
    return sparse.csr_matrix(X)


def test_tokens_are_split(X):
    for observed in (0.5, 0.2):
        seen, hidden = split_tokens(X, observed=observed, random_state=0)
        assert_array_equal((seen + hidden).toarray(), X.toarray())
        assert seen.data.min() > 0
        assert hidden.data.min() > 0
        lengths = np.asarray(X.sum(axis=1)).ravel()
        assert_array_equal(np.asarray(seen.sum(axis=1)).ravel(), np.ceil(observed * lengths))
    again, _ = split_tokens(X.toarray().astype(int), observed=0.2, random_state=0)
    assert_array_equal(again.toarray(), seen.toarray())
    other, _ = split_tokens(X, observed=0.2, random_state=1)
    assert not np.array_equal(other.toarray(), seen.toarray())


@pytest.mark.parametrize("at_once", [1, 10**9])
def test_every_token_is_as_likely_to_be_seen(at_once, monkeypatch):
    monkeypatch.setattr("annealvi.metrics.held_out._SPLIT_AT_ONCE", at_once)
    seen, _ = split_tokens(np.tile([6.0, 3, 1], (4000, 1)), random_state=0)
    assert_allclose(seen.toarray().mean(axis=0), [3, 1.5, 0.5], atol=0.06)


def test_the_split_is_the_same_in_one_piece_or_in_several(X, monkeypatch):
    expected = split_tokens(X, random_state=3)
    monkeypatch.setattr("annealvi.metrics.held_out._SPLIT_AT_ONCE", 60)  # two documents
    for part, whole in zip(split_tokens(X, random_state=3), expected, strict=True):
        assert_array_equal(part.toarray(), whole.toarray())


def test_a_document_of_any_number_of_tokens():
    counts = np.array([[4e8, 0, 5e8, 1e8], [3, 0, 2, 1]])
    seen, hidden = split_tokens(counts, observed=0.3, random_state=0)
    assert_array_equal((seen + hidden).toarray(), counts)
    assert_array_equal(np.asarray(seen.sum(axis=1)).ravel(), [3e8, 2])
    # hypergeometric: the standard deviations are below 1e4
    assert_allclose(seen.toarray()[0], 0.3 * counts[0], atol=6e4)
    assert np.any(seen.toarray()[0] != 0.3 * counts[0])


def foreign(components, theta=None):
    return SimpleNamespace(components_=components, transform=lambda X: theta)


def test_topics_that_are_no_distributions(X):
    topics, shares = np.ones((3, 40)), np.full((90, 3), 1 / 3)
    message = r"'transform' .* finite numbers, .* Got nan"
    refused(message, document_completion, foreign(topics, shares * np.nan), X)
    for wrong in (0.0, np.nan, np.inf, -np.inf):
        topics[1], message = wrong, f"positive and finite sums. Got {wrong}"
        refused(message, document_completion, foreign(topics, shares), X)


@pytest.mark.parametrize("order", ["words first", "topics first"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_topics_are_normalised_as_numpy_does(X, dtype, order, monkeypatch):
    """To the last bit, for topics of any layout and in one piece or in several."""
    for n_topics in (1, 2, 5):
        topics = np.random.RandomState(0).gamma(0.3, 1, (n_topics, 40)).astype(dtype)
        if order == "words first":
            topics = np.asfortranarray(topics)
        double, shares = np.asarray(topics, np.float64), np.full((90, n_topics), 1 / n_topics)
        model = foreign(topics, shares)
        expected = foreign(double / double.sum(axis=1, keepdims=True), shares)
        found = document_completion(model, X, per_document=True)
        assert_allclose(found, document_completion(expected, X, per_document=True), rtol=1e-13)
        with monkeypatch.context() as context:
            context.setattr("annealvi.metrics.held_out._TOPIC_BYTES", 2000)
            context.setattr("annealvi.metrics.held_out._SUMMED", 7)
            assert_array_equal(document_completion(model, X, per_document=True), found)


@pytest.mark.parametrize("library", [TemperedLDA, LatentDirichletAllocation])
def test_document_completion(X, library, monkeypatch):
    lda = library(3, random_state=0).fit(X)
    seen, hidden = split_tokens(X, random_state=4)
    theta = lda.transform(seen)
    topics = np.asarray(lda.components_, np.float64)
    beta = topics / topics.sum(axis=1, keepdims=True)
    total, per_document = 0.0, []
    for share, words in zip(theta, hidden.toarray(), strict=True):
        log_likelihood = sum(n * np.log(share @ beta[:, v]) for v, n in enumerate(words) if n)
        total += log_likelihood
        per_document.append(log_likelihood / words.sum() if words.sum() else np.nan)
    expected = total / hidden.sum()
    assert document_completion(lda, X, random_state=4) == pytest.approx(expected, rel=1e-12)
    assert_allclose(document_completion(lda, X, random_state=4, per_document=True), per_document)
    monkeypatch.setattr("annealvi.metrics.held_out._BLOCK_BYTES", 1000)
    assert document_completion(lda, X, random_state=4) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("method", [None, "cvb0"])
def test_large_matrices_are_completed_in_blocks(X, method, monkeypatch):
    lda = TemperedLDA(3, random_state=0).fit(X)
    X = sparse.vstack([X, 40 * X[:2], X]).tocsr()
    options = dict(method=method, random_state=4)
    monkeypatch.setattr("annealvi.metrics.held_out._SPLIT_AT_ONCE", 200)
    mean = document_completion(lda, X, **options)
    each = document_completion(lda, X, per_document=True, **options)
    blocks = []

    def split(X, **options):
        blocks.append(X.nnz)
        return split_tokens(X, **options)

    monkeypatch.setattr("annealvi.metrics.held_out.split_tokens", split)
    monkeypatch.setattr("annealvi.metrics.held_out._ENTRIES_AT_ONCE", 300)
    assert document_completion(lda, X, **options) == pytest.approx(mean, rel=1e-12)
    assert max(blocks) <= 300 and sum(blocks) == X.nnz > 1000
    assert_array_equal(document_completion(lda, X, per_document=True, **options), each)
    refused(r"integer counts. Got \d+.5", document_completion, lda, X * 0.5)


def test_clear_errors(X):
    lda = TemperedLDA(3).fit(X)
    refused(r"integer counts. Got \d+.5", document_completion, lda, X * 0.5)
    refused("Negative values", document_completion, lda, -X)
    refused(r"at most 1e\+15 .* Got 1e\+18", document_completion, lda, np.full((1, 40), 2.5e16))
    refused("at least two words", document_completion, lda, X[5:7])


@cases("every, steps", (1, [3, 6]), (1 / 3, range(1, 7)), (2, [6]), (1e-300, range(1, 7)))
def test_learning_curve(X, every, steps):
    options = dict(learning_method="online", batch_size=30, max_iter=2, n_init=1, temperature=1)
    scored = HeldOut(X[:20], every=every)
    lda = TemperedLDA(3, random_state=0, callback=scored, **options).fit(X)
    taken = np.isfinite(lda.history_["held_out_log_likelihood"])
    assert_array_equal(lda.history_["step"][taken], steps)
    assert lda.history_["held_out_log_likelihood"][taken][-1] == document_completion(lda, X[:20])


def test_data_frames_keep_their_names(X):
    frame = pd.DataFrame(X.toarray(), columns=[f"w{i}" for i in range(40)])
    lda = TemperedLDA(3, max_iter=2, random_state=0, callback=HeldOut(frame)).fit(frame)
    plain = TemperedLDA(3, max_iter=2, random_state=0).fit(X)
    for method in (None, "cvb0"):
        expected = document_completion(plain, X, method=method)
        assert document_completion(lda, frame, method=method) == expected
        with pytest.raises(ValueError, match=r"feature names .*should match"):
            document_completion(lda, frame[frame.columns[::-1]], method=method)


@pytest.fixture(scope="module")
def lda(X):
    return TemperedLDA(3, max_iter=3, dtype="float64", random_state=0).fit(X)


@pytest.mark.parametrize("method", METHODS)
def test_it_is_that_of_our_own_estimator(lda, X, method):
    seen, _ = split_tokens(X, random_state=0)
    expected = document_completion(foreign(lda.components_, lda.transform(seen, method=method)), X)
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


@pytest.mark.parametrize("n_topics", [1, 10, 29, 100])
def test_the_usual_prior(n_topics):
    lda = TemperedLDA(n_topics)
    lda.components_ = np.ones((n_topics, 2))
    assert usual_prior(n_topics) == lda.doc_topic_prior_


def test_the_prior(lda, X):
    priors = (None, usual_prior(3), [0.01, 0.2, 1.0])
    scores = [document_completion(lda, X, method="cvb0", doc_topic_prior=p) for p in priors]
    assert scores[0] == scores[1] != scores[2]
    other = TemperedLDA(3, doc_topic_prior=5.0)
    other.components_ = lda.components_
    assert document_completion(other, X, method="cvb0") == scores[0]


def test_topics_with_zeros(X):
    topics = np.kron(np.eye(2), np.ones(20))
    blocks = np.repeat([[3, 0], [0, 3]], 20, axis=1)
    for method in METHODS:
        scores = document_completion(foreign(topics), blocks, method=method, per_document=True)
        assert_allclose(scores, np.log(1 / 20), atol=0.02)


@cases(
    "given, message",
    (dict(method="gibbs"), "'method' parameter of document_completion"),
    (dict(method=1), "'method' parameter of document_completion"),
    (dict(doc_topic_prior=0.1), "'doc_topic_prior' .* must be None with method=None. Got 0.1"),
    (dict(method="cvb0", temperature=1.0), "'temperature' .* None with method='cvb0'. Got 1.0"),
    (dict(method="cvb0", doc_topic_prior=-1.0), "doc_topic_prior"),
    (dict(method="cvb0", doc_topic_prior=[0.1, 0.1]), "doc_topic_prior"),
)
def test_wrong_parameters(lda, X, given, message):
    refused(message, document_completion, lda, X, **given)


@cases(
    "components, message",
    *((np.ones(shape), SHAPE) for shape in ((3, 39), (0, 40), 40)),
    *((wrong, SHAPE) for wrong in (np.full((3, 40), "a"), [[1.0], [1.0, 2.0]])),
    (np.full((3, 40), np.nan), "components_ contains NaN"),
    (-np.ones((3, 40)), "'components_' .* non-negative numbers. Got -1"),
    (np.zeros((3, 40)), "positive and finite sum. Got 0"),
)
def test_wrong_topics(X, components, message):
    for method in ("cvb0", *[None] * (message is SHAPE)):
        refused(message, document_completion, foreign(components), X, method=method)


@pytest.mark.parametrize("method", [None, *METHODS])
def test_models_without_topics(X, method):
    with pytest.raises(NotFittedError):
        document_completion(TemperedLDA(2), X, method=method)
    for wrong in (3, None, SimpleNamespace(transform=None)):
        message = r"'model' .* must be a topic model with .*components_"
        refused(message, document_completion, wrong, X, method=method, error=TypeError)


def test_completion_of_a_model_of_texts():
    texts = ["stars and planets shine", "bread and butter taste"] * 12
    model = TopicModel(2, random_state=0).fit(texts)
    message = "'model' .* must be a model of word counts.* `lda_`"
    refused(message, document_completion, model, model.counts(texts))
    refused(
        "Fit a TopicModel to the texts", document_completion, model.lda_, texts, error=TypeError
    )
