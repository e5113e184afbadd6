"""Fits on Dask beside fits in one process: documents a second, and the cost of a step.

    python -m bench.speed.dask [--documents 543000] [--topics 100 500] [--passes 4]
        [--batch 65536]

Writes the first --documents of arxiv_big, all but 2,000, as four corpora on disk, and fits them: in
one process with one thread and with two, on one worker of Dask with two threads, on
two workers with one thread each, and on two processes of loky.  All have the same shards and
minibatches, so all end with the same topics, whose hash is printed.  "Held out" is the likelihood
per word of the 2,000 documents left.  "ms more a step" is the wall time of a step less that of the
local fit on as many threads.  "MB sent" are the topics that a step sends to each worker; the sums
that a worker sends back are in float64, and take about twice as much.
"""

from __future__ import annotations

import hashlib
import pickle
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from annealvi import TemperedLDA, corpus
from annealvi.dask import TemperedLDA as DaskLDA
from annealvi.dask import document_order
from annealvi.datasets import load_corpus
from annealvi.metrics import document_completion
from annealvi.scale.engines.loky import LokyEngine
from bench import parser
from bench.markdown import table

N_PARTS, SHARD, N_HELD_OUT = 4, 4096, 2000


@contextmanager
def cluster(n_workers: int, n_threads: int) -> Iterator[Any]:
    """A client of new workers on this machine."""
    from distributed import Client, LocalCluster

    with (
        LocalCluster(
            n_workers=n_workers, threads_per_worker=n_threads, dashboard_address=":0"
        ) as workers,
        Client(workers) as client,
    ):
        yield client


def counted(number: int, name: str) -> str:
    """A number of things in words."""
    return f"{number} {name}" + "s" * (number != 1)


def fit(lda: Any, X: Any) -> tuple[float, int, str]:
    """Fit; return the seconds of the steps, their number, and a hash of the topics."""
    lda.fit(X)
    digest = hashlib.sha256(np.ascontiguousarray(lda.components_).tobytes()).hexdigest()
    return float(lda.history_["seconds"][-1]), lda.n_batch_iter_ - 1, digest[:12]


def measure(
    folder: Path,
    X: sparse.csr_matrix,
    held_out: sparse.csr_matrix,
    n_topics: int,
    n_passes: int,
    batch: int,
) -> list[tuple[str, ...]]:
    """The rows of the table of one K."""
    ends = [X.shape[0] * i // N_PARTS for i in range(N_PARTS + 1)]
    paths = [str(folder / str(i)) for i in range(N_PARTS)]
    order = document_order(np.diff(ends), shard_size=SHARD, batch_size=batch)
    settings: dict[str, Any] = dict(
        n_components=n_topics,
        max_iter=n_passes,
        finish_iter=0,
        shard_size=SHARD,
        batch_size=batch,
        random_state=0,
    )
    ordered = X[order]
    rows, local = [], {}
    for n_threads in (1, 2):
        lda = TemperedLDA(**settings, n_jobs=n_threads)
        seconds, n_steps, digest = fit(lda, ordered)
        local[n_threads] = seconds
        rows.append((f"one process, {counted(n_threads, 'thread')}", seconds, seconds, digest))
    score = document_completion(lda, held_out)
    sent = len(pickle.dumps(lda._state.model.copy(lasting=True), protocol=5))
    for n_workers, n_threads in ((1, 2), (2, 1)):
        with cluster(n_workers, n_threads) as client:
            seconds, _, digest = fit(DaskLDA(**settings, client=client), paths)
        name = f"Dask, {counted(n_workers, 'worker')} of {counted(n_threads, 'thread')}"
        rows.append((name, seconds, local[2], digest))
    with LokyEngine(2, 1) as engine:
        seconds, _, digest = fit(DaskLDA(**settings, client=engine), paths)
        rows.append(("loky, 2 workers of 1 thread", seconds, local[2], digest))
    return [
        (
            str(n_topics),
            name,
            f"{seconds:.1f}",
            f"{n_passes * X.shape[0] / seconds:,.0f}",
            f"{base / seconds:.2f}",
            f"{1000 * (seconds - base) / n_steps:.0f}",
            f"{sent / 1e6:.1f}",
            f"{score:.4f}",
            digest,
        )
        for name, seconds, base, digest in rows
    ]


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--documents", type=int, default=543_000)
    options.add_argument("--topics", type=int, nargs="+", default=[100, 500])
    options.add_argument("--passes", type=int, default=4)
    options.add_argument("--batch", type=int, default=65_536)
    arguments = options.parse_args()
    X = load_corpus("arxiv_big").data.astype(np.float32)[: arguments.documents]
    X, held_out = X[:-N_HELD_OUT], X[-N_HELD_OUT:]
    began, rows = time.monotonic(), []
    with tempfile.TemporaryDirectory() as name:
        ends = [X.shape[0] * i // N_PARTS for i in range(N_PARTS + 1)]
        for i in range(N_PARTS):
            corpus.write(Path(name) / str(i), [X[ends[i] : ends[i + 1]]])
        for n_topics in arguments.topics:
            rows += measure(Path(name), X, held_out, n_topics, arguments.passes, arguments.batch)
    head = "K", "where", "s", "documents/s", "of the local fit's", "ms more a step", "MB sent"
    print(table((*head, "held out", "topics"), rows))
    print(f"{time.monotonic() - began:.0f} s")


if __name__ == "__main__":
    main()
