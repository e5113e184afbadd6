"""The problems on which all libraries are timed."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from scipy import sparse

from annealvi.datasets import load_corpus


@dataclass(frozen=True)
class Problem:
    """Online LDA on the first documents of a corpus."""

    corpus: str
    n_documents: int
    n_topics: int
    alpha: float | None = None  # None means 1/K
    eta: float | None = None
    batch_size: int = 256

    def __str__(self) -> str:
        return f"{self.corpus}-K{self.n_topics}"

    @property
    def doc_topic_prior(self) -> float:
        return 1 / self.n_topics if self.alpha is None else self.alpha

    @property
    def topic_word_prior(self) -> float:
        return 1 / self.n_topics if self.eta is None else self.eta

    @property
    def rounds(self) -> int:
        """The number of passes that are timed, which is smaller if passes are long."""
        return 3 if self.n_topics >= 500 or self.corpus == "arxiv_100k" else 5

    def load(self) -> sparse.csr_matrix:
        """Read the documents in float64; raise FileNotFoundError if there is no such corpus."""
        return _load(self.corpus)[: self.n_documents]


@cache
def _load(corpus: str) -> sparse.csr_matrix:
    return load_corpus(corpus).data


CORPORA = ("bbc_news", "debian_desc", "arxiv_100k")
SIZES = (20, 100, 500)
PROBLEMS = [Problem(corpus, 10_000, n_topics) for corpus in CORPORA for n_topics in SIZES]
#: Small problems, in which there is little work for two threads.
SMALL_PROBLEMS = [
    Problem("bbc_news", n_documents, n_topics)
    for n_documents, n_topics in ((1, 100), (10, 100), (1, 2), (10, 2), (2225, 2))
]
#: Problems on which libraries are fitted until their score no longer rises.
QUALITY_PROBLEMS = [
    Problem("bbc_news", 2_225, 100),
    Problem("debian_desc", 10_000, 100),
]
#: A problem with V = 8,000 words, for memory and for the M-step alone.
WIDE_PROBLEM = Problem("arxiv_100k", 2_048, 500)
TRANSFORM_PROBLEM = Problem("arxiv_100k", 10_000, 100)
STREAM_PROBLEM = Problem("arxiv_big", 543_055, 100, alpha=0.1, eta=0.01)
