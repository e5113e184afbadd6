"""Networks, optimisers and generators of PyTorch as trees for files, and back with checks.

See :mod:`annealvi.files`.  PyTorch's own files are pickles, which can run code when they are read.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Protocol, cast, runtime_checkable

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from annealvi.files import Node

#: Bytes of the state of PyTorch's generator on the CPU, and the numbers of its Mersenne Twister.
GENERATOR_SIZE, TWISTER = 5056, 624
#: Where the bytes of these parts begin: numbers left, whether it was seeded, the next number, and
#: whether a draw is kept.
LEFT, SEEDED, NEXT, KEPT = 8, 12, 16, 5048


@runtime_checkable
class Remembering(Protocol):
    """A part of a network with a memory besides its tensors, such as a running average."""

    def get_extra_state(self) -> Any:
        """Return the memory: a dict of tensors, numbers and None."""

    def checked_extra_state(self, node: Node) -> Any:
        """Return a memory from a file; ValueError if it cannot be one of this part."""


def array_of(tensor: Tensor) -> NDArray:
    """A tensor as an array on the CPU, for a tree that is written at once.

    Parameters
    ----------
    tensor : Tensor
    """
    return tensor.detach().cpu().numpy()


def tensor_of(node: Node, name: str, like: Tensor) -> Tensor:
    """A tensor from a file.

    Parameters
    ----------
    node : Node
    name : str
    like : Tensor
        A tensor, which may be on the device "meta", of the shape and the dtype.
    """
    dtype = torch.empty(0, dtype=like.dtype).numpy().dtype
    # not necessarily finite: a fit may be written just before it finds that it has diverged
    return torch.from_numpy(node.array(name, tuple(like.shape), dtype, finite=False).copy())


def network_tree(network: nn.Module) -> dict[str, Any]:
    """The tensors and memories of a network.

    Parameters
    ----------
    network : torch.nn.Module
    """
    return {
        "tensors": {name: array_of(part) for name, part in _tensors(network).items()},
        "memories": {
            name: _plain(part.get_extra_state()) for name, part in _memories(network).items()
        },
    }


def load_network(network: nn.Module, node: Node) -> None:
    """Take over the tensors and memories of a file.

    Parameters
    ----------
    network : torch.nn.Module
        Tensors on the device "meta" are replaced.
    node : Node
        What :func:`network_tree` returned.

    Raises
    ------
    ValueError
        If it is of a network of other shapes.
    """
    tensors, memories = node.node("tensors"), node.node("memories")
    found: dict[str, Any] = {
        name: tensor_of(tensors, name, part) for name, part in _tensors(network).items()
    }
    for name, part in _memories(network).items():
        memory = part.checked_extra_state(memories.node(name))
        found[f"{name}._extra_state" if name else "_extra_state"] = memory
    network.load_state_dict(found, assign=any(part.is_meta for part in network.parameters()))


def optimiser_tree(optimiser: torch.optim.Optimizer) -> dict[str, Any]:
    """What an optimiser remembers of each parameter, by the parameter's number.

    Its settings, such as the step size, are not written.

    Parameters
    ----------
    optimiser : torch.optim.Optimizer
    """
    state = optimiser.state_dict()["state"]
    return {
        str(number): {name: array_of(torch.as_tensor(part)) for name, part in parts.items()}
        for number, parts in state.items()
    }


def load_optimiser(optimiser: torch.optim.Optimizer, node: Node) -> None:
    """Take over what an optimiser remembers.

    Parameters
    ----------
    optimiser : torch.optim.Optimizer
        New, with the parameters that the file's had.
    node : Node
        What :func:`optimiser_tree` returned.

    Raises
    ------
    ValueError
        If it is of other parameters or of another kind of optimiser.
    """
    parameters = [part for group in optimiser.param_groups for part in group["params"]]
    shapes = _memory_shapes(optimiser)
    state = {}
    for number, parameter in enumerate(parameters):
        if str(number) in node:  # a parameter without a gradient has none
            parts = node.node(str(number))
            state[number] = {
                name: tensor_of(parts, name, like if like.ndim == 0 else parameter)
                for name, like in shapes.items()
            }
            for name, part in state[number].items():
                if shapes[name].ndim == 0 and not 0 <= float(part) < math.inf:  # steps made
                    raise parts.error(name, "finite and at least 0", float(part))
    groups = optimiser.state_dict()["param_groups"]
    optimiser.load_state_dict({"state": state, "param_groups": groups})


def load_generator(generator: torch.Generator, node: Node, name: str) -> None:
    """Set a generator of the CPU to a state from a file.

    PyTorch's own check lets some states through that make it read beyond its numbers.

    Parameters
    ----------
    generator : torch.Generator
    node : Node
    name : str

    Raises
    ------
    ValueError
        If it is no state of PyTorch's generator.
    """
    state = node.array(name, (GENERATOR_SIZE,), np.uint8)
    data = state.tobytes()
    left, seeded = np.frombuffer(data[LEFT:NEXT], np.int32).tolist()
    following = int(np.frombuffer(data[NEXT : NEXT + 8], np.uint64)[0])
    sound = left + following == TWISTER + 1 and 1 <= left <= TWISTER
    if not (sound or (left, following) == (1, 0)) or seeded != 1 or data[KEPT] > 1:
        raise node.error(name, "the state of a generator of PyTorch", state)
    try:
        generator.set_state(torch.frombuffer(bytearray(data), dtype=torch.uint8))
    except RuntimeError as error:
        raise node.error(name, "the state of a generator of PyTorch", state) from error


def meta_network(build: Callable[[], nn.Module], node: Node) -> nn.Module:
    """Build a network without memory for its tensors; those of the file are to take their places.

    Parameters
    ----------
    build : callable
        Returns the network.
    node : Node
        Its sizes come from here.

    Raises
    ------
    ValueError
        If no network has these sizes.
    """
    try:
        with torch.device("meta"):
            return build()
    except (RuntimeError, TypeError, OverflowError, MemoryError) as error:
        raise ValueError(
            f"The file is damaged: {node.way!r} describes no network ({str(error)[:80]})."
        ) from error


# -------------------------------------------------------------------------- details


def _tensors(network: nn.Module) -> dict[str, Tensor]:
    state = network.state_dict()
    return {name: part for name, part in state.items() if isinstance(part, Tensor)}


def _memories(network: nn.Module) -> dict[str, Remembering]:
    """The parts that remember more than tensors, by their names."""
    found = {}
    for name, part in network.named_modules():
        if type(part).get_extra_state is not nn.Module.get_extra_state:
            if not isinstance(part, Remembering):
                raise TypeError(
                    f"{name!r}, a {type(part).__name__}, cannot be written to a file: it needs a "
                    "method 'checked_extra_state'."
                )
            found[name] = cast("Remembering", part)
    return found


def _memory_shapes(optimiser: torch.optim.Optimizer) -> dict[str, Tensor]:
    """What an optimiser of this kind remembers of a parameter, from one with a single number."""
    probe = nn.Parameter(torch.zeros(1))
    probe.grad = torch.zeros(1)
    other = type(optimiser)([probe], **optimiser.defaults)
    other.step()
    return {name: torch.as_tensor(part) for name, part in other.state[probe].items()}


def _plain(memory: dict[str, Any]) -> dict[str, Any]:
    return {
        name: array_of(part) if isinstance(part, Tensor) else part for name, part in memory.items()
    }
