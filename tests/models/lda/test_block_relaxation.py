"""Longer steps of gamma: they end where the others do, and never below the prior."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from annealvi.model import Batch, Tempering
from tests.models.lda.pair import LDA, LocalOptions
from tests.models.lda.test_block_float32 import V, problem

ALPHA = 0.05


def gamma_after(X, lam, n_iterations, *, over_relaxed, start=None, b=1.0, **options):
    own = LocalOptions(n_iterations, warm=True, prune=False, over_relaxed=over_relaxed, **options)
    model = LDA(len(lam), V, alpha=ALPHA, eta=0.1, dtype=X.dtype, options=own)
    model.assign(lam)
    model.start_documents(X.shape[0])
    if start is not None:
        model.gamma[:] = start
    model.local_step(Batch(X, slice(0, X.shape[0])), Tempering(b))
    return model.gamma


@pytest.mark.parametrize("is_sparse", [False, True])
@pytest.mark.parametrize("n_topics", [3, 20, 90])
def test_the_same_fixed_points(n_topics, is_sparse):
    X, lam = problem(n_topics, np.float64, 0.5)
    options = {"tolerance": 1e-13, "sparse": is_sparse}
    after = lambda n, o: gamma_after(X, lam, n, over_relaxed=o, **options)  # noqa: E731
    plain, relaxed = after(3000, False), after(3000, True)
    again = gamma_after(X, lam, 1, over_relaxed=False, start=relaxed, **options)
    assert_allclose(again, relaxed, rtol=1e-8)
    # a document may have several; most end in the same
    same = np.isclose(plain, relaxed, rtol=1e-5, atol=1e-7).all(axis=1)
    assert np.mean(same) > 0.8
    soon = [np.abs(after(12, o) - plain)[same].sum() for o in (False, True)]
    assert soon[1] < 0.7 * soon[0]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_gamma_is_never_below_the_prior(dtype):
    X, lam = problem(20, dtype, 0.5)
    alpha, reached = dtype(ALPHA), 0
    before = gamma_after(X, lam, 1, over_relaxed=True)
    assert_array_equal(before, gamma_after(X, lam, 1, over_relaxed=False))  # the first is plain
    for n_iterations in range(2, 15):
        gamma = gamma_after(X, lam, n_iterations, over_relaxed=True, tolerance=0.0)
        assert np.all(gamma >= alpha) and np.all(np.isfinite(gamma))
        optimum = gamma_after(X, lam, 1, over_relaxed=False, start=before)
        expected = np.maximum(before + 1.5 * (optimum - before), alpha)
        rtol = 1e-9 if dtype is np.float64 else 1e-3
        assert_allclose(gamma, expected, rtol=rtol, atol=rtol * alpha)
        reached += np.sum((gamma == alpha) & (optimum > alpha))
        before = gamma
    assert reached > 0  # where the longer step would have gone below
