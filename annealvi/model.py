"""What the inference core knows of a model: a small protocol.

A conditionally conjugate model has local variables (one set a datum) and global
variables with a conjugate prior.  Tempering raises the likelihood to the inverse
temperature b = 1/T.  A class with the methods of :class:`Model` gets stochastic
variational inference and annealing from :mod:`annealvi.inference`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

Form = Literal["likelihood", "posterior"]


class LocalRule(Protocol):
    """How each datum's temperature follows from how well it is explained.

    Attributes
    ----------
    inverses : ndarray of shape (M,)
        Inverse temperatures at which it wants to know log C.
    rounds : int
        How often local variables and temperatures are fitted in turn.
    """

    inverses: NDArray[np.float64]
    rounds: int

    def __call__(
        self,
        energy: NDArray[np.float64],
        n_units: NDArray[np.float64],
        log_partition: NDArray[np.float64],
    ) -> NDArray[np.float64]:
        """The inverse temperature of each datum.

        Parameters
        ----------
        energy, n_units : ndarray of shape (n_samples,)
            Of each datum, see :class:`LocalStep`.
        log_partition : ndarray of shape (n_samples, M)
            log C of each datum.
        """


class FactorLimits(NamedTuple):
    """How far binary factors may move at T = 1; further out each has a temperature of its own.

    The best logit a of a factor stays a within its limits.  Beyond them it becomes the limit
    or ``centre + inverse * (a - centre)``, whichever lies further out.

    Attributes
    ----------
    inverse : float
        b of the factors furthest out.
    centre : ndarray of shape (K,)
        The logit that each factor is pulled to.
    lower, upper : ndarray of shape (K, n)
        Logits around the centre, or infinite; for every column of :meth:`BinaryFactors.factors`.
    """

    inverse: float
    centre: NDArray[np.float64]
    lower: NDArray[np.float64]
    upper: NDArray[np.float64]


class Tempering(NamedTuple):
    """How hot one step runs.

    Attributes
    ----------
    inverse : float or ndarray of shape (n_samples,)
        b = 1/T, one number or one for each datum of the batch.
    form : {"likelihood", "posterior"}
        What b multiplies: the likelihood alone (Mandt et al. 2016) or likelihood
        and priors (Abrol et al. 2014).
    rule : LocalRule or None
        What finds a temperature for each datum, from `inverse` on.
    limits : FactorLimits or None
        What holds binary factors in the local step; for a model that has :class:`BinaryFactors`.
    """

    inverse: float | NDArray = 1.0
    form: Form = "likelihood"
    rule: LocalRule | None = None
    limits: FactorLimits | None = None


#: No tempering: T = 1.
UNTEMPERED = Tempering()


class Batch(NamedTuple):
    """Rows of the data; the model takes views of them, never copies.

    Attributes
    ----------
    data : object with a length along its first axis
        All of the data handed to the optimiser.
    rows : slice
        Which of them form the batch.
    """

    data: Any
    rows: slice


@dataclass
class LocalStep:
    """What a model gives back for a batch.

    Attributes
    ----------
    statistics : object
        Expected sufficient statistics, weighted by b.  Opaque to the optimiser,
        which hands them to ``global_step``.
    energy : ndarray of shape (n_samples,), float or None
        E_q[log p(x, z | globals)] of each datum or of all, not weighted by b and without
        the base measure h(x, z), which is not tempered.  A model that can do so cheaply
        makes it a property, worked out at the globals as they are when it is asked for.
    entropy : ndarray of shape (n_samples,), float or None
        Entropy of each datum's or of all local factors, less what their untempered priors
        contribute: ``b * energy + entropy`` is the datum's share of the annealed ELBO.
    log_partition : ndarray of shape (M,) or None
        log C(T) of the batch at the current q, at the inverse temperatures asked for by
        :meth:`LocallyNormalised.normalise_at`.
    n_units : float or None
        What the batch's energy is a sum over, where that is not its data: words.
    inverse : ndarray of shape (n_samples,) or (K, n_samples) or None
        The inverse temperatures that a :class:`LocalRule` has found, or that
        :class:`FactorLimits` have led to.
    """

    statistics: Any
    energy: NDArray[np.float64] | float | None = None
    entropy: NDArray[np.float64] | float | None = None
    log_partition: NDArray[np.float64] | None = None
    n_units: float | None = None
    inverse: NDArray | None = None
    #: What a unit is called.
    unit: ClassVar[str] = "datum"


class Model(Protocol):
    """A conditionally conjugate model in the hands of the optimiser."""

    def local_step(self, batch: Batch, tempering: Tempering, moments: bool = False) -> LocalStep:
        """Fit the local variables of a batch; with `moments`, give energies and entropies."""

    def global_step(self, statistics: Any, rho: float, scale: float, tempering: Tempering) -> None:
        """Move the globals by rho along the tempered natural gradient.

        `scale` is the number of data in the population over the number in the batch.
        """


@runtime_checkable
class Normalised(Protocol):
    """What a temperature that is learned from the data needs of a model besides."""

    def log_partition(self, inverse: NDArray[np.float64]) -> NDArray[np.float64]:
        """log C(T) of all the data at each inverse temperature b, up to a constant.

        C(T) normalises the tempered likelihood: h(x, z) p(beta) exp(b (beta t - a(beta)))
        summed and integrated over beta, z and x.  Asked anew at every step, it may follow
        hyperparameters that the model learns, or take beta at the current q where the
        integral over its prior is out of reach.
        """


@runtime_checkable
class Critical(Protocol):
    """A model that knows how hot is hot."""

    def critical_temperature(self, form: Form) -> float:
        """The temperature above which its tempered objective has a single optimum."""


@runtime_checkable
class BinaryFactors(Protocol):
    """A model of binary factors, fitted in batch, that a proximity temperature can hold."""

    n_samples: int

    def factors(self) -> NDArray:
        """q(z = 1) of each factor and datum as it is, of shape (K, n); columns may be padding."""

    def prior_logit(self) -> NDArray[np.float64]:
        """logit p(z = 1) of each factor, of shape (K,)."""

    def energy(self) -> float:
        """E_q[log p(x, z | globals)] of all data, see :class:`LocalStep`; of the start too."""


@runtime_checkable
class LocallyNormalised(Protocol):
    """A model whose log C(T) is worked out from batches, at the current q or over its prior."""

    def normalise_at(self, inverse: NDArray[np.float64] | None) -> None:
        """From now on, local steps with energies bring log C at these b, or none any more."""

    def log_mean_unit(self, inverse: NDArray[np.float64]) -> NDArray[np.float64]:
        """log C(T) of one unit over the prior, at each inverse temperature."""

    def hyperparameters(self) -> dict[str, Any]:
        """What log C(T) depends on, by name; None where it is not known."""
