"""Random numbers that are the same on every device."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor


class Noise:
    """A stream of random numbers, drawn on the CPU and moved to where they are needed.

    PyTorch's generators differ between devices; with one stream a seed gives the same fit on
    each, up to rounding.  The networks' work outweighs that of drawing.

    Parameters
    ----------
    seed : int
    device : torch.device or str
        Where the numbers go.
    """

    def __init__(self, seed: int, device: torch.device | str = "cpu") -> None:
        self.device = torch.device(device)
        self._generator = torch.Generator().manual_seed(seed)

    def normal(self, *shape: int) -> Tensor:
        """Draws from N(0, 1), float32."""
        return torch.randn(shape, generator=self._generator, dtype=torch.float32).to(self.device)

    def uniform(self, *shape: int) -> Tensor:
        """Draws from the uniform distribution on [0, 1), float32."""
        return torch.rand(shape, generator=self._generator, dtype=torch.float32).to(self.device)

    def bernoulli(self, probability: Tensor) -> Tensor:
        """0 or 1, of the shape of the probabilities; no gradient passes."""
        probability = probability.detach()
        return (self.uniform(*probability.shape) < probability).to(probability.dtype)

    def poisson(self, rate: Tensor) -> Tensor:
        """Counts, of the shape of the rates; no gradient passes."""
        drawn = torch.poisson(rate.detach().cpu(), generator=self._generator)
        return drawn.to(self.device)

    def integers(self, high: int, n: int) -> Tensor:
        """n integers in [0, high), independent."""
        return torch.randint(high, (n,), generator=self._generator).to(self.device)

    def permutation(self, n: int) -> Tensor:
        """0, ..., n - 1 in random order, on the CPU."""
        return torch.randperm(n, generator=self._generator)

    def coin(self, probability: float) -> bool:
        """Heads, with this probability."""
        return bool(torch.rand((), generator=self._generator) < probability)

    def state(self) -> Tensor:
        """Where the stream stands."""
        return self._generator.get_state()

    def restore(self, state: Tensor) -> None:
        """Go on from where a stream stood."""
        self._generator.set_state(state)

    def __getstate__(self) -> dict[str, Any]:
        return {"device": self.device, "state": self.state()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.device = state["device"]
        self._generator = torch.Generator()
        self.restore(state["state"])
