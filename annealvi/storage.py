"""Fitted estimators in files: save and load, without pickle."""

from __future__ import annotations

import inspect
import os
from collections.abc import Mapping
from typing import Any

from sklearn.utils.validation import check_is_fitted

from annealvi.files import read, write
from annealvi.files.parameters import (
    class_of,
    contents,
    has_function,
    is_object,
    parameter_tree,
    parameters_of,
)
from annealvi.files.schema import Listed, Schema, Text, Tree
from annealvi.threads import reading

#: The kind of these files.
KIND = "estimator"
#: The estimators that a file can hold.
ESTIMATORS = (
    *("HierarchicalPosterior", "PoissonDEF", "SigmoidBeliefNetwork", "VariationalAutoencoder"),
    *("TemperedFMM", "TemperedGaussianMixture", "TemperedLDA"),
    *("TemperedMultinomialMixture", "TopicModel"),
)
ESTIMATOR = Schema(
    estimator=Text(*ESTIMATORS), parameters=Tree(), functions=Listed(Text()), state=Tree()
)


def save(estimator: Any, path: str | os.PathLike) -> None:
    """Write a fitted estimator to a file.

    The file is in the safetensors format and contains only arrays, numbers and strings, so reading
    it executes nothing.  The loaded estimator predicts, scores and continues with `partial_fit`
    exactly as this one does.

    Parameters
    ----------
    estimator : estimator of annealvi or annealvi.deep
        It must be fitted.
    path : path
        The file to write.  An existing file is replaced only once the new one is complete.

    Raises
    ------
    NotFittedError
        If the estimator is not fitted.
    TypeError
        If it is of another class, or if a parameter cannot be written.  None, numbers, strings,
        arrays or lists of these, temperatures and schedules of annealvi, a LogPartition, a
        RandomState and functions are allowed.
    OSError
        If the file cannot be written.

    Notes
    -----
    Functions, such as the `log_density` of a HierarchicalPosterior, are not written.  Pass
    them again when the file is loaded.  This also holds for a ProximityPenalty whose statistic or
    distance is a function: ``load(path, proximity=penalty)``.

    Callbacks are not written: the loaded estimator has ``callback=None``.  A RandomState is written
    in its present state, in which the loaded estimator has its own generator.  The choice made with
    ``set_output`` is not written.

    Examples
    --------
    >>> import annealvi
    >>> from annealvi.datasets import load_arxiv_abstracts
    >>> X = load_arxiv_abstracts().data[:200]
    >>> lda = annealvi.TemperedLDA(5, max_iter=1, random_state=0).fit(X)
    >>> annealvi.save(lda, "topics.safetensors")  # doctest: +SKIP
    """
    if type(estimator).__name__ not in ESTIMATORS or not is_object(estimator):
        hint = " Save what its to_local() returns." if hasattr(estimator, "to_local") else ""
        raise TypeError(f"Only estimators of annealvi can be saved. Got {estimator!r}.{hint}")
    check_is_fitted(estimator)
    with reading(estimator):  # the tree has its arrays
        write(path, KIND, tree_of(estimator))


def tree_of(estimator: Any) -> dict[str, Any]:
    """A fitted estimator as a tree."""
    parts = contents(estimator)
    functions = [name for name, value in parts.items() if has_function(value)]
    kept = {name: parts[name] for name in parts if name not in functions}
    return {
        "estimator": type(estimator).__name__,
        "parameters": {name: parameter_tree(value, name) for name, value in kept.items()},
        "functions": functions,  # they are to be passed when the file is loaded
        "state": estimator.state_dict(),
    }


def load(path: str | os.PathLike, **parameters: Any) -> Any:
    """Read an estimator that :func:`save` wrote.

    Nothing in the file is executed, and everything in it is checked before it is used.  Large
    arrays, such as the topics of an LDA, are read-only views of the file, which is mapped into
    memory; the first step of `partial_fit` copies them.  Do not change the file in place while the
    estimator is used.  Saving to the same path is safe: the old contents stay as long as they are
    used.

    Parameters
    ----------
    path : path
    **parameters : objects
        Parameters that replace those in the file.  Functions must be passed, because a file cannot
        contain them: ``load(path, log_density=f)``.  With ``device="cpu"``, an estimator fitted on
        a GPU can be used on a CPU.

    Returns
    -------
    estimator
        With ``callback=None``, unless one is passed.

    Raises
    ------
    ValueError
        If the file is not an estimator, is damaged, has a newer format, or needs a function that
        was not passed.
    TypeError
        If the estimator does not have a parameter that was passed.
    ImportError
        If it is an estimator of annealvi.deep, and PyTorch is not installed.
    OSError
        If the file cannot be read.
    """
    return estimator_of(read(path, KIND)["tree"], parameters)


def estimator_of(tree: Any, given: Mapping[str, Any] | None = None, way: str = "") -> Any:
    """The estimator of a tree from a file; parameters that are `given` replace those in it."""
    values, given = ESTIMATOR.load(tree, way), given or {}
    cls = class_of(values["estimator"])
    possible = inspect.signature(cls).parameters
    for name in given:
        if name not in possible:
            raise TypeError(f"{cls.__name__} has no parameter {name!r}. It has {list(possible)}.")
    inner = f"{way}." if way else ""
    parameters = parameters_of(values["parameters"], cls, f"{inner}parameters") | dict(given)
    for name, parameter in possible.items():
        needed = name in values["functions"] or parameter.default is parameter.empty
        if needed and name not in parameters:
            raise ValueError(
                f"The file does not contain {name!r}, because a file cannot hold a function. Pass "
                f"it: annealvi.load(path, {name}=...)."
            )
    estimator = cls(**parameters)
    estimator.load_state_dict(values["state"], f"{inner}state")
    return estimator
