"""TopicModel: topics of raw texts."""

from __future__ import annotations

import copy
import os
from collections.abc import Iterable, Mapping
from numbers import Integral, Real
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import _fit_context, clone
from sklearn.utils._param_validation import HasMethods, StrOptions

from annealvi.checks import Interval, as_float, unchanged_on_error
from annealvi.inference.callbacks import as_list
from annealvi.inference.tasks import Tasks
from annealvi.lda import TemperedLDA
from annealvi.threads import writing
from annealvi.topics.fitted import FittedTopics
from annealvi.topics.seeds import check_seeds, plant_seeds
from annealvi.topics.state import TopicState
from annealvi.topics.texts import blocks_of, check_texts
from annealvi.topics.vectorizer import TopicVectorizer, count_words

#: What the parameters `vectorizer` and `lda` are if they are None.
PARTS = {"vectorizer": TopicVectorizer, "lda": TemperedLDA}


class TopicModel(FittedTopics):
    r"""Finds the topics of texts.

    It counts words with a :class:`~sklearn.feature_extraction.text.CountVectorizer` and fits a
    :class:`annealvi.TemperedLDA` to the counts.  Texts are str, in a list, a Series of pandas or
    polars, or any other iterable.

    Usually only `n_topics`, `stop_words` and `random_state` need to be set.  To watch the fit, set
    ``lda__callback=ProgressBar()`` (:class:`annealvi.progress.ProgressBar`); scikit-learn's own
    callbacks are set by `set_callbacks`, from its version 1.9 on.

    Parameters
    ----------
    n_topics : int or "auto", default=20
        Number of topics K.  It takes the place of `n_components` of `lda`.  With ``"auto"``,
        :func:`annealvi.topics.choose` first compares 2, 5, 10, 20, 50, 100 and 200 topics, as far
        as there is a topic for each 20 documents, on a sample of the texts.
    vectorizer : CountVectorizer or another transformer of texts, default=None
        Counts the words; it is cloned.  None means
        :class:`annealvi.topics.TopicVectorizer`, whose limits on rare and frequent words depend
        on the size of the corpus.  Another transformer needs ``get_feature_names_out``.
        Its parameters can be set as ``set_params(vectorizer__ngram_range=(1, 2))``.
    lda : TemperedLDA, default=None
        Finds the topics; it is cloned.  None means TemperedLDA().  Its parameters can be set as
        ``set_params(lda__temperature=1)``.
    seeds : dict of str to list of str, default=None
        Topics that are to be found, each by a name and some of its words, for example
        ``{"space": ["nasa", "orbit"]}``.  They become the first topics.  These start from documents
        with seed words, unless `lda` has an `init` or several starts.  In its topic a seed word
        gets a larger `topic_word_prior`, by half the number of times that the texts have it.
        Seed words stay in the vocabulary, however rare or frequent they are.
    stop_words : {"english"}, list of str or None, default="english"
        Words that are left out, unless `vectorizer` has stop words of its own.  Give a list for
        other languages.
    random_state : int, RandomState instance or None, default=None
        Seed of the fit.  None means that of `lda`.

    Attributes
    ----------
    vectorizer_ : object
        The fitted vectorizer.
    lda_ : TemperedLDA
        The fitted topics.  Its columns are `feature_names_`.
    components_ : ndarray of shape (n_topics, n_words)
        `components_` of `lda_`.  Divided by its row sums it is the probability of each word.
    feature_names_ : ndarray of shape (n_words,) of str
        The words that are counted.
    dropped_words_ : dict of str to list of str
        Words of the texts that are not counted, by the parameter of the vectorizer that left them
        out: ``"min_df"``, ``"max_df"``, ``"max_features"``.  Those in most documents come
        first; of each at most 10,000 are listed.  ``"stop_words"`` has all stop words.
    vocabulary_note_ : str
        How many words are counted, and what was left out and why.
    seed_topics_ : dict of str to int
        The topic of each of the `seeds`.
    choice_ : Choice
        The comparison behind ``n_topics="auto"``.

    See Also
    --------
    annealvi.TemperedLDA : The same for counts of words.

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

    _parameter_constraints: ClassVar[dict] = {
        "n_topics": [Interval(Integral, 1, None, closed="left"), StrOptions({"auto"})],
        "vectorizer": [HasMethods(["fit_transform", "transform", "get_feature_names_out"]), None],
        "lda": [TemperedLDA, None],
        "seeds": "no_validation",  # check_seeds says what a dict of seeds is
        "stop_words": [StrOptions({"english"}), "array-like", None],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        n_topics: int | Literal["auto"] = 20,
        *,
        vectorizer: Any = None,
        lda: TemperedLDA | None = None,
        seeds: Mapping[str, Iterable[str]] | None = None,
        stop_words: Literal["english"] | list[str] | None = "english",
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.n_topics = n_topics
        self.vectorizer = vectorizer
        self.lda = lda
        self.seeds = seeds
        self.stop_words = stop_words
        self.random_state = random_state

    def set_params(self, **params: Any) -> Self:
        """Set parameters, those of `vectorizer` and `lda` too.

        Parameters
        ----------
        **params : objects
            For example ``n_topics=50``, ``lda__temperature=1`` or ``vectorizer__min_df=3``.  A
            part that is None becomes the one that it stands for.

        Returns
        -------
        self : TopicModel
        """
        with unchanged_on_error(self):
            for name, kind in PARTS.items():
                nested = any(key.startswith(f"{name}__") for key in params)
                if nested and params.get(name, getattr(self, name)) is None:
                    params = {**params, name: kind()}
            return super().set_params(**params)

    # ----------------------------------------------------------------- fitting

    def fit(
        self, texts: Iterable[str], y: Any = None, *, resume: str | os.PathLike | None = None
    ) -> Self:
        """Learn the words and the topics of texts.

        After a KeyboardInterrupt or an error of the callback of `lda`, which is raised again, the
        model has the topics reached so far, if there are any.  After any other error it is
        unchanged.

        Parameters
        ----------
        texts : iterable of str
            At least two documents.  A document without words is allowed.
        y : Ignored
        resume : path, optional
            A checkpoint of a fit of `lda` to the same texts; see :meth:`TemperedLDA.fit`.

        Returns
        -------
        self : TopicModel

        Raises
        ------
        TypeError
            If the texts are no iterable of str.
        ValueError
            If there are fewer than two documents, if no words are left, if there are more topics
            than words, or if a parameter is out of range.
        """
        self._fit(texts, y, "fit", resume=resume)
        return self

    def fit_transform(self, texts: Iterable[str], y: Any = None) -> NDArray:
        """Fit, then `transform` the same texts.

        Parameters
        ----------
        texts : iterable of str
        y : Ignored

        Returns
        -------
        ndarray of shape (n_samples, n_topics)
        """
        state, X = self._fit(texts, y, "fit_transform")
        return state.lda.transform(X)

    @_fit_context(prefer_skip_nested_validation=False)
    def partial_fit(self, texts: Iterable[Any], y: Any = None) -> Self:
        """Learn from more texts: one block of them, or an iterable of blocks.

        The first block decides which words are counted, for good.  Make it large, some thousands
        of texts.  `lda__total_samples` is the number of texts in all blocks together.

        Parameters
        ----------
        texts : iterable of str, or iterable of iterables of str
            An iterator is read block by block.
        y : Ignored

        Returns
        -------
        self : TopicModel

        Raises
        ------
        TypeError
            If a block is no iterable of str.
        ValueError
            If a block is empty, or the first one as in `fit`.  What was learned from the blocks
            before stays.
        """
        owner = f"{type(self).__name__}.partial_fit"
        with writing(self):
            for block in blocks_of(texts, owner):
                if self.__sklearn_is_fitted__():
                    state = self._state
                    state.lda.partial_fit(sparse.csr_matrix(state.vectorizer.transform(block)))
                else:
                    state, X = self._begin(check_texts(block, owner, least=2), stream=True)
                    self._show(state, lambda state=state, X=X: state.lda.partial_fit(X))
        return self

    # ----------------------------------------------------------------- details

    @_fit_context(prefer_skip_nested_validation=False)
    def _fit(
        self, texts: Any, y: Any, method: str, *, resume: Any = None
    ) -> tuple[TopicState, sparse.csr_matrix]:
        with writing(self):
            checked = check_texts(texts, f"{type(self).__name__}.{method}", least=2)
            state, X = self._begin(checked)
            if "_skl_callbacks" in vars(self):  # scikit-learn's, from `set_callbacks`

                def so_far() -> dict[str, Any]:
                    now = copy.copy(state)
                    self._restore_parameters(now.lda)
                    return {"_state": now}

                tasks = Tasks(self, self._init_callback_context, checked, y, so_far)
                state.lda.set_params(callback=[*as_list(state.lda.callback), tasks])
            self._show(state, lambda: state.lda.fit(X, resume=resume))
        return state, X

    def _begin(
        self, texts: list[str], *, stream: bool = False
    ) -> tuple[TopicState, sparse.csr_matrix]:
        """A state whose topics are still to be fitted, and the counts of the texts."""
        owner, auto = type(self).__name__, isinstance(self.n_topics, str)
        vectorizer = self._new_vectorizer()
        seeds = check_seeds(self.seeds, None if auto else int(self.n_topics), vectorizer, owner)
        kept = frozenset(word for words in seeds.values() for word in words)
        vectorizer, X, vocabulary = count_words(vectorizer, texts, kept=kept)
        n_words, K = len(vocabulary.words), max(len(seeds), 1) if auto else int(self.n_topics)
        if n_words < K:
            raise ValueError(
                f"The 'n_topics' parameter of {owner} must be at most the number of words, "
                f"{n_words}. Got {K}. {vocabulary.note()}"
            )
        lda = TemperedLDA() if self.lda is None else clone(self.lda)
        # a clone has copies of the callbacks, which the user would not see
        lda.set_params(callback=None if self.lda is None else self.lda.callback)
        if self.random_state is not None:
            lda.set_params(random_state=self.random_state)
        choice = None
        if auto:
            from annealvi.topics.choice import choose_for  # not for `import annealvi`

            choice = choose_for(X, lda, least=K)
        K = K if choice is None else choice.recommended
        lda.set_params(n_components=K)
        if seeds:
            # whatever is wrong with the parameters of `lda`, it says itself when it fits
            counted = stream and isinstance(lda.total_samples, Real)
            n_each = as_float(lda.total_samples) / len(texts) if counted else 1.0
            plant_seeds(lda, seeds, vocabulary.words, X, n_each=n_each, owner=owner)
        seed_topics = {name: topic for topic, name in enumerate(seeds)}
        return TopicState(vectorizer, vocabulary, lda, seed_topics, choice), X

    def _show(self, state: TopicState, fit: Any) -> None:
        """Fit the topics of a state; show it, also if an interrupt has left some of the fit."""
        try:
            fit()
        finally:
            self._restore_parameters(state.lda)
            if state.lda.__sklearn_is_fitted__():
                self._state = state

    def _restore_parameters(self, lda: TemperedLDA) -> None:
        """Take back what was set for the fit alone."""
        given = TemperedLDA() if self.lda is None else self.lda
        lda.set_params(init=given.init, callback=given.callback)
