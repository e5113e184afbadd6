"""The base class of temperatures, which set the temperature T of each step of a fit.

The likelihood is raised to the power b = 1/T, and T falls to 1.  At high T the variational
objective is smoother, which helps the fit to find a good optimum.  Before each step the optimiser
calls ``tempering(step)``, which returns b = ``inverse(step)``, and whether b applies to the priors
too.  When the step has fitted its documents, the optimiser passes the result to ``observe``.

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
    """The base class of temperatures, whose parameters work like those of scikit-learn estimators.

    Fitting never changes the temperature that the user passed, but a clone of it, which
    :meth:`plan` prepares for a fit of a given number of steps.
    """

    #: Whether ``observe`` needs energies and entropies, which take time to compute.
    observes = False
    #: Whether T changes the objective.  If not, T only changes the path to the optimum.
    tempers = True
    #: Whether T is the same at every step.
    constant = False
    #: Whether T falls to 1 on a schedule.
    cools = False
    #: Whether T is learned from the data.  A class that learns has the methods of `Variational`,
    #: or those of `LocalVariational` if `per_document` is True.
    learns = False
    #: Whether each document has its own T.
    per_document = False
    #: Whether models may be perturbed at random while T falls, as mixtures are.
    perturbs = True
    #: The attributes that a file contains besides the parameters; None if no file can be written.
    SCHEMA: ClassVar[Schema | None] = None
    _parameter_constraints: ClassVar[dict] = {}
    form: Form = "likelihood"

    @checked
    def plan(self, n_steps: int | None, steps_per_pass: float = 1, *, model: Any = None) -> Self:
        """Return a copy of this temperature that is prepared for one fit.

        Parameters
        ----------
        n_steps : int or None
            Planned number of steps; None if the data are a stream of unknown length.
        steps_per_pass : float, default=1
            Number of steps in one pass over the data.
        model : Model, optional
            The model to fit; required if the temperature is learned from the data.
        """
        self.check()
        planned = clone(self)
        planned._prepare(n_steps, steps_per_pass, model)
        return planned

    @checked
    def check(self) -> None:
        """Raise ValueError if a parameter is out of its range."""
        self._validate_params()

    def __eq__(self, temperature: object) -> bool:
        """Return whether another temperature is of the same kind with the same parameters."""
        if type(self) is not type(temperature):
            return NotImplemented
        parameters_of_other = temperature.get_params()  # type: ignore[attr-defined]
        return all(
            _same(value, parameters_of_other[name]) for name, value in self.get_params().items()
        )

    def __hash__(self) -> int:
        """The hash of the class: parameters may be arrays, and may change."""
        return hash(type(self))

    def _prepare(self, n_steps: int | None, steps_per_pass: float, model: Any) -> None:
        """Compute what `inverse` needs; this is called on the clone."""

    def state_dict(self) -> dict[str, Any]:
        """Return what :meth:`plan` and the fit have computed, as a dict that can be saved.

        Raises
        ------
        TypeError
            If this class has no ``SCHEMA``.  A class of your own does not need it.
        """
        return self._schema().dump(self)

    def load_state_dict(
        self, tree: Mapping[str, Any], place: str = "", *, model: Any = None
    ) -> None:
        """Restore the state that :meth:`state_dict` returned; call this on a new clone.

        Parameters
        ----------
        tree : mapping
            What :meth:`state_dict` returned, read from a file.
        place : str, default=""
            Where `tree` is in the file, for error messages.
        model : Model, optional
            The model whose fit is continued.  None means the model of the plan.

        Raises
        ------
        ValueError
            If the values are not the state of a temperature with these parameters.
        """
        self._validate_params()  # `_sizes` needs valid parameters
        self._schema().restore(self, tree, place, **self._sizes(model))
        self.check()
        self._resume(model, place)

    def _schema(self) -> Schema:
        """The schema of the state; raise TypeError if the class has none."""
        if self.SCHEMA is None:
            raise TypeError(
                f"A {type(self).__name__} cannot be written to a file or read from one. Only "
                "temperatures of annealvi's own classes are supported."
            )
        return self.SCHEMA

    def _sizes(self, model: Any) -> dict[str, int]:
        """The array lengths that the schema names, which are checked before arrays are made."""
        return {}

    def _resume(self, model: Any, place: str) -> None:
        """Compute the attributes that follow from the parameters and from a file's state."""

    def attach(self, model: Any) -> None:
        """Continue the same plan with another model; this is called on the clone."""

    def inverse(self, step: int) -> float:
        """The inverse temperature 1/T of a step; the first step has number 0."""
        raise NotImplementedError

    def settled(self, step: int) -> bool:
        """Return whether T stays the same from this step on."""
        raise NotImplementedError

    def observe(self, local: LocalStep, scale: float) -> None:
        """Update this temperature from the result of a local step; by default this does nothing.

        `scale` is the number of data in the population divided by the number in the batch.
        """

    def tempering(self, step: int) -> Tempering:
        """The inverse temperature of a step, and what it applies to (`form`)."""
        return Tempering(self.inverse(step), self.form)

    def learned(self) -> Tempering | None:
        """The temperature that a fit learned for predictions; None if T is not learned."""
        return None


def _same(left: Any, right: Any) -> bool:
    """Return whether two parameters are equal; arrays are compared by their elements."""
    if isinstance(left, np.ndarray) or isinstance(right, np.ndarray):
        return np.array_equal(left, right)
    return left is right or bool(left == right)


def whole_steps(steps: float) -> int:
    """Round up to a whole number, but ignore rounding errors: 7.000000000000001 gives 7."""
    return math.ceil(min(round(float(steps), 9), 2.0**53))


_PLANNED = Schema(temperature=Parameter(), state=Tree())


def temperature_tree(temperature: Temperature) -> dict[str, Any]:
    """Return the parameters and the state of a temperature as a dict that can be saved."""
    state = temperature.state_dict()
    return {"temperature": parameter_tree(temperature, "temperature"), "state": state}


def restored_temperature(
    tree: Mapping[str, Any], place: str = "temperature", *, model: Any = None
) -> Temperature:
    """Make a temperature from the dict in a file; its fit continues with `model`."""
    temperature, state = _PLANNED.load(tree, place).values()
    if not isinstance(temperature, Temperature):
        raise damaged(f"{place}.temperature", "a temperature", temperature)
    temperature.load_state_dict(state, f"{place}.state", model=model)
    return temperature
