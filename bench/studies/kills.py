"""Fits that are killed at random times and resumed: are their results identical, bit for bit?

    python -m bench.studies.kills --runs 50

For each kind of fit, a process that writes a checkpoint after every step is started.  It is killed
by SIGKILL at a random time: a random fraction of a step after a random step.  So many fits are
killed while they write a file.  Each fit is then resumed from the last complete file.  The table
shows how many fits have the same SHA-256 as a fit that was never stopped.  The exit status is 1 if
a fit has another one.
"""

from __future__ import annotations

import argparse
import random
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from annealvi import TemperedFMM, TemperedLDA
from annealvi.callbacks import Checkpoint
from annealvi.datasets import make_topic_corpus
from bench import parser
from bench.speed.same_bits import digest

#: Kinds of LDA, and their parameters.
LDA: dict[str, dict[str, Any]] = {
    "LDA": {"max_iter": 24},
    "LDA, variational": {"max_iter": 24, "temperature": "variational"},
    "LDA, 3 starts merged": {"max_iter": 8, "n_init": 3},
}
KINDS = (*LDA, "FMM")
#: Seconds of sleep after each step, so that a fit takes long enough to be killed.
PAUSE = 0.004
FOUND = (
    *("components_", "temperature_path_", "history_", "n_iter_", "bound_", "init_scores_"),
    *("topic_support_", "temperature_posterior_path_", "lower_bound_", "prior_probability_"),
)


def problem(kind: str) -> tuple[Any, Any]:
    """Make an estimator and its data."""
    if kind == "FMM":
        rng = np.random.RandomState(0)
        X = (rng.rand(60, 4) < 0.4) @ rng.normal(size=(4, 6)) + 0.1 * rng.normal(size=(60, 6))
        return TemperedFMM(4, max_iter=60, tol=0, n_init=2, random_state=0), X
    X = make_topic_corpus(80, 60, 4, document_length=40, random_state=0).data
    return TemperedLDA(4, batch_size=16, random_state=0, **LDA[kind]), X


def fit(kind: str, resume: Path | None = None, callback: list[Callable] | None = None) -> str:
    """Make a fit or resume it, and return its digest."""
    estimator, X = problem(kind)
    estimator.set_params(callback=callback)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # short fits warn that they have not converged
        estimator.fit(X, resume=resume)
    return digest({name: getattr(estimator, name) for name in FOUND if hasattr(estimator, name)})


def child(kind: str, path: Path, seconds: float) -> None:
    """Make a fit that prints "step" after each step; it is resumed if there is a file."""

    def tell(estimator: Any, monitor: Any) -> None:
        print("step", flush=True)
        time.sleep(PAUSE)

    fit(kind, path if path.exists() else None, [tell, Checkpoint(path, seconds)])
    print("end", flush=True)


def start(kind: str, path: Path, seconds: float = 0) -> subprocess.Popen[str]:
    """Start :func:`child` in a separate process."""
    options = ["--child", kind, str(path), str(seconds)]
    command = [sys.executable, "-m", "bench.studies.kills", *options]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def killed(kind: str, path: Path, n_steps: int, seconds: float) -> bool:
    """Kill a fit some seconds after `n_steps` steps; return False if it had ended before."""
    with start(kind, path) as process:
        assert process.stdout is not None
        for _ in range(n_steps):
            process.stdout.readline()
        time.sleep(seconds)
        process.kill()
        return "end" not in process.stdout.read()


def study(kind: str, runs: int, rng: random.Random) -> tuple[int, int]:
    """Count the fits that were killed before their end, and those with identical results."""
    steps: list[int] = []
    whole = fit(kind, callback=[lambda estimator, _: steps.append(1)])
    n_killed = 0
    n_same = 0
    with tempfile.TemporaryDirectory() as name:
        for number in range(runs):
            path = Path(name, str(number))
            n_steps = rng.randrange(1, len(steps))
            n_killed += killed(kind, path, n_steps, seconds=rng.uniform(0, 3 * PAUSE))
            n_same += fit(kind, path if path.exists() else None) == whole
    return n_killed, n_same


def main() -> int:
    options = parser(__doc__)
    options.add_argument("--runs", type=int, default=50)
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--child", nargs=3, help=argparse.SUPPRESS)
    arguments = options.parse_args()
    if arguments.child:
        kind, path, seconds = arguments.child
        child(kind, Path(path), float(seconds))
        return 0
    rng = random.Random(arguments.seed)
    same = True
    print("| fit | runs | killed before the end | same SHA-256 as never stopped |")
    print("|---|---|---|---|")
    for kind in KINDS:
        n_killed, n_same = study(kind, arguments.runs, rng)
        print(f"| {kind} | {arguments.runs} | {n_killed} | {n_same} |", flush=True)
        same = same and n_same == arguments.runs
    return int(not same)


if __name__ == "__main__":
    sys.exit(main())
