"""The documents of a batch: their words, and their local steps, shared out among threads.

The arithmetic of one document is in the ``lda_*.h``.  Each document is fitted by one thread, so
that results are bit-identical for any number of threads; lda_topics.pyx does the same for words.

Matrices over the vocabulary are word-major: V rows of K numbers, padded to K_pad.
``start:stop`` are the rows of the CSR matrix that form the batch.
"""

from cython cimport floating
from cython.parallel cimport parallel, prange, threadid
from libc.math cimport log
from libc.stdint cimport int32_t, int64_t, uint64_t
from libc.string cimport memcpy

from annealvi._kernels._dispatch cimport (
    FITTED, NARROW, NEGLIGIBLE, STATE, WORD_BLOCK, kernels, shared_among)

ctypedef fused index_t:
    int32_t
    int64_t

SWEEP_BLOCK = WORD_BLOCK
TOGETHER_DOCUMENTS = TOGETHER
cdef enum:
    TOGETHER = 2  # documents that a thread fits in turn
    SLACK = 16  # lanes of the longest vector: the kernels read and write whole vectors


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
    """A number that is another one, all but surely, if the words of a batch have changed."""
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
    const floating[::1] data,        # IN  CSR counts
    const index_t[::1] indices,      # IN  CSR column indices
    const index_t[::1] indptr,       # IN  CSR row pointers
    Py_ssize_t start,                # IN
    Py_ssize_t stop,                 # IN
    const int64_t[::1] order,        # IN  (n,) the documents, from 0, as they are shared out
    const int32_t[::1] place,        # IN  (V,) rows of words in what follows, all from
    const floating[:, ::1] weights,  # IN  (rows, K_pad) refresh_weights, raised to b0
    const floating[::1] log_scale,   # IN  (rows,)
    const floating[::1] row_sums,    # IN  (rows,)
    const floating[:, ::1] logs,     # IN  (rows, K_pad), needed for energies and any b != b0
    floating b0,                     # IN
    const floating[::1] b,           # IN  (n,) inverse temperature of each document
    const floating[::1] alpha,       # IN  (K_pad,)
    floating eps,                    # IN  added to each norm; 0 to normalise instead
    floating sparsity,               # IN  see lda_rows.h
    floating relaxation,             # IN  of iterations after the first; 1 for none
    double tolerance,                # IN  on sum_k |change of gamma_dk|, relative: see by_topic
    bint by_topic,                   # IN  relative to K, or else to the document's tokens
    int max_iter,                    # IN
    floating least_share,            # IN  topics of smaller shares may be dropped; 0 for none
    bint want_statistics,            # IN  whether t and ratio are wanted
    bint want_bound,                 # IN  whether log_normalizer is wanted
    bint want_energy,                # IN  whether energy is wanted
    int n_threads,                   # IN
    floating[:, ::1] gamma,          # IN/OUT (n, K)
    floating[:, ::1] t,              # OUT (n, K_pad) unnormalised exp(b E log theta), packed
    int32_t[:, ::1] active,          # OUT (n, K_pad) the topics in t, if not all
    int32_t[::1] n_active,           # OUT (n,) their number, or K_pad if all are in t
    floating[::1] ratio,             # OUT (nnz,) count divided by normalizer
    double[::1] log_normalizer,      # OUT (n,) sum_v n_v log norm_v, scales included
    double[::1] energy,              # OUT (n,) sum_v n_v E[log theta + log beta], likewise
    floating[:, ::1] scratch,        # OUT (TOGETHER n_threads, ...) see scratch_size
    int64_t[:, ::1] rows,            # OUT (TOGETHER n_threads, ...) see pointers_size
    floating[:, ::1] packed,         # OUT (TOGETHER n_threads, room), if topics are dropped
    floating[:, ::1] columns,        # OUT (TOGETHER n_threads, ...) see columns_size
    floating[:, ::1] raised,         # OUT (TOGETHER n_threads, longest document * K_pad), if any
                                     #      b != b0
):
    """Do the local step of each document of a batch.

    Each thread fits TOGETHER documents in turn, see lda_document.h.
    """
    cdef:
        Py_ssize_t n = stop - start, i, which, slot, d, j, n_words, n_padded, at
        Py_ssize_t n_pairs = (n + TOGETHER - 1) // TOGETHER, origin = indptr[start]
        int K = gamma.shape[1], K_pad = weights.shape[1], k
        Py_ssize_t longest = (rows.shape[1] - K_pad - 1 - STATE // 8) // 3, stride = longest + SLACK
        int64_t room = packed.shape[1], room_d
        bint finish = want_statistics or want_bound or want_energy
        floating *own = NULL
        floating *gamma_d = NULL
        floating *t_d = NULL
        floating *s = NULL
        floating *counts = NULL
        floating *norm = NULL
        floating *ratio_d = NULL
        floating *raised_d = NULL
        floating *reference = NULL
        floating *own_sums = NULL
        floating *sums_d = NULL
        floating *own_alpha = NULL
        int32_t *active_d = NULL
        int32_t *chosen = NULL
        int32_t *n_active_d = NULL
        double *totals = NULL
        const floating **row_of = NULL
        const floating **log_of = NULL
        const floating **own_rows = NULL
        double scale, enough, tokens, edge, f_edge
        floating usual
        double total = 0

    if n == 0:
        return
    for k in range(K):
        total += alpha[k]
    usual = <floating>(1.001 * total / K)  # and some more, for rounding errors
    edge = <double>usual + <double>least_share
    kernels.f64.digamma_array(1, &edge, &f_edge)
    f_edge -= sparsity / edge
    n_threads = shared_among(n_threads, indptr[stop] - origin, K, FITTED)
    with nogil, parallel(num_threads=n_threads):
        for i in prange(n_pairs, schedule="dynamic", chunksize=2):
            for which in range(min(TOGETHER, n - TOGETHER * i)):
                slot = TOGETHER * threadid() + which
                own = &scratch[slot, 0]
                gamma_d = own
                s = own + K_pad
                own_alpha = own + 3 * K_pad
                counts = own + 4 * K_pad
                norm = counts + stride
                ratio_d = norm + stride
                reference = ratio_d + stride
                totals = <double *>(reference + SLACK)
                own_sums = reference + SLACK + 2 * K_pad
                row_of = <const floating **>&rows[slot, STATE // 8]
                log_of = row_of + longest
                own_rows = log_of + longest
                chosen = <int32_t *>(own_rows + longest)
                d = order[TOGETHER * i + which]
                at = indptr[start + d]
                n_words = indptr[start + d + 1] - at
                n_padded = (n_words + WORD_BLOCK - 1) // WORD_BLOCK * WORD_BLOCK
                tokens = 0
                for j in range(n_words):
                    counts[j] = data[at + j]
                    tokens = tokens + counts[j]
                    row_of[j] = &weights[place[indices[at + j]], 0]
                    own_sums[j] = row_sums[place[indices[at + j]]]
                sums_d = own_sums
                if want_energy or b[d] != b0:
                    for j in range(n_words):
                        log_of[j] = &logs[place[indices[at + j]], 0]
                if b[d] != b0:
                    sums_d = NULL
                    raised_d = &raised[slot, 0]
                    for j in range(n_words):
                        if floating is float:
                            kernels.f32.raise_row(
                                K_pad, log_of[j], b[d], eps == 0, raised_d + j * K_pad)
                        else:
                            kernels.f64.raise_row(
                                K_pad, log_of[j], b[d], eps == 0, raised_d + j * K_pad)
                        row_of[j] = raised_d + j * K_pad
                for j in range(n_words, n_words + SLACK):
                    counts[j] = 0
                    own_sums[j] = 1
                for j in range(n_words, n_padded):
                    row_of[j] = row_of[0]
                    log_of[j] = log_of[0]
                enough = tolerance * (K if by_topic else tokens)
                room_d = 0  # if alpha is large, no t_k is small enough for its topic to be dropped
                if least_share > 0 and (
                        b[d] * (f_edge - log(tokens + 1)) < log(NEGLIGIBLE * least_share)):
                    room_d = room
                memcpy(gamma_d, &gamma[d, 0], K * sizeof(floating))
                for k in range(K, K_pad):
                    gamma_d[k] = alpha[K]
                if want_statistics:
                    t_d = &t[d, 0]
                    active_d = &active[d, 0]
                    n_active_d = &n_active[d]
                else:
                    t_d = own + 2 * K_pad
                    active_d = chosen + K_pad
                    n_active_d = chosen + 2 * K_pad
                if floating is float:
                    kernels.f32.begin_document(
                        &rows[slot, 0], n_words, K, K_pad, row_of, counts, sums_d, &alpha[0], b[d],
                        eps, sparsity, relaxation, usual, least_share, enough, max_iter, finish,
                        room_d, gamma_d, t_d, active_d, n_active_d, s, norm, ratio_d, reference,
                        totals, own_alpha, own_rows, chosen, &packed[slot, 0], &columns[slot, 0])
                else:
                    kernels.f64.begin_document(
                        &rows[slot, 0], n_words, K, K_pad, row_of, counts, sums_d, &alpha[0], b[d],
                        eps, sparsity, relaxation, usual, least_share, enough, max_iter, finish,
                        room_d, gamma_d, t_d, active_d, n_active_d, s, norm, ratio_d, reference,
                        totals, own_alpha, own_rows, chosen, &packed[slot, 0], &columns[slot, 0])
            slot = TOGETHER * threadid()
            if floating is float:
                kernels.f32.fit_documents(
                    <int>min(TOGETHER, n - TOGETHER * i), &rows[slot, 0], &rows[slot + 1, 0])
            else:
                kernels.f64.fit_documents(
                    <int>min(TOGETHER, n - TOGETHER * i), &rows[slot, 0], &rows[slot + 1, 0])
            for which in range(min(TOGETHER, n - TOGETHER * i)):
                slot = TOGETHER * threadid() + which
                d = order[TOGETHER * i + which]
                at = indptr[start + d]
                n_words = indptr[start + d + 1] - at
                own = &scratch[slot, 0]
                gamma_d = own
                s = own + K_pad
                own_alpha = own + 3 * K_pad
                counts = own + 4 * K_pad
                norm = counts + stride
                ratio_d = norm + stride
                reference = ratio_d + stride
                row_of = <const floating **>&rows[slot, STATE // 8]
                log_of = row_of + longest
                chosen = <int32_t *>(log_of + 2 * longest)
                t_d = &t[d, 0] if want_statistics else own + 2 * K_pad
                active_d = &active[d, 0] if want_statistics else chosen + K_pad
                n_active_d = &n_active[d] if want_statistics else chosen + 2 * K_pad
                scale = 0
                if want_bound or want_energy:
                    for j in range(n_words):
                        scale = scale + (
                            <double>counts[j] * <double>log_scale[place[indices[at + j]]])
                if want_energy:
                    if n_active_d[0] < K_pad:
                        if floating is float:
                            kernels.f32.spread(
                                n_active_d[0], active_d, t_d, K_pad, NULL, own_alpha)
                        else:
                            kernels.f64.spread(
                                n_active_d[0], active_d, t_d, K_pad, NULL, own_alpha)
                        t_d = own_alpha
                    if floating is float:
                        energy[d] = kernels.f32.energy(
                            n_words, K, K_pad, row_of, log_of, gamma_d, t_d, ratio_d, s) + scale
                    else:
                        energy[d] = kernels.f64.energy(
                            n_words, K, K_pad, row_of, log_of, gamma_d, t_d, ratio_d, s) + scale
                if want_bound:
                    if floating is float:
                        log_normalizer[d] = kernels.f32.log_normalizer(
                            n_words, K, counts, gamma_d, reference[0], b[d], sparsity,
                            norm) + b[d] * scale
                    else:
                        log_normalizer[d] = kernels.f64.log_normalizer(
                            n_words, K, counts, gamma_d, reference[0], b[d], sparsity,
                            norm) + b[d] * scale
                memcpy(&gamma[d, 0], gamma_d, K * sizeof(floating))
                if want_statistics and n_words > 0:
                    memcpy(&ratio[at - origin], ratio_d, n_words * sizeof(floating))


def scratch_size(K_pad, longest):
    """Size of the scratch that fit_documents needs for each thread, in numbers."""
    return 6 * K_pad + 4 * (longest + SLACK) + SLACK


def columns_size(longest):
    """Size of the columns of a document with few topics, for each thread, in numbers."""
    return NARROW * (longest + SLACK)


def pointers_size(K_pad, longest):
    """Number of int64 for pointers and indices that fit_documents needs for each thread."""
    return STATE // 8 + 3 * longest + K_pad + 1


def word_probabilities(
    const index_t[::1] indices,    # IN  CSR column indices
    const index_t[::1] indptr,     # IN  CSR row pointers
    Py_ssize_t start,              # IN
    Py_ssize_t stop,               # IN
    const double[:, ::1] theta,    # IN  (n, K_pad) E[theta], 0 in the padding
    const double[:, ::1] beta,     # IN  (V, K_pad) E[beta], likewise
    int64_t[::1] rows,             # OUT (longest document padded) scratch
    double[::1] norm,              # OUT (longest document padded + SLACK) scratch
    double[::1] out,               # OUT (nnz,) for each entry, from indptr[start]
):
    """sum_k E[theta_dk] E[beta_vk] of the entries of a batch."""
    cdef:
        Py_ssize_t d, j, at, n_words
        int K_pad = beta.shape[1]
        const double **row_of = <const double **>&rows[0]
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
            kernels.f64.mixture(n_words, K_pad, row_of, &theta[d - start, 0], &norm[0])
            memcpy(&out[at - indptr[start]], &norm[0], n_words * sizeof(double))


SCRATCH_SLACK = SLACK
