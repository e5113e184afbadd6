"""The methods and attributes of a fitted TopicModel, in scikit-learn's conventions."""

from __future__ import annotations

import copy
import os
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, Self

from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin, clone
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.utils.validation import check_is_fitted

from annealvi.files import Node
from annealvi.inference.tasks import CallbackSupport
from annealvi.lda import TemperedLDA
from annealvi.models.lda.collapsed import Method
from annealvi.storage import load, save
from annealvi.threads import shallow
from annealvi.topics.state import TopicState, number_of_topics
from annealvi.topics.vectorizer import TopicVectorizer, Vocabulary, with_stop_words
from annealvi.versions import Versioned


class FittedTopics(
    Versioned,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
    BaseEstimator,
    CallbackSupport,
):
    """The methods and attributes of a fitted model; see :class:`annealvi.TopicModel`.

    A subclass defines the parameters and the fit.
    """

    # set by `fit`, `partial_fit` and `with_lda`
    _state: TopicState

    # the subclass's parameters that are needed here
    n_topics: Any
    vectorizer: Any
    stop_words: Any

    # ------------------------------------------------------------- from its parts

    @classmethod
    def from_parts(cls, vectorizer: Any, lda: TemperedLDA) -> Self:
        """Return a model of a fitted vectorizer and of topics that were fitted to its counts.

        Parameters
        ----------
        vectorizer : CountVectorizer or TopicVectorizer
            Fitted.
        lda : TemperedLDA
            Fitted to the counts of the vectorizer.

        Returns
        -------
        TopicModel
            Its parameters `vectorizer` and `lda` are clones of these.

        Raises
        ------
        TypeError
            If `vectorizer` or `lda` is of another class.
        ValueError
            If they have not the same number of words.
        NotFittedError
            If one is not fitted.

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
        kinds = {"vectorizer": (vectorizer, CountVectorizer), "lda": (lda, TemperedLDA)}
        for name, (value, kind) in kinds.items():
            if not isinstance(value, kind):
                raise TypeError(f"{name!r} must be a {kind.__name__}. Got {value!r} instead.")
        words = vectorizer.get_feature_names_out()
        check_is_fitted(lda)
        if lda.n_features_in_ != len(words):
            raise ValueError(
                f"'lda' must have the {len(words)} words of the vectorizer. Got n_features_in_="
                f"{lda.n_features_in_}."
            )
        vocabulary = getattr(vectorizer, "dropped_", None)
        if vocabulary is None:
            vocabulary = Vocabulary(words, 0, {}, {}, {})
        model = cls(
            number_of_topics(lda), vectorizer=clone(vectorizer), lda=clone(lda), stop_words=None
        )
        model._state = TopicState(vectorizer, vocabulary, lda)
        return model

    # --------------------------------------------------------------- inference

    def transform(self, texts: Iterable[str], *, method: Method = "variational") -> NDArray:
        """Infer the shares of the topics in texts.

        Parameters
        ----------
        texts : iterable of str
            Words that are not in `feature_names_` are ignored.
        method : {"variational", "cvb0"}, default="variational"
            See :meth:`TemperedLDA.transform`.

        Returns
        -------
        ndarray of shape (n_samples, n_topics)
            Rows sum to 1.  For a text without words it is the mean of the prior.

        Raises
        ------
        TypeError
            If the texts are no iterable of str.
        ValueError
            If there are none, or if the method is unknown.
        """
        state = self._view()
        counts = state.counts(texts, f"{type(self).__name__}.transform")
        return state.lda.transform(counts, method=method)

    def score(self, texts: Iterable[str], y: Any = None) -> float:
        """Compute the ELBO of texts at T = 1, in nats; see :meth:`TemperedLDA.score`.

        Scores of models with different words cannot be compared: fewer words score higher.

        Parameters
        ----------
        texts : iterable of str
        y : Ignored

        Returns
        -------
        float
            Higher is better.
        """
        state = self._view()
        return state.lda.score(state.counts(texts, f"{type(self).__name__}.score"))

    def counts(self, texts: Iterable[str]) -> sparse.csr_matrix:
        """Count the words of texts.

        Parameters
        ----------
        texts : iterable of str

        Returns
        -------
        CSR matrix of shape (n_samples, n_words)
            Columns are `feature_names_`; methods of `lda_` take this matrix.
        """
        return self._view().counts(texts, f"{type(self).__name__}.counts")

    def top_words(self, n: int = 10) -> list[list[str]]:
        """Return the n most probable words of each topic, most probable first.

        Parameters
        ----------
        n : int, default=10
            Number of words for each topic.

        Returns
        -------
        list of lists of str
        """
        state = self._view()
        return state.lda.top_words(n, state.vocabulary.words)

    def with_lda(self, lda: TemperedLDA, seed_topics: Mapping[str, int] | None = None) -> Self:
        """Return a new model of the same words with other topics; this one is unchanged.

        Parameters
        ----------
        lda : TemperedLDA
            Fitted to as many words.
        seed_topics : mapping of str to int, optional
            The topics of the new model that have seed words.  By default none.

        Returns
        -------
        TopicModel
            `n_topics` is the number of topics of `lda`.

        Raises
        ------
        TypeError
            If `lda` is no TemperedLDA.
        ValueError
            If it has another number of words, or `seed_topics` are no topics of it.
        """
        state = self._view()
        if not isinstance(lda, TemperedLDA):
            raise TypeError(f"'lda' must be a TemperedLDA. Got {lda!r}.")
        check_is_fitted(lda)
        n_words = len(state.vocabulary.words)
        if lda.n_features_in_ != n_words:
            raise ValueError(
                f"'lda' must have the {n_words} words of the model. Got n_features_in_="
                f"{lda.n_features_in_}."
            )
        n_topics = number_of_topics(lda)
        seeded = {} if seed_topics is None else seed_topics
        if not isinstance(seeded, Mapping) or not all(
            isinstance(name, str) and type(topic) is int and 0 <= topic < n_topics
            for name, topic in seeded.items()
        ):
            raise ValueError(
                f"'seed_topics' must be a dict of names to topics below {n_topics}. Got "
                f"{seed_topics!r}."
            )
        other = shallow(self)
        other._state = replace(state, lda=lda, seed_topics=dict(seeded))
        other.n_topics = n_topics
        return other

    # ------------------------------------------------------------------- files

    def save(self, path: str | os.PathLike) -> None:
        """Write the model to one file, with its words; see :func:`annealvi.save`.

        Parameters
        ----------
        path : path
            An existing file is replaced only once the new one is complete.
        """
        save(self, path)

    @classmethod
    def load(cls, path: str | os.PathLike, **parameters: Any) -> Self:
        """Read a model that :meth:`save` wrote; see :func:`annealvi.load`.

        Parameters
        ----------
        path : path
        **parameters : objects
            Parameters that replace those of the file.  A `vectorizer` with functions of your own,
            such as a tokenizer, must be given, because a file cannot hold functions.

        Returns
        -------
        TopicModel

        Raises
        ------
        ValueError
            If the file holds another estimator, is damaged, or has a newer format.
        OSError
            If the file cannot be read.
        """
        model = load(path, **parameters)
        if not isinstance(model, cls):
            raise ValueError(
                f"{os.fsdecode(path)!r} must hold a {cls.__name__}. Got a "
                f"{type(model).__name__}: read it with annealvi.load."
            )
        return model

    def state_dict(self) -> dict[str, Any]:
        """Return the fitted state as a tree, for :func:`annealvi.save`."""
        return copy.copy(self._view()).state_dict(type(self).__name__)

    def load_state_dict(self, node: Node) -> None:
        """Take over a fitted state, for :func:`annealvi.load`.

        Parameters
        ----------
        node : Node
            What :meth:`state_dict` returned, from a file.

        Raises
        ------
        ValueError
            If a parameter is out of range, or the state is not one of this class.
        """
        self._validate_params()
        self._state = TopicState.of(node, self._new_vectorizer)

    # -------------------------------------------------------------- attributes

    @property
    def vectorizer_(self) -> Any:
        return self._fitted().vectorizer

    @property
    def lda_(self) -> TemperedLDA:
        return self._fitted().lda

    @property
    def components_(self) -> NDArray:
        return self._fitted().lda.components_

    @property
    def feature_names_(self) -> NDArray:
        return self._fitted().vocabulary.words

    @property
    def dropped_words_(self) -> dict[str, list[str]]:
        return self._fitted().vocabulary.dropped

    @property
    def vocabulary_note_(self) -> str:
        return self._fitted().vocabulary.note()

    @property
    def seed_topics_(self) -> dict[str, int]:
        return self._fitted().seed_topics

    @property
    def choice_(self) -> Any:
        choice = self._fitted().choice
        if choice is None:
            raise AttributeError(
                f"'choice_' of {type(self).__name__} is only there after a fit with "
                "n_topics='auto'; files of earlier versions do not hold it."
            )
        return choice

    @property
    def _n_features_out(self) -> int:
        return number_of_topics(self._fitted().lda)

    def __sklearn_is_fitted__(self) -> bool:
        return "_state" in vars(self)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.input_tags.two_d_array = False
        return tags

    def __copy__(self) -> Self:
        """A copy with the same parameters, which goes on from the fit for itself."""
        copied = shallow(self)
        if "_state" in vars(copied):
            copied._state = copy.copy(copied._state)
        return copied

    # ----------------------------------------------------------------- details

    def _fitted(self) -> TopicState:
        """The fit; hasattr of an unfitted model must be false."""
        state = vars(self).get("_state")
        if state is None:
            raise AttributeError(f"This {type(self).__name__} instance is not fitted yet.")
        return state

    def _view(self) -> TopicState:
        """The fit at this moment, for a method that reads it."""
        check_is_fitted(self)
        return self._fitted()

    def _new_vectorizer(self) -> Any:
        """A clone of the vectorizer, with the stop words."""
        vectorizer = TopicVectorizer() if self.vectorizer is None else clone(self.vectorizer)
        return with_stop_words(vectorizer, self.stop_words, type(self).__name__)
