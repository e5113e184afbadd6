"""Which topics do new fits find, and are the intervals of words wide enough?

    python -m bench.studies.trust fits [--corpora ap kos] [--n-topics 10 30] [--seeds 0 1 2]
    python -m bench.studies.trust table
    python -m bench.studies.trust unclear
    python -m bench.studies.trust words [--draws 20]

`fits` compares each default fit with five other fits, which have other seeds and documents drawn
with replacement.  A topic comes back if the median cosine of its matches is at least 0.7.  The
evidence of each topic and the median cosine are added to trust.json after each fit; fits that are
there already are not repeated.  The coefficients of the probability were found on the open corpora;
the other corpora were chosen afterwards, in the order of the list.

`table` prints, from trust.json, how many topics the probability marks as weak, how many of the
marked topics and of the others come back, the calibration of the probability, its area under the
ROC curve (AUC) beside that of each kind of evidence alone, and the coefficients, also without one
corpus at a time.

`unclear` compares the topics that are marked as unclear with those that a reader found meaningless
or mixed.  The reader saw the twelve most relevant words of each topic, and no mark (unclear.json).

For `words`, groups of documents are drawn at random, so no word is used differently.  The table
shows the share of 95% intervals of `TopicSummary.words_by_group` that exclude 0, for several
ranges of the word's expected number in the smaller group.  It also shows the share for the variance
of Monroe, Colaresi and Quinn (2008).
"""

from __future__ import annotations

import gzip
import json
import os
import time
from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import expit
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

from annealvi import TemperedLDA
from annealvi.datasets import DATA_VARIABLE, load_corpus
from annealvi.metrics import topic_coherence
from annealvi.topics import TopicVectorizer, describe, refit
from annealvi.topics.trust import (
    COEFFICIENTS,
    INTERCEPT,
    LEAST_PROBABILITY,
    LEAST_SIMILARITY,
    evidence_of,
    hellinger,
    nearest,
)
from bench import CHECKOUT, parser
from bench.markdown import table

PRIOR = 500.0
COUNTS = (5, 20, 50, np.inf)
RESULTS = CHECKOUT / "bench" / "studies" / "trust.json"
UNCLEAR = CHECKOUT / "bench" / "studies" / "unclear.json"
N_REFITS = 5
N_BINS = 10


class Corpus(NamedTuple):
    """A corpus of the study: numbers of topics, and the largest number of documents."""

    n_topics: tuple[int, ...]
    is_open: bool = True
    n_documents: int | None = None


#: The open corpora, with which the coefficients were found, and the others.
CORPORA = {
    "gadarian": Corpus((3, 10)),
    "us_addresses": Corpus((10, 30, 100)),
    "bbc_news": Corpus((5, 20)),
    "kos": Corpus((10, 50)),
    "poliblog5k": Corpus((20, 50)),
    "arxiv_demo3k": Corpus((20, 50)),
    "reuters395": Corpus((5, 20), is_open=False),
    "ap": Corpus((10, 30), is_open=False),
    "labelled_m10": Corpus((10, 30), is_open=False),
    "labelled_20ng": Corpus((10, 30), is_open=False),
    "arxiv_100k": Corpus((10, 30), is_open=False, n_documents=20_000),
}


def counts_of(name: str) -> sparse.csr_matrix:
    """The counts of a corpus, without empty documents."""
    if name == "gadarian":
        path = Path(os.environ[DATA_VARIABLE]) / "gadarian.jsonl.gz"
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            texts = [json.loads(line)["open_ended_response"] for line in lines]
        X = TopicVectorizer(stop_words="english").fit_transform(texts)
    else:
        X = load_corpus(name).data[: CORPORA[name].n_documents]
    X = sparse.csr_matrix(X).astype(np.float64)
    return X[np.diff(X.indptr) > 0]


def fits(names: Iterable[str], n_topics: list[int] | None, seeds: list[int]) -> None:
    """Add the fits that are not there yet to the results."""
    records = json.loads(RESULTS.read_text("utf-8")) if RESULTS.exists() else []
    done = {(record["corpus"], record["n_topics"], record["seed"]) for record in records}
    for seed in seeds:
        for name in names:
            X = counts_of(name)
            for K in n_topics or CORPORA[name].n_topics:
                if (name, K, seed) not in done:
                    records.append({"corpus": name, "n_topics": K, "seed": seed, **one(X, K, seed)})
                    lines = ",\n".join(json.dumps(record) for record in records)
                    RESULTS.write_text(f"[\n{lines}\n]\n", "utf-8")
                    print(name, K, seed, f"{records[-1]['seconds']:.1f} s", flush=True)


def one(X: sparse.csr_matrix, n_topics: int, seed: int) -> dict[str, Any]:
    """Return the evidence of the topics of a fit, and the median cosines of their matches."""
    began = time.process_time()
    lda = TemperedLDA(n_topics, random_state=seed).fit(X)
    seconds = time.process_time() - began
    sizes = lda.components_.sum(axis=1, dtype=float)
    components = lda.components_ / sizes[:, None]
    values = evidence_of(components, sizes / sizes.sum(), lda.topic_support_)
    values["coherence"] = topic_coherence(components, X)
    values["distinctness"] = nearest(hellinger(components))[0]
    refits = refit(lda, X, N_REFITS, random_state=1000 + seed)
    values["similarity"] = np.median(refits.similarity, axis=0)
    topics = {name: np.round(array, 4).tolist() for name, array in values.items()}
    return {"n_documents": X.shape[0], "seconds": seconds, **topics}


class Topics:
    """The topics of some records: their evidence, and whether they come back."""

    def __init__(self, records: list[dict[str, Any]]) -> None:
        """Join the topics of the records."""
        self.evidence = np.column_stack([joined(records, name) for name in COEFFICIENTS])
        self.coherence = joined(records, "coherence")
        self.come_back = joined(records, "similarity") >= LEAST_SIMILARITY

    def probability(self) -> NDArray:
        """The probability by the coefficients of the package."""
        return expit(INTERCEPT + self.evidence @ np.array(list(COEFFICIENTS.values())))

    def fit(self) -> LogisticRegression:
        """Fit coefficients to these topics."""
        return LogisticRegression(C=1e4, max_iter=1000).fit(self.evidence, self.come_back)


def joined(records: list[dict[str, Any]], name: str) -> NDArray:
    return np.concatenate([record[name] for record in records])


def marks(name: str, topics: Topics, probability: NDArray, least: float) -> list[str]:
    """A row of the table: the topics marked as weak, and how many come back."""
    is_weak = probability < least
    lost = ~topics.come_back
    return [
        name,
        str(len(lost)),
        percent(lost),
        percent(is_weak),
        percent(lost[is_weak]),
        percent(is_weak[lost]),
        percent(topics.come_back[~is_weak]),
        area(topics, probability),
    ]


def percent(values: NDArray) -> str:
    return f"{values.mean():.0%}" if len(values) else "–"


def area(topics: Topics, values: NDArray) -> str:
    """The AUC, if some topics come back and others do not."""
    if topics.come_back.all() or not topics.come_back.any():
        return "–"
    return f"{roc_auc_score(topics.come_back, values):.2f}"


HEAD = (
    *("corpus, K", "topics", "do not come back", "marked weak"),
    *("marked: do not come back", "not coming back: marked", "not marked: come back", "AUC"),
)


def tables() -> None:
    records = json.loads(RESULTS.read_text("utf-8"))
    for is_open in (True, False):
        chosen = [r for r in records if CORPORA[r["corpus"]].is_open == is_open]
        if not chosen:
            continue
        print("\nOpen corpora\n" if is_open else "\nOther corpora\n")
        rows = []
        keys = dict.fromkeys((r["corpus"], r["n_topics"]) for r in chosen)
        for key in sorted(keys, key=lambda key: (list(CORPORA).index(key[0]), key[1])):
            topics = Topics([r for r in chosen if (r["corpus"], r["n_topics"]) == key])
            name = f"{key[0]}, {key[1]}"
            rows.append(marks(name, topics, topics.probability(), LEAST_PROBABILITY))
        topics = Topics(chosen)
        probability = topics.probability()
        rows.append(marks("all", topics, probability, LEAST_PROBABILITY))
        print(table(HEAD, rows), "\n")
        others = np.linspace(0.3, 0.7, 9)
        rows = [marks(f"below {least:.2f}", topics, probability, least) for least in others]
        print(table(HEAD, rows), "\n")
        alone = dict(zip(COEFFICIENTS, topics.evidence.T, strict=True))
        alone |= {"coherence": topics.coherence, "probability": probability}
        rows = [[name, area(topics, values)] for name, values in alone.items()]
        print(table(["evidence", "AUC"], rows), "\n")
        bins = np.array_split(np.argsort(probability, kind="stable"), N_BINS)
        gaps = [abs(probability[b].mean() - topics.come_back[b].mean()) for b in bins]
        rows = [
            ["probability", *(f"{probability[b].mean():.2f}" for b in bins)],
            ["come back", *(f"{topics.come_back[b].mean():.2f}" for b in bins)],
        ]
        print(
            table(["bin", *map(str, range(1, N_BINS + 1))], rows),
            f"\n\nlargest gap {max(gaps):.2f}\n",
        )
        if is_open:
            without(chosen)
    topics = Topics(records)
    rows = [marks("all corpora", topics, topics.probability(), LEAST_PROBABILITY)]
    print(table(HEAD, rows))


def without(records: list[dict[str, Any]]) -> None:
    """Print coefficients of all corpora, and the AUC of each by those of the others."""
    topics = Topics(records)
    model = topics.fit()
    rows = [["none", *(f"{x:.2f}" for x in (*model.intercept_, *model.coef_[0])), ""]]
    probability = np.zeros(len(topics.come_back))
    corpora = np.concatenate([[r["corpus"]] * len(r["support"]) for r in records])
    for name in dict.fromkeys(r["corpus"] for r in records):
        model = Topics([r for r in records if r["corpus"] != name]).fit()
        of_corpus = Topics([r for r in records if r["corpus"] == name])
        values = model.predict_proba(of_corpus.evidence)[:, 1]
        probability[corpora == name] = values
        numbers = (f"{x:.2f}" for x in (*model.intercept_, *model.coef_[0]))
        rows.append([name, *numbers, area(of_corpus, values)])
    print(table(["left out", "intercept", *COEFFICIENTS, "AUC"], rows))
    print(f"\nAUC of each corpus by the others, pooled: {area(topics, probability)}")


def unclear() -> None:
    """Print how many of the topics that a reader did not find clear are marked as unclear."""
    rows = []
    for name, read in json.loads(UNCLEAR.read_text("utf-8")).items():
        corpus = load_corpus(name)
        X = sparse.csr_matrix(corpus.data)[slice(*read["rows"])].astype(np.float64)
        lda = TemperedLDA(20, random_state=0).fit(X)
        marked = describe(lda, X, corpus.feature_names).trust.unclear.to_numpy()
        for kind in ("meaningless", "mixed"):
            rows.append([name, kind, str(len(read[kind])), str(marked[read[kind]].sum())])
        clear = np.ones(20, dtype=bool)
        clear[[*read["meaningless"], *read["mixed"]]] = False
        rows.append([name, "clear", str(clear.sum()), str(marked[clear].sum())])
    print(table(["corpus", "a reader found", "topics", "marked as unclear"], rows))


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
    options.add_argument("what", choices=["fits", "table", "unclear", "words"])
    options.add_argument("--corpora", nargs="+", choices=CORPORA, default=list(CORPORA))
    options.add_argument("--n-topics", nargs="+", type=int)
    options.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    options.add_argument("--draws", type=int, default=20)
    chosen = options.parse_args()
    if chosen.what == "fits":
        fits(chosen.corpora, chosen.n_topics, chosen.seeds)
    elif chosen.what == "table":
        tables()
    elif chosen.what == "unclear":
        unclear()
    else:
        rows = [
            row
            for name, corpus in (("abstracts", "arxiv_demo3k"), ("poliblog5k", "poliblog5k"))
            for row in words(name, counts_of(corpus), chosen.draws)
        ]
        print(table(["corpus", "expected number", "words", "annealvi", "words independent"], rows))


if __name__ == "__main__":
    main()
