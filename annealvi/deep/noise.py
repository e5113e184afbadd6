"""Random numbers that are the same on every device."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from annealvi.files.schema import Array, Sizes, damaged

#: Bytes of the state of PyTorch's generator on the CPU, and the numbers of its Mersenne Twister.
GENERATOR_SIZE, TWISTER = 5056, 624
#: Where the bytes of these parts begin: numbers left, whether it was seeded, the next number, and
#: whether a draw is kept.
LEFT, SEEDED, NEXT, KEPT = 8, 12, 16, 5048


def check_room(shape: tuple[int, ...]) -> None:
    """Raise MemoryError if an array of float32 would be larger than the address space."""
    if math.prod(shape) >= 1 << 60:
        raise MemoryError(f"Unable to allocate an array with shape {shape}")


class Noise:
    """A stream of random numbers, drawn on the CPU and moved to the device of the fit."""

    # PyTorch's generators give other numbers on other devices.  With one stream on the CPU, a
    # seed gives the same fit on every device, up to rounding.  Drawing takes little time beside
    # the networks.

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

    def __getstate__(self) -> dict[str, Any]:
        return {"device": self.device, "state": self.state()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.device = state["device"]
        self._generator = torch.Generator()
        self.restore(state["state"])


class NoiseState(Array):
    """The state of a stream in a file; a Tensor for :meth:`Noise.restore` when it was read."""

    def __init__(self) -> None:
        super().__init__((GENERATOR_SIZE,), np.uint8)

    def dump(self, value: Noise) -> Any:
        return value.state().numpy()

    def load(self, value: Any, way: str, sizes: Sizes) -> Any:
        data = super().load(value, way, sizes).tobytes()
        state = torch.frombuffer(bytearray(data), dtype=torch.uint8)
        # PyTorch's own check lets some states through that make it read beyond its numbers
        left, seeded = np.frombuffer(data[LEFT:NEXT], np.int32).tolist()
        following = int(np.frombuffer(data[NEXT : NEXT + 8], np.uint64)[0])
        sound = left + following == TWISTER + 1 and 1 <= left <= TWISTER
        if not (sound or (left, following) == (1, 0)) or seeded != 1 or data[KEPT] > 1:
            raise damaged(way, "the state of a generator of PyTorch", value)
        try:
            torch.Generator().set_state(state)
        except RuntimeError as error:
            raise damaged(way, "the state of a generator of PyTorch", value) from error
        return state
