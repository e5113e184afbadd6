"""Damaged and forged files: random changes of bytes, and of trees whose checksum is right.

`outcome` says what became of a file that was opened and used.  Nothing here needs pytest, so that
`make fuzz` uses the same changes.
"""

import copy
import signal
import warnings
from contextlib import contextmanager

import numpy as np

#: What replaces a value.  "$" is the mark of the container, "__class__" no name of ours.
NUMBERS = [
    *(0, 1, -1, 2, 7, 255, 2**31 - 1, 2**31, 2**53, 2**63, 10**30),
    *(0.0, -0.0, 0.5, 1.5, -1.5, 1e-300, 5e-324, 1e300, 1.7e308, -1e308),
    *(float("nan"), float("inf"), float("-inf")),
]
STRINGS = [
    *("", "x", "\0", "$", "__class__", "posterior", "prior", "likelihood", "random", "warm"),
    *("constant", "batch", "online", "map", "variational", "float32", "float64", "learn", "auto"),
    *("sklearn", "annealvi", "annealed", "Variational", "RandomState", "tuple", "LogPartition"),
]
#: Parameters that set the size or the time of later work, as they do for a user who gives them.
COSTLY = {"grid", "rounds", "max_doc_update_iter", "n_jobs", "max_iter", "inference_iter"}
DTYPES = ["f4", "f8", "i4", "i8", "u1", "u8", "?"]


class HangError(Exception):
    """A file made a call take too long."""


def mutated_bytes(content, rng):
    """A copy of a file with one kind of damage."""
    data, kind = bytearray(content), rng.integers(6)
    place = int(rng.integers(len(data)))
    if kind == 0:
        data[place] ^= 1 << int(rng.integers(8))
    elif kind == 1:
        del data[place:]
    elif kind == 2:
        data[place : place + 8] = rng.bytes(8)
    elif kind == 3:
        data[place:place] = rng.bytes(int(rng.integers(1, 40)))
    elif kind == 4:
        del data[place : place + int(rng.integers(1, 40))]
    else:  # the length of the header, and what follows it
        data[int(rng.integers(min(400, len(data))))] = int(rng.integers(256))
    return bytes(data)


def mutated_tree(tree, rng, n_changes=1):
    """A copy of a tree with changes at random places, and the places."""
    tree, ways = copy.deepcopy(tree), []
    for _ in range(n_changes):
        places = list(_places(tree))
        parent, key, way = places[int(rng.integers(len(places)))]
        ways.append(".".join(map(str, way)))
        kind = rng.integers(10)
        if kind == 0 and isinstance(parent, dict):
            del parent[key]
        elif kind == 1:
            other, source, _ = places[int(rng.integers(len(places)))]
            parent[key] = copy.deepcopy(other[source])
        elif kind == 2 and isinstance(parent, dict):
            parent[str(rng.choice(STRINGS))] = parent.pop(key)
        else:
            with np.errstate(all="ignore"):  # casts of what does not fit
                parent[key] = _changed(parent[key], rng, capped=key in COSTLY)
    return _read_only(tree), ways


def _places(value, way=()):
    """Every value of a tree, with the dict or list that it is in."""
    parts = value.items() if isinstance(value, dict) else enumerate(value)
    for key, part in list(parts):
        yield value, key, (*way, key)
        if isinstance(part, dict | list):
            yield from _places(part, (*way, key))


def _changed(value, rng, capped=False):
    if isinstance(value, np.ndarray) and rng.random() < 0.8:
        return _changed_array(value, rng)
    if isinstance(value, list) and value and rng.random() < 0.5:
        return value[: int(rng.integers(len(value)))] * int(rng.integers(1, 3))
    if isinstance(value, bool) and rng.random() < 0.7:
        return not value
    if isinstance(value, int | float) and rng.random() < 0.3:
        return value + int(rng.choice([-1, 1]))
    kind = rng.integers(8)
    if kind < 4:
        number = NUMBERS[int(rng.integers(len(NUMBERS)))]
        return min(number, 100) if capped and number == number else number
    if kind == 4:
        return str(rng.choice(STRINGS))
    if kind == 5:
        return [None, True, False, [], {}, [[]], {"type": "tuple", "items": 3}][rng.integers(7)]
    return _random_array(rng)


def _random_array(rng):
    shape = [(), (0,), (3,), (4, 4), (2**40, 0), (624,), (1, 1, 1)][rng.integers(7)]
    return np.zeros(shape, str(rng.choice(DTYPES))) + np.array(1, "?")


def _changed_array(array, rng):
    kind = rng.integers(8)
    if kind == 0:
        return array.astype(str(rng.choice(DTYPES))) if array.dtype.kind in "fiub" else array[:0]
    if kind == 1:
        return array[:-1] if array.ndim else array.reshape(1)
    if kind == 2:
        return np.concatenate([array, array[:1]]) if array.ndim else array[None]
    if kind == 3:
        return np.ascontiguousarray(array.T)
    if kind == 4:
        return array.reshape(-1)
    array = array.copy()
    if array.size and array.dtype.kind in "fiub":
        flat = array.reshape(-1)
        some = rng.integers(array.size, size=1 if kind < 7 else array.size)
        number = NUMBERS[int(rng.integers(len(NUMBERS)))]
        with np.errstate(all="ignore"):
            if array.dtype.kind == "f":
                flat[some] = number
            else:
                limits = np.iinfo(array.dtype) if array.dtype.kind in "iu" else None
                low, high = (0, 1) if limits is None else (limits.min, limits.max)
                flat[some] = int(np.clip(np.nan_to_num(float(number)), low / 2, high / 2))
    return array


def _read_only(value):
    """Arrays as they are read: contiguous and read-only."""
    if isinstance(value, dict):
        return {key: _read_only(part) for key, part in value.items()}
    if isinstance(value, list):
        return [_read_only(part) for part in value]
    if isinstance(value, np.ndarray):
        value = np.ascontiguousarray(value).reshape(value.shape)
        value.flags.writeable = False
    return value


def outcome(open_file, use, seconds=10):
    """Open a file and use what it holds: "refused", "sound", or what went wrong.

    Parameters
    ----------
    open_file : callable
        Returns what the file holds.  It may raise ValueError.
    use : callable
        Takes that, and returns arrays and numbers, which must be finite.  It may raise the errors
        of bad parameters.
    seconds : float
        A call that takes longer is a hang.
    """
    with warnings.catch_warnings(), time_limit(seconds), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            found = open_file()
        except ValueError as error:
            return "refused" if str(error) else "refused without a message"
        except BaseException as error:
            return f"opening it: {type(error).__name__}: {error}"
        try:
            values = use(found)
        except (ValueError, TypeError, OverflowError, MemoryError) as error:
            return "refused in use" if str(error) else "refused without a message"
        except BaseException as error:
            return f"in use: {type(error).__name__}: {error}"
    return "sound" if all(np.all(np.isfinite(value)) for value in values) else "not finite"


@contextmanager
def time_limit(seconds):
    """Raise `HangError` after so many seconds, in the main thread of a system with SIGALRM."""

    def stop(number, frame):
        raise HangError(f"more than {seconds} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
