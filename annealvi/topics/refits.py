"""Refits: how much topics depend on the random seed of a fit and on the choice of documents."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral
from typing import Any
from warnings import catch_warnings, simplefilter

import numpy as np
from joblib import Parallel, cpu_count, delayed, effective_n_jobs
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from annealvi.checks import Interval, check_counts, validated
from annealvi.lda import TemperedLDA
from annealvi.metrics import topic_checksum
from annealvi.topics.choice import unwatched
from annealvi.topics.source import counts_of, lda_of, number_of_topics, seed_of
from annealvi.topics.trust import LEAST_SIMILARITY, pairs


@dataclass(eq=False, repr=False)
class Refits:
    """Topics of refits, matched one to one with the topics of the fit; returned by `refit`.

    Parameters
    ----------
    similarity, shares, checksum : ndarray, ndarray, str
        The attributes of the same names.

    Attributes
    ----------
    similarity : ndarray of shape (n, K)
        Cosine of each topic with its match in each refit.
    found : ndarray of shape (n, K) of bool
        Whether each refit found each topic: the cosine is at least 0.7.
    found_again : ndarray of shape (K,)
        Share of the refits that found each topic.
    shares : ndarray of shape (n, D, K) of float32
        Shares of the matching topics in all documents, for each refit.
    checksum : str
        :func:`annealvi.metrics.topic_checksum` of the model that was fitted again.
    """

    similarity: NDArray
    shares: NDArray
    checksum: str

    def __post_init__(self) -> None:
        self.found: NDArray = self.similarity >= LEAST_SIMILARITY
        self.found_again: NDArray = self.found.mean(axis=0)

    def __repr__(self) -> str:
        n, n_topics = self.similarity.shape
        return (
            f"<{n} refits of {n_topics} topics: on average a refit found "
            f"{self.found_again.mean():.0%} of the topics again>"
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
    random_state: Any = None,
    n_jobs: int | None = None,
    verbose: int = 0,
) -> Refits:
    """Fit the model n more times with other seeds, each time to a bootstrap sample of documents.

    The topics of each refit are matched one to one with the topics of the model, to maximise the
    sum of the cosines between matched topics.  Differences between refits show how uncertain the
    topics are, and the intervals of :meth:`TopicSummary.effects` allow for this uncertainty.

    Parameters
    ----------
    model : fitted TopicModel or TemperedLDA
        The model, which is not changed.  Refits use its parameters and its vocabulary.
    documents : iterable of str, or {array-like, sparse matrix} of shape (D, V)
        The documents to which the model was fitted: texts for a TopicModel, otherwise word counts.
    n : int, default=10
        Number of refits.
    random_state : int, RandomState instance or None, default=None
        Random seed for the draws of documents and for the refits.  None means the `random_state` of
        the model, or 0 if that is not an int.
    n_jobs : int, default=None
        Number of refits at the same time, each in one thread.  The number does not change the
        result.  None means 1, or the setting of a :obj:`joblib.parallel_config` context.  -1 means
        as many refits as there are processors, which divides the time by about that number.
    verbose : int, default=0
        How much is printed during the fits, as in joblib.  If it is not 0, and refits are made one
        after the other, a line says how many ``n_jobs=-1`` would make at the same time.

    Returns
    -------
    Refits
        The result, with the attributes `similarity`, `found_again` and `shares`.

    Raises
    ------
    NotFittedError
        If the model is not fitted.
    TypeError
        If `model` is not a model of annealvi.
    ValueError
        If the words of the documents are not those of the model, or a parameter is out of range.

    See Also
    --------
    annealvi.topics.describe : Makes refits for a summary, if you pass their number as `refits`.

    Examples
    --------
    >>> from annealvi import TemperedLDA
    >>> from annealvi.datasets import make_topic_corpus
    >>> from annealvi.topics import refit
    >>> X = make_topic_corpus(300, 100, 4, random_state=0).data
    >>> lda = TemperedLDA(4, random_state=0).fit(X)
    >>> refit(lda, X, 3)
    <3 refits of 4 topics: on average a refit found 100% of the topics again>
    """
    lda = lda_of(model)
    X = counts_of(model, documents, "refit")
    check_counts(X)
    rng = check_random_state(seed_of(lda) if random_state is None else random_state)
    # all random numbers are drawn before the first fit, so that the order of fits has no influence:
    # for each refit the rows of a bootstrap sample, and a seed
    samples = [
        (np.sort(rng.randint(X.shape[0], size=X.shape[0])), int(rng.randint(2**31 - 1)))
        for _ in range(int(n))
    ]
    if verbose and effective_n_jobs(n_jobs) == 1:
        print(f"With n_jobs=-1, up to {cpu_count()} of the {n} refits are made at the same time.")
    run = Parallel(n_jobs=n_jobs, prefer="threads", verbose=int(verbose))
    with catch_warnings():  # the original fit has already warned if it was short
        simplefilter("ignore", ConvergenceWarning)
        fits = run(delayed(_one)(lda, X, rows, seed) for rows, seed in samples)
    similarity, shares = zip(*fits, strict=True)
    return Refits(np.array(similarity), np.array(shares), topic_checksum(lda))


def _one(lda: TemperedLDA, X: Any, rows: NDArray, seed: int) -> tuple[NDArray, NDArray]:
    """Make a refit to these rows of X, with one thread; return its topics matched to those of lda.

    Returned are the cosines of the matches, and the shares of the matches in all documents.
    """
    fit = unwatched(lda, n_components=number_of_topics(lda), random_state=seed, n_jobs=1)
    if not isinstance(lda.init, str):
        fit.set_params(init="auto")  # with an array, all refits would find the same topics
    fit.fit(X[rows])
    # the match of each topic, in the order of the topics of lda
    _, columns, similarity = pairs(lda.components_, fit.components_)
    return similarity, fit.transform(X)[:, columns].astype(np.float32)
