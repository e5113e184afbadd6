"""What the models of mixtures have in common: they keep what the ELBO of their last step needs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from numpy.random import RandomState

from annealvi.files.schema import Integer, Schema, damaged
from annealvi.model import UNTEMPERED, LocalStep, Tempering

#: The sizes of a model, with which its schema begins; shapes name them.
K, D = "n_components", "n_features"
SIZES = {name: Integer(1) for name in (K, D, "n_samples")}


class MixtureStep(LocalStep):
    """A local step whose energy is evaluated at the current globals when it is read."""

    def __init__(
        self, model: Mixture, statistics: Any, plain: Any, entropy: Any, inverse: Any = None
    ) -> None:
        self.statistics, self.entropy, self.inverse = statistics, entropy, inverse
        self._model, self._plain = model, plain

    @property
    def energy(self) -> float:  # type: ignore[override]
        """L = +E_q[log p(x, z | globals)] of the batch, without the base measure."""
        return self._model.expected_energy(self._plain)


class Mixture:
    """q of the global variables, and the statistics of the last local step.

    A child has the steps of :class:`annealvi.model.Model`; ``start(X, ...)``, which begins
    training; and the methods below that raise.
    """

    #: All that a fit has learned; the fields are attributes.
    STATE: ClassVar[Schema]
    n_components: int
    n_features: int
    n_samples: int
    n_threads = 1
    #: Whether components are perturbed while T falls.
    perturbs: ClassVar[bool] = True
    #: The statistics of the last local step, not weighted by b, and the entropy of its q(z).
    last: Any
    entropy: float

    def perturb(self, rng: RandomState) -> None:
        """Move components slightly at random, because high T can make them equal or zero."""
        raise NotImplementedError

    def release_buffers(self) -> None:
        """Release the arrays that only training needs."""

    def expected_energy(self, statistics: Any) -> float:
        """L from statistics that are not weighted by b, at the current globals."""
        raise NotImplementedError

    def log_base_measure(self) -> float:
        """log h of the training data; a learned T does not temper it."""
        raise NotImplementedError

    def global_bound(self, tempering: Tempering = UNTEMPERED) -> float:
        """-KL(q || p) of the globals; the posterior form tempers p."""
        raise NotImplementedError

    def energy(self) -> float:
        """L of the data of the last local step, at the current globals."""
        return self.expected_energy(self.last)

    def elbo(self, tempering: Tempering = UNTEMPERED) -> float:
        """F(b) of the training data at one b, after at least one step; at T = 1 the ELBO."""
        likelihood = self.energy() + self.log_base_measure()
        return float(tempering.inverse) * likelihood + self.entropy + self.global_bound(tempering)

    def hyperparameters(self) -> dict[str, Any]:
        """The quantities that log C(T) depends on."""
        return {name: getattr(self, name) for name in SIZES}

    def state_dict(self) -> dict[str, Any]:
        """All that a fit has learned, as a tree; while it lasts, with what only training needs."""
        return self.STATE.dump(self)

    def load_state_dict(self, tree: Mapping[str, Any], way: str) -> None:
        """Take over what a fit has learned; a model that is being trained keeps its sizes."""
        found = self.STATE.load(tree, way)
        for name in (*SIZES, "dtype"):
            if self.n_samples and name in found and found[name] != getattr(self, name):
                raise damaged(f"{way}.{name}", f"{getattr(self, name)}", found[name])
        self._restore(found, way)

    def _restore(self, found: dict[str, Any], way: str) -> None:
        """Set the attributes that were found in a file, once they fit together."""
        vars(self).update(found)
