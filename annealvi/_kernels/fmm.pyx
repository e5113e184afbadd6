"""The Bernoulli coordinate updates of the factorial mixture model over all data.

The arithmetic of a block of data is in ``fmm_rows.h``; this module distributes blocks over
threads.  No block reads what another one writes, so every result is bit-identical for any
number of threads.  Matrices are component-major: K rows of N numbers, padded to whole
blocks of DATA_BLOCK data.  The padding is overwritten with meaningless numbers.
"""

from cython cimport floating, view
from cython.parallel cimport prange
from libc.stdint cimport int64_t

from annealvi._kernels._dispatch cimport DATA_BLOCK, kernels

BLOCK = DATA_BLOCK


def sweep(
    const floating[:, ::1] projection,  # IN  (K, N_pad)
    const floating[:, ::1] coupling,    # IN  (K, K), diagonal 0
    const floating[::1] offset,         # IN  (K,)
    floating scale,                     # IN
    const floating[::view.strided, ::view.contiguous] b,  # IN  (1 or K, 1 or N_pad)
    int n_threads,                      # IN
    floating[:, ::1] nu,                # IN/OUT (K, N_pad)
):
    """logit nu_kn = b (offset_k + scale projection_kn - sum_j coupling_kj nu_jn), k by k.

    b is the inverse temperature: a single one, or one for each row, datum or element.
    """
    cdef:
        Py_ssize_t n_blocks = nu.shape[1] // DATA_BLOCK, block, at
        int K = nu.shape[0]
        int64_t stride = nu.shape[1]
        bint b_each = b.shape[1] > 1
        int64_t b_row = 0
    if b.shape[0] > 1:
        b_row = b.strides[0] // <Py_ssize_t>sizeof(floating)
    if K == 0:
        return
    for block in prange(n_blocks, nogil=True, num_threads=n_threads, schedule="static"):
        at = block * DATA_BLOCK
        if floating is float:
            kernels.f32.bernoulli_sweep(
                K, stride, &projection[0, at], &coupling[0, 0], &offset[0], scale,
                &b[0, at if b_each else 0], b_row, b_each, &nu[0, at])
        else:
            kernels.f64.bernoulli_sweep(
                K, stride, &projection[0, at], &coupling[0, 0], &offset[0], scale,
                &b[0, at if b_each else 0], b_row, b_each, &nu[0, at])


def held_sweep(
    const floating[:, ::1] projection,  # IN  (K, N_pad)
    const floating[:, ::1] coupling,    # IN  (K, K), diagonal 0
    const floating[::1] offset,         # IN  (K,)
    floating scale,                     # IN
    floating b,                         # IN
    const floating[::1] centre,         # IN  (K,)
    const floating[:, ::1] lower,       # IN  (K, N_pad) <= centre
    const floating[:, ::1] upper,       # IN  (K, N_pad) >= centre
    int n_threads,                      # IN
    floating[:, ::1] nu,                # IN/OUT (K, N_pad)
    floating[:, ::1] inverse,           # OUT (K, N_pad)
):
    """A sweep that tempers each logit a only where it exceeds its limits, k by k.

    Let t = centre + b (a - centre).  The new logit is a if a lies within [lower, upper].
    Otherwise it is the limit or t, whichever lies further from the centre.  The inverse
    temperature (logit - centre) / (a - centre) is written to `inverse`.
    """
    cdef:
        Py_ssize_t n_blocks = nu.shape[1] // DATA_BLOCK, block, at
        int K = nu.shape[0]
        int64_t stride = nu.shape[1]
    if K == 0:
        return
    for block in prange(n_blocks, nogil=True, num_threads=n_threads, schedule="static"):
        at = block * DATA_BLOCK
        if floating is float:
            kernels.f32.bernoulli_held_sweep(
                K, stride, &projection[0, at], &coupling[0, 0], &offset[0], scale, b, &centre[0],
                &lower[0, at], &upper[0, at], &nu[0, at], &inverse[0, at])
        else:
            kernels.f64.bernoulli_held_sweep(
                K, stride, &projection[0, at], &coupling[0, 0], &offset[0], scale, b, &centre[0],
                &lower[0, at], &upper[0, at], &nu[0, at], &inverse[0, at])


def energy(
    const floating[:, ::1] projection,  # IN  (K, N_pad)
    const floating[:, ::1] coupling,    # IN  (K, K), diagonal 0
    const floating[::1] offset,         # IN  (K,)
    floating scale,                     # IN
    const floating[:, ::1] nu,          # IN  (K, N_pad)
    int n_threads,                      # IN
    double[::1] out,                    # OUT (N_pad,) sum_k nu linear - sum_{k<j} nu nu coupling
):
    """Expected energy of each datum."""
    cdef:
        Py_ssize_t n_blocks = nu.shape[1] // DATA_BLOCK, block, at
        int K = nu.shape[0]
        int64_t stride = nu.shape[1]
    if K == 0:
        return
    for block in prange(n_blocks, nogil=True, num_threads=n_threads, schedule="static"):
        at = block * DATA_BLOCK
        if floating is float:
            kernels.f32.bernoulli_energy(
                K, stride, &projection[0, at], &coupling[0, 0], &offset[0], scale, &nu[0, at],
                &out[at])
        else:
            kernels.f64.bernoulli_energy(
                K, stride, &projection[0, at], &coupling[0, 0], &offset[0], scale, &nu[0, at],
                &out[at])


def entropy(
    const floating[:, ::1] nu,  # IN  (K, N_pad)
    int n_threads,              # IN
    double[::1] out,            # OUT (N_pad,)
):
    """Entropy of the factors of each datum."""
    cdef:
        Py_ssize_t n_blocks = nu.shape[1] // DATA_BLOCK, block, at
        int K = nu.shape[0]
        int64_t stride = nu.shape[1]
    if K == 0:
        return
    for block in prange(n_blocks, nogil=True, num_threads=n_threads, schedule="static"):
        at = block * DATA_BLOCK
        if floating is float:
            kernels.f32.bernoulli_entropy(K, stride, &nu[0, at], &out[at])
        else:
            kernels.f64.bernoulli_entropy(K, stride, &nu[0, at], &out[at])
