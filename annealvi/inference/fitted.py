"""The attributes that all fitted estimators have: history, temperature, and state of the fit."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import wraps
from os import PathLike
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from annealvi.checks import Function, calm, checked, naming
from annealvi.files.schema import Optional, Schema, Strings, Tree
from annealvi.inference.callbacks import Callbacks, CallbackSupport, Tasks
from annealvi.inference.runs import Runs
from annealvi.threads import changing, reading, shallow, writing
from annealvi.versions import Versioned

FITTED = Schema(feature_names_in=Optional(Strings()), fit=Tree())
VARIATIONAL = "a fit with a Variational temperature"


def reads(method: Function) -> Function:
    """Make a method wait for threads that change its object, and apply `checked`."""

    @checked
    @wraps(method)
    def call(self: Any, *args: Any, **options: Any) -> Any:
        """Call the method while no thread changes its object."""
        with reading(self):
            return method(self, *args, **options)

    return call  # type: ignore[return-value]


class Found(property):
    """A fitted attribute, which the function `of` computes from the state of the fit.

    If `of` returns None, an AttributeError is raised.  Its message ends with `when`, the call or
    the fit that is needed first.  The function `assign` sets the attribute in the state.
    """

    def __init__(
        self,
        of: Callable[[Any], Any],
        when: str = "",
        assign: Callable[[Any, Any], None] | None = None,
    ) -> None:
        """Make a property, which is read-only without `assign`; see the class."""
        super().__init__(self._get, None if assign is None else self._set)
        self.of = of
        self.when = when
        self.assign = assign
        self.name = ""

    def __set_name__(self, owner: type, name: str) -> None:
        """Store the name of the attribute, which messages contain; Python calls this method."""
        self.name = name

    def _get(self, fitted: Fitted) -> Any:
        """Return the attribute of an estimator, or raise AttributeError if there is none."""
        with reading(fitted), calm():
            value = self.of(fitted._fitted())
        if value is None and self.when:
            raise AttributeError(
                f"{self.name!r} of {type(fitted).__name__} exists only after {self.when}."
            )
        return value

    def _set(self, fitted: Fitted, value: Any) -> None:
        """Set the attribute of an estimator; errors name the estimator's class."""
        assert self.assign is not None
        with naming(type(fitted).__name__), writing(fitted), changing(fitted):
            self.assign(fitted._fitted(), value)


def _without_times(tree: dict[str, Any]) -> dict[str, Any]:
    """Return the tree of a fit with NaN instead of the times."""
    monitor = tree["monitor"]
    history = monitor["history"]
    history = history | {"seconds": np.full_like(history["seconds"], np.nan)}
    return tree | {"monitor": monitor | {"seconds": 0.0, "history": history}}


class Fitted(Versioned, CallbackSupport):
    """Base class with the fitted attributes that are computed from a state.

    `fit` stores its state in ``_state``, an object with the attributes ``monitor`` and
    ``temperature``.  During `fit`, ``_runs`` contains its runs, which have different random starts.
    """

    callback: Any  # the estimator's parameter
    _state: Any
    _runs: Runs | None

    def save_state(self, path: str | PathLike) -> None:
        """Write a checkpoint of the running fit.  Call this method in a callback.

        To resume from the checkpoint, call ``fit(X, resume=path)`` on an estimator with the same
        parameters and with the same X.  The result is identical, bit for bit, to the result without
        an interruption.  :class:`annealvi.callbacks.Checkpoint` calls this method regularly.

        Parameters
        ----------
        path : path
            The file to write.  An existing file is replaced only when the new one is complete.

        Raises
        ------
        ValueError
            If no `fit` is running.  To write a fitted estimator, use :func:`annealvi.save`.
        TypeError
            If a parameter cannot be written to a file.
        """
        with writing(self):  # the thread of a callback already has this lock
            runs = vars(self).get("_runs")
            if runs is None:
                raise ValueError(
                    f"The method 'save_state' of {type(self).__name__} can be called only in a "
                    "callback, while `fit` is running. To write a fitted estimator, use "
                    "annealvi.save."
                )
            runs.write(path)

    def __getstate__(self) -> dict[str, Any]:
        """Return the attributes for pickles."""
        # a tree of plain data, so that a reader needs to trust only this class; without times, so
        # that equal fits have equal pickles
        attributes = super(Fitted, copy.copy(self)).__getstate__()  # a copy has no engine and runs
        with suppress(TypeError):  # a temperature of a foreign class cannot become a tree
            if "_state" in attributes:
                attributes["_state"] = _without_times(attributes["_state"].state_dict())
        return attributes

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        """Set the attributes from a pickle, and make the state of the fit from its tree."""
        super().__setstate__(state)
        if isinstance(vars(self).get("_state"), Mapping):
            self._state = self._state_of(self._state, "state")

    @reads
    def __copy__(self) -> Self:
        """Return a copy that can be fitted further without changing this estimator."""
        copied = shallow(self)
        for name in ("_runs", "_engine"):  # a copy has buffers of its own
            copied.__dict__.pop(name, None)
        if "_state" in vars(copied):
            copied._state = copy.copy(copied._state)
        return copied

    temperature_ = Found(lambda state: state.monitor.temperature)
    temperature_path_ = Found(lambda state: np.array(state.monitor.temperature_path))
    temperature_posterior_ = Found(
        lambda state: getattr(state.temperature, "posterior_", None), VARIATIONAL
    )
    temperature_posterior_path_ = Found(
        lambda state: getattr(state.temperature, "path", lambda: None)(), VARIATIONAL
    )
    history_ = Found(lambda state: state.monitor.history)

    def state_dict(self) -> dict[str, Any]:
        """Return the fitted state as a tree, for :func:`annealvi.save`."""
        check_is_fitted(self)
        names = getattr(self, "feature_names_in_", None)
        return FITTED.dump({"feature_names_in": names, "fit": self._state.state_dict()})

    def load_state_dict(self, tree: Mapping[str, Any], path: str = "state") -> None:
        """Set the fitted state from a tree at `path` in a file, for :func:`annealvi.load`."""
        self._validate_params()  # type: ignore[attr-defined]
        values = FITTED.load(tree, path)
        state = self._state_of(values["fit"], f"{path}.fit")
        n_features = state.model.n_features
        names = values["feature_names_in"]
        if names is not None:  # their number is known only now
            place = f"{path}.feature_names_in"
            self.feature_names_in_ = Strings(n_features).load(names, place, {})
        self._state = state
        self.n_features_in_ = n_features

    def _state_of(self, tree: Mapping[str, Any], path: str) -> Any:
        """Make the state of the fit from a tree; subclasses define it."""
        raise NotImplementedError

    def __sklearn_is_fitted__(self) -> bool:
        """Whether the estimator is fitted; scikit-learn's `check_is_fitted` calls this method."""
        return "_state" in vars(self)

    @contextmanager
    def _fit_under_way(self, X: Any, y: Any, others: tuple[Any, ...] = ()) -> Iterator[Callbacks]:
        """Return the context of a fit, at whose end callbacks act and the runs are freed.

        The context returns the user's callbacks and `others`.
        """
        if "_skl_callbacks" in vars(self):  # callbacks of scikit-learn, from `set_callbacks`
            others += (Tasks(self, self._init_callback_context, X, y),)
        callbacks = Callbacks(self.callback, self, others)
        try:
            with callbacks.during_fit():
                yield callbacks
        finally:
            self.__dict__.pop("_runs", None)

    def _fitted(self) -> Any:
        """Return the state, or raise AttributeError, so that hasattr is false before a fit."""
        state = vars(self).get("_state")
        if state is None:
            raise AttributeError(f"This {type(self).__name__} instance is not fitted yet.")
        return state

    def _show(self, columns: Any, **results: Any) -> None:
        """Set the results of a fit and the features of `columns`, while no other thread reads.

        `columns` is a copy of the estimator, of which X was checked.
        """
        values = vars(columns) | results
        with changing(self):
            for name in ("_state", "n_features_in_", "feature_names_in_", *results):
                if name in values:
                    self.__dict__[name] = values[name]
                else:  # for example, X has no names of features
                    self.__dict__.pop(name, None)
