"""The learned temperature as Mandt et al. (2016) print it: what each log C(T) over the prior does.

    python -m bench.studies.printed_temperature [--documents 1000] [--topics 20] [--seeds 3]

The bundled abstracts, online in minibatches of 100, tau = 10, kappa = .7, 10 passes, without
damping (``Variational.as_printed``).  log C(T) over the prior is taken in four ways: the closed
Jensen bound of the explicit form, which ``as_printed()`` uses; Monte Carlo in the explicit form;
Eq. 18 as printed, which is Monte Carlo in the collapsed form; and Jensen's bound in that form.  The
priors are alpha = eta = 1/K, and .1 and .01.  For each the table has the learned T after the first
step, its range from then on and its end, held-out log-likelihood per word at T = 1, and the least
effective sample size of the Monte Carlo estimate.  With the plain and the annealed fit beside them.
"""

from __future__ import annotations

import time
import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from annealvi import TemperedLDA, Variational
from annealvi.datasets import load_arxiv_abstracts
from annealvi.metrics import document_completion
from annealvi.models.lda_prior import LDAPrior
from annealvi.partition import LogPartition, exponential_grid, log_partition
from bench import parser
from bench.markdown import spread, table

HEAD = ["alpha, eta", "log C(T)", "draws that count", "seconds for log C"]
HEAD += ["T after one step", "T from then on", "T at the end", "held out per word"]
#: What log C(T) is called in the table, and how it is estimated.
NORMALISERS = {
    "Jensen, explicit: `as_printed()`": ("explicit", "jensen"),
    "Monte Carlo, explicit": ("explicit", "monte-carlo"),
    "Monte Carlo, collapsed: Eq. 18": ("collapsed", "monte-carlo"),
    "Jensen, collapsed": ("collapsed", "jensen"),
}


def normaliser(X: Any, prior: dict[str, Any], form: Any, method: str, seed: int) -> LogPartition:
    """log C(T) over the prior, for documents of the lengths of X."""
    return log_partition(
        LDAPrior.from_counts(X, form=form, **prior),
        exponential_grid(10, 100),
        method,
        random_state=seed,
        n_jobs=2,
    )


def fit(X: Any, prior: dict[str, Any], temperature: Any, seed: int) -> TemperedLDA:
    """An online fit of the mean field, with T as given."""
    return TemperedLDA(
        **prior,
        temperature=temperature,
        preset="sklearn",
        learning_method="online",
        learning_decay=0.7,
        batch_size=100,
        max_iter=10,
        random_state=seed,
    ).fit(X)


def shown(temperatures: NDArray[np.float64]) -> list[str]:
    """T after the first step, its range from then on, and its end, over all seeds."""
    first, rest = temperatures[:, 1], temperatures[:, 1:]
    return [
        f"{first.min():.2f} to {first.max():.2f}",
        f"{rest.min():.2f} to {rest.max():.2f}",
        f"{temperatures[:, -1].min():.2f} to {temperatures[:, -1].max():.2f}",
    ]


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--documents", type=int, default=1000)
    options.add_argument("--topics", type=int, default=20)
    options.add_argument("--seeds", type=int, default=3)
    arguments = options.parse_args()
    warnings.simplefilter("ignore")
    abstracts = load_arxiv_abstracts().data
    X, held_out = abstracts[: arguments.documents], abstracts[-300:]
    rows = []
    for alpha, eta in ((1 / arguments.topics, 1 / arguments.topics), (0.1, 0.01)):
        prior = dict(n_components=arguments.topics, doc_topic_prior=alpha, topic_word_prior=eta)
        for temperature in (1, "annealed"):
            fits = [fit(X, prior, temperature, seed) for seed in range(arguments.seeds)]
            scores = [document_completion(lda, held_out) for lda in fits]
            name = "none: T = 1" if temperature == 1 else "none: annealed"
            rows.append([f"{alpha:g}, {eta:g}", name, *["–"] * 5, spread(scores)])
        for name, (form, method) in NORMALISERS.items():
            began = time.perf_counter()
            log_cs = [normaliser(X, prior, form, method, seed) for seed in range(arguments.seeds)]
            seconds = (time.perf_counter() - began) / arguments.seeds
            fits = [
                fit(X, prior, Variational.as_printed(log_c), seed)
                for seed, log_c in enumerate(log_cs)
            ]
            scores = [document_completion(lda, held_out) for lda in fits]
            draws = "–"
            if method == "monte-carlo":
                least = min(float(np.min(c.effective_sample_size)) for c in log_cs)
                draws = f"{least:.2f} of 100"
            path = np.array([lda.temperature_path_ for lda in fits])
            row = [f"{alpha:g}, {eta:g}", name, draws, f"{seconds:.1f}", *shown(path)]
            rows.append([*row, spread(scores)])
            print(rows[-1], flush=True)
    print(table(HEAD, rows))


if __name__ == "__main__":
    main()
