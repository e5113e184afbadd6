"""Draws from the prior of a model, for Monte Carlo estimates of log C(T)."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from annealvi._kernels.layout import single_threaded_blas
from annealvi.checks import as_array


@dataclass(frozen=True)
class Draws:
    """How to draw from a prior: the number of draws, the seed and the number of threads.

    Attributes
    ----------
    n_samples : int
        Number of draws of the global parameters.
    n_theta : int
        Number of draws of local parameters for each draw of the global ones.
    seed : numpy.random.SeedSequence
    n_threads : int
    callback : callable, optional
        ``callback(done, total)``, called in the thread that asked for the draws.
    """

    n_samples: int
    n_theta: int
    seed: np.random.SeedSequence
    n_threads: int = 1
    callback: Callable[[int, int], Any] | None = None

    def map(
        self, function: Callable[[np.random.Generator], NDArray[np.float64]]
    ) -> NDArray[np.float64]:
        """Return function(rng) of each draw, stacked.

        Each draw has a generator of its own and runs in one thread, so results are
        bit-identical for any number of threads.
        """
        seeds = self.seed.spawn(self.n_samples)

        def one(index: int) -> NDArray[np.float64]:
            with single_threaded_blas():
                return function(np.random.Generator(np.random.SFC64(seeds[index])))

        results: list[Any] = [None] * self.n_samples
        with single_threaded_blas(), ThreadPoolExecutor(self.n_threads) as pool:
            # submit only as many as the threads need, so that an error soon ends the loop
            ahead: deque[tuple[int, Future]] = deque()
            for index in range(self.n_samples + self.n_threads + 1):
                if index < self.n_samples:
                    ahead.append((index, pool.submit(one, index)))
                if ahead and (len(ahead) > self.n_threads or index >= self.n_samples):
                    done, future = ahead.popleft()
                    results[done] = future.result()
                    if self.callback is not None:
                        self.callback(done + 1, self.n_samples)
        return np.stack(results)


class PlateOfData:
    """The methods of a model of N data that share only their global parameters."""

    def __init__(self, model: Any) -> None:
        self.model = model
        for name in ("log_partition", "posterior_log_partition"):
            if hasattr(model, name):
                setattr(self, name, getattr(model, name))
        if hasattr(model, "prior_centre"):
            self.map_log_partition = self._at_the_centre

    def _local(self, parameters: Any, inverse: NDArray[np.float64]) -> NDArray[np.float64]:
        values = as_array(self.model.local_log_partition(parameters, inverse))
        if values.shape != inverse.shape or values.dtype.kind not in "fiu":
            raise ValueError(
                f"'local_log_partition' of {type(self.model).__name__} must give one number for "
                f"each of {len(inverse)} temperatures. Got shape {values.shape} and dtype "
                f"{values.dtype} instead."
            )
        return values.astype(np.float64, copy=False)

    def _draw(self, inverse: NDArray[np.float64], draws: Draws) -> NDArray[np.float64]:
        return draws.map(lambda rng: self._local(self.model.sample_prior(rng), inverse))

    def draw_log_partition(self, inverse: NDArray[np.float64], draws: Draws) -> NDArray[np.float64]:
        return self.model.n_samples * self._draw(inverse, draws)

    def jensen_log_partition(
        self, inverse: NDArray[np.float64], draws: Draws
    ) -> NDArray[np.float64]:
        logs = self._draw(inverse, draws)
        return self.model.n_samples * np.stack([logs.mean(axis=0), log_mean_exp(logs)])

    def _at_the_centre(self, inverse: NDArray[np.float64]) -> NDArray[np.float64]:
        return self.model.n_samples * self._local(self.model.prior_centre(), inverse)


def log_mean_exp(logs: NDArray[np.float64]) -> NDArray[np.float64]:
    """log of the mean of exp(logs) over the first axis."""
    most = logs.max(axis=0)
    return most + np.log(np.mean(np.exp(logs - most), axis=0))
