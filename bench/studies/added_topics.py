"""Does `add_topics` find the topic of a category that the first fit has not seen?

    python -m bench.studies.added_topics                 # about an hour on one core
    python -m bench.studies.added_topics --topics 20 --seeds 1 --least 350

For each category of the arXiv abstracts (arxiv_texts20k.jsonl.gz) with at least --least documents,
a model is fitted to all other documents, and `add_topics` adds one topic from the documents of the
category and --others of the documents that were fitted, drawn at random.  The table shows the
cosine of the new topic with the nearest topic of a fit to all documents, the share of the new
topic's words that is in documents of the category, and the median and the least cosine of the old
topics before and after.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse
from sklearn.metrics.pairwise import cosine_similarity

from annealvi import TemperedLDA
from annealvi.topics import TopicVectorizer, add_topics
from annealvi.topics.vectorizer import with_stop_words
from bench import parser
from bench.markdown import table
from bench.studies.texts20k import read_abstracts


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--topics", type=int, default=50)
    options.add_argument("--seeds", type=int, default=3)
    options.add_argument("--least", type=int, default=300)
    options.add_argument("--documents", type=int, default=20_000)
    options.add_argument("--others", type=int, default=1000)
    options.add_argument("--archives", action="store_true", help="hold out archives, such as cs")
    chosen = options.parse_args()
    abstracts = read_abstracts(chosen.documents)
    vectorizer = with_stop_words(TopicVectorizer(), "english")
    X = sparse.csr_matrix(vectorizer.fit_transform(abstracts.texts), dtype=np.float64)
    words = vectorizer.get_feature_names_out()
    names = abstracts.categories
    if chosen.archives:
        names = np.array([name.partition(".")[0] for name in names])
    held, counts = np.unique(names, return_counts=True)
    rows = []
    for seed in range(chosen.seeds):
        whole = TemperedLDA(chosen.topics + 1, random_state=seed).fit(X)
        for category, count in zip(held, counts, strict=True):
            if count < chosen.least:
                continue
            own = names == category
            first = TemperedLDA(chosen.topics, random_state=seed).fit(X[~own])
            rng = np.random.default_rng(seed)
            drawn = rng.choice(np.flatnonzero(~own), chosen.others, replace=False)
            model = add_topics(first, X[np.append(np.flatnonzero(own), drawn)], 1)
            kept = cosine_similarity(first.components_, model.components_[:-1]).diagonal()
            new = model.components_[-1:]
            nearest = cosine_similarity(new, whole.components_).max()
            before = cosine_similarity(new, first.components_).max()
            shares = model.transform(X)[:, -1] * np.asarray(X.sum(axis=1)).ravel()
            top = words[np.argsort(-new[0])[:6]]
            rows.append(
                [
                    f"{seed} {category} ({count})",
                    f"{nearest:.2f}",
                    f"{before:.2f}",
                    f"{shares[own].sum() / shares.sum():.0%}",
                    f"{np.median(kept):.3f}",
                    f"{kept.min():.2f}",
                    " ".join(top),
                ]
            )
            print(*rows[-1], flush=True)
    head = ["seed, held out", "fit on all", "nearest old", "in category", "old: median", "least"]
    print(table([*head, "words"], rows))


if __name__ == "__main__":
    main()
