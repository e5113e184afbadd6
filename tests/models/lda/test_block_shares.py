"""What the default leaves out of a document's iterations, and how far it goes in each."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from annealvi.model import UNTEMPERED, Batch, Tempering
from annealvi.models.lda import LDA, LocalOptions, workspace

K, V, D = 90, 200, 61


def model(dtype=np.float32, **options):
    rng = np.random.RandomState(0)
    options = dict(max_iter=200, tolerance=0.0, token_tolerance=1e-6) | options
    lda = LDA(K, V, alpha=0.03, eta=0.1, dtype=dtype, options=LocalOptions(**options))
    lda.topics.assign(rng.gamma(0.05, 40.0, (K, V)) + 0.1)
    return lda


def documents(dtype=np.float32):
    rng = np.random.RandomState(1)
    X = sparse.csr_matrix(rng.poisson(rng.gamma(0.1, 4.0, (D, V))).astype(dtype))
    return sparse.vstack([X[:20], sparse.csr_matrix((1, V), dtype=dtype), X[20:]]).tocsr()


def trained(lda, X, T=1.0, n_threads=1):
    lda.topics.n_threads = n_threads
    return lda.local_step(Batch(X, slice(0, X.shape[0])), Tempering(1 / T)).statistics.dense(K)


def test_training_in_float32_leaves_out_small_shares():
    """What the topics that are left out would hold is less than a fiftieth of all words."""
    X = documents()
    dropped, kept = trained(model(), X), trained(model(prune=False), X)
    work = model()
    trained(work, X)
    left = work.buffers.training.work.n_active[: X.shape[0]]
    assert np.mean(left < K) > 0.5
    moved = np.abs(dropped - kept).sum() / X.sum()
    assert 0 < moved < 0.02
    assert dropped.sum() == pytest.approx(X.sum(), rel=1e-5)


def test_less_is_left_out_after_training_and_in_float64():
    single, double = model(), model(np.float64)
    shares = [lda.documents.options.least_share(lda.dtype, True) for lda in (single, double)]
    assert shares == [workspace.TRAINING_SHARE, workspace.LEAST_SHARE]
    assert single.documents.options.least_share(np.float32, False) == workspace.SINGLE_SHARE
    assert LocalOptions(start="random").least_share(np.float64, True) == workspace.EXACT_SHARE
    assert LocalOptions(prune=False).least_share(np.float32, True) == 0
    X = documents()
    whole = model(prune=False).documents.infer(X)
    assert np.abs(single.documents.infer(X) - whole).max() < 0.01


def test_a_topic_of_a_large_prior_is_kept():
    lda = model()
    alpha = np.full(K, 0.03)
    alpha[[3, 70]] = 2.0
    lda.set_priors(alpha, 0.1)
    gamma = lda.documents.infer(documents())
    other = model(prune=False)
    other.set_priors(alpha, 0.1)
    assert_allclose(gamma, other.documents.infer(documents()), rtol=1e-2, atol=1e-2)


@pytest.mark.parametrize("T", [1.0, 1.19])
def test_over_relaxed_iterations_have_the_same_limit(T):
    X = documents(np.float64)
    plain, relaxed = (
        trained(model(np.float64, over_relaxed=flag, max_iter=2000), X, T) for flag in (False, True)
    )
    # but for the few documents that have several optima
    assert np.mean(np.abs(plain - relaxed) > 1e-3) < 0.02


def test_they_take_fewer_iterations_and_start_below_a_temperature():
    X = documents(np.float64)
    few = dict(max_iter=6, prune=False)
    limit = trained(model(np.float64, max_iter=2000, prune=False), X)
    far = [
        np.abs(trained(model(np.float64, over_relaxed=flag, **few), X) - limit).sum()
        for flag in (False, True)
    ]
    assert far[1] < far[0]
    assert LocalOptions(over_relaxed=True).relaxation(Tempering(1 / 1.21)) == (1.0, 1.0)
    assert LocalOptions(over_relaxed=True).relaxation(UNTEMPERED) == (1.5, 2.0)
    assert LocalOptions().relaxation(UNTEMPERED) == (1.0, 1.0)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_same_bits_for_any_threads_and_neighbours(dtype):
    """Two documents at a time, of an odd number, one of them empty."""
    X = documents(dtype)
    one, three = (trained(model(dtype, over_relaxed=True), X, n_threads=n) for n in (1, 3))
    assert_array_equal(one, three)
    gamma = model(dtype).documents.infer(X)
    for rows in ([20], [3, 20, 40], np.arange(X.shape[0])[::-1]):
        assert_array_equal(model(dtype).documents.infer(X[rows]), gamma[rows])


@pytest.mark.parametrize("n_threads", [1, 3])
@pytest.mark.parametrize("rho", [0.3, 1.0])
@pytest.mark.parametrize("n_words", [V, 40])
def test_a_step_is_the_same_if_statistics_are_summed_first(n_words, rho, n_threads):
    """All rows of topics, or some that wait; with one thread or three."""
    X = documents(np.float64)
    X = X[:, :n_words].tocsr() if n_words < V else X
    X.resize((X.shape[0], V))
    topics = []
    for first in (False, True):
        lda = model(np.float64)
        lda.topics.n_threads = n_threads
        statistics = lda.local_step(Batch(X, slice(0, X.shape[0])), UNTEMPERED).statistics
        if first:
            before = statistics.values.copy()
        lda.global_step(statistics, rho, 3.0, UNTEMPERED)
        if not first:
            later = statistics.dense(K)
        topics.append(lda.topics.components.copy())
    assert_array_equal(*topics)
    assert_array_equal(statistics.dense(K), later)
    assert before.sum() > 0
