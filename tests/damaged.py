"""Sparse matrices that SciPy would not make, by what is wrong with them; and odd but sound ones."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from scipy import sparse

from annealvi.datasets import make_topic_corpus

#: Word counts, with at least two words in each document and no empty document.
X = make_topic_corpus(12, 20, 3, document_length=20, random_state=0).data
N, V = X.shape


def changed(Z, **attributes):
    """The matrix with other attributes; a callable is given the old value."""
    for name, value in attributes.items():
        setattr(Z, name, value(getattr(Z, name)) if callable(value) else value)
    return Z


def put(place, value):
    """Change one element."""

    def change(array):
        array = array.copy()
        array[place] = value
        return array

    return change


def with_dtype(dtype):
    return lambda array: array.astype(dtype)


def falls(dtype, peak):
    """An indptr that rises to a peak, in the place of its second entry, and falls again."""

    def change(indptr):
        indptr = indptr.astype(dtype)
        indptr[1] = peak
        return indptr

    return change


def wraps(dtype):
    """An indptr whose differences all are positive if they wrap."""

    def change(indptr):
        info = np.iinfo(dtype)
        indptr = indptr.astype(dtype)
        indptr[1:4] = info.max, info.min, -1
        return indptr

    return change


def two_rows(array):
    return np.stack([array, array])


def _of_one_axis(format, limit):
    """What can be wrong with the three arrays of CSR or CSC, whose indices are below a limit."""
    ends = {
        "falls, uint8": dict(indptr=falls(np.uint8, 250)),
        "falls, uint32": dict(indptr=falls(np.uint32, 2**32 - 2)),
        "falls, uint64": dict(indptr=falls(np.uint64, 2**63)),
        "falls": dict(indptr=falls(np.int32, 10**6)),
        "falls at the end": dict(indptr=put(-1, 0)),
        "wraps, int32": dict(indptr=wraps(np.int32)),
        "wraps, int64": dict(indptr=wraps(np.int64)),
        "begins below 0": dict(indptr=put(0, -2)),
        "begins above 0": dict(indptr=put(0, 1)),
        "ends too late": dict(indptr=put(-1, X.nnz + 1)),
        "ends far too late": dict(indptr=put(-1, 2**31 - 1)),
        "short": dict(indptr=lambda a: a[:-1]),
        "long": dict(indptr=lambda a: np.append(a, a[-1])),
        "empty": dict(indptr=lambda a: a[:0]),
        "float": dict(indptr=with_dtype(float)),
        "bool": dict(indptr=with_dtype(bool)),
        "object": dict(indptr=with_dtype(object)),
        "two dimensions": dict(indptr=two_rows),
        "list": dict(indptr=lambda a: a.tolist()),
        "none": dict(indptr=None),
    }
    inside = {
        "one too large": dict(indices=put(5, limit)),
        "last too large": dict(indices=put(-1, limit)),
        "far too large": dict(indices=put(5, 10**6)),
        "beyond int32": dict(indices=lambda a: put(5, 2**40)(a.astype(np.int64))),
        "negative": dict(indices=put(5, -1)),
        "very negative": dict(indices=put(5, -(2**31))),
        "uint8": dict(indices=with_dtype(np.uint8)),
        "uint32": dict(indices=with_dtype(np.uint32)),
        "uint64": dict(indices=with_dtype(np.uint64)),
        "float": dict(indices=with_dtype(float)),
        "NaN": dict(indices=lambda a: np.full(len(a), np.nan)),
        "bool": dict(indices=with_dtype(bool)),
        "object": dict(indices=with_dtype(object)),
        "times": dict(indices=with_dtype("m8[s]")),
        "text": dict(indices=with_dtype(str)),
        "short": dict(indices=lambda a: a[:-1]),
        "long": dict(indices=lambda a: np.append(a, 0)),
        "empty": dict(indices=lambda a: a[:0]),
        "two dimensions": dict(indices=two_rows),
        "no dimension": dict(indices=np.array(3)),
        "none": dict(indices=None),
    }
    values = {
        "short": dict(data=lambda a: a[:-1]),
        "half": dict(data=lambda a: a[: len(a) // 2]),
        "long": dict(data=lambda a: np.append(a, 1.0)),
        "empty": dict(data=lambda a: a[:0]),
        "object": dict(data=with_dtype(object)),
        "text": dict(data=with_dtype(str)),
        "times": dict(data=with_dtype("m8[s]")),
        "complex": dict(data=with_dtype(complex)),
        "records": dict(data=lambda a: np.zeros(len(a), "f8,f8")),
        "two dimensions": dict(data=two_rows),
        "list": dict(data=lambda a: a.tolist()),
        "none": dict(data=None),
    }
    shapes = {
        "fewer columns": dict(_shape=(N, V - 3)),
        "no columns": dict(_shape=(N, 0)),
        "fewer rows": dict(_shape=(N - 1, V)),
        "more rows": dict(_shape=(N + 1, V)),
        "very many rows": dict(_shape=(2**62, V)),
        "no rows": dict(_shape=(0, V)),
        "negative": dict(_shape=(-N, V)),
        "float": dict(_shape=(float(N), V)),
        "NaN": dict(_shape=(N, float("nan"))),
        "text": dict(_shape=(N, "20")),
        "beyond int64": dict(_shape=(N, 2**70)),
        "one dimension": dict(_shape=(N,)),
        "three dimensions": dict(_shape=(N, V, 1)),
        "none": dict(_shape=None),
    }
    return {
        f"{array}: {name}": attributes
        for array, kinds in {
            "indptr": ends,
            "indices": inside,
            "data": values,
            "shape": shapes,
        }.items()
        for name, attributes in kinds.items()
        # a CSC matrix may have any number of rows that its indices allow
        if not (format == "csc" and array == "shape" and "rows" in name)
    }


def _pairs():
    """COO."""
    kinds = {
        "row too large": dict(row=put(3, N)),
        "row far too large": dict(row=put(3, 2**31 - 1)),
        "row negative": dict(row=put(3, -1)),
        "column too large": dict(col=put(3, V)),
        "column negative": dict(col=put(3, -(2**31))),
        "column unsigned": dict(col=with_dtype(np.uint32)),
        "column float": dict(col=with_dtype(float)),
        "row object": dict(row=with_dtype(object)),
        "rows short": dict(row=lambda a: a[:5]),
        "columns long": dict(col=lambda a: np.append(a, 0)),
    }
    for name, changes in kinds.items():
        Z = X.tocoo()
        arrays = {key: changes.get(key, np.copy)(getattr(Z, key)) for key in ("row", "col")}
        if hasattr(Z, "coords"):
            # from SciPy 1.13 on; assignments to row and col convert there
            arrays = dict(coords=tuple(arrays.values()))
        yield f"coo, {name}", changed(Z, **arrays)
    for name, attributes in {
        "data short": dict(data=lambda a: a[:5]),
        "data long": dict(data=lambda a: np.append(a, 1.0)),
        "data none": dict(data=None),
        "data of two dimensions": dict(data=two_rows),
        "fewer rows": dict(_shape=(N - 1, V)),
        "fewer columns": dict(_shape=(N, V - 1)),
        "float shape": dict(_shape=(N, float(V))),
    }.items():
        yield f"coo, {name}", changed(X.tocoo(), **attributes)


def _blocks():
    """BSR, of blocks of 2 x 4."""
    block_rows, block_columns = N // 2, V // 4
    kinds = {
        "indices too large": dict(indices=put(2, block_columns)),
        "indices negative": dict(indices=put(2, -1)),
        "indices short": dict(indices=lambda a: a[:3]),
        "indptr falls": dict(indptr=falls(np.int32, 10**6)),
        "indptr unsigned": dict(indptr=falls(np.uint8, 250)),
        "indptr wraps": dict(indptr=wraps(np.int32)),
        "indptr too late": dict(indptr=put(-1, 10**5)),
        "indptr short": dict(indptr=lambda a: a[: block_rows - 1]),
        "data short": dict(data=lambda a: a[:2]),
        "data in one dimension": dict(data=np.ravel),
        "data of empty blocks": dict(data=lambda a: a[:, :0]),
        "data of other blocks": dict(data=lambda a: np.ones((len(a), 5, 4))),
        "more rows": dict(_shape=(N + 2, V)),
        "fewer columns": dict(_shape=(N, V - 4)),
    }
    for name, attributes in kinds.items():
        yield f"bsr, {name}", changed(sparse.bsr_matrix(X, blocksize=(2, 4)), **attributes)


def _diagonals():
    kinds = {
        "offsets short": dict(offsets=lambda a: a[:2]),
        "offsets long": dict(offsets=lambda a: np.append(a, 0)),
        "offsets float": dict(offsets=with_dtype(float)),
        "offsets unsigned": dict(offsets=with_dtype(np.uint32)),
        "offsets repeated": dict(offsets=np.zeros_like),
        "offsets none": dict(offsets=None),
        "data short": dict(data=lambda a: a[:2]),
        "data in one dimension": dict(data=np.ravel),
        "shape negative": dict(_shape=(-3, V)),
    }
    for name, attributes in kinds.items():
        yield f"dia, {name}", changed(X.todia(), **attributes)


def _lists():
    def rows(change):
        Z = X.tolil()
        change(Z)
        return Z

    yield "lil, column too large", rows(lambda Z: Z.rows[2].__setitem__(-1, V))
    yield "lil, column negative", rows(lambda Z: Z.rows[2].__setitem__(0, -1))
    yield "lil, column beyond int64", rows(lambda Z: Z.rows[2].__setitem__(0, 2**70))
    yield "lil, columns short", rows(lambda Z: Z.rows[2].pop())
    yield "lil, values short", rows(lambda Z: Z.data[2].pop())
    yield "lil, values long", rows(lambda Z: Z.data[2].extend([1.0] * 9999))
    yield "lil, values of text", rows(lambda Z: Z.data[2].__setitem__(0, "word"))
    yield "lil, values nested", rows(lambda Z: Z.data[2].__setitem__(0, [1.0, 2.0]))
    yield "lil, a row of none", rows(lambda Z: Z.rows.__setitem__(2, None))
    yield "lil, fewer rows", changed(X.tolil(), rows=lambda a: a[:-1])
    yield "lil, no rows", changed(X.tolil(), rows=None)
    yield "lil, numbers for rows", changed(X.tolil(), rows=lambda a: np.arange(len(a)))
    yield "lil, shape", changed(X.tolil(), _shape=(N + 5, V))


def _keys():
    for name, key in {
        "row too large": (N, 0),
        "column too large": (0, V),
        "column far too large": (0, 2**40),
        "column negative": (0, -1),
        "a key of text": "word",
    }.items():
        Z = X.todok()
        Z._dict[key] = 1.0
        yield f"dok, {name}", Z


def unsound():
    """Matrices whose structure is damaged, with a name for each.

    Yields
    ------
    name : str
    matrix : sparse matrix
    """
    for format, limit in {"csr": V, "csc": N}.items():
        for name, attributes in _of_one_axis(format, limit).items():
            yield f"{format}, {name}", changed(X.asformat(format, copy=True), **attributes)
        for name in ("data", "indices", "indptr"):
            Z = X.asformat(format, copy=True)
            delattr(Z, name)
            yield f"{format}, without {name}", Z
    for name, attributes in _of_one_axis("csr", V).items():
        if name.startswith("ind"):  # integers, which scikit-learn has SciPy convert
            yield f"csr of int32, {name}", changed(X.astype(np.int32), **attributes)
    for pairs in (_pairs, _blocks, _diagonals, _lists, _keys):
        yield from pairs()


def odd():
    """Unusual matrices that are equal to X, with a name for each.

    Yields
    ------
    name : str
    matrix : sparse matrix
    """
    arrays = ("data", "indices", "indptr")
    layouts = {
        "strided": lambda a: np.repeat(a, 2)[::2],
        "reversed": lambda a: a[::-1].copy()[::-1],
        "read-only": read_only,
        "other byte order": lambda a: a.astype(a.dtype.newbyteorder()),
        "unaligned": unaligned,
    }
    for name, layout in layouts.items():
        yield f"all arrays {name}", changed(X.copy(), **dict.fromkeys(arrays, layout))
        for array in arrays:
            yield f"{array} {name}", changed(X.copy(), **{array: layout})
    for dtype in (np.int8, np.int16, np.int64):
        for array in ("indices", "indptr"):
            convert = with_dtype(np.int64 if array == "indptr" and dtype == np.int8 else dtype)
            yield f"{array} of {dtype.__name__}", changed(X.copy(), **{array: convert})
    for dtype in (np.int8, np.uint8, np.int64, np.float32, np.longdouble):
        for format in ("csr", "csc", "coo", "bsr", "lil", "dok", "dia"):
            yield f"{format} of {dtype.__name__}", X.astype(dtype).asformat(format)
    for format in ("csr", "csc", "coo", "bsr", "dia"):
        halves = changed(X.asformat(format, copy=True), data=with_dtype(np.float16))
        yield f"{format} of float16, which SciPy does not make", halves
    for format in ("csr", "csc", "coo", "bsr", "lil", "dok", "dia"):
        yield format, X.asformat(format)
        yield f"{format} array", getattr(sparse, f"{format}_array")(X)
    yield (
        "entries beyond the last row",
        changed(
            X.copy(),
            data=lambda a: np.append(a, [np.nan, -1.0]),
            indices=lambda a: np.append(a, [V, -1]),
        ),
    )
    backwards = X.copy()
    for start, stop in pairwise(X.indptr):
        for array in (backwards.indices, backwards.data):
            array[start:stop] = array[start:stop][::-1].copy()
    backwards.has_sorted_indices = backwards.has_canonical_format = True
    yield "out of order, flagged as sorted", backwards
    Z = X.copy()
    Z.has_sorted_indices = Z.has_canonical_format = False
    yield "flagged as out of order", Z
    twice = sparse.csr_matrix(
        (np.repeat(X.data / 2, 2), np.repeat(X.indices, 2), 2 * X.indptr), shape=X.shape
    )
    twice.has_canonical_format = True
    yield "duplicates, flagged as none", twice
    columns = twice.tocsc()
    columns.has_canonical_format = True
    yield "csc with duplicates, flagged as none", columns
    yield "a subclass", type("Mine", (sparse.csr_matrix,), {})(X)
    far = X.todia()
    offsets = np.append(far.offsets, [V, -N, 2**31 - 1])
    data = np.vstack([far.data, np.full((3, far.data.shape[1]), 7.0)])
    yield "dia with diagonals outside", sparse.dia_matrix((data, offsets), shape=X.shape)


def read_only(array):
    array = array.copy()
    array.flags.writeable = False
    return array


def unaligned(array):
    room = np.empty(array.nbytes + 1, np.uint8)
    shifted = room[1:].view(array.dtype)
    shifted[:] = array
    return shifted
