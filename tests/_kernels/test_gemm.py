"""The blocked matrix products against NumPy, around the sizes of their blocks."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from annealvi._kernels import gemm
from annealvi._kernels.layout import single_threaded_blas

DTYPES = (np.float32, np.float64)
ROWS = (1, 255, 256, 257, 2047, 2048, 2049, 5000)
COLUMNS = (1, 16, 1023, 1024, 1025, 2500)
SHAPES = sorted(
    {(n, d) for n in ROWS for d in (1, 16)}
    | {(n, d) for n in (1, 257) for d in COLUMNS}
    | {(2049, 1025), (40_000, 3)}
)
PADDING = 37


def matrix(n_rows, n_columns, dtype, seed):
    return np.random.default_rng(seed).random((n_rows, n_columns), dtype=dtype) - dtype(0.25)


def assert_is_product(out, left, right):
    """out = left right up to roundings, which grow as the square root of a block's rows.

    How many of them BLAS adds one after the other depends on its kernel for the processor.
    """
    tolerance = np.sqrt(2048) * np.finfo(left.dtype).eps / 2
    left, right = left.astype(np.float64), right.astype(np.float64)
    error = np.abs(out - left @ right)
    assert np.all(error <= tolerance * (np.abs(left) @ np.abs(right)))


def inner(left, right, gram, n_rows, *, n_threads=1, groups=None):
    """left right, or left right^T, in the scratch that `inner` wants."""
    K, D = left.shape[0], right.shape[0] if gram else right.shape[1]
    groups = gemm.n_groups(n_rows, D) if groups is None else groups
    tile = np.full((n_threads, gemm.tile_size(K, D)), np.nan, dtype=left.dtype)
    partial, out = np.full((groups, K, D), np.nan), np.full((K, D), np.nan)
    with single_threaded_blas():
        gemm.inner(left, right, gram, n_rows, n_threads, tile, partial, out)
    return out


@pytest.mark.parametrize(("N", "D"), SHAPES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_outer_and_inner(dtype, N, D):
    left, right = matrix(5, D, dtype, 0), matrix(N, D, dtype, 1)
    out = np.full((5, N + PADDING), 7, dtype=dtype)
    with single_threaded_blas():
        gemm.outer(left, right, 1, out)
    assert_is_product(out[:, :N], left, right.T)
    assert_array_equal(out[:, N:], 7)
    left = matrix(5, N + PADDING, dtype, 0)
    left[:, N:] = np.nan  # what lies in the padding makes no difference
    assert_is_product(inner(left, right, False, N), left[:, :N], right)


#: Of a matrix with itself, and with one of another width and of more rows than a block has.
GRAMS = [(K, K, N) for K in (1, 7) for N in ROWS] + [(3, n, 2049) for n in (1, 1023, 1024, 1025)]


@pytest.mark.parametrize(("K", "other", "N"), GRAMS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_gram(dtype, K, other, N):
    left = matrix(K, N + PADDING, dtype, 0)
    left[:, N:] = np.nan
    right = left if other == K else matrix(other, N, dtype, 1)
    assert_is_product(inner(left, right, True, N), left[:, :N], right[:, :N].T)


@pytest.mark.parametrize("groups", [1, 20])
def test_blocks_of_rows_are_added_in_double(groups):
    """One number of each block of rows: float32 would lose every 1 beside 2^24."""
    right = np.zeros((20 * 2048, 1), dtype=np.float32)
    right[::2048] = 1
    right[0] = 2**24
    out = inner(np.ones((1, len(right)), dtype=np.float32), right, False, len(right), groups=groups)
    assert out[0, 0] == 2**24 + 19


def test_no_rows():
    assert_array_equal(inner(np.ones((3, 8)), np.ones((0, 4)), False, 0), np.zeros((3, 4)))
    out = np.full((3, 8), 7.0)
    gemm.outer(np.ones((3, 4)), np.ones((0, 4)), 1, out)
    assert_array_equal(out, 7)


@pytest.mark.parametrize(("N", "D"), [(5000, 16), (2049, 1300), (257, 1025), (40_000, 3)])
@pytest.mark.parametrize("dtype", DTYPES)
def test_any_number_of_threads_gives_the_same_bits(dtype, N, D):
    means, X = matrix(11, D, dtype, 0), matrix(N, D, dtype, 1)
    results = []
    for n_threads in (1, 2, 3):
        nu = np.zeros((11, N + PADDING), dtype=dtype)
        with single_threaded_blas():
            gemm.outer(means, X, n_threads, nu)
        data = inner(nu, X, False, N, n_threads=n_threads)
        pairs = inner(nu, nu, True, N, n_threads=n_threads)
        results.append((nu, data, pairs))
    for other in results[1:]:
        for ours, theirs in zip(results[0], other, strict=True):
            assert_array_equal(ours, theirs)
