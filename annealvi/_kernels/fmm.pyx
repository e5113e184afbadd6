"""The Bernoulli coordinate updates of the factorial mixture model over all data.

The arithmetic is in ``fmm_rows.h``.  Data are shared out among threads in blocks, and no block
reads what another one writes, so every result is bit-identical for any number of threads.
Matrices are component-major: K rows of N numbers, padded to whole blocks of DATA_BLOCK data.  The
padding is overwritten with meaningless numbers.
"""

from cython cimport floating, view

from annealvi._kernels._dispatch cimport DATA_BLOCK, bernoulli_t, kernels

BLOCK = DATA_BLOCK


cdef bernoulli_t factors(
    const floating[:, ::1] projection, const floating[:, ::1] coupling, const floating[::1] offset,
    floating scale, const floating[:, ::1] nu, int n_threads,
):
    """What all functions below are given; K is 0 if there is nothing to do."""
    cdef bernoulli_t own
    own.K, own.stride, own.scale, own.n_threads = nu.shape[0], nu.shape[1], scale, n_threads
    own.centre = own.lower = own.upper = own.inverse = NULL
    own.b_row = own.b_each = 0
    if nu.shape[1] == 0:
        own.K = 0
    if own.K > 0:
        own.projection, own.coupling = &projection[0, 0], &coupling[0, 0]
        own.offset, own.nu = &offset[0], <void *>&nu[0, 0]
    return own


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
    cdef bernoulli_t all = factors(projection, coupling, offset, scale, nu, n_threads)
    if all.K == 0:
        return
    all.b, all.b_each = &b[0, 0], b.shape[1] > 1
    if b.shape[0] > 1:
        all.b_row = b.strides[0] // <Py_ssize_t>sizeof(floating)
    with nogil:
        kernels.real[sizeof(floating) == 8].bernoulli_sweep(&all)


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
    cdef bernoulli_t all = factors(projection, coupling, offset, scale, nu, n_threads)
    if all.K == 0:
        return
    all.b, all.centre, all.inverse = &b, &centre[0], &inverse[0, 0]
    all.lower, all.upper = &lower[0, 0], &upper[0, 0]
    with nogil:
        kernels.real[sizeof(floating) == 8].bernoulli_sweep(&all)


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
    cdef bernoulli_t all = factors(projection, coupling, offset, scale, nu, n_threads)
    if all.K == 0:
        return
    all.out = &out[0]
    with nogil:
        kernels.real[sizeof(floating) == 8].bernoulli_energy(&all)


def entropy(
    const floating[:, ::1] nu,  # IN  (K, N_pad)
    int n_threads,              # IN
    double[::1] out,            # OUT (N_pad,)
):
    """Entropy of the factors of each datum."""
    cdef:
        const floating[::1] none
        bernoulli_t all
    if nu.shape[0] == 0 or nu.shape[1] == 0:
        return
    none = nu[0]
    all = factors(nu, nu, none, 1, nu, n_threads)
    all.out = &out[0]
    with nogil:
        kernels.real[sizeof(floating) == 8].bernoulli_entropy(&all)
