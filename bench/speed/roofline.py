"""Compare the arithmetic rate of the local step with the limits of this machine.

    python -m bench.speed.roofline

roofline.c, which is compiled here, measures the limits of the machine: fused multiply-adds per
second, and bytes per second read from the level 1 and the level 2 cache.

The rate of the kernel is the best of many runs with twenty iterations per document, tolerance 0 and
one thread.  Each word and topic counts as 4 flops per iteration, and special functions are not
counted.  alpha is 0.1, so that no topic is dropped because it is too small.

The bound in the tables of docs/record/benchmarks.md is as follows.  If a document's weights do not
fit into the level 1 cache, each iteration reads each weight from the level 2 cache.  So the rate is
at most 4 flops per weight that the level 2 cache can deliver.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from annealvi.datasets import load_corpus
from annealvi.model import UNTEMPERED
from annealvi.models.lda import LDA, CPUEngine, LocalOptions
from annealvi.models.lda.engine import EStep
from bench import parser

SOURCE = Path(__file__).with_name("roofline.c")
#: The share of a cache that the buffers fill.  With half a cache, other data do not evict them.
SHARE = 0.5
N_DOCUMENTS = 2225
N_ITERATIONS = 20
N_REPEATS = 15
FLOPS = 4  # a fused multiply-add to sum a word's topics, and another one to add to gamma
#: Sizes of the caches in bytes, if the system does not report them.
SIZES = {"L1": 32 << 10, "L2": 512 << 10}


class Limits(NamedTuple):
    """The limits of one core of this machine, in GFLOP/s and GB/s."""

    vector_bytes: float
    peak_float64: float
    peak_float32: float
    l1: float
    l2: float

    def bound(self, dtype: str) -> float:
        """The largest GFLOP/s with 4 flops per weight read from the level 2 cache."""
        peak = self.peak_float64 if dtype == "float64" else self.peak_float32
        return min(peak, FLOPS * self.l2 / np.dtype(dtype).itemsize)


def cache_bytes(name: str) -> int:
    """The size of a data cache in bytes."""
    for entry in Path("/sys/devices/system/cpu/cpu0/cache").glob("index*"):
        level, kind, size = (
            (entry / field).read_text().strip() for field in ("level", "type", "size")
        )
        if f"L{level}" == name and kind != "Instruction":
            return int(size.rstrip("K")) << 10
    return SIZES[name]


def measure_machine() -> Limits:
    """Compile and run roofline.c."""
    compiler = os.environ.get("CC") or shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        raise FileNotFoundError("bench.speed.roofline needs a C compiler, and none was found.")
    with tempfile.TemporaryDirectory() as folder:
        program = str(Path(folder, "roofline"))
        flags = ["-O3", "-march=native", "-std=gnu11", "-o", program, str(SOURCE)]
        subprocess.run([*compiler.split(), *flags], check=True)
        sizes = [str(int(SHARE * cache_bytes(name))) for name in ("L1", "L2")]
        printed = subprocess.run([program, *sizes], check=True, capture_output=True, text=True)
    return Limits(*map(float, printed.stdout.split()))


def kernel_rate(corpus: str, n_topics: int, dtype: str) -> float:
    """Measure the GFLOP/s of the local step on one thread."""
    X = load_corpus(corpus).data[:N_DOCUMENTS].astype(dtype)
    model = LDA(
        n_topics,
        X.shape[1],
        alpha=0.1,
        eta=1 / n_topics,
        dtype=dtype,
        options=LocalOptions(max_iter=N_ITERATIONS, tolerance=0.0),
    )
    model.initialize(np.random.RandomState(0))
    engine = CPUEngine()
    # no topic is skipped
    step = replace(EStep.of(model, UNTEMPERED, X.shape[0]), least_share=0.0)
    seconds = []
    for _ in range(N_REPEATS):
        gamma = np.ones((X.shape[0], n_topics), model.dtype)
        start = time.perf_counter()
        engine.fit(model, step, X, gamma)
        seconds.append(time.perf_counter() - start)
    return FLOPS * X.nnz * n_topics * N_ITERATIONS / min(seconds) / 1e9


def main() -> None:
    parser(__doc__).parse_args()
    limits = measure_machine()
    print(", ".join(f"{name} {value:.0f}" for name, value in limits._asdict().items()))
    print("| corpus | K | float64 | float32 |\n|---|---|---|---|")
    for corpus in ("bbc_news", "debian_desc"):
        for n_topics in (20, 100, 500):
            rates = [kernel_rate(corpus, n_topics, dtype) for dtype in ("float64", "float32")]
            print(f"| {corpus} | {n_topics} | {rates[0]:.0f} | {rates[1]:.0f} |", flush=True)


if __name__ == "__main__":
    main()
