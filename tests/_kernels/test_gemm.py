"""The blocked matrix products against NumPy, around the sizes of their blocks."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from annealvi._kernels import gemm
from tests.asserts import refused, same_bits

DTYPES = (np.float32, np.float64)
ROWS = (1, 255, 256, 257, 2047, 2048, 2049, 5000)
COLUMNS = (1, 16, 1023, 1024, 1025, 2500)
SHAPES = sorted(
    {(n, d) for n in ROWS for d in (1, 16)}
    | {(n, d) for n in (1, 257) for d in COLUMNS}
    | {(0, 4), (2049, 1025), (40_000, 3)}
)
PADDING = 37


def matrix(n_rows, n_columns, dtype, seed):
    return np.random.default_rng(seed).random((n_rows, n_columns), dtype=dtype) - dtype(0.25)


def assert_is_product(out, left, right):
    """out = left right up to roundings, which grow as the square root of a block's rows."""
    tolerance = np.sqrt(2048) * np.finfo(left.dtype).eps / 2
    left, right = left.astype(np.float64), right.astype(np.float64)
    assert np.all(np.abs(out - left @ right) <= tolerance * (np.abs(left) @ np.abs(right)))


def inner(left, right, gram, n_rows, *, n_threads=1, groups=None):
    """left right, or left right^T, in the scratch that `inner` wants."""
    K, D = left.shape[0], right.shape[0] if gram else right.shape[1]
    groups = gemm.n_groups(n_rows, D) if groups is None else groups
    tile = np.full((n_threads, gemm.tile_size(K, D)), np.nan, dtype=left.dtype)
    partial, out = np.full((groups, K, D), np.nan), np.full((K, D), np.nan)
    gemm.inner(left, right, gram, n_rows, n_threads, tile, partial, out)
    return out


@pytest.mark.parametrize(("N", "D"), SHAPES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_outer_and_inner(dtype, N, D):
    left, right = matrix(5, D, dtype, 0), matrix(N, D, dtype, 1)
    out = np.full((5, N + PADDING), 7, dtype=dtype)
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


@pytest.mark.parametrize(("N", "D"), [(5000, 16), (2049, 1300), (257, 1025), (40_000, 3)])
@pytest.mark.parametrize("dtype", DTYPES)
def test_any_number_of_threads_gives_the_same_bits(dtype, N, D):
    means, X = matrix(11, D, dtype, 0), matrix(N, D, dtype, 1)

    def compute(n_threads):
        nu = np.zeros((11, N + PADDING), dtype=dtype)
        gemm.outer(means, X, n_threads, nu)
        products = ((nu, X, False, N), (nu, nu, True, N))
        return nu, [inner(*product, n_threads=n_threads) for product in products]

    same_bits(compute)


SIZES = (1, 2, 3, 7, 8, 9, 17)


@pytest.mark.parametrize("terms", [0, 1, 5, 255, 256, 257, 600])
def test_products_of_any_shape_and_strides(terms):
    for rows in (0, *SIZES):
        for columns in (0, *SIZES, 31, 33, 100):
            a, b = (matrix(*shape, np.float64, 0) for shape in ((rows, terms), (terms, columns)))
            wide = np.full((2 * rows, 3 * terms), np.nan)
            wide[::2, ::3] = a
            expected = gemm.product(a, b)
            assert expected.shape == (rows, columns)
            assert_is_product(expected, a, b)
            for left in (np.asfortranarray(a), wide[::2, ::3], a[::-1].copy()[::-1]):
                for right in (b, np.asfortranarray(b)):
                    assert_array_equal(gemm.product(left, right), expected)


def test_stacks_of_products():
    left, right = matrix(12, 35, np.float64, 0).reshape(4, 3, 35), matrix(140, 6, np.float64, 1)
    right = right.reshape(4, 35, 6)
    for own, a, b in zip(gemm.product(left, right), left, right, strict=True):
        assert_array_equal(own, gemm.product(a, b))
    same = gemm.product(np.broadcast_to(left[0], (4, 3, 35)), right)
    assert_array_equal(same[2], gemm.product(left[0], right[2]))
    refused("no product of matrices", gemm.product, left, right[:3])


def test_infinite_and_missing_numbers_stay_in_their_rows_and_columns():
    left, right = np.ones((9, 5)), np.ones((5, 9))
    left[3, 2], right[1, 4] = np.nan, np.inf
    out = gemm.product(left, right)
    assert np.all(np.isnan(out[3])) and np.all(np.isinf(np.delete(out[:, 4], 3)))
    assert np.isfinite(np.delete(np.delete(out, 3, axis=0), 4, axis=1)).all()


@pytest.mark.parametrize("K", [*SIZES, 40])
@pytest.mark.parametrize("kind", ["positive definite", "lower triangular"])
def test_equations_are_solved(K, kind):
    A, B = matrix(K, K, np.float64, 0), matrix(K, 13, np.float64, 1)
    A = A @ A.T + np.eye(K) if kind == "positive definite" else np.tril(A, -1) + 2 * np.eye(K)
    pivots, found = A.copy(), B.copy()
    gemm.solve(pivots, found)
    np.testing.assert_allclose(found, np.linalg.solve(A, B), rtol=1e-9, atol=1e-11)
    log_det = np.sum(np.log(np.diag(pivots)))
    np.testing.assert_allclose(log_det, np.linalg.slogdet(A)[1], rtol=1e-12, atol=1e-12)


def test_pivots_tell_that_a_matrix_is_not_positive_definite():
    pivots = np.array([[1.0, 2.0], [2.0, 1.0]])
    gemm.solve(pivots, np.ones((2, 1)))
    assert np.diag(pivots).tolist() == [1, -3]
