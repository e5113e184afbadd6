"""The reader of fitted topic models: what kind of model one has, and which documents it takes.

Nothing else finds that out.  A model is known by what it has, not by its class: a TopicModel by
`counts`, `lda_` and `feature_names_`, a pipeline by its steps, and all others by `components_` and
`transform`.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils.validation import check_is_fitted, check_non_negative

from annealvi._kernels import special
from annealvi.checks import check_counts, check_width
from annealvi.exceptions import BadParameter, warn_user
from annealvi.matrices import check_csr
from annealvi.metrics.held_out import per_word, transformed, word_probabilities
from annealvi.metrics.topics import RELEVANCE, check_topic_model, topic_weights, word_names
from annealvi.topics.vectorizer import are_texts, check_texts, warn_of_empty
from annealvi.topics.words import N_WORDS, Labels, labels_of, most_relevant, shares_of_words


def takes_texts(model: Any) -> bool:
    """Whether this is a model of texts, fitted or not: a TopicModel."""
    return hasattr(model, "counts") and hasattr(model, "fit")


def lda_in(model: Any) -> Any:
    """The TemperedLDA of a TopicModel, or the model if it is one, fitted or not; else None."""
    lda = getattr(model, "lda_", model)
    return lda if hasattr(type(lda), "document_temperatures") else None


def lda_of(model: Any) -> Any:
    """The TemperedLDA that has the topics of a fitted model."""
    if hasattr(model, "fit"):
        check_is_fitted(model)
    lda = lda_in(model)
    if lda is None:
        raise BadParameter("model", "a fitted TemperedLDA or TopicModel", model)
    return lda


def number_of_topics(lda: Any) -> int:
    """K of a fitted TemperedLDA; `components_` may be an array that is made for the asking."""
    return len(lda.get_feature_names_out())


def counts_of(model: Any, documents: Any, name: str) -> Any:
    """Word counts of documents, which may be texts if the model takes them; nothing is checked."""
    texts = takes_texts(model) and are_texts(documents, name)
    if not texts:
        return documents
    X = model.counts(documents)
    warn_of_empty(X, "Nothing is learned from them.")
    return X


def with_topics(model: Any, lda: Any, parts: Sequence[Sequence[int]]) -> Any:
    """The model with another TemperedLDA, each of whose topics has the old topics of a part."""
    old = lda_of(model)
    if hasattr(old, "feature_names_in_"):
        lda.feature_names_in_ = old.feature_names_in_
    if old is model:
        return lda
    place = {topic: number for number, part in enumerate(parts) for topic in part}
    seeds = {name: place[k] for name, k in model.seed_topics_.items() if k in place}
    kept = {part[0]: number for number, part in enumerate(parts) if len(part) == 1}
    labels = {kept[k]: name for k, name in model.topic_labels_.items() if k in kept}
    return model.with_lda(lda, seeds, labels)


def in_columns(X: sparse.csr_matrix, words: Iterable[str], wanted: NDArray) -> sparse.csr_matrix:
    """Counts of some words, in the columns of others."""
    there = {word: column for column, word in enumerate(words)}
    columns = [there.get(word, -1) for word in wanted.tolist()]
    if columns == list(range(X.shape[1])):
        return X  # which may be larger than memory
    # the last column is for words which the documents do not have
    return sparse.hstack([X, sparse.csr_matrix((X.shape[0], 1))], format="csr")[:, columns]


#: Largest distance from 1 of the sum of a document's shares.
_TOLERANCE = 1e-3
#: Least probability of a word in a document; a factorisation may give it none.
_LEAST = 1e-12


class Documents(NamedTuple):
    """Documents as a model takes them."""

    #: What the model's methods get: a DataFrame keeps its column names.
    given: Any
    #: The same, checked.
    counts: sparse.csr_matrix
    #: What was counted, if texts were given.
    texts: list[str] | None
    #: The index of the Series or DataFrame of pandas that was given.
    index: Any = None


class Source:
    """A fitted topic model of any kind; see the `model` of :func:`annealvi.topics.describe`."""

    def __init__(self, model: Any, name: str = "model") -> None:
        self.given = self.model = model
        #: Counts the words of texts; None of a model of counts.
        self.count: Any = None
        known_names = None
        if takes_texts(model):
            check_is_fitted(model)
            self.model, self.count, known_names = model.lda_, model.counts, model.feature_names_
        elif hasattr(model, "named_steps"):
            first, self.model = model[:-1], model[-1]
            if len(first):
                check_is_fitted(first)
                self.count, known_names = first.transform, first.get_feature_names_out()
        check_topic_model(self.model, name, "components_", "transform")
        weights = np.asarray(topic_weights(self.model, "components_"), np.float64)
        self._sums = weights.sum(axis=1)
        #: The probabilities of words in topics; functions of metrics call them `components_`.
        self.topics: NDArray[np.float64] = weights / self._sums[:, np.newaxis]
        self.components_ = self.topics
        #: Shares of the topics in all words that the model has learned from.
        self.sizes: NDArray[np.float64] = self._sums / self._sums.sum()
        #: Labels of topics that somebody has set, and names of seed words.
        self.named: dict[int, str] = {k: name for name, k in self._of("seed_topics_", {}).items()}
        self.named |= self._of("topic_labels_", {})
        #: Cosines of the topics to their matches in other fits, of shape (n, K).
        none = np.empty((0, len(weights)))
        self.similarity: NDArray[np.float64] = self._of("topic_similarity_", none)
        # of other libraries only some models have a prior
        prior = np.asarray(getattr(self.model, "doc_topic_prior_", 0.0), np.float64)
        #: The sum of the prior of shares, in words.
        self.prior = float(np.broadcast_to(prior, len(weights)).sum())
        #: The words that the model has seen, or None.
        self.known_names = known_names
        if known_names is None:
            self.known_names = getattr(self.model, "feature_names_in_", None)
        self.support: NDArray[np.float64] | None = getattr(self.model, "topic_support_", None)
        self.history: Any = getattr(self.model, "history_", None)
        #: What only a summary knows: refits, and coherence in documents.
        self.refits, self.coherence = None, np.full(len(weights), np.nan)
        #: How the model was fitted, as far as it is known.
        self.facts = self._facts()

    def keep_labels(self) -> Callable[[dict[int, str]], None] | None:
        """A function that names topics in the model; None if the model keeps no names."""
        if not takes_texts(self.given):
            return None
        of_model, of_topics = weakref.ref(self.given), weakref.ref(self.model)

        def keep(labels: dict[int, str]) -> None:
            model = of_model()
            if model is not None and lda_of(model) is of_topics():
                model.set_labels(labels)
            elif model is not None:
                warn_user(
                    "The model has been fitted again since it was described, so the new labels "
                    "are set only in this summary.",
                )

        return keep

    def _of(self, name: str, default: Any) -> Any:
        """What a TopicModel has, and others have not."""
        return getattr(self.given, name, default)

    def _facts(self) -> dict[str, Any]:
        facts: dict[str, Any] = {"kind": type(self.model).__name__}
        vocabulary, lda = self._of("vocabulary_", None), lda_in(self.model)
        # from less than two documents no vocabulary is chosen: the words were given
        chosen = vocabulary is not None and vocabulary.n_documents > 1
        facts["vocabulary"] = vocabulary if chosen else None
        facts |= {"seeded": [*self._of("seed_topics_", ())], "choice": self._of("choice_", None)}
        if lda is not None:
            facts["priors"] = lda.doc_topic_prior_, lda.topic_word_prior_
            settings, facts["bound"] = getattr(lda, "settings_", {}), getattr(lda, "bound_", None)
            merged = settings.get("merged", False)
            is_one_fit = facts["bound"] is not None and isinstance(settings.get("init"), str)
            if is_one_fit and (not merged or self.support is not None):
                facts |= {"settings": dict(settings), "path": lda.temperature_path_.copy()}
                facts["seed"] = lda.random_state
        return facts

    @cached_property
    def words(self) -> NDArray:
        """The words that the model has seen, or numbers."""
        return self.names(None, None)

    @cached_property
    def labels(self) -> Labels:
        """A label of each topic, made of its words unless it has one."""
        return Labels(labels_of([self.top(k) for k in range(len(self.sizes))], self.named))

    @cached_property
    def _word_shares(self) -> NDArray[np.float64]:
        return shares_of_words(self.components_, self.sizes)

    def columns(self, k: int, n: int) -> NDArray[np.intp]:
        """The columns of the n most relevant words of a topic, best first."""
        return most_relevant(self.components_[k], self._word_shares, n, RELEVANCE)

    def top(self, k: int, n: int = N_WORDS) -> list[str]:
        """The n most relevant words of a topic, best first."""
        return self.words[self.columns(k, n)].tolist()

    def read(self, documents: Any, name: str) -> Documents:
        """Check documents, and count their words if they are texts."""
        texts, kind = None, type(self.model).__name__
        index = documents.index if hasattr(documents, "iloc") else None
        n_features = self.components_.shape[1]
        if are_texts(documents, name):
            if self.count is None:
                hint = "Pass word counts here and the texts as 'texts', or use a TopicModel."
                raise BadParameter(name, f"word counts, as {kind} takes", type(documents), hint)
            texts = check_texts(documents, name)
            documents = self.count(texts)
        counts = check_csr(documents, name=name)
        check_non_negative(counts, f"describe as {name}")
        check_counts(counts)
        check_width(counts, n_features, kind, name=name)
        if not counts.data.any():
            wanted = f"documents with words of the vocabulary of {kind}, {n_features} words"
            raise BadParameter(name, wanted, f"{counts.shape[0]} documents without")
        if texts is not None:
            warn_of_empty(counts, "Their shares contain no information on them.")
        return Documents(documents, counts, texts, index)

    def transform(self, X: Any) -> NDArray[np.float64]:
        """Compute p(k | d), from the model's `transform`.

        Its rows sum to 1 for LDA.  A factorisation X = W H (NMF) gives weights W instead: W_dk
        times the sum of row k of H is the number of words that topic k has in document d.
        """
        n_documents = X.shape[0] if hasattr(X, "shape") else len(X)
        found = transformed(self.model, X, (n_documents, len(self._sums))).astype(np.float64)
        if found.min(initial=0) < 0:
            raise BadParameter("transform", "a method that returns shares", found.min())
        if np.abs(found.sum(axis=1) - 1).max() > _TOLERANCE:
            found *= self._sums
        found[found.sum(axis=1) == 0] = 1.0  # nothing is known of these documents
        return found / found.sum(axis=1, keepdims=True)

    def clusters(self, X: Any, found: NDArray[np.float64]) -> NDArray[np.int64]:
        """Return the cluster of each document: what the model predicts, or its largest share."""
        predict = getattr(self._of("mixture_", self.model), "predict", None)
        clusters = None if predict is None else np.asarray(predict(X))
        if clusters is None or clusters.dtype.kind != "i" or clusters.shape != found.shape[:1]:
            return found.argmax(axis=1)  # what others predict need not be a topic
        inside = clusters.min() >= 0 and clusters.max() < found.shape[1]
        return clusters if inside else found.argmax(axis=1)

    def names(self, given: Any, documents: Any) -> NDArray:
        """Return the words passed, or those the model or the documents have, or numbers."""
        n_features = self.components_.shape[1]
        known = given, self.known_names, getattr(documents, "columns", None), range(n_features)
        names = next(found for found in known if found is not None)
        return word_names(names, n_features).astype(str)

    def unusual(
        self, documents: Documents, found: NDArray[np.float64]
    ) -> tuple[str, NDArray[np.float64]]:
        """Compute how badly topics with these shares explain each document."""
        if lda_in(self.model) is not None:
            return "temperature", self.model.document_temperatures(documents.given)
        topics, ones = self.components_.T.__getitem__, np.ones(len(self.components_))
        p = word_probabilities(documents.counts, found, topics, ones)
        log_likelihood = special.log(np.maximum(p, _LEAST)) * documents.counts.data
        return "log_likelihood", per_word(documents.counts, log_likelihood)
