"""The protocol between inference and models: the methods that a model must have.

A conditionally conjugate model has local variables (one set for each datum) and global
variables with a conjugate prior.  Tempering raises the likelihood to the power b = 1/T, the inverse
temperature.  A class with the methods of :class:`Model` can be fitted by the stochastic variational
inference and the annealing of :mod:`annealvi.inference`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

Form = Literal["likelihood", "posterior"]


class LocalRule(Protocol):
    """A rule that computes a temperature for each datum from how well the model explains it.

    Attributes
    ----------
    inverses : ndarray of shape (M,)
        Inverse temperatures at which the rule gets each datum's log C(T), see :class:`Normalised`.
    rounds : int
        How many times the rule fits the local variables and then the temperatures.
    """

    inverses: NDArray[np.float64]
    rounds: int

    def __call__(
        self,
        energy: NDArray[np.float64],
        n_units: NDArray[np.float64],
        log_partition: NDArray[np.float64],
    ) -> NDArray[np.float64]:
        """Return the inverse temperature of each datum."""


class FactorLimits(NamedTuple):
    """Limits on the logits of binary factors; only a factor that would exceed them is tempered.

    Let a be the logit log q(z = 1) - log q(z = 0) that maximises the objective at T = 1.  If a is
    within the limits, the new logit is a.  Otherwise it is the limit that a exceeds or, if that is
    further from the centre, ``centre + inverse * (a - centre)`` (see Attributes).

    Attributes
    ----------
    inverse : float
        The lowest inverse temperature b that a factor can get.
    centre : ndarray of shape (K,)
        The logit towards which each factor is pulled.
    lower, upper : ndarray of shape (K, n)
        Lower limits, below the centre, and upper limits, above it.  Limits may be infinite.  n is
        the number of columns of :meth:`BinaryFactors.factors`.
    """

    inverse: float
    centre: NDArray[np.float64]
    lower: NDArray[np.float64]
    upper: NDArray[np.float64]


class Tempering(NamedTuple):
    """The temperature of one step, and the parts of the model that are tempered.

    Attributes
    ----------
    inverse : float or ndarray of shape (n_samples,)
        b = 1/T, either one number or one for each datum of the batch.
    form : {"likelihood", "posterior"}
        What is raised to the power b: the likelihood alone (Mandt et al. 2016), or the likelihood
        and the priors (Abrol et al. 2014).
    rule : LocalRule or None
        A rule that finds a temperature for each datum, starting from `inverse`.
    limits : FactorLimits or None
        Limits on binary factors in the local step, for a model with the methods of
        :class:`BinaryFactors`.
    """

    inverse: float | NDArray = 1.0
    form: Form = "likelihood"
    rule: LocalRule | None = None
    limits: FactorLimits | None = None

    @property
    def mean(self) -> float:
        """The mean of b over the data of the batch."""
        return float(np.mean(self.inverse))

    @property
    def of_priors(self) -> float:
        """The power b of the priors: the mean of b if `form` is "posterior", otherwise 1."""
        return self.mean if self.form == "posterior" else 1.0


#: No tempering: T = 1.
UNTEMPERED = Tempering()


class Batch(NamedTuple):
    """Some rows of the data.  The model uses views of these rows, never copies.

    Attributes
    ----------
    data : object with a length along its first axis
        All data passed to the optimiser.
    rows : slice
        The rows that form the batch.
    """

    data: Any
    rows: slice


@dataclass
class LocalStep:
    """The result of a model's local step for a batch.

    Attributes
    ----------
    statistics : object
        Expected sufficient statistics, weighted by b.  The optimiser does not read them; it passes
        them to ``global_step``.
    energy : ndarray of shape (n_samples,), float or None
        +E_q[log p(x, z | globals)] of each datum or of the batch, not multiplied by b = 1/T.  The
        base measure h(x, z) is excluded, because it is not tempered.  Unlike an energy in physics,
        this energy has the sign of a log-likelihood: larger is better.  In some models the energy
        is a Python property, which is computed from the current global variables each time.
    entropy : ndarray of shape (n_samples,), float or None
        Entropy of the local factors of each datum or of the batch, plus E_q[log p] of their
        untempered priors.  The data's part of the annealed ELBO is ``b * energy + entropy``.
    log_partition : ndarray of shape (M,) or None
        log C(T) of the batch at the current q, at the inverse temperatures passed to
        :meth:`LocallyNormalised.normalise_at`.
    n_units : float or None
        Number of terms in the sum that is the energy of the batch, if the terms are not the data
        themselves (for example, if they are words).
    inverse : ndarray of shape (n_samples,) or (K, n_samples) or None
        The inverse temperatures that a :class:`LocalRule` found, or that result from
        :class:`FactorLimits`.
    unit : str, default="datum"
        The name of a unit in messages.
    """

    statistics: Any
    energy: NDArray[np.float64] | float | None = None
    entropy: NDArray[np.float64] | float | None = None
    log_partition: NDArray[np.float64] | None = None
    n_units: float | None = None
    inverse: NDArray | None = None
    unit: str = "datum"


class Model(Protocol):
    """The methods of a conditionally conjugate model that the optimiser calls."""

    def local_step(self, batch: Batch, tempering: Tempering, moments: bool = False) -> LocalStep:
        """Fit the local variables of a batch; with `moments`, return energies and entropies."""

    def global_step(self, statistics: Any, rho: float, scale: float, tempering: Tempering) -> None:
        """Update the globals by a step of size rho along the tempered natural gradient.

        `scale` is the number of data in the population divided by the number in the batch.
        """


@runtime_checkable
class Normalised(Protocol):
    """A model that computes log C(T), for temperatures that are learned from the data."""

    def log_partition(self, inverse: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return log C(T) of all data at each inverse temperature b, up to a constant.

        C(T) normalises the tempered likelihood: it is h(x, z) p(beta) exp(b (beta t - a(beta))),
        summed and integrated over beta, z and x.  The optimiser calls this method at every step, so
        the result may depend on hyperparameters that the model learns.  If the integral over the
        prior of beta cannot be computed, the method may use the current q of beta in place of the
        prior.
        """


@runtime_checkable
class Critical(Protocol):
    """A model that computes its critical temperature."""

    def critical_temperature(self, form: Form) -> float:
        """Return the temperature above which the tempered objective has a single optimum."""


@runtime_checkable
class BinaryFactors(Protocol):
    """A model of binary factors for which proximity temperatures can be used in batch fits."""

    n_samples: int

    def factors(self) -> NDArray:
        """Return the current q(z = 1) of each factor and datum, of shape (K, n).

        Some of the columns may be padding.
        """

    def prior_logit(self) -> NDArray[np.float64]:
        """Return logit p(z = 1) of each factor, of shape (K,)."""

    def energy(self) -> float:
        """Return E_q[log p(x, z | globals)] of all data, see :class:`LocalStep`.

        This method can also be called before the first step.
        """


@runtime_checkable
class LocallyNormalised(Protocol):
    """A model that computes log C(T) from batches, at the current q or over its prior."""

    def normalise_at(self, inverse: NDArray[np.float64] | None) -> None:
        """Set the values of b at which local steps also return log C; None switches this off."""

    def log_mean_unit(self, inverse: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return log C(T) of one unit over the prior, at each inverse temperature."""

    def hyperparameters(self) -> dict[str, Any]:
        """Return the quantities that log C(T) depends on, by name; unknown ones are None."""
