"""Access to fitted topic models of any kind: topics, their words, and the topics of documents.

The kind of a model is recognised by its attributes instead of its class.  A TopicModel has
`counts`, `lda_` and `feature_names_`, a pipeline has steps, and all other models have
`components_` and `transform`.  No other module checks the kind of a model.
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
    """Whether a model, fitted or not, is a TopicModel."""
    return hasattr(model, "counts") and hasattr(model, "fit")


def lda_in(model: Any) -> Any:
    """Return the TemperedLDA of a TopicModel, or the model if it is a TemperedLDA, or None."""
    lda = getattr(model, "lda_", model)
    return lda if hasattr(type(lda), "document_temperatures") else None


def lda_of(model: Any) -> Any:
    """Return the TemperedLDA of a fitted model, or raise an error if there is none."""
    if hasattr(model, "fit"):
        check_is_fitted(model)
    lda = lda_in(model)
    if lda is None:
        raise BadParameter("model", "a fitted TemperedLDA or TopicModel", model)
    return lda


def number_of_topics(lda: Any) -> int:
    """Return K of a fitted TemperedLDA without making the array `components_`."""
    return len(lda.get_feature_names_out())


def counts_of(model: Any, documents: Any, name: str) -> Any:
    """Return unchecked word counts of documents, which can be texts if the model accepts texts."""
    texts = takes_texts(model) and are_texts(documents, name)
    if not texts:
        return documents
    X = model.counts(documents)
    warn_of_empty(X, "Nothing is learned from these texts.")
    return X


def with_topics(model: Any, lda: Any, parts: Sequence[Sequence[int]]) -> Any:
    """Return the model with another TemperedLDA; `parts` lists the old topics of each topic."""
    old = lda_of(model)
    if hasattr(old, "feature_names_in_"):
        lda.feature_names_in_ = old.feature_names_in_
    if old is model:
        return lda
    # if a topic has several parts, the first keeps its label
    numbered = [*enumerate(parts)][::-1]
    place = {topic: number for number, part in numbered for topic in part}
    seeds = {name: place[k] for name, k in model.seed_topics_.items() if k in place}
    kept = {part[0]: number for number, part in numbered if len(part) == 1}
    labels = {kept[k]: name for k, name in model.topic_labels_.items() if k in kept}
    return model.with_lda(lda, seeds, labels)


def in_columns(X: sparse.csr_matrix, words: Iterable[str], wanted: NDArray) -> sparse.csr_matrix:
    """Return counts with a column for each of the `wanted` words instead of `words`."""
    there = {word: column for column, word in enumerate(words)}
    columns = [there.get(word, -1) for word in wanted.tolist()]
    if columns == list(range(X.shape[1])):
        return X  # without a copy, because it may be larger than memory
    # the last, empty column is for words that do not occur in the documents
    return sparse.hstack([X, sparse.csr_matrix((X.shape[0], 1))], format="csr")[:, columns]


#: Maximum difference between the sum of a document's shares and 1.
_TOLERANCE = 1e-3
#: Minimum probability of a word in a document; in a factorisation it can be 0.
_LEAST = 1e-12


class Documents(NamedTuple):
    """Documents in the form that methods of a model accept."""

    #: Counts that are passed to the model's methods; a DataFrame keeps its column names.
    given: Any
    #: The same counts as a checked matrix.
    counts: sparse.csr_matrix
    #: The texts, or None if the user passed counts.
    texts: list[str] | None
    #: The index of the documents, if the user passed a pandas Series or DataFrame.
    index: Any = None


class Source:
    """A fitted topic model of any kind; see the `model` of :func:`annealvi.topics.describe`."""

    def __init__(self, model: Any, name: str = "model") -> None:
        self.given = self.model = model
        #: A function that counts the words of texts, or None for a model of counts.
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
        #: The probabilities of words in topics; functions of metrics use the name `components_`.
        self.topics: NDArray[np.float64] = weights / self._sums[:, np.newaxis]
        self.components_ = self.topics
        #: Shares of the topics in all fitted words.
        self.sizes: NDArray[np.float64] = self._sums / self._sums.sum()
        #: Labels of topics that the user has set, and names of seed words.
        self.named: dict[int, str] = {k: name for name, k in self._of("seed_topics_", {}).items()}
        self.named |= self._of("topic_labels_", {})
        #: Cosines of the topics to their matches in other fits, of shape (n, K).
        none = np.empty((0, len(weights)))
        self.similarity: NDArray[np.float64] = self._of("topic_similarity_", none)
        # only some models of other libraries have a prior
        prior = np.asarray(getattr(self.model, "doc_topic_prior_", 0.0), np.float64)
        #: The sum of the Dirichlet prior of topic shares.
        self.prior = float(np.broadcast_to(prior, len(weights)).sum())
        #: The words of the model, or None.
        self.known_names = known_names
        if known_names is None:
            self.known_names = getattr(self.model, "feature_names_in_", None)
        self.support: NDArray[np.float64] | None = getattr(self.model, "topic_support_", None)
        self.history: Any = getattr(self.model, "history_", None)
        #: Attributes that only a summary sets: refits, and coherence in documents.
        self.refits, self.coherence = None, np.full(len(weights), np.nan)
        #: Known facts about how the model was fitted.
        self.facts = self._facts()

    def keep_labels(self) -> Callable[[dict[int, str]], None] | None:
        """Return a function that sets labels in the model, or None if the model has no labels."""
        if not takes_texts(self.given):
            return None
        of_model, of_topics = weakref.ref(self.given), weakref.ref(self.model)

        def keep(labels: dict[int, str]) -> None:
            model = of_model()
            if model is not None and lda_of(model) is of_topics():
                model.set_labels(labels)
            elif model is not None:
                warn_user("The labels are set only in this summary, as its model was fitted again.")

        return keep

    def _of(self, name: str, default: Any) -> Any:
        """Return an attribute of a TopicModel, or the default for other models."""
        return getattr(self.given, name, default)

    def _facts(self) -> dict[str, Any]:
        facts: dict[str, Any] = {"kind": type(self.model).__name__}
        vocabulary, lda = self._of("vocabulary_", None), lda_in(self.model)
        # a vocabulary of fewer than two documents was passed by the user
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
        """The words of the model, or column numbers."""
        return self.names(None, None)

    @cached_property
    def labels(self) -> Labels:
        """The label of each topic; by default it consists of the topic's words."""
        return Labels(labels_of([self.top(k) for k in range(len(self.sizes))], self.named))

    @cached_property
    def _word_shares(self) -> NDArray[np.float64]:
        return shares_of_words(self.components_, self.sizes)

    def columns(self, k: int, n: int) -> NDArray[np.intp]:
        """Return the columns of the n most relevant words of a topic, best first."""
        return most_relevant(self.components_[k], self._word_shares, n, RELEVANCE)

    def top(self, k: int, n: int = N_WORDS) -> list[str]:
        """Return the n most relevant words of a topic, best first."""
        return self.words[self.columns(k, n)].tolist()

    def read(self, documents: Any, name: str) -> Documents:
        """Check documents, and count their words if they are texts."""
        texts, kind = None, type(self.model).__name__
        index = documents.index if hasattr(documents, "iloc") else None
        n_features = self.components_.shape[1]
        if are_texts(documents, name):
            if self.count is None:
                hint = (
                    f"Pass word counts as {name!r} and the texts as 'texts', or use a TopicModel."
                )
                wanted = f"word counts, because the model is a {kind}"
                raise BadParameter(name, wanted, type(documents), hint)
            texts = check_texts(documents, name)
            documents = self.count(texts)
        counts = check_csr(documents, name=name)
        check_non_negative(counts, f"describe as {name}")
        check_counts(counts)
        check_width(counts, n_features, kind, name=name)
        if not counts.data.any():
            wanted = f"documents with words of the model's vocabulary of {n_features} words"
            raise BadParameter(name, wanted, f"{counts.shape[0]} documents without such words")
        if texts is not None:
            warn_of_empty(counts, "The topic shares of these texts do not depend on the texts.")
        return Documents(documents, counts, texts, index)

    def transform(self, X: Any) -> NDArray[np.float64]:
        """Compute p(k | d) from the result of the model's `transform`.

        For LDA, the rows of the result sum to 1.  For a factorisation X = W H (NMF), the result is
        W.  The number of words of topic k in document d is then W_dk times the sum of row k of H.
        """
        n_documents = X.shape[0] if hasattr(X, "shape") else len(X)
        found = transformed(self.model, X, (n_documents, len(self._sums))).astype(np.float64)
        if found.min(initial=0) < 0:
            raise BadParameter("transform", "a method that returns shares", found.min())
        if np.abs(found.sum(axis=1) - 1).max() > _TOLERANCE:
            found *= self._sums
        found[found.sum(axis=1) == 0] = 1.0  # equal shares for documents without words
        return found / found.sum(axis=1, keepdims=True)

    def clusters(self, X: Any, found: NDArray[np.float64]) -> NDArray[np.int64]:
        """Return the model's prediction of each document's topic, or the topic of largest share."""
        predict = getattr(self._of("mixture_", self.model), "predict", None)
        clusters = None if predict is None else np.asarray(predict(X))
        if clusters is None or clusters.dtype.kind != "i" or clusters.shape != found.shape[:1]:
            return found.argmax(axis=1)  # `predict` of other models need not return topics
        inside = clusters.min() >= 0 and clusters.max() < found.shape[1]
        return clusters if inside else found.argmax(axis=1)

    def names(self, given: Any, documents: Any) -> NDArray:
        """Return the words of the user, the model or the documents, or otherwise column numbers."""
        n_features = self.components_.shape[1]
        known = given, self.known_names, getattr(documents, "columns", None), range(n_features)
        names = next(found for found in known if found is not None)
        return word_names(names, n_features).astype(str)

    def unusual(
        self, documents: Documents, found: NDArray[np.float64]
    ) -> tuple[str, NDArray[np.float64]]:
        """Measure how well topics with these shares explain each document."""
        if lda_in(self.model) is not None:
            return "temperature", self.model.document_temperatures(documents.given)
        topics, ones = self.components_.T.__getitem__, np.ones(len(self.components_))
        p = word_probabilities(documents.counts, found, topics, ones)
        log_likelihood = special.log(np.maximum(p, _LEAST)) * documents.counts.data
        return "log_likelihood", per_word(documents.counts, log_likelihood)
