"""LDA over a batch: the work is distributed over threads, and sums have a fixed order.

The arithmetic of one document and of one word is in the ``lda_*.h``.  This module distributes
documents and words over threads.  Statistics are summed word by word: each word is summed by
one thread, over its documents in their order.  So every result is bit-identical for any
number of threads, and threads need no copies of the statistics.

Matrices over the vocabulary are word-major: V rows of K numbers, padded to K_pad.
``start:stop`` are the rows of the CSR matrix that form the batch.
"""

from cython cimport floating
from cython.parallel cimport parallel, prange, threadid
from libc.math cimport log
from libc.stdint cimport int32_t, int64_t
from libc.string cimport memcpy

from annealvi._kernels._dispatch cimport NARROW, NEGLIGIBLE, WORD_BLOCK, kernels

ctypedef fused index_t:
    int32_t
    int64_t

SWEEP_BLOCK = WORD_BLOCK
# Words in a block: the topics' sums are added block by block, in this fixed order.
cdef enum:
    VOCABULARY_BLOCK = 64
    # With fewer numbers than this (words or entries times topics) one thread does all: a local
    # step takes 2 to 3 ns for each, and waking a second thread takes 5 us to some ms, depending
    # on whether a processor is free.
    LEAST_SHARED = 1 << 18
    SLACK = 16  # lanes of the longest vector: the kernels read and write whole vectors
    # If logarithms of topic sums differ by more than this, they are a WIDE_MEAN (lda_words.h):
    # in float32 they could be clamped, at 40.
    WIDE = 30


cdef inline int shared_among(int n_threads, Py_ssize_t n, Py_ssize_t K) noexcept nogil:
    """The number of threads for n rows of K numbers."""
    return n_threads if n * K >= LEAST_SHARED else 1


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


def refresh_weights(
    const int64_t[::1] words,        # IN  the words whose rows are needed
    Py_ssize_t n_words,              # IN
    const floating[:, ::1] lam,      # IN  (V, K_pad)
    const floating[:, :] eta,        # IN  (V, K), see step_topics
    const double[::1] decay,         # IN  (V,) likewise
    double now,                      # IN  likewise
    const floating[::1] log_sums,    # IN  (K_pad,) psi(sum_v lam), or the logarithm for the mean
    int K,                           # IN
    bint mean,                       # IN  whether log E beta replaces E log beta below
    floating b,                      # IN  inverse temperature
    bint normalise,                  # IN  relative to each row's largest E log beta
    int n_threads,                   # IN
    floating[:, ::1] scratch,        # OUT (n_threads, 2 K_pad)
    int64_t[::1] new,                # OUT (n_words,) scratch
    int32_t[::1] place,              # IN/OUT (V,) the row of each word in what follows, or -1
    int64_t[::1] n_rows,             # IN/OUT (1,) number of rows in use
    floating[:, ::1] weights,        # IN/OUT (rows, K_pad) exp(b (E log beta - log_scale))
    floating[::1] log_scale,         # IN/OUT (rows,) about the row's largest, or 0
    floating[:, ::1] logs,           # IN/OUT (rows, K_pad) E log beta - log_scale, or (0, 0)
):
    """Compute the rows of topic weights of those words that have none."""
    cdef:
        Py_ssize_t i, v, n_new = 0, row
        int K_pad = lam.shape[1]
        int k, kind = mean
        floating least = log_sums[0], most = log_sums[0]
        floating *logs_v = NULL
    for k in range(K):
        least, most = min(least, log_sums[k]), max(most, log_sums[k])
    if mean and normalise and most - least > WIDE:
        kind = 2
    for i in range(n_words):
        if place[words[i]] < 0:
            new[n_new] = words[i]
            place[words[i]] = <int32_t>(n_rows[0] + n_new)
            n_new += 1
    n_threads = shared_among(n_threads, n_new, K)
    for i in prange(n_new, nogil=True, num_threads=n_threads, schedule="static"):
        v = new[i]
        row = n_rows[0] + i
        logs_v = NULL
        if logs.shape[0] > 0:
            logs_v = &logs[row, 0]
        if floating is float:
            log_scale[row] = kernels.f32.topic_weights(
                kind, K, K_pad, &lam[v, 0], &eta[v, 0], <float>(now / decay[v]), &log_sums[0],
                b, normalise, &scratch[threadid(), 0], &weights[row, 0], logs_v)
        else:
            log_scale[row] = kernels.f64.topic_weights(
                kind, K, K_pad, &lam[v, 0], &eta[v, 0], <double>(now / decay[v]), &log_sums[0],
                b, normalise, &scratch[threadid(), 0], &weights[row, 0], logs_v)
    n_rows[0] += n_new


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
    const floating[:, ::1] logs,     # IN  (rows, K_pad), needed for energies and any b != b0
    floating b0,                     # IN
    const floating[::1] b,           # IN  (n,) inverse temperature of each document
    const floating[::1] alpha,       # IN  (K_pad,)
    floating eps,                    # IN  added to each norm; 0 to normalise instead
    floating sparsity,               # IN  see lda_rows.h
    double tolerance,                # IN  on sum_k |change of gamma_dk|, relative: see by_topic
    bint by_topic,                   # IN  relative to K, or else to the document's tokens
    int max_iter,                    # IN
    bint prune,                      # IN  whether negligible topics may be dropped
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
    floating[:, ::1] scratch,        # OUT (n_threads, ...) see scratch_size
    int64_t[:, ::1] rows,            # OUT (n_threads, ...) see pointers_size
    floating[:, ::1] packed,         # OUT (n_threads, room), if negligible topics are dropped
    floating[:, ::1] columns,        # OUT (n_threads, ...) see columns_size
    floating[:, ::1] raised,         # OUT (n_threads, longest document * K_pad), if any b != b0
):
    """Do the local step of each document of a batch."""
    cdef:
        Py_ssize_t n = stop - start, i, d, j, n_words, n_padded, origin = indptr[start], at
        int K = gamma.shape[1], K_pad = weights.shape[1], k
        Py_ssize_t longest = (rows.shape[1] - K_pad - 1) // 3, stride = longest + SLACK
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
        floating *own_alpha = NULL
        floating *own_packed = NULL
        floating *own_columns = NULL
        int32_t *active_d = NULL
        int32_t *chosen = NULL
        int32_t *n_active_d = NULL
        double *totals = NULL
        const floating **row_of = NULL
        const floating **log_of = NULL
        const floating **own_rows = NULL
        double scale, enough, tokens, least = alpha[0], f_least

    if n == 0:
        return
    for k in range(K):
        least = min(least, alpha[k])
    kernels.f64.digamma(1, &least, &f_least)
    f_least -= sparsity / least
    n_threads = shared_among(n_threads, indptr[stop] - origin, K)
    with nogil, parallel(num_threads=n_threads):
        own = &scratch[threadid(), 0]
        gamma_d = own
        s = own + K_pad
        own_alpha = own + 3 * K_pad
        counts = own + 4 * K_pad
        norm = counts + stride
        ratio_d = norm + stride
        reference = ratio_d + stride
        totals = <double *>(reference + SLACK)
        row_of = <const floating **>&rows[threadid(), 0]
        log_of = row_of + longest
        own_rows = log_of + longest
        chosen = <int32_t *>(own_rows + longest)
        own_packed = &packed[threadid(), 0]
        own_columns = &columns[threadid(), 0]
        for i in prange(n, schedule="dynamic", chunksize=4):
            d = order[i]
            at = indptr[start + d]
            n_words = indptr[start + d + 1] - at
            n_padded = (n_words + WORD_BLOCK - 1) // WORD_BLOCK * WORD_BLOCK
            scale = 0
            tokens = 0
            for j in range(n_words):
                counts[j] = data[at + j]
                tokens = tokens + counts[j]
                row_of[j] = &weights[place[indices[at + j]], 0]
            if want_energy or b[d] != b0:
                for j in range(n_words):
                    log_of[j] = &logs[place[indices[at + j]], 0]
            if want_bound or want_energy:
                for j in range(n_words):
                    scale = scale + (
                        <double>counts[j] * <double>log_scale[place[indices[at + j]]])
            if b[d] != b0:
                raised_d = &raised[threadid(), 0]
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
            for j in range(n_words, n_padded):
                row_of[j] = row_of[0]
                log_of[j] = log_of[0]
            enough = tolerance * (K if by_topic else tokens)
            room_d = 0  # if alpha is large, no t_k is small enough to be dropped
            if prune and b[d] * (f_least - log(tokens + 1)) < log(NEGLIGIBLE):
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
                kernels.f32.fit_document(
                    n_words, K, K_pad, row_of, counts, &alpha[0], b[d], eps, sparsity, enough,
                    max_iter, finish, room_d, gamma_d, t_d, active_d, n_active_d, s, norm, ratio_d,
                    reference, totals, own_alpha, own_rows, chosen, own_packed, own_columns)
                if want_energy:
                    if n_active_d[0] < K_pad:
                        kernels.f32.spread(n_active_d[0], active_d, t_d, K_pad, NULL, own_alpha)
                        t_d = own_alpha
                    energy[d] = kernels.f32.energy(
                        n_words, K, K_pad, row_of, log_of, gamma_d, t_d, ratio_d, s) + scale
                if want_bound:
                    log_normalizer[d] = kernels.f32.log_normalizer(
                        n_words, K, counts, gamma_d, reference[0], b[d], sparsity,
                        norm) + b[d] * scale
            else:
                kernels.f64.fit_document(
                    n_words, K, K_pad, row_of, counts, &alpha[0], b[d], eps, sparsity, enough,
                    max_iter, finish, room_d, gamma_d, t_d, active_d, n_active_d, s, norm, ratio_d,
                    reference, totals, own_alpha, own_rows, chosen, own_packed, own_columns)
                if want_energy:
                    if n_active_d[0] < K_pad:
                        kernels.f64.spread(n_active_d[0], active_d, t_d, K_pad, NULL, own_alpha)
                        t_d = own_alpha
                    energy[d] = kernels.f64.energy(
                        n_words, K, K_pad, row_of, log_of, gamma_d, t_d, ratio_d, s) + scale
                if want_bound:
                    log_normalizer[d] = kernels.f64.log_normalizer(
                        n_words, K, counts, gamma_d, reference[0], b[d], sparsity,
                        norm) + b[d] * scale
            memcpy(&gamma[d, 0], gamma_d, K * sizeof(floating))
            if want_statistics and n_words > 0:
                memcpy(&ratio[at - origin], ratio_d, n_words * sizeof(floating))


def scratch_size(K_pad, longest):
    """Size of the scratch that fit_documents needs for each thread, in numbers."""
    return 4 * K_pad + 3 * (longest + SLACK) + SLACK + 2 * K_pad


def columns_size(longest):
    """Size of the columns of a document with few topics, for each thread, in numbers."""
    return NARROW * (longest + SLACK)


def pointers_size(K_pad, longest):
    """Number of int64 for pointers and indices that fit_documents needs for each thread."""
    return 3 * longest + K_pad + 1


def accumulate_statistics(
    const int64_t[::1] words,        # IN  from index_words
    const int64_t[::1] first,        # IN
    const int64_t[::1] document,     # IN
    const int64_t[::1] position,     # IN
    Py_ssize_t n_words,              # IN
    const floating[::1] ratio,       # IN  from fit_documents
    const floating[:, ::1] t,        # IN
    const int32_t[:, ::1] active,    # IN
    const int32_t[::1] n_active,     # IN
    const floating[::1] b,           # IN  (n,) inverse temperature of each document
    floating b0,                     # IN
    const int32_t[::1] place,        # IN  (V,) as for fit_documents
    const floating[:, ::1] weights,  # IN  (rows, K_pad)
    const floating[:, ::1] logs,     # IN  (rows, K_pad), needed for any b != b0
    bint normalise,                  # IN  as given to refresh_weights
    int n_threads,                   # IN
    const floating[::1] log_scale,   # IN  (rows,)
    int32_t[::1] row_of,             # IN/OUT (V,) the row of each word in statistics, or -1
    int64_t[::1] n_rows,             # IN/OUT (1,) number of rows in use
    floating[:, ::1] statistics,     # IN/OUT (rows, K_pad) sum_d b_d n_dv phi_dvk
    double[::1] word_energy,         # OUT (V,) sum_dk n_dv phi_dvk E log beta_kv if all b are
                                     #      b0, or (0,)
    double[:, ::1] scratch,          # OUT (n_threads, K_pad)
    floating[:, ::1] raised,         # OUT (n_threads, K_pad)
):
    """Add a batch's expected counts to the statistics, word by word."""
    cdef:
        Py_ssize_t i, v, e, row, to, n_before = n_rows[0]
        int K_pad = weights.shape[1]
        const floating *logs_v = NULL
        double dot, total
    for i in range(n_words):
        if row_of[words[i]] < 0:
            row_of[words[i]] = <int32_t>n_rows[0]
            n_rows[0] += 1
    n_threads = shared_among(n_threads, first[n_words], K_pad)
    for i in prange(n_words, nogil=True, num_threads=n_threads, schedule="dynamic", chunksize=16):
        v = words[i]
        row = place[v]
        to = row_of[v]
        e = first[i]
        logs_v = NULL
        if logs.shape[0] > 0:
            logs_v = &logs[row, 0]
        if floating is float:
            kernels.f32.add_statistics(
                first[i + 1] - e, K_pad, &document[e], &position[e], &ratio[0], &t[0, 0],
                &active[0, 0], &n_active[0], &b[0], b0, &weights[row, 0], logs_v, normalise,
                to < n_before, &scratch[threadid(), 0], &raised[threadid(), 0], &statistics[to, 0])
        else:
            kernels.f64.add_statistics(
                first[i + 1] - e, K_pad, &document[e], &position[e], &ratio[0], &t[0, 0],
                &active[0, 0], &n_active[0], &b[0], b0, &weights[row, 0], logs_v, normalise,
                to < n_before, &scratch[threadid(), 0], &raised[threadid(), 0], &statistics[to, 0])
        if word_energy.shape[0] > 0:  # done here while the rows are in the cache
            total = 0
            if floating is float:
                dot = kernels.f32.log_dot(K_pad, &statistics[to, 0], &weights[row, 0], &total)
            else:
                dot = kernels.f64.log_dot(K_pad, &statistics[to, 0], &weights[row, 0], &total)
            word_energy[v] = (dot / <double>b0 + total * <double>log_scale[row]) / <double>b0


def step_topics(
    const int64_t[::1] words,           # IN  the rows to update, ascending
    floating[:, ::1] lam,               # IN/OUT (V, K_pad)
    const floating[:, :] eta,           # IN  (V, K), rows contiguous, any stride between them
    double[::1] decay,                  # IN/OUT (V,) value of `now` at the row's last update
    double now,                         # IN  the product of 1 - rho over all steps
    const floating[:, ::1] statistics,  # IN  (rows, K_pad)
    const int32_t[::1] row_of,          # IN  (V,) rows of statistics; words of -1 count as 0
    floating amount,                    # IN  factor of the statistics
    floating floor,                     # IN
    bint whole,                         # IN  whether sums are of lam, or else of the statistics
    int n_threads,                      # IN
    double[:, ::1] partial,             # OUT (blocks, K) scratch, see n_blocks
    double[::1] sums,                   # OUT (K,) sum over the rows that are updated
):
    """lam_v = max(eta_v + now / decay_v (lam_v - eta_v) + amount statistics_v, floor).

    A step without statistics only moves a row towards the prior, lam - eta <- (1 - rho)
    (lam - eta).  So all the steps that a row has missed can be applied at once when it is
    next needed.
    """
    cdef:
        Py_ssize_t n_words = words.shape[0], n_parts = partial.shape[0], block, i, v, k
        int K = sums.shape[0]
        const floating *s_row
        double factor
    n_threads = shared_among(n_threads, n_words, K)
    for block in prange(n_parts, nogil=True, num_threads=n_threads, schedule="static"):
        for k in range(K):
            partial[block, k] = 0
        for i in range(block * VOCABULARY_BLOCK, min((block + 1) * VOCABULARY_BLOCK, n_words)):
            v = words[i]
            s_row = NULL
            if row_of[v] >= 0:
                s_row = &statistics[row_of[v], 0]
            factor = now / decay[v]
            if floating is float:
                kernels.f32.step_row(K, <float>factor, amount, floor, whole, &eta[v, 0], s_row,
                                     &lam[v, 0], &partial[block, 0])
            else:
                kernels.f64.step_row(K, factor, amount, floor, whole, &eta[v, 0], s_row,
                                     &lam[v, 0], &partial[block, 0])
            decay[v] = now
    add_blocks(partial, sums)


def sum_topics(
    const floating[:, ::1] lam,  # IN  (V, K_pad)
    int n_threads,               # IN
    double[:, ::1] partial,      # OUT (blocks, K) scratch
    double[::1] sums,            # OUT (K,) sum_v lam, in the order of step_topics
):
    """Compute only the sums of the topics."""
    cdef:
        Py_ssize_t n_features = lam.shape[0], n_blocks = partial.shape[0], block, v, k
        Py_ssize_t K = sums.shape[0]
    n_threads = shared_among(n_threads, n_features, K)
    for block in prange(n_blocks, nogil=True, num_threads=n_threads, schedule="static"):
        for k in range(K):
            partial[block, k] = 0
        for v in range(block * VOCABULARY_BLOCK, min((block + 1) * VOCABULARY_BLOCK, n_features)):
            for k in range(K):
                partial[block, k] += lam[v, k]
    add_blocks(partial, sums)


cdef void add_blocks(const double[:, ::1] partial, double[::1] sums) noexcept nogil:
    cdef Py_ssize_t block, k
    for k in range(sums.shape[0]):
        sums[k] = 0
    for block in range(partial.shape[0]):
        for k in range(sums.shape[0]):
            sums[k] += partial[block, k]


def n_blocks(n_words):
    """Number of rows of ``partial`` that the sums over words need."""
    return (n_words + VOCABULARY_BLOCK - 1) // VOCABULARY_BLOCK


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
