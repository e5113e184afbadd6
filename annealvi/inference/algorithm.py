"""Algorithm 1: tempered stochastic variational inference (Mandt et al. 2016).

Each step samples a minibatch, fits its local variables at the current temperature, and updates the
global variables along the tempered natural gradient.  A learned temperature is then updated from
the local variables.  At T = 1 the algorithm is that of Hoffman, Blei, Wang, Paisley (2013).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from itertools import chain
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
        The exponent.  If it is in (0.5, 1], the sum of the step sizes is infinite, and the sum of
        their squares is finite.
    offset : float
        The number added to t.  A larger offset makes the first steps smaller.
    """

    decay: float
    offset: float

    def __call__(self, t: int) -> float:
        """Return the size of step t, counted from 1."""
        return (float(self.offset) + t) ** -float(self.decay)


@dataclass(frozen=True)
class LinearDecay:
    """Step sizes that decrease linearly in a fit of known length.

    Let F be `memory_spans`.  Step t of S has the size (2 F / S) (1 - (t - 1/2) / S), which is
    raised to 0.1 F / S if it is smaller, and then limited to `largest`.

    Parameters
    ----------
    n_steps : int
        Number of steps S.
    memory_spans : float
        F, about the sum of all step sizes if `largest` does not limit them.  After steps whose
        sizes sum to 1, the state before them has a weight of about 1 / e.  A longer fit has
        smaller, less noisy steps with the same sum.
    largest : float, default=0.2
        Upper limit of step sizes.  A larger step would rely too much on a single minibatch.
    """

    n_steps: int
    memory_spans: float
    largest: float = 0.2

    def __call__(self, t: int) -> float:
        """Return the size of step t, counted from 1."""
        remaining_share = 1.0 - (t - 0.5) / self.n_steps  # of the fit, from the middle of the step
        return min(
            self.largest, 2.0 * self.memory_spans / self.n_steps * max(remaining_share, 0.05)
        )


@dataclass(frozen=True)
class OverRelaxed:
    """Step sizes of a fit that ends with over-relaxed batch passes.

    A step of batch inference moves each parameter to the optimum for the current local variables.
    Near an optimum of the objective, each step is shorter than the previous one by a constant
    factor, which is close to 1 if the local variables are uncertain.  If all steps are `factor`
    times as long, the fit needs about 1 / `factor` as many passes.  Near an optimum such a fit
    converges if the factor is below 2 (Salakhutdinov and Roweis 2003, *Adaptive Overrelaxed Bound
    Optimization Methods*).  Over-relaxed steps do not always increase the objective.  The last step
    of a fit has size 1, and increases the objective.

    Parameters
    ----------
    before : callable
        The step sizes of the steps before the batch passes.
    n_before, n_passes : int
        Number of steps before the batch passes, and number of batch passes (one step each).
    factor : float, default=1.9
        The step size of over-relaxed steps.
    """

    before: Callable[[int], float]
    n_before: int
    n_passes: int
    factor: float = 1.9

    def __call__(self, t: int) -> float:
        """Return the size of step t, counted from 1."""
        if t <= self.n_before:
            return self.before(t)
        return self.factor if t < self.n_before + self.n_passes else 1.0


def full_step(t: int) -> float:
    """Return 1, the step size of coordinate ascent with all data.

    Parameters
    ----------
    t : int
        Number of the step; not used.
    """
    return 1.0


class Monitor:
    """The progress of a fit, which callbacks can read, and the records of ``history_``.

    Attributes
    ----------
    step : int
        Number of steps done.
    passes : float
        Number of passes over the data: the number of data used so far, divided by the number of
        data in the population.
    last_advance : float
        Increase of `passes` in the last step.
    temperature : float
        T of the last step.
    seconds : float
        Time of all steps, without evaluations and callbacks.
    temperature_path : list of float
        T of every step.
    """

    FIELDS = ("pass", "step", "temperature", "seconds")

    def __init__(self) -> None:
        """Begin before the first step, without records."""
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
        """Update the progress after a step, which made `passes` passes (usually a fraction)."""
        self.step += 1
        self.passes += passes
        self.last_advance = passes
        self.temperature = temperature
        self.temperature_path.append(temperature)

    def record(self, **values: float) -> None:
        """Record values of the current step, for example a held-out score.

        Values of several calls at the same step are stored in the same record.
        """
        if not self._records or self._records[-1]["step"] != self.step:  # the first of this step
            now = (self.passes, self.step, self.temperature, self.seconds)
            self._records.append(dict(zip(self.FIELDS, now, strict=True)))
        self._records[-1].update(values)

    def copy(self) -> Self:
        """Return a copy that does not change when this monitor changes."""
        copied = shallow(self)  # with the same lists, which are copied here
        copied.temperature_path = self.temperature_path.copy()
        copied._records = [record.copy() for record in self._records]
        return copied

    @property
    def history(self) -> dict[str, NDArray]:
        """The records as arrays of equal length, with NaN for values that were not recorded."""
        # a set of names that keeps their order
        names = dict.fromkeys(chain(self.FIELDS, *self._records))
        history = {
            name: np.array([record.get(name, np.nan) for record in self._records], dtype=float)
            for name in names
        }
        with np.errstate(invalid="ignore"):  # NaN in a file that was changed
            history["step"] = history["step"].astype(int)
        return history

    def state_dict(self) -> dict[str, Any]:
        """Return the progress as a tree; raise TypeError if a recorded value is not a number."""
        n = len(self._records)
        try:
            history = {
                name: column.astype(float).reshape(n) for name, column in self.history.items()
            }
        except (TypeError, ValueError) as error:
            raise TypeError(f"The records of a fit cannot be written to a file: {error}") from error
        return MONITOR.dump(vars(self) | {"n_records": n, "history": history})

    def load_state_dict(self, tree: Mapping[str, Any], path: str = "monitor") -> None:
        """Set the progress from a tree, which stands at `path` in a file."""
        values = MONITOR.load(tree, path)
        n = values.pop("n_records")
        history = values.pop("history")
        # pickles contain NaN for the seconds
        fields = dict.fromkeys(self.FIELDS, Array((n,))) | {"seconds": Array((n,), finite=False)}
        Schema(**fields).load(history, f"{path}.history")
        columns = [column.tolist() for column in history.values()]
        # a record for each row
        records = [dict(zip(history, row, strict=True)) for row in zip(*columns, strict=True)]
        vars(self).update(values, _records=records)
        self.temperature_path = values["temperature_path"].tolist()


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


#: The schema of a position, with limits on the numbers of passes and minibatches.
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
    position_in_fit: Position | None = None,
    lock: AbstractContextManager[Any] | None = None,
) -> None:
    """Fit the global variables of a model to data, in place.

    Parameters
    ----------
    model : Model
    data : sequence
        The data, which are passed to ``model.local_step`` with the rows of each batch.
    temperature : Temperature
        A planned temperature, see :meth:`Temperature.plan`.
    monitor : Monitor
        The fit continues from ``monitor.step``, the number of steps done.
    n_samples, n_passes : int
        Number of data, and number of passes over the data.
    n_full_passes : int, default=0
        Number of additional passes, each of which is a single step with all data.
    batch_size : int, optional
        Number of data in a minibatch; by default all data.
    population : float, optional
        Number of data in the population from which minibatches are samples; by default `n_samples`.
    step_size : callable, default=full_step
        Returns the step size rho of step t = 1, 2, ...
    on_step : callable, optional
        Called after each step; it raises ``StopIteration`` to end the fit.
    after_pass : callable, optional
        Called with the index of each finished pass; it returns True to end the fit.
    position_in_fit : Position, optional
        The position at which the fit starts; by default the beginning.  The position is updated
        before `on_step` is called.
    lock : context manager, optional
        A context that holds a lock while the global variables, the temperature and the monitor
        change.  Other threads must hold this lock while they read any of these.
    """
    batch_size = n_samples if batch_size is None else batch_size
    population = n_samples if population is None else population
    position_in_fit = Position() if position_in_fit is None else position_in_fit
    lock = nullcontext() if lock is None else lock
    for index in range(position_in_fit.n_passes, n_passes + n_full_passes):
        size = batch_size if index < n_passes else n_samples  # a full pass is a single step
        for first_row in range(position_in_fit.n_batches * size, n_samples, size):
            rows = slice(first_row, min(first_row + size, n_samples))
            n_rows = rows.stop - rows.start
            with monitor.clock():
                tempering = temperature.tempering(monitor.step)
                local = model.local_step(Batch(data, rows), tempering, temperature.observes)
                rho = step_size(monitor.step + 1)
            with lock:
                with monitor.clock():
                    model.global_step(local.statistics, rho, population / n_rows, tempering)
                    temperature.observe(local, population / n_rows)
                # the local step may have computed temperatures of the data
                inverse = tempering.inverse if local.inverse is None else local.inverse
                del local  # its statistics may need as much memory as the global variables
                b = np.mean(inverse, dtype=float)  # of one number, or one for each datum
                monitor.advance(n_rows / population, float(1.0 / b))
                position_in_fit.n_batches += 1
            if on_step is not None:
                try:
                    on_step()
                except StopIteration:
                    return  # without the end of the pass
        if after_pass is not None and after_pass(index):
            return
        position_in_fit.n_passes = index + 1
        position_in_fit.n_batches = 0
