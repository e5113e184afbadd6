"""The protocol between inference and models: what a model must offer.

A conditionally conjugate model has local variables (one set for each datum) and global
variables with a conjugate prior.  Tempering raises the likelihood to the inverse
temperature b = 1/T.  A class with the methods of :class:`Model` can be fitted by the
stochastic variational inference and the annealing of :mod:`annealvi.inference`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

Form = Literal["likelihood", "posterior"]


class LocalRule(Protocol):
    """A rule that gives each datum a temperature, from how well the model explains it.

    Attributes
    ----------
    inverses : ndarray of shape (M,)
        Inverse temperatures at which the rule needs log C.
    rounds : int
        How many times local variables are fitted, and then temperatures.
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
    """Limits of binary factors; beyond its limits a factor has its own temperature.

    Let a be the best logit of a factor at T = 1.  Within the limits the logit is a.  Beyond them it
    is the limit or ``centre + inverse * (a - centre)``, whichever lies further out.

    Attributes
    ----------
    inverse : float
        b of the factors that lie furthest out.
    centre : ndarray of shape (K,)
        The logit towards which each factor is pulled.
    lower, upper : ndarray of shape (K, n)
        Limits on either side of the centre, as logits; they may be infinite.  There is one
        column for each column of :meth:`BinaryFactors.factors`.
    """

    inverse: float
    centre: NDArray[np.float64]
    lower: NDArray[np.float64]
    upper: NDArray[np.float64]


class Tempering(NamedTuple):
    """The temperature of one step, and what it applies to.

    Attributes
    ----------
    inverse : float or ndarray of shape (n_samples,)
        b = 1/T, one number or one for each datum of the batch.
    form : {"likelihood", "posterior"}
        Raised to the power b: the likelihood alone (Mandt et al. 2016) or likelihood and
        priors (Abrol et al. 2014).
    rule : LocalRule or None
        Finds a temperature for each datum; it starts from `inverse`.
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
        return float(self.inverse if isinstance(self.inverse, float) else np.mean(self.inverse))

    @property
    def of_priors(self) -> float:
        """b of the priors: 1, or in the posterior form the mean of b."""
        return self.mean if self.form == "posterior" else 1.0


#: No tempering: T = 1.
UNTEMPERED = Tempering()


class Batch(NamedTuple):
    """Rows of the data.  The model uses views of them, never copies.

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
        Expected sufficient statistics, weighted by b.  The optimiser does not look into
        them, and passes them to ``global_step``.
    energy : ndarray of shape (n_samples,), float or None
        +E_q[log p(x, z | globals)] of each datum or of the batch, not weighted by b and without the
        base measure h(x, z), which is not tempered.  It has the sign of a log-likelihood, unlike an
        energy in physics: larger is better.  A model that can compute it cheaply makes it a
        property, evaluated at the current globals when it is read.
    entropy : ndarray of shape (n_samples,), float or None
        Entropy of the local factors of each datum or of the batch, minus the contribution of their
        untempered priors: ``b * energy + entropy`` is the share of the annealed ELBO.
    log_partition : ndarray of shape (M,) or None
        log C(T) of the batch at the current q, at the inverse temperatures passed to
        :meth:`LocallyNormalised.normalise_at`.
    n_units : float or None
        Number of terms in the sum that is the batch's energy, if these are not its data but,
        for example, words.
    inverse : ndarray of shape (n_samples,) or (K, n_samples) or None
        The inverse temperatures that a :class:`LocalRule` found, or that result from
        :class:`FactorLimits`.
    """

    statistics: Any
    energy: NDArray[np.float64] | float | None = None
    entropy: NDArray[np.float64] | float | None = None
    log_partition: NDArray[np.float64] | None = None
    n_units: float | None = None
    inverse: NDArray | None = None
    #: Name of a unit, for messages.
    unit: ClassVar[str] = "datum"


class Model(Protocol):
    """A conditionally conjugate model, as the optimiser uses it."""

    def local_step(self, batch: Batch, tempering: Tempering, moments: bool = False) -> LocalStep:
        """Fit the local variables of a batch; with `moments`, return energies and entropies."""

    def global_step(self, statistics: Any, rho: float, scale: float, tempering: Tempering) -> None:
        """Update the globals by a step of size rho along the tempered natural gradient.

        `scale` is the number of data in the population over the number in the batch.
        """


@runtime_checkable
class Normalised(Protocol):
    """A model that offers log C(T), for temperatures that are learned from the data."""

    def log_partition(self, inverse: NDArray[np.float64]) -> NDArray[np.float64]:
        """log C(T) of all the data at each inverse temperature b, up to a constant.

        C(T) normalises the tempered likelihood: h(x, z) p(beta) exp(b (beta t - a(beta)))
        summed and integrated over beta, z and x.  It is called again at every step, so it may
        depend on hyperparameters that the model learns.  If the integral over the prior of
        beta cannot be computed, it may use beta at the current q instead.
        """


@runtime_checkable
class Critical(Protocol):
    """A model that knows its critical temperature."""

    def critical_temperature(self, form: Form) -> float:
        """The temperature above which the tempered objective has a single optimum."""


@runtime_checkable
class BinaryFactors(Protocol):
    """A model of binary factors, fitted in batch, that can have a proximity temperature."""

    n_samples: int

    def factors(self) -> NDArray:
        """The present q(z = 1) of each factor and datum, of shape (K, n).

        Some of the columns may be padding.
        """

    def prior_logit(self) -> NDArray[np.float64]:
        """logit p(z = 1) of each factor, of shape (K,)."""

    def energy(self) -> float:
        """E_q[log p(x, z | globals)] of all data, see :class:`LocalStep`.

        It can also be called before the first step.
        """


@runtime_checkable
class LocallyNormalised(Protocol):
    """A model that computes log C(T) from batches, at the current q or over its prior."""

    def normalise_at(self, inverse: NDArray[np.float64] | None) -> None:
        """Set the b at which local steps with energies also return log C; None for no b."""

    def log_mean_unit(self, inverse: NDArray[np.float64]) -> NDArray[np.float64]:
        """log C(T) of one unit over the prior, at each inverse temperature."""

    def hyperparameters(self) -> dict[str, Any]:
        """The quantities that log C(T) depends on, by name; None for unknown ones."""
