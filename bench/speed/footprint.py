"""Measure the peak memory of TemperedLDA's methods, in multiples of the memory of its topics.

    python -m bench.speed.footprint                               V = 400,000, K = 96, 2 minutes
    python -m bench.speed.footprint --words 1000000 --topics 200      at most 3 GB, 10 minutes

Each row is measured in a separate process with one thread.  The number is the peak of resident
memory minus the memory of imports and documents, divided by the size of lambda, which has
n_components * n_features numbers.  For methods of a fitted estimator, the topics are included, and
the peak during the fit is not.  Documents are random and have 100 words each.  One half of the
words follows Zipf's law, and the other half is uniform.  There are enough documents that 70% of the
vocabulary occurs.  This works only on Linux.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse

from annealvi import TemperedLDA
from bench import CHECKOUT, parser
from bench.speed.memory import forget_peak, resident

#: The number of tokens in a document, and of tokens in all documents per word of the vocabulary.
N_TOKENS = 100
TOKENS_PER_WORD = 2


def documents(n_words: int, dtype: Any) -> sparse.csr_matrix:
    """Draw documents in which 70% of the words occur; see above."""
    rng = np.random.RandomState(0)
    n_documents = TOKENS_PER_WORD * n_words // N_TOKENS
    words = n_words ** rng.random_sample((n_documents, N_TOKENS)) - 1
    words[:, ::2] = rng.randint(n_words, size=words[:, ::2].shape)
    ends = np.arange(n_documents + 1) * N_TOKENS
    X = sparse.csr_matrix(
        (np.ones(words.size, dtype), words.ravel().astype(np.int32), ends), (n_documents, n_words)
    )
    X.sum_duplicates()
    return X


#: A task that is measured: a function of an estimator and documents.  The tasks of the second table
#: begin with a fitted estimator.
Task = Callable[[TemperedLDA, sparse.csr_matrix], Any]
FITS: dict[str, tuple[dict[str, Any], Task]] = {
    "fit": ({}, lambda lda, X: lda.fit(X)),
    "fit, batch": ({"learning_method": "batch"}, lambda lda, X: lda.fit(X)),
    "fit, init='random'": ({"init": "random"}, lambda lda, X: lda.fit(X)),
    "fit, init='documents'": ({"init": "documents"}, lambda lda, X: lda.fit(X)),
    "fit, preset='sklearn'": ({"preset": "sklearn"}, lambda lda, X: lda.fit(X)),
    "fit, estimate='variational'": ({"estimate": "variational"}, lambda lda, X: lda.fit(X)),
    "fit, temperature='variational'": ({"temperature": "variational"}, lambda lda, X: lda.fit(X)),
    "fit, temperature='local'": ({"temperature": "local"}, lambda lda, X: lda.fit(X)),
    "fit, validation_fraction=0.1": ({"validation_fraction": 0.1}, lambda lda, X: lda.fit(X)),
    "fit, evaluate_every=1": ({"evaluate_every": 1}, lambda lda, X: lda.fit(X)),
    "partial_fit, three portions": (
        {},
        lambda lda, X: [lda.partial_fit(X[start::3]) for start in range(3)],
    ),
}
QUESTIONS: dict[str, Task] = {
    "transform": lambda lda, X: lda.transform(X),
    "score": lambda lda, X: lda.score(X),
    "perplexity": lambda lda, X: lda.perplexity(X),
    "document_temperatures": lambda lda, X: lda.document_temperatures(X),
    "components_": lambda lda, X: lda.components_,
    "top_words": lambda lda, X: lda.top_words(),
    "pickle": lambda lda, X: pickle.dumps(lda, protocol=5),
    "document_completion": lambda lda, X: _document_completion(lda, X),
    "partial_fit": lambda lda, X: lda.partial_fit(X[:500]),
}


def _document_completion(lda: TemperedLDA, X: sparse.csr_matrix) -> float:
    from annealvi.metrics import document_completion

    return document_completion(lda, X)


def peak(name: str, n_words: int, n_topics: int, dtype: str) -> float:
    """Measure the peak of one task in this process, in multiples of lambda."""
    X = documents(n_words, dtype)
    size = n_words * n_topics * np.dtype(dtype).itemsize / 1e6
    # a small fit comes first, so that modules that are imported on demand are not counted
    parameters, task = FITS.get(name, ({}, QUESTIONS.get(name)))
    assert task is not None
    parameters = {"dtype": dtype, **parameters}
    small = TemperedLDA(2, random_state=0, max_iter=1, **parameters).fit(X[:200, :500])
    if name in QUESTIONS:
        task(small, X[:200, :500])
    lda = TemperedLDA(n_topics, random_state=0, n_init=1, max_iter=2, **parameters)
    before = resident("VmRSS")
    if name in QUESTIONS:
        lda.fit(X)
    forget_peak()
    task(lda, X)
    return (resident("VmHWM") - before) / size


def measured(name: str, n_words: int, n_topics: int, dtype: str = "float32") -> float:
    """Measure the peak of one task in a new process, in multiples of lambda."""
    command = [sys.executable, "-m", "bench.speed.footprint", "--only", name]
    command += ["--words", str(n_words), "--topics", str(n_topics), "--dtype", dtype]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(
        command, cwd=CHECKOUT, env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise RuntimeError(f"{name}: {done.stderr.strip().splitlines()[-1:]}")
    return float(done.stdout.split()[-1])


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--words", type=int, default=400_000, help="V")
    options.add_argument("--topics", type=int, default=96, help="K")
    options.add_argument("--dtype", choices=["float32", "float64"], default="float32")
    options.add_argument("--only", choices=[*FITS, *QUESTIONS], help="one row, in this process")
    arguments = options.parse_args()
    if arguments.only:
        print(peak(arguments.only, arguments.words, arguments.topics, arguments.dtype))
        return
    print(
        f"| V = {arguments.words:,}, K = {arguments.topics}, {arguments.dtype} | peak / lambda |\n"
        "|---|---|"
    )
    for name in (*FITS, *QUESTIONS):
        print(
            f"| {name} | {measured(name, arguments.words, arguments.topics, arguments.dtype):.2f} |"
        )


if __name__ == "__main__":
    main()
