"""What the inference core knows of a model: a small protocol.

A conditionally conjugate model has local variables (one set a datum) and global
variables with a conjugate prior.  Tempering raises the likelihood to the inverse
temperature b = 1/T.  A class with the methods of :class:`Model` gets stochastic
variational inference and annealing from :mod:`annealvi.inference`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

Form = Literal["likelihood", "posterior"]


class Tempering(NamedTuple):
    """How hot one step runs.

    Attributes
    ----------
    inverse : float or ndarray of shape (n_samples,)
        b = 1/T, one number or one for each datum of the batch.
    form : {"likelihood", "posterior"}
        What b multiplies: the likelihood alone (Mandt et al. 2016) or likelihood
        and priors (Abrol et al. 2014).
    """

    inverse: float | NDArray = 1.0
    form: Form = "likelihood"


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
    """

    statistics: Any
    energy: NDArray[np.float64] | float | None = None
    entropy: NDArray[np.float64] | float | None = None


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
