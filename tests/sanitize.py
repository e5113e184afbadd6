"""Run the tests of compiled code and the fuzzer under sanitizers; `make sanitize`.

    .venv-sanitize/bin/python tests/sanitize.py

The kernels of that environment are built with AddressSanitizer and UndefinedBehaviorSanitizer
(``ANNEALVI_SANITIZE=1``).  Every step runs with each instruction set of this machine.  A report of
a sanitizer ends the process that made it; it is printed here, and the command fails.

LeakSanitizer looks at the end of each process.  Python and its libraries keep memory until then,
so a leak counts only if code of annealvi asked for the memory itself.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

CHECKOUT = Path(__file__).resolve().parents[1]
#: Compiled code of ours, in the stack of a report.
OURS = "annealvi/_kernels"
#: -o pythonpath=: without the checkout on Python's path, whose kernels have no sanitizers.
PYTEST = ["-m", "pytest", "-q", "-o", "pythonpath=", "-p", "no:cacheprovider"]
PYTEST += ["--rootdir", str(CHECKOUT), "-c", str(CHECKOUT / "pyproject.toml")]
PYTEST += ["-m", "not (oracle or statistical or slow or corpus or deep)"]
ADDRESS = {
    "abort_on_error": 1,  # so that the fuzzer sees a crash
    "allow_user_segv_handler": 0,
    "allocator_may_return_null": 1,  # a huge array is a MemoryError, as usual
    "max_allocation_size_mb": 4096,
    "detect_leaks": 1,
    "detect_stack_use_after_return": 0,
}


def steps(cases: int, jobs: int) -> dict[str, list[str]]:
    """The commands that run with each instruction set."""
    tests = {
        "kernels": ["_kernels"],
        "models": ["models", "partition", "proximity"],
        "estimators": ["lda", "mixtures", "metrics", "project/test_estimator_checks.py"],
    }
    found = {
        name: [*PYTEST, "-n", str(jobs), *(str(CHECKOUT / "tests" / path) for path in paths)]
        for name, paths in tests.items()
    }
    fuzz = ["-m", "tests.fuzz", "--cases", str(cases), "--seed", "0", "--jobs", str(jobs)]
    return found | {"fuzz": [*fuzz, "--limit", "300"]}


def answer(*command: str) -> Path:
    """The path that a compiler prints; the program ends if there is nothing."""
    path = Path(subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip())
    if not path.is_absolute():
        sys.exit(f"{' '.join(command)} finds nothing: install the compiler's sanitizers")
    return path


def inherited() -> dict[str, str]:
    """The environment of this process but for the path to the checkout."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}


def link_tests(folder: str) -> None:
    """Put the tests but not annealvi into a folder: the package that was built is imported."""
    for name in ("tests", "bench", "examples", "docs", "README.md"):
        Path(folder, name).symlink_to(CHECKOUT / name)


def python(arguments: list[str], folder: str | Path, environment: dict[str, str]) -> Any:
    """Run Python in a folder; return its status and all that it wrote."""
    pipes: dict[str, Any] = dict(stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    command = [sys.executable, *arguments]
    return subprocess.run(command, cwd=folder, env=environment, check=False, **pipes)


def runtimes() -> str:
    """The libraries to load before Python: of the compiler, and C++'s, which throws."""
    compiler = os.environ.get("CC", "gcc")
    names = ("libasan.so", "libstdc++.so.6")
    return " ".join(str(answer(compiler, f"-print-file-name={name}")) for name in names)


def environment(folder: Path, instruction_set: str) -> dict[str, str]:
    options = ":".join(f"{name}={value}" for name, value in ADDRESS.items())
    log = f"log_path={folder / 'report'}"
    return inherited() | {
        "LD_PRELOAD": runtimes(),
        "PYTHONMALLOC": "malloc",  # each object has a block of its own
        "ASAN_OPTIONS": f"{options}:{log}",
        "UBSAN_OPTIONS": f"print_stacktrace=1:abort_on_error=1:{log}",
        "LSAN_OPTIONS": "exitcode=0:report_objects=0:max_leaks=0",
        "ANNEALVI_INSTRUCTION_SET": instruction_set,
        "OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS", "1"),
    }


def reports(folder: Path) -> Iterator[str]:
    """The reports that count, each as text."""
    for path in sorted(folder.glob("report*")):
        text = path.read_text(errors="replace")
        if "LeakSanitizer" not in text:
            if "ERROR: " in text or "runtime error" in text:  # a refused allocation is a warning
                yield text
            continue
        blocks = re.split(r"\n(?=(?:Direct|Indirect) leak of )", text)
        # frame 0 is malloc, frame 1 has called it
        yield from (
            block
            for block in blocks
            if any(OURS in line for line in block.splitlines() if line.lstrip().startswith("#1 "))
        )


def overrun_is_reported(cwd: Path) -> bool:
    """Whether a kernel that writes behind an array is reported; this one is made to."""
    code = (
        "import numpy as np\n"
        "from annealvi._kernels import lda\n"
        "i = np.array([2, 0], dtype=np.int64)\n"  # a word that there is not
        "out = [np.zeros(n, dtype=np.int64) for n in (2, 2, 3, 2, 2)]\n"
        "lda.index_words(i, np.array([0, 2]), 0, 1, *out)\n"
    )
    with tempfile.TemporaryDirectory() as folder:
        python(["-c", code], cwd, environment(Path(folder), "baseline"))
        return any("heap-buffer-overflow" in text for text in reports(Path(folder)))


def run(name: str, arguments: list[str], instruction_set: str, cwd: Path) -> bool:
    """Run a step; print a line, and what went wrong.  False if something did."""
    with tempfile.TemporaryDirectory() as folder:
        start = time.monotonic()
        done = python(arguments, cwd, environment(Path(folder), instruction_set))
        seconds, found = time.monotonic() - start, list(reports(Path(folder)))
    last, said = done.stdout.strip().rpartition("\n")[2], f"{len(found)} reports"
    print(f"{instruction_set:9s} {name:11s} {seconds:5.0f} s, {said}; {last}", flush=True)
    for report in found[:10]:
        print(report)
    if done.returncode:
        print("\n".join(done.stdout.splitlines()[-100:]))
    return not found and done.returncode == 0


def main() -> int:
    """Run all steps; 1 if one fails or there is a report."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", type=int, default=300, help="cases of the fuzzer")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="processes")
    parser.add_argument("--step", action="append", help="only this one; may be repeated")
    parser.add_argument("--instruction-set", action="append", help="likewise")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        link_tests(folder)
        with tempfile.TemporaryDirectory() as logs:
            code = (
                "from annealvi import _kernels as k; assert k.sanitized_build(), k.__file__; "
                "print(*k.available_instruction_sets())"
            )
            done = python(["-c", code], folder, environment(Path(logs), "baseline"))
        if done.returncode:
            sys.exit(done.stdout)
        if not overrun_is_reported(Path(folder)):
            sys.exit("A planted overrun was not reported: the sanitizers are not at work.")
        good = [
            run(name, arguments, instruction_set, Path(folder))
            for instruction_set in args.instruction_set or done.stdout.splitlines()[-1].split()
            for name, arguments in steps(args.cases, args.jobs).items()
            if name in (args.step or [name])
        ]
    print("0 reports" if all(good) else "not clean: see above")
    return int(not all(good))


if __name__ == "__main__":
    sys.exit(main())
