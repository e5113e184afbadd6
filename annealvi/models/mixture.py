"""The base class of mixture models, which keep what the ELBO after the last step needs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from numpy.random import RandomState

from annealvi.files.schema import Integer, Schema, damaged
from annealvi.model import UNTEMPERED, LocalStep, Tempering

#: The sizes of a model.  They are the first fields of its schema, and shapes refer to them.
K = "n_components"
D = "n_features"
SIZES = {name: Integer(1) for name in (K, D, "n_samples")}


class MixtureStep(LocalStep):
    """The last local step of a model; its energy is computed when it is read."""

    def __init__(self, model: Mixture, statistics: Any, entropy: Any, inverse: Any = None) -> None:
        """`inverse` is b of each factor."""
        self.statistics = statistics
        self.entropy = entropy
        self.inverse = inverse
        self._model = model

    @property
    def energy(self) -> float:  # type: ignore[override]
        """The energy L at the current q: +E_q[log p(x, z | parameters)], without base measure."""
        return self._model.energy()


class Mixture:
    """Base class of mixture models, which store their approximate posterior q.

    A child class defines the steps of :class:`annealvi.model.Model`, a method ``start(X, ...)``
    that begins training, and the methods below that raise NotImplementedError.
    """

    #: Everything that a fit has learned.  The fields are attributes of the model.
    STATE: ClassVar[Schema]
    n_components: int
    n_features: int
    n_samples: int
    n_threads = 1
    #: Whether components are perturbed while T falls.
    perturbs: ClassVar[bool] = True
    #: The statistics of the last local step, not multiplied by b, and the entropy of its q(z).
    last: Any
    entropy: float

    def perturb(self, rng: RandomState) -> None:
        """Move components slightly at random, because high T can make them equal or zero."""
        raise NotImplementedError

    def release_buffers(self) -> None:
        """Release the arrays that only training needs."""

    def energy(self) -> float:
        """The energy L of the data of the last local step, at the current q."""
        raise NotImplementedError

    def log_base_measure(self) -> float:
        """The logarithm of the base measure of the training data; learned T do not temper it."""
        raise NotImplementedError

    def global_bound(self, tempering: Tempering = UNTEMPERED) -> float:
        """-KL(q || p) of the global variables.  With ``form="posterior"`` p is tempered."""
        raise NotImplementedError

    def elbo(self, tempering: Tempering = UNTEMPERED) -> float:
        """The objective F(b) of the training data at one b, after at least one step."""
        likelihood = self.energy() + self.log_base_measure()
        return float(tempering.inverse) * likelihood + self.entropy + self.global_bound(tempering)

    def hyperparameters(self) -> dict[str, Any]:
        """The quantities that log C(T) depends on."""
        return {name: getattr(self, name) for name in SIZES}

    def state_dict(self) -> dict[str, Any]:
        """What a fit has learned, as a tree; during the fit, also the arrays for training."""
        return self.STATE.dump(self)

    def load_state_dict(self, tree: Mapping[str, Any], place: str) -> None:
        """Set what a fit has learned from a tree; during training, sizes must be the same."""
        fields = self.STATE.load(tree, place)
        for name in (*SIZES, "dtype"):
            # n_samples is 0 before training, and the sizes of the file are then taken over
            if self.n_samples and name in fields and fields[name] != getattr(self, name):
                raise damaged(f"{place}.{name}", f"{getattr(self, name)}", fields[name])
        self._restore(fields, place)

    def _restore(self, fields: dict[str, Any], place: str) -> None:
        """Check that values from a file fit together, and set them as attributes."""
        raise NotImplementedError
