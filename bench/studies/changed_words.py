"""Does `TopicSummary.words_over_time` find words that were planted, and only those?

    python -m bench.studies.changed_words            # about ten minutes on one core
    python -m bench.studies.changed_words --documents 5000 --seeds 1

The documents are arXiv abstracts (arxiv_texts20k.jsonl.gz), whose dates are permuted, so that no
word of theirs changes.  A first fit finds the topics.  For each of ten sizes, a new word is then
added to each topic: from 2010 on, every token of the topic is followed by the new word with a
probability of this size.  A second fit, which starts from the topics of the first, has the planted
words in its counts.  A word is found if `words_over_time` lists it, which it does if its
interval excludes 0.  The table shows the share of planted words that are found, by size, and the
share of all other words with a count of at least five that are listed.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse

from annealvi import TemperedLDA
from annealvi.topics import TopicVectorizer, describe
from annealvi.topics.vectorizer import with_stop_words
from bench import parser
from bench.markdown import table
from bench.studies.texts20k import read_abstracts

SIZES = (0.0002, 0.0005, 0.001, 0.0015, 0.002, 0.0025, 0.003, 0.004, 0.006, 0.01)
SINCE = 2010


def planted(
    X: sparse.csr_matrix, theta: np.ndarray, topics: np.ndarray, later: np.ndarray, rng
) -> sparse.csr_matrix:
    """Return counts of the planted words, with len(SIZES) columns for each topic."""
    probabilities = topics / topics.sum(axis=1, keepdims=True)
    rows = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
    columns = []
    p = np.einsum("nk,kn->n", theta[rows], probabilities[:, X.indices])
    for k in range(len(topics)):
        own = X.data * theta[rows, k] * probabilities[k, X.indices] / p
        tokens = np.round(np.bincount(rows, own, X.shape[0])).astype(int)
        columns += [rng.binomial(tokens * later, size) for size in SIZES]
    return sparse.csr_matrix(np.array(columns).T)


def found(seed: int, n_documents: int, n_topics: int, freq: str) -> tuple[np.ndarray, float]:
    """Return whether each planted word was found, of shape (n_topics, 10), and the error rate."""
    rng = np.random.default_rng(seed)
    abstracts = read_abstracts(n_documents)
    vectorizer = with_stop_words(TopicVectorizer(), "english")
    X = sparse.csr_matrix(vectorizer.fit_transform(abstracts.texts), dtype=np.float64)
    years = rng.permutation(abstracts.years)
    lda = TemperedLDA(n_topics, random_state=seed).fit(X)
    new = planted(X, lda.transform(X), lda.components_, years >= SINCE, rng)
    both = sparse.hstack([X, new], format="csr")
    start = np.full((n_topics, both.shape[1]), lda.components_.min())
    start[:, : X.shape[1]] = lda.components_
    again = TemperedLDA(n_topics, init=start, temperature=1, random_state=seed).fit(both)
    words = [*vectorizer.get_feature_names_out(), *(f"planted{i}" for i in range(new.shape[1]))]
    summary = describe(again, both, words)
    hits = np.zeros((n_topics, len(SIZES)), bool)
    n_wrong = n_others = 0
    for k in range(n_topics):
        listed = set(summary.words_over_time(k, years, freq, n=10**6).word)
        names = [f"planted{k * len(SIZES) + i}" for i in range(len(SIZES))]
        hits[k] = [name in listed for name in names]
        every = summary.words_by_group(k, ["all"] * (len(years) - 1) + ["last"], n=None)
        counts = every.groupby("word")["count"].sum()
        others = {w for w in counts.index[counts >= 5] if not w.startswith("planted")}
        n_wrong += len(others & listed)
        n_others += len(others)
    return hits, n_wrong / n_others


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--documents", type=int, default=20_000)
    options.add_argument("--topics", type=int, default=20)
    options.add_argument("--seeds", type=int, default=3)
    options.add_argument("--freq", default="year")
    chosen = options.parse_args()
    rows = []
    for seed in range(chosen.seeds):
        hits, wrong = found(seed, chosen.documents, chosen.topics, chosen.freq)
        rows.append([str(seed), *(f"{share:.0%}" for share in hits.mean(axis=0)), f"{wrong:.2%}"])
        print(rows[-1], flush=True)
    print(table(["seed", *(f"{size:g}" for size in SIZES), "others"], rows))


if __name__ == "__main__":
    main()
