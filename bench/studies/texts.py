"""Texts: which words to count, and how strongly to believe seed words.

    python -m bench.studies.texts words    [--seeds 3]
    python -m bench.studies.texts seeds    [--seeds 3]

Both read the abstracts of the arXiv as texts from the folder that ANNEALVI_DATA names.

``words`` fits a TopicModel with other limits on rare and frequent words.  NPMI and diversity are
those of the top words.  The last column needs no words: a logistic regression predicts the
category of a tenth of the abstracts from their topics, after it has seen the others.

``seeds`` gives three seed words for each of seven topics, or for one of them.  It prints how many
of the seed words are among the ten top words of their topic, and for how many of the documents
with two tokens of a topic's seed words this topic is the largest.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression

from annealvi import TemperedLDA, TopicModel
from annealvi.datasets import DATA_VARIABLE
from annealvi.metrics import document_completion, topic_coherence, topic_diversity
from annealvi.topics import TopicVectorizer, seeds
from bench import parser

CORPORA = {"arxiv_demo3k_texts": 20, "arxiv_texts20k": 50}
#: Limits that are compared with the defaults; where one varies the other has its default.
MIN_DF = {"arxiv_demo3k_texts": (2, 20), "arxiv_texts20k": (3, 50)}
MAX_DF = (0.1, 0.5)
SEEDS = {
    "quantum gases": ["bose", "atoms", "condensate"],
    "robots": ["robot", "robots", "manipulator"],
    "language": ["language", "sentence", "translation"],
    "knots": ["knot", "knots", "manifold"],
    "plasma": ["plasma", "tokamak", "electron"],
    "databases": ["queries", "database", "query"],
    "security": ["attacks", "malware", "privacy"],
}
WEIGHTS = (0.0, 0.1, 0.5, 1.0, 3.0)


def abstracts(name: str) -> tuple[list[str], list[str]]:
    """Texts and categories of a corpus."""
    path = Path(os.environ[DATA_VARIABLE], f"{name}.jsonl.gz")
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    return [f"{row['title']}. {row['abstract']}" for row in rows], [r["category"] for r in rows]


def words(n_seeds: int) -> None:
    """The table of limits on rare and frequent words."""
    print("| corpus | K | min_df | max_df | words | NPMI | diversity | category found |")
    print("|---|---|---|---|---|---|---|---|")
    for name, K in CORPORA.items():
        texts, categories = abstracts(name)
        y, test = np.array(categories), np.arange(len(texts)) % 10 == 0
        limits: list[tuple[Any, Any]] = [(low, "auto") for low in MIN_DF[name]]
        limits += [("auto", high) for high in MAX_DF]
        for low, high in [("auto", "auto"), *limits]:
            found = []
            for seed in range(n_seeds):
                vectorizer = TopicVectorizer(min_df=low, max_df=high)
                model = TopicModel(K, vectorizer=vectorizer, random_state=seed)
                shares = model.fit_transform(texts)
                X = model.counts(texts)
                logistic = LogisticRegression(C=100.0, max_iter=300)
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")  # it need not converge
                    logistic.fit(shares[~test], y[~test])
                npmi = np.mean(topic_coherence(model.lda_, X))
                right = logistic.score(shares[test], y[test])
                found.append((npmi, topic_diversity(model.lda_), right))
            npmi, diversity, right = np.mean(found, axis=0)
            print(
                f"| {name} | {K} | {low} | {high} | {X.shape[1]} | {npmi:.3f} | {diversity:.2f} "
                f"| {right:.3f} |",
                flush=True,
            )


def seeded(n_seeds: int) -> None:
    """The table of weights of seed words."""
    texts, _ = abstracts("arxiv_demo3k_texts")
    kept = TopicModel(20, seeds=SEEDS, lda=TemperedLDA(max_iter=1), random_state=0).fit(texts)
    X = kept.counts(texts).astype(np.float64)
    columns = {word: column for column, word in enumerate(kept.feature_names_.tolist())}
    test = np.arange(X.shape[0]) % 10 == 0
    print("| topics with seeds | weight | start | in the top ten | largest | NPMI | held out |")
    print("|---|---|---|---|---|---|---|")
    for given in ({}, dict(list(SEEDS.items())[:1]), SEEDS):
        for start in (False, True) if given else (False,):
            for weight in WEIGHTS if given else (0.0,):
                row = [
                    run(X, columns, given or SEEDS, weight, start, s, test) for s in range(n_seeds)
                ]
                top, largest, npmi, score = np.mean(row, axis=0)
                name = "seed words" if start else "usual"
                print(
                    f"| {len(given)} | {weight} | {name} | {top:.1f} of 3 | {largest:.2f} "
                    f"| {npmi:.3f} | {score:.4f} |",
                    flush=True,
                )


def run(
    X: Any, columns: dict[str, int], given: Any, weight: float, start: bool, seed: int, test: Any
) -> tuple[float, ...]:
    """Seed words in the top ten, documents where the topic is the largest, NPMI, held out."""
    K = 20
    n_each = weight / seeds.SEED_PRIOR
    eta = seeds.seeded_prior(given, columns, X, 0.1, K, n_each=n_each, owner="TopicModel")
    init: Any = seeds.seeded_start(given, columns, X, K, seed) if start else "auto"
    lda = TemperedLDA(K, random_state=seed, topic_word_prior=eta, init=init).fit(X[~test])
    shares, top = lda.transform(X), lda.top_words(10)
    hits, largest = [], []
    for topic, listed in enumerate(given.values()):
        places = [columns[word] for word in listed]
        hits.append(len(set(places) & set(top[topic])))
        has = np.asarray(X[:, places].sum(axis=1)).ravel() >= 2
        largest.append(np.mean(shares[has].argmax(axis=1) == topic))
    score = np.mean(document_completion(lda, X[test], random_state=0))
    return np.mean(hits), np.mean(largest), np.mean(topic_coherence(lda, X)), score


def main(arguments: list[str] | None = None) -> int:
    options: argparse.ArgumentParser = parser(__doc__)
    options.add_argument("table", choices=["words", "seeds"])
    options.add_argument("--seeds", type=int, default=3, help="fits for each row")
    args = options.parse_args(arguments)
    (words if args.table == "words" else seeded)(args.seeds)
    return 0


if __name__ == "__main__":
    sys.exit(main())
