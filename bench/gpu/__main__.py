"""LDA's kernels on a device against those of the package on this machine's processor.

    python -m bench.gpu [--topics 100 500 2000] [--documents 100000] [--output gpu.json]

The corpus is planted, like abstracts: 8,000 words, 60 entries a document.  For each number of
topics it says how far shares and topics are from the processor's after 20 iterations, and whether a
second run has the same bits.  Then come the times of the first and the second pass over all
documents: on the device for the local step, the statistics and the step of the topics, and on all
cores and on one for the whole pass.  It takes two minutes on an H200.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from annealvi._kernels import special
from annealvi.model import Batch, Tempering
from annealvi.models.lda.model import LDA
from annealvi.models.lda.workspace import Call, Local, LocalOptions
from bench import parser
from bench.gpu.kernels import Device, padded
from bench.markdown import table

ITERATIONS, TOLERANCE, PASSES = 100, 1e-3, 3


def corpus(n_samples: int, n_features: int = 8000, K: int = 100) -> sparse.csr_matrix:
    """Documents of planted topics, with frequencies of words and lengths as abstracts have them."""
    rng = np.random.default_rng(0)
    topics = rng.permutation(1 / (10.0 + np.arange(n_features))) * rng.gamma(
        0.08, size=(K, n_features)
    )
    ends = np.cumsum(topics / topics.sum(axis=1, keepdims=True), axis=1)
    lengths = np.maximum(2, rng.lognormal(np.log(73) - 0.18, 0.6, n_samples)).astype(int)
    counts = rng.multinomial(lengths, rng.dirichlet(np.full(K, 0.05), n_samples))
    rows, columns = [], []
    for k in range(K):
        rows.append(np.repeat(np.arange(n_samples), counts[:, k]))
        words = np.searchsorted(ends[k], rng.random(len(rows[-1])))
        columns.append(np.minimum(words, n_features - 1))
    where = np.concatenate(rows), np.concatenate(columns)
    X = sparse.coo_matrix((np.ones(len(where[0])), where), (n_samples, n_features)).tocsr()
    return X.astype(np.float32)


def model(K: int, n_features: int, **options: Any) -> LDA:
    own = LocalOptions(**{"max_iter": ITERATIONS, "tolerance": TOLERANCE, **options})
    lda = LDA(K, n_features, alpha=1 / K, eta=1 / K, dtype=np.float32, options=own)
    lda.initialize(np.random.RandomState(1))
    return lda


class OnDevice:
    """Passes over documents on a device."""

    def __init__(self, device: Device, X: sparse.csr_matrix, K: int, lam: NDArray) -> None:
        self.device, self.cp, self.K = device, device.cupy, K
        self.block = device.block(X, 0, X.shape[0])
        self.lam = self.cp.asarray(lam)
        self.alpha = self.cp.full(K, 1 / K, np.float32)
        self.eta = self.cp.full((1, 1), 1 / K, np.float32)
        self.b = self.cp.ones(X.shape[0], np.float32)
        self.gamma = self.cp.empty((X.shape[0], K), np.float32)
        self.t = self.cp.empty((X.shape[0], padded(K)), np.float32)
        self.ratio = self.cp.empty(X.nnz, np.float32)
        self.refresh(self.lam[:, :K].sum(0, dtype=np.float64).get())

    def refresh(self, sums: NDArray) -> None:
        log_sums = self.cp.asarray(special.digamma(sums).astype(np.float32))
        self.weights = self.device.refresh_weights(self.lam, log_sums, 0, 1.0, True, False)

    def one(self, tolerance: float = TOLERANCE, max_iter: int = ITERATIONS) -> list[float]:
        """A pass; the seconds of the local step, the statistics and the step of the topics."""
        times = [self.now()]
        self.gamma.fill(1)
        options = 0.0, 0.0, 1.0, tolerance, True, max_iter
        of_documents = self.gamma, self.t, self.ratio, None, None, False
        given = self.block, *self.weights, self.b, self.alpha, options
        self.device.fit_documents(*given, *of_documents)
        times.append(self.now())
        sums = self.cp.zeros_like(self.lam)
        self.device.accumulate_statistics(
            *(self.block, self.ratio, self.t, self.b, 1.0, self.weights, True),
            *(sums, None, self.K, False),
        )
        times.append(self.now())
        self.refresh(self.device.step_topics(self.lam, self.K, self.eta, sums, 0.0, 1.0, 0.0))
        times.append(self.now())
        return np.diff(times).tolist()

    def now(self) -> float:
        self.cp.cuda.Device().synchronize()
        return time.perf_counter()


def agreement(device: Device, X: sparse.csr_matrix, K: int, n_threads: int) -> dict[str, Any]:
    """Differences after 20 iterations, and whether the device repeats itself to the last bit."""
    lda = model(K, X.shape[1], max_iter=20, tolerance=0.0, prune=False)
    lda.topics.n_threads = n_threads
    ours = [OnDevice(device, X, K, lda.topics.lam.copy()) for _ in range(2)]
    for one in ours:
        one.one(0.0, 20)
    weights, work, statistics = lda.buffers.ready(*lda.topics.shape, n_threads)
    gamma = np.ones((X.shape[0], K), np.float32)
    call = Call(X, weights, work, 1.0, lda.documents.alpha, False)
    inverse = np.ones(X.shape[0], np.float32)
    lda.documents.fit_block(call, slice(0, X.shape[0]), gamma, inverse, Local(statistics))
    shares, found = (g / g.sum(axis=1, keepdims=True) for g in (gamma, ours[0].gamma.get()))
    expected = statistics.dense(K) + 1 / K
    lam = ours[0].lam.get()[:, :K]
    return {
        "shares": float(np.abs(shares - found).max()),
        "topics": float(np.abs(expected - lam).sum() / expected.sum()),
        "same": bool((ours[0].lam == ours[1].lam).all() and (ours[0].gamma == ours[1].gamma).all()),
    }


def on_processor(X: sparse.csr_matrix, K: int, n_threads: int) -> list[float]:
    """Seconds of whole passes."""
    lda, seconds = model(K, X.shape[1]), []
    lda.topics.n_threads = n_threads
    for _ in range(2):
        begin = time.perf_counter()
        step = lda.local_step(Batch(X, slice(0, X.shape[0])), Tempering(1.0))
        lda.global_step(step.statistics, 1.0, 1.0, Tempering(1.0))
        seconds.append(time.perf_counter() - begin)
    return seconds


def main() -> int:
    options = parser(__doc__)
    options.add_argument("--topics", type=int, nargs="+", default=[100, 500, 2000])
    options.add_argument("--documents", type=int, default=100_000)
    options.add_argument("--output", type=Path, default=Path("gpu.json"))
    given = options.parse_args()
    X, device, cores = corpus(given.documents), Device(), os.cpu_count() or 1
    found: dict[str, Any] = {"device": device.name, "cores": cores, "entries": X.nnz, "rows": []}
    print(f"{device.name}, {cores} cores, {X.shape[0]:,} documents, {X.nnz:,} entries", flush=True)
    for K in given.topics:
        row = {"K": K, **agreement(device, X[:2000], K, cores)}
        OnDevice(device, X[:64], K, model(K, X.shape[1]).topics.lam).one()  # compiled
        fit = OnDevice(device, X, K, model(K, X.shape[1]).topics.lam)
        row["device"] = [fit.one() for _ in range(PASSES)]
        row["all cores"] = on_processor(X, K, cores)
        row["one core"] = on_processor(X, K, 1)
        found["rows"].append(row)
        given.output.write_text(json.dumps(found, indent=1))
    lines = []
    for row in found["rows"]:
        own = [sum(row["device"][0]), sum(row["device"][1])]
        cells = [f"{row['K']:,}", f"{row['shares']:.0e}", f"{row['topics']:.0e}", row["same"]]
        cells.append(" / ".join(f"{1e3 * x:.0f}" for part in row["device"][:2] for x in part))
        for which in ("all cores", "one core"):
            times = zip(row[which], own, strict=True)
            cells.append(", ".join(f"{s:.2f} s ({s / d:.0f})" for s, d in times))
        lines.append(cells)
    head = ["K", "shares", "topics", "same bits", "device, ms: first, then second pass"]
    print(table([*head, f"{cores} cores (times as long)", "one core"], lines))
    return 0


if __name__ == "__main__":
    sys.exit(main())
