"""Coverage: how often do 95% intervals of effects contain the true effects of simulated corpora?

    python -m bench.studies.coverage --corpora 40

Each corpus has 1,500 documents (--documents) of about L words, 10 topics (--topics) and 600 words
in its vocabulary.  The mean shares of topics depend on two groups, on a trend, and on their
interaction: for each corpus they are drawn at random for both groups at both ends of the trend.
Each document's shares are drawn around the mean from a Dirichlet distribution of concentration 1.
Each corpus is fitted with the default settings.  These intervals are compared on the same corpora:

- those of one fit, from the composition of documents alone;
- those of the same fit with ten refits;
- those of topica's LDA (1,000 sweeps) and its own estimate_effect, if topica is installed.

Topics are matched to the true topics by the cosines of their words.  If fewer than three refits
have found a topic, it has no interval; such topics are counted separately.  More rows of the table
contain only the topics that a given number of refits found.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from scipy import sparse
from scipy.optimize import linear_sum_assignment
from sklearn.metrics.pairwise import cosine_similarity

from annealvi import TemperedLDA
from annealvi.topics import describe
from bench import parser

WORDS = 600
FORMULA = "~ group * trend"
TERMS = ("group", "trend", "group:trend")


def corpus(
    length: int, seed: int, n_documents: int = 1500, n_topics: int = 10
) -> tuple[Any, Any, np.ndarray, np.ndarray]:
    """Draw counts, covariates, the true effects (terms, topics), and the true topics."""
    rng = np.random.default_rng(seed)
    data = pd.DataFrame(
        {"group": np.arange(n_documents) % 2, "trend": rng.uniform(0, 1, n_documents)}
    )
    # mean shares at four points: both groups at both ends of the trend
    corners = rng.dirichlet(np.ones(n_topics), 4).reshape(2, 2, n_topics)
    start = corners[:, 0]
    slope = corners[:, 1] - corners[:, 0]
    effects = np.array([start[1] - start[0], slope[0], slope[1] - slope[0]])
    group = data.group.to_numpy()
    trend = data.trend.to_numpy()[:, np.newaxis]
    means = start[group] + trend * slope[group]
    shares = np.array([rng.dirichlet(mean) for mean in means])
    topics = rng.dirichlet(np.full(WORDS, 0.05), n_topics)
    lengths = np.maximum(rng.poisson(length, n_documents), 1)
    counts = [rng.multinomial(n, p) for n, p in zip(lengths, shares @ topics, strict=True)]
    return sparse.csr_matrix(np.array(counts, np.float64)), data, effects, topics


def outcome(table: Any, fitted_topics: np.ndarray, topics: np.ndarray, effects: np.ndarray) -> dict:
    """Sums over terms and topics: intervals, hits, widths, squared errors, missing intervals."""
    matched, match = linear_sum_assignment(-cosine_similarity(topics, fitted_topics))
    sums = dict.fromkeys(("n", "hits", "width", "squares", "missing"), 0.0)
    for term, truth in zip(TERMS, effects, strict=True):
        rows = table[table.term == term].set_index("topic").loc[match]
        is_estimated = rows.low.notna().to_numpy()
        low, high, middle = (rows[name].to_numpy() for name in ("low", "high", "estimate"))
        sums["n"] += is_estimated.sum()
        sums["missing"] += (~is_estimated).sum()
        sums["hits"] += ((low <= truth[matched]) & (truth[matched] <= high)).sum()
        sums["width"] += (high - low)[is_estimated].sum()
        sums["squares"] += ((middle - truth[matched]) ** 2)[is_estimated].sum()
    return sums


def one(
    length: int, seed: int, with_topica: bool, n_documents: int, n_topics: int
) -> dict[str, dict]:
    """The outcomes of all methods for one corpus."""
    X, data, effects, topics = corpus(length, seed, n_documents, n_topics)
    lda = TemperedLDA(n_topics, random_state=seed).fit(X)
    summaries = {"composition": describe(lda, X), "refits": describe(lda, X, refits=10)}
    outcomes = {
        name: outcome(summary.effects(FORMULA, data).table, summary.topics, topics, effects)
        for name, summary in summaries.items()
    }
    table = summaries["refits"].effects(FORMULA, data).table
    n_found = (10 * table.found_again).round()
    for n in range(11):  # topics that this number of refits found
        only = table.copy()
        only.loc[n_found != n, ["low", "high"]] = np.nan
        outcomes[f"found by {n} refits"] = outcome(
            only, summaries["refits"].topics, topics, effects
        )
    if with_topica:
        table, words = topica_effects(X, data, seed, n_topics)
        outcomes["topica"] = outcome(table, words, topics, effects)
    return outcomes


def topica_effects(X: Any, data: Any, seed: int, n_topics: int) -> tuple[Any, np.ndarray]:
    """The table of topica's effects, with annealvi's column names, and topica's topics."""
    import topica

    documents = [
        [f"w{word:03d}" for word in row.indices for _ in range(int(row[0, word]))] for row in X
    ]
    documents_of_topica = topica.Corpus.from_documents(documents)
    model = topica.LDA(n_topics, seed=seed)
    model.fit(documents_of_topica)
    design = np.column_stack([data.group, data.trend, data.group * data.trend]).astype(float)
    table = topica.estimate_effect(
        model, design, feature_names=list(TERMS), corpus=documents_of_topica, nsims=25, seed=seed
    ).to_frame()
    names = {"feature": "term", "coef": "estimate", "ci_low": "low", "ci_high": "high"}
    topics = np.zeros((n_topics, WORDS))
    topics[:, [int(word[1:]) for word in documents_of_topica.vocabulary]] = model.topic_word
    return table.rename(columns=names), topics


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--corpora", type=int, default=40)
    options.add_argument("--lengths", type=int, nargs="+", default=[10, 40, 150])
    options.add_argument("--documents", type=int, default=1500)
    options.add_argument("--topics", type=int, default=10)
    options.add_argument("--jobs", type=int, default=2)
    arguments = options.parse_args()
    with_topica = find_spec("topica") is not None
    print("| L | intervals | coverage | mean width | root mean square error | none |")
    print("|---|---|---|---|---|---|")
    for length in arguments.lengths:
        results = Parallel(n_jobs=arguments.jobs)(
            delayed(one)(length, seed, with_topica, arguments.documents, arguments.topics)
            for seed in range(arguments.corpora)
        )
        for name in results[0]:
            sums = pd.DataFrame([result[name] for result in results]).sum()
            if not sums.n:
                continue
            print(
                f"| {length} | {name} | {sums.hits / sums.n:.3f} | {sums.width / sums.n:.3f} | "
                f"{np.sqrt(sums.squares / sums.n):.4f} | {sums.missing:.0f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
