"""The words of a batch: their weights in topics, their statistics, and the step of lambda.

The loops are in lda_words.h.  The statistics of each word are summed by one thread, over the word's
documents in their order.  So every result is bit-identical for any number of threads, and threads
need no copies of the statistics.

Matrices over the vocabulary have V rows of K numbers, padded to K_pad.  The rows of eta, (V, K),
are contiguous, with any stride between them.
"""

from cython cimport floating
from cython.parallel cimport prange
from libc.stdint cimport int32_t, int64_t

from annealvi._kernels._dispatch cimport (
    MOVED, VOCABULARY_BLOCK, WEIGHTED, block_t, kernels, refresh_t, shared_among, step_t, sums_t,
    weights_of)

cdef enum:
    ADDED = 64  # number of topics whose sums one thread adds together
    SUMMED = 4  # the statistics of this many entries take as long as the step of a word
    # If logarithms of topic sums differ by more than this, they are a WIDE_MEAN (lda_words.h),
    # because in float32 they could be clamped, at 40.
    WIDE = 30


def refresh_weights(
    const int64_t[::1] words,       # IN  the words whose rows are needed
    const floating[:, ::1] lam,     # IN  (V, K_pad)
    const floating[:, :] eta,       # IN  (V, K), see step_topics
    const double[::1] decay,        # IN  (V,) likewise
    double now,                     # IN  likewise
    const floating[::1] log_sums,   # IN  (K_pad,) psi(sum_v lam), or the logarithm for the mean;
                                    #     huge in the padding
    bint mean,                      # IN  whether log E beta replaces E log beta below
    int n_threads,                  # IN
    floating[:, ::1] scratch,       # OUT (n_threads, 2 K_pad)
    int64_t[::1] new,               # OUT (n_words,) scratch
    weights,                        # IN/OUT TopicWeights
):
    """Compute the rows of topic weights for words that have no row yet."""
    cdef:
        floating[:, ::1] values = weights.values
        int32_t[::1] place = weights.place
        int64_t[::1] n_rows = weights.n_rows
        Py_ssize_t i, n_new = 0
        int k, K = eta.shape[1]
        floating least = log_sums[0], most = log_sums[0]
        refresh_t step
    for k in range(K):
        least, most = min(least, log_sums[k]), max(most, log_sums[k])
    for i in range(words.shape[0]):
        if place[words[i]] < 0:
            new[n_new] = words[i]
            place[words[i]] = <int32_t>(n_rows[0] + n_new)
            n_new += 1
    if n_new == 0:
        return
    step.weights = weights_of(weights, values)
    step.kind = 2 if mean and step.weights.normalise and most - least > WIDE else mean
    step.words, step.n_words, step.first_row, step.K = &new[0], n_new, n_rows[0], K
    step.lam, step.eta, step.decay, step.now = &lam[0, 0], &eta[0, 0], &decay[0], now
    step.eta_stride = eta.strides[0] // <Py_ssize_t>sizeof(floating)
    step.log_sums, step.n_threads = &log_sums[0], shared_among(n_threads, n_new, K, WEIGHTED)
    step.scratch, step.scratch_width = &scratch[0, 0], scratch.shape[1]
    with nogil:
        kernels.real[sizeof(floating) == 8].refresh_weights(&step)
    n_rows[0] += n_new


cdef block_t block_of(fitted, const floating[:, ::1] t):
    """The arrays of a FittedBlock, which must exist as long as they are used."""
    cdef:
        const int64_t[::1] first = fitted.entries.first
        const int64_t[::1] document = fitted.entries.document
        const int64_t[::1] position = fitted.entries.position
        const floating[::1] ratio = fitted.work.ratio, b = fitted.inverse
        const int32_t[:, ::1] active = fitted.work.active
        const int32_t[::1] n_active = fitted.work.n_active
        double[:, ::1] sums = fitted.work.sums
        floating[:, ::1] scratch = fitted.work.summed
        const floating[:, ::1] values = fitted.weights.values
        block_t own
    own.weights = weights_of(fitted.weights, values)
    own.first, own.ratio, own.t, own.b = &first[0], &ratio[0], &t[0, 0], &b[0]
    own.document = &document[0] if document.shape[0] else NULL
    own.position = &position[0] if position.shape[0] else NULL
    own.active, own.n_active = &active[0, 0], &n_active[0]
    own.sums, own.sums_width = &sums[0, 0], sums.shape[1]
    own.scratch, own.scratch_width = &scratch[0, 0], scratch.shape[1]
    return own


def accumulate_statistics(
    fitted,                        # IN  FittedBlock
    int32_t[::1] row_of,           # IN/OUT (V,) the row of each word in statistics, or -1
    int64_t[::1] n_rows,           # IN/OUT (1,) number of rows in use
    floating[:, ::1] statistics,   # IN/OUT (rows, K_pad) sum_d b_d n_dv phi_dvk
    double[::1] word_energy,       # OUT (V,) sum_dk n_dv phi_dvk E log beta_kv if all documents
                                   #     have the b of the weights; or None
):
    """Add the expected counts of a batch to the statistics, one word after another."""
    cdef:
        const int64_t[::1] words = fitted.entries.words
        const floating[:, ::1] t = fitted.work.t
        Py_ssize_t i, n_words = words.shape[0], n_entries = len(fitted.entries.document)
        sums_t step
    if n_words == 0:
        return
    step.n_before = n_rows[0]
    for i in range(n_words):
        if row_of[words[i]] < 0:
            row_of[words[i]] = <int32_t>n_rows[0]
            n_rows[0] += 1
    step.block = block_of(fitted, t)
    step.words, step.n_words, step.row_of = &words[0], n_words, &row_of[0]
    step.statistics = &statistics[0, 0]
    step.word_energy = NULL if word_energy is None else &word_energy[0]
    step.n_threads = shared_among(
        fitted.work.n_threads, n_words + n_entries // SUMMED, t.shape[1], MOVED)
    with nogil:
        kernels.real[sizeof(floating) == 8].add_statistics(&step)


def step_topics(
    const int64_t[::1] words,           # IN  the rows to update, ascending
    floating[:, ::1] lam,               # IN/OUT (V, K_pad)
    const floating[:, :] eta,           # IN  (V, K), rows contiguous, any stride between them
    double[::1] decay,                  # IN/OUT (V,) value of `now` at the row's last update
    double now,                         # IN  the product of 1 - rho over all steps
    const floating[:, ::1] statistics,  # IN  (rows, K_pad)
    const int32_t[::1] row_of,          # IN  (V,) rows of statistics; words of -1 count as 0
    fitted,                             # IN  None, or the FittedBlock that statistics are summed
                                        #     from: row_of are numbers of its words
    floating amount,                    # IN  factor of the statistics
    floating floor,                     # IN
    bint whole,                         # IN  whether sums are of lam, or else of the statistics
    int n_threads,                      # IN
    double[:, ::1] partial,             # OUT (blocks, K) scratch, see n_blocks
    double[::1] sums,                   # OUT (K,) sum over the rows that are updated
):
    """Set lam_v to max(eta_v + now / decay_v (lam_v - eta_v) + amount statistics_v, floor).

    A step without statistics only moves a row towards the prior: it multiplies lam - eta by
    1 - rho.  So all the steps that a row has missed can be applied together when the row is
    needed.
    """
    cdef:
        const floating[:, ::1] t
        Py_ssize_t n_words = words.shape[0]
        step_t step
    step.words, step.n_words, step.n_parts = NULL, n_words, partial.shape[0]
    if n_words > 0:
        step.words = &words[0]
        step.K, step.K_pad = sums.shape[0], lam.shape[1]
        step.lam, step.eta, step.decay, step.now = &lam[0, 0], &eta[0, 0], &decay[0], now
        step.eta_stride = eta.strides[0] // <Py_ssize_t>sizeof(floating)
        step.row_of, step.statistics = &row_of[0], &statistics[0, 0]
        if fitted is not None:
            t = fitted.work.t
            step.statistics, step.block = NULL, block_of(fitted, t)
            n_words += len(fitted.entries.document) // SUMMED
        step.amount, step.floor, step.whole = amount, floor, whole
        step.partial, step.partial_width = &partial[0, 0], partial.shape[1]
        step.n_threads = shared_among(n_threads, n_words, step.K, MOVED)
        with nogil:
            kernels.real[sizeof(floating) == 8].step_words(&step)
    add_blocks(partial, n_threads, sums)


def sum_topics(
    const floating[:, ::1] lam,  # IN  (V, K_pad)
    int n_threads,               # IN
    double[:, ::1] partial,      # OUT (blocks, K) scratch
    double[::1] sums,            # OUT (K,) sum_v lam, in the order of step_topics
):
    """Compute the sums of the topics over words, without a step."""
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
    """Add up the blocks in their order; each thread adds up some of the topics."""
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
