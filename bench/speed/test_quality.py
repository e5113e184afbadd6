"""Time to quality: the seconds that a library needs to reach a held-out score.

    make bench

Every library is fitted until its score no longer rises, or until it has taken many times as long as
another library.  There are two pairs of priors: alpha = 0.1 with eta = 0.01, tomotopy's defaults,
and a larger eta.  After each pass, or every few sweeps, bench/studies/fold_in.py scores the topics,
with settings chosen on validation documents.  Times are CPU seconds of the process in passes,
without preparation and evaluation.
"""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np
import pytest

from annealvi import Annealed
from bench.adapters import RIVALS, SCIKIT_LEARN, annealvi_lda
from bench.problems import QUALITY_PROBLEMS
from bench.studies import fold_in

#: The share of the documents for validation.  The same number of documents is scored.
HELD_OUT = 0.1
PRIORS = {"bbc_news": [(0.1, 0.01), (0.1, 0.25)], "debian_desc": [(0.1, 0.01), (0.1, 0.1)]}
#: The number of passes, and of passes between two readings of the topics.
PASSES = {
    "scikit-learn": (6, 1),
    "gensim": (5, 1),
    "Vowpal Wabbit": (10, 1),
    "BigARTM": (20, 2),
    "tomotopy": (200, 20),
}
#: The first temperatures of annealvi's fits, in which T falls linearly.
STARTS = {"bbc_news": 1.4, "debian_desc": 2.5}
OPTIONS = dict(learning_method="online", learning_offset=2, max_iter=5)
LENGTH = 0.7


def split(X):
    """Divide documents into training, validation and test documents."""
    n = X.shape[0]
    held_out = int(HELD_OUT * n)
    return X[: n - 2 * held_out], X[n - 2 * held_out : n - held_out], X[n - held_out :]


def watched(one_pass, n_passes, interval):
    """Yield the seconds so far and the topics, after every `interval` passes."""
    path = []
    spent = 0.0
    for done in range(1, n_passes + 1):
        began = time.process_time()
        one_pass()
        spent += time.process_time() - began
        if done % interval == 0:
            path.append((spent, one_pass.topics()))
    return path


def scored(path, validation, test):
    """Score all topics of a fit, with the fold-in that is best for its last topics."""
    chosen = fold_in.choose(path[-1][1], validation)
    curve = [
        (seconds, chosen.score(topics, validation), chosen.score(topics, test))
        for seconds, topics in path
    ]
    return {"curve": curve, "fold_in": list(chosen)}


def keep(benchmark, problem, library, fit, X):
    """Fit once, and store the scores in the benchmark."""
    train, validation, test = split(X)
    path = benchmark.pedantic(fit, args=(train,), rounds=1)
    benchmark.extra_info |= scored(path, validation, test) | {
        "corpus": problem.corpus,
        "n_topics": problem.n_topics,
        "documents": [train.shape[0], validation.shape[0], test.shape[0]],
        "library": library,
        "alpha": problem.alpha,
        "eta": problem.eta,
    }


def with_priors():
    for problem in QUALITY_PROBLEMS:
        for alpha, eta in PRIORS[problem.corpus]:
            yield replace(problem, alpha=alpha, eta=eta)


priors = pytest.mark.parametrize(
    "problem", list(with_priors()), ids=lambda p: f"{p}-{p.alpha}-{p.eta}"
)


@priors
@pytest.mark.parametrize("library", [SCIKIT_LEARN, *RIVALS], ids=lambda library: library.name)
@pytest.mark.benchmark(timer=time.process_time, group="quality")
def test_rival(benchmark, load, adapter, problem, library):
    X = load(problem)
    theirs = adapter(library)
    options = {"smooth": True} if library.name == "BigARTM" else {}
    n_passes, interval = PASSES[library.name]

    def fit(train):
        return watched(theirs.start(problem, train, **options), n_passes, interval)

    keep(benchmark, problem, library.name, fit, X)


@pytest.mark.parametrize("problem", QUALITY_PROBLEMS, ids=str)
@pytest.mark.benchmark(timer=time.process_time, group="quality")
def test_plsa(benchmark, load, adapter, problem):
    """Fit BigARTM without priors."""
    library = next(library for library in RIVALS if library.name == "BigARTM")
    X = load(problem)
    theirs = adapter(library)
    n_passes, interval = PASSES[library.name]

    def fit(train):
        return watched(theirs.start(problem, train), n_passes, interval)

    keep(benchmark, problem, "BigARTM, PLSA", fit, X)


@priors
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.benchmark(timer=time.process_time, group="quality")
def test_annealvi(benchmark, load, problem, dtype):
    """Fit annealvi with annealing, in minibatches of 128."""
    problem = replace(problem, batch_size=128)
    temperature = Annealed(STARTS[problem.corpus], shape="linear", length=LENGTH)

    def fit(train):
        return annealvi_lda.fit(problem, train, np.dtype(dtype), temperature=temperature, **OPTIONS)

    keep(benchmark, problem, f"annealvi, {dtype}", fit, load(problem))
