"""What was found: the topics of a fitted model, for people to read."""

from __future__ import annotations

import os
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils._param_validation import validate_params

from annealvi._optional import import_optional
from annealvi.checks import Interval, check_flag
from annealvi.metrics import topic_coherence, topic_diversity
from annealvi.topics import words as ranking
from annealvi.topics.layout import Similarity, hellinger, places, similarity
from annealvi.topics.shares import by_group, certainty_of, over_time
from annealvi.topics.source import Documents, Source
from annealvi.topics.words import N_WORDS, RELEVANCE, Labels

#: Numbers of top words that coherence and diversity are measured on, as in annealvi.metrics.
_COHERENCE_WORDS, _DIVERSITY_WORDS = 10, 25
#: Fewest words of a document that may be called odd, unless most documents have fewer.
_ODD_WORDS = 10
#: Below this lengths that are whole numbers are shown as such.
_MOST_WHOLE = 2.0**53

_COUNT = [Interval(Integral, 1, None, closed="left")]
_WORDS = {"n": _COUNT, "relevance": [Interval(Real, 0, 1, closed="both")]}


class TopicSummary:
    """The topics of a fitted model, and what they are about; made by `describe`.

    It is a record: it holds arrays, and it does not change when the model is fitted on.  Only the
    labels can be set.  Topics are named by their numbers or their labels.

    Parameters
    ----------
    source : Source
        The model.
    documents : Documents
    feature_names : ndarray of shape (V,)
    texts, titles : list of str or None
    quality : dict of str to float
        Measures besides coherence and diversity.

    Attributes
    ----------
    topics : ndarray of shape (K, V)
        The probabilities of words in topics, p(w | k).
    shares : ndarray of shape (D, K)
        The shares of topics in documents, p(k | d).
    lengths : ndarray of shape (D,)
        Number of words of each document, of those that the model knows.
    topic_shares : ndarray of shape (K,)
        Share of each topic in all words of the documents, p(k).
    word_shares : ndarray of shape (V,)
        p(w), the sum of p(k) p(w | k) over topics.
    feature_names : ndarray of shape (V,)
        The words.
    texts, titles : list of str or None
        Those of the documents.
    coherence, exclusivity, certainty : ndarray of shape (K,)
        See `table`.
    quality : dict of str to float
        ``"coherence"`` (mean NPMI of topics) and ``"diversity"``; ``"held_out"`` and
        ``"stability"`` if :func:`annealvi.topics.describe` was given what they need.
    history : dict of str to ndarray, or None
        The `history_` of the model: how the fit went.
    relevance : float
        The default weight in the ranking of words.
    """

    relevance: float = RELEVANCE

    def __init__(
        self,
        source: Source,
        documents: Documents,
        feature_names: NDArray,
        texts: list[str] | None,
        titles: list[str] | None,
        quality: dict[str, float],
    ) -> None:
        counts = documents.counts
        self.topics = source.components_
        self.shares = source.transform(documents.given)
        self.lengths = np.asarray(counts.sum(axis=1, dtype=np.float64)).ravel()
        self.feature_names, self.texts, self.titles = feature_names, texts, titles
        words = self.lengths @ self.shares
        self.topic_shares = words / words.sum()
        self.word_shares = ranking.shares_of_words(self.topics, self.topic_shares)
        n_features = self.topics.shape[1]
        self.coherence = np.full(len(self.topics), np.nan)  # a single word has none
        if n_features > 1:
            n_words = min(_COHERENCE_WORDS, n_features)
            self.coherence = topic_coherence(self.topics, counts, n_words=n_words)
        self.exclusivity = ranking.exclusivity_of(self.topics)
        self.certainty = certainty_of(self.shares, self.lengths)
        self._measure, self._unusual = source.unusual(documents, self.shares)
        self.quality = {
            "coherence": float(self.coherence.mean()),
            "diversity": topic_diversity(self.topics, n_words=min(_DIVERSITY_WORDS, n_features)),
            **quality,
        }
        history = getattr(source.model, "history_", None)
        self.history = None if history is None else dict(history)
        for value in vars(self).values():
            if isinstance(value, np.ndarray):
                value.flags.writeable = False
        columns = [self._columns(k, N_WORDS, RELEVANCE) for k in range(len(self.topics))]
        self._labels = Labels(ranking.labels_of([feature_names[own].tolist() for own in columns]))
        self._labels.change({topic: name for name, topic in source.seed_topics.items()})

    def __repr__(self) -> str:
        n_topics, n_features = self.topics.shape
        return (
            f"<TopicSummary of {n_topics} topics in {len(self.shares)} documents, "
            f"{n_features} words>"
        )

    # ------------------------------------------------------------------------ topics

    @property
    def labels(self) -> Labels:
        """The names of topics: three words, unless you have set others.

        A label is made of the three most relevant words, without those that differ from an earlier
        one only in their ending.  A topic with seed words has the name of these.

        Set one by ``summary.labels[3] = "space"``, some by a dict ``summary.labels = {3: "space"}``
        or all by a list.  No two may be the same.
        """
        return self._labels

    @labels.setter
    def labels(self, labels: Any) -> None:
        self._labels.change(labels)

    @property
    def table(self) -> Any:
        """A table of topics.

        Returns
        -------
        pandas.DataFrame
            A row for each topic, with

            - ``share``: of all words of the documents;
            - ``label``, and ``words``: the ten most relevant ones;
            - ``coherence``: how often its most probable words occur in the same documents, NPMI
              (:func:`annealvi.metrics.topic_coherence`);
            - ``exclusivity``: how much its most probable words are its own, the mean of
              p(w | k) / sum_j p(w | j): 1 if no other topic has them;
            - ``certainty``: the share that it has, on average, in the documents of its words: 1 if
              they have no other topic.
        """
        pandas = _pandas("table")
        numbers = range(len(self.topics))
        columns = {
            "share": self.topic_shares,
            "label": list(self._labels),
            "words": [", ".join(self.words(k)) for k in numbers],
            "coherence": self.coherence,
            "exclusivity": self.exclusivity,
            "certainty": self.certainty,
        }
        return pandas.DataFrame(columns, index=pandas.Index(numbers, name="topic"))

    @validate_params(_WORDS, prefer_skip_nested_validation=True)
    def words(self, topic: int | str, n: int = N_WORDS, relevance: float = RELEVANCE) -> list[str]:
        r"""Return the most relevant words of a topic, best first.

        The relevance of a word is :math:`\lambda \log p(w \mid k) + (1 - \lambda) \log
        \frac{p(w \mid k)}{p(w)}` (Sievert and Shirley 2014).

        Parameters
        ----------
        topic : int or str
            Its number or its label.
        n : int, default=10
            Number of words.
        relevance : float, default=0.7
            Lambda, from 0 to 1.  1 ranks by the probability of a word in the topic.  Lower values
            prefer words that other topics do not have; at 0 they are rare ones.

        Returns
        -------
        list of str
        """
        columns = self._columns(self._labels.number(topic), n, relevance)
        return self.feature_names[columns].tolist()

    @validate_params(_WORDS, prefer_skip_nested_validation=True)
    def weights(self, topic: int | str, n: int = N_WORDS, relevance: float = RELEVANCE) -> Any:
        """Return the most relevant words of a topic with the numbers that rank them.

        Parameters
        ----------
        topic, n, relevance
            See `words`.

        Returns
        -------
        pandas.DataFrame
            A row for each word, best first: ``word``, ``probability`` p(w | k), ``lift``
            p(w | k) / p(w), and ``relevance``.
        """
        pandas = _pandas("weights")
        k = self._labels.number(topic)
        columns = self._columns(k, n, relevance)
        probability = self.topics[k, columns]
        result = {
            "word": self.feature_names[columns],
            "probability": probability,
            "lift": probability / self.word_shares[columns],
            "relevance": ranking.relevance_of(self.topics[k], self.word_shares, relevance)[columns],
        }
        return pandas.DataFrame(result)

    def _columns(self, k: int, n: int, relevance: float) -> NDArray[np.intp]:
        return ranking.most_relevant(self.topics[k], self.word_shares, int(n), float(relevance))

    def similar(self) -> Similarity:
        """Compute how far topics are from one another, and their hierarchy.

        Returns
        -------
        Similarity
            With ``distances``, an ndarray of shape (K, K): Hellinger distances, 0 for the same
            topic and 1 for topics without a common word.  With ``linkage``, for SciPy's
            :func:`~scipy.cluster.hierarchy.dendrogram`.  And ``closest(n)`` gives the most similar
            pairs.
        """
        return similarity(self.topics)

    def map(self, documents: bool = False) -> Any:
        """Place topics in a plane, so that similar ones are near to each other.

        Parameters
        ----------
        documents : bool, default=False
            Whether to return the places of documents instead.  A document is at the mean of the
            places of its topics, weighted by their shares in it.

        Returns
        -------
        pandas.DataFrame
            ``x`` and ``y``; of topics also ``share`` and ``label``, of documents ``topic``, the
            largest one, and its ``share``.  The same summary always gives the same places.
        """
        pandas = _pandas("map")
        check_flag(documents, "documents")
        place = places(hellinger(self.topics))
        columns: dict[str, Any]
        if not documents:
            columns = {"share": self.topic_shares, "label": list(self._labels)}
            index = pandas.RangeIndex(len(self.topics), name="topic")
        else:
            place = self.shares @ place
            largest = self.shares.argmax(axis=1)
            columns = {"topic": largest, "share": self.shares.max(axis=1)}
            index = pandas.RangeIndex(len(self.shares), name="document")
        return pandas.DataFrame({"x": place[:, 0], "y": place[:, 1], **columns}, index=index)

    # --------------------------------------------------------------------- documents

    @validate_params({"n": _COUNT}, prefer_skip_nested_validation=True)
    def documents(self, topic: int | str, n: int = 5) -> Any:
        """Return the documents that are most about a topic.

        Parameters
        ----------
        topic : int or str
            Its number or its label.
        n : int, default=5
            Number of documents.

        Returns
        -------
        pandas.DataFrame
            Indexed by the numbers of documents: ``share`` of the topic, ``tokens``, and ``title``
            and ``text`` where they are known.  Documents without words are left out.
        """
        k = self._labels.number(topic)
        known = np.flatnonzero(self.lengths > 0)
        # of equal shares, that of a longer document says more
        order = known[np.lexsort((-self.lengths[known], -self.shares[known, k]))][: int(n)]
        return self._rows(order, "documents", share=self.shares[order, k])

    @validate_params(
        {"n": _COUNT, "min_tokens": [None, Interval(Real, 0, None, closed="left")]},
        prefer_skip_nested_validation=True,
    )
    def odd(self, n: int = 10, min_tokens: float | None = None) -> Any:
        """Return the documents that the topics explain worst.

        Parameters
        ----------
        n : int, default=10
            Number of documents.
        min_tokens : int, default=None
            Shorter documents are left out: all of them look odd.  None means 10, or the median
            length of the documents if that is less.

        Returns
        -------
        pandas.DataFrame
            Indexed by the numbers of documents, the oddest first.  ``temperature`` is that of
            :meth:`annealvi.TemperedLDA.document_temperatures`: a little above 1 for ordinary
            documents.  For models without that method it is ``log_likelihood``, in nats per word.
            Then ``tokens``, and ``title`` and ``text`` where they are known.
        """
        if min_tokens is None:
            min_tokens = min(_ODD_WORDS, float(np.median(self.lengths[self.lengths > 0])))
        known = np.flatnonzero((self.lengths >= min_tokens) & (self.lengths > 0))
        sign = -1.0 if self._measure == "temperature" else 1.0
        order = known[np.argsort(sign * self._unusual[known], kind="stable")][: int(n)]
        return self._rows(order, "odd", **{self._measure: self._unusual[order]})

    def _rows(self, order: NDArray[np.intp], purpose: str, **columns: NDArray) -> Any:
        """A DataFrame of some documents."""
        pandas = _pandas(purpose)
        tokens = self.lengths[order]
        whole = np.all(self.lengths == np.floor(self.lengths)) and self.lengths.max() < _MOST_WHOLE
        found: dict[str, Any] = {**columns, "tokens": tokens.astype(np.int64) if whole else tokens}
        for name, values in (("title", self.titles), ("text", self.texts)):
            if values is not None:
                found[name] = [values[document] for document in order]
        return pandas.DataFrame(found, index=pandas.Index(order, name="document"))

    def by(self, groups: ArrayLike) -> Any:
        """Compute the share of each topic in each group of documents.

        Parameters
        ----------
        groups : array-like of shape (D,)
            The group of each document, such as its class or its author.  Documents whose group is
            None or NaN are left out.

        Returns
        -------
        pandas.DataFrame
            A row for each group.  ``n_documents`` counts its documents that have words; the other
            columns are the topics, by their labels: shares of all words of the group.

        Raises
        ------
        ValueError
            If there are not as many groups as documents.
        """
        labels = list(self._labels)
        return by_group(self.shares, self.lengths, labels, groups, _pandas("by"))

    def over(self, times: ArrayLike, freq: Any = "YE") -> Any:
        """Compute the share of each topic in each period of time.

        Parameters
        ----------
        times : array-like of shape (D,)
            The time of each document: datetimes, ISO 8601 strings or years.  Times with a zone
            are taken in UTC, and periods at their start.  Documents whose time is None or NaT are
            left out.
        freq : str, timedelta or pandas.DateOffset, default="YE"
            Length of a period, as pandas names it: years "YE", quarters "QE", months "ME", weeks
            "W", days "D"; "5YE" is five years.  Every offset of pandas is allowed too, such as
            ``pandas.DateOffset(months=30)``.  Offsets that pandas has no name for, as this one,
            are counted from the day of the first document.

        Returns
        -------
        pandas.DataFrame
            A row for each period from the first to the last; its index is the end of the period
            for years, quarters, months and weeks, and the beginning for shorter ones and for
            offsets without a name.
            ``n_documents`` counts its documents that have words; the other columns are the topics,
            by their labels: shares of all words of the period, NaN if there are none.

        Raises
        ------
        ValueError
            If there are not as many times as documents, or one cannot be read; or if `freq` is
            no period.
        """
        labels = list(self._labels)
        return over_time(self.shares, self.lengths, labels, times, freq, _pandas("over"))

    # ------------------------------------------------------------------------ report

    def to_html(
        self,
        path: str | os.PathLike,
        *,
        title: str | None = None,
        times: ArrayLike | None = None,
        freq: Any = "YE",
        groups: ArrayLike | None = None,
        other: TopicSummary | None = None,
        n_words: int = 20,
        n_documents: int = 10,
        relevance: float | None = None,
    ) -> None:
        """Write a report of the topics: one HTML file that opens in a browser without a network.

        :func:`annealvi.plot.report.write_report` says what is in it.  Needs plotly and pandas.

        Parameters
        ----------
        path : path
            The file to write.  It is replaced only once the report is complete.
        title : str, optional
            The headline.
        times : array-like of shape (D,), optional
            Date or time of each document, as in `over`.
        freq : str, timedelta or pandas.DateOffset, default="YE"
            Length of the periods of `times`, as in `over`.
        groups : array-like of shape (D,), optional
            The class of each document, as in `by`.
        other : TopicSummary, optional
            Of a second fit of the same words, to compare topics with.
        n_words : int, default=20
            Words shown of a topic.
        n_documents : int, default=10
            Documents shown of a topic; with 0 no text is in the file.
        relevance : float, optional
            Where the slider of relevance stands first; by default that of `words`.

        Raises
        ------
        ImportError
            If plotly or pandas is not installed.
        OSError
            If the file cannot be written.
        ValueError
            If a parameter is outside its range; if the number of `times` or `groups` is not the
            number of documents.
        """
        from annealvi.plot.report import write_report

        write_report(
            self,
            path,
            title=title,
            times=times,
            freq=freq,
            groups=groups,
            other=other,
            n_words=n_words,
            n_documents=n_documents,
            relevance=relevance,
        )


def _pandas(purpose: str) -> Any:
    return import_optional("pandas", "text", f"TopicSummary.{purpose}")
