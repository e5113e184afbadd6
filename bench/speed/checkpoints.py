"""What a checkpoint costs: seconds to write one, and their share of a fit at one a minute.

    python -m bench.speed.checkpoints

A step of a fit to a random corpus is made for each size, and a checkpoint is written after it
several times.  The median is printed.  It holds the topics, in float64, of which there are two
once `n_init` or `validation_fraction` is given.  The first checkpoint of a fit also reads X, for
the fingerprint.  `load` and `resume` read the file and check it.
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


def seconds_of(act: Callable[[], Any]) -> float:
    """The median time of a function."""
    times = []
    for _ in range(TIMES):
        before = time.perf_counter()
        act()
        times.append(time.perf_counter() - before)
    return median(times)


def measure(n_topics: int, n_words: int) -> str:
    """A row of the table."""
    X = sparse.random(DOCUMENTS, n_words, 60 / n_words, "csr", random_state=0)
    X.data = np.ceil(3 * X.data)
    found: list[float] = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "a")

        def write_and_stop(estimator: Any, monitor: Any) -> None:
            before = time.perf_counter()
            estimator.save_state(path)
            found.append(time.perf_counter() - before)
            found.append(seconds_of(lambda: estimator.save_state(path)))
            raise StopIteration

        lda = TemperedLDA(
            *(n_topics,), max_iter=1, init="random", temperature=2, callback=write_and_stop
        ).fit(X)
        size = path.stat().st_size
        annealvi.save(lda, path)
        reading = seconds_of(lambda: annealvi.load(path))
    first, write = found
    return (
        f"| {n_topics} | {n_words:,} | {size / 1e6:.1f} | {first:.3f} | {write:.3f} | "
        f"{write / 60:.2%} | {reading:.3f} |"
    )


def main() -> int:
    parser(__doc__).parse_args()
    print("| K | V | MB | first write, s | write, s | share at one a minute | `load`, s |")
    print("|---|---|---|---|---|---|---|")
    for size in SIZES:
        print(measure(*size), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
