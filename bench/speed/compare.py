"""One commit against another: a slower head shows as a ratio below 1.

    python -m bench.speed.compare BASE [HEAD] [--rounds 7] [--threshold .9]

Both are built with this interpreter's packages into temporary folders, from git worktrees
(HEAD by default the working tree's own commit; a folder with a checkout is taken as it is).
A process of each makes the same passes in turns: base, head, head, base, and so on.  CPU
seconds, one thread; the ratio is base over head, its median over rounds with the quartiles.
A problem whose median is below the threshold is given three times the rounds before it
counts as slower, as machines are noisy; then the exit status is 1.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median, quantiles
from typing import IO

from bench import CHECKOUT

#: What a process does: a problem a line on stdin, CPU seconds on stdout.
WORKER = r"""
import sys, time
import numpy as np
from threadpoolctl import threadpool_limits
import annealvi
from annealvi import TemperedLDA
from annealvi.datasets import load_arxiv_abstracts, make_topic_corpus
long = load_arxiv_abstracts().data[:1500]
short = make_topic_corpus(4000, 4000, 20, document_length=25, random_state=0).data
# mean-field steps, which is all that earlier revisions have
FAITHFUL = {"preset": "sklearn"} if "preset" in TemperedLDA().get_params() else {}
def estimator(K, same=False):
    return TemperedLDA(K, **FAITHFUL, total_samples=3000, batch_size=256, random_state=0,
                       temperature=1, learning_method="online",
                       document_init="random" if same else "constant")
def passes(X, K, same=False):
    lda = estimator(K, same).partial_fit(X[:256])
    return lambda: lda.partial_fit(X)
def transform(X, K):
    lda = estimator(K).partial_fit(X[:256])
    return lambda: lda.transform(X)
def steps(X, K):
    lda = estimator(K).partial_fit(X[:256])
    return lambda: [lda.partial_fit(X[i : i + 4]) for i in range(0, 100, 4)]
PROBLEMS = {
    "abstracts, K=20": lambda: passes(long, 20),
    "abstracts, K=100": lambda: passes(long, 100),
    "abstracts, K=100, random start": lambda: passes(long, 100, True),
    "abstracts, K=100, float32": lambda: passes(long.astype(np.float32), 100),
    "abstracts, K=500": lambda: passes(long, 500),
    "short documents, K=100": lambda: passes(short, 100),
    "transform of abstracts, K=100": lambda: transform(long, 100),
    "small minibatches, K=100": lambda: steps(long, 100),
}
print(annealvi.__file__, *PROBLEMS, sep="\t", flush=True)
with threadpool_limits(1):
    for line in sys.stdin:
        run = PROBLEMS[line.rstrip("\n")]()
        began = time.process_time()
        run()
        print(time.process_time() - began, flush=True)
"""


def git(*arguments: str) -> str:
    command = ["git", "-C", str(CHECKOUT), *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def install(revision: str, folder: Path) -> Path:
    """Build a revision, or a folder that holds a checkout; where the package then lies."""
    site, tree = folder / "site", folder / "tree"
    given = Path(revision)
    is_folder = (given / "pyproject.toml").is_file()
    if is_folder:
        tracked = subprocess.run(
            ["git", "-C", str(given), "ls-files", "-z"], check=True, capture_output=True, text=True
        ).stdout.split("\0")
        for name in filter(None, tracked):
            if (given / name).is_file():  # a file may be deleted and not yet committed
                (tree / name).parent.mkdir(parents=True, exist_ok=True)
                (tree / name).write_bytes((given / name).read_bytes())
    else:
        git("worktree", "add", "--detach", str(tree), revision)
    try:
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        pip += ["--no-deps", "--no-build-isolation", "--target", str(site), str(tree)]
        subprocess.run(pip, check=True)
    finally:
        if not is_folder:
            git("worktree", "remove", "--force", str(tree))
    return site


class Worker:
    """A process that imports one of the builds."""

    def __init__(self, site: Path) -> None:
        # an editable install's finder may come before PYTHONPATH: insist on the build
        code = f"import sys; sys.path.insert(0, {str(site)!r}); sys.meta_path[:] = [f for f in \
sys.meta_path if 'editable' not in str(f).lower()]\n{WORKER}"
        environment = os.environ | {"OMP_NUM_THREADS": "1"}
        self.process = subprocess.Popen(
            [sys.executable, "-c", code],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
            cwd=site,
        )
        source, *self.problems = self._line().split("\t")
        if not Path(source).is_relative_to(site):
            raise RuntimeError(f"The build in {site} was to be imported, and {source} was.")

    def _line(self) -> str:
        line = self._stream(self.process.stdout).readline()
        if not line:
            raise RuntimeError("The process of a build ended; its error stands above.")
        return line.rstrip("\n")

    @staticmethod
    def _stream(stream: IO[str] | None) -> IO[str]:
        assert stream is not None
        return stream

    def seconds(self, problem: str) -> float:
        stdin = self._stream(self.process.stdin)
        stdin.write(f"{problem}\n")
        stdin.flush()
        return float(self._line())

    def close(self) -> None:
        self._stream(self.process.stdin).close()
        self.process.wait()


def compare(base: Worker, head: Worker, rounds: int, threshold: float) -> dict[str, list[float]]:
    """Base over head, a ratio a round, of each problem."""
    ratios: dict[str, list[float]] = {}
    for problem in head.problems:
        for worker in (base, head):  # what is built or read once
            worker.seconds(problem)
        ratios[problem] = turns(base, head, problem, rounds)
        if median(ratios[problem]) < threshold:
            ratios[problem] += turns(base, head, problem, 2 * rounds)
    return ratios


def turns(base: Worker, head: Worker, problem: str, rounds: int) -> list[float]:
    """Base over head, a ratio a round; who goes first changes."""
    ratios = []
    for index in range(rounds):
        order = (base, head) if index % 2 == 0 else (head, base)
        took = {worker: worker.seconds(problem) for worker in order}
        ratios.append(took[base] / took[head])
    return ratios


def main() -> None:
    assert __doc__ is not None
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("base")
    parser.add_argument("head", nargs="?", default="HEAD")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--threshold", type=float, default=0.9)
    arguments = parser.parse_args()
    if arguments.rounds < 2:
        parser.error("--rounds must be at least 2")
    with tempfile.TemporaryDirectory() as folder:
        sites = []
        for name in ("base", "head"):
            (Path(folder) / name).mkdir()
            sites.append(install(getattr(arguments, name), Path(folder) / name))
        base, head = map(Worker, sites)
        try:
            ratios = compare(base, head, arguments.rounds, arguments.threshold)
        finally:
            base.close()
            head.close()
    print(f"| {arguments.head} against {arguments.base} | times as fast | quartiles |")
    print("|---|---|---|")
    slower = []
    for problem, values in ratios.items():
        low, middle, high = quantiles(values, n=4)
        verdict = " slower" if middle < arguments.threshold else ""
        print(f"| {problem} | {middle:.2f}{verdict} | {low:.2f} to {high:.2f} |")
        if verdict:
            slower.append(problem)
    if slower:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
