"""Fitted estimators in files: save and load, without pickle."""

from __future__ import annotations

import importlib
import inspect
import os
from collections.abc import Mapping
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
    "TopicModel": "annealvi.topics",
}
#: Objects with parameters of their own that are parameters of an estimator, and their modules.
PARTS = {
    "CountVectorizer": "sklearn.feature_extraction.text",
    "TemperedLDA": "annealvi.lda",
    "TopicVectorizer": "annealvi.topics",
}
#: The same for those on PyTorch.
DEEP = {
    "HierarchicalPosterior": "annealvi.deep",
    "PoissonDEF": "annealvi.deep",
    "SigmoidBeliefNetwork": "annealvi.deep",
    "VariationalAutoencoder": "annealvi.deep",
}
#: Classes of their parameters.
DEEP_PARTS = ("ProximityPenalty",)
#: Parameters that are not written.
LEFT_OUT = frozenset({"callback"})


def save(estimator: Any, path: str | os.PathLike) -> None:
    """Write a fitted estimator to a file.

    The file is in the safetensors format and holds arrays, numbers and strings only, so that
    reading it executes nothing.  What :func:`load` returns predicts, scores and goes on with
    `partial_fit` as the estimator does, to the last bit.

    Parameters
    ----------
    estimator : TemperedLDA, TopicModel, TemperedFMM, TemperedGaussianMixture or a deep one
        An estimator of annealvi or annealvi.deep.  It must be fitted.
    path : path
        The file to write.  An existing file is replaced only once the new one is complete.

    Raises
    ------
    NotFittedError
        If the estimator is not fitted.
    TypeError
        If it is of another class, or a parameter cannot be written: one that is neither None, a
        number, a string, an array or list of these, a temperature or schedule of annealvi, a
        LogPartition, a RandomState nor a function.
    OSError
        If the file cannot be written.

    Notes
    -----
    Functions, such as the `log_density` of a HierarchicalPosterior, are not written.  They are to
    be given when the file is loaded.  So is a ProximityPenalty whose statistic or distance is a
    function: ``load(path, proximity=penalty)``.

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
        hint = " Save what its to_local() returns." if hasattr(estimator, "to_local") else ""
        raise TypeError(f"Only estimators of annealvi can be saved. Got {estimator!r}.{hint}")
    check_is_fitted(estimator)
    write(path, KIND, tree_of(estimator))


def tree_of(estimator: Any) -> dict[str, Any]:
    """Return a fitted estimator as a tree; see :func:`save`.

    Parameters
    ----------
    estimator : object
    """
    owner = type(estimator).__name__
    parameters, functions = _parameters(estimator, owner)
    return {
        "estimator": owner,
        "parameters": parameters,
        "functions": functions,
        "state": estimator.state_dict(),
    }


def part_tree(part: Any, name: str, owner: str) -> tuple[dict[str, Any], list[str]]:
    """Return an object of :data:`PARTS` as a tree of its parameters, and which are functions.

    Parameters
    ----------
    part : object
    name, owner : str
        The parameter that it is and the estimator that has it, for the message.

    Raises
    ------
    TypeError
        If it is of another class, or a file cannot hold one of its parameters.
    """
    kind = type(part).__name__
    if not _is_part(part):
        raise TypeError(
            f"The {name!r} parameter of {owner} cannot be written to a file: it must be one of "
            f"{list(PARTS)}. Got {part!r} instead."
        )
    parameters, functions = _parameters(part, owner, f"{name}.")
    return {"part": kind, "parameters": parameters}, functions


def part_of(node: Node, name: str) -> Any:
    """Return the object of a tree that :func:`part_tree` returned.

    Parameters
    ----------
    node : Node
    name : str
        Its name in the node.
    """
    part = node.node(name)
    kind = part.string("part", list(PARTS))
    cls = getattr(importlib.import_module(PARTS[kind]), kind)
    parts, possible = part.node("parameters"), inspect.signature(cls).parameters
    unknown = [name for name in parts if name not in possible]
    if unknown:
        raise parts.error(unknown[0], f"a parameter of {kind}", parts.plain(unknown[0]))
    return cls(**{name: parameter_value(parts, name) for name in parts})


def _parameters(owned: Any, owner: str, way: str = "") -> tuple[dict[str, Any], list[str]]:
    """Parameters as trees, and names of those that are or have functions, which are not written."""
    kinds, parameters, functions = _kinds(owner), {}, []
    for name, value in owned.get_params(deep=False).items():
        if name in LEFT_OUT:
            continue
        if _is_part(value):
            tree, inner = part_tree(value, f"{way}{name}", owner)
            if inner:
                functions.append(name)
            else:
                parameters[name] = tree
            continue
        try:
            parameters[name] = parameter_tree(value, f"{way}{name}", owner, kinds)
        except TypeError:
            if not (callable(value) or _has_function(value, kinds)):
                raise  # a function is to be given when the file is loaded
            functions.append(name)
    return parameters, functions


def _has_function(value: Any, kinds: Mapping[str, Any]) -> bool:
    """Whether it is a part with a parameter that is a function, so that a file cannot hold it."""
    if type(value) not in kinds.values():
        return False
    return any(callable(part) for part in value.get_params(deep=False).values())


def _is_part(value: Any) -> bool:
    kind = type(value)
    return kind.__name__ in PARTS and kind is getattr(
        importlib.import_module(PARTS[kind.__name__]), kind.__name__
    )


def load(path: str | os.PathLike, **parameters: Any) -> Any:
    """Read an estimator that :func:`save` wrote.

    Nothing in the file is executed, and everything in it is checked before it is used.  Large
    arrays, as the topics of an LDA, are read-only views of the file, which is mapped into memory;
    the first step of `partial_fit` copies them.  Do not change the file in place while the
    estimator is used.  Saving to the same path is safe: the old contents stay until they are let
    go.

    Parameters
    ----------
    path : path
    **parameters : objects
        Parameters that replace those of the file.  Functions must be given, because a file does
        not have them: ``load(path, log_density=f)``.  ``device="cpu"`` reads on a CPU what was
        fitted on a GPU.

    Returns
    -------
    estimator
        With ``callback=None``, unless it is given.

    Raises
    ------
    ValueError
        If the file is no estimator, is damaged, has a newer format, or needs a function that is
        not given.
    TypeError
        If the estimator has no parameter that is given.
    ImportError
        If it is an estimator of annealvi.deep, and PyTorch is not installed.
    OSError
        If the file cannot be read.
    """
    return estimator_of(Node(read(path, KIND)["tree"]), parameters)


def estimator_of(node: Node, given: Mapping[str, Any] | None = None) -> Any:
    """Return the estimator of a tree that was read from a file; see :func:`load`.

    Parameters
    ----------
    node : Node
    given : mapping, optional
        Parameters that replace those of the file.
    """
    cls = _class(node.string("estimator", [*ESTIMATORS, *DEEP]))
    kinds, given = _kinds(cls.__name__), dict(given or {})
    possible = inspect.signature(cls).parameters
    for name in given:
        if name not in possible:
            raise TypeError(f"{cls.__name__} has no parameter {name!r}. It has {list(possible)}.")
    names = [name for name in possible if name not in LEFT_OUT]
    parts = node.node("parameters")
    unknown = [name for name in parts if name not in names]
    if unknown:
        raise parts.error(unknown[0], f"a parameter of {cls.__name__}", parts.plain(unknown[0]))
    values = {
        name: part_of(parts, name)
        if isinstance(parts.plain(name), dict) and "part" in parts.node(name)
        else parameter_value(parts, name, kinds)
        for name in parts
    } | given
    functions = node.items("functions") if "functions" in node else []
    for name in names:
        needed = name in functions or possible[name].default is inspect.Parameter.empty
        if needed and name not in values:
            raise ValueError(
                f"The file has no {name!r}: a file cannot hold a function. Give it: "
                f"annealvi.load(path, {name}=...)."
            )
    estimator = cls(**values)
    estimator.load_state_dict(node.node("state"))
    return estimator


def _kinds(owner: str) -> dict[str, Any]:
    """Classes of parameters that only this estimator has."""
    if owner not in DEEP:
        return {}
    deep = importlib.import_module(DEEP[owner])
    return {name: getattr(deep, name) for name in DEEP_PARTS}


def _class(name: str) -> Any:
    if name in DEEP:
        import_optional("torch", "deep", name)
        return getattr(importlib.import_module(DEEP[name]), name)
    return getattr(importlib.import_module(ESTIMATORS[name]), name)
