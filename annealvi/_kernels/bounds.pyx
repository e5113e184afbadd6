"""Divergences between Dirichlet distributions, from which the bounds of LDA are computed.

``bound_rows.h`` computes a row, in double precision for both dtypes.  One thread computes each row
and each block of words, and blocks are added in a fixed order.  So results are bit-identical for
any number of threads.
"""

from cython cimport floating
from cython.parallel cimport prange, threadid

from annealvi._kernels._dispatch cimport BOUNDED, kernels, shared_among

cdef enum:
    VOCABULARY_BLOCK = 64  # words whose terms are summed by one thread


def row_terms(
    const floating[:, ::1] gamma,  # IN  (n, K) normal, positive
    const double[::1] prior,       # IN  (K,)
    const double[::1] psi_sums,    # IN  (n,) psi(sum_k gamma_dk)
    int n_threads,                 # IN  at most; one thread if there are few terms
    double[:, ::1] scratch,        # OUT (n_threads, 2 K)
    double[::1] out,               # OUT (n,)
):
    """Set out_d to sum_k (prior_k - gamma_dk)(psi(gamma_dk) - psi_sums_d) + log Gamma(gamma_dk)."""
    cdef:
        Py_ssize_t n = gamma.shape[0], d, k
        int K = gamma.shape[1]
        double *psi_sum = NULL
        double *terms = NULL
        double total
    if K == 0:
        return
    n_threads = shared_among(n_threads, n, K, BOUNDED)
    for d in prange(n, nogil=True, num_threads=n_threads, schedule="static"):
        psi_sum = &scratch[threadid(), 0]
        terms = psi_sum + K
        for k in range(K):
            psi_sum[k] = psi_sums[d]
            terms[k] = 0
        kernels.real[sizeof(floating) == 8].dirichlet_row(
            K, &gamma[d, 0], &prior[0], psi_sum, terms)
        total = 0
        for k in range(K):
            total = total + terms[k]
        out[d] = total


def column_terms(
    const floating[:, ::1] lam,   # IN  (V, at least K) normal, positive
    const double[:, :] prior,     # IN  (V, K), its rows contiguous; or (1 or V, 1)
    const double[::1] psi_sums,   # IN  (K,) psi(sum_v lam_vk)
    int n_threads,                # IN  at most; one thread if there are few terms
    double[:, ::1] scratch,       # OUT (n_threads, K)
    double[:, ::1] partial,       # OUT (blocks, K) scratch, see n_vocabulary_blocks
    double[::1] out,              # OUT (K,)
):
    """Set out_k to sum_v (prior_vk - lam_vk) (psi(lam_vk) - psi_sums_k) + log Gamma(lam_vk)."""
    cdef:
        Py_ssize_t n_features = lam.shape[0], n_blocks = partial.shape[0], block, v, k
        int K = psi_sums.shape[0]
        bint each_word = prior.shape[0] > 1, each_topic = prior.shape[1] > 1
        double *filled = NULL
        const double *row = NULL
    if K == 0:
        return
    n_threads = shared_among(n_threads, n_features, K, BOUNDED)
    for block in prange(n_blocks, nogil=True, num_threads=n_threads, schedule="static"):
        filled = &scratch[threadid(), 0]
        for k in range(K):
            partial[block, k] = 0
        for v in range(block * VOCABULARY_BLOCK, min((block + 1) * VOCABULARY_BLOCK, n_features)):
            row = &prior[v if each_word else 0, 0]
            if not each_topic:
                for k in range(K):
                    filled[k] = row[0]
                row = filled
            kernels.real[sizeof(floating) == 8].dirichlet_row(
                K, &lam[v, 0], row, &psi_sums[0], &partial[block, 0])
    for k in range(K):
        out[k] = 0
        for block in range(n_blocks):
            out[k] += partial[block, k]


def n_vocabulary_blocks(n_features):
    """Number of rows of ``partial`` that `column_terms` needs."""
    return (n_features + VOCABULARY_BLOCK - 1) // VOCABULARY_BLOCK
