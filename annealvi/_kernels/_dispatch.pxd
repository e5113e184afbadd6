from cython cimport floating
from libc.stdint cimport int32_t, int64_t, uint64_t

from annealvi._kernels.kernels cimport (  # setup.py makes this file from kernels.h
    annealvi_bernoulli as bernoulli_t, annealvi_block as block_t, annealvi_collapse as collapse_t,
    annealvi_documents as documents_t, annealvi_kernels as kernel_table, annealvi_refresh as refresh_t, annealvi_rows as rows_t,
    annealvi_step as step_t, annealvi_sums as sums_t, annealvi_weights as weights_t)

cdef extern from "kernels.h" nogil:
    const kernel_table *find_kernels "annealvi_find_kernels" (const char *name) noexcept
    int WORD_BLOCK "ANNEALVI_WORD_BLOCK"
    int TOGETHER "ANNEALVI_TOGETHER"
    int VOCABULARY_BLOCK "ANNEALVI_VOCABULARY_BLOCK"
    int DATA_BLOCK "ANNEALVI_DATA_BLOCK"

ctypedef fused index_t:
    int32_t
    int64_t

# The table in use.  Other modules cimport the pointer, so use_instruction_set changes it for
# all of them.
cdef const kernel_table *kernels

cdef enum:
    # With less to do than this, in nanoseconds, one thread does all: waking a second one takes
    # 5 us to some ms, depending on whether a processor is free.
    LEAST_SHARED = 1 << 18
    # About the nanoseconds for each topic of an entry or word: of a local step, of a row of
    # weights, of a row that is moved or summed, and of CVB0.
    FITTED = 2
    WEIGHTED = 4
    MOVED = 1
    COLLAPSED = 8


cdef inline int shared_among(
    int n_threads, Py_ssize_t n, Py_ssize_t K, Py_ssize_t each
) noexcept nogil:
    """The number of threads for n rows of K numbers."""
    return n_threads if n * K * each >= LEAST_SHARED else 1


cdef inline rows_t rows_of(
    const floating[::1] data, const index_t[::1] indices, const index_t[::1] indptr,
    Py_ssize_t start, Py_ssize_t stop,
):
    """Rows of a CSR matrix."""
    cdef rows_t rows
    rows.data = &data[0] if data.shape[0] else NULL
    rows.indices = &indices[0] if indices.shape[0] else NULL
    rows.indptr, rows.wide = &indptr[0], sizeof(index_t) == sizeof(int64_t)
    rows.start, rows.n = start, stop - start
    return rows


cdef inline weights_t weights_of(weights, const floating[:, ::1] values):
    """The arrays of a TopicWeights, which has to outlive them."""
    cdef:
        const int32_t[::1] place = weights.place
        const floating[::1] log_scale = weights.log_scale, row_sums = weights.row_sums
        const floating[:, ::1] logs = weights.logs
        weights_t own
    own.K_pad, own.normalise, own.b0 = values.shape[1], not weights.exact, weights.b0
    own.place, own.values = <int32_t *>&place[0], <void *>&values[0, 0]
    own.log_scale, own.row_sums = <void *>&log_scale[0], <void *>&row_sums[0]
    own.logs = <void *>&logs[0, 0] if logs.shape[0] else NULL
    return own
