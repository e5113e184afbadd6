"""The effect of the weight lambda of relevance on the top words of topics.

    python -m bench.studies.relevance [--corpora kos ...] [--topics 50 20 100] [--seeds 1] [--write]

Words are ranked by Sievert and Shirley's relevance, lambda log p(w|k) + (1 - lambda) log
p(w|k)/p(w).  TemperedLDA with default parameters is fitted to a random half of each corpus.  For
each lambda, the script prints the NPMI of the ten top words on the other half and on the fitted
half, their diversity, and the share of documents that contain the median top word.  For the first
number of topics, there is also a table of all corpora.  --write writes the tables to
docs/record/relevance.md.
"""

from __future__ import annotations

import time
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from annealvi import TemperedLDA
from annealvi.datasets import load_corpus
from annealvi.metrics import topic_coherence, topic_diversity
from annealvi.metrics.topics import top_columns
from annealvi.topics import describe
from annealvi.topics.words import relevance_of
from bench import CHECKOUT, parser
from bench.markdown import between_markers, table

#: The number of documents that are drawn from each corpus for both halves; None means all.
CORPORA: dict[str, int | None] = {
    "bbc_news": None,
    "debian_desc": None,
    "arxiv_100k": 10_000,
    "20ng_etm": None,
    "reuters21578": None,
    "kos": None,
    "imdb_100k": 10_000,
}
LAMBDAS = (0.0, 0.2, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
N_WORDS = 10
DOCS = CHECKOUT / "docs" / "record" / "relevance.md"


class Scores(NamedTuple):
    """The scores at one lambda, as means over topics."""

    other: float  # NPMI on documents that were not fitted
    fitted: float  # NPMI on documents that were fitted
    diversity: float
    frequency: float  # share of documents that contain the median top word


def halves(corpus: str) -> tuple[sparse.csr_matrix, sparse.csr_matrix]:
    """Draw documents from a corpus, and divide them into two random halves."""
    try:
        X = sparse.csr_matrix(load_corpus(corpus).data)
    except FileNotFoundError as error:
        raise SystemExit(str(error)) from None
    X = X[np.random.default_rng(0).permutation(X.shape[0])[: CORPORA[corpus]]]
    middle = X.shape[0] // 2
    return X[:middle], X[middle:]


def score(corpus: str, n_topics: int, seed: int) -> dict[float, Scores]:
    """Fit one half, and score the top words at each lambda."""
    fitted, held_out = halves(corpus)
    summary = describe(TemperedLDA(n_topics, random_state=seed).fit(fitted), fitted)
    frequencies = np.bincount(fitted.indices, minlength=fitted.shape[1]) / fitted.shape[0]
    scores = {}
    for weight in LAMBDAS:
        # the metrics rank words by these; any increasing function of relevance gives the same words
        ranks: NDArray = np.exp(
            [relevance_of(topic, summary.word_shares, weight) for topic in summary.topics]
        )
        scores[weight] = Scores(
            float(topic_coherence(ranks, held_out, n_words=N_WORDS).mean()),
            float(topic_coherence(ranks, fitted, n_words=N_WORDS).mean()),
            topic_diversity(ranks, n_words=N_WORDS),
            float(np.median(frequencies[top_columns(ranks, N_WORDS)])),
        )
    return scores


def by_corpus(scores: dict[str, dict[float, Scores]]) -> str:
    """Make the table of NPMI on other documents and of diversity, with a row for each corpus."""
    rows = [
        [name, *(f"{s.other:.3f}, {s.diversity:.2f}" for s in of_corpus.values())]
        for name, of_corpus in scores.items()
    ]
    return table(["corpus", *(f"λ = {weight:g}" for weight in LAMBDAS)], rows)


def means(scores: dict[str, dict[float, Scores]]) -> str:
    """Make the table of means over corpora, with a row for each lambda."""
    rows = []
    for weight in LAMBDAS:
        scores_of_weight = [of_corpus[weight] for of_corpus in scores.values()]
        mean = Scores(*np.mean(scores_of_weight, axis=0))
        best = sum(
            s.other >= of[1.0].other
            for s, of in zip(scores_of_weight, scores.values(), strict=True)
        )
        rows.append(
            [
                f"{weight:g}",
                f"{mean.other:.3f}",
                f"{best} of {len(scores_of_weight)}",
                f"{mean.fitted:.3f}",
                f"{mean.diversity:.2f}",
                f"{100 * mean.frequency:.1f} %",
            ]
        )
    header = [
        "λ",
        "NPMI, other documents",
        "at least that of λ = 1",
        "NPMI, fitted documents",
        "diversity",
        "documents with the median top word",
    ]
    return table(header, rows)


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--corpora", nargs="+", choices=list(CORPORA), default=list(CORPORA))
    options.add_argument("--topics", nargs="+", type=int, default=[50, 20, 100])
    options.add_argument("--seeds", type=int, default=1)
    options.add_argument("--write", action="store_true", help="write the tables to the document")
    arguments = options.parse_args()
    start = time.process_time()
    paragraphs = []
    for n_topics in arguments.topics:
        scores = {}
        for corpus in arguments.corpora:
            runs = [score(corpus, n_topics, seed) for seed in range(arguments.seeds)]
            scores[corpus] = {
                weight: Scores(*np.mean([run[weight] for run in runs], axis=0))
                for weight in LAMBDAS
            }
        paragraphs += [f"Means over the corpora with K = {n_topics}:", means(scores)]
        if n_topics == arguments.topics[0]:
            paragraphs += [f"NPMI on the other documents and diversity, with K = {n_topics}:"]
            paragraphs += [by_corpus(scores)]
    paragraphs.append(f"All fits and scores took {time.process_time() - start:.0f} s of CPU time.")
    print(*paragraphs, sep="\n\n")
    if arguments.write:
        between_markers(DOCS, "\n\n".join(paragraphs))


if __name__ == "__main__":
    main()
