"""Damaged and forged files: random changes of bytes, and of trees whose checksum is right."""

import copy
import signal
import warnings
from collections import Counter
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
OTHERS = [None, True, False, [], {}, [[]], {"type": "tuple", "items": 3}]
SHAPES = [(), (0,), (3,), (4, 4), (2**40, 0), (624,), (1, 1, 1)]
DTYPES = ["f4", "f8", "i4", "i8", "u1", "u8", "?"]
#: Parameters that set the size or the time of later work, as they do for a user who gives them.
COSTLY = {"grid", "rounds", "max_doc_update_iter", "n_jobs", "max_iter", "inference_iter"}


class HangError(Exception):
    """A file made a call take too long."""


def one_of(rng, values):
    return values[int(rng.integers(len(values)))]


def mutated_bytes(content, rng):
    """A copy of a file with one kind of damage."""
    data, kind = bytearray(content), rng.integers(6)
    place, some = int(rng.integers(len(data))), rng.bytes(int(rng.integers(1, 40)))
    if kind == 0:
        data[place] ^= 1 << int(rng.integers(8))
    elif kind == 1:  # the length of the header, and what follows it
        data[int(rng.integers(min(400, len(data))))] = int(rng.integers(256))
    elif kind == 2:
        del data[place:]
    else:  # replace, insert or delete some
        end = place if kind == 4 else place + len(some)
        data[place:end] = some if kind != 5 else b""
    return bytes(data)


def mutated_tree(tree, rng, n_changes=1):
    """A copy of a tree with changes at random places, and the places."""
    tree, ways = copy.deepcopy(tree), []
    for _ in range(n_changes):
        places = list(_places(tree))
        parent, key, way = one_of(rng, places)
        ways.append(".".join(map(str, way)))
        kind = rng.integers(10)
        if kind == 0 and isinstance(parent, dict):
            del parent[key]
        elif kind == 1:
            other, source, _ = one_of(rng, places)
            parent[key] = copy.deepcopy(other[source])
        elif kind == 2 and isinstance(parent, dict):
            parent[one_of(rng, STRINGS)] = parent.pop(key)
        else:
            with np.errstate(all="ignore"):  # casts of what does not fit
                parent[key] = _changed(parent[key], rng, capped=key in COSTLY)
    return tree, ways


def changed(tree, way, value):
    """A copy of a tree with another value at one place."""
    first, *rest = way.split(".", 1)
    return tree | {first: changed(tree[first], rest[0], value) if rest else value}


def _places(value, way=()):
    """Every value of a tree, with the dict or list that it is in."""
    parts = value.items() if isinstance(value, dict) else enumerate(value)
    for key, part in list(parts):
        yield value, key, (*way, key)
        if isinstance(part, dict | list):
            yield from _places(part, (*way, key))


def _changed(value, rng, capped):
    if isinstance(value, np.ndarray) and rng.random() < 0.8:
        return _changed_array(value, rng)
    if isinstance(value, list) and value and rng.random() < 0.5:
        return value[: int(rng.integers(len(value)))] * int(rng.integers(1, 3))
    if isinstance(value, int | float) and rng.random() < 0.3:
        return value + one_of(rng, [-1, 1])
    kind = rng.integers(8)
    if kind < 4:
        number = one_of(rng, NUMBERS)
        return min(number, 100) if capped and number == number else number
    if kind < 6:
        return one_of(rng, STRINGS if kind == 4 else OTHERS)
    return np.ones(one_of(rng, SHAPES), one_of(rng, DTYPES))


def _changed_array(array, rng):
    kind, numbers = rng.integers(8), array.dtype.kind in "fiub"
    if kind == 0:
        return array.astype(one_of(rng, DTYPES)) if numbers else array[:0]
    if kind == 1:
        return array[:-1].copy() if array.ndim else array.reshape(1)
    if kind == 2:
        return np.concatenate([array, array[:1]]) if array.ndim else array[None]
    if kind == 3:
        return np.ascontiguousarray(array.T)
    if kind == 4:
        return array.reshape(-1)
    array = array.copy()
    if array.size and numbers:
        some = rng.integers(array.size, size=1 if kind < 7 else array.size)
        array.reshape(-1)[some] = np.array(float(one_of(rng, NUMBERS))).astype(array.dtype)
    return array


def outcome(open_file, use, seconds=10):
    """Open a file and use what it holds: "refused", "sound", or what went wrong.

    `open_file` returns what the file holds, or raises ValueError.  `use` takes that, and returns
    arrays and numbers, which must be finite; it may raise the errors of bad parameters.  A call
    that takes more seconds is a hang.
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


def outcomes(tree, n, open_tree, use):
    """How many of n random changes of a tree were refused and how many are sound; fails else."""
    rng, counts = np.random.default_rng(0), Counter()
    for _ in range(n):
        forged, ways = mutated_tree(tree, rng, int(rng.choice([1, 1, 1, 2, 5])))
        found = outcome(lambda: open_tree(forged), use)  # noqa: B023
        assert found in {"refused", "refused in use", "sound"}, (ways, found)
        counts[found] += 1
    return counts


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
