"""The child process, which runs cases, and the parent, which notices its death or silence."""

from __future__ import annotations

import faulthandler
import json
import os
import random
import re
import resource
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback
import warnings
import zlib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import chdir
from itertools import chain, cycle, islice
from typing import Any, NamedTuple

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import seed as seeded
from hypothesis import strategies as st
from hypothesis.errors import UnsatisfiedAssumption

from tests.fuzz.judge import Failure, Trial

#: The address space of a child, so that a huge allocation is a MemoryError.
MEMORY = 4 << 30
#: Examples of a case, cases of a child, and different failures that end a search.
EXAMPLES, CHUNK, MOST = 10, 100, 50
#: The folders of examples are kept until the process ends: a worker process of joblib that is
#: still starting needs the folder in which it was started.
FOLDERS = tempfile.TemporaryDirectory()
CHILD = "from tests.fuzz.run import work; work()"
#: A function that is given a Trial, by the name of what it calls.
Targets = Mapping[str, Callable[[Trial], None]]


@st.composite
def _drawing(draw: Any) -> Any:
    """What draws: unlike `st.data()` it does not print what is drawn, of which some cannot be."""
    return draw


def run_case(
    target: Callable[[Trial], None],
    case: tuple[int, str, int],
    log: Callable[[str], None],
    begin: Callable[[], None] = lambda: None,
    shrink: bool = False,
    examples: int = EXAMPLES,
) -> dict[str, Any]:
    """Run the examples of a case; return the outcomes and the failures, each with its log.

    Each runs in a folder of its own, because a random string may be the name of a file to write.
    With `shrink` the first failure ends the case, and is made as simple as possible.
    """
    outcomes: Counter[str] = Counter()
    failures: list[dict[str, str]] = []

    @seeded(zlib.crc32(repr(case).encode()))
    @settings(
        **dict(max_examples=examples, database=None, deadline=None, derandomize=False),
        phases=[Phase.generate, *[Phase.shrink] * shrink],
        **dict(suppress_health_check=list(HealthCheck), print_blob=False),
    )
    @given(_drawing())
    def one(draw: Any) -> None:
        lines: list[str] = []
        begin()
        trial = Trial(draw, lambda line: (lines.append(line), log(line)))  # type: ignore[arg-type]
        try:
            with chdir(tempfile.mkdtemp(dir=FOLDERS.name)):
                target(trial)
        except UnsatisfiedAssumption:
            raise
        except Exception as error:
            kind = error.kind if isinstance(error, Failure) else "error of the fuzzer"
            text = error.text if isinstance(error, Failure) else traceback.format_exc()
            failures.append({"kind": kind, "text": text, "log": "\n".join(lines)})
            outcomes[kind] += 1
            if shrink:
                raise
        finally:
            outcomes.update(trial.outcomes)

    try:
        one()
    except Exception:
        if not (shrink and failures):
            raise
    return {"outcomes": outcomes, "failures": failures[-1:] if shrink else failures}


def work(targets: Targets | None = None) -> None:
    """Run the cases that the command line names, and report each on a line of JSON."""
    order = json.loads(sys.argv[1])
    report = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # estimators print if they are verbose
    faulthandler.enable()
    warnings.simplefilter("ignore")
    Trial.strict = order["strict"]
    if targets is None:
        from tests.fuzz.targets import all_targets  # a test has targets of its own

        targets = all_targets(order["deep"])
    if not order["deep"] and "ASAN_OPTIONS" not in os.environ:  # a sanitizer reserves terabytes
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, resource.getrlimit(resource.RLIMIT_AS)[1]))

    def log(text: str) -> None:
        os.write(2, f"{text}\n".encode(errors="replace"))  # there after a crash

    def begin() -> None:
        os.lseek(2, 0, os.SEEK_SET)
        os.ftruncate(2, 0)  # what is written now is of this example
        faulthandler.dump_traceback_later(order["limit"], exit=True)

    for name, number in order["cases"]:
        if time.time() > order["end"]:
            break
        case = (order["seed"], name, number)
        result = run_case(targets[name], case, log, begin, order["shrink"], order["examples"])
        faulthandler.cancel_dump_traceback_later()
        print(json.dumps(result), file=report)


class Finding(NamedTuple):
    """A failure: of which case, which kind, and what was called."""

    case: str
    kind: str
    text: str
    log: str

    def __str__(self) -> str:
        lines = [f"{self.kind} in case {self.case}", *f"{self.text}\n{self.log}".splitlines()[-60:]]
        return "\n    ".join(lines)

    @property
    def signature(self) -> tuple[str, ...]:
        """Findings of the same signature probably have the same cause."""
        places = re.findall(r'File "[^"]+", line \d+', f"{self.log}\n{self.text}")
        return self.kind, *(places[-1:] or [self.case.split(":")[1]])


class Report:
    """What came of a search: outcomes of calls by target, and the failures."""

    def __init__(self) -> None:
        self.outcomes: dict[str, Counter[str]] = defaultdict(Counter)
        self.findings: list[Finding] = []

    def add(self, case: str, outcomes: Mapping[str, int], failures: list[dict[str, str]]) -> None:
        self.outcomes[case.split(":")[1]].update({"cases": 1, **outcomes})
        for failure in failures:
            print(Finding(case, **failure), file=sys.stderr, flush=True)  # at once
            self.findings.append(Finding(case, **failure))

    def distinct(self) -> dict[tuple[str, ...], list[Finding]]:
        """The findings by their signature."""
        found: dict[tuple[str, ...], list[Finding]] = defaultdict(list)
        for finding in self.findings:
            found[finding.signature].append(finding)
        return found

    def table(self) -> str:
        """Calls by target and outcome, as text."""
        total: Counter[str] = sum(self.outcomes.values(), Counter())
        rows = [*sorted(self.outcomes.items()), ("all", total)]
        return "\n".join(
            f"{name} " + ", ".join(f"{kind}: {n}" for kind, n in counts.items())
            for name, counts in rows
        )


def schedule(targets: Targets, often: Mapping[str, int]) -> Iterator[tuple[str, int]]:
    """Cases without end, always in the same order: at first each target once."""
    more = [name for name in targets for _ in range(often.get(name, 1))]
    random.Random(0).shuffle(more)
    done: Counter[str] = Counter()
    for name in chain(targets, cycle(more)):
        yield name, done[name]
        done[name] += 1


def search(
    cases: Iterator[tuple[str, int]],
    *,
    seed: int,
    seconds: float = 1e9,
    jobs: int = 1,
    limit: float = 60.0,
    deep: bool = False,
    shrink: bool = False,
    examples: int = EXAMPLES,
    strict: bool = False,
) -> Report:
    """Run cases for some time, or all of them, or up to MOST different failures.

    An example may take `limit` seconds.  `deep` is for children that need PyTorch's memory, and
    `strict` for strict trials.
    """
    report, turn = Report(), threading.Lock()
    order = dict(seed=seed, limit=limit, deep=deep, shrink=shrink, examples=examples)
    order |= {"end": time.time() + seconds, "strict": strict}

    def follow() -> None:
        asked: list[tuple[str, int]] = []
        while True:
            with turn:
                asked += islice(cases, CHUNK - len(asked))
                if not asked or time.time() > order["end"] or len(report.distinct()) >= MOST:
                    return
            answers, status, log = _child(order | {"cases": asked})
            with turn:
                for answer in answers:
                    name, number = asked.pop(0)
                    report.add(f"{seed}:{name}:{number}", **answer)
                if status:
                    name, number = asked.pop(0)
                    lost = "hang" if "Timeout (" in log or status == -signal.SIGKILL else "crash"
                    text = signal.Signals(-status).name if status < 0 else f"exit status {status}"
                    failure = {"kind": lost, "text": text, "log": log}
                    report.add(f"{seed}:{name}:{number}", {lost: 1}, [failure])

    with ThreadPoolExecutor(jobs) as pool:
        for done in [pool.submit(follow) for _ in range(jobs)]:
            done.result()
    return report


def _child(order: dict[str, Any]) -> tuple[list[dict[str, Any]], int, str]:
    """Run a child; return the answers to its cases, its status and what it has written last."""
    with tempfile.TemporaryFile() as errors:
        command = [sys.executable, "-c", CHILD, json.dumps(order)]
        pipes = dict(stdout=subprocess.PIPE, stderr=errors, text=True)
        child = subprocess.Popen(command, env=os.environ | {"PYTHONHASHSEED": "0"}, **pipes)
        try:  # longer than the child's own alarm allows
            output, _ = child.communicate(timeout=CHUNK * order["examples"] * order["limit"] + 60)
        except subprocess.TimeoutExpired:
            child.kill()
            output, _ = child.communicate()
        errors.seek(0)
        log = errors.read().decode(errors="replace").strip("\0")
    return [json.loads(line) for line in output.splitlines()], child.returncode, log
