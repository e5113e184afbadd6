"""Refits: how far topics depend on the start of a fit and on which documents were drawn."""

from __future__ import annotations

import warnings
from numbers import Integral
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from annealvi.checks import Interval, check_counts, validated
from annealvi.lda import TemperedLDA
from annealvi.matrices import check_words
from annealvi.metrics import topic_checksum
from annealvi.topics.choice import unwatched
from annealvi.topics.source import counts_of, lda_of, number_of_topics
from annealvi.topics.trust import LEAST_STABILITY, pairs


class Refits:
    """Topics of refits, matched one to one with those of the fit; made by `refit`.

    Parameters
    ----------
    similarity : ndarray of shape (n, K)
    shares : ndarray of shape (n, D, K)
    checksum : str

    Attributes
    ----------
    similarity : ndarray of shape (n, K)
        Cosine of each topic and its match in each refit.
    found : ndarray of shape (n, K) of bool
        Whether the cosine is at least 0.7.
    support : ndarray of shape (K,)
        Share of the refits that found each topic.
    shares : ndarray of shape (n, D, K) of float32
        Shares of the matching topics in all documents, for each refit.
    checksum : str
        :func:`annealvi.metrics.topic_checksum` of the topics that were refitted.
    """

    def __init__(
        self, similarity: NDArray[np.float64], shares: NDArray[np.float32], checksum: str
    ) -> None:
        self.similarity, self.shares, self.checksum = similarity, shares, checksum
        self.found: NDArray[np.bool_] = similarity >= LEAST_STABILITY
        self.support: NDArray[np.float64] = self.found.mean(axis=0)

    def __repr__(self) -> str:
        n, n_topics = self.similarity.shape
        return (
            f"<{n} refits of {n_topics} topics: {self.support.mean():.0%} of the topics are found "
            "again>"
        )


@validated(
    n=[Interval(Integral, 2, None, closed="left")],
    random_state=["random_state"],
    n_jobs=[Integral, None],
    verbose=[Interval(Integral, 0, None, closed="left")],
)
def refit(
    model: Any,
    documents: Any,
    n: int = 10,
    *,
    random_state: Any = 0,
    n_jobs: int | None = -1,
    verbose: int = 0,
) -> Refits:
    """Fit the model several more times, from other seeds and to documents drawn with replacement.

    Topics are matched with those of each refit, one to one, so that the sum of the cosines of their
    words is largest.  Differences between refits then show how certain the topics are, and the
    intervals of :meth:`TopicSummary.effects` allow for them.

    Parameters
    ----------
    model : fitted TopicModel or TemperedLDA
        It is not changed.  Refits use its parameters and its words.
    documents : iterable of str, or {array-like, sparse matrix} of shape (D, V)
        The documents that were fitted: texts for a TopicModel, otherwise word counts.
    n : int, default=10
        Number of refits.
    random_state : int, RandomState instance or None, default=0
        Seed of the draws of documents and of the refits.
    n_jobs : int, default=-1
        Number of refits computed at the same time, each in one thread; -1 means one for each
        processor.  The result does not depend on it.
    verbose : int, default=0
        How much is printed during the fits, as in joblib.

    Returns
    -------
    Refits
        With `similarity`, `support` and `shares`.

    Raises
    ------
    NotFittedError
        If the model is not fitted.
    TypeError
        If the model is not one of annealvi, which cannot refit models of other libraries.
    ValueError
        If the documents have other words than the model, or a parameter is outside its range.

    See Also
    --------
    annealvi.topics.describe : Its parameter `refits` makes them for a summary.

    Examples
    --------
    >>> from annealvi import TemperedLDA
    >>> from annealvi.datasets import make_topic_corpus
    >>> from annealvi.topics import refit
    >>> X = make_topic_corpus(300, 100, 4, random_state=0).data
    >>> lda = TemperedLDA(4, random_state=0).fit(X)
    >>> refit(lda, X, 3)
    <3 refits of 4 topics: 100% of the topics are found again>
    """
    lda = lda_of(model)
    X = check_words(lda, counts_of(model, documents, "documents"), "refit")
    check_counts(X)
    rng = check_random_state(random_state)
    # all is drawn before the first fit, so that it does not matter which is done first
    drawn = [
        (np.sort(rng.randint(X.shape[0], size=X.shape[0])), int(rng.randint(2**31 - 1)))
        for _ in range(int(n))
    ]
    run = Parallel(n_jobs=n_jobs, prefer="threads", verbose=int(verbose))
    with warnings.catch_warnings():  # the fit has warned already, if it was short
        warnings.simplefilter("ignore", ConvergenceWarning)
        fits = run(delayed(_one)(lda, X, rows, seed) for rows, seed in drawn)
    similarity, shares = zip(*fits, strict=True)
    return Refits(np.array(similarity), np.array(shares), topic_checksum(lda))


def _one(
    lda: TemperedLDA, X: Any, rows: NDArray[np.intp], seed: int
) -> tuple[NDArray[np.float64], NDArray[np.float32]]:
    """The cosines of the topics to those of one refit, and the shares of these in all documents."""
    fit = unwatched(lda, n_components=number_of_topics(lda), random_state=seed, n_jobs=1)
    if not isinstance(lda.init, str):
        fit.set_params(init="auto")  # topics to start from would all lead to the same ones
    fit.fit(X[rows])
    _, columns, similarity = pairs(lda.components_, fit.components_)
    return similarity, fit.transform(X)[:, columns].astype(np.float32)
