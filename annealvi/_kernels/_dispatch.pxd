from libc.stdint cimport int32_t, int64_t, uint64_t

from annealvi._kernels.kernels cimport kernel_table  # which setup.py makes of kernels.h

cdef extern from "kernels.h" nogil:
    const kernel_table *find_kernels "annealvi_find_kernels" (const char *name) noexcept
    int WORD_BLOCK "ANNEALVI_WORD_BLOCK"
    int STATE "ANNEALVI_STATE"
    int NARROW "ANNEALVI_NARROW"
    double NEGLIGIBLE "ANNEALVI_NEGLIGIBLE"
    int DATA_BLOCK "ANNEALVI_DATA_BLOCK"

# The table in use.  Other modules cimport the pointer, so use_instruction_set changes it for
# all of them.
cdef const kernel_table *kernels

cdef enum:
    # With less to do than this, in nanoseconds, one thread does all: waking a second one takes
    # 5 us to some ms, depending on whether a processor is free.
    LEAST_SHARED = 1 << 18
    # About the nanoseconds for each topic of an entry or word: of a local step, of a row of
    # weights, of a row that is moved or summed, of a term of a bound, and of CVB0.
    FITTED = 2
    WEIGHTED = 4
    MOVED = 1
    BOUNDED = 2
    COLLAPSED = 8


cdef inline int shared_among(
    int n_threads, Py_ssize_t n, Py_ssize_t K, Py_ssize_t each
) noexcept nogil:
    """The number of threads for n rows of K numbers."""
    return n_threads if n * K * each >= LEAST_SHARED else 1
