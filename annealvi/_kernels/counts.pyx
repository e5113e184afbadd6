"""A fast check of a CSR matrix of counts, for streams of documents."""

from cython cimport floating
from libc.math cimport INFINITY
from libc.stdint cimport int64_t

from annealvi._kernels._dispatch cimport index_t


def are_plain(
    const floating[::1] data,    # IN  the counts
    const index_t[::1] indices,  # IN  column indices
    const index_t[::1] indptr,   # IN  (n + 1,) row pointers
    int64_t n_features,          # IN
):
    """Return whether the arrays are a valid CSR matrix of counts with sorted rows.

    Row pointers must rise from 0 to the number of entries.  The columns of each row must rise, from
    at least 0 to below n_features.  Counts must be finite and not negative.
    """
    cdef:
        Py_ssize_t n_rows = indptr.shape[0] - 1, n_entries = data.shape[0], d, i, start, stop
        bint sound = True
    if n_rows < 0 or indices.shape[0] != n_entries:
        return False
    if indptr[0] != 0 or indptr[n_rows] != n_entries:
        return False
    with nogil:
        for d in range(n_rows):
            start, stop = indptr[d], indptr[d + 1]
            if start > stop or stop > n_entries:
                sound = False
                break
            for i in range(start + 1, stop):
                sound &= indices[i] > indices[i - 1]
            if stop > start:  # columns rise, so these are the least and the largest column
                sound &= indices[start] >= 0 and indices[stop - 1] < n_features
        for i in range(n_entries):
            sound &= (data[i] >= 0) & (data[i] < INFINITY)  # this is false for NaN
    return sound
