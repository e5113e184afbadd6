"""Sums of powers over grids of inverse temperatures, for log C(T), and its Monte Carlo estimate.

A grid consists of panels of `n_points` evenly spaced exponents: panel i starts at
``starts[i]`` and has steps of ``steps[i]``.  Results are stored panel by panel.  Everything is
in double precision.  Each row, each block of rows and each draw is handled by one thread, and
blocks are added in a fixed order, so results are bit-identical for any number of threads.
"""

from cython.parallel cimport prange, threadid
from libc.float cimport DBL_MIN
from libc.math cimport INFINITY, exp, log
from libc.stdint cimport int32_t, uint64_t
from libc.string cimport memset

from annealvi._kernels._dispatch cimport kernels

cdef enum:
    VOCABULARY_BLOCK = 1024  # words whose powers are summed by one thread
    TOPIC_BLOCK = 1 << 18    # numbers of topics that one matrix product takes
    LINE = 8                 # doubles of a line, see vector.h

LEAST_WORD = 1e-280  # word probabilities below this may have underflowed
cdef double LEAST_LOG_WORD = log(LEAST_WORD)


cdef void sum_powers(
    const double[::1] starts, const double[::1] steps, Py_ssize_t n_points, Py_ssize_t n_vectors,
    Py_ssize_t stride, const double *logs, const double *weights, Py_ssize_t weight_stride,
    bint shared, double *acc,
) noexcept nogil:
    """Lines of sums at the points of all panels, see power_rows.h."""
    cdef Py_ssize_t panel
    memset(acc, 0, starts.shape[0] * n_points * LINE * sizeof(double))
    for panel in range(starts.shape[0]):
        kernels.power_sums(n_vectors, stride, logs, starts[panel], steps[panel], n_points, weights,
                           weight_stride, shared, acc)
        acc += n_points * LINE
        if weights != NULL:
            weights += n_points * weight_stride


cdef void add_lanes(Py_ssize_t n, const double *acc, double *out, Py_ssize_t stride) noexcept nogil:
    """The sums over n lines."""
    cdef:
        Py_ssize_t j, lane
        double total
    for j in range(n):
        total = 0
        for lane in range(LINE):
            total += acc[j * LINE + lane]
        out[j * stride] = total


def row_power_sums(
    const double[:, ::1] logs,  # IN  (R, n_pad) whole cache lines, -infinity in the padding
    const double[::1] starts,   # IN  (panels,) positive
    const double[::1] steps,    # IN  (panels,) positive
    const double[:, ::1] weights,  # IN  (panels * n_points, n_pad), or (0, 0) for ones
    int n_threads,              # IN
    double[:, ::1] scratch,     # OUT (n_threads, panels * n_points * LINE), see scratch_size
    double[:, ::1] out,         # OUT (R, panels * n_points)
):
    """out[r, j] = sum_i weights[j, i] exp(b_j logs[r, i])."""
    cdef:
        Py_ssize_t n_rows = logs.shape[0], n_panels = starts.shape[0], r, width = logs.shape[1]
        const double *w = NULL
    if n_rows == 0 or n_panels == 0:
        return
    if weights.shape[0] > 0:
        w = &weights[0, 0]
    for r in prange(n_rows, nogil=True, num_threads=n_threads, schedule="static"):
        sum_powers(starts, steps, out.shape[1] // n_panels, width // LINE, LINE,
                   &logs[r, 0], w, width, False, &scratch[threadid(), 0])
        add_lanes(out.shape[1], &scratch[threadid(), 0], &out[r, 0], 1)


def column_power_sums(
    const double[:, ::1] logs,   # IN  (V, K_pad) whole cache lines
    const double[::1] starts,    # IN  (panels,) positive
    const double[::1] steps,     # IN  (panels,) positive
    int n_threads,               # IN
    double[:, ::1] scratch,      # OUT (n_threads, panels * n_points * LINE), see scratch_size
    double[:, :, ::1] partial,   # OUT (blocks, panels * n_points, K_pad), see n_vocabulary_blocks
    double[:, ::1] out,          # IN/OUT (panels * n_points, K_pad)
):
    """out[j, k] += sum_v exp(b_j logs[v, k]), block by block."""
    cdef:
        Py_ssize_t n_blocks = partial.shape[0], n_panels = starts.shape[0], task, block
        Py_ssize_t width = logs.shape[1], j, k, lane, first, n_columns
        double *acc = NULL
    n_columns = width // LINE
    for task in prange(n_blocks * n_columns, nogil=True, num_threads=n_threads, schedule="static"):
        acc = &scratch[threadid(), 0]
        block = task // n_columns
        k = task % n_columns * LINE
        first = block * VOCABULARY_BLOCK
        sum_powers(starts, steps, out.shape[0] // n_panels,
                   min(VOCABULARY_BLOCK, logs.shape[0] - first), width, &logs[first, k], NULL, 0,
                   False, acc)
        for j in range(out.shape[0]):
            for lane in range(LINE):
                partial[block, j, k + lane] = acc[j * LINE + lane]
    for j in prange(out.shape[0], nogil=True, num_threads=n_threads, schedule="static"):
        for block in range(n_blocks):
            for k in range(width):
                out[j, k] += partial[block, j, k]


def log_gamma_draws(
    uint64_t[:, ::1] state,    # IN/OUT (4, 8) of the generators, no column of zeros
    const double[::1] shapes,  # IN  (n,), or (1,) if all are the same; positive
    double[::1] out,           # OUT (n,) logarithms of Gamma variates, finite
):
    """Draw the logarithms of Gamma variates that may be so small that they would underflow."""
    if out.shape[0] == 0:
        return
    with nogil:
        kernels.log_gamma_draws(&state[0, 0], &shapes[0], shapes.shape[0] > 1, out.shape[0],
                                &out[0])


cdef void draw_topic(
    uint64_t *state, const double[:, ::1] eta, Py_ssize_t k, Py_ssize_t V, Py_ssize_t width,
    double *row,
) noexcept nogil:
    """Draw log beta_k up to a constant: the largest is 0."""
    cdef Py_ssize_t v
    kernels.log_gamma_draws(state, &eta[min(k, eta.shape[0] - 1), 0], eta.shape[1] > 1, V, row)
    for v in range(V, width):
        row[v] = -INFINITY
    kernels.centre_row(width, row)


cdef void draw_theta(
    uint64_t *state, const double[::1] alpha, Py_ssize_t n_theta, int thread,
    double[:, :, ::1] theta,
) noexcept nogil:
    """Draw log theta up to a constant: the largest of each column is 0."""
    cdef Py_ssize_t k, r
    for k in range(alpha.shape[0]):
        kernels.log_gamma_draws(state, &alpha[k], 0, n_theta, &theta[thread, k, 0])
        for r in range(n_theta, theta.shape[2]):
            theta[thread, k, r] = 0
    kernels.centre_columns(alpha.shape[0], theta.shape[2], &theta[thread, 0, 0])


cdef void draw_weights(
    uint64_t *state, const double[:, ::1] eta, Py_ssize_t V, const double[::1] starts,
    const double[::1] steps, const double[::1] points, const int32_t[::1] first,
    const int32_t[::1] point, const double[::1] entry, int thread, double[:, :, ::1] topics,
    double *acc, double *sums, double[:, :, ::1] weights,
) noexcept nogil:
    """Draw topics, and sum beta_kv^b over words at the points: the weights of theta_k^b."""
    cdef:
        Py_ssize_t K = weights.shape[2], width = topics.shape[2], n_points = points.shape[0]
        Py_ssize_t k, e, j
        double total
    for k in range(K):
        draw_topic(state, eta, k, V, width, &topics[thread, 0, 0])
        sum_powers(starts, steps, n_points // starts.shape[0], width // LINE,
                   LINE, &topics[thread, 0, 0], NULL, 0, False, acc)
        add_lanes(n_points, acc, sums, 1)
        total = 0
        for e in range(first[0], first[1]):
            total += entry[e] * sums[point[e]]
        total = log(max(total, DBL_MIN))
        for j in range(n_points):
            weights[thread, j, k] = sums[j] * exp(-points[j] * total)


cdef void draw_words(
    uint64_t *state, const double[:, ::1] eta, Py_ssize_t V, Py_ssize_t n_theta, int thread,
    double[:, :, ::1] topics, const double[:, :, ::1] theta, double[:, :, ::1] shares,
    double[:, :, ::1] words, double[:, :, ::1] log_topics,
) noexcept nogil:
    """Draw topics, and mix them by theta: sum_k theta_k beta_kv up to a constant for each theta."""
    cdef:
        Py_ssize_t K = theta.shape[1], k, v, r, n
        Py_ssize_t width = topics.shape[2], R_pad = theta.shape[2]
        double total
    for k in range(K):
        n = k % topics.shape[1]
        draw_topic(state, eta, k, V, width, &topics[thread, n, 0])
        for v in range(log_topics.shape[2]):
            log_topics[thread, k, v] = topics[thread, n, v]
        total = log(kernels.exp_row(width, &topics[thread, n, 0]))
        for v in range(log_topics.shape[2]):
            log_topics[thread, k, v] -= total
        for r in range(R_pad):
            shares[thread, n, r] = theta[thread, k, r] - total
        kernels.exp_row(R_pad, &shares[thread, n, 0])
        if n == topics.shape[1] - 1 or k == K - 1:
            kernels.f64.product(n_theta, width, n + 1, &shares[thread, 0, 0], 1, R_pad,
                                &topics[thread, 0, 0], width, 1, k > n, &words[thread, 0, 0],
                                width)


cdef void sum_words(
    const double[::1] starts, const double[::1] steps, Py_ssize_t n_points, Py_ssize_t V,
    Py_ssize_t start, Py_ssize_t n, int thread, double[:, :, ::1] words,
    const double[:, :, ::1] theta, const double[:, :, ::1] log_topics, double *acc, double *sums,
) noexcept nogil:
    """Sums of powers of words for up to LINE theta, side by side; words become logarithms."""
    cdef:
        Py_ssize_t width = words.shape[2], lane, r, v, k, j
        double most, total
        double *row = NULL
    for lane in range(LINE):
        if lane >= n:
            for j in range(n_points):
                sums[j * LINE + lane] = 1
            continue
        r = start + lane
        row = &words[thread, r, 0]
        kernels.f64.log_array(width, row, row)
        for v in range(min(V, log_topics.shape[2])):
            if row[v] < LEAST_LOG_WORD:
                most = -INFINITY
                for k in range(theta.shape[1]):
                    most = max(most, theta[thread, k, r] + log_topics[thread, k, v])
                total = 0
                for k in range(theta.shape[1]):
                    total += exp(theta[thread, k, r] + log_topics[thread, k, v] - most)
                row[v] = most + log(total)
        sum_powers(starts, steps, n_points // starts.shape[0], width // LINE,
                   LINE, row, NULL, 0, False, acc)
        add_lanes(n_points, acc, sums + lane, LINE)


cdef void one_draw(
    uint64_t *state, const double[::1] alpha, const double[:, ::1] eta, Py_ssize_t V,
    const double[::1] starts, const double[::1] steps, const double[::1] points,
    const int32_t[::1] first, const int32_t[::1] point, const double[::1] entry,
    const double[::1] inverses, const double[::1] lengths, const double[:, ::1] shares,
    Py_ssize_t n_theta, int thread, double[:, ::1] sums, double[:, :, ::1] topics,
    double[:, :, ::1] theta, double[:, :, ::1] weights, double[:, :, ::1] mixed,
    double[:, :, ::1] words, double[:, :, ::1] log_topics, double[:, :, ::1] logs,
    double[:, ::1] own, double *out, double *means,
) noexcept nogil:
    cdef:
        Py_ssize_t M = inverses.shape[0], G = shares.shape[1], n_points = points.shape[0]
        Py_ssize_t width = logs.shape[2], g, i, t, m
        double *acc = &sums[thread, 0]
        double *side = acc + n_points * LINE
        bint collapsed = words.shape[1] > 0
    memset(out, 0, M * sizeof(double))
    memset(means, 0, M * sizeof(double))
    if collapsed:
        draw_theta(state, alpha, G * n_theta, thread, theta)
        draw_words(state, eta, V, G * n_theta, thread, topics, theta, mixed, words, log_topics)
    else:
        draw_weights(state, eta, V, starts, steps, points, first, point, entry, thread, topics,
                     acc, side, weights)
    for g in range(G):
        if not collapsed:
            draw_theta(state, alpha, n_theta, thread, theta)
        for i in range((n_theta + LINE - 1) // LINE):
            t = i * LINE
            if collapsed:
                sum_words(starts, steps, n_points, V, g * n_theta + t, n_theta - t, thread, words,
                          theta, log_topics, acc, side)
            else:
                sum_powers(starts, steps, n_points // starts.shape[0], alpha.shape[0], width,
                           &theta[thread, 0, t], &weights[thread, 0, 0], weights.shape[2], True,
                           side)
            kernels.log_words(M, &inverses[0], &first[0], &point[0], &entry[0], side, width,
                              &logs[thread, 0, t])
        kernels.add_log_means(n_theta, width, M, &logs[thread, 0, 0], lengths.shape[0],
                              &lengths[0], &shares[0, g], G, &own[thread, 0], out, means)
    for m in range(M):
        means[m] /= G * n_theta


def draw_log_partition(
    uint64_t[:, :, ::1] states,      # IN/OUT (N, 4, 8) of each draw, no column of zeros
    const double[::1] alpha,         # IN  (K,)
    const double[:, ::1] eta,        # IN  (1 or K, 1 or V)
    Py_ssize_t V,                    # IN
    const double[::1] starts,        # IN  (panels,) positive
    const double[::1] steps,         # IN  (panels,) positive
    const double[::1] points,        # IN  (P,) all points of the panels
    const int32_t[::1] first,        # IN  (M + 1,) where rows of the interpolation start
    const int32_t[::1] point,        # IN  (entries,) their columns
    const double[::1] entry,         # IN  (entries,)
    const double[::1] inverses,      # IN  (M,) b, of which the first is 1
    const double[::1] lengths,       # IN  (L,) positive
    const double[:, ::1] shares,     # IN  (L, G) number of documents of each length in each group
    Py_ssize_t n_theta,              # IN  for each group
    int n_threads,                   # IN
    double[:, ::1] sums,             # OUT (n_threads, 2 P * LINE) scratch, see scratch_size
    double[:, :, ::1] topics,        # OUT (n_threads, 1, V_pad) scratch, or for the collapsed form
                                     #     (n_threads, topics of a product, V_pad), see topic_block
    double[:, :, ::1] theta,         # OUT (n_threads, K, T_pad) scratch, or (n_threads, K, R_pad)
                                     #     for the collapsed form, where R = G n_theta
    double[:, :, ::1] weights,       # OUT (n_threads, P, K) scratch, or (n_threads, 0, 0) for the
                                     #     collapsed form
    double[:, :, ::1] mixed,         # OUT (n_threads, topics of a product, R_pad) scratch
    double[:, :, ::1] words,         # OUT (n_threads, R, V_pad) scratch; (n_threads, 0, V_pad)
                                     #     asks for the explicit form
    double[:, :, ::1] log_topics,    # OUT (n_threads, K, V_pad) scratch if words whose
                                     #     probabilities underflow matter, else (n_threads, K, 0)
    double[:, :, ::1] logs,          # OUT (n_threads, M, T_pad) scratch
    double[:, ::1] own,              # OUT (n_threads, 3 L_pad) scratch
    double[:, ::1] out,              # OUT (N, M) log prod_d mean_theta S^{n_d}
    double[:, ::1] means,            # OUT (N, M) mean of log S
):
    """Draw beta and theta, and estimate log C of latent Dirichlet allocation from each draw."""
    cdef Py_ssize_t s
    for s in prange(states.shape[0], nogil=True, num_threads=n_threads, schedule="dynamic"):
        one_draw(&states[s, 0, 0], alpha, eta, V, starts, steps, points, first, point, entry,
                 inverses, lengths, shares, n_theta, threadid(), sums, topics, theta, weights,
                 mixed, words, log_topics, logs, own, &out[s, 0], &means[s, 0])


SUMMED_ROWS = VOCABULARY_BLOCK


def scratch_size(n_points):
    """Size of the scratch that sums need for each thread, in numbers."""
    return n_points * LINE


def n_vocabulary_blocks(n_features):
    """Number of blocks of ``partial`` that `column_power_sums` needs."""
    return (n_features + VOCABULARY_BLOCK - 1) // VOCABULARY_BLOCK


def topic_block(n_features):
    """Number of topics that one matrix product takes."""
    return max(1, TOPIC_BLOCK // n_features)
