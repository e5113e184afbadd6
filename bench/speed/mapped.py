"""Peak memory of a fit of a corpus on disk, beside that of a tenth of it.

    python -m bench.speed.mapped FOLDER [--gigabytes 10] [--topics 20]

Writes arxiv_big's documents over and over to FOLDER/whole and FOLDER/tenth, in float32, if they are
not there yet.  Each is fitted in one online pass by a fresh process with one thread.  Printed are
its seconds, and the peak of memory that is its own (RssAnon, read from /proc/self/status every 20
milliseconds).  Pages of the files that happen to be in memory are not counted: the system takes
them back when it needs memory.  Linux only.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from scipy import sparse

from annealvi import TemperedLDA, corpus
from annealvi.datasets import load_corpus
from bench import CHECKOUT, parser
from bench.markdown import table
from bench.speed.memory import resident

#: Bytes of an entry on disk, and documents in a minibatch.
ENTRY, BATCH = 8, 4096


class Peak:
    """Watches the memory of this process while its context is open."""

    def __init__(self) -> None:
        self.megabytes = 0.0
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch)

    def _watch(self) -> None:
        while not self._ended.wait(0.02):
            self.megabytes = max(self.megabytes, resident("RssAnon"))

    def __enter__(self) -> Peak:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._ended.set()
        self._thread.join()


def write(folder: Path, gigabytes: float) -> None:
    """Write the two corpora that are not there yet."""
    X = load_corpus("arxiv_big").data.astype("float32")
    for name, part in (("whole", 1.0), ("tenth", 0.1)):
        if (folder / name).exists():
            continue
        left = int(part * gigabytes * 1e9 / ENTRY)

        def blocks(left: int = left) -> Iterator[sparse.csr_matrix]:
            while left > 0:
                n = max(1, int((X.indptr <= left).sum()) - 1)
                yield X[:n]
                left -= int(X.indptr[n])

        corpus.write(folder / name, blocks())


def fit(path: Path, n_topics: int) -> None:
    """Fit a corpus; print documents, entries, seconds and megabytes."""
    X = corpus.open(path)
    began = time.perf_counter()
    with Peak() as peak:
        lda = TemperedLDA(n_topics, max_iter=1, batch_size=BATCH, random_state=0)
        lda.fit(X)
    print(X.shape[0], X.nnz, time.perf_counter() - began, peak.megabytes, lda.bound_)


def main() -> None:
    options = parser(__doc__)
    options.add_argument("folder", type=Path)
    options.add_argument("--gigabytes", type=float, default=10.0)
    options.add_argument("--topics", type=int, default=20)
    options.add_argument("--fit", action="store_true", help="fit the corpus in FOLDER, and no more")
    arguments = options.parse_args()
    if arguments.fit:
        fit(arguments.folder, arguments.topics)
        return
    arguments.folder.mkdir(exist_ok=True)
    write(arguments.folder, arguments.gigabytes)
    rows = []
    for name in ("tenth", "whole"):
        command = [
            sys.executable,
            "-m",
            "bench.speed.mapped",
            str(arguments.folder / name),
            "--fit",
        ]
        command += ["--topics", str(arguments.topics)]
        environment = os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        done = subprocess.run(
            command, cwd=CHECKOUT, env=environment, stdout=subprocess.PIPE, text=True, check=True
        )
        n_documents, n_entries, seconds, megabytes, _ = map(float, done.stdout.split())
        size = f"{ENTRY * n_entries / 1e9:.2f}"
        rows.append((size, f"{n_documents:,.0f}", f"{seconds:.0f}", f"{megabytes:.0f}"))
    print(table(("GB on disk", "documents", "wall s", "peak MB"), rows))


if __name__ == "__main__":
    main()
