"""Algorithm 1: tempered stochastic variational inference.

Sample a minibatch; fit its local variables at the current temperature; step the
global variables along the tempered natural gradient; let the temperature answer.
(Mandt et al. 2016, Algorithm 1; at T = 1 Hoffman, Blei, Wang, Paisley 2013.)
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import gen_batches

from annealvi.model import Batch, Model
from annealvi.temperature import Temperature


@dataclass(frozen=True)
class RobbinsMonro:
    """Step sizes rho_t = (offset + t)^(-decay), t = 1, 2, ...

    Parameters
    ----------
    decay : float
        kappa; in (0.5, 1] the steps sum to infinity and their squares do not.
    offset : float
        tau, which keeps early steps small.
    """

    decay: float
    offset: float

    def __call__(self, t: int) -> float:
        return float(np.power(self.offset + t, -self.decay))


@dataclass(frozen=True)
class LinearDecay:
    """Step sizes that fall linearly in a fit of known length, 2 F / S (1 - (t - 1/2) / S).

    At least a twentieth of 2 F / S, and at most `largest`.

    Parameters
    ----------
    n_steps : int
    memory_spans : float
        F, how often the fit forgets where it was: the sum of the step sizes, about, where
        `largest` does not cut them off.  A longer fit takes smaller steps and makes the same
        way with less noise.
    largest : float, default=0.2
        No step is larger: of a minibatch one cannot learn all.
    """

    n_steps: int
    memory_spans: float
    largest: float = 0.2

    def __call__(self, t: int) -> float:
        left = 1.0 - (t - 0.5) / self.n_steps
        return min(self.largest, 2.0 * self.memory_spans / self.n_steps * max(left, 0.05))


def full_step(t: int) -> float:
    """The step of batch inference: all the way to the coordinate optimum.

    Parameters
    ----------
    t : int
        The step, whose number makes no difference.
    """
    return 1.0


class Monitor:
    """What happened so far, as the callback and ``history_`` see it.

    Attributes
    ----------
    step : int
        Steps done.
    passes : float
        Effective passes over the data: data seen over data in the population.
    last_advance : float
        Passes that the last step made.
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
        """Count the time spent inside."""
        start = time.perf_counter()
        try:
            yield
        finally:
            self.seconds += time.perf_counter() - start

    def advance(self, passes: float, temperature: float) -> None:
        """One more step is done."""
        self.step += 1
        self.passes += passes
        self.last_advance = passes
        self.temperature = temperature
        self.temperature_path.append(temperature)

    def record(self, **values: float) -> None:
        """Write values (a held-out score, say) beside the current step.

        Several calls at one step make one record.
        """
        if not self._records or self._records[-1]["step"] != self.step:
            now = (self.passes, self.step, self.temperature, self.seconds)
            self._records.append(dict(zip(self.FIELDS, now, strict=True)))
        self._records[-1].update(values)

    @property
    def history(self) -> dict[str, NDArray]:
        """The records as arrays of one length, NaN where a value was not taken."""
        names = dict.fromkeys(self.FIELDS)
        for record in self._records:
            names.update(dict.fromkeys(record))
        history = {
            name: np.array([record.get(name, np.nan) for record in self._records], dtype=float)
            for name in names
        }
        history["step"] = history["step"].astype(int)
        return history


def optimise(
    model: Model,
    data: Any,
    temperature: Temperature,
    monitor: Monitor,
    *,
    n_samples: int,
    n_passes: int,
    batch_size: int | None = None,
    population: float | None = None,
    step_size: Callable[[int], float] = full_step,
    on_step: Callable[[], None] | None = None,
    after_pass: Callable[[int], bool] | None = None,
) -> None:
    """Fit a model's globals to data, in place.

    Parameters
    ----------
    model : Model
    data : sequence
        Handed to ``model.local_step`` with the rows of each batch.
    temperature : Temperature
        A planned one, see :meth:`Temperature.plan`.
    monitor : Monitor
        Continued where it stands: its ``step`` is the number of steps done.
    n_samples, n_passes : int
        Data, passes over the data.
    batch_size : int, optional
        Data a minibatch; by default all of them.
    population : float, optional
        The number of data that a minibatch stands for; by default `n_samples`.
    step_size : callable, default=full_step
        rho of step t = 1, 2, ...
    on_step : callable, optional
        Called after each step; raises ``StopIteration`` to end the fit.
    after_pass : callable, optional
        Called with the index of each finished pass; true ends the fit.
    """
    batch_size = n_samples if batch_size is None else batch_size
    population = n_samples if population is None else population
    for index in range(n_passes):
        for rows in gen_batches(n_samples, batch_size):
            n_rows = rows.stop - rows.start
            with monitor.clock():
                tempering = temperature.tempering(monitor.step)
                local = model.local_step(Batch(data, rows), tempering, temperature.observes)
                rho = step_size(monitor.step + 1)
                model.global_step(local.statistics, rho, population / n_rows, tempering)
                temperature.observe(local, population / n_rows)
            inverse = tempering.inverse if local.inverse is None else local.inverse
            monitor.advance(n_rows / population, float(1.0 / np.mean(inverse)))
            if on_step is not None:
                try:
                    on_step()
                except StopIteration:
                    return
        if after_pass is not None and after_pass(index):
            return
