"""Collapsed inference of documents at held topics; the arithmetic is in ``lda_collapsed.h``.

Each document is inferred by one thread, from its own words only, so results are bit-identical for
any number of threads and for any documents beside it.
"""

from cython cimport floating
from cython.parallel cimport parallel, prange, threadid
from libc.stdint cimport int32_t, int64_t
from libc.string cimport memcpy

from annealvi._kernels._dispatch cimport COLLAPSED, kernels, shared_among

ctypedef fused index_t:
    int32_t
    int64_t


def collapse_documents(
    const floating[::1] data,        # IN  CSR counts, positive
    const index_t[::1] indices,      # IN  CSR column indices
    const index_t[::1] indptr,       # IN  CSR row pointers
    Py_ssize_t start,                # IN
    Py_ssize_t stop,                 # IN  rows start:stop are inferred
    const int32_t[::1] place,        # IN  (V,) rows of words in what follows
    const floating[:, ::1] weights,  # IN  (rows, K_pad) multiples of E beta, 0 in the padding
    const floating[::1] alpha,       # IN  (K_pad,) 0 in the padding
    double tolerance,                # IN  on the tokens that change their topic, relative to all
    int max_iter,                    # IN
    int n_threads,                   # IN
    int64_t[:, ::1] rows,            # OUT (n_threads, longest document) scratch
    floating[:, ::1] scratch,        # OUT (n_threads, (longest document + 3) K_pad)
    floating[:, ::1] gamma,          # OUT (n, K)
    int32_t[::1] n_iter,             # OUT (n,) sweeps made
):
    """Infer gamma = alpha + the expected number of tokens of each topic."""
    cdef:
        Py_ssize_t n = stop - start, d, j, at, n_words
        int K = gamma.shape[1], K_pad = weights.shape[1]
        double tokens
        floating *own = NULL
        const floating **row_of = NULL
    if n == 0:
        return
    n_threads = shared_among(n_threads, indptr[stop] - indptr[start], K_pad, COLLAPSED)
    with nogil, parallel(num_threads=n_threads):
        own = &scratch[threadid(), 0]
        row_of = <const floating **>&rows[threadid(), 0]
        for d in prange(n, schedule="dynamic", chunksize=4):
            at = indptr[start + d]
            n_words = indptr[start + d + 1] - at
            if n_words == 0:
                memcpy(&gamma[d, 0], &alpha[0], K * sizeof(floating))
                n_iter[d] = 0
                continue
            tokens = 0
            for j in range(n_words):
                tokens = tokens + data[at + j]
                row_of[j] = &weights[place[indices[at + j]], 0]
            if floating is float:
                n_iter[d] = kernels.f32.collapse_document(
                    n_words, K_pad, row_of, &data[at], &alpha[0], tolerance * tokens, max_iter,
                    own, own + K_pad, own + 3 * K_pad, own + 2 * K_pad)
            else:
                n_iter[d] = kernels.f64.collapse_document(
                    n_words, K_pad, row_of, &data[at], &alpha[0], tolerance * tokens, max_iter,
                    own, own + K_pad, own + 3 * K_pad, own + 2 * K_pad)
            memcpy(&gamma[d, 0], own + 2 * K_pad, K * sizeof(floating))
