"""The problems that every library is timed on."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from scipy import sparse

from annealvi.datasets import load_corpus

#: Documents a minibatch.
BATCH_SIZE = 256


@dataclass(frozen=True)
class Problem:
    """One pass of online LDA with alpha = eta = 1/K over the first documents of a corpus.

    Attributes
    ----------
    corpus : str
        A name that :func:`annealvi.datasets.load_corpus` finds.
    n_documents : int
    n_topics : int
    """

    corpus: str
    n_documents: int
    n_topics: int

    def __str__(self) -> str:
        return f"{self.corpus}-K{self.n_topics}"

    def load(self) -> sparse.csr_matrix:
        """The documents, float64; raises FileNotFoundError where the corpus is absent."""
        return _load(self.corpus)[: self.n_documents]


@cache
def _load(corpus: str) -> sparse.csr_matrix:
    return load_corpus(corpus).data


PROBLEMS = [
    Problem(corpus, 10_000, n_topics)
    for corpus in ("bbc_news", "debian_desc")
    for n_topics in (20, 100)
]
