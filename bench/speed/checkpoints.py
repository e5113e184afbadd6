"""Measure the time to write a checkpoint, and its share of a fit with one checkpoint a minute.

    python -m bench.speed.checkpoints

For each size, one step of a fit to a random corpus is made, and then a checkpoint is written
several times.  The script prints the medians of the elapsed time and of the CPU time.  They differ
if the disk is slow or if the machine does other work.  A checkpoint contains the topics in float64,
and contains them twice with `n_init` or `validation_fraction`.  The first checkpoint of a fit also
reads X, to compute its checksum.  `load` reads and checks a file, as `resume` does.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from scipy import sparse

import annealvi
from annealvi import TemperedLDA
from bench import parser

#: Numbers of topics and of words.
SIZES = ((20, 5_000), (100, 20_000), (100, 100_000), (200, 300_000))
DOCUMENTS = 2_000
TIMES = 5


def seconds_of(act: Callable[[], Any], times: int = TIMES) -> tuple[float, float]:
    """The median elapsed time and the median CPU time of a function."""
    wall = []
    processor = []
    for _ in range(times):
        wall_before = time.perf_counter()
        processor_before = time.process_time()
        act()
        wall.append(time.perf_counter() - wall_before)
        processor.append(time.process_time() - processor_before)
    return median(wall), median(processor)


def measure(n_topics: int, n_words: int) -> str:
    """Measure and format a row of the table."""
    X = sparse.random(DOCUMENTS, n_words, 60 / n_words, "csr", random_state=0)
    X.data = np.ceil(3 * X.data)
    seconds_and_errors: list[tuple[float, float]] = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "a")

        def write_and_stop(estimator: Any, monitor: Any) -> None:
            seconds_and_errors.append(seconds_of(lambda: estimator.save_state(path), 1))
            seconds_and_errors.append(seconds_of(lambda: estimator.save_state(path)))
            raise StopIteration

        lda = TemperedLDA(
            n_topics,
            max_iter=1,
            init="random",
            temperature=2,
            callback=write_and_stop,
            dtype="float64",
        ).fit(X)
        size = path.stat().st_size
        annealvi.save(lda, path)
        reading = seconds_of(lambda: annealvi.load(path))
    first, write = seconds_and_errors
    return (
        f"| {n_topics} | {n_words:,} | {size / 1e6:.1f} | {first[0]:.3f} ({first[1]:.3f}) | "
        f"{write[0]:.3f} ({write[1]:.3f}) | {write[0] / 60:.2%} ({write[1] / 60:.2%}) | "
        f"{reading[0]:.3f} ({reading[1]:.3f}) |"
    )


def main() -> int:
    parser(__doc__).parse_args()
    print("Seconds, in brackets the processor's.\n")
    print("| K | V | MB | first write | write | share at one a minute | `load` |")
    print("|---|---|---|---|---|---|---|")
    for size in SIZES:
        print(measure(*size), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
