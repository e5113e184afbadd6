"""Sums of powers over grids of inverse temperatures, for log C(T), and draws for it.

A grid consists of panels of `n_points` evenly spaced exponents: panel i starts at
``starts[i]`` and has steps of ``steps[i]``.  Results are stored panel by panel.  Everything is
in double precision.  Each row and each block of rows is handled by one thread, and blocks are
added in a fixed order, so results are bit-identical for any number of threads.
"""

from cython.parallel cimport prange, threadid
from libc.stdint cimport uint64_t
from libc.string cimport memset

from annealvi._kernels._dispatch cimport kernels

cdef enum:
    VOCABULARY_BLOCK = 1024  # words whose powers are summed by one thread
    MOST_LANES = 8


def row_power_sums(
    const double[:, ::1] logs,  # IN  (R, n_pad) whole cache lines, -infinity in the padding;
                                #     or the numbers themselves, 0 in the padding
    bint plain,                 # IN  whether they are the numbers themselves
    const double[::1] starts,   # IN  (panels,) positive
    const double[::1] steps,    # IN  (panels,) positive
    const double[:, ::1] weights,  # IN  (panels * n_points, n_pad), or (0, 0) for ones
    int n_threads,              # IN
    double[:, ::1] scratch,     # OUT (n_threads, n_points * MOST_LANES), see scratch_size
    double[:, ::1] row,         # OUT (n_threads, n_pad) scratch for the logarithms of numbers
    double[:, ::1] out,         # OUT (R, panels * n_points)
):
    """out[r, j] = sum_i weights[j, i] exp(b_j logs[r, i])."""
    cdef:
        Py_ssize_t n_rows = logs.shape[0], n_panels = starts.shape[0], r, panel, j, lane
        Py_ssize_t n_points, width = logs.shape[1]
        int lanes = kernels.lanes
        double *acc = NULL
        const double *w = NULL
        const double *row_logs = NULL
        double total
    if n_rows == 0 or n_panels == 0:
        return
    n_points = out.shape[1] // n_panels
    for r in prange(n_rows, nogil=True, num_threads=n_threads, schedule="static"):
        acc = &scratch[threadid(), 0]
        row_logs = &logs[r, 0]
        if plain:
            kernels.f64.log(width, row_logs, &row[threadid(), 0])
            row_logs = &row[threadid(), 0]
        for panel in range(n_panels):
            memset(acc, 0, n_points * lanes * sizeof(double))
            w = NULL
            if weights.shape[0] > 0:
                w = &weights[panel * n_points, 0]
            kernels.power_sums(width // lanes, lanes, row_logs, starts[panel], steps[panel],
                               n_points, w, width, acc)
            for j in range(n_points):
                total = 0
                for lane in range(lanes):
                    total = total + acc[j * lanes + lane]
                out[r, panel * n_points + j] = total


def column_power_sums(
    const double[:, ::1] logs,   # IN  (V, K_pad) whole cache lines
    const double[::1] starts,    # IN  (panels,) positive
    const double[::1] steps,     # IN  (panels,) positive
    int n_threads,               # IN
    double[:, ::1] scratch,      # OUT (n_threads, n_points * MOST_LANES), see scratch_size
    double[:, :, ::1] partial,   # OUT (blocks, panels * n_points, K_pad), see n_vocabulary_blocks
    double[:, ::1] out,          # IN/OUT (panels * n_points, K_pad)
):
    """out[j, k] += sum_v exp(b_j logs[v, k]), block by block."""
    cdef:
        Py_ssize_t n_blocks = partial.shape[0], n_panels = starts.shape[0], task, block, panel
        Py_ssize_t n_points, width = logs.shape[1], j, k, lane, first, n_words, n_columns
        int lanes = kernels.lanes
        double *acc = NULL
    n_points = out.shape[0] // n_panels
    n_columns = width // lanes
    for task in prange(n_blocks * n_columns, nogil=True, num_threads=n_threads, schedule="static"):
        acc = &scratch[threadid(), 0]
        block = task // n_columns
        k = task % n_columns * lanes
        first = block * VOCABULARY_BLOCK
        n_words = min(VOCABULARY_BLOCK, logs.shape[0] - first)
        for panel in range(n_panels):
            memset(acc, 0, n_points * lanes * sizeof(double))
            kernels.power_sums(n_words, width, &logs[first, k], starts[panel], steps[panel],
                               n_points, NULL, 0, acc)
            for j in range(n_points):
                for lane in range(lanes):
                    partial[block, panel * n_points + j, k + lane] = acc[j * lanes + lane]
    for j in prange(out.shape[0], nogil=True, num_threads=n_threads, schedule="static"):
        for block in range(n_blocks):
            for k in range(width):
                out[j, k] += partial[block, j, k]


def log_gamma_draws(
    uint64_t[:, ::1] state,  # IN/OUT (4, 8) of the generators, no column of zeros
    double a,                # IN  0 < a < 1
    double[::1] out,         # OUT logarithms of Gamma(a, 1) variates
):
    """Draw the logarithms of Gamma variates that may be so small that they would underflow."""
    if out.shape[0] == 0:
        return
    with nogil:
        kernels.log_gamma_draws(&state[0, 0], a, out.shape[0], &out[0])


SUMMED_ROWS = VOCABULARY_BLOCK


def scratch_size(n_points):
    """Size of the scratch that both sums need for each thread, in numbers."""
    return n_points * MOST_LANES


def n_vocabulary_blocks(n_features):
    """Number of blocks of ``partial`` that `column_power_sums` needs."""
    return (n_features + VOCABULARY_BLOCK - 1) // VOCABULARY_BLOCK
