"""Fitted estimators in files: save and load, without pickle."""

from __future__ import annotations

import importlib
import os
from typing import Any

from sklearn.utils.validation import check_is_fitted

from annealvi._optional import import_optional
from annealvi.files import Node, read, write
from annealvi.temperature.parameters import parameter_tree, parameter_value

#: The kind of these files.
KIND = "estimator"
#: The estimators that a file can hold, and the module of each.
ESTIMATORS = {
    "TemperedLDA": "annealvi.lda",
    "TemperedFMM": "annealvi.mixtures",
    "TemperedGaussianMixture": "annealvi.mixtures",
}
#: The same for those on PyTorch.
DEEP: dict[str, str] = {}
#: Parameters that are not written.
LEFT_OUT = frozenset({"callback"})


def save(estimator: Any, path: str | os.PathLike) -> None:
    """Write a fitted estimator to a file.

    The file is in the safetensors format and holds arrays, numbers and strings only, so that
    reading it executes nothing.  What :func:`load` returns predicts, scores and goes on with
    `partial_fit` as the estimator does, to the last bit.

    Parameters
    ----------
    estimator : TemperedLDA, TemperedFMM, TemperedGaussianMixture or an estimator of annealvi.deep
        It must be fitted.
    path : path
        The file to write.  An existing file is replaced only once the new one is complete.

    Raises
    ------
    NotFittedError
        If the estimator is not fitted.
    TypeError
        If it is of another class, or a parameter cannot be written: one that is neither None, a
        number, a string, an array or list of these, a temperature of annealvi, a LogPartition nor
        a RandomState.
    OSError
        If the file cannot be written.

    Notes
    -----
    Callbacks are not written: the loaded estimator has ``callback=None``.  Of a RandomState its
    present state is written; the loaded estimator has a generator of its own in that state.
    The choice made
    with ``set_output`` is not written.

    Examples
    --------
    >>> import annealvi
    >>> from annealvi.datasets import load_arxiv_abstracts
    >>> X = load_arxiv_abstracts().data[:200]
    >>> lda = annealvi.TemperedLDA(5, max_iter=1, random_state=0).fit(X)
    >>> annealvi.save(lda, "topics.safetensors")  # doctest: +SKIP
    """
    owner = type(estimator).__name__
    if owner not in ESTIMATORS | DEEP or type(estimator) is not _class(owner):
        raise TypeError(f"Only estimators of annealvi can be saved. Got {estimator!r}.")
    check_is_fitted(estimator)
    parameters = {
        name: parameter_tree(value, name, owner)
        for name, value in estimator.get_params(deep=False).items()
        if name not in LEFT_OUT
    }
    tree = {"estimator": owner, "parameters": parameters, "state": estimator.state_dict()}
    write(path, KIND, tree)


def load(path: str | os.PathLike) -> Any:
    """Read an estimator that :func:`save` wrote.

    Nothing in the file is executed, and everything in it is checked before it is used.  Large
    arrays, as `components_`, are read-only views of the file, which is mapped into memory; the
    first step of `partial_fit` copies them.  Do not change the file in place while the estimator
    is used.  Saving to the same path is safe: the old contents stay until they are let go.

    Parameters
    ----------
    path : path

    Returns
    -------
    estimator
        With ``callback=None``.

    Raises
    ------
    ValueError
        If the file is no estimator, is damaged, or has a newer format.
    ImportError
        If it is an estimator of annealvi.deep, and PyTorch is not installed.
    OSError
        If the file cannot be read.
    """
    return estimator_of(Node(read(path, KIND)["tree"]))


def estimator_of(node: Node) -> Any:
    """Return the estimator of a tree that was read from a file; see :func:`load`.

    Parameters
    ----------
    node : Node
    """
    cls = _class(node.string("estimator", [*ESTIMATORS, *DEEP]))
    names = [name for name in cls().get_params(deep=False) if name not in LEFT_OUT]
    parts = node.node("parameters")
    unknown = [name for name in parts if name not in names]
    if unknown:
        raise parts.error(unknown[0], f"a parameter of {cls.__name__}", parts.plain(unknown[0]))
    estimator = cls(**{name: parameter_value(parts, name) for name in parts})
    estimator.load_state_dict(node.node("state"))
    return estimator


def _class(name: str) -> Any:
    if name in DEEP:
        import_optional("torch", "deep", name)
        return getattr(importlib.import_module(DEEP[name]), name)
    return getattr(importlib.import_module(ESTIMATORS[name]), name)
