"""The corpora of the quality study, and their division into training, validation and test parts."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import sparse

from annealvi.datasets import load_corpus

#: How many documents of each corpus are used, beginning with the first; None means all.
CORPORA: dict[str, int | None] = {
    "bbc_news": None,
    "debian_desc": None,
    "arxiv_100k": 20_000,
    "20ng_etm": None,
    "reuters21578": None,
    "kos": None,
    "imdb_100k": 20_000,
}
#: Corpora that were not used for any choice.  All their documents are used.
OTHERS = ("us_addresses", "ap", "reuters395")
#: The random seed of the split, which is the same for all methods and all seeds of fits.
SEED = 20_251
#: The share of documents for validation and the same for the test, and the largest number of each.
HELD_OUT = 0.1
MOST = 2_000


class Split(NamedTuple):
    """The parts of a corpus, as csr_matrix of float64 with the columns of the whole corpus."""

    train: sparse.csr_matrix
    validation: sparse.csr_matrix
    test: sparse.csr_matrix


def load(corpus: str) -> Split:
    """Split the documents of a corpus in a fixed random order, without empty documents."""
    return split(sparse.csr_matrix(load_corpus(corpus).data)[: CORPORA.get(corpus)])


def split(X: sparse.csr_matrix) -> Split:
    """Split documents in a fixed random order, without empty documents."""
    X = X[np.diff(X.indptr) > 0].astype(np.float64)
    order = np.random.default_rng(SEED).permutation(X.shape[0])
    held_out = min(int(HELD_OUT * X.shape[0]), MOST)
    test, validation, train = np.split(order, [held_out, 2 * held_out])
    return Split(X[train], X[validation], X[test])
