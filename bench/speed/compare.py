"""Compare the speed of two commits; a ratio above 1 means that head is slower.

    python -m bench.speed.compare BASE [HEAD] [--rounds 7] [--fail-above 1.1]

BASE and HEAD are commits, or folders that contain a checkout.  By default HEAD is the commit that
is checked out here.  Both are built with this interpreter's packages into temporary folders.  Then
one process for each build does the same work (workloads.py), in the order base, head, head, base,
and so on.  `import annealvi` is timed in a new process each time.  Times are CPU seconds of one
thread.  Each round gives the ratio of head to base.  The table at the end contains the median and
the quartiles of the ratios for each problem.  Timings are noisy, so if a median is above
`--fail-above`, three times as many rounds are made before the problem counts as slower.  The exit
status is 1 if a problem is slower.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from statistics import median, quantiles
from typing import IO

from bench import parser
from bench.speed.builds import import_seconds, install, run_module

IMPORT = "import annealvi"


class Worker:
    """A process that works on the problems of workloads.py with one of the builds."""

    def __init__(self, site: Path) -> None:
        self.site = site
        self.process = run_module(site, "bench.speed.workloads")
        self.problems = [IMPORT, *self._line().split("\t")]

    def _line(self) -> str:
        line = self._stream(self.process.stdout).readline()
        if not line:
            raise RuntimeError("The process of a build ended; its error is printed above.")
        return line.rstrip("\n")

    @staticmethod
    def _stream(stream: IO[str] | None) -> IO[str]:
        assert stream is not None
        return stream

    def seconds(self, problem: str) -> float:
        """Work on a problem once; return the CPU seconds."""
        if problem == IMPORT:
            return import_seconds(self.site)
        stdin = self._stream(self.process.stdin)
        stdin.write(f"{problem}\n")
        stdin.flush()
        return float(self._line())

    def close(self) -> None:
        self._stream(self.process.stdin).close()
        self.process.wait()


def compare(base: Worker, head: Worker, rounds: int, limit: float) -> dict[str, list[float]]:
    """For each problem that both builds have, the ratios of head to base in each round."""
    ratios: dict[str, list[float]] = {}
    for problem in head.problems:
        if problem not in base.problems:
            print(f"{problem} is left out, because the base does not have it", file=sys.stderr)
            continue
        for worker in (base, head):  # not timed: the first time, some data are read or built
            worker.seconds(problem)
        ratios[problem] = turns(base, head, problem, rounds)
        if median(ratios[problem]) > limit:
            ratios[problem] += turns(base, head, problem, 2 * rounds)
    return ratios


def turns(base: Worker, head: Worker, problem: str, rounds: int) -> list[float]:
    """The ratios of head to base in each round; base and head take turns in being first."""
    ratios = []
    for index in range(rounds):
        order = (base, head) if index % 2 == 0 else (head, base)
        took = {worker: worker.seconds(problem) for worker in order}
        ratios.append(took[head] / took[base])
    return ratios


def main() -> None:
    options = parser(__doc__)
    options.add_argument("base")
    options.add_argument("head", nargs="?", default="HEAD")
    options.add_argument("--rounds", type=int, default=7)
    options.add_argument("--fail-above", type=float, default=1.1, metavar="RATIO")
    arguments = options.parse_args()
    if arguments.rounds < 2:
        options.error("--rounds must be at least 2")
    with tempfile.TemporaryDirectory() as folder:
        sites = [install(getattr(arguments, name), Path(folder, name)) for name in ("base", "head")]
        workers: list[Worker] = []
        try:
            workers += map(Worker, sites)
            ratios = compare(*workers, arguments.rounds, arguments.fail_above)
        finally:
            for worker in workers:
                worker.close()
    print(f"| {arguments.head} against {arguments.base} | CPU time | quartiles |")
    print("|---|---|---|")
    slower = False
    for problem, values in ratios.items():
        low, middle, high = quantiles(values, n=4)
        verdict = " slower" if middle > arguments.fail_above else ""
        print(f"| {problem} | {middle:.2f}{verdict} | {low:.2f} to {high:.2f} |")
        slower |= bool(verdict)
    if slower:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
