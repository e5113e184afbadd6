"""Matrix products in fixed blocks, and systems of linear equations.

The arithmetic of a product is in ``product.h``.  This module distributes blocks over threads.
The order of each sum depends only on shapes, so results are bit-identical for any number of
threads.  Sums over up to ROW_BLOCK rows have the dtype of the arrays.  They are added to the
result in double precision.
"""

import numpy as np

from cython cimport floating
from cython.parallel cimport prange, threadid

from annealvi._kernels._dispatch cimport kernels

cdef enum:
    ROW_BLOCK = 2048    # rows that one product sums over
    COLUMN_BLOCK = 1024  # columns of the result in one task
    OUTER_BLOCK = 256   # rows in one task of `outer`, where there is nothing to sum
    GROUPS = 16         # most partial sums of one result


def product(left, right):
    """Compute the product of matrices or stacks of matrices, in double precision, in one thread."""
    cdef:
        const double[:, :, :] a = np.asarray(left, dtype=np.float64)[(None,) * (left.ndim < 3)]
        const double[:, :, :] b = np.asarray(right, dtype=np.float64)[(None,) * (right.ndim < 3)]
        double[:, :, ::1] c
        Py_ssize_t size = sizeof(double), i
    if a.shape[2] != b.shape[1] or a.shape[0] != b.shape[0]:
        raise ValueError(f"no product of matrices of shapes {left.shape} and {right.shape}")
    out = np.zeros((a.shape[0], a.shape[1], b.shape[2]))
    if out.size > 0 and a.shape[2] > 0:
        c = out
        for i in range(c.shape[0]):
            kernels.real[1].product(
                c.shape[1], c.shape[2], a.shape[2], &a[i, 0, 0], a.strides[1] // size,
                a.strides[2] // size, &b[i, 0, 0], b.strides[1] // size, b.strides[2] // size, 0,
                &c[i, 0, 0], c.shape[2])
    return out if left.ndim == 3 else out[0]


def solve(
    double[:, ::1] A,  # IN/OUT (K, K) positive definite or triangular; then its elimination
    double[:, ::1] B,  # IN/OUT (K, at least 1); then A^-1 B
):
    """Solve A X = B by elimination; the pivots are left on the diagonal of A.

    Rows are not exchanged.  For these matrices elimination is as stable as Cholesky's method.
    """
    cdef:
        Py_ssize_t K = A.shape[0], n = B.shape[1], i, j, step
        double factor
    for j in range(K):
        for i in range(j + 1, K):
            if A[i, j] != 0:
                factor = -A[i, j] / A[j, j]
                kernels.add_row(K - j, factor, &A[j, j], &A[i, j])
                kernels.add_row(n, factor, &B[j, 0], &B[i, 0])
    for step in range(K):
        j = K - 1 - step
        for i in range(n):
            B[j, i] /= A[j, j]
        for i in range(j):
            if A[i, j] != 0:
                kernels.add_row(n, -A[i, j], &B[j, 0], &B[i, 0])


def outer(
    const floating[:, ::1] left,   # IN  (K, D)
    const floating[:, ::1] right,  # IN  (N, D)
    int n_threads,                 # IN
    floating[:, ::1] out,          # OUT (K, at least N)
):
    """Set out[:, :N] to left right^T."""
    cdef:
        Py_ssize_t n_rows = right.shape[0], n_tasks, task, start
        Py_ssize_t K = left.shape[0], D = right.shape[1], ld = out.shape[1]
    if n_rows == 0 or K == 0:
        return
    n_tasks = (n_rows + OUTER_BLOCK - 1) // OUTER_BLOCK
    for task in prange(n_tasks, nogil=True, num_threads=n_threads, schedule="static"):
        start = task * OUTER_BLOCK
        kernels.real[sizeof(floating) == 8].product(
            K, min(OUTER_BLOCK, n_rows - start), D, &left[0, 0], D, 1, &right[start, 0], 1, D, 0,
            &out[0, start], ld)


def inner(
    const floating[:, ::1] left,   # IN  (K, at least N)
    const floating[:, ::1] right,  # IN  (N, D), or (K', at least N) if `gram`
    bint gram,                     # IN  whether `right` is component-major too
    Py_ssize_t n_rows,             # IN  N
    int n_threads,                 # IN
    floating[:, ::1] tile,         # OUT (n_threads, K * COLUMN_BLOCK) scratch, see tile_size
    double[:, :, ::1] partial,     # OUT (groups, K, D) scratch, see n_groups
    double[:, ::1] out,            # OUT (K, D)
):
    """Set out to left[:, :N] right or, with `gram`, to left[:, :N] right[:, :N]^T."""
    cdef:
        Py_ssize_t groups = partial.shape[0], n_blocks, n_columns, n_tasks, task
        Py_ssize_t group, column, block, start, k, d, g
        Py_ssize_t K = left.shape[0], D = out.shape[1], ld = left.shape[1]
        Py_ssize_t ld_right = right.shape[1], width, rows
        floating *own = NULL
        const floating *other = NULL
    n_blocks = (n_rows + ROW_BLOCK - 1) // ROW_BLOCK
    n_columns = (D + COLUMN_BLOCK - 1) // COLUMN_BLOCK
    n_tasks = groups * n_columns
    for task in prange(n_tasks, nogil=True, num_threads=n_threads, schedule="static"):
        own = &tile[threadid(), 0]
        group = task // n_columns
        column = task % n_columns * COLUMN_BLOCK
        width = min(COLUMN_BLOCK, D - column)
        for k in range(K):
            for d in range(width):
                partial[group, k, column + d] = 0
        for block in range(group * n_blocks // groups, (group + 1) * n_blocks // groups):
            start = block * ROW_BLOCK
            rows = min(ROW_BLOCK, n_rows - start)
            other = &right[column, start] if gram else &right[start, column]
            kernels.real[sizeof(floating) == 8].product(
                K, width, rows, &left[0, start], ld, 1, other, 1 if gram else ld_right,
                ld_right if gram else 1, 0, own, width)
            for k in range(K):
                for d in range(width):
                    partial[group, k, column + d] += own[k * width + d]
    for k in prange(K, nogil=True, num_threads=n_threads, schedule="static"):
        for d in range(D):
            out[k, d] = 0
        for g in range(groups):
            for d in range(D):
                out[k, d] += partial[g, k, d]


def n_groups(n_rows, n_columns):
    """Number of partial sums in `inner`, which is larger if there are few columns."""
    blocks = max(1, (n_rows + ROW_BLOCK - 1) // ROW_BLOCK)
    tasks = max(1, (n_columns + COLUMN_BLOCK - 1) // COLUMN_BLOCK)
    return min(blocks, max(1, GROUPS // tasks))


def tile_size(K, n_columns):
    """Size of the scratch that `inner` needs for each thread, in numbers."""
    return max(1, K * min(n_columns, COLUMN_BLOCK))
