"""What a checkpoint costs: time to write one, and its share of a fit at one a minute.

    python -m bench.speed.checkpoints

A step of a fit to a random corpus is made for each size, and a checkpoint is written after it
several times.  The medians of the time and of the processor's time are printed; they differ where
the disk is slow or the machine does other work.  A checkpoint holds the topics, in float64, and
twice if `n_init` or `validation_fraction` is given.  The first one of a fit also reads X, for the
fingerprint.  `load` reads and checks a file, and so does `resume`.
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

#: Topics and words.
SIZES = ((20, 5_000), (100, 20_000), (100, 100_000), (200, 300_000))
DOCUMENTS = 2_000
TIMES = 5


def seconds_of(act: Callable[[], Any], times: int = TIMES) -> tuple[float, float]:
    """The median times of a function: wall clock and processor."""
    wall, processor = [], []
    for _ in range(times):
        before = time.perf_counter(), time.process_time()
        act()
        wall.append(time.perf_counter() - before[0])
        processor.append(time.process_time() - before[1])
    return median(wall), median(processor)


def measure(n_topics: int, n_words: int) -> str:
    """A row of the table."""
    X = sparse.random(DOCUMENTS, n_words, 60 / n_words, "csr", random_state=0)
    X.data = np.ceil(3 * X.data)
    found: list[tuple[float, float]] = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "a")

        def write_and_stop(estimator: Any, monitor: Any) -> None:
            found.append(seconds_of(lambda: estimator.save_state(path), 1))
            found.append(seconds_of(lambda: estimator.save_state(path)))
            raise StopIteration

        lda = TemperedLDA(
            *(n_topics,), max_iter=1, init="random", temperature=2, callback=write_and_stop,
            dtype="float64",
        ).fit(X)  # fmt: skip
        size = path.stat().st_size
        annealvi.save(lda, path)
        reading = seconds_of(lambda: annealvi.load(path))
    first, write = found
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
