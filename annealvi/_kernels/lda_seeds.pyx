"""Functions for the starts of topics: RandomState's gamma draws, and the loops of k-means++."""

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
    """Draw the numbers of RandomState.gamma; return pos, has_gauss and gauss of its new state."""
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


def join_centre(
    const double[::1] centre,       # IN  the entries of the centre, a unit vector over words
    const int64_t[::1] words,       # IN  and their words
    const double[::1] values,       # IN  the entries of all documents, by word
    const int64_t[::1] documents,   # IN  and their documents
    const int64_t[::1] first,       # IN  (V + 1,) where each word's entries start, and the end
    double same,                    # IN  smaller distances become 0
    double[::1] distance,           # IN/OUT (n,) 1 - cosine to the nearest centre
    double[::1] cosine,             # OUT (n,) to this one
    int64_t[::1] nearest,           # OUT (m,) the documents with the largest cosines, m <= n
):
    """Compute all cosines to a centre, the documents nearest to it, and the new distances.

    A cosine is a sum over the words of the centre, in their order.  Of documents with equal
    cosines, the first ones count as nearer.
    """
    cdef:
        Py_ssize_t n = distance.shape[0], m = nearest.shape[0], filled = 0, i, e, d, at
        double value
    with nogil:
        for d in range(n):
            cosine[d] = 0
        for i in range(words.shape[0]):
            value = centre[i]
            for e in range(first[words[i]], first[words[i] + 1]):
                cosine[documents[e]] += value * values[e]
        for d in range(n):
            value = cosine[d]
            distance[d] = min(distance[d], 1 - value)
            if distance[d] < same:
                distance[d] = 0
            if filled == m and (m == 0 or value <= cosine[nearest[m - 1]]):
                continue
            at = filled if filled < m else m - 1
            while at > 0 and value > cosine[nearest[at - 1]]:
                nearest[at] = nearest[at - 1]
                at -= 1
            nearest[at] = d
            filled += filled < m
