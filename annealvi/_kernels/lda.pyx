"""The documents of a batch: a transposed index of their words, and their local steps.

The local steps are in ``lda_document.h``.  Each document is fitted by one thread, so results are
bit-identical for any number of threads.  In lda_topics.pyx, each word is summed by one thread.

Matrices over the vocabulary have V rows of K numbers, padded to K_pad.  ``start:stop`` are the rows
of the CSR matrix that form the batch.
"""

from cython cimport floating
from libc.stdint cimport int32_t, int64_t, uint64_t
from libc.string cimport memcpy

from annealvi._kernels._dispatch cimport (
    FITTED, TOGETHER, WORD_BLOCK, documents_t, index_t, kernels, rows_of, shared_among, weights_of)

SWEEP_BLOCK = WORD_BLOCK
TOGETHER_DOCUMENTS = TOGETHER
SCRATCH_SLACK = 16  # see word_probabilities


def index_words(
    const index_t[::1] indices,   # IN  CSR column indices
    const index_t[::1] indptr,    # IN  CSR row pointers
    Py_ssize_t start,             # IN
    Py_ssize_t stop,              # IN
    int64_t[::1] counter,         # OUT (V,) scratch
    int64_t[::1] words,           # OUT the words of the batch, ascending
    int64_t[::1] first,           # OUT where each word's entries start, and the end
    int64_t[::1] document,        # OUT the document of each entry, from 0
    int64_t[::1] position,        # OUT the place of each entry, from indptr[start]
):
    """Transpose the batch by counting sort; return the number of distinct words."""
    cdef:
        Py_ssize_t n_features = counter.shape[0], n_words = 0, d, i, v
        int64_t total = 0, n, where
        index_t offset = indptr[start]
    with nogil:
        for v in range(n_features):
            counter[v] = 0
        for i in range(indptr[start], indptr[stop]):
            counter[indices[i]] += 1
        for v in range(n_features):
            n = counter[v]
            if n > 0:
                words[n_words] = v
                first[n_words] = total
                counter[v] = total
                total += n
                n_words += 1
        first[n_words] = total
        for d in range(start, stop):
            for i in range(indptr[d], indptr[d + 1]):
                where = counter[indices[i]]
                document[where] = d - start
                position[where] = i - offset
                counter[indices[i]] = where + 1
    return n_words


def digest_of_block(
    const index_t[::1] indices,   # IN  CSR column indices
    const index_t[::1] indptr,    # IN  CSR row pointers
    Py_ssize_t start,             # IN
    Py_ssize_t stop,              # IN
):
    """Return a hash of the words of a batch, which almost surely changes if the words change."""
    cdef:
        uint64_t odd = <uint64_t>0x9e3779b97f4a7c15ULL, total = 0, mixed
        Py_ssize_t d, i
    with nogil:
        for i in range(indptr[start], indptr[stop]):
            mixed = <uint64_t>indices[i] + odd * <uint64_t>i
            total += mixed * mixed
        for d in range(start, stop + 1):
            mixed = <uint64_t>indptr[d] - odd * <uint64_t>d
            total += mixed * mixed
    return total


def fit_documents(
    const floating[::1] data,       # IN  CSR counts
    const index_t[::1] indices,     # IN  CSR column indices
    const index_t[::1] indptr,      # IN  CSR row pointers
    Py_ssize_t start,               # IN
    Py_ssize_t stop,                # IN
    const int64_t[::1] order,       # IN  (n,) the documents, from 0, as threads take them
    weights,                        # IN  TopicWeights of their words
    const floating[::1] b,          # IN  (n,) inverse temperature of each document
    const floating[::1] alpha,      # IN  (K_pad,)
    e_step,                         # IN  EStep, with the fields of annealvi_documents
    floating[:, ::1] gamma,         # IN/OUT (n, K)
    work,                           # OUT buffers; t, active, n_active, ratio if wanted
    double[::1] log_normalizer,     # OUT (n,) sum_v n_v log norm_v, scales included; or None
    double[::1] energy,             # OUT (n,) sum_v n_v E[log theta + log beta]; or None
):
    """Do the local step of each document of a batch."""
    cdef:
        floating[:, ::1] t = work.t, raised = work.raised
        int32_t[:, ::1] active = work.active
        int32_t[::1] n_active = work.n_active
        floating[::1] ratio = work.ratio
        unsigned char[:, ::1] scratch = work.scratch
        const floating[:, ::1] values = weights.values
        floating usual, least_share = <floating><double>e_step.least_share
        double total = 0, edge, f_edge
        Py_ssize_t k
        documents_t step
    if stop == start:
        return
    step.rows = rows_of(data, indices, indptr, start, stop)
    step.weights = weights_of(weights, values)
    step.K = gamma.shape[1]
    step.order, step.b, step.alpha = &order[0], &b[0], &alpha[0]
    for k in range(step.K):
        total += alpha[k]
    usual = <floating>(1.001 * total / step.K)  # somewhat larger, because of rounding errors
    edge = <double>usual + <double>least_share
    kernels.real[1].digamma_array(1, &edge, &f_edge)
    step.sparsity = e_step.sparsity
    step.usual_alpha, step.edge = usual, f_edge - <floating>step.sparsity / edge
    step.eps, step.relaxation, step.tolerance = e_step.eps, e_step.relaxation, e_step.tolerance
    step.by_topic, step.max_iter = e_step.by_topic, e_step.max_iter
    step.least_share, step.want_statistics = e_step.least_share, e_step.want_statistics
    step.gamma, step.t, step.ratio = &gamma[0, 0], &t[0, 0], &ratio[0]
    step.active, step.n_active = &active[0, 0], &n_active[0]
    step.log_normalizer = NULL if log_normalizer is None else &log_normalizer[0]
    step.energy = NULL if energy is None else &energy[0]
    step.longest, step.room = work.longest, work.room
    step.scratch, step.scratch_width = <char *>&scratch[0, 0], scratch.shape[1]
    step.raised = &raised[0, 0]
    step.n_threads = shared_among(
        work.n_threads, indptr[stop] - indptr[start], step.K, FITTED)
    with nogil:
        kernels.real[sizeof(floating) == 8].fit_documents(&step)


def scratch_bytes(int K_pad, int64_t longest, int64_t room, int itemsize):
    """Bytes of scratch for each of the documents that a thread fits alternately."""
    return kernels.real[itemsize == 8].document_bytes(K_pad, longest, room)


def word_probabilities(
    const index_t[::1] indices,    # IN  CSR column indices
    const index_t[::1] indptr,     # IN  CSR row pointers
    Py_ssize_t start,              # IN
    Py_ssize_t stop,               # IN
    const double[:, ::1] theta,    # IN  (n, K_pad) E[theta], 0 in the padding
    const double[:, ::1] beta,     # IN  (V, K_pad) E[beta], likewise
    int64_t[::1] rows,             # OUT (longest document padded) scratch
    double[::1] norm,              # OUT (longest document padded + SCRATCH_SLACK) scratch
    double[::1] out,               # OUT (nnz,) for each entry, from indptr[start]
):
    """Compute sum_k E[theta_dk] E[beta_vk] for each entry of a batch."""
    cdef:
        Py_ssize_t d, j, at, n_words
        int K_pad = beta.shape[1]
        const void **row_of = <const void **>&rows[0]
    with nogil:
        for d in range(start, stop):
            at = indptr[d]
            n_words = indptr[d + 1] - at
            if n_words == 0:
                continue
            for j in range(n_words):
                row_of[j] = &beta[indices[at + j], 0]
            for j in range(n_words, n_words + WORD_BLOCK - 1):
                row_of[j] = row_of[0]
            kernels.real[1].mixture(n_words, K_pad, row_of, &theta[d - start, 0], &norm[0])
            memcpy(&out[at - indptr[start]], &norm[0], n_words * sizeof(double))
