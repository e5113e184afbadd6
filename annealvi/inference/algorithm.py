"""Algorithm 1: tempered stochastic variational inference.

Each step samples a minibatch, fits its local variables at the current temperature, updates the
global variables along the tempered natural gradient, and passes the result to the temperature,
which may learn from it.  (Mandt et al. 2016, Algorithm 1; at T = 1 Hoffman, Blei, Wang, Paisley
2013.)
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from annealvi.files.schema import Array, Integer, Named, Number, Schema
from annealvi.model import Batch, Model
from annealvi.temperature.base import Temperature
from annealvi.threads import shallow


@dataclass(frozen=True)
class RobbinsMonro:
    """Step sizes rho_t = (offset + t)^(-decay), t = 1, 2, ...

    Parameters
    ----------
    decay : float
        kappa.  In (0.5, 1] the step sizes have an infinite sum and their squares a finite one.
    offset : float
        tau.  Larger values make the first steps smaller.
    """

    decay: float
    offset: float

    def __call__(self, t: int) -> float:
        return (float(self.offset) + t) ** -float(self.decay)


@dataclass(frozen=True)
class LinearDecay:
    """Step sizes that fall linearly in a fit of known length, 2 F / S (1 - (t - 1/2) / S).

    They are at least a twentieth of 2 F / S, and at most `largest`.

    Parameters
    ----------
    n_steps : int
        Number of steps S.
    memory_spans : float
        F, the number of times that the fit forgets its earlier state.  It is about the sum of the
        step sizes, if `largest` does not limit them.  A longer fit covers the same distance in
        smaller, less noisy steps.
    largest : float, default=0.2
        Largest step size, because a single minibatch does not represent all data.
    """

    n_steps: int
    memory_spans: float
    largest: float = 0.2

    def __call__(self, t: int) -> float:
        left = 1.0 - (t - 0.5) / self.n_steps
        return min(self.largest, 2.0 * self.memory_spans / self.n_steps * max(left, 0.05))


@dataclass(frozen=True)
class OverRelaxed:
    """Step sizes of a fit that ends with over-relaxed batch passes.

    A step of batch inference moves each parameter to the optimum for the present local variables.
    Near an optimum of the objective the steps then shrink by a constant rate, which is close to 1
    if the local variables are uncertain.  Steps that are `factor` times as long need about 1 /
    `factor` as many passes.  Near an optimum they converge if the factor is below 2 (Salakhutdinov
    and Roweis 2003, *Adaptive Overrelaxed Bound Optimization Methods*).  They do not always
    increase the objective.  The last one, if all are made, has size 1 and does increase it.

    Parameters
    ----------
    before : callable
        The step sizes of the steps before these passes.
    n_before, n_passes : int
        Number of those steps, and of the passes in batch, each of one step.
    factor : float, default=1.9
    """

    before: Callable[[int], float]
    n_before: int
    n_passes: int
    factor: float = 1.9

    def __call__(self, t: int) -> float:
        if t <= self.n_before:
            return self.before(t)
        return self.factor if t < self.n_before + self.n_passes else 1.0


def full_step(t: int) -> float:
    """The step size of batch inference: 1, which leads to the coordinate optimum.

    Parameters
    ----------
    t : int
        Number of the step; not used.
    """
    return 1.0


class Monitor:
    """The progress of a fit, for the callback and for ``history_``.

    Attributes
    ----------
    step : int
        Number of steps done.
    passes : float
        Effective passes over the data: the number of data seen, divided by the number in the
        population.
    last_advance : float
        Passes added by the last step.
    temperature : float
        T of the last step.
    seconds : float
        Time spent in steps; evaluations and callbacks are not counted.
    temperature_path : list of float
        T of every step.
    """

    FIELDS = ("pass", "step", "temperature", "seconds")

    def __init__(self) -> None:
        self.step = 0
        self.passes = 0.0
        self.last_advance = 0.0
        self.temperature = 1.0
        self.seconds = 0.0
        self.temperature_path: list[float] = []
        self._records: list[dict[str, float]] = []

    @contextmanager
    def clock(self) -> Iterator[None]:
        """Add the time spent in this context to ``seconds``."""
        start = time.perf_counter()
        try:
            yield
        finally:
            self.seconds += time.perf_counter() - start

    def advance(self, passes: float, temperature: float) -> None:
        """Count one more step."""
        self.step += 1
        self.passes += passes
        self.last_advance = passes
        self.temperature = temperature
        self.temperature_path.append(temperature)

    def record(self, **values: float) -> None:
        """Record values of the current step, for example a held-out score.

        Several calls at the same step make one record.
        """
        if not self._records or self._records[-1]["step"] != self.step:
            now = (self.passes, self.step, self.temperature, self.seconds)
            self._records.append(dict(zip(self.FIELDS, now, strict=True)))
        self._records[-1].update(values)

    def copy(self) -> Self:
        """Return a copy that does not change with this monitor."""
        copied = shallow(self)
        copied.temperature_path = self.temperature_path.copy()
        copied._records = [record.copy() for record in self._records]
        return copied

    @property
    def history(self) -> dict[str, NDArray]:
        """The records as arrays of equal length, with NaN for values that were not recorded."""
        names = dict.fromkeys(self.FIELDS)
        for record in self._records:
            names.update(dict.fromkeys(record))
        history = {
            name: np.array([record.get(name, np.nan) for record in self._records], dtype=float)
            for name in names
        }
        history["step"] = history["step"].astype(int)
        return history

    def state_dict(self) -> dict[str, Any]:
        """The progress as a tree for a file; TypeError if a recorded value is not a number."""
        n = len(self._records)
        try:
            history = {name: part.astype(float).reshape(n) for name, part in self.history.items()}
        except (TypeError, ValueError) as error:
            raise TypeError(f"The records of a fit cannot be written to a file: {error}") from error
        return MONITOR.dump(vars(self) | {"n_records": n, "history": history})

    def load_state_dict(self, tree: Mapping[str, Any], way: str = "monitor") -> None:
        """Set the progress of a fit."""
        found = MONITOR.load(tree, way)
        n, history = found.pop("n_records"), found.pop("history")
        fields = dict.fromkeys(self.FIELDS, Array((n,))) | {"seconds": Array((n,), finite=False)}
        Schema(**fields).load(history, f"{way}.history")
        columns = [part.tolist() for part in history.values()]
        records = [dict(zip(history, row, strict=True)) for row in zip(*columns, strict=True)]
        vars(self).update(found, _records=records)
        self.temperature_path = found["temperature_path"].tolist()


MONITOR = Schema(
    step=Integer(),
    passes=Number(0.0),
    last_advance=Number(0.0),
    temperature=Number(0.0),
    seconds=Number(0.0),
    temperature_path=Array((None,), positive=True),
    n_records=Integer(),
    history=Named(Array(("n_records",), finite=False)),
)


@dataclass
class Position:
    """The position of a fit in its passes over the data.

    Parameters
    ----------
    n_passes : int
        Number of finished passes.
    n_batches : int
        Number of minibatches done in the current pass.
    """

    n_passes: int = 0
    n_batches: int = 0


#: Of a fit of so many passes of so many minibatches.
POSITION = Schema(
    Position, n_passes=Integer(0, "most_passes"), n_batches=Integer(0, "most_batches")
)


def optimise(
    model: Model,
    data: Any,
    temperature: Temperature,
    monitor: Monitor,
    *,
    n_samples: int,
    n_passes: int,
    n_full_passes: int = 0,
    batch_size: int | None = None,
    population: float | None = None,
    step_size: Callable[[int], float] = full_step,
    on_step: Callable[[], None] | None = None,
    after_pass: Callable[[int], bool] | None = None,
    position: Position | None = None,
    changing: AbstractContextManager[Any] | None = None,
) -> None:
    """Fit the global variables of a model to data, in place.

    Parameters
    ----------
    model : Model
    data : sequence
        Passed to ``model.local_step`` with the rows of each batch.
    temperature : Temperature
        A planned temperature, see :meth:`Temperature.plan`.
    monitor : Monitor
        The fit continues from ``monitor.step``, the number of steps done.
    n_samples, n_passes : int
        Number of data, and of passes over them.
    n_full_passes : int, default=0
        Number of further passes, each of one step with all data.
    batch_size : int, optional
        Number of data in a minibatch; by default all of them.
    population : float, optional
        Number of data in the population that a minibatch is a sample of; by default `n_samples`.
    step_size : callable, default=full_step
        Returns the step size rho of step t = 1, 2, ...
    on_step : callable, optional
        Called after each step; it raises ``StopIteration`` to end the fit.
    after_pass : callable, optional
        Called with the index of each finished pass; it returns True to end the fit.
    position : Position, optional
        The position from which the fit starts; by default its beginning.  It is updated before
        `on_step` is called.
    changing : context manager, optional
        Entered while the global variables, the temperature and the monitor change.  Other threads
        may read them only under the same lock.
    """
    batch_size = n_samples if batch_size is None else batch_size
    population = n_samples if population is None else population
    position = Position() if position is None else position
    changing = nullcontext() if changing is None else changing
    for index in range(position.n_passes, n_passes + n_full_passes):
        size = batch_size if index < n_passes else n_samples
        for first in range(position.n_batches * size, n_samples, size):
            rows = slice(first, min(first + size, n_samples))
            n_rows = rows.stop - rows.start
            with monitor.clock():
                tempering = temperature.tempering(monitor.step)
                local = model.local_step(Batch(data, rows), tempering, temperature.observes)
                rho = step_size(monitor.step + 1)
            with changing:
                with monitor.clock():
                    model.global_step(local.statistics, rho, population / n_rows, tempering)
                    temperature.observe(local, population / n_rows)
                inverse = tempering.inverse if local.inverse is None else local.inverse
                del local  # its statistics may take as much memory as the global variables
                alone = isinstance(inverse, float)
                b = np.float64(inverse) if alone else np.mean(inverse, dtype=np.float64)
                monitor.advance(n_rows / population, float(1.0 / b))
                position.n_batches += 1
            if on_step is not None:
                try:
                    on_step()
                except StopIteration:
                    return
        if after_pass is not None and after_pass(index):
            return
        position.n_passes, position.n_batches = index + 1, 0
