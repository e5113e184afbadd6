"""Sparse matrices that SciPy would not make, by what is wrong with them; and odd but sound ones."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from scipy import sparse

from annealvi.datasets import make_topic_corpus

#: Word counts, with at least two words in each document and no empty document.
X = make_topic_corpus(12, 20, 3, document_length=20, random_state=0).data
N, V = X.shape
FORMATS = ("csr", "csc", "coo", "bsr", "lil", "dok", "dia")


def changed(Z, **attributes):
    """The matrix with other attributes; a callable is given the old value."""
    for name, value in attributes.items():
        setattr(Z, name, value(getattr(Z, name)) if callable(value) else value)
    return Z


def put(place, *values, dtype=None):
    """Change elements from a place on."""

    def change(array):
        array = array.astype(dtype or array.dtype)
        array[place : place + len(values) or None] = values
        return array

    return change


def with_dtype(dtype):
    return lambda array: array.astype(dtype)


def short(array):
    return array[:-1]


def wraps(dtype):
    """An indptr whose differences all are positive if they wrap."""
    info = np.iinfo(dtype)
    return put(1, info.max, info.min, -1, dtype=dtype)


#: What can be wrong with each array of CSR and CSC.
OF_ANY = {
    **{"short": short, "empty": lambda a: a[:0], "two dimensions": lambda a: np.stack([a, a])},
    **{"object": with_dtype(object), "none": None},
}
ARRAYS = {
    "indptr": {
        "falls, uint8": put(1, 250, dtype=np.uint8),
        "falls, uint64": put(1, 2**63, dtype=np.uint64),
        "falls": put(1, 10**6),
        "falls at the end": put(-1, 0),
        "wraps, int32": wraps(np.int32),
        "wraps, int64": wraps(np.int64),
        "begins below 0": put(0, -2),
        "begins above 0": put(0, 1),
        "ends too late": put(-1, X.nnz + 1),
        "long": lambda a: np.append(a, a[-1]),
        **{"float": with_dtype(float), "list": np.ndarray.tolist},
    },
    "indices": {
        "far too large": put(5, 10**6),
        "beyond int32": put(5, 2**40, dtype=np.int64),
        "negative": put(5, -1),
        "uint32": with_dtype(np.uint32),
        "float": with_dtype(float),
        "NaN": lambda a: np.full(len(a), np.nan),
        "times": with_dtype("m8[s]"),
        "long": lambda a: np.append(a, 0),
        "no dimension": np.array(3),
    },
    "data": {
        "long": lambda a: np.append(a, 1.0),
        "text": with_dtype(str),
        "complex": with_dtype(complex),
        "records": lambda a: np.zeros(len(a), "f8,f8"),
        "list": np.ndarray.tolist,
    },
    "_shape": {
        "fewer columns": (N, V - 3),
        "very many rows": (2**62, V),
        "no rows": (0, V),
        "negative": (-N, V),
        "float": (float(N), V),
        "NaN": (N, float("nan")),
        "text": (N, "20"),
        "beyond int64": (N, 2**70),
        "one dimension": (N,),
        "three dimensions": (N, V, 1),
    },
}
#: The same of the other formats, by attributes.
OTHERS = {
    "coo": {
        "row too large": dict(row=put(3, N)),
        "row negative": dict(row=put(3, -1)),
        "column too large": dict(col=put(3, V)),
        "column negative": dict(col=put(3, -(2**31))),
        "column unsigned": dict(col=with_dtype(np.uint32)),
        "row object": dict(row=with_dtype(object)),
        "rows short": dict(row=short),
        "data short": dict(data=short),
        "data none": dict(data=None),
        "fewer rows": dict(_shape=(N - 1, V)),
        "float shape": dict(_shape=(N, float(V))),
    },
    "bsr": {  # of blocks of 2 x 4
        "indices too large": dict(indices=put(2, V // 4)),
        "indices negative": dict(indices=put(2, -1)),
        "indices short": dict(indices=short),
        "indptr falls": dict(indptr=put(1, 10**6)),
        "indptr unsigned": dict(indptr=put(1, 250, dtype=np.uint8)),
        "indptr wraps": dict(indptr=wraps(np.int32)),
        "data short": dict(data=short),
        "data of other blocks": dict(data=lambda a: np.ones((len(a), 5, 4))),
        "fewer columns": dict(_shape=(N, V - 4)),
    },
    "dia": {
        "offsets short": dict(offsets=short),
        "offsets float": dict(offsets=with_dtype(float)),
        "offsets repeated": dict(offsets=np.zeros_like),
        "data short": dict(data=short),
        "shape negative": dict(_shape=(-3, V)),
    },
    "lil": {"fewer rows": dict(rows=short), "no rows": dict(rows=None)},
}
LISTS = {
    "column too large": lambda Z: Z.rows[2].__setitem__(-1, V),
    "column negative": lambda Z: Z.rows[2].__setitem__(0, -1),
    "column beyond int64": lambda Z: Z.rows[2].__setitem__(0, 2**70),
    "columns short": lambda Z: Z.rows[2].pop(),
    "values short": lambda Z: Z.data[2].pop(),
    "values long": lambda Z: Z.data[2].extend([1.0] * 9999),
    "values of text": lambda Z: Z.data[2].__setitem__(0, "word"),
    "values nested": lambda Z: Z.data[2].__setitem__(0, [1.0, 2.0]),
    "a row of none": lambda Z: Z.rows.__setitem__(2, None),
}
KEYS = {"row too large": (N, 0), "column too large": (0, 2**40), "column negative": (0, -1)}


def compressed(format):
    """What is wrong with CSR, or with CSC, whose indices are those of rows."""
    for array, kinds in ARRAYS.items():
        more = {"one too large": put(5, V if format == "csr" else N)} if array == "indices" else {}
        for name, value in (kinds | more | (OF_ANY if array != "_shape" else {})).items():
            if not (format == "csc" and "rows" in name):  # it may have any number of rows
                yield f"{array.strip('_')}: {name}", {array: value}


def unsound():
    """Matrices whose structure is damaged, with a name for each."""
    for format in ("csr", "csc"):
        for name, attributes in compressed(format):
            yield f"{format}, {name}", changed(X.asformat(format, copy=True), **attributes)
        for name in ("data", "indices", "indptr"):
            Z = X.asformat(format, copy=True)
            delattr(Z, name)
            yield f"{format}, without {name}", Z
    for name, attributes in compressed("csr"):
        if name.startswith("ind"):  # integers, which scikit-learn has SciPy convert
            yield f"csr of int32, {name}", changed(X.astype(np.int32), **attributes)
    for format, kinds in OTHERS.items():
        for name, attributes in kinds.items():
            Z = sparse.bsr_matrix(X, blocksize=(2, 4)) if format == "bsr" else X.asformat(format)
            if {"row", "col"} & attributes.keys() and hasattr(Z, "coords"):
                # from SciPy 1.13 on; assignments to row and col convert there
                arrays = (attributes.get(k, np.copy)(getattr(Z, k)) for k in ("row", "col"))
                attributes = dict(coords=tuple(arrays))
            yield f"{format}, {name}", changed(Z, **attributes)
    for name, change in LISTS.items():
        Z = X.tolil()
        change(Z)
        yield f"lil, {name}", Z
    for name, key in KEYS.items():
        Z = X.todok()
        Z._dict[key] = 1.0
        yield f"dok, {name}", Z


def odd():
    """Unusual matrices that are equal to X, with a name for each."""
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
    for dtype in (np.int16, np.int64):
        for array in ("indices", "indptr"):
            yield f"{array} of {dtype.__name__}", changed(X.copy(), **{array: with_dtype(dtype)})
    for format in FORMATS:
        yield format, X.asformat(format)
        yield f"{format} array", getattr(sparse, f"{format}_array")(X)
        for dtype in (np.int8, np.uint8, np.int64, np.float32, np.longdouble):
            yield f"{format} of {dtype.__name__}", X.astype(dtype).asformat(format)
        if format not in ("lil", "dok"):
            halves = changed(X.asformat(format, copy=True), data=with_dtype(np.float16))
            yield f"{format} of float16, which SciPy does not make", halves
    more = dict(data=lambda a: np.append(a, [np.nan, -1.0]))
    more["indices"] = lambda a: np.append(a, [V, -1])
    yield "entries beyond the last row", changed(X.copy(), **more)
    backwards = X.copy()
    for start, stop in pairwise(X.indptr):
        for array in (backwards.indices, backwards.data):
            array[start:stop] = array[start:stop][::-1].copy()
    backwards.has_sorted_indices = backwards.has_canonical_format = True
    yield "out of order, flagged as sorted", backwards
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
    shifted = np.empty(array.nbytes + 1, np.uint8)[1:].view(array.dtype)
    shifted[:] = array
    return shifted
