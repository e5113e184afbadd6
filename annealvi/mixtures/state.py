"""What a fit of a mixture has learned, at any step, and how it is written to a file."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, Self

import numpy as np
from numpy.random import RandomState

from annealvi.files import Node
from annealvi.inference import Monitor
from annealvi.model import Model, Tempering
from annealvi.temperature import Variational
from annealvi.temperature.parameters import restored_temperature, temperature_tree
from annealvi.threads import shallow


class BatchModel(Model, Protocol):
    """A model that keeps its training data and computes its ELBO on them."""

    n_samples: int

    def elbo(self, tempering: Tempering = ...) -> float:
        """F(b) of the training data; at T = 1 the ELBO."""

    def energy(self) -> float:
        """E_q[log p(x, z | globals)] of the training data, without the base measure."""

    def perturb(self, rng: RandomState) -> None:
        """Move components slightly at random, because high T can make them equal or zero."""

    def release_buffers(self) -> None:
        """Release the buffers that only training needs."""

    def state_dict(self) -> dict[str, Any]:
        """All that the fit has learned, as a tree."""

    def load_state_dict(self, node: Node) -> None:
        """Take over what a fit has learned."""


class ModelFiles(NamedTuple):
    """How models of a class are written to files."""

    #: Returns a model as a tree.
    tree: Callable[[Any], dict[str, Any]]
    #: Returns the model of such a tree, without the buffers of its training.
    restored: Callable[[Node], Any]


@dataclass
class MixtureState:
    """The state of a fit of a mixture, at any step."""

    model: Any
    #: The record: steps, temperatures, bounds.
    monitor: Monitor
    #: Mean ELBO per sample after the last step.
    lower_bound: float = -np.inf
    #: Whether the last step changed it by less than the tolerance.
    converged: bool = False
    #: The temperature, if it has learned a q(y).  Others are not kept: a proximity temperature
    #: holds arrays of the size of the training data.
    temperature: Variational | None = None

    def view(self) -> Self:
        """Return the fit as it is between two steps, for readers in any thread.

        A step replaces the arrays of the model; it does not write to those of the view.
        """
        seen = shallow(self)
        seen.model = shallow(self.model)
        seen.model.release_buffers()
        seen.monitor = self.monitor.copy()
        if self.temperature is not None:
            seen.temperature = self.temperature.copy(seen.model)
        return seen

    def state_dict(self, files: ModelFiles) -> dict[str, Any]:
        """Return the state as a tree, from which :meth:`restored` can make it without data."""
        learned = self.temperature
        return self.progress() | {
            "model": files.tree(self.model),
            "temperature": None if learned is None else temperature_tree(learned),
        }

    @classmethod
    def restored(cls, node: Node, files: ModelFiles) -> MixtureState:
        """The state of a fit that has ended, from a file."""
        state = cls(files.restored(node.node("model")), Monitor())
        state.load_progress(node)
        if not node.is_none("temperature"):
            learned = restored_temperature(node.node("temperature"), model=state.model)
            if not isinstance(learned, Variational):
                raise node.error("temperature", "a Variational temperature", learned)
            state.temperature = learned
        return state

    def progress(self) -> dict[str, Any]:
        """The record and the bound, as a tree."""
        return {
            "monitor": self.monitor.state_dict(),
            "lower_bound": self.lower_bound,
            "converged": bool(self.converged),
        }

    def load_progress(self, node: Node) -> None:
        """Take over what :meth:`progress` returned."""
        self.monitor.load_state_dict(node.node("monitor"))
        self.lower_bound = node.number("lower_bound")
        self.converged = node.boolean("converged")
