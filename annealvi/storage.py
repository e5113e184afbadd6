"""Functions that save fitted estimators to files and load them, without pickle."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from os import PathLike
from typing import Any

from sklearn.utils.validation import check_is_fitted

from annealvi.checks import checked
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

#: The names of the estimators that can be saved.
ESTIMATORS = (
    "HierarchicalPosterior",
    "PoissonDEF",
    "SigmoidBeliefNetwork",
    "TemperedFMM",
    "TemperedGaussianMixture",
    "TemperedLDA",
    "TemperedMultinomialMixture",
    "TopicModel",
    "VariationalAutoencoder",
)
#: The kind of file that these functions write and read.
KIND = "estimator"
ESTIMATOR = Schema(
    estimator=Text(*ESTIMATORS), parameters=Tree(), functions=Listed(Text()), state=Tree()
)


def save(estimator: Any, path: str | PathLike) -> None:
    """Write a fitted estimator to a file.

    The file is in the safetensors format and contains only arrays, numbers and strings, so no code
    is executed when it is read.  The loaded estimator returns the same predictions and scores as
    the saved one, and continues identically with `partial_fit`.

    Parameters
    ----------
    estimator : estimator of annealvi or annealvi.deep
        The fitted estimator to save.
    path : path
        The file to write.  An existing file is replaced only when the new one is complete.

    Raises
    ------
    NotFittedError
        If the estimator is not fitted.
    TypeError
        If `estimator` is not an estimator of annealvi, or if a parameter cannot be written.  A
        parameter can be None, a number, a string, an array or list of these, a temperature or
        schedule of annealvi, a LogPartition, a RandomState or a function.
    OSError
        If the file cannot be written.

    Notes
    -----
    Functions, such as the `log_density` of a HierarchicalPosterior, are not written.  Pass them
    again when you load the file.  If the statistic or distance of a ProximityPenalty is a function,
    pass the penalty again: ``load(path, proximity=penalty)``.

    Callbacks are not written: the loaded estimator has ``callback=None``.  The current state of a
    RandomState is written, so the loaded estimator draws the same random numbers as the saved one
    would.  Settings of ``set_output`` are not written.

    Examples
    --------
    >>> import annealvi
    >>> from annealvi.datasets import load_arxiv_abstracts
    >>> X = load_arxiv_abstracts().data[:200]
    >>> lda = annealvi.TemperedLDA(5, max_iter=1, random_state=0).fit(X)
    >>> annealvi.save(lda, "topics.safetensors")  # doctest: +SKIP
    """
    if type(estimator).__name__ not in ESTIMATORS or not is_object(estimator):
        message = (
            "The 'estimator' parameter of save must be an estimator of annealvi. "
            f"Got {estimator!r} instead."
        )
        if hasattr(estimator, "to_local"):
            message += " Save the estimator that its method to_local() returns."
        raise TypeError(message)
    check_is_fitted(estimator)
    with reading(estimator):  # the tree contains the estimator's own arrays
        write(path, KIND, tree_of(estimator))


def tree_of(estimator: Any) -> dict[str, Any]:
    """Return a fitted estimator as a tree of dicts, lists and arrays."""
    parameters = contents(estimator)
    functions = [name for name, value in parameters.items() if has_function(value)]
    return {
        "estimator": type(estimator).__name__,
        "parameters": {
            name: parameter_tree(value, name)
            for name, value in parameters.items()
            if name not in functions
        },
        "functions": functions,  # their names: the user passes them when the file is loaded
        "state": estimator.state_dict(),
    }


@checked
def load(path: str | PathLike, **parameters: Any) -> Any:
    """Read an estimator from a file that :func:`save` wrote.

    Nothing in the file is executed, and all contents are checked before they are used.  The file is
    mapped into memory: large arrays, such as the topics of an LDA, are read-only views of the file
    until the first step of `partial_fit` copies them.  Do not modify the file in place while the
    estimator is used.  You may save another estimator to the same path, because :func:`save` makes
    a new file and the loaded estimator keeps the old one.

    Parameters
    ----------
    path : path
        The file to read.
    **parameters : objects
        Parameters that replace those in the file.  If a parameter is a function, pass it, because
        files cannot contain functions: ``load(path, log_density=f)``.  To use an estimator on a
        CPU after a fit on a GPU, pass ``device="cpu"``.

    Returns
    -------
    estimator
        The fitted estimator, whose `callback` is None unless you pass a callback.

    Raises
    ------
    ValueError
        If the file does not contain an estimator, is damaged, has a newer format, or requires a
        function that was not passed.
    TypeError
        If a parameter was passed that the estimator does not have.
    ImportError
        If the file contains an estimator of annealvi.deep, and PyTorch is not installed.
    OSError
        If the file cannot be read.
    """
    return estimator_of(read(path, KIND)["tree"], parameters)


def estimator_of(tree: Any, replacements: Mapping[str, Any] | None = None, path: str = "") -> Any:
    """Make an estimator from the tree of a file; `replacements` of parameters in the file."""
    values = ESTIMATOR.load(tree, path)
    replacements = replacements or {}
    cls = class_of(values["estimator"])
    possible = inspect.signature(cls).parameters
    for name in replacements:
        if name not in possible:
            raise TypeError(
                f"{cls.__name__} has no parameter {name!r}. The parameters of {cls.__name__} are "
                f"{list(possible)}."
            )
    inner = f"{path}." if path else ""
    parameters = {
        **parameters_of(values["parameters"], cls, f"{inner}parameters"),
        **replacements,
    }
    for name, parameter in possible.items():
        needed = name in values["functions"] or parameter.default is parameter.empty
        if needed and name not in parameters:
            raise ValueError(
                f"The file does not contain the parameter {name!r}, because functions are not "
                f"saved. Pass it when you load the file: annealvi.load(path, {name}=...)."
            )
    estimator = cls(**parameters)
    estimator.load_state_dict(values["state"], f"{inner}state")
    return estimator
