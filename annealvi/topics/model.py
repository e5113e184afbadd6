"""The estimator TopicModel, which finds topics in texts."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Mapping, Sequence, Sized
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import partial, wraps
from numbers import Integral, Real
from operator import attrgetter
from os import PathLike
from typing import Any, ClassVar, Literal, Self
from warnings import catch_warnings, simplefilter

import numpy as np
from numpy.random import RandomState
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from sklearn.base import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
    _fit_context,
    clone,
)
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.utils._param_validation import HasMethods, StrOptions
from sklearn.utils.validation import check_is_fitted

from annealvi.callbacks import ProgressBar
from annealvi.checks import Interval, as_float, checked, unchanged_on_error
from annealvi.corpus.cells import is_named, read_cells
from annealvi.exceptions import BadParameter, warn_user
from annealvi.files.parameters import has_function, parameter_of, parameter_tree
from annealvi.files.schema import (
    Array,
    Integer,
    Listed,
    Named,
    Number,
    Optional,
    Schema,
    Strings,
    Text,
    Tree,
    damaged,
)
from annealvi.inference.callbacks import CallbackSupport, Tasks, as_list
from annealvi.inference.fitted import reads
from annealvi.lda import TemperedLDA
from annealvi.matrices import check_whole
from annealvi.metrics.topics import RELEVANCE
from annealvi.mixtures import TemperedMultinomialMixture
from annealvi.models.lda.collapsed import Method
from annealvi.progress import Progress
from annealvi.storage import ESTIMATOR, estimator_of, tree_of
from annealvi.threads import changing, reading, shallow, writing
from annealvi.topics import growing
from annealvi.topics.choice import CHOICE, choose_for, matched
from annealvi.topics.seeds import check_seeds, plant_seeds
from annealvi.topics.source import lda_in, number_of_topics, topics_in
from annealvi.topics.summary import TopicSummary, describe
from annealvi.topics.vectorizer import (
    TopicVectorizer,
    Vocabulary,
    blocks_of,
    check_given,
    check_texts,
    copied,
    count_words,
    different_ints,
    is_list,
    naming_text,
    of_each,
    of_words,
    readable,
    warn_of_empty,
    with_stop_words,
    with_vocabulary,
)
from annealvi.topics.words import check_labels
from annealvi.versions import Versioned

#: The contents of the file of a fitted TopicModel.
STATE = Schema(
    vectorizer=Optional(Tree()),
    vocabulary=Schema(
        Vocabulary,
        words=Strings(),
        n_documents=Integer(),
        n_counted=Optional(Number(0.0)),
        n_repeated=Optional(Integer()),
        limits=Named(Integer()),
        dropped=Named(Listed(Text())),
        n_dropped=Named(Integer()),
        cleaned=Optional(Named(Integer())),
        languages=Optional(Named(Number(0.0, 1.0))),
    ),
    candidates=Optional(Named(Integer())),
    seeds=Listed(Text()),
    seed_topics=Listed(Integer()),
    labels=Optional(Listed(Text())),
    labelled=Optional(Listed(Integer())),
    choice=Optional(CHOICE),
    topic_similarity=Optional(Array((None, None))),
    lda=Schema(**{**ESTIMATOR.fields, "estimator": Text("TemperedLDA")}),
    mixture=Optional(
        Schema(**{**ESTIMATOR.fields, "estimator": Text("TemperedMultinomialMixture")})
    ),
)
#: Attributes of a fit that are removed when the topics change.
OF_TOPICS = ("mixture_", "topic_similarity_")
#: The end of the warning about texts without counted words in `fit` and `partial_fit`.
NOTHING_LEARNED = "Nothing is learned from these texts."
#: Attributes of an earlier fit or stream that a new fit removes.
OF_BEFORE = ("choice_", "_candidates", *OF_TOPICS)
#: The classes that replace None as the parameter `vectorizer` or `lda`.
DEFAULTS = {"vectorizer": TopicVectorizer, "lda": TemperedLDA}


def _counts(vectorizer: Any, texts: Any) -> csr_matrix:
    """Count the words of texts with a fitted vectorizer."""
    texts = check_texts(texts)
    with naming_text(vectorizer, texts):
        return csr_matrix(vectorizer.transform(readable(vectorizer, texts)))


def _known_counts(vectorizer: Any, texts: Any, what: str) -> csr_matrix:
    """Count the words of texts; warn about texts without words, whose result is `what`."""
    X = _counts(vectorizer, texts)
    warn_of_empty(X, f"The result for these texts is {what}, which does not depend on the texts.")
    return X


def _clusters_of(lda: TemperedLDA, X: csr_matrix, *, alone: bool) -> TemperedMultinomialMixture:
    """Fit a mixture with a cluster of documents for each topic.

    It is initialised with the topics, or by fits of its own if it is used without these topics.
    """
    K = number_of_topics(lda)
    mixture = TemperedMultinomialMixture(
        K,
        init="merged" if alone else lda.components_,
        random_state=lda.random_state if alone else None,
        n_jobs=lda.n_jobs,
    )
    with catch_warnings():  # clusters without documents do not mean that topics are bad
        simplefilter("ignore", ConvergenceWarning)
        mixture.fit(X)
    return mixture.set_params(init="merged")  # frees the array, which is as large as the clusters


def _is_watched(lda: TemperedLDA) -> bool:
    """Whether the user watches the fit of `lda`, so that other parts of a fit are shown too."""
    return bool(lda.verbose) or any(isinstance(c, ProgressBar) for c in as_list(lda.callback))


def _check_lda(lda: Any, n_words: int) -> None:
    """Check that `lda` is a fitted TemperedLDA of `n_words` words."""
    if lda_in(lda) is not lda:
        raise BadParameter("lda", "a TemperedLDA", lda)
    check_is_fitted(lda)
    if lda.n_features_in_ != n_words:
        raise BadParameter(
            "lda",
            f"a TemperedLDA that was fitted to the {n_words} words of the vectorizer",
            f"n_features_in_={lda.n_features_in_}",
        )


@dataclass(eq=False, repr=False)
class TopicModel(
    Versioned, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator, CallbackSupport
):
    r"""Find topics in a collection of texts.

    The model counts words with a :class:`~sklearn.feature_extraction.text.CountVectorizer` and fits
    a :class:`annealvi.TemperedLDA` to the counts.  Texts are str, in a list, a pandas or polars
    Series, or any other iterable.

    Usually you need to set only `n_topics`, `stop_words` and `random_state`.  To show the progress
    of the fit, set ``lda__callback=ProgressBar()`` (:class:`annealvi.callbacks.ProgressBar`).  With
    scikit-learn 1.9 or later, `set_callbacks` sets scikit-learn's own callbacks.

    Parameters
    ----------
    n_topics : int or "auto", default=20
        Number of topics K, which replaces `n_components` of `lda`.  With ``"auto"``,
        :func:`annealvi.topics.choose_n_topics` first compares 2, 5, 10, 20, 50, 100 and 200 topics
        on a sample of the texts, skipping values with fewer than 20 documents per topic.
    vectorizer : CountVectorizer or another transformer of texts, default=None
        The vectorizer that counts words; it is cloned.  None means
        :class:`annealvi.topics.TopicVectorizer`, whose limits on rare and frequent words depend on
        the size of the corpus.  Another transformer must have ``get_feature_names_out``.  Set a
        parameter of the vectorizer by, for example, ``set_params(vectorizer__ngram_range=(1, 2))``.
    lda : TemperedLDA, default=None
        The model that finds the topics; it is cloned.  None means TemperedLDA().  Set parameters of
        the model by, for example, ``set_params(lda__temperature=1)``.
    seed_words : dict of str to list of str, default=None
        Topics that you look for, as a dict of names to some words of the topic, for example
        ``{"space": ["nasa", "orbit"]}``.  Topics with seed words are the first topics of the model.
        They are initialised from texts with seed words, unless `lda` has an `init` or makes several
        runs.  The `topic_word_prior` of a seed word in its topic is increased by half the number of
        its occurrences in the texts.  Rare and frequent seed words stay in the vocabulary.
    stop_words : str, list of str or None, default="english"
        Words to exclude, unless `vectorizer` has its own stop words.  ``"english"`` means the list
        of scikit-learn.  The name or the code of another language, such as ``"german"`` or
        ``"de"``, means its list in the package stop-words (``pip install stop-words``).  For texts
        in several languages, write commas between them: ``"english,german"``.  The error for an
        unknown name lists all languages.  Saved models contain the stop words.
    random_state : int, RandomState instance or None, default=None
        Random seed of the fit.  None means the `random_state` of `lda`.
    single_topic : bool or "predict", default="predict"
        Whether each document has a single topic, as in a
        :class:`annealvi.TemperedMultinomialMixture`, which `fit` then fits too.

        - ``"predict"``: documents have several topics, but `predict` assigns each document to one
          topic, by a mixture with one cluster for each topic.  Each cluster is initialised with its
          topic.  The mixture increases the time of the fit by about a fifth, and needs as much
          memory as two copies of the topics in float64.
        - True: the topics are the clusters of the mixture, and the shares of topics in a document
          are the probabilities that the document is of each topic.  Set True for texts of few
          words, such as answers, titles and tweets, in which several topics cannot be told apart.
        - False: there is no mixture.

    Attributes
    ----------
    vectorizer_ : object
        The fitted vectorizer.
    lda_ : TemperedLDA
        The fitted topics.  Its `components_` has a column for each word of `feature_names_`.
    components_ : ndarray of shape (n_topics, n_words)
        `components_` of `lda_` or, with ``single_topic=True``, of `mixture_`.  Each row, divided by
        its sum, is a topic's distribution of words.
    feature_names_ : ndarray of shape (n_words,) of str
        The words that are counted.
    dropped_words_ : dict of str to list of str
        Words that were excluded, grouped by the parameter of the vectorizer that excluded them:
        ``"min_df"``, ``"max_df"`` or ``"max_features"``.  Each list contains at most 10,000 words;
        words that occur in most documents come first.  ``"stop_words"`` lists all stop words.
        After `partial_fit`, the lists contain words that later texts may still add.
    vocabulary_ : Vocabulary
        The words, the limits on them (`limits`), the numbers of excluded words (`n_dropped`) and
        the number of documents in which words were counted (`n_documents`).
    vocabulary_note_ : str
        A text that reports how many words are counted, which words were excluded and why, how many
        texts repeat another text, and whether the texts are short.
    seed_topics_ : dict of str to int
        The number of the topic for each name in `seed_words`.
    topic_labels_ : dict of int to str
        The labels set by `set_labels`, by the number of the topic.  A new fit removes all labels.
    mixture_ : TemperedMultinomialMixture
        The clusters of documents, unless ``single_topic=False``: cluster k for topic k.
    choice_ : Choice
        The comparison of numbers of topics, after `fit` with ``n_topics="auto"``.
    topic_similarity_ : ndarray of shape (n_runs, n_topics)
        After `fit` with ``n_topics="auto"``, the cosine between each topic and its match in each
        run of the comparison that had the chosen number of topics.  The topics of a run are matched
        one to one with those of the model.  :attr:`TopicSummary.trust` uses the cosines.

    See Also
    --------
    annealvi.TemperedLDA : The model that finds topics in word counts.

    Examples
    --------
    >>> from annealvi import TopicModel
    >>> texts = ["stars and planets", "bread and butter"] * 10 + ["planets", "butter on stars"]
    >>> model = TopicModel(n_topics=2, random_state=0).fit(texts)
    >>> sorted(sorted(words) for words in model.top_words(2))
    [['bread', 'butter'], ['planets', 'stars']]
    >>> model.transform(["planets made of butter"]).shape
    (1, 2)
    """

    # set together by `fit`, `partial_fit` and `with_lda`
    vectorizer_: Any = field(init=False)
    lda_: TemperedLDA = field(init=False)
    seed_topics_: dict[str, int] = field(init=False)
    topic_labels_: dict[int, str] = field(init=False)
    _vocabulary: Vocabulary = field(init=False)
    #: Words that later texts of a stream may add to the vocabulary.
    _candidates: dict[str, int] = field(init=False)

    _parameter_constraints: ClassVar[dict] = {
        "n_topics": [Interval(Integral, 1, None, closed="left"), StrOptions({"auto"})],
        "vectorizer": [HasMethods(["fit_transform", "transform", "get_feature_names_out"]), None],
        "lda": [TemperedLDA, None],
        "seed_words": "no_validation",  # check_seeds checks it
        "stop_words": [str, "array-like", None],  # with_stop_words checks it
        "random_state": ["random_state"],
        "single_topic": ["boolean", StrOptions({"predict"})],
    }

    n_topics: int | Literal["auto"] = 20
    _: KW_ONLY
    vectorizer: Any = None
    lda: TemperedLDA | None = None
    seed_words: Mapping[str, Iterable[str]] | None = None
    stop_words: str | list[str] | None = "english"
    random_state: int | RandomState | None = None
    single_topic: bool | Literal["predict"] = "predict"

    def set_params(self, **params: Any) -> Self:
        """Set parameters of the model, of `vectorizer` and of `lda`.

        Parameters
        ----------
        **params : objects
            For example ``n_topics=50``, ``lda__temperature=1`` or ``vectorizer__min_df=3``.  If you
            set a parameter of a `vectorizer` or `lda` that is None, it becomes a default object.

        Returns
        -------
        self : TopicModel
        """
        for name, kind in DEFAULTS.items():
            nested = any(key.startswith(f"{name}__") for key in params)
            # its parameters can only be set if there is an object
            if nested and params.get(name, getattr(self, name)) is None:
                params = {**params, name: kind()}
        with unchanged_on_error(self):
            return super().set_params(**params)

    # ----------------------------------------------------------------- fitting

    @checked
    @_fit_context(prefer_skip_nested_validation=False)
    def fit(
        self, documents: Iterable[str], y: Any = None, *, resume: str | PathLike | None = None
    ) -> Self:
        """Learn the vocabulary and the topics of texts.

        If a KeyboardInterrupt or an error in the callback of `lda` ends the fit, the exception is
        raised, and the model contains the topics learned so far, if any.  If the clusters cannot be
        fitted, the model has topics but no `mixture_`.  Other errors leave the model unchanged.

        Parameters
        ----------
        documents : iterable of str
            At least two documents.  A document without words is allowed.
        y : Ignored
        resume : path, optional
            A checkpoint of a fit to the same texts, from which the fit is resumed; see
            :meth:`TemperedLDA.fit`.

        Returns
        -------
        self : TopicModel

        Raises
        ------
        TypeError
            If the texts are not an iterable of str.
        ValueError
            If there are fewer than two documents, if all words are excluded, if there are more
            topics than words, or if a parameter is out of range.
        """
        self._fit(documents, y, resume)
        return self

    @checked
    @_fit_context(prefer_skip_nested_validation=False)
    def fit_counts(
        self,
        X: Any,
        words: Iterable[str] | None = None,
        *,
        layer: str | None = None,
        resume: str | PathLike | None = None,
    ) -> Self:
        """Learn topics from word counts, or from counts of genes or genomic regions in cells.

        The model can then be used as after `fit`: methods such as `transform` accept texts and
        count `words` in them, and topics can be labelled, edited and saved.  All words are kept,
        even stop words.  To apply the model to counts of other documents, use the methods of `lda_`
        and :func:`annealvi.topics.describe`.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_words), AnnData or path
            How often each word occurs in each document, as integers, for at least two documents.  X
            can also contain single cells: an AnnData, a .h5ad or .mtx file, or a folder in the
            format of 10x Genomics; see :func:`annealvi.corpus.read_cells`.
        words : iterable of str, of length n_words, default=None
            The word of each column.  If any word contains a capital letter, `transform` does not
            convert texts to lower case.  For cells, None means the names of genes or regions.
        layer : str, default=None
            Which part of an AnnData or a .h5ad file contains the counts: the name of a layer,
            ``"raw"`` for the attribute `raw`, or None for the attribute `X`.
        resume : path, optional
            A checkpoint of a fit to the same counts, from which the fit is resumed; see
            :meth:`TemperedLDA.fit`.

        Returns
        -------
        self : TopicModel

        Raises
        ------
        TypeError
            If a word is not a str, or if `vectorizer` is not a CountVectorizer.
        ValueError
            If X contains negative numbers, fractions or NaN, or only zeros; if `words` does not
            contain a distinct word for each column; if there are more topics than words; or if a
            parameter is out of range.

        Examples
        --------
        >>> from annealvi import TopicModel
        >>> X = [[2, 1, 0, 0], [1, 2, 0, 0], [0, 0, 1, 2], [0, 0, 2, 1]] * 5
        >>> model = TopicModel(n_topics=2, random_state=0)
        >>> _ = model.fit_counts(X, ["planets", "stars", "bread", "butter"])
        >>> sorted(sorted(words) for words in model.top_words(2))
        [['bread', 'butter'], ['planets', 'stars']]
        >>> model.transform(["planets made of butter"]).shape
        (1, 2)
        """
        if is_named(X):
            cells = read_cells(X, layer=layer)
            X = cells.data
            words = cells.feature_names if words is None else words
            if words is None:
                raise BadParameter("words", "a list of words, because X has no column names", words)
        elif layer is not None:
            raise BadParameter("layer", "None if X is a matrix", layer)
        counts = check_whole(X, "TopicModel.fit_counts")
        n_rows, n_columns = counts.shape
        if n_rows < 2 or not counts.data.any():
            raise BadParameter(
                "X",
                "word counts of at least two documents, not all 0",
                f"{n_rows} documents with {counts.sum():.0f} words",
            )
        n_words = len(words) if isinstance(words, Sized) and is_list(words) else None
        if n_words == n_rows != n_columns:
            raise BadParameter(
                "words",
                f"the words of the {n_columns} columns of X",
                f"{n_words} words",
                f"X has {n_rows} rows. If X is transposed, pass X.T.",
            )
        self._fit(counts, None, resume, check_given(words, n_columns))
        return self

    @checked
    @_fit_context(prefer_skip_nested_validation=False)
    def fit_transform(self, documents: Iterable[str], y: Any = None) -> NDArray:
        """Fit the model to texts, and return the topic proportions of these texts.

        Parameters
        ----------
        documents : iterable of str
        y : Ignored

        Returns
        -------
        ndarray of shape (n_samples, n_topics)
        """
        with writing(self):  # so that it is this fit that transforms
            X = self._fit(documents, y)
            return np.asarray(topics_in(self).transform(X))  # the output set for `lda` is its own

    @checked
    @_fit_context(prefer_skip_nested_validation=False)
    def partial_fit(self, documents: Iterable[Any], y: Any = None) -> Self:
        """Learn from another block of texts, or from several blocks, one after the other.

        Set `lda__total_samples` to the number of texts in all blocks together.

        The first block determines which words are counted, and later blocks add words.  A word is
        added, and counted from that block on, once it meets the limits of the vectorizer, such as
        `min_df`, in all texts so far.  Words are never removed, and keep their positions in
        `feature_names_`.  Words that do not yet occur in enough texts are in `dropped_words_`; the
        model stores at most 200,000 of them.  The first block must contain at least as many words
        as there are topics.

        No words are added if you passed the vocabulary, as in ``TopicVectorizer(vocabulary=words)``
        or `fit_counts`, or if `vectorizer` is not a CountVectorizer or overrides `transform`.

        Parameters
        ----------
        documents : iterable of str, or iterable of iterables of str
            One block of texts, or several blocks.  An iterator is read block by block.
        y : Ignored

        Returns
        -------
        self : TopicModel

        Raises
        ------
        TypeError
            If a block is not an iterable of str.
        ValueError
            If a block is empty, or if `fit` would not accept the first block.  After such an error
            the model keeps what it learned from earlier blocks.
        """
        if self.single_topic is True:
            raise BadParameter("single_topic", "False or 'predict' in partial_fit", True)
        with writing(self):
            for block in blocks_of(documents):
                # they belong to the topics so far
                for name in OF_TOPICS:
                    self.__dict__.pop(name, None)
                if self.__sklearn_is_fitted__():
                    self._go_on(block)
                else:
                    attributes, X = self._begin(check_texts(block, min_documents=2), stream=True)
                    # words of this block that later blocks may add
                    vectorizer = attributes["vectorizer_"]
                    if growing.grows(vectorizer, attributes["_vocabulary"]):
                        attributes["_candidates"] = growing.first_candidates(vectorizer, block)
                    self._show(attributes, partial(attributes["lda_"].partial_fit, X))
        return self

    # ------------------------------------------------------------- from its parts

    @classmethod
    def from_parts(cls, vectorizer: Any, lda: TemperedLDA) -> Self:
        """Return a model that consists of a fitted vectorizer and topics fitted to its counts.

        Parameters
        ----------
        vectorizer : CountVectorizer or TopicVectorizer
            A fitted vectorizer.
        lda : TemperedLDA
            Topics that were fitted to the counts of the vectorizer.

        Returns
        -------
        TopicModel
            A fitted model, whose parameters `vectorizer` and `lda` are unfitted clones.

        Raises
        ------
        TypeError
            If `vectorizer` is not a CountVectorizer, or `lda` is not a TemperedLDA.
        ValueError
            If `vectorizer` and `lda` do not have the same number of words.
        NotFittedError
            If `vectorizer` or `lda` is not fitted.

        Examples
        --------
        >>> from annealvi import TemperedLDA, TopicModel
        >>> from annealvi.topics import TopicVectorizer
        >>> texts = ["stars and planets", "planets of stars", "bread and butter", "butter, bread"]
        >>> vectorizer = TopicVectorizer(stop_words="english")
        >>> lda = TemperedLDA(2, random_state=0).fit(vectorizer.fit_transform(texts))
        >>> TopicModel.from_parts(vectorizer, lda).transform(["a planet of butter"]).shape
        (1, 2)
        """
        if not isinstance(vectorizer, CountVectorizer):
            raise BadParameter("vectorizer", "a CountVectorizer", vectorizer)
        words = vectorizer.get_feature_names_out()
        _check_lda(lda, len(words))
        model = cls(
            number_of_topics(lda),
            vectorizer=copied(vectorizer),
            lda=clone(lda),
            stop_words=None,
        )
        # a CountVectorizer does not store which words it excluded
        vocabulary = getattr(vectorizer, "dropped_", Vocabulary(words, n_documents=0))
        model.__dict__.update(
            vectorizer_=vectorizer,
            lda_=lda,
            seed_topics_={},
            topic_labels_={},
            _vocabulary=vocabulary,
        )
        return model

    # --------------------------------------------------------------- inference

    @reads
    def transform(
        self,
        documents: Iterable[str],
        *,
        normalize: bool = True,
        temperature: float | str = 1.0,
        method: Method = "variational",
    ) -> NDArray:
        """Infer the topic proportions of texts.

        Parameters
        ----------
        documents : iterable of str
            Words that are not in `feature_names_` are ignored.
        normalize, temperature, method : objects
            As in :meth:`TemperedLDA.transform`.  They have no effect with ``single_topic=True``.

        Returns
        -------
        ndarray of shape (n_samples, n_topics)
            Rows sum to 1, unless `normalize` is False.  The row of a text without words is the mean
            of the prior; a warning reports the number of such texts.

        Raises
        ------
        TypeError
            If the texts are not an iterable of str.
        ValueError
            If there are no texts, or if a parameter is out of range.
        """
        vectorizer, lda = self._parts()
        X = _known_counts(vectorizer, documents, "the mean of the prior")
        if lda is not self.lda_:
            return np.asarray(lda.transform(X))
        return np.asarray(
            lda.transform(X, normalize=normalize, temperature=temperature, method=method)
        )

    @reads
    def predict(self, documents: Iterable[str]) -> NDArray[np.int64]:
        """Return the number of each text's cluster; cluster k corresponds to topic k.

        Topics are predicted by `mixture_`.  If ``single_topic=False``, or after `partial_fit`, or
        after topics were edited, there is no `mixture_`, and :meth:`TemperedLDA.predict` is used.

        Parameters
        ----------
        documents : iterable of str

        Returns
        -------
        ndarray of shape (n_samples,)
            Topic numbers.  A text without words is assigned to the largest cluster; a warning
            reports the number of such texts.
        """
        check_is_fitted(self)
        X = _known_counts(self.vectorizer_, documents, "the largest cluster")
        return self._classifier().predict(X)

    @checked
    @_fit_context(prefer_skip_nested_validation=False)
    def fit_predict(self, documents: Iterable[str], y: Any = None) -> NDArray[np.int64]:
        """Fit the model to texts, and return the number of each text's topic.

        Parameters
        ----------
        documents : iterable of str
        y : Ignored

        Returns
        -------
        ndarray of shape (n_samples,)
            What `predict` returns for these texts after the fit.
        """
        with writing(self):  # so that it is this fit that predicts
            X = self._fit(documents, y)
            return self._classifier().predict(X)

    def describe(
        self,
        documents: Any,
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
        """Summarise the topics and their documents with :func:`annealvi.topics.describe`.

        Parameters
        ----------
        documents : iterable of str, or {array-like, sparse matrix} of shape (D, V)
            Texts or word counts, usually those that were used in the fit.
        texts, titles, held_out, other, refits, clusters : objects
        random_state, n_jobs, verbose, layer : objects
            As in :func:`annealvi.topics.describe`.

        Returns
        -------
        TopicSummary
            A summary with tables and plots of the topics.
        """
        return describe(
            self,
            documents,
            texts=texts,
            titles=titles,
            held_out=held_out,
            other=other,
            refits=refits,
            clusters=clusters,
            random_state=random_state,
            n_jobs=n_jobs,
            verbose=verbose,
            layer=layer,
        )

    @reads
    def score(self, documents: Iterable[str], y: Any = None) -> float:
        """Compute the ELBO of texts at T = 1, in nats; see :meth:`TemperedLDA.score`.

        Compare scores only between models with the same words and the same priors: counting fewer
        words raises the score, and the priors are part of the ELBO.  To compare models with
        different priors, use :func:`annealvi.metrics.document_completion`.

        Parameters
        ----------
        documents : iterable of str
        y : Ignored

        Returns
        -------
        float
            The score; higher is better.
        """
        vectorizer, topics = self._parts()
        return topics.score(_known_counts(vectorizer, documents, "a score of 0"))

    @checked
    def counts(self, documents: Iterable[str]) -> csr_matrix:
        """Count the words of texts.

        Parameters
        ----------
        documents : iterable of str

        Returns
        -------
        CSR matrix of shape (n_samples, n_words)
            The columns are the words of `feature_names_`.  Methods of `lda_` accept this matrix.
        """
        return _counts(self._parts()[0], documents)

    @reads
    def top_words(self, n: int = 10, *, relevance: float | None = None) -> list[list[str]]:
        """Return the n most relevant words of each topic, best first.

        Parameters
        ----------
        n : int, default=10
            Number of words for each topic.
        relevance : float, default=None
            See :meth:`TemperedLDA.top_words`.

        Returns
        -------
        list of lists of str
        """
        topics = self._parts()[1]
        if relevance is None and topics is not self.lda_:
            relevance = RELEVANCE
        return topics.top_words(n, self.feature_names_, relevance=relevance)

    @reads
    def with_lda(
        self,
        lda: TemperedLDA,
        seed_topics: Mapping[str, int] | None = None,
        labels: Mapping[int, str] | None = None,
    ) -> Self:
        """Return a new model with the same words and other topics; this model is not changed.

        Parameters
        ----------
        lda : TemperedLDA
            Topics that were fitted to counts of the same words.
        seed_topics : mapping of str to int, optional
            The topic of each name in `seed_words`.  By default no topic has seed words.
        labels : mapping of int to str, optional
            Labels of topics of the new model, as in `set_labels`.  By default there are no labels.

        Returns
        -------
        TopicModel
            A model whose `n_topics` is the number of topics of `lda`.

        Raises
        ------
        TypeError
            If `lda` is not a TemperedLDA.
        ValueError
            If `lda` and this model do not have the same number of words, or if `seed_topics` or
            `labels` contain a topic that does not exist.
        """
        check_is_fitted(self)
        _check_lda(lda, len(self.feature_names_))
        n_topics = number_of_topics(lda)
        seeded = {} if seed_topics is None else seed_topics
        if not isinstance(seeded, Mapping) or not all(
            isinstance(name, str) and type(topic) is int and 0 <= topic < n_topics
            for name, topic in seeded.items()
        ):
            raise BadParameter(
                "seed_topics",
                f"a dict of names to topic numbers from 0 to {n_topics - 1}",
                seed_topics,
            )
        # a copy of all attributes but those of the old topics
        model = shallow(self)
        for name in OF_TOPICS:
            model.__dict__.pop(name, None)
        model.__dict__.update(
            lda_=lda, seed_topics_=dict(seeded), topic_labels_={}, n_topics=n_topics
        )
        return model if labels is None else model.set_labels(labels)

    @checked
    def set_labels(self, labels: Mapping[int, str] | Sequence[str]) -> Self:
        """Set labels, which are shown as the names of topics and saved with the model.

        Summaries, reports and the command-line program ``annealvi`` show the labels.  A topic keeps
        its label when other topics are edited, for example by :func:`annealvi.topics.merge_topics`.
        Merged topics and topics of a new fit have no labels.

        Parameters
        ----------
        labels : dict of int to str, or sequence of str
            Either a dict of topic numbers to labels, or a sequence with the labels of all topics,
            such as the `labels` of a summary.  Topics that are not in the dict keep their labels.

        Returns
        -------
        self : TopicModel

        Raises
        ------
        ValueError
            If a topic does not exist, a label is empty, or two topics would have the same label.

        Examples
        --------
        >>> from annealvi import TopicModel
        >>> texts = ["stars and planets", "bread and butter"] * 10 + ["planets", "butter on stars"]
        >>> model = TopicModel(n_topics=2, random_state=0).fit(texts)
        >>> model.set_labels({0: "the sky"}).topic_labels_
        {0: 'the sky'}
        """
        check_is_fitted(self)
        with writing(self):
            n_topics = number_of_topics(self.lda_)
            if not isinstance(labels, Mapping):
                labels = dict(enumerate(of_each(labels, n_topics, "labels", "topic")))
            topics = different_ints(
                list(labels), "labels", "the topics", lower=0, upper=n_topics - 1
            )
            all_labels = self.topic_labels_ | dict(zip(topics, labels.values(), strict=True))
            seeded = {topic: name for name, topic in self.seed_topics_.items()}
            check_labels(seeded | all_labels)  # a topic with seed words is labelled by their name
            with changing(self):  # no other thread reads in between
                self.topic_labels_ = {topic: str(name) for topic, name in all_labels.items()}
        return self

    # ------------------------------------------------------------------- files

    def state_dict(self) -> dict[str, Any]:
        """Return the fitted state as a tree, for :func:`annealvi.save`."""
        vectorizer = self.vectorizer_
        if _reads_files(vectorizer):
            raise TypeError(
                f"A model whose vectorizer has input={vectorizer.input!r} cannot be saved, because "
                "a loaded model reads only texts, not files. Fit the model with input='content'."
            )
        functions = has_function(vectorizer)  # which a file cannot contain
        return STATE.dump(
            {
                "vectorizer": None if functions else parameter_tree(vectorizer, "vectorizer_"),
                "vocabulary": self._vocabulary,
                "candidates": getattr(self, "_candidates", None),
                "seeds": self.seed_topics_.keys(),
                "seed_topics": self.seed_topics_.values(),
                "labels": list(self.topic_labels_.values()),
                "labelled": list(self.topic_labels_),
                "choice": getattr(self, "choice_", None),
                "topic_similarity": getattr(self, "topic_similarity_", None),
                "lda": tree_of(self.lda_),
                "mixture": tree_of(self.mixture_) if hasattr(self, "mixture_") else None,
            }
        )

    def load_state_dict(self, tree: Mapping[str, Any], path: str = "state") -> None:
        """Set the fitted state, for :func:`annealvi.load`."""
        self._validate_params()
        values = STATE.load(tree, "state")
        lda = estimator_of(values["lda"], path="state.lda")
        vocabulary = values["vocabulary"]
        words = vocabulary.words
        if not len(words) == len(set(words.tolist())) == lda.n_features_in_:
            raise damaged("state.vocabulary.words", f"{lda.n_features_in_} different words", words)
        names = values["seeds"]
        topics = values["seed_topics"]
        K = number_of_topics(lda)
        if len(names) != len(topics) or max(topics, default=0) >= K:
            raise damaged("state.seed_topics", "topics, one for each name", topics)
        vectorizer = (
            self._new_vectorizer()
            if values["vectorizer"] is None
            else parameter_of(values["vectorizer"], "state.vectorizer")
        )
        if _reads_files(vectorizer):
            raise damaged("state.vectorizer", "with input='content'", vectorizer.input)
        try:  # a test, because a vectorizer checks its parameters only in `fit`
            copied(vectorizer).set_params(vocabulary=["word"]).fit(["a word"]).transform(["a word"])
        except ImportError:
            raise
        except Exception as error:  # any library may raise it because of a damaged parameter
            raise ValueError(
                f"The file is damaged: its vectorizer cannot count words: {error}"
            ) from error
        self._vocabulary = vocabulary
        self.vectorizer_ = with_vocabulary(vectorizer, words)
        self.lda_ = lda
        self.seed_topics_ = dict(zip(names, topics, strict=True))
        if values["candidates"] is not None:
            self._candidates = values["candidates"]
        labels = values["labels"] or []
        self.topic_labels_ = {}
        try:
            self.set_labels(dict(zip(values["labelled"] or [], labels, strict=True)))
        except ValueError as error:
            raise damaged("state.labels", "labels of topics", labels) from error
        if values["choice"] is not None:
            self.choice_ = values["choice"]
        if values["topic_similarity"] is not None:
            self.topic_similarity_ = values["topic_similarity"]
            if self.topic_similarity_.shape[1] != K:
                raise damaged("state.topic_similarity", "of the topics", self.topic_similarity_)
        if values["mixture"] is not None:
            self.mixture_ = estimator_of(values["mixture"], path="state.mixture")
            sizes = len(self.mixture_.weights_), self.mixture_.n_features_in_
            if sizes != (K, len(words)):
                raise damaged("state.mixture", "clusters of the topics and words", sizes)

    # -------------------------------------------------------------- attributes

    feature_names_ = property(attrgetter("_vocabulary.words"), doc="The words that are counted.")
    dropped_words_ = property(attrgetter("vocabulary_.dropped"), doc="Words that were excluded.")

    @property
    def components_(self) -> NDArray:
        """The `components_` of the topics."""
        check_is_fitted(self)
        return topics_in(self).components_

    @property
    def vocabulary_(self) -> Vocabulary:
        """The words that are counted, and those that were excluded."""
        # words of a stream that do not occur in enough texts yet; None without a stream
        candidates = getattr(self, "_candidates", None)
        return (
            self._vocabulary
            if candidates is None
            else growing.with_dropped(self._vocabulary, candidates)
        )

    @property
    def vocabulary_note_(self) -> str:
        """A text that reports which words are counted and which were excluded."""
        return self.vocabulary_.note()

    @property
    def _n_features_out(self) -> int:
        """The number of columns of `transform`, for scikit-learn."""
        return number_of_topics(self.lda_)

    def __sklearn_is_fitted__(self) -> bool:
        """Whether the model is fitted; scikit-learn's `check_is_fitted` calls this method."""
        return hasattr(self, "lda_")

    def __sklearn_tags__(self) -> Any:
        """Return what scikit-learn must know: documents are texts, not a matrix."""
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.input_tags.two_d_array = False
        return tags

    def __copy__(self) -> Self:
        """Return a copy that can be fitted further without changing this model."""
        model = shallow(self)
        if model.__sklearn_is_fitted__():
            model.lda_ = copy.copy(model.lda_)
        return model

    # ----------------------------------------------------------------- details

    def _parts(self) -> tuple[Any, Any]:
        """Return the vectorizer and the topics of the same fit, even if another thread fits."""
        check_is_fitted(self)
        with reading(self):
            return self.vectorizer_, topics_in(self)

    def _classifier(self) -> Any:
        """Return the model that predicts the topic of a document: the mixture, or the topics."""
        return getattr(self, "mixture_", self.lda_)

    def _new_vectorizer(self) -> Any:
        """Return an unfitted copy of the vectorizer, or a default one, with stop words."""
        vectorizer = TopicVectorizer() if self.vectorizer is None else copied(self.vectorizer)
        return with_stop_words(vectorizer, self.stop_words)

    def _fit(
        self, documents: Any, y: Any, resume: Any = None, words: NDArray | None = None
    ) -> csr_matrix:
        """Fit the model to texts, or to counts of `words`; return the counts."""
        with writing(self):  # one thread at a time
            if words is None:
                documents = check_texts(documents, min_documents=2)
            attributes, X = self._begin(documents, words)
            lda = attributes["lda_"]
            if hasattr(self, "_skl_callbacks"):  # scikit-learn's, from `set_callbacks`

                def fitted_so_far() -> dict[str, Any]:
                    """Return the attributes of a model with the topics of the present step."""
                    lda_so_far = copy.copy(lda)
                    self._restore_parameters(lda_so_far)
                    return {**attributes, "lda_": lda_so_far}

                tasks = Tasks(self, self._init_callback_context, documents, y, fitted_so_far)
                lda.set_params(callback=[*as_list(lda.callback), tasks])

            def learn() -> None:
                """Fit the topics and, if each document has a single topic, the mixture."""
                lda.fit(X, resume=resume)
                if self.single_topic:
                    with Progress("assigning documents", shown=_is_watched(lda)):
                        attributes["mixture_"] = _clusters_of(
                            lda, X, alone=self.single_topic is True and not self.seed_words
                        )

            self._show(attributes, learn)
        return X

    def _begin(
        self, documents: Any, words: NDArray | None = None, *, stream: bool = False
    ) -> tuple[dict[str, Any], csr_matrix]:
        """Return the attributes that a fit sets, with `lda_` not fitted yet, and the word counts.

        `documents` are texts if `words` is None, and counts of `words` otherwise.
        """
        original = TemperedLDA() if self.lda is None else self.lda
        n_topics = None if isinstance(self.n_topics, str) else int(self.n_topics)
        vectorizer = self._new_vectorizer() if words is None else of_words(self.vectorizer, words)
        seed_words = check_seeds(self.seed_words, n_topics, vectorizer)
        if words is None:
            kept = frozenset(word for names in seed_words.values() for word in names)
            # not timed, because the limits on words are applied after the counting
            with Progress("counting words", shown=_is_watched(original), timed=False) as progress:
                vectorizer, X, vocabulary = count_words(
                    vectorizer, documents, kept=kept, each=progress.each
                )
        else:
            X = documents
            vocabulary = Vocabulary(words, n_documents=0)  # the user passed the words
        warn_of_empty(X, f"{NOTHING_LEARNED} Their topic proportions are the mean of the prior.")
        if vocabulary.very_short and self.single_topic is not True:
            warn_user(vocabulary.shortness())
        n_documents = X.shape[0]
        n_words = len(vocabulary.words)
        K = n_topics or max(len(seed_words), 1)
        if n_words < K:
            raise BadParameter(
                "n_topics", f"at most the number of words, {n_words}", K, vocabulary.note()
            )
        if n_documents < K:
            warn_user(
                f"There are more topics than documents: {K:,} topics for {n_documents:,} "
                "documents. Use fewer topics. As a rule of thumb, have at least 20 documents per "
                "topic."
            )
        # not the copies that `clone` makes: the user looks at the original callbacks
        lda = clone(original).set_params(callback=original.callback)
        if self.random_state is not None:
            lda.set_params(random_state=self.random_state)
        attributes = {
            "vectorizer_": vectorizer,
            "lda_": lda,
            "seed_topics_": {name: topic for topic, name in enumerate(seed_words)},
            "topic_labels_": {},
            "_vocabulary": vocabulary,
        }
        if n_topics is None:
            attributes["choice_"] = choose_for(X, lda, least=K, verbose=_is_watched(original))
            K = attributes["choice_"].recommended
        lda.set_params(n_components=K)
        if seed_words:
            # a wrong type of total_samples is reported by `lda` when it is fitted
            counted = stream and isinstance(lda.total_samples, Real)
            n_each = as_float(lda.total_samples) / n_documents if counted else 1.0
            plant_seeds(lda, seed_words, vocabulary.words, X, n_each)
        return attributes, X

    def _show(self, attributes: dict[str, Any], fit: Callable[[], Any]) -> None:
        """Fit topics by `fit`, and set the attributes even if an interrupt ends the fit."""
        try:
            fit()
        finally:
            topics = attributes["lda_"]
            self._restore_parameters(topics)
            if topics.__sklearn_is_fitted__():
                if "choice_" in attributes:  # compares these topics with those of its runs
                    if self.single_topic is True:
                        topics = attributes.get("mixture_", topics)
                    attributes |= matched(attributes["choice_"], topics.components_)
                with changing(self):  # no other thread reads in between
                    for name in OF_BEFORE:
                        self.__dict__.pop(name, None)
                    self.__dict__.update(attributes)

    def _go_on(self, texts: list[str]) -> None:
        """Learn from one more block of a stream, and add its new words."""
        vectorizer = self.vectorizer_
        vocabulary = self._vocabulary
        if not growing.grows(vectorizer, vocabulary):  # no words are added
            X = _counts(vectorizer, texts)
            if X.nnz:  # otherwise `lda_` warns
                warn_of_empty(X, NOTHING_LEARNED)
            self.lda_.partial_fit(X)
            return
        # words that may be added; after a `fit`, those that it excluded
        before = getattr(self, "_candidates", None)
        before = growing.candidates_of_fit(vocabulary) if before is None else before
        vectorizer, after, candidates, X = growing.next_block(vectorizer, vocabulary, before, texts)
        if X.nnz:
            warn_of_empty(X, NOTHING_LEARNED)
        n_new = len(after.words) - len(vocabulary.words)
        if n_new:
            with writing(self.lda_), changing(self):
                self.lda_.add_words(n_new)
                self.vectorizer_ = vectorizer
                self._vocabulary = replace(vocabulary, words=after.words)
        self.lda_.partial_fit(X)
        with changing(self):  # only now, because an error must not change the word counts
            self._vocabulary = after
            self._candidates = candidates

    def _restore_parameters(self, lda: TemperedLDA) -> None:
        """Restore parameters of `lda` that were set only for the fit."""
        original = TemperedLDA() if self.lda is None else self.lda
        lda.set_params(init=original.init, callback=original.callback)


def _reads_files(vectorizer: Any) -> bool:
    """Whether the vectorizer reads texts from files."""
    return getattr(vectorizer, "input", "content") != "content"


def _with_documents(method: Callable) -> Callable:
    """Make a method accept `documents` by name; scikit-learn's wrapper names the parameter X."""

    @wraps(method)
    def call(self: TopicModel, documents: Iterable[str], *args: Any, **options: Any) -> Any:
        """Pass the documents by position."""
        return method(self, documents, *args, **options)

    return call


for _name in ("transform", "fit_transform"):
    setattr(TopicModel, _name, _with_documents(getattr(TopicModel, _name)))
