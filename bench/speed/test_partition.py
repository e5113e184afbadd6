"""Speed of log C(T): sums of powers over a grid, and the whole Monte Carlo estimate.

    make bench

Both are compared with NumPy at V = 8,000, K = 500, 100 temperatures and 100 draws of theta for each
beta.  The sums of P**b start from the same word probabilities P, and the kernel's time includes
their logarithms.  The estimate of log C in NumPy is a simple program, with alpha = 0.1 and several
values of eta.  It uses four draws of beta, because each draw takes the same time.  Two threads are
compared with one, for documents with the lengths of the bundled abstracts.
"""

from __future__ import annotations

import time

import numpy as np
import pytest

from annealvi._kernels.layout import padded_rows
from annealvi.datasets import load_arxiv_abstracts
from annealvi.models.lda_prior import LDAPrior
from annealvi.partition import even_grid, exponential_grid, log_partition
from annealvi.partition.estimate import PowerGrid
from bench.speed.pairs import run

V = 8_000
K = 500
N_THETA = 100
N_TEMPERATURES = 100
N_BETA = 4
GRIDS = {"even in 1/T": even_grid, "exponential": exponential_grid}
ALPHA = 0.1
DOCUMENTS = 1_000
WORDS = 80

threads = pytest.mark.parametrize("n_threads", [1, 2])


@pytest.mark.parametrize("kind", GRIDS)
@threads
@pytest.mark.benchmark(timer=time.perf_counter, group="log C")
def test_sums_of_powers(benchmark, kind, n_threads):
    rng = np.random.default_rng(0)
    P = rng.dirichlet(np.full(K, ALPHA), N_THETA) @ rng.dirichlet(np.full(V, 0.1), K)
    b = 1 / GRIDS[kind](10, N_TEMPERATURES)
    grid = PowerGrid(b)
    padded = padded_rows(np.log(P), np.float64, -np.inf)

    def by_numpy():
        return np.stack([(P**x).sum(axis=1) for x in b], axis=1)

    def by_kernel():
        return grid.at_inverses(grid.row_sums(padded, n_threads=n_threads))

    np.testing.assert_allclose(by_kernel(), by_numpy(), rtol=1e-12)
    run(
        benchmark,
        f"sums of P**b, {kind}, {n_threads} thread(s): NumPy",
        time.perf_counter,
        lambda: by_numpy,
        lambda: by_kernel,
    )


def estimate(rng, b, eta):
    """Compute Eq. 18 of Mandt et al. 2016, for DOCUMENTS documents of WORDS words each."""
    estimates = np.empty((N_BETA, len(b)))
    for s in range(N_BETA):
        beta = rng.dirichlet(np.full(V, eta), K)
        theta = rng.dirichlet(np.full(K, ALPHA), N_THETA)
        P = theta @ beta
        logs = WORDS * np.log(np.stack([(P**x).sum(axis=1) for x in b], axis=1))
        largest = logs.max(axis=0)
        estimates[s] = DOCUMENTS * (largest + np.log(np.exp(logs - largest).mean(axis=0)))
    largest = estimates.max(axis=0)
    return largest + np.log(np.exp(estimates - largest).mean(axis=0))


@pytest.mark.parametrize("eta", [0.1, 0.01, 1 / 500])
@threads
@pytest.mark.filterwarnings("ignore:One draw dominates")
@pytest.mark.benchmark(timer=time.perf_counter, group="log C")
def test_monte_carlo(benchmark, eta, n_threads):
    """Time the collapsed form, which the NumPy program computes too."""
    temperatures = exponential_grid(10, N_TEMPERATURES)
    lengths = np.full(DOCUMENTS, WORDS)
    prior = LDAPrior(K, V, lengths, doc_topic_prior=ALPHA, topic_word_prior=eta, form="collapsed")

    def by_annealvi():
        return log_partition(
            prior,
            temperatures,
            "monte-carlo",
            n_samples=N_BETA,
            n_theta=N_THETA,
            random_state=0,
            n_jobs=n_threads,
        ).values

    rng = np.random.default_rng(0)
    # the draws differ, so log C per word is compared, which varies far less
    theirs, ours = (
        x / (DOCUMENTS * WORDS) for x in (estimate(rng, 1 / temperatures, eta), by_annealvi())
    )
    np.testing.assert_allclose(ours, theirs, atol=0.05)
    run(
        benchmark,
        f"log C, eta={eta:g}, {n_threads} thread(s): NumPy",
        time.perf_counter,
        lambda: lambda: estimate(rng, 1 / temperatures, eta),
        lambda: by_annealvi,
    )


@pytest.mark.parametrize("form", ["explicit", "collapsed"])
@pytest.mark.parametrize(("K", "eta", "n_documents"), [(20, 0.05, 1_000), (100, 0.01, 3_000)])
@pytest.mark.filterwarnings("ignore:One draw dominates")
@pytest.mark.benchmark(timer=time.perf_counter, group="log C, two threads")
def test_two_threads(benchmark, form, K, eta, n_documents):
    """Compare the Monte Carlo estimate on two threads with one thread."""
    X = load_arxiv_abstracts().data[:n_documents]
    prior = LDAPrior.from_counts(X, K, topic_word_prior=eta, form=form)

    def estimates(n_threads):
        temperatures = exponential_grid(10, N_TEMPERATURES)
        return lambda: (
            log_partition(
                prior, temperatures, "monte-carlo", n_samples=20, random_state=0, n_jobs=n_threads
            ).values
        )

    np.testing.assert_array_equal(estimates(1)(), estimates(2)())
    run(
        benchmark,
        f"log C, {form}, {n_documents:,} abstracts, K={K}: two threads over one",
        time.perf_counter,
        lambda: estimates(1),
        lambda: estimates(2),
    )
