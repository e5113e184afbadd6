"""Measure the peak memory of one pass of a library, in a separate process.

    python -m bench.speed.memory scikit-learn

The script prints the peak of resident memory in megabytes, minus the memory of imports and data.
The conversion of the documents to the library's format is included.  This works only on Linux.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from bench import CHECKOUT, parser

#: The dtypes of annealvi's rows in the table, by the names of the rows.
OWN = {"annealvi, float64": "float64", "annealvi, float32": "float32"}


def resident(field: str) -> float:
    """Read ``VmRSS`` (present) or ``VmHWM`` (peak) memory of this process, in MB."""
    for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
        if line.startswith(f"{field}:"):
            return int(line.split()[1]) * 1024 / 1e6
    raise RuntimeError(f"/proc/self/status has no {field}.")


def forget_peak() -> None:
    """Reset the peak to the memory that is resident at present."""
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")


def measured(name: str) -> float:
    """Measure the peak memory of a library's pass in a new process, in megabytes."""
    command = [sys.executable, "-m", "bench.speed.memory", name]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(
        command, cwd=CHECKOUT, env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise RuntimeError(f"{name}: {done.stderr.strip().splitlines()[-1:]}")
    return float(done.stdout.split()[-1])


def main() -> None:
    from bench.adapters import RIVALS, SCIKIT_LEARN, annealvi_lda
    from bench.problems import WIDE_PROBLEM

    libraries = {library.name: library for library in (SCIKIT_LEARN, *RIVALS)}
    options = parser(__doc__)
    options.add_argument("name", choices=[*OWN, *libraries])
    name = options.parse_args().name
    X = WIDE_PROBLEM.load()
    if name in OWN:
        adapter = annealvi_lda
        options = {"dtype": OWN[name]}
    else:
        try:
            adapter = libraries[name].adapter()
            options = {}
        except ImportError as error:
            raise SystemExit(str(error)) from None
    forget_peak()
    before = resident("VmRSS")
    adapter.start(WIDE_PROBLEM, X, **options)()
    print(resident("VmHWM") - before)


if __name__ == "__main__":
    main()
