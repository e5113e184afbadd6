"""The loop that every deep fit runs: a minibatch, a gradient, a step, and what is kept of it.

A fit can stop at any step and go on later as if it had not: the state holds parameters,
optimiser, random numbers, the order of the data and the history.
"""

from __future__ import annotations

import copy
import math
import os
import pickle
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from annealvi.deep.noise import Noise
from annealvi.exceptions import DivergenceError
from annealvi.inference import Monitor

#: Of the layout of a saved state.
FORMAT = 1
#: Records that the history of a whole fit has, about.
RECORDS = 1000


class Outcome(NamedTuple):
    """What an objective says of a step.

    Attributes
    ----------
    loss : Tensor, scalar
        Whose gradient is followed downhill; it may be a surrogate without meaning of its own.
    elbo : Tensor, scalar
        The untempered objective, a datum or a draw.
    temperature : float
        T of the step.
    """

    loss: Tensor
    elbo: Tensor
    temperature: float = 1.0


Objective = Callable[[Tensor | None, int], Outcome]


class Training:
    """Parameters on their way.

    Parameters
    ----------
    module : torch.nn.Module
        All that is trained or remembered between steps, buffers included.
    optimiser : torch.optim.Optimizer
    noise : Noise
        Where the objective's random numbers come from, and the order of the data.
    n_rows : int, optional
        Data; None where there are none.
    batch_size : int
        Data a step, at most `n_rows`.
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

    def run(
        self, objective: Objective, until: int, on_step: Callable[[Outcome], None] | None = None
    ) -> None:
        """Step until so many steps are done in all.

        Parameters
        ----------
        objective : callable
            Of the rows of a minibatch (None where there are no data) and the number of steps
            done, gives an :class:`Outcome`.
        until : int
        on_step : callable, optional
            Called after each step; raises ``StopIteration`` to end the fit.

        Raises
        ------
        DivergenceError
            If the loss or its gradient is not finite.  Parameters are then those of the last
            step whose loss was.
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
        """The monitor's records, and one of the steps since the last where there are such.

        The fit goes on without it, as one that never stopped has none.
        """
        monitor = copy.deepcopy(self.monitor)
        if self._count:
            monitor.record(elbo=self._sum / self._count)
        return monitor.history

    def _next_rows(self) -> Tensor | None:
        """The rows of the next minibatch; each pass takes the data in a new order.

        What is left of a pass and does not make a whole minibatch is left out of it.
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

    def state(self) -> dict[str, Any]:
        """All that is needed to go on: tensors, numbers and strings only."""
        return {
            "module": self.module.state_dict(),
            "optimiser": self.optimiser.state_dict(),
            "noise": self.noise.state(),
            "order": self._order,
            "position": self._position,
            "sum": (self._sum, self._count),
            "monitor": dict(vars(self.monitor)),
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a state of a training of the same architecture, at this one's step size.

        Parameters
        ----------
        state : mapping
            What :meth:`state` gave.

        Raises
        ------
        ValueError
            If it was trained on another number of data.
        """
        if len(state["order"]) not in (0, self.n_rows or 0):
            raise ValueError(
                f"The saved state is of a fit of {len(state['order'])} data, X has {self.n_rows}: "
                "a fit goes on with the data that it began with."
            )
        self.module.load_state_dict(state["module"])
        rates = [group["lr"] for group in self.optimiser.param_groups]
        self.optimiser.load_state_dict(state["optimiser"])
        for group, rate in zip(self.optimiser.param_groups, rates, strict=True):
            group["lr"] = rate  # a fit that diverged goes on with a lower one
        self.noise.restore(state["noise"])
        self._order, self._position = state["order"], state["position"]
        self._sum, self._count = state["sum"]
        vars(self.monitor).update(state["monitor"])


def _copy(sources: Sequence[Tensor], targets: Sequence[Tensor]) -> None:
    with torch.no_grad():
        torch._foreach_copy_(list(targets), list(sources))


def _remembers(module: nn.Module) -> bool:
    """Whether it has a state besides parameters, as a running average."""
    return type(module).get_extra_state is not nn.Module.get_extra_state


def as_device(device: Any, owner: str) -> torch.device:
    """The device that a parameter names, which must be there.

    Parameters
    ----------
    device : str or torch.device
        ``"cpu"``, ``"cuda"`` or ``"cuda:1"``.
    owner : str
        The estimator, for the messages.
    """
    try:
        found = torch.device(device)
    except (RuntimeError, TypeError):
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


def write_state(path: str | os.PathLike, header: Mapping[str, Any], training: Training) -> None:
    """Save a training under what it belongs to.

    Parameters
    ----------
    path : path
    header : mapping
        ``estimator`` (its name) and ``architecture`` (a dict of numbers, strings and lists).
    training : Training
    """
    state = _plain({"format": FORMAT, **header, "training": training.state()})
    partial = f"{os.fspath(path)}.partial"  # an interruption leaves the old file whole
    torch.save(state, partial)
    os.replace(partial, path)


def _plain(value: Any) -> Any:
    """NumPy's numbers as Python's: a parameter may be one, and what a callback records."""
    if isinstance(value, dict):
        return {name: _plain(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(map(_plain, value))
    return value.tolist() if isinstance(value, np.generic | np.ndarray) else value


def read_state(path: str | os.PathLike, header: Mapping[str, Any]) -> dict[str, Any]:
    """Load what :func:`write_state` wrote, if it belongs to the same architecture.

    Parameters
    ----------
    path : path
    header : mapping
        Of the estimator that is to go on.

    Raises
    ------
    ValueError
        If the file is not a saved state, or is one of another estimator or architecture; the
        message names the first difference.
    """
    try:
        state = torch.load(path, map_location="cpu", weights_only=True)
    except (pickle.UnpicklingError, RuntimeError, EOFError, ValueError) as error:
        # PyTorch's own words suggest to load it unsafely
        raise ValueError(f"{os.fspath(path)!r} is not a saved state of annealvi.") from error
    if not isinstance(state, dict) or state.get("format") != FORMAT or "training" not in state:
        raise ValueError(f"{os.fspath(path)!r} is not a saved state of this version of annealvi.")
    if state["estimator"] != header["estimator"]:
        raise ValueError(
            f"{os.fspath(path)!r} is the state of a {state['estimator']}, not of a "
            f"{header['estimator']}."
        )
    theirs, ours = state["architecture"], header["architecture"]
    for name in dict.fromkeys([*ours, *theirs]):
        if theirs.get(name) != ours.get(name):
            raise ValueError(
                f"{os.fspath(path)!r} is the state of another architecture: it has "
                f"{name}={theirs.get(name)!r}, this {header['estimator']} has "
                f"{name}={ours.get(name)!r}."
            )
    return state["training"]
