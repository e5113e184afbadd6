"""Are weak topics missing from other fits, and are the intervals of words wide enough?

    python -m bench.studies.trust

The first table compares fits to the bundled abstracts, and to poliblog5k if it exists, with five
other fits, which have other seeds and documents drawn with replacement.  It shows the share of
topics that `TopicSummary.trust` marks as weak, and how many of the marked topics and of the others
come back, which means that the median cosine of their matches is at least 0.7.  Trust is computed
from the fit alone, or with one more fit.

For the second table, groups of documents are drawn at random, so no word is used differently.  The
table shows the share of 95% intervals of `TopicSummary.words_by_group` that exclude 0, for several
ranges of the word's expected number in the smaller group.  It also shows the share for the variance
of Monroe, Colaresi and Quinn (2008).
"""

from __future__ import annotations

import os
from itertools import pairwise
from pathlib import Path

import numpy as np
from scipy import sparse

from annealvi import TemperedLDA
from annealvi.datasets import DATA_VARIABLE, load_arxiv_abstracts
from annealvi.topics import describe
from annealvi.topics.trust import LEAST_SIMILARITY, match
from bench import parser
from bench.markdown import table

PRIOR = 500.0
COUNTS = (5, 20, 50, np.inf)


def corpora() -> dict[str, sparse.csr_matrix]:
    X_by_name = {"abstracts": sparse.csr_matrix(load_arxiv_abstracts().data)}
    path = Path(os.environ[DATA_VARIABLE]) / "poliblog5k.npz"
    if path.exists():
        saved = np.load(path)
        csr = (saved["data"].astype(np.float64), saved["indices"], saved["indptr"])
        X_by_name["poliblog5k"] = sparse.csr_matrix(csr, shape=tuple(saved["shape"]))
    return X_by_name


def weak(name: str, X: sparse.csr_matrix, n_topics: int, n_seeds: int) -> list[list[str]]:
    marks = {"the fit": [], "the fit and another fit": []}
    back = []
    for seed in range(n_seeds):
        rng = np.random.default_rng(seed)
        lda, second = (TemperedLDA(n_topics, random_state=s).fit(X) for s in (seed, 1000 + seed))
        marks["the fit"] += describe(lda, X).trust.weak.tolist()
        marks["the fit and another fit"] += describe(lda, X, other=second).trust.weak.tolist()
        cosines = []
        for number in range(5):
            drawn = X[rng.integers(X.shape[0], size=X.shape[0])]
            fit = TemperedLDA(n_topics, random_state=100 * (1 + seed) + number).fit(drawn)
            cosines.append(match(lda.components_, fit.components_))
        back += (np.median(cosines, axis=0) >= LEAST_SIMILARITY).tolist()
    rows = []
    came = np.array(back)
    for known, marked in marks.items():
        is_weak = np.array(marked)
        shares = [f"{came[which].mean():.2f}" for which in (is_weak, ~is_weak)]
        rows.append([f"{name}, {n_topics}", known, f"{is_weak.mean():.0%}", *shares])
    return rows


def words(name: str, X: sparse.csr_matrix, n_draws: int) -> list[list[str]]:
    summary = describe(TemperedLDA(20, random_state=0).fit(X), X)
    rng = np.random.default_rng(0)
    ours = []
    theirs = []
    counts = []
    for _ in range(n_draws):
        groups = rng.integers(2, size=X.shape[0])
        for topic in range(0, 20, 3):
            table = summary.words_by_group(topic, groups, n=None, prior=PRIOR).set_index("word")
            one, two = (table[table.group == group] for group in (0, 1))
            y = one["count"]
            rest = two["count"].loc[one.index]
            prior = PRIOR * (y + rest) / (y + rest).sum()
            variance = 1 / (y + prior) + 1 / (rest + prior)
            counts.append(np.minimum(y, rest))
            ours.append((one.low > 0) | (one.high < 0))
            theirs.append(np.abs(one.log_odds) > 1.96 * np.sqrt(variance))
    n, scores, paper = (np.concatenate(each) for each in (counts, ours, theirs))
    rows = []
    for low, high in pairwise(COUNTS):
        in_range = (n >= low) & (n < high)
        size = f"{low:.0f} to {high:.0f}" if np.isfinite(high) else f"{low:.0f} or more"
        shares = [f"{which[in_range].mean():.1%}" for which in (scores, paper)]
        rows.append([name, size, f"{in_range.sum():,}", *shares])
    return rows


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--seeds", type=int, default=3)
    options.add_argument("--draws", type=int, default=20)
    chosen = options.parse_args()
    X_by_name = corpora()
    rows = [
        row
        for name, X in X_by_name.items()
        for K in (20, 50)
        for row in weak(name, X, K, chosen.seeds)
    ]
    head = ["corpus, K", "fits used", "marked weak", "marked: come back", "others: come back"]
    print(table(head, rows), "\n")
    rows = [row for name, X in X_by_name.items() for row in words(name, X, chosen.draws)]
    print(table(["corpus", "expected number", "words", "annealvi", "words independent"], rows))


if __name__ == "__main__":
    main()
