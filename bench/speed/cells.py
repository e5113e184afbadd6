"""Measure the memory of a fit from a .h5ad file that is larger than the memory of the fit.

    python -m bench.speed.cells --gb 1.3 --topics 10    # about 10 minutes on one core

The script writes cells to a .h5ad file without compression, with 8 bytes per entry.  Each cell has
1,000 open regions of 20,000.  A separate process calls ``TopicModel(K).fit_counts(path)`` on one
thread, with two passes of one run and with clusters of cells.  (More passes take more time, but not
more memory.)  Every twentieth of a second it reads its anonymous memory (RssAnon of /proc).  Pages
of files are not part of it, because the system can release them when other processes need memory.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from bench import CHECKOUT, parser
from bench.speed.memory import resident

N_REGIONS = 20_000
OPEN = 1_000
PROGRAMS = 20
BLOCK = 1_000


def write(path: Path, gigabytes: float) -> int:
    """Write a .h5ad file of about this size in blocks; return the number of entries."""
    import anndata
    import h5py
    import pandas
    from scipy import sparse

    rng = np.random.default_rng(0)
    programs = rng.gamma(0.05, size=(PROGRAMS, N_REGIONS))
    programs = np.cumsum(programs / programs.sum(axis=1, keepdims=True), axis=1)

    def block() -> Any:
        shares = rng.dirichlet(np.full(PROGRAMS, 0.2), size=BLOCK)
        drawn = rng.poisson(OPEN * shares)
        columns = [
            np.searchsorted(cumulated_program, rng.random(n.sum()))
            for cumulated_program, n in zip(programs, drawn.T, strict=True)
        ]
        rows = [np.repeat(np.arange(BLOCK), n) for n in drawn.T]
        places = np.concatenate(rows), np.minimum(np.concatenate(columns), N_REGIONS - 1)
        X = sparse.csr_matrix((np.ones(drawn.sum(), "f4"), places), shape=(BLOCK, N_REGIONS))
        X.data[:] = 1
        return X

    anndata.AnnData(block()).write_h5ad(path)
    n_cells = BLOCK
    with h5py.File(path, "a") as file:
        of_X = anndata.io.sparse_dataset(file["X"])
        while of_X.shape[0] < BLOCK or path.stat().st_size < gigabytes * 1e9:
            of_X.append(block())
            n_cells += BLOCK
            file.flush()
        n_entries = file["X"]["data"].shape[0]
        for name in ("obs", "var"):
            del file[name]
        for name, n in (("obs", n_cells), ("var", N_REGIONS)):
            frame = pandas.DataFrame(index=[f"{name}{i}" for i in range(n)])
            anndata.io.write_elem(file, name, frame)
    return int(n_entries)


def fit(path: str, n_topics: int) -> dict[str, float]:
    """Fit in this process, and measure its memory during the fit."""
    from annealvi import TemperedLDA, TopicModel

    model = TopicModel(n_topics, lda=TemperedLDA(n_init=1, max_iter=2), random_state=0)
    before = resident("RssAnon")
    peaks = [0.0]
    ended = threading.Event()

    def watch() -> None:
        while not ended.wait(0.05):
            peaks[0] = max(peaks[0], resident("RssAnon"))

    thread = threading.Thread(target=watch)
    thread.start()
    begin = time.process_time()
    model.fit_counts(path)
    ended.set()
    thread.join()
    return {"before": before, "peak": peaks[0], "cpu": time.process_time() - begin}


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--gb", type=float, default=0.8)
    options.add_argument("--topics", type=int, default=20)
    options.add_argument("--fit")
    chosen = options.parse_args()
    if chosen.fit:
        print(json.dumps(fit(chosen.fit, chosen.topics)))
        return
    build = CHECKOUT / "build"
    build.mkdir(exist_ok=True)
    with TemporaryDirectory(dir=build) as folder:
        path = Path(folder) / "cells.h5ad"
        n_entries = write(path, chosen.gb)
        size = path.stat().st_size / 1e6
        command = [sys.executable, "-m", "bench.speed.cells", "--topics", str(chosen.topics)]
        environment = os.environ | {"OMP_NUM_THREADS": "1", "TMPDIR": folder}
        done = subprocess.run(
            [*command, "--fit", str(path)],
            cwd=CHECKOUT,
            env=environment,
            stdout=subprocess.PIPE,
            check=True,
        )
        measured = json.loads(done.stdout.decode().splitlines()[-1])
    print("| entries | file, MB | RssAnon before, MB | peak, MB | file / peak | CPU s |")
    print("|---|---|---|---|---|---|")
    print(
        f"| {n_entries:,} | {size:,.0f} | {measured['before']:.0f} | {measured['peak']:.0f} | "
        f"{size / measured['peak']:.1f} | {measured['cpu']:.0f} |"
    )


if __name__ == "__main__":
    main()
