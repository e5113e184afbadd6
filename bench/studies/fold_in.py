"""One evaluator for the topics of every library: held-out log-likelihood per word."""

from __future__ import annotations

import warnings
from itertools import product
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from annealvi import TemperedLDA
from annealvi.metrics import document_completion

#: Pseudo-counts behind E[beta]: so many that q(beta) is a point.
CERTAINTY = 1e12
#: Priors of theta and shares of uniform noise in the topics, from which validation chooses.
ALPHAS = (0.01, 0.03, 0.1, 0.3, 1.0)
NOISE = (1e-6, 1e-3)


class FoldIn(NamedTuple):
    """How topics are inferred for documents that were not fitted."""

    alpha: float
    noise: float

    def score(self, topics: NDArray[np.float64], X: sparse.csr_matrix) -> float:
        """Document completion of X, in nats per hidden word; the other half gives E[theta]."""
        n_topics, n_features = topics.shape
        smooth = (1 - self.noise) * topics + self.noise / n_features
        lda = TemperedLDA(
            n_topics,
            init=CERTAINTY * smooth,
            doc_topic_prior=self.alpha,
            topic_word_prior=1.0,
            max_iter=0,
            preset="sklearn",
            # given here, so that the evaluator does not change with the defaults
            temperature=1,
            mean_change_tol=1e-3,
            max_doc_update_iter=100,
        )
        with warnings.catch_warnings():  # of perplexity_: such topics lie far from their prior
            warnings.simplefilter("ignore", RuntimeWarning)
            lda.fit(X[:1])
        return document_completion(lda, X)


def choose(topics: NDArray[np.float64], X: sparse.csr_matrix) -> FoldIn:
    """The fold-in with the best score on validation documents."""
    candidates = (FoldIn(*pair) for pair in product(ALPHAS, NOISE))
    return max(candidates, key=lambda fold_in: fold_in.score(topics, X))
