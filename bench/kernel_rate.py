"""Arithmetic rate of the local step alone: GFLOP/s of one thread.

    python bench/kernel_rate.py

Twenty iterations a document, tolerance 0; one word and topic cost 4 flops an iteration,
the special functions are not counted.  Best of 25.
"""

from __future__ import annotations

import time

import numpy as np

from annealvi.datasets import load_corpus
from annealvi.models.lda import LDA, LocalOptions

N_DOCUMENTS, N_ITERATIONS = 2225, 20


def main() -> None:
    print("| corpus | K | float64 | float32 |\n|---|---|---|---|")
    for corpus in ("bbc_news", "debian_desc"):
        X = load_corpus(corpus).data[:N_DOCUMENTS]
        for n_topics in (20, 100, 500):
            rates = []
            for dtype in (np.float64, np.float32):
                counts = X.astype(dtype)
                model = LDA(
                    n_topics,
                    X.shape[1],
                    alpha=1 / n_topics,
                    eta=1 / n_topics,
                    dtype=dtype,
                    options=LocalOptions(N_ITERATIONS, 0.0, "constant"),
                )
                model.initialize(np.random.RandomState(0))
                seconds = []
                for _ in range(25):
                    start = time.perf_counter()
                    model.infer(counts)
                    seconds.append(time.perf_counter() - start)
                rates.append(4 * X.nnz * n_topics * N_ITERATIONS / min(seconds) / 1e9)
            print(f"| {corpus} | {n_topics} | {rates[0]:.0f} | {rates[1]:.0f} |", flush=True)


if __name__ == "__main__":
    main()
