"""The loop that every deep fit runs: a minibatch, a gradient, a step, and its record.

A fit can stop at any step and continue later as if it had not stopped.  Its state holds the
parameters, the optimiser, the random numbers, the order of the data and the history.  It is
written as a tree, see :mod:`annealvi.files`: PyTorch's own files are pickles, which can run code
when they are read.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse
from torch import Tensor, nn

from annealvi.deep.noise import Noise, NoiseState
from annealvi.exceptions import DivergenceError
from annealvi.files import Node
from annealvi.files.schema import Array, Field, Integer, Number, Optional, Schema, Sizes, damaged
from annealvi.inference import Monitor

#: The history of a whole fit has about this many records.
RECORDS = 1000


class Outcome(NamedTuple):
    """What an objective returns for one step."""

    #: A scalar whose gradient is followed downhill.  It may be a surrogate of which only the
    #: gradient means anything.
    loss: Tensor
    #: The untempered objective, per datum or per draw.
    elbo: Tensor
    temperature: float = 1.0


#: Takes the rows of a minibatch (None where there are no data) and the number of steps made.
Objective = Callable[[Any, int], Outcome]


class TensorField(Array):
    """A tensor, which a file has as an array."""

    def dump(self, value: Tensor) -> NDArray:
        return value.detach().cpu().numpy()

    def load(self, value: Any, way: str, sizes: Sizes) -> Any:
        return torch.from_numpy(super().load(value, way, sizes).copy())


class Training:
    """The state of one fit and the loop that advances it."""

    STATE = Schema(
        noise=NoiseState(),
        n_rows=Optional(Integer(1)),
        batch_size=Integer(1),
        order=TensorField((None,), np.int64),
        position=Integer(),
        sum=Number(finite=False),
        count=Integer(),
    )

    def __init__(
        self,
        module: nn.Module,
        optimiser: torch.optim.Optimizer,
        noise: Noise,
        n_rows: int | None = None,
        batch_size: int = 1,
    ) -> None:
        self.module = module  # all that is trained or remembered between steps
        self.optimiser = optimiser
        self.noise = noise  # draws the objective's numbers, and the order of the data
        self.n_rows = n_rows  # None where there are no data
        self.batch_size = batch_size if n_rows is None else min(batch_size, n_rows)
        self.monitor = Monitor()
        self.order = torch.empty(0, dtype=torch.long)
        self.position = 0
        self.sum, self.count = 0.0, 0  # of the ELBO since the last record

    @property
    def steps_per_pass(self) -> int:
        """Steps that take the data once; without data 1."""
        return 1 if self.n_rows is None else self.n_rows // self.batch_size

    def run(
        self, objective: Objective, until: int, on_step: Callable[[Outcome], None] | None = None
    ) -> None:
        """Make steps up to this number; StopIteration, raised by `on_step`, ends the fit."""
        parameters = [p for p in self.module.parameters() if p.requires_grad]
        finite = [p.detach().clone() for p in parameters]
        remembering = _memories(self.module).values()
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
                    _copy(finite, parameters)  # the last ones with a finite loss
                    for part, memory in zip(remembering, memories, strict=True):
                        part.set_extra_state(memory)
                    raise DivergenceError(self._diverged(until, loss, size))
                _copy([p.detach() for p in parameters], finite)
                self.optimiser.step()
            share = 1.0 if self.n_rows is None else self.batch_size / self.n_rows
            self.monitor.advance(share, outcome.temperature)
            self.sum, self.count = self.sum + elbo, self.count + 1
            if self.monitor.step % every == 0 or self.monitor.step == until:
                self.monitor.record(elbo=self.sum / self.count)
                self.sum, self.count = 0.0, 0
            if on_step is not None:
                try:
                    on_step(outcome)
                except StopIteration:
                    return

    def history(self) -> dict[str, NDArray]:
        """Return the monitor's records, and one more for the steps since the last record."""
        monitor = copy.deepcopy(self.monitor)  # a fit that never stopped has no such record
        if self.count:
            monitor.record(elbo=self.sum / self.count)
        return monitor.history

    def _next_rows(self) -> Tensor | None:
        """Return the rows of the next minibatch; each pass takes the data in a new order."""
        if self.n_rows is None:
            return None
        # rows at the end of a pass that do not fill a minibatch are left out of this pass
        if self.position + self.batch_size > len(self.order):
            self.order, self.position = self.noise.permutation(self.n_rows), 0
        rows = self.order[self.position : self.position + self.batch_size]
        self.position += self.batch_size
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

    def state_dict(self) -> dict[str, Any]:
        """Return everything that is needed to continue, as a tree."""
        return {
            "module": _network_schema(self.module).dump(_network_state(self.module)),
            "optimiser": _optimiser_tree(self.optimiser),
            "monitor": self.monitor.state_dict(),
            **self.STATE.dump(self),
        }

    def load_state_dict(self, tree: Mapping[str, Any], way: str = "training") -> None:
        """Continue from a state of the same architecture, with the step size of this training."""
        state = self.STATE.load(tree, way)
        order, n_rows = state["order"], self.n_rows or 0
        each_once = torch.equal(order.sort().values, torch.arange(len(order)))
        if len(order) not in (0, n_rows) or not each_once:
            raise damaged(f"{way}.order", "each number of a datum once", order.numpy())
        if state["position"] > len(order):
            raise damaged(f"{way}.position", f"at most {len(order)}", state["position"])
        parts = Schema(module=Field(), optimiser=Field(), monitor=Field()).load(tree, way)
        load_network(self.module, parts["module"], f"{way}.module")
        _load_optimiser(self.optimiser, parts["optimiser"], f"{way}.optimiser")
        self.noise.restore(state["noise"])
        self.order, self.position = order, state["position"]
        self.sum, self.count = state["sum"], state["count"]
        self.monitor.load_state_dict(Node({"monitor": parts["monitor"]}, way).node("monitor"))


def _copy(sources: Sequence[Tensor], targets: Sequence[Tensor]) -> None:
    with torch.no_grad():
        torch._foreach_copy_(list(targets), list(sources))


# ------------------------------------------------------------------------ states as trees


def _memories(network: nn.Module) -> dict[str, Any]:
    """The parts with a memory besides their tensors, such as a running average, by name.

    Their MEMORY is its schema.
    """
    return {
        name: part
        for name, part in network.named_modules()
        if type(part).get_extra_state is not nn.Module.get_extra_state
    }


def _network_state(network: nn.Module) -> dict[str, Any]:
    state = network.state_dict()
    return {
        "tensors": {name: part for name, part in state.items() if isinstance(part, Tensor)},
        "memories": {name: part.get_extra_state() for name, part in _memories(network).items()},
    }


def _tensors(like: Mapping[str, Tensor]) -> Schema:
    """Tensors of these shapes and dtypes; they may be on the device "meta"."""
    # not necessarily finite: a fit may be written just before it finds that it has diverged
    dtypes = {name: torch.empty(0, dtype=part.dtype).numpy().dtype for name, part in like.items()}
    return Schema(
        **{n: TensorField(part.shape, dtypes[n], finite=False) for n, part in like.items()}
    )


def _network_schema(network: nn.Module) -> Schema:
    return Schema(
        tensors=_tensors(_network_state(network)["tensors"]),
        memories=Schema(**{name: part.MEMORY for name, part in _memories(network).items()}),
    )


def load_network(network: nn.Module, tree: Any, way: str) -> None:
    """Take over tensors and memories of a file; tensors on the device "meta" are replaced."""
    found = _network_schema(network).load(tree, way)
    state = found["tensors"]
    for name, memory in found["memories"].items():
        state[f"{name}._extra_state" if name else "_extra_state"] = memory
    network.load_state_dict(state, assign=any(part.is_meta for part in network.parameters()))


def meta_network(build: Callable[[], nn.Module], way: str) -> nn.Module:
    """Build a network without memory for its tensors: those of the file take their places."""
    try:
        with torch.device("meta"):
            return build()
    except (RuntimeError, TypeError, OverflowError, MemoryError) as error:
        raise ValueError(
            f"The file is damaged: {way!r} describes no network ({str(error)[:80]})."
        ) from error


def _optimiser_tree(optimiser: torch.optim.Optimizer) -> dict[str, Any]:
    """What it remembers of each parameter, by number; settings, such as the step size, are not."""
    found = {
        str(number): {name: torch.as_tensor(part) for name, part in parts.items()}
        for number, parts in optimiser.state_dict()["state"].items()
    }
    return {number: _tensors(parts).dump(parts) for number, parts in found.items()}


def _load_optimiser(optimiser: torch.optim.Optimizer, tree: Any, way: str) -> None:
    """Take over what an optimiser remembers of the same parameters, where they had a gradient."""
    # what an optimiser of this kind remembers, from one with a single number
    probe = nn.Parameter(torch.zeros(1))
    probe.grad = torch.zeros(1)
    other = type(optimiser)([probe], **optimiser.defaults)
    other.step()
    likes = {name: torch.as_tensor(part) for name, part in other.state[probe].items()}
    parameters = [part for group in optimiser.param_groups for part in group["params"]]
    numbers = [n for n in range(len(parameters)) if isinstance(tree, Mapping) and str(n) in tree]
    schema = Schema(
        **{
            str(n): _tensors({k: parameters[n] if v.ndim else v for k, v in likes.items()})
            for n in numbers
        }
    )
    state = {int(number): parts for number, parts in schema.load(tree, way).items()}
    for number, parts in state.items():
        for name, part in parts.items():
            if part.ndim == 0 and not 0 <= float(part) < math.inf:  # steps made
                raise damaged(f"{way}.{number}.{name}", "finite and at least 0", float(part))
    groups = optimiser.state_dict()["param_groups"]
    optimiser.load_state_dict({"state": state, "param_groups": groups})


# -------------------------------------------------------------------------------- the data


class SparseRows:
    """A CSR matrix in canonical format on a device, from which minibatches are taken."""

    def __init__(self, X: Any, device: torch.device) -> None:
        self.n_features = X.shape[1]
        self._start = torch.as_tensor(X.indptr.astype(np.int64), device=device)
        self._column = torch.as_tensor(X.indices.astype(np.int64), device=device)
        self._value = torch.as_tensor(X.data.astype(np.float32), device=device)

    def __len__(self) -> int:
        return len(self._start) - 1

    def __getitem__(self, rows: Tensor) -> Tensor:
        """Return rows as a dense tensor."""
        columns, values = self.padded(rows)
        dense = values.new_zeros(len(rows), self.n_features)
        return dense.scatter_add_(1, columns, values)  # padding adds 0

    def padded(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        """Return columns and values, padded to the longest row with column 0 and value 0."""
        # much smaller than a dense tensor where rows use few of many thousand columns
        start, end = self._start[rows], self._start[rows + 1]
        longest = max(1, int((end - start).max()))
        place = start[:, None] + torch.arange(longest, device=start.device)
        there = place < end[:, None]
        if not len(self._value):
            return torch.zeros_like(place), torch.zeros(place.shape, device=start.device)
        place = torch.where(there, place, torch.zeros_like(place))
        return self._column[place] * there, self._value[place] * there


def as_rows(X: Any, device: torch.device) -> Tensor | SparseRows:
    """Move data to a device; both kinds have a length and return rows by index."""
    if sparse.issparse(X):
        return SparseRows(X, device)
    X = np.require(X, np.float32, "W")  # PyTorch needs arrays that can be written to
    return torch.as_tensor(X, device=device)
