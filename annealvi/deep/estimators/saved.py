"""Saved states of deep fits: which estimator, architecture and data they belong to."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from annealvi.deep.training import Training
from annealvi.files import Node
from annealvi.inference.checkpoints import digest, read_checkpoint, same, write_checkpoint


def header_of(owner: str, architecture: Mapping[str, Any], X: Any) -> dict[str, Any]:
    """What a fit must have in common with a saved state that it continues.

    Parameters
    ----------
    owner : str
        Name of the estimator.
    architecture : mapping
        Numbers, strings and lists by name.
    X : ndarray or CSR matrix, or None
    """
    return {
        "estimator": owner,
        "architecture": {name: _plain(value) for name, value in architecture.items()},
        "n_samples": None if X is None else int(X.shape[0]),
        "X": None if X is None else digest(X),
    }


def write_state(path: str | os.PathLike, header: Mapping[str, Any], training: Training) -> None:
    """Save a training, with the estimator, the architecture and the data that it belongs to.

    Parameters
    ----------
    path : path
    header : mapping
        What :func:`header_of` returned.
    training : Training
    """
    write_checkpoint(path, {"fit": header, "training": training.state_dict()})


def read_state(path: str | os.PathLike, header: Mapping[str, Any]) -> Node:
    """Load a file written by :func:`write_state`, if it is of the same architecture and data.

    Parameters
    ----------
    path : path
    header : mapping
        Of the fit that is to be continued.

    Returns
    -------
    Node
        The state of the training.

    Raises
    ------
    ValueError
        If the file is not a saved state, or is a state of another estimator, architecture or X.
        The message names the first difference.
    """
    file, owner = repr(os.fspath(path)), header["estimator"]
    node = read_checkpoint(path, owner)
    fit = node.node("fit")
    theirs = fit.string("estimator")[:80]
    if theirs != owner:
        raise ValueError(f"{file} is the state of a {theirs}, not of a {owner}.")
    had, have = fit.node("architecture"), header["architecture"]
    for name in dict.fromkeys([*have, *had]):
        value = had.plain(name) if name in had else None
        if not same(value, have.get(name)):
            raise ValueError(
                f"{file} is the state of another architecture: it has "
                f"{name}={_shown(value)}, this {owner} has {name}={_shown(have.get(name))}."
            )
    n_samples = fit.plain("n_samples")
    if n_samples != header["n_samples"]:
        raise ValueError(
            f"{file} is of a fit of {_shown(n_samples)} data, X has "
            f"{header['n_samples']}: a fit can only be continued with the data that it began with."
        )
    if fit.plain("X") != header["X"]:
        raise ValueError(
            f"{file} is the state of a fit to another X: the numbers in X differ, or their order. "
            "A fit can only be continued with the data that it began with."
        )
    return node.node("training")


def _plain(value: Any) -> Any:
    """Turn NumPy's numbers into Python's, and tuples into lists."""
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    return value.item() if isinstance(value, np.generic) else value


def _shown(value: Any) -> str:
    return repr(value)[:80]
