"""Whether a forked child can fit, whatever its parent did before: how many runs of N succeed.

    python -m bench.studies.forks --runs 100

A run fits, forks, and fits again in the child.  It has succeeded if the child's result has the
same bits as the parent's and came within the limit.  Every ten runs begin in a new process.
Two threads are used where the estimator has `n_jobs`, and by NumPy, scikit-learn and PyTorch.
Estimators of annealvi.deep are left out where PyTorch is not installed.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import numpy as np

THREADS = 2


def lda() -> Any:
    from annealvi import TemperedLDA

    X = np.random.RandomState(0).poisson(0.5, (400, 300)).astype(float)
    return TemperedLDA(40, max_iter=3, n_jobs=THREADS, random_state=0).fit(X).components_


def fmm() -> Any:
    from annealvi import TemperedFMM

    X = np.random.RandomState(0).standard_normal((3000, 20))
    return TemperedFMM(5, max_iter=3, n_jobs=THREADS, random_state=0).fit(X).components_


def gmm() -> Any:
    from annealvi import TemperedGaussianMixture

    X = np.random.RandomState(0).standard_normal((3000, 20))
    return TemperedGaussianMixture(5, max_iter=3, random_state=0).fit(X).means_


def vae() -> Any:
    from annealvi.deep import VariationalAutoencoder

    X = np.random.RandomState(0).uniform(size=(500, 400)) < 0.3
    vae = VariationalAutoencoder(max_iter=2, batch_size=500, random_state=0).fit(X)
    return vae.history_["elbo"]


def sbn() -> Any:
    from annealvi.deep import SigmoidBeliefNetwork

    X = np.random.RandomState(0).uniform(size=(500, 400)) < 0.3
    sbn = SigmoidBeliefNetwork(max_iter=2, batch_size=500, random_state=0).fit(X)
    return sbn.history_["elbo"]


def poisson() -> Any:
    from annealvi.deep import PoissonDEF

    X = np.random.RandomState(0).poisson(0.5, (400, 300))
    return PoissonDEF(max_iter=2, batch_size=400, random_state=0).fit(X).history_["elbo"]


def posterior() -> Any:
    from annealvi.deep import HierarchicalPosterior

    fit = HierarchicalPosterior(lambda z: -(z**2).sum(-1), 3, max_iter=2, random_state=0).fit()
    return fit.history_["elbo"]


FITS: dict[str, Callable[[], Any]] = {
    "TemperedLDA": lda,
    "TemperedFMM": fmm,
    "TemperedGaussianMixture": gmm,
}
DEEP: dict[str, Callable[[], Any]] = {
    "VariationalAutoencoder": vae,
    "SigmoidBeliefNetwork": sbn,
    "PoissonDEF": poisson,
    "HierarchicalPosterior": posterior,
}


#: Runs of one process: importing takes longer than a run.
RUNS_OF_A_PROCESS = 10


def fit_fork_fit(name: str, limit: float) -> str:
    """Fit, fork and fit in the child; return "ok", "failed" or "hung"."""
    fit = (FITS | DEEP)[name]
    expected = fit()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            code = int(not np.array_equal(fit(), expected))
        finally:
            os._exit(code)
    end = time.monotonic() + limit
    while time.monotonic() < end:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return "failed" if status else "ok"
        time.sleep(0.01)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return "hung"


def runs_of_a_process(name: str, n_runs: int, limit: float) -> list[str]:
    """Outcomes of runs in a process of their own."""
    command = [sys.executable, "-W", "ignore", "-m", "bench.studies.forks"]
    command += ["--one", name, "--runs", str(n_runs), "--limit", str(limit)]
    environment = os.environ | {"OMP_NUM_THREADS": str(THREADS)}
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=False)
    outcomes = done.stdout.split()
    return outcomes + ["failed"] * (n_runs - len(outcomes))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--limit", type=float, default=60.0, help="seconds for the child's fit")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        for _ in range(arguments.runs):
            print(fit_fork_fit(arguments.one, arguments.limit), flush=True)
        return
    print("| estimator | runs | succeeded | failed | hung |", "|---|---|---|---|---|", sep="\n")
    bad = 0
    for name in [*FITS, *(DEEP if find_spec("torch") else {})]:
        outcomes: list[str] = []
        while len(outcomes) < arguments.runs:
            n_runs = min(RUNS_OF_A_PROCESS, arguments.runs - len(outcomes))
            outcomes += runs_of_a_process(name, n_runs, arguments.limit)
        counts = [outcomes.count(word) for word in ("ok", "failed", "hung")]
        print(f"| {name} | {len(outcomes)} | {' | '.join(map(str, counts))} |", flush=True)
        bad += len(outcomes) - counts[0]
    sys.exit(bad > 0)


if __name__ == "__main__":
    main()
