"""Sums of powers at many inverse temperatures, and the Monte Carlo estimate of log C(T).

A grid of inverse temperatures consists of panels of `n_points` evenly spaced exponents.  Panel i
starts at ``starts[i]`` and has steps of ``steps[i]``.  Results are stored one panel after another.
Everything is in double precision.  One thread computes each row, each block of rows and each draw,
and blocks are added in a fixed order.  So results are bit-identical for any number of threads.
"""

import numpy as np

from cython.parallel cimport prange, threadid
from libc.float cimport DBL_MIN
from libc.math cimport INFINITY
from libc.stdint cimport int32_t, uint64_t
from libc.string cimport memset

from annealvi._kernels._dispatch cimport kernels

from annealvi._kernels.layout import aligned_empty, padded_length, separate_rows

cdef enum:
    VOCABULARY_BLOCK = 1024  # number of words whose powers one thread sums
    TOPIC_BLOCK = 1 << 18    # size of the topics' part in one matrix product
    LINE = 8                 # number of doubles in a line, see vector.h


cdef double exp(double x) noexcept nogil:
    """The kernels' own: the last digit of a C library's depends on the library."""
    kernels.real[1].exp_array(1, &x, &x)
    return x


cdef double log(double x) noexcept nogil:
    kernels.real[1].log_array(1, &x, &x)
    return x


LEAST_WORD = 1e-280  # word probabilities below this may have underflowed
cdef double LEAST_LOG_WORD = log(LEAST_WORD)


cdef void sum_powers(
    const double[::1] starts, const double[::1] steps, Py_ssize_t n_points, Py_ssize_t n_vectors,
    Py_ssize_t stride, const double *logs, const double *weights, Py_ssize_t weight_stride,
    bint shared, double *acc,
) noexcept nogil:
    """Compute lines of sums at the points of all panels; see power_rows.h."""
    cdef Py_ssize_t panel
    memset(acc, 0, starts.shape[0] * n_points * LINE * sizeof(double))
    for panel in range(starts.shape[0]):
        kernels.power_sums(n_vectors, stride, logs, starts[panel], steps[panel], n_points, weights,
                           weight_stride, shared, acc)
        acc += n_points * LINE
        if weights != NULL:
            weights += n_points * weight_stride


cdef void add_lanes(Py_ssize_t n, const double *acc, double *out, Py_ssize_t stride) noexcept nogil:
    """Compute the sums over n lines."""
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
    double[:, ::1] scratch,     # OUT (n_threads, panels * n_points * LINE)
    double[:, ::1] out,         # OUT (R, panels * n_points)
):
    """Set out[r, j] to sum_i weights[j, i] exp(b_j logs[r, i])."""
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
    double[:, ::1] scratch,      # OUT (n_threads, panels * n_points * LINE)
    double[:, :, ::1] partial,   # OUT (blocks, panels * n_points, K_pad), see n_vocabulary_blocks
    double[:, ::1] out,          # IN/OUT (panels * n_points, K_pad)
):
    """Add sum_v exp(b_j logs[v, k]) to out[j, k], one block of words after another."""
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
    """Draw logarithms of Gamma variates, which are finite even if the variates would underflow."""
    if out.shape[0] == 0:
        return
    with nogil:
        kernels.log_gamma_draws(&state[0, 0], &shapes[0], shapes.shape[0] > 1, out.shape[0],
                                &out[0])


cdef class Grid:
    """Panels of inverse temperatures, and the interpolation from their points."""

    cdef:
        const double[::1] starts, steps   # (panels,) positive
        const double[::1] points          # (P,) all points of the panels
        const int32_t[::1] first, point   # (M + 1,) where rows of the interpolation start,
        const double[::1] entry           # (entries,) their columns and (entries,) numbers
        const double[::1] inverses        # (M,) b, of which the first is 1

    def __init__(self, starts, steps, points, first, point, entry, inverses):
        self.starts, self.steps, self.points = starts, steps, points
        self.first, self.point, self.entry, self.inverses = first, point, entry, inverses


cdef class DrawsOfLDA:
    """Draws of beta and theta, and for each draw an estimate of LDA's log C.

    The collapsed form sums over the topics of words; the explicit form does not.
    """

    cdef:
        const double[::1] alpha        # (K,)
        const double[:, ::1] eta       # (1 or K, 1 or V)
        const double[::1] lengths      # (L,) positive
        const double[:, ::1] shares    # (L, G) number of documents of each length in each group
        Grid grid
        Py_ssize_t V, n_theta          # n_theta: for each group
        int n_threads
        # Scratch of each thread.  R = G n_theta, and _pad means padded to whole cache lines.
        # Arrays that the form does not need have no rows.
        double[:, ::1] sums            # (n_threads, 2 P * LINE)
        double[:, :, ::1] topics       # (n_threads, topics of a product or 1, V_pad)
        double[:, :, ::1] theta        # (n_threads, K, R_pad, or explicit T_pad)
        double[:, :, ::1] weights      # (n_threads, P, K) explicit
        double[:, :, ::1] mixed        # (n_threads, topics of a product, R_pad) collapsed
        double[:, :, ::1] words        # (n_threads, R, V_pad) collapsed
        double[:, :, ::1] log_topics   # (n_threads, K, V_pad) if words whose probabilities
                                       #     underflow matter, else (n_threads, K, 0)
        double[:, :, ::1] logs         # (n_threads, M, T_pad)
        double[:, ::1] own             # (n_threads, 3 L_pad)

    def __init__(
        self, *, const double[::1] alpha, const double[:, ::1] eta, Py_ssize_t n_features,
        const double[::1] lengths, const double[:, ::1] shares, Py_ssize_t n_theta, Grid grid,
        bint collapsed, int n_threads,
    ):
        cdef:
            Py_ssize_t n_topics = 1, n_words = 0, n_points = grid.points.shape[0]
            bint audible = False
        self.alpha, self.eta, self.lengths, self.shares = alpha, eta, lengths, shares
        self.grid, self.V, self.n_theta, self.n_threads = grid, n_features, n_theta, n_threads
        if collapsed:
            n_topics = min(alpha.shape[0], max(1, TOPIC_BLOCK // n_features))
            n_words = shares.shape[1] * n_theta
            # logarithms are kept if b is so small that probabilities that underflow would matter
            audible = LEAST_WORD ** min(grid.inverses) * n_features > 1e-14
        self.sums = separate_rows(n_threads, 2 * n_points * LINE)
        self.topics = self.scratch(n_topics, n_features)
        self.theta = self.scratch(alpha.shape[0], n_words or n_theta)
        self.weights = np.empty((n_threads, 0 if collapsed else n_points, alpha.shape[0]))
        self.mixed = self.scratch(n_topics, n_words)
        self.words = self.scratch(n_words, n_features)
        self.log_topics = self.scratch(alpha.shape[0], n_features if audible else 0)
        self.logs = self.scratch(grid.inverses.shape[0], n_theta)
        self.own = separate_rows(n_threads, 3 * padded_length(lengths.shape[0], np.float64))

    cdef scratch(self, n_rows, size):
        width = padded_length(size, np.float64)
        return aligned_empty((self.n_threads, n_rows, width), np.float64)

    cdef void draw_topic(self, uint64_t *state, Py_ssize_t k, double *row) noexcept nogil:
        """Draw log beta_k up to a constant, such that the largest number is 0."""
        cdef Py_ssize_t v, width = self.topics.shape[2]
        kernels.log_gamma_draws(state, &self.eta[min(k, self.eta.shape[0] - 1), 0],
                                self.eta.shape[1] > 1, self.V, row)
        for v in range(self.V, width):
            row[v] = -INFINITY
        kernels.centre_row(width, row)

    cdef void draw_theta(self, uint64_t *state, Py_ssize_t n, int thread) noexcept nogil:
        """Draw n log theta up to constants, such that the largest number of each column is 0."""
        cdef Py_ssize_t k, r
        for k in range(self.alpha.shape[0]):
            kernels.log_gamma_draws(state, &self.alpha[k], 0, n, &self.theta[thread, k, 0])
            for r in range(n, self.theta.shape[2]):
                self.theta[thread, k, r] = 0
        kernels.centre_columns(self.alpha.shape[0], self.theta.shape[2], &self.theta[thread, 0, 0])

    cdef void sum_row(self, Py_ssize_t width, const double *row, double *acc, double *out,
                      Py_ssize_t stride) noexcept nogil:
        """Compute sum_i exp(b row_i) at the points."""
        cdef Py_ssize_t n_points = self.grid.points.shape[0]
        sum_powers(self.grid.starts, self.grid.steps, n_points // self.grid.starts.shape[0],
                   width // LINE, LINE, row, NULL, 0, False, acc)
        add_lanes(n_points, acc, out, stride)

    cdef void draw_weights(self, uint64_t *state, int thread) noexcept nogil:
        """Draw topics, and sum beta_kv^b over words at the points, as weights of theta_k^b."""
        cdef:
            Py_ssize_t n_points = self.grid.points.shape[0], width = self.topics.shape[2], k, e, j
            double *acc = &self.sums[thread, 0]
            double *sums = acc + n_points * LINE
            double total
        for k in range(self.alpha.shape[0]):
            self.draw_topic(state, k, &self.topics[thread, 0, 0])
            self.sum_row(width, &self.topics[thread, 0, 0], acc, sums, 1)
            total = 0
            for e in range(self.grid.first[0], self.grid.first[1]):
                total += self.grid.entry[e] * sums[self.grid.point[e]]
            total = log(max(total, DBL_MIN))
            for j in range(n_points):
                self.weights[thread, j, k] = sums[j] * exp(-self.grid.points[j] * total)

    cdef void draw_words(self, uint64_t *state, Py_ssize_t n_theta, int thread) noexcept nogil:
        """Draw topics, and compute sum_k theta_k beta_kv up to a constant for each theta."""
        cdef:
            Py_ssize_t K = self.theta.shape[1], width = self.topics.shape[2], k, v, r, n
            Py_ssize_t R_pad = self.theta.shape[2], n_logs = self.log_topics.shape[2]
            double total
        for k in range(K):
            n = k % self.topics.shape[1]
            self.draw_topic(state, k, &self.topics[thread, n, 0])
            for v in range(n_logs):
                self.log_topics[thread, k, v] = self.topics[thread, n, v]
            total = log(kernels.exp_row(width, &self.topics[thread, n, 0]))
            for v in range(n_logs):
                self.log_topics[thread, k, v] -= total
            for r in range(R_pad):
                self.mixed[thread, n, r] = self.theta[thread, k, r] - total
            kernels.exp_row(R_pad, &self.mixed[thread, n, 0])
            if n == self.topics.shape[1] - 1 or k == K - 1:
                kernels.real[1].product(n_theta, width, n + 1, &self.mixed[thread, 0, 0], 1, R_pad,
                                        &self.topics[thread, 0, 0], width, 1, k > n,
                                        &self.words[thread, 0, 0], width)

    cdef void sum_words(self, Py_ssize_t start, Py_ssize_t n, int thread) noexcept nogil:
        """Sum powers of words for up to LINE theta together; words are replaced by logarithms."""
        cdef:
            Py_ssize_t width = self.words.shape[2], n_points = self.grid.points.shape[0]
            Py_ssize_t lane, r, v, k, j
            double *acc = &self.sums[thread, 0]
            double *sums = acc + n_points * LINE
            double *row = NULL
            double most, total
        for lane in range(LINE):
            if lane >= n:
                for j in range(n_points):
                    sums[j * LINE + lane] = 1
                continue
            r = start + lane
            row = &self.words[thread, r, 0]
            kernels.real[1].log_array(width, row, row)
            for v in range(min(self.V, self.log_topics.shape[2])):
                if row[v] < LEAST_LOG_WORD:
                    most = -INFINITY
                    for k in range(self.theta.shape[1]):
                        most = max(most, self.theta[thread, k, r] + self.log_topics[thread, k, v])
                    total = 0
                    for k in range(self.theta.shape[1]):
                        total += exp(
                            self.theta[thread, k, r] + self.log_topics[thread, k, v] - most)
                    row[v] = most + log(total)
            self.sum_row(width, row, acc, sums + lane, LINE)

    cdef void one(
        self, uint64_t *state, int thread, double *out, double *means
    ) noexcept nogil:
        cdef:
            Py_ssize_t M = self.grid.inverses.shape[0], G = self.shares.shape[1], g, i, t, m
            Py_ssize_t n_points = self.grid.points.shape[0], width = self.logs.shape[2]
            Py_ssize_t n_panels = self.grid.starts.shape[0]
            double *side = &self.sums[thread, n_points * LINE]
            bint collapsed = self.words.shape[1] > 0
        memset(out, 0, M * sizeof(double))
        memset(means, 0, M * sizeof(double))
        if collapsed:
            self.draw_theta(state, G * self.n_theta, thread)
            self.draw_words(state, G * self.n_theta, thread)
        else:
            self.draw_weights(state, thread)
        for g in range(G):
            if not collapsed:
                self.draw_theta(state, self.n_theta, thread)
            for i in range((self.n_theta + LINE - 1) // LINE):
                t = i * LINE
                if collapsed:
                    self.sum_words(g * self.n_theta + t, self.n_theta - t, thread)
                else:
                    sum_powers(self.grid.starts, self.grid.steps, n_points // n_panels,
                               self.alpha.shape[0], width, &self.theta[thread, 0, t],
                               &self.weights[thread, 0, 0], self.weights.shape[2], True, side)
                kernels.log_words(M, &self.grid.inverses[0], &self.grid.first[0],
                                  &self.grid.point[0], &self.grid.entry[0], side, width,
                                  &self.logs[thread, 0, t])
            kernels.add_log_means(self.n_theta, width, M, &self.logs[thread, 0, 0],
                                  self.lengths.shape[0], &self.lengths[0], &self.shares[0, g], G,
                                  &self.own[thread, 0], out, means)
        for m in range(M):
            means[m] /= G * self.n_theta

    def draw(
        self,
        uint64_t[:, :, ::1] states,  # IN/OUT (N, 4, 8) of each draw, no column of zeros
        double[:, ::1] out,          # OUT (N, M) log prod_d mean_theta S^{n_d}
        double[:, ::1] means,        # OUT (N, M) mean of log S
    ):
        """Compute an estimate of log C from each draw."""
        cdef Py_ssize_t s
        for s in prange(
            states.shape[0], nogil=True, num_threads=self.n_threads, schedule="dynamic"
        ):
            self.one(&states[s, 0, 0], threadid(), &out[s, 0], &means[s, 0])


SUMMED_ROWS = VOCABULARY_BLOCK
LANES = LINE  # numbers of scratch for each point


def n_vocabulary_blocks(n_features):
    """Number of blocks of ``partial`` that `column_power_sums` needs."""
    return (n_features + VOCABULARY_BLOCK - 1) // VOCABULARY_BLOCK
