"""Documents that are fitted two at a time, and starts at which all topics have the same gamma."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal, assert_equal
from scipy import sparse

from annealvi.model import Batch, Tempering
from annealvi.models.lda.cpu import exp_e_log
from tests.models.lda.pair import LDA, LocalOptions
from tests.models.lda.streams import dense

DTYPES = (np.float32, np.float64)
V = 300
#: Numbers of different words: empty documents beside others, long ones beside short ones.
LENGTHS = (0, 3, 250, 1, 0, 0, 17, 64, 5, 120, 2, 33, 0)


def corpus(dtype):
    rng = np.random.RandomState(0)
    X = np.zeros((len(LENGTHS), V))
    for row, n_words in zip(X, LENGTHS, strict=True):
        row[rng.choice(V, n_words, replace=False)] = rng.gamma(1.0, 2.0, n_words) + 0.2
    return sparse.csr_matrix(X.astype(dtype))


def make(n_topics, dtype, n_threads=1, **options):
    options = LocalOptions(**{"max_iter": 25, "tolerance": 1e-3, "warm": True} | options)
    alpha = np.linspace(0.01, 0.04, n_topics)
    model = LDA(n_topics, V, alpha=alpha, eta=0.1, dtype=dtype, options=options)
    model.engine.n_threads = n_threads
    model.assign(np.random.RandomState(1).gamma(0.1, 30.0, (n_topics, V)) + 0.1)
    return model


def fit(X, model, begin, b=1.0):
    """gamma, energy and statistics of a batch whose documents start from `begin`."""
    model.gamma = np.array(begin, dtype=X.dtype)
    tempering = Tempering(np.asarray(b, X.dtype) if np.ndim(b) else b)
    # learned temperatures want energies of single documents too
    local = model.local_step(Batch(X, slice(0, X.shape[0])), tempering, moments=True)
    return model.gamma, local.energy, dense(local.statistics, model.n_topics)


@pytest.mark.slow
@pytest.mark.parametrize("n_topics", [1, 3, 20, 90])
@pytest.mark.parametrize("dtype", DTYPES)
def test_two_in_turn_give_the_bits_of_one_alone(dtype, n_topics):
    X, rng = corpus(dtype), np.random.RandomState(3)
    rng.choice([0.3, 1.0], len(LENGTHS))[0] = 1.0
    for begin in (np.ones((len(LENGTHS), n_topics)), rng.gamma(1.0, 1.0, (len(LENGTHS), n_topics))):
        for over_relaxed in (False, True):
            options = {"over_relaxed": over_relaxed}
            gamma, energy, statistics = fit(X, make(n_topics, dtype, **options), begin)
            sums = np.zeros(statistics.shape)
            for d in range(len(LENGTHS)):
                alone = fit(X[d], make(n_topics, dtype, **options), begin[d : d + 1])
                assert_array_equal(alone[0][0], gamma[d])
                assert_array_equal(alone[1], energy[d])
                sums += alone[2]
            assert_allclose(statistics, sums, rtol=1e-10 if dtype is np.float64 else 1e-5)
            for rows in (slice(1, 4), slice(2, 7), slice(5, 13), slice(3, 5)):
                some = fit(X[rows], make(n_topics, dtype, **options), begin[rows])
                assert_array_equal(some[0], gamma[rows])
                assert_array_equal(some[1], energy[rows])
            threads = fit(X, make(n_topics, dtype, n_threads=3, **options), begin)
            assert_equal(threads, (gamma, energy, statistics))
    assert np.all(np.isfinite(gamma)) and np.all(gamma > 0)


@pytest.mark.thinned
@pytest.mark.parametrize("n_iterations", [1, 2, 30])
@pytest.mark.parametrize("n_topics", [1, 3, 20, 90])
@pytest.mark.parametrize("dtype", DTYPES)
def test_even_starts_with_and_without_sums_of_rows(dtype, n_topics, n_iterations):
    """The first sweep of an even start uses sums of rows, which raised rows have not."""
    X = corpus(dtype)[1:]
    options = {"max_iter": n_iterations, "tolerance": 0.0, "prune": False}
    rtol = 1e-9 if dtype is np.float64 else 2e-3
    for level in (1.0, 0.2, 37.0):
        begin = np.full((X.shape[0], n_topics), level)
        b = np.full(X.shape[0], 0.4)
        of_sums = fit(X, make(n_topics, dtype, **options), begin, 0.4)
        b[0] = 0.8  # the weights are raised to this power, and those of all others once more
        raised = fit(X, make(n_topics, dtype, **options), begin, b)
        uneven = begin.copy()
        uneven[:, 0] *= 1 + 4 * np.finfo(dtype).eps
        ordinary = fit(X, make(n_topics, dtype, **options), uneven, 0.4)
        if n_iterations == 1:  # with the documents' own sums, NumPy says the same
            weights = np.asarray(exp_e_log(make(n_topics, dtype)), np.float64) ** 0.4
            counts = X.toarray().astype(float)
            gamma = np.linspace(0.01, 0.04, n_topics) + 0.4 * (
                counts / weights.sum(axis=0) @ weights.T
            )
            assert_allclose(of_sums[0], gamma, rtol=rtol)
        for other in (raised, ordinary):
            assert_allclose(of_sums[0][1:], other[0][1:], rtol=rtol)
            assert_allclose(of_sums[1][1:], other[1][1:], rtol=rtol, atol=rtol)
