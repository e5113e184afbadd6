"""The loop that every deep fit runs: a minibatch, a gradient, a step, and its record.

A fit can stop at any step and continue later as if it had not stopped.  Its state holds the
parameters, the optimiser, the random numbers, the order of the data and the history.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from annealvi.deep.files import (
    array_of,
    load_network,
    load_optimiser,
    network_tree,
    optimiser_tree,
)
from annealvi.deep.noise import Noise
from annealvi.exceptions import DivergenceError
from annealvi.files import Node
from annealvi.inference import Monitor

#: The history of a whole fit has about this many records.
RECORDS = 1000


class Outcome(NamedTuple):
    """What an objective returns for one step.

    Attributes
    ----------
    loss : Tensor, scalar
        Its gradient is followed downhill.  It may be a surrogate of which only the gradient
        means anything.
    elbo : Tensor, scalar
        The untempered objective, per datum or per draw.
    temperature : float
        T of the step.
    """

    loss: Tensor
    elbo: Tensor
    temperature: float = 1.0


#: Takes the rows of a minibatch (None where there are no data) and the number of steps made.
Objective = Callable[[Tensor | None, int], Outcome]


class Training:
    """The state of one fit and the loop that advances it.

    Parameters
    ----------
    module : torch.nn.Module
        Everything that is trained or remembered between steps, buffers included.
    optimiser : torch.optim.Optimizer
    noise : Noise
        Source of the objective's random numbers and of the order of the data.
    n_rows : int, optional
        Number of data; None where there are no data.
    batch_size : int
        Data per step; at most `n_rows` are used.
    """

    def __init__(
        self,
        module: nn.Module,
        optimiser: torch.optim.Optimizer,
        noise: Noise,
        *,
        n_rows: int | None = None,
        batch_size: int = 1,
    ) -> None:
        self.module = module
        self.optimiser = optimiser
        self.noise = noise
        self.n_rows = n_rows
        self.batch_size = batch_size if n_rows is None else min(batch_size, n_rows)
        self.monitor = Monitor()
        self._order = torch.empty(0, dtype=torch.long)
        self._position = 0
        self._sum, self._count = 0.0, 0

    @property
    def steps_per_pass(self) -> int:
        """Steps that take the data once; without data 1."""
        return 1 if self.n_rows is None else self.n_rows // self.batch_size

    def run(
        self, objective: Objective, until: int, on_step: Callable[[Outcome], None] | None = None
    ) -> None:
        """Make steps until a total number of steps is reached.

        Parameters
        ----------
        objective : callable
            ``objective(rows, step)`` returns an :class:`Outcome`.  `rows` are those of the
            minibatch (None where there are no data); `step` is the number of steps made.
        until : int
            Total number of steps, counting those made before.
        on_step : callable, optional
            Called with the outcome after each step.  It raises ``StopIteration`` to end the
            fit.

        Raises
        ------
        DivergenceError
            If the loss or its gradient is not finite.  The parameters are then set back to
            the last ones with a finite loss.
        """
        parameters = [p for p in self.module.parameters() if p.requires_grad]
        finite = [p.detach().clone() for p in parameters]
        remembering = [m for m in self.module.modules() if _remembers(m)]
        every = max(1, until // RECORDS)
        while self.monitor.step < until:
            step = self.monitor.step
            memories = [m.get_extra_state() for m in remembering]
            with self.monitor.clock():
                outcome = objective(self._next_rows(), step)
                self.optimiser.zero_grad(set_to_none=True)
                outcome.loss.backward()
                gradients = [p.grad for p in parameters if p.grad is not None]
                size = float(nn.utils.get_total_norm(gradients)) if gradients else 0.0
                loss, elbo = float(outcome.loss.detach()), float(outcome.elbo.detach())
                if not (math.isfinite(loss) and math.isfinite(size)):
                    _copy(finite, parameters)
                    for part, memory in zip(remembering, memories, strict=True):
                        part.set_extra_state(memory)
                    raise DivergenceError(self._diverged(until, loss, size))
                _copy([p.detach() for p in parameters], finite)
                self.optimiser.step()
            share = 1.0 if self.n_rows is None else self.batch_size / self.n_rows
            self.monitor.advance(share, outcome.temperature)
            self._sum, self._count = self._sum + elbo, self._count + 1
            if self.monitor.step % every == 0 or self.monitor.step == until:
                self.monitor.record(elbo=self._sum / self._count)
                self._sum, self._count = 0.0, 0
            if on_step is not None:
                try:
                    on_step(outcome)
                except StopIteration:
                    return

    def history(self) -> dict[str, NDArray]:
        """Return the monitor's records, and one more for the steps since the last record.

        The additional record is not kept: a fit that never stopped would not have it.
        """
        monitor = copy.deepcopy(self.monitor)
        if self._count:
            monitor.record(elbo=self._sum / self._count)
        return monitor.history

    def _next_rows(self) -> Tensor | None:
        """Return the rows of the next minibatch; each pass takes the data in a new order.

        Rows at the end of a pass that do not fill a minibatch are left out of this pass.
        """
        if self.n_rows is None:
            return None
        if self._position + self.batch_size > len(self._order):
            self._order, self._position = self.noise.permutation(self.n_rows), 0
        rows = self._order[self._position : self._position + self.batch_size]
        self._position += self.batch_size
        return rows.to(self.noise.device)

    def _diverged(self, until: int, loss: float, size: float) -> str:
        step = self.monitor.step
        where = "the log density" if self.n_rows is None else "the data"
        kept = "; the last finite state is kept" if step else ""
        return (
            f"The fit diverged at step {step + 1} of {until}: the loss is {loss}, the norm of its "
            f"gradient {size}. Lower 'learning_rate', or look for values of {where} that are out "
            f"of scale{kept}."
        )

    # ------------------------------------------------------------------- state

    def state_dict(self) -> dict[str, Any]:
        """Everything that is needed to continue, as a tree; see :mod:`annealvi.files`."""
        return {
            "module": network_tree(self.module),
            "optimiser": optimiser_tree(self.optimiser),
            "noise": array_of(self.noise.state()),
            "n_rows": self.n_rows,
            "batch_size": self.batch_size,
            "order": array_of(self._order),
            "position": self._position,
            "sum": self._sum,
            "count": self._count,
            "monitor": self.monitor.state_dict(),
        }

    def load_state_dict(self, node: Node) -> None:
        """Continue from a state of the same architecture, with the step size of this training.

        Parameters
        ----------
        node : Node
            What :meth:`state_dict` returned, from a file.

        Raises
        ------
        ValueError
            If it is no such state.
        """
        order = node.array("order", (None,), np.int64)
        if len(order) not in (0, self.n_rows or 0) or not np.array_equal(
            np.sort(order), np.arange(len(order))
        ):
            raise node.error("order", "each number of a datum once", order)
        load_network(self.module, node.node("module"))
        load_optimiser(self.optimiser, node.node("optimiser"))
        self.noise.load(node, "noise")
        self._order = torch.from_numpy(order.copy())
        self._position = node.integer("position", 0, len(order))
        self._sum = node.number("sum", finite=False)
        self._count = node.integer("count")
        self.monitor.load_state_dict(node.node("monitor"))


def _copy(sources: Sequence[Tensor], targets: Sequence[Tensor]) -> None:
    with torch.no_grad():
        torch._foreach_copy_(list(targets), list(sources))


def _remembers(module: nn.Module) -> bool:
    """Return whether a module has a state besides its parameters, such as a running average."""
    return type(module).get_extra_state is not nn.Module.get_extra_state


def as_device(device: Any, owner: str) -> torch.device:
    """Return the device that a parameter names, if there is one.

    Parameters
    ----------
    device : str or torch.device
        ``"cpu"``, ``"cuda"`` or ``"cuda:1"``.
    owner : str
        Name of the estimator, for the error messages.

    Raises
    ------
    ValueError
        If the value names no device, or one that PyTorch does not see.
    """
    try:
        found = torch.device(device)
    except (RuntimeError, TypeError, ValueError):
        found = None
    if found is None or found.type not in ("cpu", "cuda"):
        raise ValueError(
            f"The 'device' parameter of {owner} must be 'cpu', 'cuda' or 'cuda:<index>'. "
            f"Got {device!r} instead."
        )
    if found.type == "cuda" and (found.index or 0) >= torch.cuda.device_count():
        raise ValueError(
            f"The 'device' parameter of {owner} is {device!r}, but PyTorch sees "
            f"{torch.cuda.device_count()} CUDA devices. Use device='cpu'."
        )
    return found
