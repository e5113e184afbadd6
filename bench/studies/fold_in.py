"""The held-out log-likelihood per word, computed in the same way for topics of all libraries."""

from __future__ import annotations

import warnings
from itertools import product
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from annealvi import TemperedLDA
from annealvi.metrics import document_completion

#: E[beta] is multiplied by this number of pseudo-counts, so that q(beta) is practically a point.
CERTAINTY = 1e12
#: The priors of theta, and the shares of uniform noise in topics, that validation chooses from.
ALPHAS = (0.01, 0.03, 0.1, 0.3, 1.0)
NOISE = (1e-6, 1e-3)


class FoldIn(NamedTuple):
    """The settings of the inference for documents that were not fitted."""

    alpha: float
    noise: float

    def score(self, topics: NDArray[np.float64], X: sparse.csr_matrix) -> float:
        """Score X by document completion, in nats per hidden word; half of the words are hidden."""
        n_topics, n_features = topics.shape
        smooth = (1 - self.noise) * topics + self.noise / n_features
        lda = TemperedLDA(
            n_topics,
            init=CERTAINTY * smooth,
            doc_topic_prior=self.alpha,
            topic_word_prior=1.0,
            max_iter=0,
            preset="sklearn",
            # set explicitly, so that scores do not change if defaults change
            temperature=1,
            mean_change_tol=1e-3,
            max_doc_update_iter=100,
        )
        with warnings.catch_warnings():  # perplexity_ warns, because topics are far from the prior
            warnings.simplefilter("ignore", RuntimeWarning)
            lda.fit(X[:1])
        return document_completion(lda, X)


def choose(topics: NDArray[np.float64], X: sparse.csr_matrix) -> FoldIn:
    """Choose the settings with the best score on validation documents."""
    candidates = (FoldIn(*pair) for pair in product(ALPHAS, NOISE))
    return max(candidates, key=lambda fold_in: fold_in.score(topics, X))
