"""Matrix products on fixed blocks, each a call of single-threaded BLAS.

A multi-threaded BLAS divides a product into parts that depend on its number of threads, and
so do its rounding errors.  Here the parts depend only on shapes, and blocks are summed in a
fixed order.  Therefore results are bit-identical for any number of threads, as long as the
caller limits BLAS to one (:func:`annealvi._kernels.layout.single_threaded_blas`).
Sums over up to ROW_BLOCK rows are in the dtype of the arrays; these are added in double
precision.
"""

from cython cimport floating
from cython.parallel cimport prange, threadid
from scipy.linalg.cython_blas cimport dgemm, sgemm

cdef enum:
    ROW_BLOCK = 2048    # rows that one product sums over
    COLUMN_BLOCK = 1024  # columns of the result in one task
    OUTER_BLOCK = 256   # rows in one task of `outer`, where there is nothing to sum
    GROUPS = 16         # most partial sums of one result


cdef inline void gemm(
    bint transposed, int m, int n, int k,
    const floating *a, int lda, const floating *b, int ldb, floating *c, int ldc,
) noexcept nogil:
    """c = a b or a^T b, column-major as in BLAS."""
    cdef:
        floating one = 1, zero = 0
        char left = c"T" if transposed else c"N", right = c"N"
    if floating is float:
        sgemm(&left, &right, &m, &n, &k, &one, <float *>a, &lda, <float *>b, &ldb, &zero, c, &ldc)
    else:
        dgemm(&left, &right, &m, &n, &k, &one, <double *>a, &lda, <double *>b, &ldb, &zero, c,
              &ldc)


def outer(
    const floating[:, ::1] left,   # IN  (K, D)
    const floating[:, ::1] right,  # IN  (N, D)
    int n_threads,                 # IN
    floating[:, ::1] out,          # OUT (K, at least N)
):
    """out[:, :N] = left right^T."""
    cdef:
        Py_ssize_t n_rows = right.shape[0], n_tasks, task, start
        int K = left.shape[0], D = right.shape[1], ld = out.shape[1]
    if n_rows == 0 or K == 0:
        return
    n_tasks = (n_rows + OUTER_BLOCK - 1) // OUTER_BLOCK
    for task in prange(n_tasks, nogil=True, num_threads=n_threads, schedule="static"):
        start = task * OUTER_BLOCK
        gemm(True, <int>min(OUTER_BLOCK, n_rows - start), K, D,
             &right[start, 0], D, &left[0, 0], D, &out[0, start], ld)


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
    """out = left[:, :N] right, or left[:, :N] right[:, :N]^T if `gram`."""
    cdef:
        Py_ssize_t groups = partial.shape[0], n_blocks, n_columns, n_tasks, task
        Py_ssize_t group, column, block, start, k, d, g
        int K = left.shape[0], D = out.shape[1], ld = left.shape[1], ld_right = right.shape[1]
        int width, rows
        floating *own = NULL
    n_blocks = (n_rows + ROW_BLOCK - 1) // ROW_BLOCK
    n_columns = (D + COLUMN_BLOCK - 1) // COLUMN_BLOCK
    n_tasks = groups * n_columns
    for task in prange(n_tasks, nogil=True, num_threads=n_threads, schedule="static"):
        own = &tile[threadid(), 0]
        group = task // n_columns
        column = task % n_columns * COLUMN_BLOCK
        width = <int>min(COLUMN_BLOCK, D - column)
        for k in range(K):
            for d in range(width):
                partial[group, k, column + d] = 0
        for block in range(group * n_blocks // groups, (group + 1) * n_blocks // groups):
            start = block * ROW_BLOCK
            rows = <int>min(ROW_BLOCK, n_rows - start)
            if gram:
                gemm(True, width, K, rows, &right[column, start], ld_right,
                     &left[0, start], ld, own, width)
            else:
                gemm(False, width, K, rows, &right[start, column], ld_right,
                     &left[0, start], ld, own, width)
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
    """Number of partial sums in `inner`: several if there are few columns to distribute."""
    blocks = max(1, (n_rows + ROW_BLOCK - 1) // ROW_BLOCK)
    tasks = max(1, (n_columns + COLUMN_BLOCK - 1) // COLUMN_BLOCK)
    return min(blocks, max(1, GROUPS // tasks))


def tile_size(K, n_columns):
    """Size of the scratch that `inner` needs for each thread, in numbers."""
    return max(1, K * min(n_columns, COLUMN_BLOCK))
