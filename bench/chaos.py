"""Fits on workers that are killed: are the topics identical, bit for bit, and do all fits end?

    python bench/chaos.py [--runs 50] [--seed 0] [--seconds 120]

Each run fits the bundled abstracts with annealvi.dask.TemperedLDA on a new cluster of 1 to 3 worker
processes.  At a random moment one worker is killed (by SIGKILL), or all workers are killed, or the
process of the fit is killed.  Dask's nannies start other workers.  A killed fit is resumed from its
checkpoint, on another number of workers.  Half of the fits have a learned temperature and learned
priors.  The script prints the SHA-256 of the topics of each run, whether it equals that of a fit in
one process, and the number of equal runs.  A run hangs if it takes more than --seconds.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from annealvi import corpus
from annealvi.dask import TemperedLDA as DaskLDA
from annealvi.dask import document_order
from annealvi.datasets import load_arxiv_abstracts

#: Numbers of documents in the partitions, and sizes with which a fit has about 50 steps.
LENGTHS = (700, 800, 600, 900)
SHARD = 50
BATCH = 200
FITS: dict[str, dict[str, Any]] = {
    "annealed": dict(n_components=20, max_iter=4),
    "learned": dict(
        n_components=20,
        max_iter=4,
        temperature="variational",
        doc_topic_prior="learn",
        topic_word_prior="learn",
        dtype="float64",
    ),
}
EVENTS = ("one worker", "all workers", "the fit")


def partitions(folder: Path) -> list[str]:
    """Write the abstracts as corpora on disk, unless the files exist."""
    X = load_arxiv_abstracts().data.astype(np.float32)
    paths = []
    start = 0
    for number, length in enumerate(LENGTHS):
        path = folder / f"part{number}"
        if not path.exists():
            corpus.write_corpus(path, [X[start : start + length]])
        paths.append(str(path))
        start += length
    return paths


def digest(components: np.ndarray) -> str:
    """SHA-256 of topics."""
    return hashlib.sha256(np.ascontiguousarray(components).tobytes()).hexdigest()


def expected(kind: str) -> str:
    """The digest of the topics of a fit in this process."""
    X = load_arxiv_abstracts().data.astype(np.float32)
    order = document_order(LENGTHS, shard_size=SHARD, batch_size=BATCH)
    lda = DaskLDA(**FITS[kind], shard_size=SHARD, batch_size=BATCH, random_state=0)
    return digest(lda.fit(X[order]).components_)


class Killer:
    """A callback that kills one or more processes at a given moment of a fit."""

    def __init__(self, event: str, step: int, seconds: float, client: Any) -> None:
        self.event = event
        self.step = step
        self.seconds = seconds
        self.client = client

    def __call__(self, estimator: Any, monitor: Any) -> None:
        if monitor.step != self.step:
            return
        workers = [worker["pid"] for worker in self.client.run(about).values()]
        victims = {"one worker": workers[:1], "all workers": workers, "the fit": [os.getpid()]}
        threading.Timer(self.seconds, kill, [victims[self.event]]).start()


def about() -> dict[str, int]:
    """The process number of a worker."""
    return {"pid": os.getpid()}


def kill(pids: list[int]) -> None:
    """Kill processes, if they still exist."""
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def fit(kind: str, folder: Path, checkpoint: str, n_workers: int, death: dict[str, Any]) -> str:
    """Fit on a new cluster, in which processes may be killed; return the digest."""
    import dask
    from distributed import Client, LocalCluster

    # by default a LocalCluster stops a worker that does not start again within 15 seconds
    dask.config.set({"distributed.deploy.lost-worker-timeout": "300s"})
    cluster = LocalCluster(
        n_workers=n_workers, threads_per_worker=1, dashboard_address=":0", silence_logs=50
    )
    with cluster, Client(cluster) as client:
        callback: list[Any] = [Killer(**death, client=client)] if death else []
        lda = DaskLDA(
            **FITS[kind],
            shard_size=SHARD,
            batch_size=BATCH,
            random_state=0,
            client=client,
            checkpoint=checkpoint,
            callback=callback,
        )
        return digest(lda.fit(partitions(folder)).components_)


class Plan(NamedTuple):
    """A run: the fit, what is killed, after which step and delay, and the numbers of workers."""

    kind: str
    event: str
    step: int
    seconds: float
    n_workers: tuple[int, int]


def drawn(rng: random.Random) -> Plan:
    """Draw a random plan."""
    kind = rng.choice(sorted(FITS))
    event = rng.choice(EVENTS)
    n_workers = rng.randrange(1, 4), rng.randrange(1, 4)
    return Plan(kind, event, rng.randrange(1, 50), rng.uniform(0.0, 0.1), n_workers)


def run(plan: Plan, folder: Path, checkpoint: Path, limit: float) -> str:
    """Make one run in separate processes; return the digest, or a text if the run hangs."""
    death = {"event": plan.event, "step": plan.step, "seconds": plan.seconds}
    output = ""
    for n_workers in plan.n_workers:
        order = dict(kind=plan.kind, folder=str(folder), checkpoint=str(checkpoint), death=death)
        command = [sys.executable, __file__, "--fit", json.dumps(order | {"n_workers": n_workers})]
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, text=True, start_new_session=True
        ) as process:
            try:
                output = process.communicate(timeout=limit)[0]
            except subprocess.TimeoutExpired:
                output = "it hangs"
            finally:
                kill_group(process.pid)
        if plan.event != "the fit" or output.strip():
            break
        death = {}  # nothing is killed in the second process
    return output.strip()


def kill_group(leader: int) -> None:
    """Kill the processes that a run has left."""
    with suppress(ProcessLookupError):
        os.killpg(leader, signal.SIGKILL)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("--runs", type=int, default=50)
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--seconds", type=float, default=120.0, help="after which a run hangs")
    options.add_argument("--fit", help="one fit, described in JSON")
    arguments = options.parse_args()
    if arguments.fit is not None:
        order = json.loads(arguments.fit)
        print(fit(**order | {"folder": Path(order["folder"])}))
        return
    rng = random.Random(arguments.seed)
    equal = 0
    hung = 0
    expected_digests = {kind: expected(kind) for kind in FITS}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        partitions(folder)
        for number in range(arguments.runs):
            began = time.monotonic()
            plan = drawn(rng)
            digest = run(plan, folder, folder / f"run{number}", arguments.seconds)
            equal += digest == expected_digests[plan.kind]
            hung += digest == "it hangs"
            seconds = time.monotonic() - began
            same = (
                "equal"
                if digest == expected_digests[plan.kind]
                else f"not {expected_digests[plan.kind][:12]}"
            )
            what = f"{plan.event} killed, {plan.kind}"
            print(f"{number}: {what}, {digest[:12]}, {same}, {seconds:.0f} s", flush=True)
    print(f"{arguments.runs} runs: {equal} equal, {hung} hung")
    sys.exit(int(equal < arguments.runs))


if __name__ == "__main__":
    main()
