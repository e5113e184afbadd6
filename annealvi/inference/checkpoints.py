"""What all checkpoints have: which estimator, parameters and data they belong to."""

from __future__ import annotations

import hashlib
import os
import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.random import RandomState
from scipy import sparse
from sklearn.utils import check_random_state

from annealvi._version import __version__
from annealvi.exceptions import InconsistentVersionWarning
from annealvi.files import Node, read, restore_generator, write
from annealvi.files.parameters import parameter_tree
from annealvi.files.schema import Integer, Listed, Schema, Text, Tree
from annealvi.scale.elsewhere import Elsewhere

#: The kind of these files.
KIND = "checkpoint"
#: Parameters that may differ when a fit is resumed: they do not change its result.
FREE = frozenset({"callback", "checkpoint", "client", "n_jobs", "verbose"})
FINGERPRINT = Schema(
    estimator=Text(), parameters=Tree(), shape=Listed(Integer()), dtype=Text(), X=Text()
)
#: Number of elements that are hashed at a time.
BLOCK = 1 << 20


class Fingerprint:
    """The estimator, the parameters and the data of a fit.

    A fit is resumed only if all of them are the same as in the checkpoint.

    Parameters
    ----------
    estimator : object
        What is fitted; its parameters are kept as they are now.
    X : ndarray or sparse matrix
        The data.
    """

    def __init__(self, estimator: Any, X: Any) -> None:
        self.owner = type(estimator).__name__
        # as they are now: a callback may set others for the next fit
        self.parameters = dict(estimator.get_params(deep=False))
        self.X = X
        self._digest: str | None = None

    def state_dict(self) -> dict[str, Any]:
        """Return the fingerprint as a tree."""
        if self._digest is None:
            self._digest = digest(self.X)
        return {
            "estimator": self.owner,
            "parameters": self._parameters(),
            "shape": list(self.X.shape),
            "dtype": str(self.X.dtype),
            "X": self._digest,
        }

    def check(self, tree: Mapping[str, Any], path: str | os.PathLike) -> None:
        """Raise ValueError unless a checkpoint is one of this fit; name the first difference."""
        file, theirs = f"resume={os.fspath(path)!r}", FINGERPRINT.load(tree, "fit")
        if theirs["estimator"] != self.owner:
            named = theirs["estimator"][:80]
            raise ValueError(f"{file} is a checkpoint of {named}, not of {self.owner}.")
        ours, parameters = self.state_dict(), theirs["parameters"]
        for name, value in ours["parameters"].items():
            if name not in parameters or not same(parameters[name], value):
                had = _shown(parameters[name]) if name in parameters else "no such value"
                raise ValueError(
                    f"{file} is a checkpoint of a fit with another {name!r}: it has {had}, this "
                    f"{self.owner} has {_shown(value)}. A fit is resumed with the parameters that "
                    f"it began with; only {', '.join(sorted(FREE & self.parameters.keys()))} may "
                    "differ."
                )
        for what in ("shape", "dtype", "X"):
            if not same(theirs[what], ours[what]):
                had, have = _shown(theirs[what]), _shown(ours[what])
                differs = f"its {what} was {had}, that of X is {have}"
                if what == "X":
                    differs = "the numbers in X differ, or their order"
                raise ValueError(f"{file} is a checkpoint of a fit to another X: {differs}.")

    def _parameters(self) -> dict[str, Any]:
        trees = {}
        for name, value in sorted(self.parameters.items()):
            if name == "random_state" and isinstance(value, RandomState):
                trees[name] = "a RandomState"  # the checkpoint has its state
            elif name not in FREE:
                trees[name] = parameter_tree(value, name)
        return trees


def digest(X: Any) -> str:
    """SHA-256 of data; the dtype of a sparse matrix' indices makes no difference."""
    if isinstance(X, Elsewhere):
        return X.digest
    total = hashlib.sha256(str(X.dtype).encode())
    parts = [X.indptr, X.indices, X.data] if sparse.issparse(X) else [X]
    for number, part in enumerate(parts):
        dtype = np.dtype(np.int64) if sparse.issparse(X) and number < 2 else part.dtype
        flat = np.ascontiguousarray(part).reshape(-1)
        for start in range(0, flat.size, BLOCK):
            total.update(flat[start : start + BLOCK].astype(dtype, copy=False).view(np.uint8).data)
    return total.hexdigest()


def same(one: Any, other: Any) -> bool:
    """Return whether two trees are equal, arrays by dtype and elements, NaN to NaN."""
    if isinstance(one, np.ndarray) or isinstance(other, np.ndarray):
        return (
            isinstance(one, np.ndarray)
            and isinstance(other, np.ndarray)
            and (one.dtype, one.shape) == (other.dtype, other.shape)
            and one.tobytes() == other.tobytes()
        )
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, float) and isinstance(other, float) and np.isnan(one) and np.isnan(other):
        return True
    return isinstance(one, bool) == isinstance(other, bool) and bool(one == other)


def _shown(value: Any) -> str:
    """A tree in a few words."""
    if isinstance(value, np.ndarray):
        return f"an array of {value.dtype} of shape {value.shape} with other elements"
    if isinstance(value, dict):
        parts = value.get("parameters")
        inner = ", ".join(
            f"{name}={_shown(part)}"
            for name, part in (parts.items() if isinstance(parts, dict) else ())
        )
        return f"{value.get('type', 'a value')}({inner})"[:300]
    return repr(value)[:80]


def write_checkpoint(path: str | os.PathLike, tree: Mapping[str, Any]) -> None:
    """Write a checkpoint, see :func:`annealvi.files.write`."""
    write(path, KIND, tree)


def read_checkpoint(path: str | os.PathLike, owner: str) -> Node:
    """Read a checkpoint; warn if another version of annealvi wrote it."""
    content = read(path, KIND)
    if content["version"] != __version__:
        warnings.warn(
            InconsistentVersionWarning(
                estimator_name=owner,
                current_sklearn_version=__version__,
                original_sklearn_version=content["version"][:40],
            ),
            stacklevel=2,
        )
    return Node(content["tree"])


def begin_generator(random_state: Any, saved: Any) -> RandomState:
    """The generator of a fit at its beginning, for a resumed fit that of the checkpoint.

    A RandomState that is the parameter is set to the state that it had when the fit began.
    """
    if saved is None:
        return check_random_state(random_state)
    restored = restore_generator(saved) if isinstance(saved, Mapping) else saved
    if not isinstance(random_state, RandomState):
        return restored  # not the global generator, which None stands for otherwise
    random_state.set_state(restored.get_state(legacy=False))
    return random_state
