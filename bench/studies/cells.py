"""Planted cells: are programs and types of cells found, and how much time and memory do fits take?

    python -m bench.studies.cells fit small            # every library
    python -m bench.studies.cells fit middle --only annealvi NMF
    python -m bench.studies.cells fit large --only annealvi
    python -m bench.studies.cells report               # writes the table of docs/do/cells.md
    python -m bench.studies.cells regions small        # compares Otsu's thresholds with the truth

Each cell has a type, and each type mixes three programs: its own program, the program of a lineage
of three types, and a program of all cells.  A program opens a few thousand regions.  The cells of
three batches differ in depth and, in each region, by a factor of the batch.  Two rare types have
0.5% of the cells each.  Cell c opens region r with probability 1 - exp(-n_c sum_k theta_ck
beta_kr), so that entries are 0 or 1.  Each library runs in a separate process with one thread, and
gets the planted number of programs.

recovered   number of planted programs that match a topic (one to one) with a cosine above 0.9
rare        the number of such programs among those of a rare type
ARI         adjusted Rand index of the types and of the same number of clusters, found by k-means
            with ten starts on the square roots of the shares; for LSI, on its components without
            the first, scaled to unit length
CPU, MB     CPU seconds of the fit and of the shares of all cells, and the increase of peak memory
            after the matrix was loaded

tomotopy has the settings of pycisTopic: 150 sweeps, alpha = 50 / K, eta = 0.1.  scikit-learn's LDA
makes 10 passes in minibatches of 1,000, gensim makes 10 passes, and NMF makes 200 iterations on the
counts.  LSI is a truncated SVD of TF-IDF.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from scipy.optimize import linear_sum_assignment

from annealvi import TemperedLDA, corpus
from bench import CHECKOUT, parser
from bench.markdown import between_markers, table
from bench.speed.memory import forget_peak, resident

#: Numbers of cells, of regions, of types, and of regions that a cell opens.
SIZES = {
    "small": (5_000, 20_000, 12, 1_000),
    "middle": (12_000, 80_000, 30, 2_000),
    "large": (40_000, 200_000, 60, 2_700),
}
BATCHES = 3
RARE_SHARE = 0.005
LINEAGE = 3
#: The two rare types, which belong to different lineages.
RARE = (0, 3)
#: Number of cells that are drawn together.
CHUNK = 1_000
FOLDER = CHECKOUT / "build" / "cells"
RESULTS = Path(__file__).with_suffix(".json")


# ------------------------------------------------------------------------------- planted


def plant(size: str) -> None:
    """Draw the cells of a size, and write them to files."""
    n_cells, n_regions, n_types, depth = SIZES[size]
    rng = np.random.default_rng(0)
    n_lineages = -(-n_types // LINEAGE)
    n_programs = n_types + n_lineages + 1
    programs = np.zeros((n_programs, n_regions))
    for k, program in enumerate(programs):
        n = n_regions // (4 if k == n_programs - 1 else 25)
        program[rng.choice(n_regions, n, replace=False)] = rng.gamma(1.0, size=n)
    programs /= programs.sum(axis=1, keepdims=True)
    weights = np.zeros((n_types, n_programs))
    weights[np.arange(n_types), np.arange(n_types)] = 0.35
    weights[np.arange(n_types), n_types + np.arange(n_types) // LINEAGE] = 0.25
    weights[:, -1] = 0.4
    sizes = np.full(n_types, (1 - len(RARE) * RARE_SHARE) / (n_types - len(RARE)))
    sizes[[*RARE]] = RARE_SHARE
    types = rng.choice(n_types, n_cells, p=sizes)
    shares = np.zeros((n_cells, n_programs))
    for t in range(n_types):
        here = types == t
        of = weights[t] > 0
        shares[np.ix_(here, of)] = rng.dirichlet(5 * weights[t, of], here.sum())
    batches = rng.integers(BATCHES, size=n_cells)
    n_open = depth * np.array([0.7, 1.1, 1.3])[batches] * rng.lognormal(0, 0.3, n_cells)
    factors = rng.lognormal(0, 0.3, (BATCHES, n_regions))
    of_batch = [programs * factor / (programs @ factor)[:, np.newaxis] for factor in factors]
    cumulated = [np.cumsum(programs_of_batch, axis=1) for programs_of_batch in of_batch]

    def blocks() -> Any:
        for first in range(0, n_cells, CHUNK):
            rows = np.arange(first, min(first + CHUNK, n_cells))
            places = []
            columns = []
            for k in range(n_programs):
                drawn = rng.poisson(1.2 * n_open[rows] * shares[rows, k])
                for batch in range(BATCHES):
                    of = np.where(batches[rows] == batch, drawn, 0)
                    regions = np.searchsorted(cumulated[batch][k], rng.random(of.sum()))
                    columns.append(np.minimum(regions, n_regions - 1))
                    places.append(np.repeat(rows - first, of))
            ones = np.ones(sum(map(len, columns)), dtype=np.float32)
            shape = len(rows), n_regions
            X = sparse.csr_matrix((ones, (np.concatenate(places), np.concatenate(columns))), shape)
            X.data[:] = 1
            yield X

    FOLDER.mkdir(parents=True, exist_ok=True)
    corpus.write_corpus(FOLDER / size, blocks())
    planted = np.mean(of_batch, axis=0)
    np.savez(FOLDER / f"{size}.npz", programs=planted.astype(np.float32), types=types)


def load(size: str) -> tuple[sparse.csr_matrix, np.ndarray, np.ndarray]:
    """Read the matrix into memory, the planted programs and the types."""
    if not (FOLDER / f"{size}.npz").exists():
        plant(size)
    truth = np.load(FOLDER / f"{size}.npz")
    return corpus.open_corpus(FOLDER / size).copy(), truth["programs"], truth["types"]


# --------------------------------------------------------------------------------- fits


def annealvi(X: sparse.csr_matrix, n_topics: int) -> tuple[Any, Any]:
    lda = TemperedLDA(n_topics, random_state=0).fit(X)
    return lda.components_, lda.transform(X)


def annealvi_one_run(X: sparse.csr_matrix, n_topics: int) -> tuple[Any, Any]:
    lda = TemperedLDA(n_topics, n_init=1, random_state=0).fit(X)
    return lda.components_, lda.transform(X)


def tomotopy(X: sparse.csr_matrix, n_topics: int) -> tuple[Any, Any]:
    import tomotopy as tp

    model = tp.LDAModel(k=n_topics, alpha=50 / n_topics, eta=0.1, seed=0)
    model.optim_interval = 0
    for begin, end in pairwise(X.indptr):
        model.add_doc(X.indices[begin:end].astype(str).tolist())
    model.train(150, workers=1)
    topics = np.zeros((n_topics, X.shape[1]))
    columns = np.array([int(word) for word in model.used_vocabs])
    for k in range(n_topics):
        topics[k, columns] = model.get_topic_word_dist(k)
    return topics, np.array([doc.get_topic_dist() for doc in model.docs])


def scikit_learn(X: sparse.csr_matrix, n_topics: int) -> tuple[Any, Any]:
    from sklearn.decomposition import LatentDirichletAllocation

    lda = LatentDirichletAllocation(
        n_topics, learning_method="online", batch_size=1000, max_iter=10, random_state=0
    ).fit(X)
    return lda.components_, lda.transform(X)


def nmf(X: sparse.csr_matrix, n_topics: int) -> tuple[Any, Any]:
    from sklearn.decomposition import NMF

    model = NMF(n_topics, random_state=0)
    weights = model.fit_transform(X) * model.components_.sum(axis=1)
    return model.components_, weights / np.maximum(weights.sum(axis=1, keepdims=True), 1e-30)


def gensim(X: sparse.csr_matrix, n_topics: int) -> tuple[Any, Any]:
    from gensim.matutils import Sparse2Corpus
    from gensim.models import LdaModel

    documents = Sparse2Corpus(X, documents_columns=False)
    words = {column: str(column) for column in range(X.shape[1])}
    model = LdaModel(
        documents, n_topics, words, chunksize=1000, passes=10, eval_every=None, random_state=0
    )
    shares = model.inference(documents)[0]
    return model.get_topics(), shares / shares.sum(axis=1, keepdims=True)


def lsi(X: sparse.csr_matrix, n_topics: int) -> tuple[Any, Any]:
    from sklearn.decomposition import TruncatedSVD
    from sklearn.feature_extraction.text import TfidfTransformer

    embedding = TruncatedSVD(n_topics, random_state=0).fit_transform(
        TfidfTransformer().fit_transform(X)
    )
    return None, embedding


FITS = {
    "annealvi": annealvi,
    "annealvi, n_init=1": annealvi_one_run,
    "tomotopy": tomotopy,
    "scikit-learn LDA": scikit_learn,
    "NMF": nmf,
    "gensim": gensim,
    "LSI": lsi,
}


def measure(size: str, name: str) -> dict[str, Any]:
    """Fit, and compare the result with the planted programs and types."""
    from sklearn.cluster import KMeans
    from sklearn.metrics import adjusted_rand_score
    from sklearn.preprocessing import normalize

    X, programs, types = load(size)
    before = resident("VmRSS")
    begin = time.process_time()
    forget_peak()
    topics, shares = FITS[name](X, len(programs))
    results = {"cpu": time.process_time() - begin, "mb": resident("VmHWM") - before}
    if topics is None:
        place = normalize(shares[:, 1:])
        results["recovered"] = None
        results["rare"] = None
    else:
        cosines = normalize(np.asarray(topics, np.float64)) @ normalize(programs.astype(float)).T
        rows, columns = linear_sum_assignment(-cosines)
        good = {int(k) for k in columns[cosines[rows, columns] > 0.9]}
        results["recovered"] = len(good) / len(programs)
        results["rare"] = len(good & set(RARE)) / len(RARE)
        place = np.sqrt(np.maximum(shares, 0))
    clusters = KMeans(int(types.max()) + 1, n_init=10, random_state=0).fit_predict(place)
    results["ari"] = float(adjusted_rand_score(types, clusters))
    return results | {"entries": int(X.nnz), "programs": len(programs)}


def fit(size: str, only: list[str]) -> None:
    """Measure libraries that have no result yet, each in a separate process."""
    environment = os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    load(size)
    for name in only or FITS:
        command = [sys.executable, "-m", "bench.studies.cells", "one", size, "--only", name]
        done = subprocess.run(command, cwd=CHECKOUT, env=environment, stdout=subprocess.PIPE)
        if done.returncode:
            print(f"{name}: the process ended with status {done.returncode}")
            continue
        known = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
        known.setdefault(size, {})[name] = json.loads(done.stdout.decode().splitlines()[-1])
        RESULTS.write_text(json.dumps(known, indent=1) + "\n")
        print(size, name, known[size][name], flush=True)


# ------------------------------------------------------------------------------- report


def report() -> None:
    """Write the table into the page, between its markers."""
    known = json.loads(RESULTS.read_text())
    rows = []
    for size in SIZES:
        for name in FITS:
            of = known.get(size, {}).get(name)
            if of is None:
                command = f'`python -m bench.studies.cells fit {size} --only "{name}"`'
                rows.append([size, name, "not run", command, "", "", ""])
                continue
            numbers = [
                f"{of[key]:.2f}" if of[key] is not None else "–" for key in ("recovered", "rare")
            ]
            rows.append(
                [size, name, *numbers, f"{of['ari']:.2f}", f"{of['cpu']:,.0f}", f"{of['mb']:,.0f}"]
            )
    text = table(["size", "library", "recovered", "rare", "ARI", "CPU s", "MB"], rows)
    between_markers(CHECKOUT / "docs" / "do" / "cells.md", text)


def main() -> None:
    options = parser(__doc__)
    options.add_argument("action", choices=["fit", "one", "report"])
    options.add_argument("size", nargs="?", choices=SIZES, default="small")
    options.add_argument("--only", nargs="*", default=[], choices=FITS)
    chosen = options.parse_args()
    if chosen.action == "fit":
        fit(chosen.size, chosen.only)
    elif chosen.action == "one":
        print(json.dumps(measure(chosen.size, chosen.only[0])))
    else:
        report()


if __name__ == "__main__":
    main()
