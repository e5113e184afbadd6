"""The temperature T of each step of a fit: the base class.

The likelihood is raised to the power b = 1/T, and T falls to 1.  At high T the variational
objective is smoother, which helps the fit to find a good optimum.  Before each batch the optimiser
calls ``tempering(step)`` of the temperature, which contains ``inverse(step)``.  Afterwards it calls
``observe`` with the local step.

References
----------
Abrol, Mandt, Ranganath, Blei (2014), *Deterministic Annealing for Stochastic
Variational Inference* (the posterior form).
Mandt, McInerney, Abrol, Ranganath, Blei (2016), *Variational Tempering*, AISTATS
(the likelihood form).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, clone

from annealvi.checks import checked
from annealvi.files.parameters import Parameter, parameter_tree
from annealvi.files.schema import Schema, Tree, damaged
from annealvi.model import Form, LocalStep, Tempering


class Temperature(BaseEstimator):
    """A temperature: parameters in scikit-learn's sense, and a plan for one fit.

    Fitting never changes the object that the user passed.  The estimator asks it for a
    plan, which is a clone that knows the number of steps.
    """

    #: Whether ``observe`` needs energies and entropies, which take time to compute.
    observes = False
    #: Whether it changes the objective.  If not, it only changes the way to the optimum.
    tempers = True
    #: Whether T is the same at every step.
    constant = False
    #: Whether T falls to 1 on a schedule.
    cools = False
    #: Whether T is learned from the data.  One that learns offers what `Variational` does, or
    #: with `per_document` what `LocalVariational` does.
    learns = False
    #: Whether each document has a T of its own.
    per_document = False
    #: Whether the model may be perturbed at random while T falls, as the mixtures are.
    perturbs = True
    #: The attributes that a file holds besides the parameters; None if it cannot be written.
    SCHEMA: ClassVar[Schema | None] = None
    _parameter_constraints: ClassVar[dict] = {}
    form: Form = "likelihood"

    @checked
    def plan(self, n_steps: int | None, steps_per_pass: float = 1, *, model: Any = None) -> Self:
        """Return a copy of this temperature that is planned for one fit.

        Parameters
        ----------
        n_steps : int or None
            Planned number of steps; None if the data are a stream of unknown length.
        steps_per_pass : float, default=1
            Number of steps in one pass over the data.
        model : Model, optional
            The model to fit.  A temperature learned from the data asks it for log C(T).
        """
        self.check()
        planned = clone(self)
        planned._prepare(n_steps, steps_per_pass, model)
        return planned

    @checked
    def check(self) -> None:
        """Raise ValueError if a parameter is out of its range."""
        self._validate_params()

    def __eq__(self, other: object) -> bool:
        """Return whether another temperature is of the same kind with the same parameters."""
        if type(self) is not type(other):
            return NotImplemented
        theirs = other.get_params()  # type: ignore[attr-defined]
        return all(_same(value, theirs[name]) for name, value in self.get_params().items())

    def __hash__(self) -> int:
        return hash(type(self))  # parameters may be arrays, and may change

    def _prepare(self, n_steps: int | None, steps_per_pass: float, model: Any) -> None:
        """Compute what `inverse` needs; called on the clone."""

    def state_dict(self) -> dict[str, Any]:
        """Return the plan and all that steps have learned, but no parameters, as a tree.

        Raises
        ------
        TypeError
            If this class has no ``SCHEMA``, which users' classes do not need.
        """
        return self._schema().dump(self)

    def load_state_dict(self, tree: Mapping[str, Any], way: str = "", *, model: Any = None) -> None:
        """Set the plan and what was learned; called on a clone, planned or not.

        Parameters
        ----------
        tree : mapping
            What :meth:`state_dict` returned, from a file.
        way : str, default=""
            Its place in the file, for the messages.
        model : Model, optional
            The model whose fit is continued; None for the model of the plan.

        Raises
        ------
        ValueError
            If the values are not the state of a temperature with these parameters.
        """
        self._validate_params()
        self._schema().restore(self, tree, way, **self._sizes(model))
        self.check()
        self._resume(model, way)

    def _schema(self) -> Schema:
        if self.SCHEMA is None:
            raise TypeError(
                f"A {type(self).__name__} cannot be written to a file or read from one. Only "
                "the temperatures that annealvi itself defines can."
            )
        return self.SCHEMA

    def _sizes(self, model: Any) -> dict[str, int]:
        """The lengths that the schema names; found before anything of such a length is made."""
        return {}

    def _resume(self, model: Any, way: str) -> None:
        """Compute what follows from the parameters and the state of a file."""

    def attach(self, model: Any) -> None:
        """Continue the same plan with another model; called on the clone."""

    def inverse(self, step: int) -> float:
        """The inverse temperature 1/T of step 0, 1, 2, ..."""
        raise NotImplementedError

    def settled(self, step: int) -> bool:
        """Return whether T stays the same from this step on."""
        raise NotImplementedError

    def observe(self, local: LocalStep, scale: float) -> None:
        """Use the result of a local step; temperatures that are learned update themselves.

        `scale` is the number of data in the population over the number in the batch.
        """

    def tempering(self, step: int) -> Tempering:
        """The inverse temperature of a step together with its form."""
        return Tempering(self.inverse(step), self.form)

    def learned(self) -> Tempering | None:
        """The temperature that a fit has learned, for predictions; None if it was planned."""
        return None


def _same(one: Any, other: Any) -> bool:
    """Return whether two parameters are equal, arrays by their elements."""
    if isinstance(one, np.ndarray) or isinstance(other, np.ndarray):
        return np.array_equal(one, other)
    return one is other or bool(one == other)


def whole_steps(steps: float) -> int:
    """Round up to a whole number, but ignore rounding errors: 7.000000000000001 gives 7."""
    return math.ceil(min(round(float(steps), 9), 2.0**53))


_PLANNED = Schema(temperature=Parameter(), state=Tree())


def temperature_tree(temperature: Temperature) -> dict[str, Any]:
    """A planned temperature as a tree: its parameters, and all that it has learned."""
    state = temperature.state_dict()
    return {"temperature": parameter_tree(temperature, "temperature"), "state": state}


def restored_temperature(
    tree: Mapping[str, Any], way: str = "temperature", *, model: Any = None
) -> Temperature:
    """The planned temperature of a tree; `model` is the one whose fit it goes on with."""
    temperature, state = _PLANNED.load(tree, way).values()
    if not isinstance(temperature, Temperature):
        raise damaged(f"{way}.temperature", "a temperature", temperature)
    temperature.load_state_dict(state, f"{way}.state", model=model)
    return temperature
