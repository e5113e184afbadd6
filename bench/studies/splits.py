"""The corpora of the quality study, and which documents train, validate and test."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import sparse

from annealvi.datasets import load_corpus

#: The first documents of each corpus; None is all of them.
CORPORA: dict[str, int | None] = {
    "bbc_news": None,
    "debian_desc": None,
    "arxiv_100k": 20_000,
    "20ng_etm": None,
    "reuters21578": None,
    "kos": None,
    "imdb_100k": 20_000,
}
#: Corpora that nothing was chosen on, whole.
OTHERS = ("us_addresses", "ap", "reuters395")
#: Of the permutation: every method, seed and session has the same documents.
SEED = 20_251
#: The share of documents that validate and, as many, that test; and no more than so many.
HELD_OUT, MOST = 0.1, 2_000


class Split(NamedTuple):
    """Rows of one corpus, csr_matrix of float64; the columns are the whole corpus's."""

    train: sparse.csr_matrix
    validation: sparse.csr_matrix
    test: sparse.csr_matrix


def load(corpus: str) -> Split:
    """The documents of a corpus, empty ones left out, in a fixed random order.

    Parameters
    ----------
    corpus : str
        A key of CORPORA, or one of OTHERS.

    Returns
    -------
    Split

    Raises
    ------
    FileNotFoundError
        Where `load_corpus` does not find it.
    """
    X = sparse.csr_matrix(load_corpus(corpus).data)[: CORPORA.get(corpus)].astype(np.float64)
    X = X[np.diff(X.indptr) > 0]
    order = np.random.default_rng(SEED).permutation(X.shape[0])
    held_out = min(int(HELD_OUT * X.shape[0]), MOST)
    test, validation, train = np.split(order, [held_out, 2 * held_out])
    return Split(X[train], X[validation], X[test])
