"""Spark MLlib's online LDA and gensim's LdaMulticore beside annealvi, on two cores of one machine.

    python -m bench.speed.scale_rivals [--documents 50000] [--topics 100]

It needs pyspark, gensim and a Java runtime; a library that is not there is skipped.  The first
--documents of arxiv_big are fitted, each time from the beginning, with more and more passes: by
annealvi with two threads, by LdaMulticore with two worker processes, and by Spark in local mode
with two threads (its optimiser "online", minibatches of 5% of the documents, and learned priors of
documents, its default).  The seconds are the wall time of a fit; starting Spark, and giving it the
documents, is not counted.  Held out is the likelihood per word of 2,000 other documents by document
completion, inferred from the topics alone, by the same inference for all.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from importlib.util import find_spec
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from annealvi import TemperedLDA
from annealvi.datasets import load_corpus
from annealvi.metrics import document_completion
from bench import parser
from bench.markdown import table

N_HELD_OUT, PASSES, N_THREADS = 2000, (1, 2, 4, 8), 2

Fit = tuple[int, float, NDArray]


def annealvi_fits(X: sparse.csr_matrix, n_topics: int) -> Iterator[Fit]:
    """Passes, seconds and topics of our fits; the last is the default."""
    for n_passes in (*PASSES[:3], None):
        lda = TemperedLDA(n_topics, max_iter=n_passes, n_jobs=N_THREADS, random_state=0)
        began = time.perf_counter()
        lda.fit(X)
        yield lda.n_iter_, time.perf_counter() - began, lda.components_


def gensim_fits(X: sparse.csr_matrix, n_topics: int) -> Iterator[Fit]:
    """The same of LdaMulticore."""
    from gensim.models import LdaMulticore

    documents = [list(zip(row.indices.tolist(), row.data.tolist(), strict=True)) for row in X]
    words = {i: str(i) for i in range(X.shape[1])}
    for n_passes in PASSES:
        began = time.perf_counter()
        lda = LdaMulticore(
            documents, n_topics, words, workers=N_THREADS, passes=n_passes, random_state=0
        )
        yield n_passes, time.perf_counter() - began, lda.get_topics()


def spark_fits(X: sparse.csr_matrix, n_topics: int) -> Iterator[Fit]:
    """The same of Spark."""
    from pyspark.ml.clustering import LDA
    from pyspark.ml.linalg import SparseVector
    from pyspark.sql import SparkSession

    spark = (
        SparkSession.builder.master(f"local[{N_THREADS}]")
        .config("spark.driver.memory", "8g")
        .config("spark.driver.maxResultSize", "4g")
        .config("spark.ui.enabled", "false")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    rows = [(SparseVector(X.shape[1], row.indices, row.data.astype(float)),) for row in X]
    documents = spark.createDataFrame(rows, ["features"]).repartition(2 * N_THREADS).cache()
    documents.count()
    for n_passes in PASSES:
        lda = LDA(
            k=n_topics,
            optimizer="online",
            maxIter=20 * n_passes,  # of 5% of the documents each
            subsamplingRate=0.05,
            seed=0,
        )
        began = time.perf_counter()
        model = lda.fit(documents)
        seconds = time.perf_counter() - began
        yield n_passes, seconds, model.topicsMatrix().toArray().T
    spark.stop()


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--documents", type=int, default=50_000)
    options.add_argument("--topics", type=int, default=100)
    arguments = options.parse_args()
    X = load_corpus("arxiv_big").data.astype(np.float32)
    X, held_out = X[: arguments.documents], X[-N_HELD_OUT:]
    fits: dict[str, Any] = {"annealvi": annealvi_fits, "pyspark": spark_fits, "gensim": gensim_fits}
    rows = []
    for name, fit in fits.items():
        if find_spec(name) is None:
            print(f"{name} is not installed")
            continue
        for n_passes, seconds, topics in fit(X, arguments.topics):
            model = SimpleNamespace(components_=np.maximum(topics, 1e-12))
            score = document_completion(model, held_out, method="cvb0")
            rows.append((name, n_passes, f"{seconds:.1f}", f"{score:.4f}"))
            print(*rows[-1], flush=True)
    print(table(("library", "passes", "wall s", "held out"), rows))


if __name__ == "__main__":
    main()
