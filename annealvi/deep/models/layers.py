"""Stacks of layers for encoders and decoders: rectified units, or gated ones."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional


class ReLUStack(nn.Module):
    """Linear layers, each followed by a rectifier.

    Parameters
    ----------
    n_in : int
        Inputs.
    widths : sequence of int
        Units of each layer.
    """

    #: Outputs of the linear map for each unit.
    maps = 1

    def __init__(self, n_in: int, widths: Sequence[int]) -> None:
        super().__init__()
        self.widths = list(widths)
        sizes = [n_in, *widths]
        self.layers = nn.ModuleList(
            nn.Linear(before, self.maps * after)
            for before, after in zip(sizes, widths, strict=False)
        )

    def activations(self, x: Tensor) -> list[Tensor]:
        """Return the output of each layer.

        Parameters
        ----------
        x : Tensor of shape (..., n_in)
        """
        found = []
        for layer in self.layers:
            x = self.activate(layer(x))
            found.append(x)
        return found

    def activate(self, x: Tensor) -> Tensor:
        """Return the units of a layer from its linear map."""
        return functional.relu(x)

    def forward(self, x: Tensor) -> Tensor:
        """Return the output of the last layer."""
        return self.activations(x)[-1]


class GatedStack(ReLUStack):
    r"""Gated layers, :math:`h = (W x + b) \odot \mathrm{sigmoid}(V x + c)`.

    A gate decides how much of a linear unit is passed on (Dauphin, Fan, Auli, Grangier 2017,
    *Language modeling with gated convolutional networks*).  W and V are the two halves of the
    rows of one matrix.

    Parameters
    ----------
    n_in : int
        Inputs.
    widths : sequence of int
        Units of each layer.
    """

    maps = 2

    def activate(self, x: Tensor) -> Tensor:
        """Return the units of a layer from its linear map."""
        return functional.glu(x, dim=-1)


#: Kinds of units, by the name that an estimator's parameter `units` has for them.
STACKS: dict[str, type[ReLUStack]] = {"relu": ReLUStack, "gated": GatedStack}


def never_positive(activations: Iterable[Tensor]) -> list[Tensor]:
    """Return which units of each layer are dead: positive on no row.

    Parameters
    ----------
    activations : iterable of Tensor
        Each of shape (..., units).

    Returns
    -------
    list of Tensor of bool, each of shape (units,)
    """
    return [~(layer.flatten(0, -2) > 0).any(dim=0) for layer in activations]


@torch.no_grad()
def start_orthogonal(weight: Tensor, maps: int = 1) -> None:
    """Make a matrix of weights orthogonal, or each of several below one another.

    Parameters
    ----------
    weight : Tensor of shape (maps * outputs, inputs)
        Changed in place.
    maps : int, default=1
    """
    for part in weight.chunk(maps):
        nn.init.orthogonal_(part)
