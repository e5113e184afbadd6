"""The gamma draws of numpy.random.RandomState, from its state."""

from libc.stdint cimport int64_t, uint32_t

cdef extern from "legacy_gamma.h" nogil:
    enum:
        MT_WORDS
    ctypedef struct legacy_state:
        uint32_t *key
        int pos
        int has_gauss
        double gauss
    void legacy_gamma_draws(
        legacy_state *state, double shape, double scale, int64_t n, double *out) noexcept

N_WORDS = MT_WORDS


def legacy_gamma(
    uint32_t[::1] key,  # IN/OUT (N_WORDS,) the words of MT19937
    int pos,            # IN  how many of them have been used
    bint has_gauss,     # IN  whether a normal number is left, and which
    double gauss,       # IN
    double shape,       # IN  > 1
    double scale,       # IN
    double[::1] out,    # OUT (n,) Gamma(shape, scale)
):
    """Draw as RandomState.gamma does; return its state's pos, has_gauss and gauss."""
    cdef:
        legacy_state state
        Py_ssize_t n = out.shape[0]
    state.key = &key[0]
    state.pos = pos
    state.has_gauss = has_gauss
    state.gauss = gauss
    if n:
        with nogil:
            legacy_gamma_draws(&state, shape, scale, n, &out[0])
    return state.pos, state.has_gauss, state.gauss
