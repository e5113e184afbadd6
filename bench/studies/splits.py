"""The corpora of the quality study, and their training, validation and test documents."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import sparse

from annealvi.datasets import load_corpus

#: How many documents of each corpus are used, from the first; None means all.
CORPORA: dict[str, int | None] = {
    "bbc_news": None,
    "debian_desc": None,
    "arxiv_100k": 20_000,
    "20ng_etm": None,
    "reuters21578": None,
    "kos": None,
    "imdb_100k": 20_000,
}
#: Corpora on which nothing was chosen; all documents are used.
OTHERS = ("us_addresses", "ap", "reuters395")
#: Seed of the permutation: the same documents for every method and every seed of a fit.
SEED = 20_251
#: Share of the documents that validate, and as many test; and the most documents of each.
HELD_OUT, MOST = 0.1, 2_000


class Split(NamedTuple):
    """Rows of one corpus, csr_matrix of float64; the columns are those of the whole corpus."""

    train: sparse.csr_matrix
    validation: sparse.csr_matrix
    test: sparse.csr_matrix


def load(corpus: str) -> Split:
    """Split the documents of a corpus, in a fixed random order and without empty ones."""
    return split(sparse.csr_matrix(load_corpus(corpus).data)[: CORPORA.get(corpus)])


def split(X: sparse.csr_matrix) -> Split:
    """Split documents in a fixed random order, without empty ones."""
    X = X[np.diff(X.indptr) > 0].astype(np.float64)
    order = np.random.default_rng(SEED).permutation(X.shape[0])
    held_out = min(int(HELD_OUT * X.shape[0]), MOST)
    test, validation, train = np.split(order, [held_out, 2 * held_out])
    return Split(X[train], X[validation], X[test])
