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
from annealvi.exceptions import BadParameter
from annealvi.metrics import topic_checksum
from annealvi.progress import Progress
from annealvi.topics.choice import unwatched
from annealvi.topics.shares import cluster_numbers
from annealvi.topics.source import counts_of, lda_of, number_of_topics, seed_of, topics_in
from annealvi.topics.trust import LEAST_SIMILARITY, pairs

#: An interval that allows for uncertain topics needs as many refits that found the topic: with two,
#: it would be 12.7 standard errors wide on each side (docs/record/effects.md).
LEAST_REFITS = 3


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
    compared : ndarray of shape (n, K) of bool
        `found`, but False for a topic that fewer than three refits found.  Standard errors are
        computed from these refits, and are NaN if there are none.
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
        self.compared: NDArray = self.found & (self.found.sum(axis=0) >= LEAST_REFITS)

    def __repr__(self) -> str:
        n, n_topics = self.similarity.shape
        return (
            f"<{n} refits of {n_topics} topics: on average a refit found "
            f"{self.found_again.mean():.0%} of the topics again>"
        )

    @property
    def missing(self) -> list[str]:
        """For each topic, why it has no interval; an empty text if it has one."""
        n_refits = len(self.found)
        return [
            ""
            if n_found >= LEAST_REFITS
            else f"{n_found} of {n_refits} refits found the topic; an interval needs {LEAST_REFITS}"
            for n_found in self.found.sum(axis=0).tolist()
        ]


@validated(
    n=[Interval(Integral, 2, None, closed="left")],
    clusters="no_validation",
    random_state=["random_state"],
    n_jobs=[Integral, None],
    verbose=[Interval(Integral, 0, None, closed="left")],
)
def refit(
    model: Any,
    documents: Any,
    n: int = 10,
    *,
    clusters: Any = None,
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
    model : fitted TopicModel, TemperedLDA or TemperedMultinomialMixture
        The model, which is not changed.  Refits use its parameters and its vocabulary.
    documents : iterable of str, or {array-like, sparse matrix} of shape (D, V)
        The documents to which the model was fitted: texts for a TopicModel, otherwise word counts.
    n : int, default=10
        Number of refits.
    clusters : array-like of shape (D,), default=None
        The cluster of each document, such as its author, or the book of a passage.  Each refit then
        draws clusters with replacement, with all their documents, instead of single documents.
    random_state : int, RandomState instance or None, default=None
        Random seed for the draws of documents and for the refits.  None means the `random_state` of
        the model, or 0 if that is not an int.
    n_jobs : int, default=None
        Number of refits at the same time, each in one thread.  The number does not change the
        result.  None means 1, or the setting of a :obj:`joblib.parallel_config` context.  -1 means
        as many refits as there are processors, which divides the time by about that number.
    verbose : int, default=0
        If not 0, the number of refits that are done, the time so far and the time left are shown on
        standard error.  If refits are made one after the other, a line says how many ``n_jobs=-1``
        would make at the same time.

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
        If the words of the documents are not those of the model, a document has no cluster, there
        are fewer than two clusters, or a parameter is out of range.

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
    topics = topics_in(model)
    if not hasattr(topics, "word_prior"):  # of a mixture
        topics = lda_of(model)
    X = counts_of(model, documents, "refit")
    check_counts(X)
    rng = check_random_state(seed_of(topics) if random_state is None else random_state)
    # the number of what a refit draws: of each document, or of its cluster
    positions = np.arange(X.shape[0], dtype=np.intp)
    numbers = positions
    if clusters is not None:
        numbers = cluster_numbers(clusters, X.shape[0], positions)
        if numbers.max() < 1:
            raise BadParameter("clusters", "at least two clusters of documents", 1)
    n_units = numbers.max() + 1
    # all random numbers are drawn before the first fit, so that the order of fits has no influence:
    # for each refit the rows of a bootstrap sample, and a seed
    samples = []
    for _ in range(n):
        n_times = np.bincount(rng.randint(n_units, size=n_units), minlength=n_units)
        rows = np.repeat(positions, n_times[numbers])
        samples.append((rows, int(rng.randint(2**31 - 1))))
    if verbose and n_jobs != -1 and effective_n_jobs(n_jobs) == 1:
        print(f"With n_jobs=-1, up to {cpu_count()} of the {n} refits are made at the same time.")
    run = Parallel(n_jobs=n_jobs, prefer="threads", return_as="generator" if verbose else "list")
    similarity = []
    shares = []
    progress = Progress("refits", len(samples), shown=bool(verbose))
    with catch_warnings(), progress:  # the original fit has already warned if it was short
        simplefilter("ignore", ConvergenceWarning)
        refits = run(delayed(_one)(topics, X, rows, seed) for rows, seed in samples)
        for cosines, matched_shares in refits:
            similarity.append(cosines)
            shares.append(matched_shares)
            progress.n_done += 1
    return Refits(np.array(similarity), np.array(shares), topic_checksum(topics))


def _one(topics: Any, X: Any, rows: NDArray, seed: int) -> tuple[NDArray, NDArray]:
    """Make a refit to these rows of X, with one thread; match its topics to those of the fit.

    Returned are the cosines of the matches, and the shares of the matches in all documents.
    """
    fit = unwatched(topics, n_components=number_of_topics(topics), random_state=seed, n_jobs=1)
    if not isinstance(topics.init, str):  # with an array, all refits would find the same topics
        fit.set_params(init=type(topics)().init)
    fit.fit(X[rows])
    # the match of each topic, in the order of the topics of the fit
    _, columns, similarity = pairs(topics.components_, fit.components_)
    return similarity, np.asarray(fit.transform(X), np.float32)[:, columns]
