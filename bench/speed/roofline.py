"""Arithmetic rate of the local step beside what this machine can do at most.

    python -m bench.speed.roofline

The machine's limits are measured by roofline.c, which is compiled for it when it is wanted:
fused multiply-adds a second, and bytes a second read from the first and the second cache.
The kernel's rate is of twenty iterations a document at tolerance 0, one thread; one word
and topic cost 4 flops an iteration, the special functions are not counted; best of many.
alpha is .1, so that no topic is too small to count.  Each weight of a word and topic has to
be read from the second cache once an iteration where a document's do not fit into the
first: 4 flops for each of its bytes' worth of bandwidth, the bound in the last columns.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np

from annealvi.datasets import load_corpus
from annealvi.models.lda import LDA, LocalOptions

SOURCE = Path(__file__).with_name("roofline.c")
#: Of a cache's size: half, so that the rest of the machine leaves it alone.
SHARE = 0.5
N_DOCUMENTS, N_ITERATIONS, N_REPEATS = 2225, 20, 15
FLOPS = 4  # one fma to sum a word's topics, one to add to gamma
SIZES = {"L1": 32 << 10, "L2": 512 << 10}  # where the system does not tell


class Limits(NamedTuple):
    """What one core of this machine can do: GFLOP/s and GB/s."""

    vector_bytes: float
    peak_float64: float
    peak_float32: float
    l1: float
    l2: float

    def bound(self, dtype: str) -> float:
        """GFLOP/s at which the second cache delivers a weight for every 4 flops."""
        peak = self.peak_float64 if dtype == "float64" else self.peak_float32
        return min(peak, FLOPS * self.l2 / np.dtype(dtype).itemsize)


def cache_bytes(name: str) -> int:
    """Size of a data cache."""
    for entry in Path("/sys/devices/system/cpu/cpu0/cache").glob("index*"):
        level, kind, size = (
            (entry / field).read_text().strip() for field in ("level", "type", "size")
        )
        if f"L{level}" == name and kind != "Instruction":
            return int(size.rstrip("K")) << 10
    return SIZES[name]


def measure_machine() -> Limits:
    """Compile and run roofline.c.

    Raises
    ------
    FileNotFoundError
        If there is no C compiler.
    """
    compiler = os.environ.get("CC") or shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        raise FileNotFoundError("the roofline needs a C compiler, and there is none")
    with tempfile.TemporaryDirectory() as folder:
        program = str(Path(folder, "roofline"))
        flags = ["-O3", "-march=native", "-std=gnu11", "-o", program, str(SOURCE)]
        subprocess.run([*compiler.split(), *flags], check=True)
        sizes = [str(int(SHARE * cache_bytes(name))) for name in ("L1", "L2")]
        printed = subprocess.run([program, *sizes], check=True, capture_output=True, text=True)
    return Limits(*map(float, printed.stdout.split()))


def kernel_rate(corpus: str, n_topics: int, dtype: str) -> float:
    """GFLOP/s of the local step."""
    X = load_corpus(corpus).data[:N_DOCUMENTS].astype(dtype)
    model = LDA(
        n_topics,
        X.shape[1],
        alpha=0.1,
        eta=1 / n_topics,
        dtype=dtype,
        options=LocalOptions(N_ITERATIONS, 0.0, "constant", prune=False),
    )
    model.initialize(np.random.RandomState(0))
    seconds = []
    for _ in range(N_REPEATS):
        start = time.perf_counter()
        model.infer(X)
        seconds.append(time.perf_counter() - start)
    return FLOPS * X.nnz * n_topics * N_ITERATIONS / min(seconds) / 1e9


def main() -> None:
    limits = measure_machine()
    print(", ".join(f"{name} {value:.0f}" for name, value in limits._asdict().items()))
    print("| corpus | K | float64 | float32 |\n|---|---|---|---|")
    for corpus in ("bbc_news", "debian_desc"):
        for n_topics in (20, 100, 500):
            rates = [kernel_rate(corpus, n_topics, dtype) for dtype in ("float64", "float32")]
            print(f"| {corpus} | {n_topics} | {rates[0]:.0f} | {rates[1]:.0f} |", flush=True)


if __name__ == "__main__":
    main()
