"""Fits of several runs, one after another or in parallel, and their checkpoints."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy
from functools import cached_property
from os import PathLike, fspath
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.random import RandomState
from sklearn.utils import check_random_state

from annealvi.files import read, write
from annealvi.files.parameters import parameter_tree
from annealvi.files.schema import (
    Array,
    Flag,
    Generator,
    Integer,
    Listed,
    Named,
    Optional,
    Schema,
    Text,
    Tree,
    damaged,
)
from annealvi.matrices import digest
from annealvi.scale.elsewhere import Elsewhere
from annealvi.versions import warn_of_version

#: The kind of file that contains a checkpoint.
KIND = "checkpoint"
#: Parameters that may differ when a fit is resumed, because they do not change the result.
FREE = frozenset({"callback", "checkpoint", "client", "n_jobs", "verbose"})
FINGERPRINT = Schema(
    estimator=Text(), parameters=Named(Text()), shape=Text(), dtype=Text(), X=Text()
)
CHECKPOINT = Schema(
    fit=Tree(),
    generator=Generator(),  # its state at the beginning
    generator_began=Generator(),  # its state at the beginning of the current run
    generator_now=Generator(),
    finished=Flag(),
    scores=Array((None,), finite=False),
    ended=Listed(Schema(number=Integer(), fit=Tree())),
    under_way=Optional(Tree()),
)


F = TypeVar("F", bound=Any)


class Runs(Generic[F]):
    """The fits of all runs: the current fit, and the fits that have ended.

    The fit of a run makes its remaining steps in ``run()``, and has these attributes: ``number``,
    counted from 0; ``n_steps``, the steps done; ``score``, which is reported to the user;
    ``goodness``, by which fits are compared, -infinity if it is unknown; ``stopped``, whether the
    callback raised StopIteration, so that no more runs follow; ``in_callback``, whether the user's
    callback is running, so that an error comes from the user's code.  Its methods ``state_dict()``
    and ``load_state_dict(tree, path, ended=...)`` write and read everything that is needed to
    continue or show the fit, which may have ended.

    Parameters
    ----------
    fingerprint : Fingerprint
        The estimator, its parameters and the data.
    random_state : int, RandomState or None
        The parameter `random_state` of the estimator.
    resume : path, optional
        A checkpoint from which the fit is resumed.

    Attributes
    ----------
    generator : RandomState
        The random number generator of the fit.
    scores : list of float
        Scores of the runs that have ended, in their order.
    ended : list
        The fits of the runs that have ended.  Only the best fit is kept unless :meth:`run` gets a
        function `merge_fits`.  After an interrupt or an error in the user's callback, the list
        includes the current fit if it has made a step.  After other errors the list is empty.
    under_way : object
        The fit of the current run or, after the last run, the fit that `merge_fits` returned.
    finished : bool
        Whether no more runs follow, and the results of the best fit are ready.
    halt : Event
        This event is set when a fit fails or is interrupted, so that fits in other threads end.

    Raises
    ------
    ValueError
        If the checkpoint is damaged, or belongs to another fit.
    """

    def __init__(
        self, fingerprint: Fingerprint, random_state: Any, resume: str | PathLike | None = None
    ) -> None:
        """Prepare the runs of a fit, or read those of the checkpoint `resume`."""
        self._fingerprint = fingerprint
        self._checkpoint: dict[str, Any] | None = None
        if resume is not None:
            self._checkpoint = CHECKPOINT.load(read_checkpoint(resume, fingerprint.owner))
            fingerprint.check(self._checkpoint["fit"], resume)
            # files can contain None instead of a generator, but not checkpoints
            for name in ("generator", "generator_began", "generator_now"):
                if self._checkpoint[name] is None:
                    raise damaged(name, "a generator", None)
        saved_generator = None if self._checkpoint is None else self._checkpoint["generator"]
        self.generator = begin_generator(random_state, saved_generator)
        self._generator_at_begin = deepcopy(self.generator)
        self._generator_of_run = self._generator_at_begin  # at the beginning of the current run
        self.scores: list[float] = []
        self.ended: list[F] = []
        self.under_way: F | None = None
        self.finished = False
        self._keeps_all = False
        self.halt = threading.Event()

    @property
    def best(self) -> F | None:
        """The best fit that has ended, or the first of equally good fits."""

        def order(fit: F) -> tuple[float, int]:
            """The key by which fits are sorted, best first; NaN comes last."""
            return (math.inf if math.isnan(fit.goodness) else -fit.goodness), fit.number

        return min(self.ended, key=order, default=None)

    @property
    def resumed(self) -> bool:
        """Whether the runs were read from a checkpoint."""
        return self._checkpoint is not None

    def run(
        self,
        begin: Callable[[int], F],
        n_runs: int,
        *,
        n_workers: int = 1,
        show: Callable[[F], None] | None = None,
        merge_fits: Callable[[list[F]], F] | None = None,
    ) -> list[F]:
        """Run all fits, and return those that have ended.

        Parameters
        ----------
        begin : callable
            A function that returns the fit of a run, given the run's number.  With one worker, a
            fit begins after the previous fit has ended, so that all can use the same generator.
        n_runs : int
        n_workers : int
            Number of fits at the same time; a resumed fit has one worker.
        show : callable, optional
            Called with each fit before it runs, if there is one worker.
        merge_fits : callable, optional
            A function that takes the fits that have ended, and returns one fit that replaces them.
            A StopIteration prevents later fits.  Without `merge_fits` only the best fit is kept.
        """

        def run_to_end(fit: F) -> None:
            """Run a fit to its end, and store it."""
            if show is not None:
                show(fit)
            fit.run()
            self._store_ended(fit)
            self.under_way = None

        self._keeps_all = merge_fits is not None
        if self._checkpoint is not None:
            self._resume(self._checkpoint, begin, n_runs, merge_fits)
        elif n_workers > 1:
            self._run_side_by_side(begin, n_runs, n_workers)
        try:
            stopped = self.finished  # whether the user's callback stopped a run
            while not stopped and len(self.scores) < n_runs:
                if self.under_way is None:
                    self._generator_of_run = deepcopy(self.generator)
                    self.under_way = begin(len(self.scores))
                fit = self.under_way
                run_to_end(fit)
                self.scores.append(fit.score)
                stopped = fit.stopped
            if merge_fits is not None and not self.finished:
                if self.under_way is None:
                    runs = sorted(self.ended, key=lambda fit: fit.number)
                    self.ended = []
                    self.under_way = merge_fits(runs)
                run_to_end(self.under_way)
        except BaseException as error:
            current_fit = self.under_way
            in_callback = current_fit is not None and current_fit.in_callback
            # an error in annealvi itself, unlike an interrupt or an error in the user's callback
            if isinstance(error, Exception) and not in_callback:
                self.ended = []
            elif current_fit is not None and current_fit.n_steps:
                self._store_ended(current_fit)
            raise
        return self.ended

    def write(self, path: str | PathLike) -> None:
        """Write a checkpoint."""
        ended = [{"number": fit.number, "fit": fit.state_dict()} for fit in self.ended]
        tree = {
            "fit": self._fingerprint.tree,
            "generator": self._generator_at_begin,
            "generator_began": self._generator_of_run,
            "generator_now": self.generator,
            "finished": self.finished,
            "scores": np.array(self.scores, dtype=float),
            "ended": ended,
            "under_way": self.under_way and self.under_way.state_dict(),
        }
        write_checkpoint(path, CHECKPOINT.dump(tree))

    # ----------------------------------------------------------------- details

    def _resume(
        self,
        saved: Mapping[str, Any],
        begin: Callable[[int], F],
        n_runs: int,
        merge_fits: Callable[[list[F]], F] | None,
    ) -> None:
        """Set the fits and the generator to those of a checkpoint; see :meth:`run`."""

        def load(number: int, tree: Any, path: str, *, ended: bool) -> F:
            """Make the fit of a run from its tree; number `n_runs` is that of the merged fit."""
            fit = merge_fits([begin(0)]) if merge_fits and number == n_runs else begin(number)
            fit.load_state_dict(Tree().load(tree, path, {}), path, ended=ended)
            return fit

        self.finished = saved["finished"]
        scores = saved["scores"].tolist()
        numbers = [saved_fit["number"] for saved_fit in saved["ended"]]
        n = len(scores)
        if not int(self.finished) <= n <= n_runs:
            raise damaged("scores", f"the scores of at most {n_runs} runs", scores)
        # whether the fits have been merged, and replaced by the merged fit
        is_merged = merge_fits is not None and (self.finished or (n == n_runs and not numbers))
        # the runs whose fits are kept: all of them to be merged, or only the best
        allowed_numbers: list[list[int]] = (
            [[*range(n)]] if merge_fits else [[number] for number in range(n)] or [[]]
        )
        if is_merged:
            allowed_numbers = [[n_runs] if self.finished else []]
        if numbers not in allowed_numbers:
            raise damaged("ended", f"the fits of {n} runs", numbers)
        self.ended = [
            load(saved_fit["number"], saved_fit["fit"], f"ended.{place}.fit", ended=True)
            for place, saved_fit in enumerate(saved["ended"])
        ]
        self.scores = scores
        if not self.finished and (n < n_runs or is_merged):
            # the fit begins again with the same random numbers, and then continues from its state
            _copy_generator_state(self.generator, saved["generator_began"])
            self.under_way = load(n, saved["under_way"], "under_way", ended=False)
            self._generator_of_run = saved["generator_began"]
        _copy_generator_state(self.generator, saved["generator_now"])

    def _store_ended(self, fit: F) -> None:
        """Store a fit that has ended, or only the best fit if not all are needed."""
        self.ended.append(fit)
        if not self._keeps_all:
            self.ended = [self.best]  # type: ignore[list-item]

    def _run_side_by_side(self, begin: Callable[[int], F], n_runs: int, n_workers: int) -> None:
        """Run each fit in a Python thread, so that the kernels of all fits work in parallel.

        Unlike joblib's workers, these threads are joined after an interrupt, so that no thread
        continues in the background.
        """
        lock = threading.Lock()  # for `ended`, which all threads change
        unfinished: dict[int, F] = {}

        def work(number: int) -> float:
            """Make the fit of a run in a thread, and return its score."""
            if self.halt.is_set():  # another fit has failed
                return math.nan
            try:
                fit = begin(number)
                unfinished[number] = fit
                fit.run()
            except BaseException:
                self.halt.set()
                raise
            with lock:
                if not self.halt.is_set():
                    self._store_ended(unfinished.pop(number))
            return fit.score

        try:
            with ThreadPoolExecutor(n_workers) as pool:
                try:
                    self.scores = list(pool.map(work, range(n_runs)))
                except BaseException:
                    self.halt.set()  # before the pool waits for its threads
                    raise
        except Exception:
            self.ended = []
            raise
        except BaseException:  # an interrupt
            if not self.ended:
                for fit in unfinished.values():
                    if fit.n_steps:
                        self._store_ended(fit)
            raise


def begin_generator(random_state: Any, saved: RandomState | None) -> RandomState:
    """Return the random number generator in the state that it has at the beginning of a fit.

    If a fit is resumed, the state in the checkpoint is copied to the RandomState that was passed.
    """
    if saved is None:
        return check_random_state(random_state)
    if not isinstance(random_state, RandomState):
        return saved  # also for None, instead of the global generator
    _copy_generator_state(random_state, saved)
    return random_state


def _copy_generator_state(rng: RandomState, saved: RandomState) -> None:
    """Set a generator to the state of another one."""
    rng.set_state(saved.get_state(legacy=False))


# ------------------------------------------------------------------------ whose checkpoint it is


class Fingerprint:
    """The estimator, the parameters and the data of a fit.

    A fit can be resumed only if its fingerprint is equal to that in the checkpoint.

    Parameters
    ----------
    estimator : object
        The estimator, whose current parameters are recorded.
    X : ndarray or sparse matrix
        The data.
    """

    def __init__(self, estimator: Any, X: Any) -> None:
        """Record the estimator's parameters and its data X."""
        self.owner = type(estimator).__name__
        # a copy, because a callback may set other parameters for the next fit
        self.parameters = dict(estimator.get_params(deep=False))
        self.X = X

    @cached_property  # computed when the fit is written or resumed
    def tree(self) -> dict[str, Any]:
        """The fingerprint as a tree of strings; arrays are represented by their digests."""
        return {
            "estimator": self.owner,
            "parameters": {
                name: "a RandomState"  # its state is stored elsewhere in the checkpoint
                if name == "random_state" and isinstance(value, RandomState)
                else described(parameter_tree(value, name))
                for name, value in sorted(self.parameters.items())
                if name not in FREE
            },
            "shape": str(self.X.shape),
            "dtype": str(self.X.dtype),
            "X": self.X.digest if isinstance(self.X, Elsewhere) else digest(self.X),
        }

    def check(self, tree: Mapping[str, Any], path: str | PathLike) -> None:
        """Raise ValueError, which names the first difference, if a checkpoint is of another fit."""
        file = f"resume={fspath(path)!r}"
        expected = self.tree
        saved = FINGERPRINT.load(tree, "fit")
        if saved["estimator"] != self.owner:
            raise ValueError(
                f"{file} must be a checkpoint of {self.owner}. Got a checkpoint of "
                f"{saved['estimator'][:80]}."
            )
        for name, value in expected["parameters"].items():
            saved_value = saved["parameters"].get(name, "no such value")
            if saved_value != value:
                raise ValueError(
                    f"{file} is a checkpoint of a fit with another value of {name!r}: there it "
                    f"is {saved_value[:300]}, but in this {self.owner} it is {value[:300]}. Resume "
                    "the fit with the same parameters; only "
                    f"{', '.join(sorted(FREE & self.parameters.keys()))} may differ."
                )
        for what in ("shape", "dtype", "X"):
            if saved[what] != expected[what]:
                differs = f"its {what} was {saved[what][:80]}, but X has {what} {expected[what]}"
                if what == "X":
                    differs = "the numbers in X or their order differ"
                raise ValueError(f"{file} is a checkpoint of a fit to another X: {differs}.")


def described(tree: Any) -> str:
    """Convert the tree of a parameter to a text, which is equal only for equal parameters."""
    if isinstance(tree, np.ndarray):
        return f"an array of {tree.dtype} of shape {tree.shape} with SHA-256 {digest(tree)}"
    if isinstance(tree, list):
        return f"[{', '.join(map(described, tree))}]"
    if isinstance(tree, Mapping):
        items = tree.get("parameters", tree)  # of an object, such as a temperature, or of a dict
        inner = [f"{name}={described(item)}" for name, item in items.items() if name != "type"]
        return f"{tree.get('type', '')}({', '.join(inner)})"
    # 1 and 1.0 are equal parameters
    return repr(int(tree) if isinstance(tree, float) and tree.is_integer() else tree)


def write_checkpoint(path: str | PathLike, tree: Mapping[str, Any]) -> None:
    """Write the tree of a checkpoint to a file."""
    write(path, KIND, tree)


def read_checkpoint(path: str | PathLike, owner: str) -> Any:
    """Read a checkpoint as a tree, and warn if another version of annealvi wrote it."""
    content = read(path, KIND)
    warn_of_version(owner, content["version"])
    return content["tree"]
