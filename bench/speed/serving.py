"""Measure a loaded TopicModel: the size of its file, the time to load, memory, and transform.

    python -m bench.speed.serving                       3,000 abstracts in 20 topics
    python -m bench.speed.serving --corpus arxiv_texts20k --topics 100

The script fits a model and saves it.  A separate process loads the file and transforms texts: one
at a time, 1,000 together, and one at a time from two threads.  Memory is resident memory without
imports, after loading and at the end.  Seconds and milliseconds are medians.  The CPU times in
brackets are more reliable if the machine has other work.  This works only on Linux.
"""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import annealvi
from annealvi import TopicModel
from annealvi.datasets import DATA_VARIABLE, load_arxiv_abstracts
from bench import CHECKOUT, parser
from bench.markdown import table
from bench.speed.checkpoints import seconds_of
from bench.speed.memory import resident

N_TEXTS = 1_000


def texts_of(corpus: str) -> list[str]:
    """Read the bundled abstracts, or the texts of a file in the folder of corpora."""
    if corpus == "bundled":
        return load_arxiv_abstracts(texts=True).texts
    path = Path(os.environ[DATA_VARIABLE], f"{corpus}.jsonl.gz")
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    return [f"{row['title']}. {row['abstract']}" for row in rows]


def per_text(act: Callable[[], Any], n: int) -> tuple[float, float]:
    """Measure the elapsed time and the CPU time for each of n texts, in milliseconds."""
    before = time.perf_counter(), time.process_time()
    act()
    return (
        1e3 * (time.perf_counter() - before[0]) / n,
        1e3 * (time.process_time() - before[1]) / n,
    )


def serve(path: Path, texts: list[str]) -> list[list[str]]:
    """Load the file and measure the rows of the table, in this process."""
    TopicModel(2).fit(texts[:50]).transform(texts[:1])  # to import modules before the timing
    before = resident("VmRSS")
    loading = seconds_of(lambda: annealvi.load(path))
    model = annealvi.load(path)
    loaded = resident("VmRSS") - before
    one = [seconds_of(lambda text=text: model.transform([text]), 1) for text in texts]  # type: ignore[misc]
    middle = [1e3 * sorted(times)[len(times) // 2] for times in zip(*one, strict=True)]
    slowest = [1e3 * sorted(times)[int(0.99 * len(times))] for times in zip(*one, strict=True)]
    together = per_text(lambda: model.transform(texts), len(texts))
    with ThreadPoolExecutor(2) as pool:
        threads = per_text(
            lambda: list(pool.map(lambda text: model.transform([text]), texts)), len(texts)
        )
    served = resident("VmRSS") - before
    return [
        ["topics, words", f"{len(model.components_)}, {len(model.feature_names_):,}"],
        ["file", f"{path.stat().st_size / 1e6:.1f} MB"],
        ["`annealvi.load`", f"{loading[0]:.3f} s ({loading[1]:.3f})"],
        ["memory after loading", f"{loaded:.1f} MB"],
        [f"memory after {3 * len(texts):,} texts", f"{served:.1f} MB"],
        ["one text", f"{middle[0]:.2f} ms ({middle[1]:.2f})"],
        ["one text, slowest of 100", f"{slowest[0]:.2f} ms ({slowest[1]:.2f})"],
        [f"{len(texts):,} texts at once, each", f"{together[0]:.2f} ms ({together[1]:.2f})"],
        ["one text, two threads, each", f"{threads[0]:.2f} ms ({threads[1]:.2f})"],
    ]


def main() -> int:
    options = parser(__doc__)
    options.add_argument("--corpus", default="bundled", help="bundled, or a file of texts")
    options.add_argument("--topics", type=int, default=20)
    options.add_argument("--only", type=Path, help="serve this file, in this process")
    arguments = options.parse_args()
    texts = texts_of(arguments.corpus)
    if arguments.only:
        print(table(["", arguments.corpus], serve(arguments.only, texts[:N_TEXTS])))
        return 0
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "topics.safetensors")
        annealvi.save(TopicModel(arguments.topics, random_state=0).fit(texts), path)
        command = [sys.executable, "-m", "bench.speed.serving", "--corpus", arguments.corpus]
        environment = os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        return subprocess.run(
            [*command, "--only", str(path)], cwd=CHECKOUT, env=environment, check=False
        ).returncode


if __name__ == "__main__":
    sys.exit(main())
