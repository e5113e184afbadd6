"""What each ingredient of the default is worth, on corpora on which none of it was chosen.

    python -m bench.studies.ablation [--seeds 3] [--topics 20 100] [--corpora ap ...]

The corpora are ``us_addresses`` (presidents' addresses), ``ap`` (news wire) and ``reuters395``,
split as in the quality study (splits.py).  Printed is one table for each corpus and number of
topics, the table of docs/defaults.md.  A row is the default with one thing changed.  It has the
held-out log-likelihood per word of test documents by one evaluator (fold_in.py), whose settings
are chosen on validation documents for each row; coherence (NPMI), diversity, stability between
seeds, and CPU seconds.  tomotopy, where it is installed, makes 200 sweeps, with the one of three
values of eta that validates best.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment
from sklearn.preprocessing import normalize

from annealvi import Annealed, TemperedLDA
from annealvi.lda.defaults import FINISH, PLENTY, passes, words_per_entry
from annealvi.metrics import topic_coherence, topic_diversity, topic_stability
from bench import parser
from bench.adapters import RIVALS, mean_topics
from bench.markdown import spread
from bench.problems import Problem
from bench.studies import fold_in, splits
from bench.studies.study.scores import CHOOSERS

#: Rows by name: parameters of TemperedLDA.  "times" is not one: it multiplies the passes.
VARIANTS: dict[str, dict[str, Any]] = {
    "the default": {},
    'mean-field documents (`document_estimate="variational"`)': {
        "document_estimate": "variational"
    },
    "no finishing passes (`finish_iter=0`)": {"finish_iter": 0},
    "finishing passes everywhere (`finish_iter=15`)": {"finish_iter": 15},
    'exp(E log β) (`topic_estimate="variational"`)': {"topic_estimate": "variational"},
    "no cooling (`temperature=1`)": {"temperature": 1},
    "T0 = 3.9 whatever the corpus": {"temperature": Annealed(3.9, length=1.0)},
    'random documents (`init="documents"`)': {"init": "documents"},
    'random topics (`init="random"`)': {"init": "random"},
    "steps (10 + t)^-0.7 (`learning_decay=0.7`)": {"learning_decay": 0.7},
    "2.5 times the passes": {"times": 2.5},
    "best of three starts (`n_init=3`)": {"n_init": 3},
    '`preset="sklearn"`, online': {"preset": "sklearn", "learning_method": "online"},
    'learned temperature (`"variational"`)': {"temperature": "variational"},
    'one per document (`"local"`)': {"temperature": "local"},
    "learned α": {"doc_topic_prior": "learn"},
    "`validation_fraction=0.1, n_init=3`": {"validation_fraction": 0.1, "n_init": 3},
}
#: A row that is no variant of the parameters.
AVERAGED = "three short fits averaged, then fitted on"
#: Of tomotopy.
SWEEPS, ETAS = 200, (0.01, 0.1, 0.25)

Fit = Callable[[Any, int, int], NDArray[np.float64]]


def ours(times: float = 1.0, **options: Any) -> Fit:
    def fit(X, n_topics, seed):
        lda = TemperedLDA(n_topics, random_state=seed, **options)
        if times != 1:
            finish = FINISH if words_per_entry(X, n_topics) >= PLENTY else 0
            n_passes = max(1, round(times * passes(X.shape[0])))
            lda.set_params(max_iter=n_passes, finish_iter=finish)
        return lda.fit(X).components_

    return fit


def averaged(n_fits: int = 3, short: float = 0.3, rest: float = 0.7) -> Fit:
    """Average the topics of short fits, matched one to one, and fit mildly from there.

    `short` and `rest` are fractions of the passes of the default.
    """

    def fit(X, n_topics, seed):
        topics = [
            ours(short)(X, n_topics, n_fits * seed + number).copy() for number in range(n_fits)
        ]
        matched = [topics[0]]
        for others in topics[1:]:
            similar = normalize(topics[0]) @ normalize(others).T
            matched.append(others[linear_sum_assignment(-similar)[1]])
        mild = Annealed(1.5, length=1.0)
        return ours(rest, init=np.mean(matched, axis=0), temperature=mild)(X, n_topics, seed)

    return fit


def tomotopy(adapter: Any, eta: float) -> Fit:
    def fit(X, n_topics, seed):
        problem = Problem("", X.shape[0], n_topics, 0.1, eta)
        gibbs = adapter.start(problem, X, seed=seed)
        gibbs.one_pass(SWEEPS)
        return gibbs.topics()

    return fit


def qualities(topics: list[NDArray[np.float64]], X: Any) -> tuple[float, float, float]:
    """Mean coherence and diversity of fits, and the stability between them; NaN for one fit."""
    coherence = np.mean([topic_coherence(fitted, X).mean() for fitted in topics])
    diversity = np.mean([topic_diversity(fitted) for fitted in topics])
    pairs = [topic_stability(*pair) for pair in combinations(topics, 2)]
    return float(coherence), float(diversity), float(np.mean(pairs)) if pairs else np.nan


def row(name: str, fit: Fit, split: splits.Split, n_topics: int, seeds: int) -> tuple[float, str]:
    """The validation score and a line of the table."""
    all_topics, seconds = [], []
    for seed in range(seeds):
        began = time.process_time()
        topics = np.asarray(fit(split.train, n_topics, seed), dtype=np.float64)
        seconds.append(time.process_time() - began)
        all_topics.append(mean_topics(topics))
    chosen = fold_in.choose(all_topics[0], split.validation[:CHOOSERS])
    validation = np.mean([chosen.score(topics, split.validation) for topics in all_topics])
    test = [chosen.score(topics, split.test) for topics in all_topics]
    coherence, diversity, stability = qualities(all_topics, split.train)
    return float(validation), (
        f"| {name} | {spread(test)} | {coherence:.3f} "
        f"| {diversity:.2f} | {stability:.2f} | {np.mean(seconds):.2f} |"
    )


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--seeds", type=int, default=3)
    options.add_argument("--topics", type=int, nargs="+", default=[20, 100])
    options.add_argument("--corpora", nargs="+", default=splits.OTHERS)
    arguments = options.parse_args()
    rival = next(library for library in RIVALS if library.name == "tomotopy")
    try:
        adapter = rival.adapter()
    except ImportError:
        adapter = None
    for corpus in arguments.corpora:
        split = splits.load(corpus)
        for n_topics in arguments.topics:
            print(f"\n**{corpus}, K = {n_topics}** ({split.train.shape[0]} documents)\n")
            print(
                "| | held out | NPMI | diversity | stability | seconds |\n|---|---|---|---|---|---|"
            )
            for name, parameters in VARIANTS.items():
                print(
                    row(name, ours(**parameters), split, n_topics, arguments.seeds)[1], flush=True
                )
            print(row(AVERAGED, averaged(), split, n_topics, arguments.seeds)[1], flush=True)
            if adapter is not None:
                candidates = [
                    row(
                        f"tomotopy, η = {eta}",
                        tomotopy(adapter, eta),
                        split,
                        n_topics,
                        arguments.seeds,
                    )
                    for eta in ETAS
                ]
                print(max(candidates)[1], flush=True)


if __name__ == "__main__":
    main()
