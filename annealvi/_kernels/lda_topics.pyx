"""The words of a batch: topic weights, statistics and the step of lambda, shared out among threads.

The arithmetic of one word is in lda_words.h.  Statistics are summed word by word: each word is
summed by one thread, over its documents in their order.  So every result is bit-identical for
any number of threads, and threads need no copies of the statistics.

Matrices over the vocabulary are word-major: V rows of K numbers, padded to K_pad.
"""

from cython cimport floating
from cython.parallel cimport prange, threadid
from libc.stdint cimport int32_t, int64_t

from annealvi._kernels._dispatch cimport MOVED, WEIGHTED, kernels, shared_among

cdef enum:
    # Words in a block: the topics' sums are added block by block, in this fixed order.
    VOCABULARY_BLOCK = 64
    ADDED = 64  # topics whose sums one thread adds at a time
    SUMMED = 4  # entries whose statistics take as long as the step of a word
    # If logarithms of topic sums differ by more than this, they are a WIDE_MEAN (lda_words.h):
    # in float32 they could be clamped, at 40.
    WIDE = 30


def refresh_weights(
    const int64_t[::1] words,        # IN  the words whose rows are needed
    Py_ssize_t n_words,              # IN
    const floating[:, ::1] lam,      # IN  (V, K_pad)
    const floating[:, :] eta,        # IN  (V, K), see step_topics
    const double[::1] decay,         # IN  (V,) likewise
    double now,                      # IN  likewise
    const floating[::1] log_sums,    # IN  (K_pad,) psi(sum_v lam), or the logarithm for the mean;
                                     #     huge in the padding
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
    floating[::1] row_sums,          # IN/OUT (rows,) the sums of the rows of weights
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
    n_threads = shared_among(n_threads, n_new, K, WEIGHTED)
    for i in prange(n_new, nogil=True, num_threads=n_threads, schedule="dynamic", chunksize=16):
        v = new[i]
        row = n_rows[0] + i
        logs_v = NULL
        if logs.shape[0] > 0:
            logs_v = &logs[row, 0]
        if floating is float:
            log_scale[row] = kernels.f32.topic_weights(
                kind, K, K_pad, &lam[v, 0], &eta[v, 0], <float>(now / decay[v]), &log_sums[0],
                b, normalise, &scratch[threadid(), 0], &weights[row, 0], &row_sums[row], logs_v)
        else:
            log_scale[row] = kernels.f64.topic_weights(
                kind, K, K_pad, &lam[v, 0], &eta[v, 0], <double>(now / decay[v]), &log_sums[0],
                b, normalise, &scratch[threadid(), 0], &weights[row, 0], &row_sums[row], logs_v)
    n_rows[0] += n_new


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
    n_threads = shared_among(n_threads, n_words + first[n_words] // SUMMED, K_pad, MOVED)
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
    n_threads = shared_among(n_threads, n_words, K, MOVED)
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
    add_blocks(partial, n_threads, sums)


def accumulate_and_step(
    const int64_t[::1] words,        # IN  the rows to update, ascending
    floating[:, ::1] lam,            # IN/OUT (V, K_pad)
    const floating[:, :] eta,        # IN  (V, K), as for step_topics, and so the next two
    double[::1] decay,               # IN/OUT (V,)
    double now,                      # IN
    const int64_t[::1] first,        # IN  as for accumulate_statistics, and so the next ones
    const int64_t[::1] document,     # IN
    const int64_t[::1] position,     # IN
    const floating[::1] ratio,       # IN
    const floating[:, ::1] t,        # IN
    const int32_t[:, ::1] active,    # IN
    const int32_t[::1] n_active,     # IN
    const floating[::1] b,           # IN
    floating b0,                     # IN
    const int32_t[::1] place,        # IN
    const floating[:, ::1] weights,  # IN
    const floating[:, ::1] logs,     # IN
    bint normalise,                  # IN
    const int32_t[::1] row_of,       # IN  (V,) the number of each word in the batch, or -1
    floating amount,                 # IN  as for step_topics, and so the next two
    floating floor,                  # IN
    bint whole,                      # IN
    int n_threads,                   # IN
    double[:, ::1] scratch,          # OUT (n_threads, K_pad)
    floating[:, ::1] rows,           # OUT (n_threads, 2 K_pad) scratch
    double[:, ::1] partial,          # OUT (blocks, K) scratch, see n_blocks
    double[::1] sums,                # OUT (K,) as for step_topics
):
    """Sum the statistics of one batch and step its rows, one row at a time.

    The same bits as accumulate_statistics and step_topics, but the statistics of a word never
    leave the cache.
    """
    cdef:
        Py_ssize_t n_words = words.shape[0], n_parts = partial.shape[0], block, i, v, k, e, end
        int K = sums.shape[0], K_pad = lam.shape[1]
        const floating *logs_v
        const floating *s_row
        floating *own
        double factor
    n_threads = shared_among(n_threads, n_words + position.shape[0] // SUMMED, K, MOVED)
    for block in prange(
        n_parts, nogil=True, num_threads=n_threads, schedule="dynamic", chunksize=1
    ):
        own = &rows[threadid(), 0]
        for k in range(K):
            partial[block, k] = 0
        for i in range(block * VOCABULARY_BLOCK, min((block + 1) * VOCABULARY_BLOCK, n_words)):
            v = words[i]
            s_row = NULL
            if row_of[v] >= 0:
                e = first[row_of[v]]
                end = first[row_of[v] + 1]
                logs_v = NULL
                if logs.shape[0] > 0:
                    logs_v = &logs[place[v], 0]
                s_row = own
                if floating is float:
                    kernels.f32.add_statistics(
                        end - e, K_pad, &document[e], &position[e], &ratio[0], &t[0, 0],
                        &active[0, 0], &n_active[0], &b[0], b0, &weights[place[v], 0], logs_v,
                        normalise, 0, &scratch[threadid(), 0], own + K_pad, own)
                else:
                    kernels.f64.add_statistics(
                        end - e, K_pad, &document[e], &position[e], &ratio[0], &t[0, 0],
                        &active[0, 0], &n_active[0], &b[0], b0, &weights[place[v], 0], logs_v,
                        normalise, 0, &scratch[threadid(), 0], own + K_pad, own)
            factor = now / decay[v]
            if floating is float:
                kernels.f32.step_row(K, <float>factor, amount, floor, whole, &eta[v, 0], s_row,
                                     &lam[v, 0], &partial[block, 0])
            else:
                kernels.f64.step_row(K, factor, amount, floor, whole, &eta[v, 0], s_row,
                                     &lam[v, 0], &partial[block, 0])
            decay[v] = now
    add_blocks(partial, n_threads, sums)


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
    n_threads = shared_among(n_threads, n_features, K, MOVED)
    for block in prange(n_blocks, nogil=True, num_threads=n_threads, schedule="static"):
        for k in range(K):
            partial[block, k] = 0
        for v in range(block * VOCABULARY_BLOCK, min((block + 1) * VOCABULARY_BLOCK, n_features)):
            for k in range(K):
                partial[block, k] += lam[v, k]
    add_blocks(partial, n_threads, sums)


cdef void add_blocks(const double[:, ::1] partial, int n_threads, double[::1] sums):
    """Sum the blocks in their order, for some topics at a time."""
    cdef Py_ssize_t block, k, part, K = sums.shape[0], n_parts = (K + ADDED - 1) // ADDED
    n_threads = shared_among(n_threads, partial.shape[0], K, MOVED)
    for part in prange(n_parts, nogil=True, num_threads=n_threads, schedule="static"):
        for k in range(part * ADDED, min((part + 1) * ADDED, K)):
            sums[k] = 0
        for block in range(partial.shape[0]):
            for k in range(part * ADDED, min((part + 1) * ADDED, K)):
                sums[k] += partial[block, k]


def n_blocks(n_words):
    """Number of rows of ``partial`` that the sums over words need."""
    return (n_words + VOCABULARY_BLOCK - 1) // VOCABULARY_BLOCK
