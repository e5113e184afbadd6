"""The training loop of all deep models, with its random numbers, its data and its state.

Each step draws a minibatch, computes a gradient and writes a record.  A fit can stop at any step
and continue later with the same results.  The state of a fit contains the parameters, the
optimiser, the random numbers, the order of the data and the history.  The state is written to files
by :mod:`annealvi.files`, because PyTorch's own files are pickles, which can run code when read.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import DTypeLike, NDArray
from scipy.sparse import issparse
from torch import Tensor, nn
from torch.nn import Module

from annealvi.exceptions import DivergenceError
from annealvi.files.schema import Array, Field, Integer, Number, Optional, Schema, Sizes, damaged
from annealvi.inference import Monitor
from annealvi.matrices import summed

#: The history of a whole fit has about this many records.
RECORDS = 1000
#: What an optimiser keeps for each parameter, besides the number of steps.
MOMENTS = {torch.optim.Adam: ("exp_avg", "exp_avg_sq"), torch.optim.RMSprop: ("square_avg",)}
#: Parts of the state of PyTorch's generator: how many of the 624 numbers of its Mersenne Twister
#: are unused, whether it was seeded, the next number, and whether a draw is stored.
GENERATOR = np.dtype(
    {
        "names": ["left", "seeded", "next", "kept"],
        "formats": ["<i4", "<i4", "<u8", "u1"],
        "offsets": [8, 12, 16, 5048],
        "itemsize": 5056,
    }
)


class Noise:
    """A stream of random numbers, drawn on the CPU and moved to the device of the fit."""

    # PyTorch's generators return different numbers on different devices.  With one stream on the
    # CPU, a seed gives the same fit on every device, up to rounding.  Drawing takes little time
    # compared with the networks.

    def __init__(self, seed: int, device: torch.device | str = "cpu") -> None:
        """Start a stream with a seed, whose numbers are moved to `device`."""
        self.device = torch.device(device)
        self.generator = torch.Generator().manual_seed(seed)

    def normal(self, *shape: int) -> Tensor:
        """Return draws from N(0, 1), float32."""
        return torch.randn(shape, generator=self.generator, dtype=torch.float32).to(self.device)

    def uniform(self, *shape: int) -> Tensor:
        """Return draws from the uniform distribution on [0, 1), float32."""
        return torch.rand(shape, generator=self.generator, dtype=torch.float32).to(self.device)

    def bernoulli(self, probability: Tensor) -> Tensor:
        """Return 0 or 1 for each probability, without gradient."""
        probability = probability.detach()
        return (self.uniform(*probability.shape) < probability).to(probability.dtype)

    def poisson(self, rate: Tensor) -> Tensor:
        """Return a Poisson count for each rate, without gradient."""
        return torch.poisson(rate.detach().cpu(), generator=self.generator).to(self.device)

    def seed(self) -> int:
        """Return the seed of another generator."""
        return int(torch.randint(2**31 - 1, (1,), generator=self.generator))

    def coin(self, probability: float) -> bool:
        """Return True with this probability."""
        return bool(torch.rand((), generator=self.generator) < probability)


# ------------------------------------------------------------------------ fields of a state


class TensorField(Array):
    """A tensor, which a file contains as an array."""

    # it may be infinite or NaN, because a fit may be written just before it raises an error
    def __init__(
        self,
        shape: Sequence[int | str | None],
        dtype: DTypeLike = np.float32,
        *,
        positive: bool = False,
    ) -> None:
        """Make a field for a tensor; an axis of the shape may have a name, or any length (None)."""
        super().__init__(shape, dtype, finite=False, positive=positive)

    def dump(self, value: Tensor) -> NDArray:
        """Return a tensor as an array for a file."""
        return numbers(value).astype(self.dtype, copy=False)

    def load(self, value: Any, field_path: str, sizes: Sizes) -> Any:
        """Check an array of a file, and return it as a tensor; `field_path` is for messages."""
        # a copy, because the array may be a read-only view of the file
        return torch.from_numpy(super().load(value, field_path, sizes).copy())


class NoiseField(Array):
    """A stream of random numbers, which a file contains as the state of its generator."""

    def __init__(self) -> None:
        """Make a field for the bytes of the state of PyTorch's generator."""
        super().__init__((GENERATOR.itemsize,), np.uint8)

    def dump(self, value: Noise) -> NDArray:
        """Return the state of a stream as bytes for a file."""
        return value.generator.get_state().numpy()

    def load(self, value: Any, field_path: str, sizes: Sizes) -> Any:
        """Check the bytes of a file, and return them as a state for `Generator.set_state`."""
        data = super().load(value, field_path, sizes).copy()
        state = torch.from_numpy(data)
        # numbers left before new ones are made, whether there was a seed, the index of the next
        # number, and whether a draw is stored
        left, seeded, following, kept = data.view(GENERATOR)[0].tolist()
        try:
            # PyTorch's own check accepts some states with which it reads beyond its array
            # the next of 624 numbers is at 625 - left; (1, 0) is a generator that drew nothing yet
            sound = 1 <= left <= 624 and (following == 625 - left or (left, following) == (1, 0))
            if not sound or seeded != 1 or kept > 1:
                raise RuntimeError
            torch.Generator().set_state(state)  # only to check the state
        except RuntimeError as error:
            raise damaged(field_path, "the state of a generator of PyTorch", value) from error
        return state


def tensors_of(network: Module) -> Schema:
    """Return the fields of a network in a file; the network may be on the device "meta"."""
    return Schema(**{name: TensorField(w.shape) for name, w in network.state_dict().items()})


def memory_of(optimiser: torch.optim.Optimizer) -> Schema:
    """Return the fields of an optimiser in a file: the moments of each parameter, by its number."""
    names = MOMENTS.get(type(optimiser), ())
    fields: dict[str, Field] = {}
    for group in optimiser.param_groups:
        for parameter in group["params"]:
            moments = dict.fromkeys(names, TensorField(parameter.shape))
            step = TensorField((), positive=True)
            # optional, because parameters without a gradient have no moments
            fields[str(len(fields))] = Optional(Schema(step=step, **moments))
    return Schema(**fields)


# --------------------------------------------------------------------------------- the loop


class Outcome(NamedTuple):
    """What an objective returns for one step."""

    #: A scalar that gradient descent minimises.  Perhaps only its gradient has a meaning.
    loss: Tensor
    #: The ELBO at T = 1, per datum or per draw.
    elbo: Tensor
    temperature: float = 1.0
    #: ``statistic(f)`` returns the statistic f of q for a proximity penalty.
    #: ``statistic(f, network)`` returns the statistic for the q of another network.
    statistic: Callable[..., Tensor] | None = None


#: Called with the rows of a minibatch (None if there are no data) and the number of steps made.
Objective = Callable[[Any, int], Outcome]


@dataclass(eq=False, repr=False)
class Trainer:
    """The state of one fit and the loop that advances it."""

    module: Module  # everything that is trained
    optimiser: torch.optim.Optimizer
    noise: Noise  # random numbers for the objective and the order of the data
    n_rows: int | None = None  # None if there are no data
    batch_size: int = 1
    penalty: Any = None  # the penalty of the objective; each step replaces its `memory`

    def __post_init__(self) -> None:
        """Begin without steps."""
        if self.n_rows is not None:
            self.batch_size = min(self.batch_size, self.n_rows)
        self.monitor = Monitor()
        self.order = torch.empty(0, dtype=torch.long)  # the rows of the data in this pass
        self.position = 0  # how many rows of `order` were used in this pass
        self.elbo = math.nan  # of the last step
        # sum and number of ELBOs since the last record
        self.sum = 0.0
        self.count = 0

    def run(
        self, objective: Objective, until: int, on_step: Callable[[], Any] = lambda: None
    ) -> None:
        """Make steps until there are `until` in all, or until `on_step` raises StopIteration."""
        parameters: list[Tensor] = [p for p in self.module.parameters() if p.requires_grad]
        last_finite = [p.detach().clone() for p in parameters]  # with a finite loss
        steps_per_record = max(1, until // RECORDS)
        while self.monitor.step < until:
            memory = self.penalty and self.penalty.memory  # before the objective replaces it
            with self.monitor.clock():
                outcome = objective(self._next_rows(), self.monitor.step)
                self.optimiser.zero_grad(set_to_none=True)
                outcome.loss.backward()
                gradients = [p.grad for p in parameters if p.grad is not None]
                norm = float(nn.utils.get_total_norm(gradients))
                loss = float(outcome.loss.detach())
                if not (math.isfinite(loss) and math.isfinite(norm)):
                    _copy(sources=last_finite, targets=parameters)
                    if self.penalty is not None:
                        self.penalty.memory = memory
                    raise DivergenceError(
                        f"The fit diverged at step {self.monitor.step + 1} of {until}: the loss "
                        f"is {loss}, with gradient norm {norm}. Lower 'learning_rate', or look for "
                        f"extreme values in {'X' if self.n_rows else 'log_density'}."
                        f"{' The last finite state is kept.' if self.monitor.step else ''}"
                    )
                # in place, because new tensors in each step would take time
                _copy(sources=parameters, targets=last_finite)
                self.optimiser.step()
            share_of_pass = 1.0 if self.n_rows is None else self.batch_size / self.n_rows
            self.monitor.advance(share_of_pass, outcome.temperature)
            self.elbo = float(outcome.elbo.detach())
            self.sum += self.elbo
            self.count += 1
            if self.monitor.step % steps_per_record == 0 or self.monitor.step == until:
                self.monitor.record(elbo=self.sum / self.count)
                self.sum = 0.0
                self.count = 0
            try:
                on_step()
            except StopIteration:
                return

    def history(self) -> dict[str, NDArray]:
        """Return the monitor's records, and one more for the steps since the last record."""
        monitor = deepcopy(self.monitor)  # a fit that continues must not keep this record
        if self.count:
            monitor.record(elbo=self.sum / self.count)
        return monitor.history

    def _next_rows(self) -> Tensor | None:
        """Return the rows of the next minibatch; the data have a new order in each pass."""
        if self.n_rows is None:
            return None
        # the last rows of a pass are skipped if they are too few for a minibatch
        if self.position + self.batch_size > len(self.order):
            self.order = torch.randperm(self.n_rows, generator=self.noise.generator)
            self.position = 0
        self.position += self.batch_size
        return self.order[self.position - self.batch_size : self.position].to(self.noise.device)

    def _schema(self) -> Schema:
        """Return the fields of the state in a file; they check all sizes."""
        return Schema(
            module=tensors_of(self.module),
            optimiser=memory_of(self.optimiser),
            noise=NoiseField(),
            # a Field accepts any value: without a penalty, that of the file is not used
            penalty=Field() if self.penalty is None else self.penalty.MEMORY,
            order=TensorField((None,), np.int64),
            position=Integer(),  # the number of rows of `order` that were used
            sum=Number(finite=False),  # of the ELBOs since the last record
            count=Integer(),  # of these ELBOs
            monitor=Field(),  # the monitor checks its own state
        )

    def state_dict(self) -> dict[str, Any]:
        """Return everything that is needed to continue, as a tree for a file."""
        moments = self.optimiser.state_dict()["state"]  # by number of the parameter
        state = {
            "module": self.module.state_dict(),
            "optimiser": {n: moments.get(int(n)) for n in memory_of(self.optimiser).fields},
            "penalty": self.penalty and self.penalty.memory,
            "monitor": self.monitor.state_dict(),
        }
        # the other fields (`order`, `position`, `sum`, `count`, `noise`) are attributes of self
        return self._schema().dump(vars(self) | state)

    def load_state_dict(self, tree: Mapping[str, Any]) -> None:
        """Set the state from a fit of the same network, but keep this trainer's step size."""
        state = self._schema().load(tree, "training")
        order = state["order"]
        each_once = torch.equal(order.sort().values, torch.arange(len(order)))  # each row
        if len(order) not in (0, self.n_rows or 0) or not each_once:  # 0 before the first step
            raise damaged("training.order", "an order of all rows of the data", order.numpy())
        self.monitor.load_state_dict(state["monitor"], "training.monitor")
        self.module.load_state_dict(state["module"])
        moments = {int(n): kept for n, kept in state["optimiser"].items() if kept is not None}
        # the optimiser's own settings, such as its step size, are kept
        self.optimiser.load_state_dict(self.optimiser.state_dict() | {"state": moments})
        self.noise.generator.set_state(state["noise"])
        if self.penalty is not None:
            self.penalty.resume(state["penalty"])
        for name in ("order", "position", "sum", "count"):
            setattr(self, name, state[name])


@torch.no_grad()
def _copy(sources: list[Tensor], targets: list[Tensor]) -> None:
    """Copy the values of tensors into other tensors, in place and without gradients."""
    # PyTorch's copy of many tensors in one operation; it takes the targets first
    torch._foreach_copy_(targets, sources)


# --------------------------------------------------------------------------------- the data


class SparseRows:
    """A CSR matrix in canonical format on a device, from which minibatches are taken."""

    def __init__(self, X: Any, device: torch.device) -> None:
        """Move the arrays of a CSR matrix X to a device."""
        self.n_features = X.shape[1]
        self._start = torch.as_tensor(X.indptr.astype(np.int64), device=device)
        # one more number, because a matrix without entries would have none to index
        self._column = torch.as_tensor(np.append(X.indices, 0), dtype=torch.int64, device=device)
        self._value = torch.as_tensor(np.append(X.data, 0), dtype=torch.float32, device=device)

    def __len__(self) -> int:
        return len(self._start) - 1

    def __getitem__(self, rows: Tensor) -> Tensor:
        """Return rows as a dense tensor."""
        columns, values = self.padded(rows)
        dense = values.new_zeros(len(rows), self.n_features)
        return dense.scatter_add_(1, columns, values)  # padding adds 0

    def padded(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        """Return columns and values, padded to the longest row with column 0 and value 0."""
        # these are much smaller than a dense tensor if rows have entries in few of many columns
        start = self._start[rows]
        length = self._start[rows + 1] - start
        positions = torch.arange(max(1, int(length.max())), device=start.device)
        stored = positions < length[:, None]  # whether a place has an entry or is padding
        entries = torch.where(stored, start[:, None] + positions, 0)
        # products with False set the padding to 0
        return self._column[entries] * stored, self._value[entries] * stored


def as_rows(X: Any, device: torch.device) -> Tensor | SparseRows:
    """Move data to a device, as an object that has a length and returns rows by index."""
    if issparse(X):
        return SparseRows(X, device)
    X = np.require(X, np.float32, "W")  # PyTorch needs arrays that can be written to
    return torch.as_tensor(X, device=device)


def column_means(X: Any, added: float = 0.0) -> Tensor:
    """Return the mean of each column, after adding a number to its sum."""
    total = summed(X, axis=0, dtype=np.float64) + added  # no rounding in float64
    return torch.as_tensor((total / X.shape[0]).astype(np.float32))


def numbers(tensor: Tensor) -> NDArray:
    """Return a tensor as an array, without its gradient."""
    return np.asarray(tensor.detach().cpu())
