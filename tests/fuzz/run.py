"""The parent process: hands out cases to children, and notices their death or silence."""

from __future__ import annotations

import json
import os
import random
import re
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import IO, Any

from tests.fuzz.target import Target

#: Lines of what a case has done that are shown with a failure.
_SHOWN = 60


@dataclass(frozen=True)
class Finding:
    """A case that failed.

    Parameters
    ----------
    case : str
        ``SEED:TARGET:NUMBER``, for ``--case``.
    kind, text : str
    log : str
        The calls of the case.
    """

    case: str
    kind: str
    text: str
    log: str

    def __str__(self) -> str:
        lines = [
            f"{self.kind} in case {self.case}",
            *self.text.splitlines(),
            *self.log.splitlines(),
        ]
        return "\n    ".join(lines)

    @property
    def signature(self) -> str:
        """Findings of the same signature probably have the same cause."""
        lost = self.kind in ("crash", "hang")
        places = re.findall(r'File "([^"]+)", line (\d+)', self.log if lost else self.text)
        places = places if lost else places[-1:]
        target = self.case.split(":")[1].partition(".")[0]
        words = re.sub(r"[0-9]+", "", self.text).split()[:3]
        return f"{self.kind} {places[:3] or [target, *words]}"


@dataclass
class Report:
    """What came of a search.

    Attributes
    ----------
    cases : Counter
        Number of cases of each target.
    outcomes : dict of str to Counter
        Calls of each target by their outcome.
    findings : list of Finding
    """

    cases: Counter[str] = field(default_factory=Counter)
    outcomes: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    findings: list[Finding] = field(default_factory=list)

    def distinct(self) -> dict[str, list[Finding]]:
        """The findings by their signature."""
        found: dict[str, list[Finding]] = defaultdict(list)
        for finding in self.findings:
            found[finding.signature].append(finding)
        return found

    def table(self) -> str:
        """Calls by target and outcome, as text."""
        kinds = Counter[str]()
        for counts in self.outcomes.values():
            kinds.update(counts)
        names = [name for name, _ in kinds.most_common()]
        rows = [["target", "cases", *names]]
        for target in sorted(self.cases):
            counts = self.outcomes[target]
            rows.append([target, str(self.cases[target]), *(str(counts[n] or "") for n in names)])
        rows.append(["all", str(self.cases.total()), *(str(kinds[n]) for n in names)])
        widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
        return "\n".join(
            "  ".join(
                cell.ljust(width) if i == 0 else cell.rjust(width)
                for i, (cell, width) in enumerate(zip(row, widths, strict=True))
            )
            for row in rows
        )


class Worker:
    """A child process.

    Parameters
    ----------
    seed : int
    limit : float
        Seconds that a case may take.
    deep : bool
    """

    def __init__(self, seed: int, limit: float, deep: bool) -> None:
        self.stderr: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the worker
        command = [sys.executable, "-m", "tests.fuzz.worker", "--seed", str(seed)]
        command += ["--limit", str(limit), *["--deep"] * deep]
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.stderr,
            env=os.environ | {"PYTHONHASHSEED": "0"},
        )
        self.limit = limit
        self.job: tuple[str, int] | None = None
        self.since = 0.0

    def ask(self, job: tuple[str, int]) -> None:
        """Hand out a case."""
        assert self.process.stdin is not None
        self.job, self.since = job, time.monotonic()
        self.process.stdin.write(json.dumps(job).encode() + b"\n")
        self.process.stdin.flush()

    def silent(self) -> bool:
        """Whether the case takes longer than even the child's own alarm allows."""
        return self.job is not None and time.monotonic() > self.since + 1.5 * self.limit + 10

    def log(self) -> str:
        """What the child has written about its last case."""
        self.stderr.seek(0)
        lines = self.stderr.read().decode(errors="replace").strip("\0").splitlines()
        lines = [line for line in lines if not line.startswith("Extension modules:")]
        return "\n".join(lines[-_SHOWN:])

    def end(self) -> int:
        """End the process and return its status."""
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.close()
        try:
            status = self.process.wait(timeout=0.0 if self.silent() else 10.0)
        except subprocess.TimeoutExpired:
            self.process.kill()
            status = self.process.wait()
        self.process.stdout.close()
        return status


def schedule(targets: Mapping[str, Target], first: int = 0) -> Iterator[tuple[str, int]]:
    """Cases without end: each target as often as its weight says, always in the same order.

    Parameters
    ----------
    targets : dict of str to Target
    first : int
        Number of the first case of each target.
    """
    names = [name for name, target in targets.items() for _ in range(target.weight)]
    random.Random(0).shuffle(names)
    done: Counter[str] = Counter()
    while True:
        for name in names:
            yield name, first + done[name]
            done[name] += 1


def search(
    targets: Mapping[str, Target],
    *,
    seed: int,
    seconds: float | None = None,
    cases: int | None = None,
    jobs: int = 1,
    limit: float = 60.0,
    deep: bool = False,
    first: int = 0,
    most: int = 50,
) -> Report:
    """Run cases for some time or up to a number of them.

    Parameters
    ----------
    targets : dict of str to Target
    seed : int
    seconds : float, optional
    cases : int, optional
    jobs : int, default=1
        Number of children.
    limit : float, default=60
        Seconds that a case may take.
    deep : bool, default=False
        Whether children load PyTorch.
    first : int, default=0
        See :func:`schedule`.
    most : int, default=50
        The search ends after so many different failures.
    """
    report = Report()
    waiting = schedule(targets, first)
    end = None if seconds is None else time.monotonic() + seconds
    workers = [Worker(seed, limit, deep) for _ in range(jobs)]
    asked = 0

    def more() -> bool:
        enough = (cases is not None and asked >= cases) or len(report.distinct()) >= most
        return not enough and (end is None or time.monotonic() < end)

    try:
        while True:
            for number, worker in enumerate(workers):
                if worker.job is None and more():
                    try:
                        worker.ask(next(waiting))
                    except BrokenPipeError:  # died while it was idle
                        workers[number] = Worker(seed, limit, deep)
                        continue
                    asked += 1
            busy = [worker for worker in workers if worker.job is not None]
            if not busy:
                return report
            ready = select.select([worker.process.stdout for worker in busy], [], [], 1.0)[0]
            for number, worker in enumerate(workers):
                if worker not in busy:
                    continue
                answered = worker.process.stdout in ready or worker.silent()
                if answered and not _collect(worker, report, seed):
                    worker.stderr.close()
                    workers[number] = Worker(seed, limit, deep)
    finally:
        for worker in workers:
            worker.end()
            worker.stderr.close()


def _collect(worker: Worker, report: Report, seed: int) -> bool:
    """Take the answer of a child; False if the child is lost."""
    assert worker.job is not None and worker.process.stdout is not None
    target, number = worker.job
    case = f"{seed}:{target}:{number}"
    report.cases[target] += 1
    line = b"" if worker.silent() else worker.process.stdout.readline()
    if line.endswith(b"\n"):
        worker.job = None
        result: dict[str, Any] = json.loads(line)
        report.outcomes[target].update(result["outcomes"])
        if "kind" in result:
            report.outcomes[target][result["kind"]] += 1
            report.findings.append(Finding(case, result["kind"], result["text"], worker.log()))
        return True
    status = worker.end()
    log = worker.log()
    hung = "Timeout (" in log or status == -signal.SIGKILL
    kind = "hang" if hung else "crash"
    text = f"{signal.Signals(-status).name if status < 0 else f'exit status {status}'}"
    report.outcomes[target][kind] += 1
    report.findings.append(Finding(case, kind, text, log))
    return False
