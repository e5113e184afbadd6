"""The terms of the bounds against SciPy."""

import numpy as np
import pytest
from scipy.special import gammaln, psi

from annealvi._kernels import bounds
from tests.asserts import same_bits

DTYPES = (np.float32, np.float64)
WIDTHS = (1, 2, 7, 8, 9, 100)  # part of a vector, whole ones, and both


def terms(x, prior, psi_sums):
    x = x.astype(np.float64)
    return (prior - x) * (psi(x) - psi_sums) + gammaln(x)


def positive(rng, shape, dtype):
    """From what a sparse topic holds to what a large corpus does."""
    return np.exp(rng.uniform(np.log(1e-6), np.log(1e6), shape)).astype(dtype)


def row_terms(gamma, prior, psi_sums, n_threads=1):
    out = np.empty(len(gamma))
    scratch = np.empty((n_threads, 2 * gamma.shape[1]))
    bounds.row_terms(gamma, prior, psi_sums, n_threads, scratch, out)
    return out


def column_terms(lam, prior, psi_sums, n_threads=1):
    n_topics = len(psi_sums)
    out = np.empty(n_topics)
    partial = np.empty((bounds.n_vocabulary_blocks(len(lam)), n_topics))
    scratch = np.empty((n_threads, n_topics))
    bounds.column_terms(lam, prior, psi_sums, n_threads, scratch, partial, out)
    return out


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("width", WIDTHS)
def test_rows(width, dtype):
    rng = np.random.RandomState(0)
    gamma = positive(rng, (200, width), dtype)
    prior = rng.uniform(0.01, 2, width)
    psi_sums = psi(gamma.sum(axis=1, dtype=np.float64))
    expected = terms(gamma, prior, psi_sums[:, None])
    scale = np.abs(expected).sum(axis=1)  # terms may cancel, in SciPy too
    error = np.abs(row_terms(gamma, prior, psi_sums) - expected.sum(axis=1))
    # the factors of a term may cancel as well: gamma psi of a gamma of 1e6
    scale += (gamma * np.abs(psi(gamma))).sum(axis=1)
    assert np.max(error / scale) < 1e-14


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("kind", ["number", "words", "both"])
def test_columns(kind, width, dtype):
    rng = np.random.RandomState(0)
    lam = positive(rng, (150, width + 3), dtype)
    lam[:, width:] = np.nan  # the padding is never read
    prior = rng.uniform(0.01, 2, {"number": (1, 1), "words": (150, 1), "both": (150, width)}[kind])
    psi_sums = psi(lam[:, :width].sum(axis=0, dtype=np.float64))
    expected = terms(lam[:, :width], prior, psi_sums)
    inner = lam[:, :width].astype(np.float64)
    scale = np.abs(expected).sum(axis=0) + (inner * np.abs(psi(inner))).sum(axis=0)
    assert np.max(np.abs(column_terms(lam, prior, psi_sums) - expected.sum(axis=0)) / scale) < 1e-14


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("width", WIDTHS)
def test_the_same_bits(width, dtype):
    rng = np.random.RandomState(0)
    x = positive(rng, (5001, width), dtype)  # of the largest so many that they are shared out
    prior = rng.uniform(0.01, 2, width)
    row_sums, column_sums = rng.uniform(0, 9, 5001), rng.uniform(0, 9, width)
    same_bits(lambda n: row_terms(x, prior, row_sums, n))
    same_bits(lambda n: column_terms(x, prior[None, :1], column_sums, n))
