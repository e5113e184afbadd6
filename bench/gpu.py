"""Compare TemperedLDA on a GPU with TemperedLDA on the processor: agreement, repeats and times.

    python -m bench.gpu [--topics 100 500 2000] [--documents 100000] [--output gpu.json]

The corpus is drawn from planted topics and is similar to abstracts: it has 8,000 words and 60
entries in each document.  For each number of topics the script measures

- the largest difference of a share, and the relative L1 difference of topics, after 20 iterations
  from the same topics, and whether a second fit on the GPU is identical, bit for bit;
- the seconds of the first and the second pass over all documents, on the GPU, on all cores and on
  one core, and the share of the GPU's bandwidth that the second pass reaches if each entry reads a
  row of weights once;
- two default fits of a tenth of the documents on the GPU and one on the processor: their seconds,
  the held-out log-likelihood of other documents, and whether the two fits are identical.

With 16 cores this takes about five minutes.  The output is written after each number of topics.
`--quick` leaves out the slowest measurements, which are the passes on one core and the fits on the
processor.

In an earlier measurement of the kernels alone, on an H200 with 16 cores, the first and the second
pass over 100,000 documents with 6.2 million entries took these milliseconds.  The brackets show how
many times as long the processor took, on all cores and on one core:

    K = 100     36 (10, 83)     28 (11, 84)
    K = 500    109 (5, 43)      66 (6, 44)
    K = 2,000  222 (6, 53)     153 (8, 65)
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from scipy import sparse

from annealvi import TemperedLDA
from annealvi.metrics import document_completion
from annealvi.model import UNTEMPERED, Batch
from annealvi.models.lda.engine import Engine
from annealvi.models.lda.gpu import device_of, used
from annealvi.models.lda.model import LDA, LocalOptions
from annealvi.models.lda.shards import engine_of
from bench import parser
from bench.markdown import table

AGREEING = 2000
HELD_OUT = 1000
SEED = 0


def corpus(n_samples: int, n_features: int = 8000, K: int = 100) -> sparse.csr_matrix:
    """Draw documents of planted topics, with the lengths and word frequencies of abstracts."""
    rng = np.random.default_rng(SEED)
    topics = rng.permutation(1 / (10.0 + np.arange(n_features))) * rng.gamma(
        0.08, size=(K, n_features)
    )
    ends = np.cumsum(topics / topics.sum(axis=1, keepdims=True), axis=1)
    lengths = np.maximum(2, rng.lognormal(np.log(73) - 0.18, 0.6, n_samples)).astype(int)
    counts = rng.multinomial(lengths, rng.dirichlet(np.full(K, 0.05), n_samples))
    rows = []
    columns = []
    for k in range(K):
        rows.append(np.repeat(np.arange(n_samples), counts[:, k]))
        words = np.searchsorted(ends[k], rng.random(len(rows[-1])))
        columns.append(np.minimum(words, n_features - 1))
    where = np.concatenate(rows), np.concatenate(columns)
    X = sparse.coo_matrix((np.ones(len(where[0])), where), (n_samples, n_features)).tocsr()
    return X.astype(np.float32)


def model(K: int, n_features: int, **options: Any) -> LDA:
    """Make a model with random topics, which are always the same for the same K."""
    local_options = LocalOptions(**options)
    lda = LDA(K, n_features, alpha=1 / K, eta=1 / K, dtype=np.float32, options=local_options)
    lda.initialize(np.random.RandomState(1))
    return lda


def one_pass(lda: LDA, engine: Engine, X: sparse.csr_matrix) -> float:
    """Make a step with all documents; return its seconds.  The sums of topics wait for the GPU."""
    begin = time.perf_counter()
    step = engine.e_step(lda, Batch(X, slice(0, X.shape[0])), UNTEMPERED)
    engine.m_step(lda, step.statistics, 1.0, 1.0, UNTEMPERED)
    return time.perf_counter() - begin


def agreement(X: sparse.csr_matrix, K: int, device: str, n_threads: int) -> dict[str, Any]:
    """Measure differences after 20 iterations, and whether two fits on the GPU are identical."""
    shares = []
    lam = []
    for name in ("cpu", device, device):
        lda = model(K, X.shape[1], max_iter=20, tolerance=0.0)
        engine = engine_of(name, n_threads, K, lda.dtype)
        # on the processor too, no topic is skipped
        with patch("annealvi.models.lda.engine.least_share", return_value=0.0):
            gamma = engine.infer(lda, X)
            one_pass(lda, engine, X)
        engine.pull(lda)
        shares.append(gamma / gamma.sum(axis=1, keepdims=True))
        lam.append(lda.components)
    same = np.array_equal(shares[1], shares[2]) and np.array_equal(lam[1], lam[2])
    return {
        "shares": float(np.abs(shares[0] - shares[1]).max()),
        "mean share": float(np.abs(shares[0] - shares[1]).mean()),
        "topics": float(np.abs(lam[0] - lam[1]).sum() / lam[0].sum()),
        "same": same,
    }


def passes(X: sparse.csr_matrix, K: int, device: str, n_threads: int = 1) -> list[float]:
    """Measure the seconds of two passes; on a GPU, also of copying the documents before."""
    lda = model(K, X.shape[1])
    engine = engine_of(device, n_threads, K, lda.dtype, X=X, repeated=True)
    copying = []
    if device != "cpu":
        few = X[:64]
        one_pass(model(K, X.shape[1]), engine_of(device, n_threads, K, lda.dtype), few)  # compiles
        before = lda.components.copy()
        copying = [one_pass(lda, engine, X)]
        engine.pull(lda)
        lda.assign(before)
    seconds_of_passes = [one_pass(lda, engine, X) for _ in range(2)]
    return [*seconds_of_passes, *(seconds - seconds_of_passes[0] for seconds in copying)]


def bandwidth() -> float:
    """Measure the bytes per second that a copy on the GPU reads and writes."""
    import cupy

    source = cupy.zeros(1 << 28, np.float32)
    for _ in range(2):  # the first copy is not timed
        cupy.cuda.Device().synchronize()
        begin = time.perf_counter()
        for _ in range(10):
            target = source.copy()
        cupy.cuda.Device().synchronize()
        seconds = time.perf_counter() - begin
    return 10 * (source.nbytes + target.nbytes) / seconds


def fits(
    X: sparse.csr_matrix, K: int, device: str, with_processor: bool, n_jobs: int
) -> dict[str, Any]:
    """Make whole default fits, and measure how well they predict."""
    training = X[:-HELD_OUT]
    others = X[-HELD_OUT:]
    results = []
    for name in [device, device, *["cpu"] * with_processor]:
        begin = time.perf_counter()
        lda = TemperedLDA(K, random_state=SEED, n_jobs=n_jobs, device=name).fit(training)
        seconds = time.perf_counter() - begin
        score = document_completion(lda, others, random_state=SEED, method="cvb0")
        results.append((seconds, float(score), lda.components_))
    return {
        "fit seconds": [one[0] for one in results],
        "held out": [one[1] for one in results],
        "same fit": bool(np.array_equal(results[0][2], results[1][2])),
    }


def cells(row: dict[str, Any]) -> list[str]:
    """Format a row of the table."""
    device_seconds = row["device"][:2]
    fit_seconds = row["fit seconds"][0]
    texts = [f"{row['K']:,}", f"{row['shares']:.0e}, {row['topics']:.0e}", str(row["same"])]
    texts.append(", ".join(f"{1e3 * seconds:.0f}" for seconds in device_seconds))
    for which in ("all cores", "one core"):
        times = zip(row.get(which, ())[:2], device_seconds, strict=False)
        texts.append(", ".join(f"{s:.2f} s ({s / d:.0f})" for s, d in times) or "-")
    texts.append(f"{row['of bandwidth']:.0%}")
    others = "".join(f", {seconds:.1f}" for seconds in row["fit seconds"][2:])
    texts.append(f"{fit_seconds:.1f}{others} s")
    texts.append(", ".join(f"{score:.4f}" for score in row["held out"][::2]))
    return [*texts, str(row["same fit"])]


def main() -> int:
    options = parser(__doc__)
    options.add_argument("--topics", type=int, nargs="+", default=[100, 500, 2000])
    options.add_argument("--documents", type=int, default=100_000)
    options.add_argument("--device", default="cuda")
    options.add_argument("--quick", action="store_true")
    options.add_argument("--output", type=Path, default=Path("gpu.json"))
    arguments = options.parse_args()
    device = device_of(arguments.device)
    cores = os.cpu_count() or 1
    if device is None:
        sys.exit("--device must be a GPU")
    X = corpus(arguments.documents)
    n_documents = max(2 * HELD_OUT, arguments.documents // 10)
    with used(device):
        bytes_a_second = bandwidth()
    report: dict[str, Any] = {"device": device.name, "cores": cores, "entries": X.nnz, "rows": []}
    report |= {"documents": X.shape[0], "bytes a second": bytes_a_second}
    print(f"{device.name}, {cores} cores, {X.shape[0]:,} documents, {X.nnz:,} entries", flush=True)
    for K in arguments.topics:
        row = {"K": K, **agreement(X[:AGREEING], K, arguments.device, cores)}
        row["device"] = passes(X, K, arguments.device)
        row["of bandwidth"] = 4 * K * X.nnz / row["device"][1] / bytes_a_second
        row["all cores"] = passes(X, K, "cpu", cores)
        if not arguments.quick:
            row["one core"] = passes(X, K, "cpu")
        row |= fits(X[:n_documents], K, arguments.device, not arguments.quick, cores)
        report["rows"].append(row)
        arguments.output.write_text(json.dumps(report, indent=1))
        print(" | ".join(cells(row)), flush=True)
    head = ["K", "shares, topics", "same bits", "device, ms: passes 1, 2", f"{cores} cores (times)"]
    head += ["one core", "bandwidth", "fit there, here", "held out there, here", "same fit"]
    print(table(head, [cells(row) for row in report["rows"]]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
