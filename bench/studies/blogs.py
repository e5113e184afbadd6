"""Do fits with five seeds lead to the same conclusions?  annealvi and topica's STM are compared.

    python -m bench.studies.blogs

The corpus is poliblog5k, with K = 20 and effects of `~ rating + bs(day, df=5)`.  For each pair of
seeds, topics are matched by the cosines of their words.  Topics with a cosine above 0.7 count as
the same.  For each such topic, the conclusions of both fits about rating are compared: more, less,
or no difference at the level of 5%.  The script prints means over the pairs, and the seconds of a
fit with its effects.
"""

from __future__ import annotations

import time
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
from scipy.optimize import linear_sum_assignment
from sklearn.metrics.pairwise import cosine_similarity

from annealvi import TemperedLDA
from annealvi.datasets import load_corpus
from annealvi.topics import describe, estimate_effects
from bench import parser

K = 20
FORMULA = "~ rating + bs(day, df=5)"
TERM = "rating[T.Liberal]"


def ours(posts: Any, data: Any, seed: int, n_refits: int) -> tuple[np.ndarray, Any]:
    lda = TemperedLDA(K, random_state=seed).fit(posts.data)
    summary = describe(lda, posts.data, refits=n_refits, random_state=seed)
    return summary.topics, summary.effects(FORMULA, data, random_state=seed).table


def of_topica(posts: Any, data: Any, seed: int, start: str) -> tuple[np.ndarray, Any]:
    """The topics and effects of topica's STM; annealvi's `estimate_effects` pools its draws."""
    import formulaic
    import topica

    words = np.asarray(posts.feature_names)
    documents = [
        [words[word] for word, n in zip(row.indices, row.data, strict=True) for _ in range(int(n))]
        for row in posts.data
    ]
    corpus = topica.Corpus.from_documents(documents)
    design = np.asarray(formulaic.model_matrix(FORMULA, data))[:, 1:]
    model = topica.STM(K, seed=seed, init=start)
    model.fit(corpus, prevalence=design)
    draws = topica.posterior_theta_samples(model, nsims=25, seed=seed, uncertainty="global")
    topics = np.zeros((K, len(words)))
    columns = {word: column for column, word in enumerate(words)}
    topics[:, [columns[word] for word in corpus.vocabulary]] = model.topic_word
    return topics, estimate_effects(draws, FORMULA, data).table


def conclusions(table: Any) -> np.ndarray:
    """For each topic, 1 or -1 if liberal blogs have clearly more or less of it, else 0."""
    rows = table[table.term == TERM]
    clear = (rows.low > 0) | (rows.high < 0)
    return (np.sign(rows.estimate) * clear).to_numpy()


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--seeds", type=int, default=5)
    options.add_argument("--without-topica", action="store_true")
    arguments = options.parse_args()
    posts = load_corpus("poliblog5k")
    data = pd.DataFrame({"rating": posts.rating, "day": posts.day})
    methods = {
        "annealvi, topics as given": lambda seed: ours(posts, data, seed, 0),
        "annealvi, ten refits": lambda seed: ours(posts, data, seed, 10),
    }
    if not arguments.without_topica:
        methods["topica's STM, random starts"] = lambda seed: of_topica(posts, data, seed, "random")
    print("| fits | seconds | same topics of 20 | same conclusion | clear effects |")
    print("|---|---|---|---|---|")
    for name, method in methods.items():
        begin = time.perf_counter()
        fits = [method(seed) for seed in range(arguments.seeds)]
        seconds = (time.perf_counter() - begin) / arguments.seeds
        told = [conclusions(table) for _, table in fits]
        same = []
        agree = []
        for a, b in combinations(range(arguments.seeds), 2):
            cosines = cosine_similarity(fits[a][0], fits[b][0])
            rows, columns = linear_sum_assignment(-cosines)
            matched = cosines[rows, columns] > 0.7
            same.append(matched.sum())
            agree.append((told[a][rows] == told[b][columns])[matched].sum())
        clear = np.mean([np.count_nonzero(one) for one in told])
        means = f"{np.mean(same):.1f} | {np.mean(agree):.1f} | {clear:.1f}"
        print(f"| {name} | {seconds:.0f} | {means} |", flush=True)


if __name__ == "__main__":
    main()
