"""All starts of a fit of TemperedLDA: the best is kept, and a checkpoint holds how far they are."""

from __future__ import annotations

import copy
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.random import RandomState
from scipy import sparse

from annealvi.files import Node, generator_state, restore_generator
from annealvi.inference import Callbacks, Progress, fit_starts
from annealvi.inference.checkpoints import (
    Fingerprint,
    begin_generator,
    read_checkpoint,
    write_checkpoint,
)
from annealvi.lda.fit import LDARun, plan_fit
from annealvi.lda.state import LDAState
from annealvi.scale.elsewhere import Elsewhere


class FitProgress:
    """A fit under way: the starts that have ended, the best of them, and the run under way."""

    def __init__(self, fingerprint: Fingerprint, generator: RandomState) -> None:
        self.fingerprint = fingerprint
        self.generator = generator
        self._begun = copy.deepcopy(generator)
        self.starts: Progress[LDARun] = Progress()
        self.finished = False

    def write(self, path: str | os.PathLike) -> None:
        """Write a checkpoint."""
        write_checkpoint(path, self.state_dict())

    def state_dict(self) -> dict[str, Any]:
        """Return all that is needed to resume the fit, as a tree; see :mod:`annealvi.files`."""
        best, run = self.starts.best, self.starts.run
        return {
            "fit": self.fingerprint.state_dict(),
            "generator": generator_state(self._begun),
            "generator_now": generator_state(self.generator),
            "finished": self.finished,
            "scores": np.array(self.starts.scores, dtype=np.float64),
            "best": best.run and {"number": best.number, "run": best.run.state_dict()},
            "run": run and run.state_dict(),
        }

    def load_state_dict(
        self, node: Node, starts: Sequence[Callable[[threading.Event], LDARun]]
    ) -> None:
        """Take over a checkpoint."""
        self.finished = node.boolean("finished")
        scores = node.array("scores", (None,), np.float64, finite=False).tolist()
        least = int(self.finished)
        if not least <= len(scores) < len(starts) + least:
            raise node.error("scores", f"the scores of at most {len(starts)} starts", scores)
        self.starts.scores = scores
        if scores:
            best = node.node("best")
            number = best.integer("number", 0, len(scores) - 1)
            run = _loaded(starts[number], best.node("run"))
            self.starts.best.show(run, number)
        if not self.finished:
            self.starts.run = _loaded(starts[len(scores)], node.node("run"))
        saved = restore_generator(node.node("generator_now"))
        self.generator.set_state(saved.get_state(legacy=False))


def _loaded(start: Callable[[threading.Event], LDARun], node: Node) -> LDARun:
    run = start(threading.Event())
    run.load_state_dict(node)
    return run


def fit_best(
    fingerprint: Fingerprint,
    parameters: Mapping[str, Any],
    X: sparse.csr_matrix | Elsewhere,
    *,
    keep_gamma: bool,
    n_threads: int,
    callback: Callbacks | None,
    resume: str | os.PathLike | None,
    follow: Callable[[FitProgress], None],
    adopt: Callable[[LDAState], None],
    commit: Callable[[], None],
) -> LDARun:
    """Fit from every start, and set the estimator's state to the best.

    Starts run in parallel, each in one thread, or one after another if there is a callback.
    """
    saved = None
    if resume is not None:
        saved = read_checkpoint(resume, fingerprint.owner)
        fingerprint.check(saved.node("fit"), resume)
    begun = None if saved is None else saved.node("generator")
    own = begin_generator(parameters["random_state"], begun)
    rngs, rng = generators(own, int(parameters["n_init"]))
    in_turn = callback is not None or saved is not None or isinstance(X, Elsewhere)
    n_workers = 1 if in_turn else min(n_threads, len(rngs))
    progress = FitProgress(fingerprint, own)
    task = plan_fit(
        fingerprint.owner,
        parameters,
        X,
        rng,
        keep_gamma=keep_gamma,
        n_threads=n_threads if n_workers == 1 else 1,
        callback=callback,
    )
    starts = [partial(LDARun, task, number, own) for number, own in enumerate(rngs)]
    if saved is not None:
        progress.load_state_dict(saved, starts)
    follow(progress)

    def show(run: LDARun) -> None:
        adopt(run.state)

    def salvage(run: LDARun) -> None:
        show(run)
        commit()

    if progress.finished:
        best = progress.starts.best.run
        assert best is not None
    else:
        best, scores = fit_starts(
            starts,
            n_workers=n_workers,
            salvage=salvage,
            on_begin=show if in_turn else None,
            progress=progress.starts,
        )
        best.state.results.init_scores = np.array(scores)
    try:
        best.conclude(n_threads)
    finally:
        salvage(best)
    # the warning points to the user's line, past the estimator's methods and their wrapper
    best.warn(stacklevel=5 + keep_gamma)
    progress.finished = True
    return best


def generators(own: RandomState, n_starts: int) -> tuple[list[RandomState], RandomState]:
    """One generator for each start, and one for what is held out.

    Start 1 uses the same random stream as ``n_init=1``.  The others are seeded by a copy of
    that stream.
    """
    seeds = copy.deepcopy(own).randint(np.iinfo(np.int32).max, size=n_starts)
    return [own, *map(RandomState, seeds[1:])], RandomState(seeds[0])
