"""How hot: the temperature T of each step of a fit.

Raising the likelihood to b = 1/T and letting T fall to 1 smooths the variational
objective while the fit still looks for its optimum.  The optimiser asks a
temperature for ``inverse(step)`` before each batch and shows it the local step
afterwards with ``observe``.

References
----------
Abrol, Mandt, Ranganath, Blei (2014), *Deterministic Annealing for Stochastic
Variational Inference* (the posterior form).
Mandt, McInerney, Abrol, Ranganath, Blei (2016), *Variational Tempering*, AISTATS
(the likelihood form).
"""

from __future__ import annotations

import math
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, clone

from annealvi.model import Form, LocalStep, Tempering


class Temperature(BaseEstimator):
    """A temperature: parameters in scikit-learn's sense, and a plan for one fit.

    Fitting never changes the object the user passed: the estimator asks it for a
    plan, which is a clone that knows how many steps there will be.
    """

    #: Whether ``observe`` wants energies and entropies, which cost time.
    observes = False
    #: Whether it changes the objective; if not, the way to its optimum alone.
    tempers = True
    _parameter_constraints: ClassVar[dict] = {}
    form: Form = "likelihood"

    @property
    def perturbs(self) -> bool:
        """Whether a model may be moved at random while T falls, as the mixtures are."""
        return True

    def plan(
        self,
        n_steps: int | None,
        steps_per_pass: float = 1,
        *,
        model: Any = None,
        owner: str = "fit",
    ) -> Self:
        """A copy of this temperature for a fit of so many steps.

        Parameters
        ----------
        n_steps : int or None
            Planned steps; None when the data come as a stream of unknown length.
        steps_per_pass : float, default=1
            Steps that make one pass over the data.
        model : Model, optional
            What is fitted; a temperature learned from the data asks it for log C(T).
        owner : str
            Who asks, for the messages.
        """
        self.check()
        planned = clone(self)
        planned._prepare(n_steps, steps_per_pass, model, owner)
        return planned

    def check(self) -> None:
        """Raise if a parameter is out of its range."""
        self._validate_params()

    def __eq__(self, other: object) -> bool:
        """Whether another temperature is of the same kind with the same parameters."""
        if type(self) is not type(other):
            return NotImplemented
        theirs = other.get_params()  # type: ignore[attr-defined]
        return all(_same(value, theirs[name]) for name, value in self.get_params().items())

    def __hash__(self) -> int:
        return hash(type(self))  # parameters may be arrays, and may be set

    def _prepare(self, n_steps: int | None, steps_per_pass: float, model: Any, owner: str) -> None:
        """Work out what `inverse` needs; called on the clone."""

    def attach(self, model: Any) -> None:
        """Go on with another model that the same plan is for; called on the clone."""

    def inverse(self, step: int) -> float:
        """The inverse temperature 1/T of step 0, 1, 2, ..."""
        raise NotImplementedError

    def settled(self, step: int) -> bool:
        """Whether T changes no more from this step on."""
        raise NotImplementedError

    def observe(self, local: LocalStep, scale: float) -> None:
        """See what the step brought, and data in the population over those in the batch.

        Schedules ignore it.
        """

    def tempering(self, step: int) -> Tempering:
        """The inverse temperature of a step together with its form."""
        return Tempering(self.inverse(step), self.form)

    def learned(self) -> Tempering | None:
        """The temperature that a fit has learned, to predict at; None if it was planned."""
        return None


def _same(one: Any, other: Any) -> bool:
    """Whether two parameters are equal, arrays by their elements."""
    if isinstance(one, np.ndarray) or isinstance(other, np.ndarray):
        return np.array_equal(one, other)
    return one is other or bool(one == other)


def whole_steps(steps: float) -> int:
    """The next whole number, but 7.000000000000001 steps are 7.

    Parameters
    ----------
    steps : float
    """
    return math.ceil(round(steps, 9))
