"""Run the tests of kernels and of threads under ThreadSanitizer; `make sanitize-threads`.

    .venv-threads/bin/python tests/sanitize_threads.py

The kernels of that environment are built by clang with ``ANNEALVI_SANITIZE=thread``, and run on
LLVM's OpenMP.  ThreadSanitizer knows locks, but not the barriers of OpenMP: its library archer
reports them.  So a loop without a race gives no report, and one with a race does; both are tried
first.  Python and its libraries are not instrumented, and what only they do is not looked at.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path

from sanitize import CHECKOUT, PYTEST, answer, inherited, link_tests, python

TESTS = (
    *("_kernels", "models", "test_threads.py", "lda/test_fitted.py"),
    *("lda/test_runs.py", "mixtures/test_threads.py", "inference/test_runs.py"),
)
#: What is not to be run: it compiles the kernels for other processors.
LEFT_OUT = "not portable"
#: A loop over shared memory: each thread its own part, or all of them one number.
LOOPS = """
double total;
void race(double *x, int n) {
    #pragma omp parallel for num_threads(2)
    for (int i = 0; i < n; i++) total += x[i];
}
void sound(double *x, int n) {
    #pragma omp parallel for num_threads(2) schedule(static)
    for (int i = 0; i < n; i++) x[i] += 1;
    #pragma omp parallel for num_threads(2) schedule(static, 3)
    for (int i = 0; i < n; i++) x[n - 1 - i] += 1;
}
"""
CALL = """
import ctypes, sys
import numpy as np
x = np.ones(100_000)
getattr(ctypes.CDLL(sys.argv[1]), sys.argv[2])(ctypes.c_void_p(x.ctypes.data), len(x))
"""


def archer() -> Path:
    """The path of archer, which lies beside LLVM's OpenMP."""
    path = answer("clang", "-print-resource-dir").parents[1] / "libarcher.so"
    if not path.exists():
        sys.exit(f"{path} is missing: install LLVM's OpenMP (libomp-dev)")
    return path


def environment(log: Path) -> dict[str, str]:
    """The environment of a process that is watched."""
    options = {
        "exitcode": 66,
        "history_size": 7,
        "ignore_noninstrumented_modules": 1,  # as archer asks for
        "log_path": log,
    }
    return inherited() | {
        # GCC's has the same interface as clang's, which ends at once if it is loaded so
        "LD_PRELOAD": str(answer("gcc", "-print-file-name=libtsan.so")),
        "OMP_TOOL_LIBRARIES": str(archer()),
        "OMP_NUM_THREADS": "2",
        "TSAN_OPTIONS": ":".join(f"{name}={value}" for name, value in options.items()),
    }


def watch(arguments: list[str], folder: str) -> tuple[int, str, list[str]]:
    """Run Python; return its status, its output and the reports."""
    with tempfile.TemporaryDirectory() as logs:
        done = python(arguments, folder, environment(Path(logs, "report")))
        texts = [path.read_text(errors="replace") for path in sorted(Path(logs).iterdir())]
    return done.returncode, done.stdout, [text for text in texts if "WARNING: Thread" in text]


def is_at_work(folder: str) -> bool:
    """Whether a race is reported, and a loop without one is not."""
    source, compiled = Path(folder, "loops.c"), Path(folder, "loops.so")
    source.write_text(LOOPS)
    flags = ["-fsanitize=thread", "-g", "-fopenmp", "-shared", "-fPIC", str(source)]
    subprocess.run(["clang", *flags, "-o", str(compiled)], check=True)
    reports = {
        name: watch(["-c", CALL, str(compiled), name], folder)[2] for name in ("race", "sound")
    }
    return bool(reports["race"]) and not reports["sound"]


def main() -> int:
    """Run the tests; 1 if one fails or there is a report."""
    with tempfile.TemporaryDirectory() as folder:
        link_tests(folder)
        code = "from annealvi import _kernels as k; assert k.sanitized_build(), k.__file__"
        status, output, _ = watch(["-c", code], folder)
        if status:
            sys.exit(output)
        if not is_at_work(folder):
            sys.exit("A planted race was not reported, or a loop without one was.")
        start = time.monotonic()
        paths = [str(CHECKOUT / "tests" / path) for path in TESTS]
        status, output, reports = watch([*PYTEST, "-k", LEFT_OUT, *paths], folder)
        seconds = time.monotonic() - start
    for report in reports:
        print(report)
    if status or reports:
        print("\n".join(output.splitlines()[-100:]))
    last = output.strip().rpartition("\n")[2]
    print(f"{seconds:.0f} s, {len(reports)} processes with reports; {last}")
    return int(bool(status or reports))


if __name__ == "__main__":
    sys.exit(main())
