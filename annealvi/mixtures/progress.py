"""A fit of a mixture under way: what a checkpoint of it holds, and how a fit goes on from one."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from copy import deepcopy
from typing import Any

import numpy as np
from numpy.random import RandomState

from annealvi.files import Node, generator_state, restore_generator
from annealvi.inference import Progress
from annealvi.inference.checkpoints import (
    Fingerprint,
    begin_generator,
    read_checkpoint,
    write_checkpoint,
)
from annealvi.mixtures.run import MixtureRun


class MixtureProgress:
    """The starts of a fit that have ended, and the one under way."""

    def __init__(
        self, fingerprint: Fingerprint, random_state: Any, resume: str | os.PathLike | None
    ) -> None:
        self._fingerprint = fingerprint
        self._saved: Node | None = None
        if resume is not None:
            self._saved = read_checkpoint(resume, fingerprint.owner)
            fingerprint.check(self._saved.node("fit"), resume)
        self.finished = False
        self.resumes = self._saved is not None
        began = None if self._saved is None else self._saved.node("generator")
        self.rng = begin_generator(random_state, began)
        self.starts: Progress[MixtureRun] = Progress()
        self._began = self._run_began = deepcopy(self.rng)

    def note_start(self) -> None:
        """Remember the generator of a start that is about to be drawn."""
        self._run_began = deepcopy(self.rng)

    def resume(
        self,
        begin: Sequence[Callable[[threading.Event], MixtureRun]],
        ended: Callable[[int, Node], MixtureRun],
    ) -> None:
        """Take over the starts of the checkpoint."""
        node, starts, n_starts = self._saved, self.starts, len(begin)
        assert node is not None
        scores = node.array("scores", (None,), np.float64)
        if len(scores) > n_starts:
            raise node.error("scores", f"at most {n_starts} numbers", scores)
        starts.scores[:] = scores.tolist()
        self.finished = node.boolean("finished")
        if len(scores):
            best = node.node("best")
            number = best.integer("number", 0, len(scores) - 1)
            starts.best.show(ended(number, best), number)
        if not node.is_none("run"):
            if len(scores) == n_starts or self.finished:
                raise node.error("run", "None, as all starts have ended", "a run")
            run = node.node("run")
            _set(self.rng, run.node("began"))
            starts.run = begin[len(scores)](threading.Event())
            starts.run.load_state_dict(run)
        elif not len(scores):
            raise node.error("scores", "at least one number", scores)
        _set(self.rng, node.node("now"))

    def write(self, path: str | os.PathLike) -> None:
        """Write a checkpoint."""
        starts = self.starts
        best = run = None
        if starts.best.run is not None:
            best = starts.best.run.ended_dict() | {"number": starts.best.number}
        if starts.run is not None:
            run = starts.run.state_dict() | {"began": generator_state(self._run_began)}
        write_checkpoint(
            path,
            {
                "fit": self._fingerprint.state_dict(),
                "generator": generator_state(self._began),
                "now": generator_state(self.rng),
                "scores": np.array(starts.scores, dtype=np.float64),
                "finished": self.finished,
                "best": best,
                "run": run,
            },
        )


def _set(rng: RandomState, node: Node) -> None:
    rng.set_state(restore_generator(node).get_state(legacy=False))
