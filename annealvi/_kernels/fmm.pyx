"""The coordinate updates of the Bernoulli factors of the factorial mixture model, for all data.

The arithmetic is in ``fmm_rows.h``.  Threads compute blocks of data, which do not depend on each
other, so every result is bit-identical for any number of threads.  Matrices have K rows of N
numbers, padded to whole blocks of DATA_BLOCK data.  The padding is overwritten with meaningless
numbers.
"""

from cython cimport floating, view
from libc.string cimport memset

from annealvi._kernels._dispatch cimport DATA_BLOCK, bernoulli_t, kernels

BLOCK = DATA_BLOCK


cdef bernoulli_t factors(
    const floating[:, ::1] projection, const floating[:, ::1] coupling, const floating[::1] offset,
    floating scale, const floating[:, ::1] nu, int n_threads,
):
    """The arguments of all functions below; K is 0 if there is nothing to do."""
    cdef bernoulli_t own
    memset(&own, 0, sizeof(bernoulli_t))
    own.K, own.stride, own.scale, own.n_threads = nu.shape[0], nu.shape[1], scale, n_threads
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
    """Set logit nu_kn to b (offset_k + scale projection_kn - sum_j coupling_kj nu_jn).

    The components k are updated one after another.  The inverse temperature b is one number, or
    one for each row, datum or element.
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
    """Update nu as in `sweep`, but temper a logit a only if it exceeds its limits.

    Let t = centre + b (a - centre).  If a is within [lower, upper], the new logit is a.  Otherwise
    it is the limit or t, the one that is farther from the centre.  The inverse temperature
    (logit - centre) / (a - centre) is written to `inverse`.
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
    """Compute the expected energy of each datum."""
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
    """Compute the entropy of the factors of each datum."""
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
