"""The engine on processes of this machine, joblib's loky."""

from __future__ import annotations

import itertools
import tempfile
import weakref
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import joblib
from joblib.externals.loky import ProcessPoolExecutor
from joblib.externals.loky.process_executor import BrokenProcessPool, ShutdownExecutorError

from annealvi._kernels import instruction_set
from annealvi.scale.engines.base import WorkersLostError

#: The keys of so many results that nobody holds any more are told to the workers.
TOLD = 256


class Recipe:
    """How a result is made; each worker that needs it makes it once, and keeps it."""

    def __init__(self, key: int, function: Callable[..., Any], arguments: tuple) -> None:
        self.key, self.function, self.arguments = key, function, arguments


class LokyEngine:
    """Computes in processes of this machine.

    A result is a recipe, which any worker can follow.  So nothing is lost with a worker, and new
    ones are started.
    """

    def __init__(self, n_workers: int = 2, n_threads: int | None = None) -> None:
        self.n_workers = n_workers
        self.instruction_set = instruction_set()
        self.n_losses = 0
        self._n_threads = (
            max(1, joblib.cpu_count() // n_workers) if n_threads is None else n_threads
        )
        self._folder = tempfile.TemporaryDirectory(prefix="annealvi-")
        self._keys = itertools.count()
        self._dropped: deque[int] = deque(maxlen=TOLD)
        self._executor: ProcessPoolExecutor | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the workers, and remove what was put."""
        self._stop()
        self._folder.cleanup()

    def threads(self) -> int:
        """Return the number of threads of a task."""
        return self._n_threads

    def put(self, value: Any) -> Recipe:
        """Write a value to a file, which each worker reads once."""
        key = next(self._keys)
        path = Path(self._folder.name) / f"{key}.pickle"
        joblib.dump(value, path)
        recipe = self._recipe(key, _read, (str(path),))
        weakref.finalize(recipe, path.unlink, missing_ok=True).atexit = False
        return recipe

    def submit(
        self, function: Callable[..., Any], *arguments: Any, slot: int | None = None
    ) -> Recipe:
        """Return the recipe of a result; it is followed once it is needed."""
        return self._recipe(next(self._keys), function, arguments)

    def is_lost(self, handle: Any) -> bool:
        """Return False: a result can be made again anywhere."""
        return False

    def gather(self, handles: Sequence[Recipe]) -> list[Any]:
        """Follow recipes, each in one of the workers."""
        try:
            if self._executor is None:
                self._executor = ProcessPoolExecutor(max_workers=self.n_workers)
            dropped = tuple(self._dropped)
            jobs = [self._executor.submit(_follow, handle, dropped) for handle in handles]
            return [job.result() for job in jobs]
        except (BrokenProcessPool, ShutdownExecutorError) as error:
            self._stop()
            raise WorkersLostError("a worker was lost") from error
        except KeyboardInterrupt:
            self._stop()
            raise

    def _recipe(self, key: int, function: Callable[..., Any], arguments: tuple) -> Recipe:
        recipe = Recipe(key, function, arguments)
        weakref.finalize(recipe, self._dropped.append, key).atexit = False
        return recipe

    def _stop(self) -> None:
        if self._executor is not None:
            self._executor.shutdown(wait=True, kill_workers=True)
            self._executor = None


#: The results that this worker keeps, by their keys.
_kept: dict[int, Any] = {}


def _follow(recipe: Recipe, dropped: Sequence[int]) -> Any:
    """The result of a recipe, in a worker."""
    for key in dropped:
        _kept.pop(key, None)
    return recipe.function(*map(_ingredient, recipe.arguments))


def _ingredient(argument: Any) -> Any:
    """An argument, with recipes in it followed."""
    if isinstance(argument, list | tuple):
        return [_ingredient(one) for one in argument] if _has_recipe(argument) else argument
    if not isinstance(argument, Recipe):
        return argument
    if argument.key not in _kept:
        _kept[argument.key] = argument.function(*map(_ingredient, argument.arguments))
    return _kept[argument.key]


def _has_recipe(arguments: Sequence[Any]) -> bool:
    return any(isinstance(one, Recipe) for one in arguments)


def _read(path: str) -> Any:
    return joblib.load(path)
