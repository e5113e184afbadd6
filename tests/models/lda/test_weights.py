"""Rows of topic weights, exp(b log beta) of either estimate of beta, against NumPy."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import psi

from annealvi._kernels.layout import aligned_empty, padded_length
from annealvi.models.lda.topics import Rows, TopicWeights

V = 37
#: Of exponents, which the error of a logarithm is relative to.
ULPS = {np.float32: 4e-6, np.float64: 1e-13}
FAR = 1e5  # beyond it digamma is a logarithm, in the variational estimate
LAMBDA = {
    "near": lambda rng, shape: rng.gamma(0.4, 3.0, shape) + 0.02,
    "small": lambda rng, shape: 10.0 ** rng.uniform(-6, 0, shape),
    "large": lambda rng, shape: 10.0 ** rng.uniform(-2, 9, shape),
    "far": lambda rng, shape: FAR * rng.uniform(2, 50, shape),
}


def rows_of(lam, dtype, eta=None, decay=None, now=1.0):
    """lambda of shape (V, K) in padded rows, as a model keeps it."""
    n_features, n_topics = lam.shape
    values = aligned_empty((n_features, padded_length(n_topics, dtype)), dtype)
    values[:, :n_topics], values[:, n_topics:] = lam, 0
    eta = np.full(lam.shape, 0.1) if eta is None else eta
    decay = np.ones(n_features) if decay is None else decay
    return Rows(values, np.ascontiguousarray(eta, dtype=dtype), decay, now)


def refresh(rows, n_topics, estimate, b, *, exact=False, logs=False, words=None, n_threads=1):
    """Weights of words after `rows` in `topic_sums` that a model would have."""
    weights = TopicWeights(V, rows.values.shape[1], rows.values.dtype)
    weights.values[:] = np.nan
    words = np.arange(V) if words is None else words
    given = sums_of(rows, n_topics), estimate, b, exact, n_threads
    weights.refresh(words, rows, *given, want_logs=logs)
    return weights


def moved(rows, n_topics):
    """lambda with the steps that rows have to make up for, in double."""
    lam, eta = rows.values[:, :n_topics].astype(np.float64), rows.eta.astype(np.float64)
    if np.all(rows.decay == rows.now):
        return lam  # to the last digit
    return eta + (rows.now / rows.decay)[:, None] * (lam - eta)


def sums_of(rows, n_topics):
    return moved(rows, n_topics).sum(axis=0)


def log_beta(rows, n_topics, estimate):
    log = np.log if estimate == "map" else psi
    return log(moved(rows, n_topics)) - log(sums_of(rows, n_topics))


def assert_weights(weights, rows, n_topics, estimate, b):
    """All that a row says: its weights, its scale, its logarithms, its padding."""
    dtype = rows.values.dtype.type
    expected = log_beta(rows, n_topics, estimate)
    scale = weights.log_scale.astype(np.float64)
    tolerance = ULPS[dtype] * (1 + np.abs(expected).max())
    relative = b * (expected - scale[:, None])
    found = weights.values[:, :n_topics]
    least = -36 if dtype is np.float32 else -290  # exponents below it may be clamped
    there = relative > least
    assert_allclose(found[there], np.exp(relative[there]), rtol=tolerance)
    assert np.all(found[~there] <= 1.1 * np.exp(least)) and np.all(found >= 0)
    assert_array_equal(weights.values[:, n_topics:], 0)
    if weights.logs.size:
        at, near = expected - scale[:, None], dict(rtol=tolerance, atol=tolerance)
        assert_allclose(weights.logs[:, :n_topics], at, **near)


@pytest.mark.parametrize("lam", LAMBDA)
@pytest.mark.parametrize("b", [1.0, 0.5, 0.2])
@pytest.mark.parametrize("estimate", ["map", "variational"])
@pytest.mark.parametrize("dtype", ULPS)
def test_rows(dtype, estimate, b, lam):
    rng = np.random.RandomState(0)
    for n_topics in (1, 3, 8, 17):
        rows = rows_of(LAMBDA[lam](rng, (V, n_topics)), dtype)
        for logs, exact in ((False, False), (True, False), (False, True)):
            weights = refresh(rows, n_topics, estimate, b, logs=logs, exact=exact)
            assert_weights(weights, rows, n_topics, estimate, b)
            assert not (exact and weights.log_scale.any())  # as scikit-learn's local step has it


@pytest.mark.parametrize("b", [1.0, 0.4])
@pytest.mark.parametrize("estimate", ["map", "variational"])
@pytest.mark.parametrize("dtype", ULPS)
def test_rows_with_steps_to_make_up_for(dtype, estimate, b):
    """Words last moved at different times, under a prior of each word and topic."""
    rng = np.random.RandomState(2)
    eta = rng.uniform(0.01, 2, (V, 5))
    decay = 10.0 ** rng.uniform(-3, 0, V)
    decay[[4, 9]] = 1e-3  # has moved now
    rows = rows_of(LAMBDA["large"](rng, (V, 5)), dtype, eta, decay, 1e-3)
    before = rows.values.copy()
    assert_weights(refresh(rows, 5, estimate, b, logs=True), rows, 5, estimate, b)
    assert_array_equal(rows.values, before)


@pytest.mark.parametrize("dtype", ULPS)
def test_only_the_words_wanted(dtype):
    rows = rows_of(LAMBDA["near"](np.random.RandomState(3), (V, 6)), dtype)
    words = np.array([0, 5, 36])
    weights = refresh(rows, 6, "map", 0.7, words=words)
    assert_array_equal(np.flatnonzero(weights.place >= 0), words)
    assert np.all(np.isnan(weights.values[3:]))
    whole = refresh(rows, 6, "map", 0.7, n_threads=3)
    assert_array_equal(weights.values[weights.place[words]], whole.values[words])


@pytest.mark.parametrize("eta", [1e-4, 1e-25])
@pytest.mark.parametrize("dtype", ULPS)
def test_the_mean_of_a_dead_topic_and_of_one_of_very_many_words(dtype, eta):
    """Sums over words so far apart that neither may be lost in single precision."""
    lam = np.full((V, 3), eta)
    lam[:20, 0] = 1e9  # a topic of many words, one of a few, one of none
    lam[20:25, 1] = 3.0
    rows = rows_of(lam, dtype)
    for b in (1.0, 0.5):
        weights = refresh(rows, 3, "map", b, logs=True)
        assert_weights(weights, rows, 3, "map", b)
        assert np.all(weights.values[:, :3].max(axis=1) > 0)


@pytest.mark.parametrize("logs", [False, True])
def test_words_keep_their_rows_until_there_are_too_many(logs, monkeypatch):
    rows = rows_of(LAMBDA["near"](np.random.RandomState(4), (V, 6)), np.float64)
    whole = refresh(rows, 6, "map", 0.7, logs=logs)
    most = 12
    monkeypatch.setattr("annealvi.models.lda.topics.KEPT_BYTES", most * whole.values[:1].nbytes)
    bounded = TopicWeights(V, rows.values.shape[1], np.float64, bounded=True)
    unbounded = TopicWeights(V, rows.values.shape[1], np.float64)
    rng, dropped = np.random.RandomState(5), 0
    for size in (5, 5, 5, 3, 20, 2, 1):
        words = np.sort(rng.choice(V, size, replace=False))
        for weights in (bounded, unbounded):
            both = np.union1d(np.flatnonzero(weights.place >= 0), words)
            weights.refresh(words, rows, sums_of(rows, 6), "map", 0.7, False, 1, want_logs=logs)
            own = weights.place[words]
            assert_array_equal(weights.values[own], whole.values[words])
            assert_array_equal(weights.log_scale[own], whole.log_scale[words])
            if logs:
                assert_array_equal(weights.logs[own], whole.logs[words])
            full = weights is bounded and len(both) > most
            assert_array_equal(np.flatnonzero(weights.place >= 0), words if full else both)
            dropped += full
    assert dropped > 1
