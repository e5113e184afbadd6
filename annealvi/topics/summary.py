"""Summaries of fitted topic models of any kind, for people to read."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral, Real
from os import PathLike
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from annealvi._optional import import_optional
from annealvi.checks import COUNT, SHARE, Interval, check_flag, checked, is_int_in, validated
from annealvi.corpus import read_cells
from annealvi.exceptions import BadParameter
from annealvi.metrics import document_completion, topic_coherence, topic_diversity, topic_stability
from annealvi.metrics.topics import RELEVANCE, top_columns, topic_checksum
from annealvi.progress import Progress
from annealvi.topics import (
    cells,
    contrasts,
    effects,
    levels,
    naming,
    paper,
    reading,
    shares,
    together,
    trust,
)
from annealvi.topics import words as ranking
from annealvi.topics.described import DescribedDocuments, Topics, assigned_shares, sizes_in
from annealvi.topics.effects import Effects
from annealvi.topics.reading import TopicDocument
from annealvi.topics.refits import Refits, refit
from annealvi.topics.shares import in_order
from annealvi.topics.source import Source, in_columns, seed_of
from annealvi.topics.vectorizer import check_texts, of_each
from annealvi.topics.words import N_WORDS, Labels

#: Maximum number of iterations of multidimensional scaling.
_ITERATIONS = 300


class Similarity(NamedTuple):
    """How similar topics are."""

    #: Hellinger distances between topics: 0 for equal topics, 1 for topics without a common word.
    distances: NDArray
    #: The hierarchy of topics by average linkage, in SciPy's format: each row joins two clusters
    #: (:func:`scipy.cluster.hierarchy.linkage`).
    linkage: NDArray

    def closest(self, n: int = 10) -> list[tuple[int, int]]:
        """Return the n most similar pairs of topics, the most similar pair first."""
        first, second = np.triu_indices(len(self.distances), k=1)
        order = np.argsort(self.distances[first, second], kind="stable")[:n]
        return list(zip(first[order].tolist(), second[order].tolist(), strict=True))


def places(distances: NDArray) -> NDArray:
    """Place topics in a plane by metric multidimensional scaling of their distances.

    The iterations start from classical scaling instead of random places, so the result is
    reproducible.
    Classical scaling alone puts many topics in the same place, because it keeps only two of many
    dimensions.
    """
    from sklearn.manifold import smacof

    if not distances.any():  # a single topic, or equal topics
        return np.zeros((len(distances), 2))
    start = _classical(distances)
    if len(distances) < 3:  # it is exact for so few
        return start
    positions, _ = smacof(
        distances, init=start, n_init=1, max_iter=_ITERATIONS, eps=1e-6, normalized_stress=False
    )
    return positions - positions.mean(axis=0)


def _classical(distances: NDArray) -> NDArray:
    """Compute the two main dimensions of classical scaling, with the largest numbers positive."""
    # eigenvectors of the squared distances, centred in rows and columns
    squares = distances**2
    centred = squares - squares.mean(axis=0) - squares.mean(axis=1)[:, None] + squares.mean()
    values, vectors = np.linalg.eigh(-0.5 * centred)
    # the last two, as eigh returns the largest eigenvalue last; a rounding error may be negative
    lengths = np.sqrt(np.maximum(values[:-3:-1], 0.0))
    positions = vectors[:, :-3:-1] * lengths
    # the signs of eigenvectors are arbitrary
    peaks = np.take_along_axis(positions, np.abs(positions).argmax(axis=0)[None], axis=0)
    return np.where(peaks < 0, -positions, positions)


#: The numbers of top words for which coherence and diversity are computed, as in annealvi.metrics.
_COHERENCE_WORDS, _DIVERSITY_WORDS = 10, 25
#: Documents with fewer words are not listed as outliers, unless most documents have fewer.
_ODD_WORDS = 10
#: Lengths of documents that are whole numbers below this limit are shown as integers.
_MOST_WHOLE = 2.0**53

_WORDS = {"n": COUNT, "relevance": SHARE}


class TopicSummary(DescribedDocuments):
    """A summary of a fitted topic model and of its documents, returned by `describe`.

    A summary does not change when its model is fitted further.  Only the labels of a summary can be
    set.  In methods, pass a topic as its number or its label.

    Parameters
    ----------
    topics : Topics
    documents : DescribedDocuments
    texts, titles : list of str or None
    outlier_measure : (str, ndarray of shape (D,))
        The name of a measure of how unusual documents are, and its values.
    history : dict or None
    checksum : str
    quality : dict of str to float
        Measures in addition to coherence and diversity.

    Attributes
    ----------
    topics : ndarray of shape (K, V)
        The probabilities of words in topics, p(w | k).
    shares : ndarray of shape (D, K)
        The shares of topics in documents, p(k | d).
    document_topics : ndarray of shape (D,)
        The number of the topic to which each document is assigned: the result of the model's
        `predict` or, if the model has no such method, the topic with the largest share.
    counts : CSR matrix of shape (D, V)
        The word counts of the documents.  A CSR matrix that was passed to `describe` is not copied.
    lengths : ndarray of shape (D,)
        Number of words of each document that are in the vocabulary of the model.
    concentration : ndarray of shape (D,)
        The sum of the parameters of the Dirichlet posterior of each document's shares, which is its
        number of words plus the sum of the prior.
    topic_shares : ndarray of shape (K,)
        Share of each topic in all words of the documents, p(k).
    word_shares : ndarray of shape (V,)
        p(w), the sum of p(k) p(w | k) over topics.
    folded_word_shares : ndarray of shape (V,)
        p(w), summed over all forms of a word; see `folded`.
    feature_names : ndarray of shape (V,)
        The words.
    texts, titles : list of str or None
        The texts and titles of the documents.
    index : pandas.Index or None
        The index of the documents, if they were a pandas Series or DataFrame.
    coherence, exclusivity, certainty : ndarray of shape (K,)
        Measures of each topic, explained in `table`.
    probability : ndarray of shape (K,), or None
        The probability that a new fit finds each topic, explained in `trust`; None if it is
        unknown, because the model has no `topic_support_`.
    refits : Refits or None
        The result of :func:`annealvi.topics.refit`, if `describe` was called with `refits`.
    similarity : ndarray of shape (n, K)
        Cosines of the topics to their matches in n other fits: the fits of ``TopicModel("auto")``
        and the `other` of `describe`.  `trust` uses these cosines.
    checksum : str
        :func:`annealvi.metrics.topic_checksum` of the topics.
    quality : dict of str to float
        ``"coherence"`` (mean NPMI of topics), ``"diversity"`` and, if `describe` was called with
        `held_out` or `other`, ``"held_out_log_likelihood"`` or ``"stability"``.
    facts : dict
        Facts about the fit that `methods` reports.
    random_state : int
        The `random_state` of the model, or 0 if that is not an int.  It is the default of
        functions that draw random numbers for a summary.
    history : dict of str to ndarray, or None
        The `history_` of the model, which contains records of the fit.
    relevance : float
        The default `relevance` in the ranking of words.
    """

    relevance: float = RELEVANCE

    def __init__(
        self,
        topics: Topics,
        documents: DescribedDocuments,
        *,
        texts: list[str] | None,
        titles: list[str] | None,
        outlier_measure: tuple[str, NDArray],
        history: dict[str, Any] | None,
        checksum: str,
        quality: dict[str, float],
    ) -> None:
        """Store the parts of a summary, and measure its topics."""
        super().__init__(**vars(documents))  # a summary has all attributes of its documents
        self._topics = topics  # with the labels
        self.topics = topics.components
        self.topic_shares = topics.sizes
        self.word_shares = topics.word_shares
        self.folded_word_shares = topics.family_shares
        self.feature_names = topics.words
        self.probability = None
        if topics.evidence is not None:
            self.probability = trust.probability_of(topics.evidence)
        self.similarity = topics.similarity
        self.facts = topics.facts
        self.random_state = topics.random_state
        self.texts = texts
        self.titles = titles
        self._outlier_measure, self._outlier_values = outlier_measure
        self.history = history
        self.checksum = checksum
        n_topics, n_features = self.topics.shape
        self._together = trust.Together.of(self.topics, self.counts)
        self.coherence = np.full(n_topics, np.nan)  # undefined for a single word
        if n_features > 1:
            n_words = min(_COHERENCE_WORDS, n_features)
            self.coherence = topic_coherence(self.topics, self.counts, n_words=n_words)
        self.exclusivity = ranking.exclusivity_of(self.topics)
        self.certainty = shares.certainty_of(self.shares, self.lengths)
        self.quality = {
            "coherence": float(self.coherence.mean()),
            "diversity": topic_diversity(self.topics, n_words=min(_DIVERSITY_WORDS, n_features)),
            **quality,
        }
        # a summary does not change, so its arrays become read-only
        for value in vars(self).values():
            if isinstance(value, np.ndarray):
                value.flags.writeable = False

    def __repr__(self) -> str:
        n_topics, n_features = self.topics.shape
        n_documents = len(self.shares)
        return f"<TopicSummary of {n_topics} topics in {n_documents} documents, {n_features} words>"

    def _repr_html_(self) -> str:
        from annealvi.plot.notebook import summary_html

        return summary_html(self)

    # ------------------------------------------------------------------------ topics

    @property
    def labels(self) -> Labels:
        """The labels of topics, which consist of three words unless you set other labels.

        A label consists of the three most relevant words, without words that differ from an earlier
        word only in their ending.  A topic with seed words is labelled by its name in `seed_words`.

        Set one label by ``summary.labels[3] = "space"``, several by a dict, as in ``summary.labels
        = {3: "space"}``, or all by a list.  A str is read as the answer of a language model to
        `prompt`: a JSON object of topic numbers and labels.  All labels must differ.  A label that
        you set is also set in the :class:`TopicModel` that was described, so that later summaries
        and saved files of the model contain the label.
        """
        return self._topics.labels

    @labels.setter
    def labels(self, labels: Any) -> None:
        self._topics.labels.change(labels)

    @property
    def table(self) -> Any:
        """A table of topics.

        Returns
        -------
        pandas.DataFrame
            A row for each topic, with the columns

            - ``share``: the share of the topic in all words of the documents;
            - ``documents``: the number of documents that are assigned to the topic;
            - ``label``, and ``words``: the ten most relevant words;
            - ``coherence``: how often the most probable words of the topic occur in the same
              documents, as NPMI (:func:`annealvi.metrics.topic_coherence`);
            - ``exclusivity``: how rare the topic's most probable words are in other topics: the
              mean of p(w | k) / sum_j p(w | j), which is 1 if no other topic uses these words;
            - ``certainty``: the average share of the topic in the documents in which its words
              occur, which is 1 if these documents have no other topic;
            - ``probability``: the probability that a new fit finds the topic, if it is known; see
              `trust`.
        """
        pandas = import_optional("pandas", "TopicSummary.table")
        numbers = range(len(self.topics))
        columns = {
            "share": self.topic_shares,
            # of documents with words
            "documents": np.bincount(
                self.document_topics[self.lengths > 0], minlength=len(numbers)
            ),
            "label": self.labels,
            "words": [", ".join(self.words(k)) for k in numbers],
            "coherence": self.coherence,
            "exclusivity": self.exclusivity,
            "certainty": self.certainty,
        }
        if self.probability is not None:
            columns["probability"] = self.probability
        return pandas.DataFrame(columns, index=pandas.Index(numbers, name="topic"))

    @validated(**_WORDS)
    def words(self, topic: int | str, n: int = N_WORDS, relevance: float = RELEVANCE) -> list[str]:
        r"""Return the most relevant words of a topic, best first.

        English forms of a word that differ in their ending, such as printer, printers and printing,
        are counted apart, but shown as one word: the most probable form, with the probabilities of
        all forms added.  The relevance of a word is :math:`\lambda \log p(w \mid k) + (1 -
        \lambda) \log \frac{p(w \mid k)}{p(w)}` (Sievert and Shirley 2014).

        Parameters
        ----------
        topic : int or str
            The number or label of the topic.
        n : int, default=10
            Number of words.
        relevance : float, default=0.7
            Lambda, from 0 to 1.  With 1, words are ranked by p(w | k).  With 0, they are ranked by
            p(w | k) / p(w), which is largest for words that are rare in other topics.

        Returns
        -------
        list of str
        """
        return self._topics.top(self.labels.number(topic), int(n), float(relevance))

    @validated(**_WORDS)
    def weights(self, topic: int | str, n: int = N_WORDS, relevance: float = RELEVANCE) -> Any:
        """Return the most relevant words of a topic, with the numbers by which they are ranked.

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
        pandas = import_optional("pandas", "TopicSummary.weights")
        k = self.labels.number(topic)
        columns = self._topics.columns(k, int(n), float(relevance))
        folded = self.folded(k)  # p(w | k), with the forms of a word added up
        relevances = ranking.relevance_of(folded, self.folded_word_shares, relevance)
        return pandas.DataFrame(
            {
                "word": self.feature_names[columns],
                "probability": folded[columns],
                "lift": folded[columns] / self.folded_word_shares[columns],
                "relevance": relevances[columns],
            }
        )

    @checked
    def folded(self, topic: int | str) -> NDArray:
        """Return p(w | k) with the forms of a word, such as printer and printers, added up.

        Parameters
        ----------
        topic : int or str
            The number or label of the topic.

        Returns
        -------
        ndarray of shape (V,)
            The probability of all forms for the most probable form of each word in the topic, and 0
            for its other forms.  `words` and `weights` rank these probabilities, divided by
            `folded_word_shares`.
        """
        return self._topics.folded(self.labels.number(topic))

    @validated(n=COUNT, weight=SHARE)
    def frex(self, topic: int | str, n: int = N_WORDS, weight: float = 0.5) -> list[str]:
        r"""Return the words of a topic that are both frequent and exclusive, best first.

        Words are ranked by frequency, p(w | k), and by exclusivity, :math:`p(w \mid k) / \sum_j p(w
        \mid j)`.  FREX is the harmonic mean of both ranks (Bischof and Airoldi 2012).  Unlike this
        function, `labelTopics` in R's stm also shrinks the exclusivity of rare words.

        Parameters
        ----------
        topic : int or str
            The number or label of the topic.
        n : int, default=10
            Number of words.
        weight : float, default=0.5
            The weight of frequency, from 0 (only exclusivity) to 1 (only frequency).

        Returns
        -------
        list of str
        """
        k = self.labels.number(topic)
        # as the only row of a matrix
        (columns,) = top_columns(ranking.frex_of(self.topics, k, float(weight))[None], int(n))
        # without words that the topic does not contain
        return self.feature_names[columns[self.topics[k, columns] > 0]].tolist()

    def similar(self) -> Similarity:
        """Compute the distances between topics, and the hierarchy of topics.

        Returns
        -------
        Similarity
            The attribute ``distances``, of shape (K, K), contains Hellinger distances, which are 0
            for equal topics and 1 for topics without a common word.  ``linkage`` can be passed to
            SciPy's :func:`~scipy.cluster.hierarchy.dendrogram`.  The method ``closest(n)`` returns
            the most similar pairs.
        """
        from scipy.cluster import hierarchy
        from scipy.spatial.distance import squareform

        distances = trust.hellinger(self.topics)
        linkage = np.empty((0, 4))
        if len(distances) > 1:
            # SciPy's form of distances: a vector with a number for each pair
            pairs = squareform(distances, checks=False)
            linkage = hierarchy.linkage(pairs, "average", optimal_ordering=True)
        return Similarity(distances, linkage)

    @checked
    def levels(self, n_topics: Sequence[int]) -> Any:
        """Group the topics at several levels, as topics and their subtopics.

        At each level, groups are merged two at a time until n groups remain, as in
        :func:`annealvi.topics.reduce_topics`, so that each group lies within a group of the level
        above.

        Parameters
        ----------
        n_topics : list of int
            The numbers of groups, such as ``[5, 20]``, from 1 to the number of topics.

        Returns
        -------
        pandas.DataFrame
            A row for each topic, with topics of the same group next to each other.  For each level
            n, ``topic_5`` is the number of the group and ``label_5`` its label, which consists of
            the words of all its topics (here for n = 5).  The last columns are ``share`` and
            ``label`` of the topic.

        Raises
        ------
        ValueError
            If a number is not an int from 1 to the number of topics, or is repeated.
        """
        return levels.levels(self._topics, n_topics)

    @validated(n_draws=[Interval(Integral, 2, None, closed="left")], random_state=["random_state"])
    def together(self, *, n_draws: int = 25, random_state: Any = None) -> Any:
        """Correlate the shares of topics in documents, to find topics that occur together.

        Because the shares of a document sum to 1, unrelated topics have slightly negative
        correlations, of about -1 / (K - 1) for K topics.

        Parameters
        ----------
        n_draws : int, default=25
            Number of draws of the shares of each document, as in `effects`.
        random_state : int, RandomState instance or None, default=None
            Random seed of these draws, as in `effects`.

        Returns
        -------
        pandas.DataFrame
            A row for each pair of topics, the largest correlation first: ``topic``, ``label``,
            ``other``, ``other_label``, ``correlation``, and the limits ``low`` and ``high`` of the
            95% interval.  In a summary with refits, the interval is NaN for a pair that fewer than
            two refits found.

        Raises
        ------
        ValueError
            If fewer than four documents contain words, or a parameter is out of range.

        Notes
        -----
        The correlation is computed for each draw from the posterior of the shares, and averaged by
        Fisher's transformation, in which a draw has the variance 1 / (D - 3) for D documents.  The
        variance between draws is added and, with refits, the variance between refits, as in
        :func:`annealvi.topics.estimate_effects`.
        """
        random_state = self.random_state if random_state is None else random_state
        return together.together(self, self.labels, n_draws, random_state)

    @checked
    def map(self, documents: bool = False) -> Any:
        """Place topics in a plane, so that similar topics are close to each other.

        Parameters
        ----------
        documents : bool, default=False
            Whether to return the places of documents instead of topics.  The place of a document is
            the mean of the places of its topics, weighted by their shares.

        Returns
        -------
        pandas.DataFrame
            Every row has ``x`` and ``y``.  Topics also have ``share`` and ``label``.  Documents
            also have ``topic``, the topic to which they are assigned, and its ``share``.  Repeated
            calls return the same places.
        """
        pandas = import_optional("pandas", "TopicSummary.map")
        check_flag(documents, "documents")
        positions = places(trust.hellinger(self.topics))
        columns = {"share": self.topic_shares, "label": self.labels}
        if documents:
            positions = self.shares @ positions  # means of the places of topics
            columns = {"topic": self.document_topics, "share": assigned_shares(self)}
        x, y = positions.T
        index = self.index if documents else None
        table = pandas.DataFrame({"x": x, "y": y, **columns}, index=index)
        return table.rename_axis("document" if documents else "topic")

    @validated(n_words=COUNT, n_documents=[Interval(Integral, 0, None, closed="left")])
    def prompt(self, *, n_words: int = 15, n_documents: int = 3) -> str:
        """Write a text that asks a language model, or a person, for names of all topics.

        Paste the text into a language model of your choice, and assign its answer to `labels`, as
        in ``summary.labels = answer``.  No text is sent anywhere.

        Parameters
        ----------
        n_words : int, default=15
            Number of words of each topic.
        n_documents : int, default=3
            Number of documents of each topic, of which the first 300 characters are in the text.
            If it is 0, the text contains no documents.

        Returns
        -------
        str
        """
        return naming.prompt(self, n_words, n_documents)

    # --------------------------------------------------------------------- documents

    @checked
    def document(self, number: int) -> TopicDocument:
        """Return one document with the topics of its words.

        Parameters
        ----------
        number : int
            The position of the document.

        Returns
        -------
        TopicDocument
            The attributes `shares`, `words` and `responsibilities` contain the shares of topics,
            the words, and the probability of each topic for each word.  A notebook shows the text
            with its words in the colours of their topics.

        Raises
        ------
        ValueError
            If there is no such document.
        """
        last = len(self.shares) - 1
        if not is_int_in(number, 0, last):
            raise BadParameter("number", f"an int from 0 to {last}", number)
        return reading.document(self, int(number))

    @validated(path=[str, PathLike], random_state=["random_state"])
    def write_mallet_state(self, path: str | PathLike, *, random_state: Any = None) -> None:
        """Write the topic of each word to a file in the format of MALLET's ``--output-state``.

        The topic of each occurrence of a word is drawn from the `responsibilities` of the document
        (see `document`), as MALLET draws it.  :func:`annealvi.corpus.read_mallet_state` reads the
        file.

        Parameters
        ----------
        path : path
            The file, which is compressed if its name ends in ``.gz``.  An existing file is replaced
            only when the new one is complete.
        random_state : int, RandomState instance or None, default=None
            Random seed of the draws.  None means the `random_state` of the model, as in `effects`.

        Raises
        ------
        OSError
            If the file cannot be written.
        ValueError
            If word counts are not integers.
        """
        random_state = self.random_state if random_state is None else random_state
        reading.write_mallet_state(self, path, random_state)

    @validated(n=COUNT)
    def documents(self, topic: int | str, n: int = 5) -> Any:
        """Return the documents in which a topic has the largest shares.

        If several documents have the same title and text, only the first is shown.

        Parameters
        ----------
        topic : int or str
            The number or label of the topic.
        n : int, default=5
            Number of documents.

        Returns
        -------
        pandas.DataFrame
            The index is that of the documents if they were a pandas Series or DataFrame, and
            otherwise their positions, which are also in ``attrs["positions"]`` of the table.  The
            columns are the ``share`` of the topic, ``tokens`` (the number of words) and, if known,
            ``title`` and ``text``.  Documents without words are excluded.
        """
        k = self.labels.number(topic)
        known = np.flatnonzero(self.lengths > 0)  # the numbers of documents with words
        # of documents with equal shares, longer documents come first; lexsort takes the most
        # important key last
        order = known[np.lexsort((-self.lengths[known], -self.shares[known, k]))]
        columns = [values for values in (self.titles, self.texts) if values is not None]
        # the first document of each title and text; without both, each document is distinct
        distinct: dict[Any, int] = {}
        for document in order.tolist():
            distinct.setdefault(tuple(values[document] for values in columns) or document, document)
            if len(distinct) >= n:
                break
        rows = np.array(list(distinct.values()), dtype=np.intp)
        table = self._rows(rows, share=self.shares[rows, k])
        table.attrs["positions"] = rows.tolist()
        return table

    @validated(n=COUNT, min_tokens=[None, Interval(Real, 0, None, closed="left")])
    def outliers(self, n: int = 10, min_tokens: float | None = None) -> Any:
        """Return the documents that the topics explain worst.

        Parameters
        ----------
        n : int, default=10
            Number of documents.
        min_tokens : int, default=None
            The minimum number of words.  Shorter documents are excluded, because all of them appear
            unusual.  None means the median length of the documents, but at most 10.

        Returns
        -------
        pandas.DataFrame
            The most unusual document comes first.  The index is as in `documents`.
            ``temperature`` (:meth:`annealvi.TemperedLDA.document_temperatures`) measures how
            unusual a document is, and is a little above 1 for ordinary documents.  For models
            without that method the column is ``log_likelihood``, in nats per word.  Other columns
            are ``tokens`` (the number of words) and, if known, ``title`` and ``text``.
        """
        if min_tokens is None:
            min_tokens = min(_ODD_WORDS, np.median(self.lengths[self.lengths > 0]))
        known = np.flatnonzero((self.lengths >= min_tokens) & (self.lengths > 0))
        # unusual documents have a high temperature, or a low log-likelihood
        sign = -1.0 if self._outlier_measure == "temperature" else 1.0
        order = known[np.argsort(sign * self._outlier_values[known], kind="stable")][:n]
        return self._rows(order, **{self._outlier_measure: self._outlier_values[order]})

    def _rows(self, order: NDArray, **columns: NDArray) -> Any:
        """Make a table of documents by their numbers: `columns`, lengths, titles and texts.

        The dtype of lengths depends on all documents, not only on these.
        """
        pandas = import_optional("pandas", "A table of documents")
        tokens = self.lengths[order]
        whole = np.all(self.lengths == np.floor(self.lengths)) and self.lengths.max() < _MOST_WHOLE
        index = order if self.index is None else self.index[order]
        table = pandas.DataFrame(columns, index=pandas.Index(index, name="document"))
        table["tokens"] = tokens.astype(np.int64) if whole else tokens
        for name, values in (("title", self.titles), ("text", self.texts)):
            if values is not None:
                table[name] = [values[document] for document in order]
        return table

    @property
    def document_table(self) -> Any:
        """A table of the documents, or of the cells if the model was fitted to cells.

        Returns
        -------
        pandas.DataFrame
            A row for each document, indexed by the names of documents if they have names.
            ``topic`` is the number of the topic to which the document is assigned
            (`document_topics`), ``label`` is its label, and ``share`` is its share in the document.
            These three are missing for a document without words.  The other columns are the shares
            of all topics, named by their labels.
        """
        return cells.document_table(self._topics, self)

    @property
    def word_table(self) -> Any:
        """A table of the words or, for a model of cells, of the genes or genomic regions.

        Returns
        -------
        pandas.DataFrame
            A row for each word, and a column for each topic, named by its label.  The values are
            the probabilities p(w | k).
        """
        return cells.word_table(self._topics)

    @validated(n=[*COUNT, None])
    def members(self, topic: int | str, n: int | None = None) -> Any:
        r"""Return the words that are probable in a topic, but less probable in other topics.

        Parameters
        ----------
        topic : int or str
            The number or label of the topic.
        n : int, default=None
            The number of words.  None means all words with a score (see Notes) above Otsu's
            threshold, which divides the scores into the two groups that differ most.

        Returns
        -------
        pandas.DataFrame
            A row for each word, best first: ``word``, ``probability`` and ``score``.

        Notes
        -----
        The score is :math:`\beta_{kw} (\log \beta_{kw} - \frac{1}{K} \sum_j \log
        \beta_{jw})`, as in pycisTopic: words that are equally probable in all topics get a score of
        0.

        References
        ----------
        N. Otsu, "A threshold selection method from gray-level histograms", IEEE Transactions on
        Systems, Man, and Cybernetics 9, 1979.
        """
        return cells.members(self._topics, self.labels.number(topic), n)

    @checked
    def to_anndata(self, adata: Any = None) -> Any:
        """Write shares, topics and assignments into an AnnData.

        - ``obsm["X_topics"]``: shares of the topics in each cell;
        - ``varm["topics"]``: probabilities of genes or genomic regions in topics, or 0 if a gene or
          region is not in the model;
        - ``varm["in_topics"]``: whether a gene or region is one of the topic's :meth:`members`;
        - ``obs["topic"]``, ``obs["topic_label"]`` and ``obs["topic_share"]``: the first columns of
          `document_table`;
        - ``uns["topics"]``: a dict with the ``labels``, ten ``words`` of each topic, ``coherence``
          and ``certainty`` (see `table`), and the ``checksum`` of the topics.

        Parameters
        ----------
        adata : AnnData, default=None
            The cells that were described, in the same order.  This AnnData is changed in place.
            None means a new AnnData that contains the counts of the cells.

        Returns
        -------
        AnnData

        Raises
        ------
        ImportError
            If `adata` is None, and anndata is not installed.
        ValueError
            If `adata` does not have the same number of cells as the summary.
        """
        measures = {
            "coherence": self.coherence.copy(),
            "certainty": self.certainty.copy(),
            "checksum": self.checksum,
        }
        return cells.to_anndata(self._topics, self, measures, adata)

    # ------------------------------------------------------------- groups and covariates

    @checked
    def by_group(self, groups: ArrayLike, *, value: str = "share") -> Any:
        r"""Compute the share of each topic in each group of documents.

        Parameters
        ----------
        groups : array-like of shape (D,)
            The group of each document, such as its section or its author.  Documents whose group is
            None or NaN are excluded.  If the documents have a pandas index, a Series of groups is
            aligned with this index.  Otherwise groups must be in the order of the documents.
        value : {"share", "std_error", "refits"}, default="share"
            Whether the table contains shares, their standard errors, or, in a summary with refits,
            the part of the standard errors that comes from differences between refits.

        Returns
        -------
        pandas.DataFrame
            A row for each group.  ``n_documents`` is the number of documents of the group that
            contain words.  The other columns, named by the labels of topics, are the shares of the
            topics in all words of the group, or their standard errors.  Standard errors are NaN for
            a group of one document and, in a summary with refits, for topics that fewer than three
            refits found.

        Raises
        ------
        ValueError
            If the number of groups is not the number of documents, or `value` is unknown.

        Notes
        -----
        Document d has :math:`n_d` words and the share :math:`\theta_d` of a topic.  Its group has m
        documents, N words and the share :math:`\bar\theta`.  The squared error of this share is

        .. math::
            \frac{m}{m - 1} \sum_d \frac{n_d^2}{N^2} (\theta_d - \bar\theta)^2
            + 2 \sum_d \frac{n_d^2}{N^2} \mathrm{Var}(\theta_d)
            + (1 + 1/r) \mathrm{Var}_\mathrm{refits}(\bar\theta) .

        The first term allows for the choice of documents, and the second term for the uncertainty
        of the shares of each document.  The third term, which requires a summary with r refits,
        allows for the uncertainty of the topics; its square root is the table for
        ``value="refits"``.  :meth:`effects` estimates the second term from
        random draws of the shares.
        """
        return shares.by_group(self, self.labels, groups, value=value)

    @checked
    def over_time(self, times: ArrayLike, freq: Any = "year", *, value: str = "share") -> Any:
        """Compute the share of each topic in each period of time.

        Parameters
        ----------
        times : array-like of shape (D,)
            The time of each document: datetimes, ISO 8601 strings or years.  Times with a time zone
            are converted to UTC.  A pandas Period means its start.  Documents whose time is None or
            NaT are excluded.  A Series of times is aligned with the documents as in `by_group`.
        freq : str, timedelta or pandas.DateOffset, default="year"
            Length of a period: "year", "quarter", "month", "week", "day", or a multiple, such as "5
            years".  You can also pass a frequency of pandas, such as "5YE", or a pandas offset.
            With a generic offset, such as ``pandas.DateOffset(months=30)``, the first period starts
            on the day of the first document.
        value : {"share", "std_error", "refits"}, default="share"
            What the table contains, as in `by_group`.

        Returns
        -------
        pandas.DataFrame
            A row for each period from the first to the last.  The index is the end of each period
            for years, quarters, months and weeks.  For shorter periods and generic offsets, it is
            the beginning.  ``n_documents`` is the number of documents of the period that contain
            words.  The other columns, named by the labels of topics, are the shares of the topics
            in all words of the period, or their standard errors.  They are NaN if there are no
            words.

        Raises
        ------
        ValueError
            If the number of times is not the number of documents, if a time cannot be read, if
            `freq` is not a period, or if `value` is unknown.
        """
        return shares.over_time(self, self.labels, times, freq, value=value)

    @checked
    def effects(
        self,
        formula: Any,
        data: Any = None,
        *,
        topics: Any = None,
        clusters: Any = None,
        n_draws: int = 25,
        random_state: Any = None,
    ) -> Effects:
        r"""Estimate how the shares of topics depend on covariates of the documents.

        The share of each topic in each document is regressed on covariates.  Make the summary with
        ``describe(..., refits=10)``, so that the intervals allow for the uncertainty of the topics.
        Without refits, topics are treated as known, and the intervals are too narrow for topics
        that another fit would not find.

        Parameters
        ----------
        formula : str, or array-like of shape (D, n_terms)
            A formula in the syntax of the package formulaic, such as ``"~ party * day"``.  Formulas
            can contain covariates, interactions and splines: B-splines ``bs(day, df=5)`` or natural
            splines ``cr(day, df=5, constraints="center")``.  A matrix of numbers is used unchanged,
            so include a column of ones.
        data : pandas.DataFrame or dict of str to array-like, optional
            The covariates, with a row for each document.  Dates are converted to years, such as
            2020.5, and durations to days.  For another unit of time, pass numbers, such as days
            since the first document.
            Documents without words or with a missing covariate are excluded.  If the documents have
            a pandas index, a Series or DataFrame of covariates is aligned with this index.
        topics : list of int or str, optional
            Numbers or labels of topics.  None means all topics.
        clusters : array-like of shape (D,), optional
            The cluster of each document, such as its author.  Standard errors are then robust to
            dependence between documents of the same cluster.  With ``range(D)``, where each
            document is its own cluster, they are robust to heteroscedasticity.
        n_draws : int, default=25
            Number of draws of the shares of each document.
        random_state : int, RandomState instance or None, default=None
            Random seed of these draws.  None means the `random_state` of the model, or 0 if that is
            not an int.

        Returns
        -------
        Effects
            The estimates are in the attribute `table`; the methods are `contrast` and `shares`.  A
            topic that fewer than three refits found has an estimate, but no interval.

        Raises
        ------
        ImportError
            If formulaic or pandas is not installed.
        ValueError
            If the formula cannot be read or contains a name that is not in `data`, if its terms are
            linearly dependent, or if `data` or `clusters` have the wrong length.

        Notes
        -----
        The posterior of the shares of a document with :math:`n_d` words is
        :math:`\mathrm{Dirichlet}(\gamma_d)` with :math:`\gamma_d = \theta_d (\sum_k \alpha_k +
        n_d)`, which is exact for the mean field at temperature 1.  :func:`estimate_effects`
        describes how draws from this posterior are pooled.  For each topic, let :math:`\hat b_r` be
        the estimates from the m refits that found the topic, at least three.  Then
        :math:`(1 + 1/m)\, \mathrm{Cov}_r(\hat b_r)` is added to the covariance of the pooled
        estimate.

        If a covariate has no effect on 20 topics, expect one of the 20 intervals to exclude 0.

        Examples
        --------
        >>> from annealvi import TemperedLDA
        >>> from annealvi.datasets import make_topic_corpus
        >>> from annealvi.topics import describe
        >>> X = make_topic_corpus(300, 100, 4, random_state=0).data
        >>> lda = TemperedLDA(4, random_state=0).fit(X)
        >>> summary = describe(lda, X, refits=3)
        >>> summary.effects("~ half", {"half": [0] * 150 + [1] * 150})
        <Effects of 2 terms on 4 topics in 300 documents, with refits>
        """
        return effects.of_documents(
            self,
            self.labels,
            formula,
            data,
            topics=topics,
            clusters=clusters,
            n_draws=n_draws,
            random_state=self.random_state if random_state is None else random_state,
        )

    @validated(n=[*COUNT, None], prior=[Interval(Real, 1e-6, 1e12, closed="both")])
    def words_by_group(
        self, topic: int | str, groups: ArrayLike, n: int | None = N_WORDS, prior: float = 500.0
    ) -> Any:
        r"""Find the words that groups of documents use differently within a topic.

        Each group is compared with all other groups together.  A word of document d belongs to
        topic k with probability :math:`\phi_{dwk} \propto \theta_{dk} \, p(w \mid k)`, so the count
        of word w in topic k and a group is :math:`y_w = \sum_d n_{dw} \phi_{dwk}`.  Words are
        ranked by z (Monroe et al. 2008): the log-odds of the word in the group minus its log-odds
        in the other groups, divided by the standard error of this difference.  The difference is

        .. math::
            \delta_w = \log \frac{y_w + \alpha_w}{n + \alpha_0 - y_w - \alpha_w}
                - \log \frac{y'_w + \alpha_w}{n' + \alpha_0 - y'_w - \alpha_w},

        where :math:`y'` and :math:`n'` belong to the other groups, n is the sum of y over words,
        and the prior count :math:`\alpha_w` is :math:`\alpha_0` times the word's share of the topic
        in all groups.  Prior counts shrink the differences of rare words towards 0.

        Parameters
        ----------
        topic : int or str
            The number or label of the topic.
        groups : array-like of shape (D,)
            The group of each document, as in `by_group`.  Documents whose group is None or NaN are
            excluded.  To compare only two of many groups, set the other groups to None.
        n : int, default=10
            Number of words of each group, or None for all words.  With a number, only words that
            the group uses at least five times, and more often than the other groups, are listed.
        prior : float, default=500
            The sum :math:`\alpha_0` of the prior counts :math:`\alpha_w`, from 1e-6 to 1e12.

        Returns
        -------
        pandas.DataFrame
            The rows are sorted by group, and within a group by ``z``, largest first.  The columns
            are ``group``, ``word``, ``log_odds`` (the difference), ``std_error`` of the difference,
            ``z``, the limits ``low`` and ``high`` of the 95% interval, and ``count`` (y).
            ``share`` is the word's fraction of all words that the group uses in the topic, and
            ``others`` is the same fraction in the other groups.

        Raises
        ------
        ValueError
            If the number of groups is not the number of documents, or if there are fewer than two
            groups.

        Notes
        -----
        Monroe et al. use the variance :math:`1 / (y_w + \alpha_w) + 1 / (y'_w +
        \alpha_w)` of the difference, which assumes that all occurrences of words are independent.
        But a document that uses a word once tends to use it again: if groups are drawn at random,
        up to 12% of such 95% intervals do not contain 0 (docs/record/trust.md).  This method
        assumes that documents are independent of each other, and treats prior counts as counts of
        independent words.  Each of the two log-odds then has the variance

        .. math::
            \Big[ \alpha_w + \sum_d (c_{dw} - p_w m_d)^2 \Big]
                \Big[ \frac{n + \alpha_0}{(y_w + \alpha_w) (n + \alpha_0 - y_w - \alpha_w)} \Big]^2

        with :math:`c_{dw} = n_{dw} \phi_{dwk}`, :math:`m_d = \sum_w c_{dw}` and :math:`p_w = y_w /
        n`.  If words are independent, the sum of both variances is nearly that of Monroe et al.
        Topics are treated as known.  The intervals are too narrow for groups of few documents.

        References
        ----------
        B. L. Monroe, M. P. Colaresi, K. M. Quinn, "Fightin' words", Political Analysis 16, 2008.

        Examples
        --------
        >>> from annealvi import TopicModel
        >>> from annealvi.topics import describe
        >>> texts = ["red stars and planets", "blue stars and planets"] * 20
        >>> texts += ["bread, butter"] * 20
        >>> model = TopicModel(n_topics=2, random_state=0).fit(texts)
        >>> words = describe(model, texts).words_by_group(0, ["a", "b"] * 20 + ["c"] * 20, n=1)
        >>> sorted(words)[:3]
        ['count', 'group', 'high']
        """
        return contrasts.words_by_group(
            self._topics, self, self.labels.number(topic), groups, n, prior
        )

    @validated(n=[*COUNT, None], prior=[Interval(Real, 1e-6, 1e12, closed="both")])
    def words_over_time(
        self,
        topic: int | str,
        times: ArrayLike,
        freq: Any = "year",
        n: int | None = N_WORDS,
        prior: float = 500.0,
    ) -> Any:
        r"""Find the words whose share of a topic changes over time, and when it changes.

        For each period, the documents from this period on are compared with all earlier documents,
        as two groups in `words_by_group`.  Of each word, the change with the largest absolute z is
        listed, which may be somewhat later than the first use of the word.

        Parameters
        ----------
        topic : int or str
            The number or label of the topic.
        times : array-like of shape (D,)
            The time of each document, as in `over_time`.
        freq : str, timedelta or pandas.DateOffset, default="year"
            Length of a period, as in `over_time`.
        n : int, default=10
            Number of words, or None for all words.  With a number, only words that occur at least
            five times and have an interval without 0 are listed.
        prior : float, default=500
            The sum of the prior counts, as in `words_by_group`.

        Returns
        -------
        pandas.DataFrame
            A row for each word, the clearest change first: ``word``, ``since`` (the beginning of
            the period), ``log_odds`` of the documents from then on minus that of
            earlier documents, its ``std_error`` and ``z``, the limits ``low`` and ``high`` of its
            interval, ``count`` (the expected count from then on), and the word's ``share`` of the
            topic from then on and ``before``.

        Raises
        ------
        ValueError
            If the number of times is not the number of documents, if a time cannot be read, if
            `freq` is not a period, or if all documents are of one period.

        Notes
        -----
        The level of the intervals is :math:`1 - 0.05 / m` for m possible changes (Bonferroni), so
        that a word that does not change is listed with a probability of at most about 5%.  A change
        counts only if the documents before it, and those after it, have as many words of the topic
        as 50 documents of equal lengths (or a quarter of all documents, if these are fewer), and if
        the word occurs in the equivalent of at least five documents on the side where its share is
        larger.  Topics are treated as known.
        """
        return contrasts.words_over_time(
            self._topics, self, self.labels.number(topic), times, freq, n, float(prior)
        )

    # --------------------------------------------------------------- trust and a paper

    @property
    def trust(self) -> Any:
        """A table that shows which topics new fits find, and which topics are clear to a reader.

        A fit finds topics in any texts, and a second fit with the same seed finds the same topics.
        Neither fact shows that a topic is real.  The table answers two questions.  A topic is
        *weak* if a new fit, with another seed and to other documents of the same kind, probably
        does not find it.  A topic is *unclear* if a reader may find no meaning in its words,
        however often it is found.  Read the documents of such topics before you report them.

        Returns
        -------
        pandas.DataFrame
            A row for each topic, with the columns

            - ``label``: the label of the topic;
            - ``probability``: the probability that a new fit finds the topic, estimated from the
              fit: from the similarity of the topic to topics of the runs (`topic_support_`), its
              size and its exclusivity.  It is NaN if the fit did not merge runs;
            - ``found_again``: the share of `refits` that found a similar topic, or NaN without
              refits;
            - ``similarity``: the median cosine similarity of the topic and its matches in the
              `refits`.  Without refits, the matches come from the fits of ``TopicModel("auto")``
              and from the model `other` of :func:`describe`.  If there are no such fits, similarity
              is NaN.  Topics of two fits are matched one to one;
            - ``weak``: whether new fits probably do not find the topic.  With refits, this means a
              similarity below 0.7.  Without refits, it means a probability below 0.5 or, if the
              probability is unknown, a similarity below 0.7;
            - ``coherence``: how often the ten most relevant words of the topic occur in the same
              documents, as NPMI.  (In `table`, it is that of the most probable words);
            - ``exclusivity``: how rare these words are in other topics;
            - ``overlap``: of the documents with one of two of these words, the share with both, as
              the mean over pairs of words;
            - ``distinctness``: the Hellinger distance to the nearest other topic, from 0 (the same
              words) to 1 (no common word);
            - ``unclear``: whether one of the following holds: half of the ten words are stop words
              of a language; many topics contain the words (the exclusivity is below 0.65 times its
              median over topics); the words occur in the same documents, as those of standard texts
              and tables do (an overlap above 0.3); the words occur together less often than those
              of other topics (the coherence has covered less than 0.6 of the way from words drawn
              by chance to the median topic); or another topic has nearly the same words (the
              distinctness is below half of the median distance between topics).  All but the last
              require at least ten words per topic in the vocabulary;
            - ``reason``: the reasons in words, or an empty string.

            ``attrs["note"]`` of the table says if the probability is unknown, and if there are
            fewer than 20 documents per topic.
        """
        return trust.trust(self._topics, self._together, self.refits, len(self.shares))

    def methods(self) -> str:
        """Describe how the topics were found, in a paragraph for a paper, with references.

        The paragraph states the facts of the fit: numbers of documents and words, vocabulary,
        number of topics, runs, temperature, priors, seed, measures, version, and the checksum of
        the topics.  Check the paragraph before you publish it, and add how the texts were chosen
        and how you used the topics.

        Returns
        -------
        str
            A paragraph, an empty line, and the references, one on each line.

        Notes
        -----
        If topics were merged, dropped or fitted further, or come from another library, the
        paragraph does not describe the fit, because the model lacks that information.
        """
        return paper.methods(self._topics, self, self.quality, self.checksum)

    # ------------------------------------------------------------------------ report

    def write_report(
        self,
        path: str | PathLike,
        *,
        title: str | None = None,
        times: ArrayLike | None = None,
        freq: Any = "year",
        groups: ArrayLike | None = None,
        other: TopicSummary | None = None,
        n_words: int = 20,
        n_documents: int = 10,
        relevance: float | None = None,
    ) -> None:
        """Write a report on the topics to an HTML file, which a browser can open offline.

        This method requires plotly and pandas.

        Parameters
        ----------
        path : path
            The file to write.  An existing file is replaced only when the report is complete.
        title : str, optional
            The headline.
        times : array-like of shape (D,), optional
            Date or time of each document, as in `over_time`.
        freq : str, timedelta or pandas.DateOffset, default="year"
            Length of the periods of `times`, as in `over_time`.
        groups : array-like of shape (D,), optional
            The group of each document, as in `by_group`.
        other : TopicSummary, optional
            The summary of a second fit to the same words, whose topics are compared with these.
        n_words : int, default=20
            Number of words shown for each topic.
        n_documents : int, default=10
            Number of documents shown for each topic.  If it is 0, the file contains no texts.
        relevance : float, optional
            The initial position of the relevance slider.  The default is the default of `words`.

        Raises
        ------
        ImportError
            If plotly or pandas is not installed.
        OSError
            If the file cannot be written.
        ValueError
            If a parameter is out of range, or if the number of `times` or `groups` is not the
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


@checked
def describe(
    model: Any,
    documents: Any,
    feature_names: ArrayLike | None = None,
    *,
    texts: Any = None,
    titles: Any = None,
    held_out: Any = None,
    other: Any = None,
    refits: Any = 0,
    clusters: Any = None,
    random_state: Any = None,
    n_jobs: int | None = None,
    verbose: int = 0,
    layer: str | None = None,
) -> TopicSummary:
    """Summarise a fitted topic model: its topics, its documents, and how reliable each topic is.

    Parameters
    ----------
    model : fitted topic model
        A :class:`TopicModel`, a :class:`annealvi.TemperedLDA`, scikit-learn's
        ``LatentDirichletAllocation`` or ``NMF``, a pipeline of a vectorizer and one of these, or
        any object with ``components_`` of shape (K, V) and ``transform``.
    documents : iterable of str, {array-like, sparse matrix} of shape (D, V), or AnnData
        The documents to describe, usually those to which the model was fitted.  Every model accepts
        word counts; a model with a vectorizer also accepts texts.  If the model stores its words,
        the columns of an AnnData are matched to these words by name.
    feature_names : array-like of shape (V,), default=None
        The words.  None means the words of the model, or column numbers if it stores no words.
    texts : iterable of str, default=None
        The texts of the documents, for display; not needed if `documents` are texts.  A Series is
        matched by the index of the documents; if these have none, its index is their index.
    titles : iterable of str, default=None
        Titles of the documents, for display.  A Series is matched by the index of the documents.
    held_out : iterable of str, or {array-like, sparse matrix}, default=None
        Documents that were not used in the fit.  Their log-likelihood per word
        (:func:`annealvi.metrics.document_completion`) becomes
        ``quality["held_out_log_likelihood"]`` of the summary.
    other : fitted topic model, default=None
        Another fit of the same words, for example with another seed.  The similarity of the topics
        of the two models (:func:`annealvi.metrics.topic_stability`) becomes
        ``quality["stability"]`` of the summary, and `trust` lists the similarity for each topic.
    refits : int or Refits, default=0
        How many times the model is fitted again, with :func:`annealvi.topics.refit`; ten times are
        enough.  You can also pass a result of `refit` for this model and these documents.  With
        refits, `trust` reports how often each topic was found again, and the intervals of `effects`
        allow for the uncertainty of the topics.
    clusters : array-like of shape (D,), default=None
        The cluster of each document, such as its author, or the book of a passage.  Refits then
        draw clusters instead of documents.  Pass the clusters to `effects` too.
    random_state : int, RandomState instance or None, default=None
        Random seed for the split of `held_out` and for the refits.  None means the `random_state`
        of the model, or 0 if that is not an int.
    n_jobs : int, default=None
        Number of refits at the same time, as in :func:`annealvi.topics.refit`.  -1 means as many as
        there are processors.
    verbose : int, default=0
        If not 0, what takes more than two seconds shows its progress on standard error.
    layer : str, default=None
        The layer of an AnnData that contains the counts; see :func:`annealvi.corpus.read_cells`.

    Returns
    -------
    TopicSummary

    Raises
    ------
    TypeError
        If `model` is not a topic model, or if it requires counts, but texts are passed.
    ValueError
        If the columns of `documents` do not match the words of the model, if no document contains
        any of these words, or if `texts`, `titles` or `feature_names` have the wrong length.

    Examples
    --------
    >>> from annealvi import TemperedLDA
    >>> from annealvi.datasets import load_arxiv_abstracts
    >>> from annealvi.topics import describe
    >>> abstracts = load_arxiv_abstracts()
    >>> lda = TemperedLDA(20, random_state=0).fit(abstracts.data)
    >>> summary = describe(lda, abstracts.data, abstracts.feature_names)
    >>> summary
    <TopicSummary of 20 topics in 3000 documents, 3000 words>
    """
    source = Source(model)
    if random_state is None:
        random_state = seed_of(source.model)
    index = None
    if hasattr(documents, "obs_names"):  # an AnnData
        annotated = read_cells(documents, layer=layer)
        index = documents.obs_names
        documents = annotated.data
        if source.known_names is not None:
            model_names = source.names(feature_names=None, X=None)
            documents = in_columns(documents, annotated.feature_names, vocabulary=model_names)
        elif feature_names is None:
            feature_names = annotated.feature_names
    elif layer is not None:
        raise BadParameter("layer", "None unless 'documents' is an AnnData", layer)
    is_shown = check_flag(verbose, "verbose")
    with Progress("counting words", shown=is_shown):
        counted = source.read(documents, "documents")
    if index is not None:  # the matrix of an AnnData has no index
        counted = counted._replace(index=index)
    n_documents = counted.counts.shape[0]
    names = source.names(feature_names, counted.X)
    if texts is None:
        texts = counted.texts
    else:
        if counted.index is None and hasattr(texts, "iloc"):  # counts have no index
            counted = counted._replace(index=texts.index)
        texts = in_order(texts, counted.index, "texts")
        texts = of_each(check_texts(texts, "texts"), n_documents, "texts")
    if titles is not None:
        titles = in_order(titles, counted.index, "titles")
        titles = of_each(check_texts(titles, "titles"), n_documents, "titles")
    quality = {}
    if held_out is not None:
        X = source.read(held_out, "held_out").X
        # a Source has the `components_` and the `transform` that the function needs
        score = document_completion(source, X, random_state=random_state)
        quality["held_out_log_likelihood"] = float(score)
    similarity = []  # of the topics to those of `other`
    if other is not None:
        second = Source(other, name="other")
        names_known = source.known_names is not None and second.known_names is not None
        if names_known and not np.array_equal(source.known_names, second.known_names):
            raise BadParameter("other", "a fitted model with the same words", other)
        quality["stability"] = topic_stability(source.components_, second.components_)
        similarity.append(trust.match(source.components_, second.components_))
    checksum = topic_checksum(source.model)
    if isinstance(refits, Refits):
        if refits.checksum != checksum or refits.shares.shape[1] != n_documents:
            raise BadParameter("refits", "refits of this model and these documents", refits)
    elif not is_int_in(refits, 0):
        raise BadParameter("refits", "an int in the range [0, inf), or Refits", refits)
    elif clusters is not None and not refits:
        raise BadParameter("clusters", "None without refits", type(clusters))
    elif refits:
        refits = refit(
            model,
            counted.X,
            int(refits),
            clusters=in_order(clusters, counted.index, "clusters"),
            random_state=random_state,
            n_jobs=n_jobs,
            verbose=verbose,
        )
    else:
        refits = None
    with Progress("describing topics", shown=is_shown):
        described = source.describe(counted, refits)
        history = getattr(source.model, "history_", None)
        return TopicSummary(
            source.topics_of(sizes_in(described), names, *similarity),
            described,
            texts=texts,
            titles=titles,
            outlier_measure=source.unusual(counted.X, described),
            history=None if history is None else dict(history),
            checksum=checksum,
            quality=quality,
        )
