"""Random numbers that are the same on every device."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from annealvi.deep.files import load_generator
from annealvi.files import Node


def check_room(shape: tuple[int, ...]) -> None:
    """Raise MemoryError if an array of float32 would be larger than the address space.

    Parameters
    ----------
    shape : tuple of int
    """
    if math.prod(shape) >= 1 << 60:
        raise MemoryError(f"Unable to allocate an array with shape {shape}")


class Noise:
    """A stream of random numbers, drawn on the CPU and moved to the device of the fit.

    PyTorch's generators give other numbers on other devices.  With one stream on the CPU, a
    seed gives the same fit on every device, up to rounding.  Drawing takes little time beside
    the networks.

    Parameters
    ----------
    seed : int
    device : torch.device or str
        Device to which the numbers are moved.
    """

    def __init__(self, seed: int, device: torch.device | str = "cpu") -> None:
        self.device = torch.device(device)
        self._generator = torch.Generator().manual_seed(seed)

    def normal(self, *shape: int) -> Tensor:
        """Return draws from N(0, 1), float32."""
        return self._drawn(torch.randn, shape)

    def uniform(self, *shape: int) -> Tensor:
        """Return draws from the uniform distribution on [0, 1), float32."""
        return self._drawn(torch.rand, shape)

    def bernoulli(self, probability: Tensor) -> Tensor:
        """Return 0 or 1 for each probability, without gradient."""
        probability = probability.detach()
        return (self.uniform(*probability.shape) < probability).to(probability.dtype)

    def poisson(self, rate: Tensor) -> Tensor:
        """Return a Poisson count for each rate, without gradient."""
        drawn = torch.poisson(rate.detach().cpu(), generator=self._generator)
        return drawn.to(self.device)

    def integers(self, high: int, n: int) -> Tensor:
        """Return n independent integers in [0, high)."""
        return torch.randint(high, (n,), generator=self._generator).to(self.device)

    def permutation(self, n: int) -> Tensor:
        """Return 0, ..., n - 1 in random order, on the CPU."""
        return torch.randperm(n, generator=self._generator)

    def coin(self, probability: float) -> bool:
        """Return True with this probability."""
        return bool(torch.rand((), generator=self._generator) < probability)

    def _drawn(self, draw: Callable[..., Tensor], shape: tuple[int, ...]) -> Tensor:
        """Draws of a shape; MemoryError if there is no room, where PyTorch has other errors."""
        check_room(shape)
        try:
            drawn = draw(shape, generator=self._generator, dtype=torch.float32)
        except RuntimeError as error:
            if "allocate memory" not in str(error):
                raise
            raise MemoryError(f"Unable to allocate an array with shape {shape}") from error
        return drawn.to(self.device)

    def state(self) -> Tensor:
        """Return the state of the generator."""
        return self._generator.get_state()

    def restore(self, state: Tensor) -> None:
        """Continue from a state that :meth:`state` returned."""
        self._generator.set_state(state)

    def load(self, node: Node, name: str) -> None:
        """Continue from a state in a file.

        Parameters
        ----------
        node : Node
        name : str
        """
        load_generator(self._generator, node, name)

    def __getstate__(self) -> dict[str, Any]:
        return {"device": self.device, "state": self.state()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.device = state["device"]
        self._generator = torch.Generator()
        self.restore(state["state"])
