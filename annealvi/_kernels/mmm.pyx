"""The multinomial mixture: log-likelihoods of documents, responsibilities and sums of words.

One thread computes a row of the result, from the entries of a sparse row in their order.  So
results are bit-identical for any number of threads.  Counts may be in single precision, and
everything else is in double precision.
"""

from cython cimport floating
from cython.parallel cimport prange, threadid
from libc.stdint cimport int64_t

from annealvi._kernels._dispatch cimport MOVED, index_t, kernels, shared_among


def add_product(
    const floating[::1] data,    # IN  CSR entries
    const index_t[::1] indices,  # IN  CSR column indices
    const index_t[::1] indptr,   # IN  (n + 1,) CSR row pointers
    const double[:, ::1] rows,   # IN  (columns, K) one for each column
    int n_threads,               # IN
    double[:, ::1] out,          # IN/OUT (n, K)
):
    """Add sum_i data_di rows_i to each row out_d."""
    cdef:
        Py_ssize_t n = out.shape[0], d, i
        int64_t K = out.shape[1]
    if n == 0 or K == 0:
        return
    n_threads = shared_among(n_threads, indptr[n] - indptr[0] + n, K, MOVED)
    for d in prange(n, nogil=True, num_threads=n_threads, schedule="guided"):
        for i in range(indptr[d], indptr[d + 1]):
            kernels.add_row(K, data[i], &rows[indices[i], 0], &out[d, 0])


def normalise(
    double inverse,             # IN  b
    int n_threads,              # IN
    double[:, ::1] scratch,     # OUT (n_threads, at least K)
    double[:, ::1] logs,        # IN/OUT (n, K) log p(x_d, k); then the responsibilities
    double[::1] energies,       # OUT (n,) sum_k phi_dk log p(x_d, k)
    double[::1] log_sums,       # OUT (n,) log sum_k p(x_d, k)^b
):
    """Replace the logarithms by phi_dk = p(x_d, k)^b / sum_j p(x_d, j)^b."""
    cdef:
        Py_ssize_t n = logs.shape[0], d
        int64_t K = logs.shape[1], k
        double *own = NULL
        double *row = NULL
        double top, total, energy
    if n == 0 or K == 0:
        return
    n_threads = shared_among(n_threads, n, K, MOVED * 8)
    for d in prange(n, nogil=True, num_threads=n_threads, schedule="static"):
        own = &scratch[threadid(), 0]
        row = &logs[d, 0]
        top = row[0]
        for k in range(1, K):
            top = max(top, row[k])
        for k in range(K):
            own[k] = row[k]
            row[k] = inverse * (row[k] - top)
        kernels.real[1].exp_array(K, row, row)
        total = 0
        for k in range(K):
            total = total + row[k]
        energy = 0
        for k in range(K):
            row[k] = row[k] / total
            energy = energy + row[k] * own[k]
        energies[d] = energy
        kernels.real[1].log_array(1, &total, &total)
        log_sums[d] = inverse * top + total
