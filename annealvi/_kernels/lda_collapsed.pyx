"""Collapsed inference of documents at fixed topics; the arithmetic is in ``lda_collapsed.h``.

One thread infers each document, only from the document's words.  So the result of a document is
bit-identical for any number of threads, and does not depend on other documents.
"""

from cython cimport floating
from libc.stdint cimport int32_t, int64_t

from annealvi._kernels._dispatch cimport (
    COLLAPSED, collapse_t, index_t, kernels, rows_of, shared_among, weights_of)


def collapse_documents(
    const floating[::1] data,     # IN  CSR counts, positive
    const index_t[::1] indices,   # IN  CSR column indices
    const index_t[::1] indptr,    # IN  CSR row pointers
    Py_ssize_t start,             # IN
    Py_ssize_t stop,              # IN  rows start:stop are inferred
    weights,                      # IN  TopicWeights: multiples of E beta, 0 in the padding
    const floating[::1] alpha,    # IN  (K_pad,) 0 in the padding
    double tolerance,             # IN  on the tokens that change their topic, relative to all
    int max_iter,                 # IN
    int n_threads,                # IN
    int64_t[:, ::1] pointers,     # OUT (n_threads, longest document) scratch
    floating[:, ::1] scratch,     # OUT (n_threads, (longest document + 3) K_pad)
    floating[:, ::1] gamma,       # OUT (n, K)
    int32_t[::1] n_iter,          # OUT (n,) sweeps made
):
    """Infer gamma, which is alpha plus the expected number of tokens of each topic."""
    cdef:
        const floating[:, ::1] values = weights.values
        collapse_t step
    if stop == start:
        return
    step.rows = rows_of(data, indices, indptr, start, stop)
    step.weights = weights_of(weights, values)
    step.K, step.alpha = gamma.shape[1], &alpha[0]
    step.tolerance, step.max_iter = tolerance, max_iter
    step.pointers, step.pointers_width = &pointers[0, 0], pointers.shape[1]
    step.scratch, step.scratch_width = &scratch[0, 0], scratch.shape[1]
    step.gamma, step.n_iter = &gamma[0, 0], &n_iter[0]
    step.n_threads = shared_among(
        n_threads, indptr[stop] - indptr[start], values.shape[1], COLLAPSED)
    with nogil:
        kernels.real[sizeof(floating) == 8].collapse_documents(&step)
