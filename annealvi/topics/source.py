"""Access to fitted topic models of any kind: topics, their words, and the topics of documents.

The kind of a model is recognised by its attributes instead of its class.  A TopicModel has
`counts`, `lda_` and `feature_names_`, a pipeline has steps, and all other models have
`components_` and `transform`.  No other module checks the kind of a model.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_matrix, hstack
from sklearn.utils.validation import _num_samples, check_is_fitted, check_non_negative

from annealvi._kernels import special
from annealvi.checks import check_counts, check_width
from annealvi.exceptions import BadParameter, warn_user
from annealvi.matrices import check_csr, check_words, summed
from annealvi.metrics.held_out import per_word, transformed
from annealvi.metrics.topics import check_topic_model, topic_weights, word_names
from annealvi.topics.described import DescribedDocuments, Topics, probabilities_in
from annealvi.topics.languages import SCIKIT_LEARN
from annealvi.topics.trust import evidence_of
from annealvi.topics.vectorizer import are_texts, check_texts, warn_of_empty, words_of


def takes_texts(model: Any) -> bool:
    """Whether a model, fitted or not, is a TopicModel."""
    return hasattr(model, "counts") and hasattr(model, "fit")


def lda_in(model: Any) -> Any:
    """Return the TemperedLDA of a TopicModel, or the model if it is a TemperedLDA, or None."""
    lda = getattr(model, "lda_", model)
    # only a TemperedLDA has this method; its class is not imported here
    return lda if hasattr(type(lda), "document_temperatures") else None


def topics_in(model: Any) -> Any:
    """Return what has the topics of a TopicModel: its LDA, or its mixture if it is single_topic."""
    if getattr(model, "single_topic", None) is True and hasattr(model, "mixture_"):
        return model.mixture_
    return getattr(model, "lda_", model)


def lda_of(model: Any) -> Any:
    """Return the TemperedLDA of a fitted model, or raise an error if there is none."""
    if hasattr(model, "fit"):
        check_is_fitted(model)
    lda = lda_in(model)
    if lda is None or topics_in(model) not in (lda, model):
        raise BadParameter(
            "model", "a fitted TemperedLDA or TopicModel without single_topic=True", model
        )
    return lda


def number_of_topics(lda: Any) -> int:
    """Return K of a fitted TemperedLDA without making the array `components_`."""
    return len(lda.get_feature_names_out())


def seed_of(model: Any) -> int:
    """Return the random_state of a model, or 0 if it is not an int, so that results repeat."""
    random_state = getattr(model, "random_state", None)
    return int(random_state) if isinstance(random_state, Integral) else 0


def counts_of(model: Any, documents: Any, method: str) -> csr_matrix:
    """Return checked word counts of documents, which can be texts if the model accepts texts."""
    if takes_texts(model) and are_texts(documents, "documents"):
        documents = model.counts(documents)
        warn_of_empty(documents, "Nothing is learned from these texts.")
    return check_words(topics_in(model), documents, method)


def with_topics(model: Any, lda: Any, groups: Sequence[Sequence[int]]) -> Any:
    """Return the model with another TemperedLDA; `groups` lists the old topics of each topic.

    The names of seeded topics and the labels move to the new numbers of their topics.
    """
    old = lda_of(model)
    if hasattr(old, "feature_names_in_"):
        lda.feature_names_in_ = old.feature_names_in_
    if old is model:  # the model is a TemperedLDA, which has no labels
        return lda
    # the new number of each old topic that remains, and of each that was not merged; of several
    # topics that come from one, the first keeps the name and the label
    numbered = [*enumerate(groups)][::-1]
    number_of = {topic: number for number, group in numbered for topic in group}
    unmerged = {group[0]: number for number, group in numbered if len(group) == 1}
    seeds = {name: number_of[k] for name, k in model.seed_topics_.items() if k in number_of}
    # the label of one topic may be wrong for a merged topic
    labels = {unmerged[k]: label for k, label in model.topic_labels_.items() if k in unmerged}
    return model.with_lda(lda, seeds, labels)


def in_columns(X: csr_matrix, words: Iterable[str], vocabulary: NDArray) -> Any:
    """Return counts with a column for each word of a vocabulary instead of `words`."""
    column_of = {word: column for column, word in enumerate(words)}
    columns = [column_of.get(word, -1) for word in vocabulary.tolist()]  # -1: the last column
    if columns == list(range(X.shape[1])):
        return X  # without a copy, because it may be larger than memory
    # the last, empty column is for words that do not occur in the documents
    return hstack([X, csr_matrix((X.shape[0], 1))], format="csr")[:, columns]


#: Maximum difference between the sum of a document's shares and 1.
_TOLERANCE = 1e-3
#: Minimum probability of a word in a document; in a factorisation it can be 0.
_LEAST = 1e-12


class CheckedDocuments(NamedTuple):
    """Documents whose words are counted."""

    #: Counts that are passed to the model's methods; a DataFrame keeps its column names.
    X: Any
    #: The same counts as a checked matrix.
    counts: csr_matrix
    #: The texts, or None if the user passed counts.
    texts: list[str] | None
    #: The index of the documents, if the user passed a pandas Series or DataFrame.
    index: Any = None


class Source:
    """A fitted topic model of any kind; see the `model` of :func:`annealvi.topics.describe`."""

    def __init__(self, model: Any, name: str = "model") -> None:
        """Find the topics, the words and the vectorizer of a model; `name` is for messages."""
        #: The model of the user, and its last step, which has the topics.
        self.whole = model
        self.model = model
        #: A function that counts the words of texts, or None for a model of counts.
        self.count: Any = None
        #: The words of the model, or None.
        self.known_names: Any = None
        if takes_texts(model):
            check_is_fitted(model)
            self.model = topics_in(model)
            self.count = model.counts
            self.known_names = model.feature_names_
        elif hasattr(model, "named_steps"):  # a pipeline of a vectorizer and a topic model
            self.model = model[-1]
            vectorizer = model[:-1]
            if len(vectorizer):
                check_is_fitted(vectorizer)
                self.count = vectorizer.transform
                self.known_names = words_of(vectorizer)
        check_topic_model(self.model, name, "components_", "transform")
        weights = np.asarray(topic_weights(self.model, "components_"), float)
        self._sums = weights.sum(axis=1)
        self._sizes = self._sums / self._sums.sum()
        #: The probabilities of words in topics; functions of metrics use this name.
        self.components_: NDArray = weights / self._sums[:, None]
        if self.known_names is None:
            self.known_names = getattr(self.model, "feature_names_in_", None)

    @cached_property
    def topics(self) -> Topics:
        """The topics, with their sizes in the fit, and the words of the model or column numbers."""
        return self.topics_of(sizes=self._sizes, words=self.names(feature_names=None, X=None))

    def topics_of(self, sizes: NDArray, words: NDArray, *similarity: NDArray) -> Topics:
        """Return the topics with these sizes and words, and cosines to topics of other fits."""
        evidence = None
        if hasattr(self.model, "topic_support_"):
            evidence = evidence_of(self.components_, self._sizes, self.model.topic_support_)
        cosines = getattr(self.whole, "topic_similarity_", np.empty((0, len(sizes))))
        # a topic with seed words has the name of these words, unless the user has set a label
        seeds = {topic: name for name, topic in getattr(self.whole, "seed_topics_", {}).items()}
        return Topics(
            components=self.components_,
            sizes=sizes,
            words=words,
            named=seeds | getattr(self.whole, "topic_labels_", {}),
            evidence=evidence,
            similarity=np.vstack([cosines, *similarity]),
            facts=self._facts(),
            random_state=seed_of(self.model),
            keep_labels=self._keep_labels(),
        )

    def _keep_labels(self) -> Callable[[dict[int, str]], None] | None:
        """Return a function that sets labels in the model, or None if the model has no labels."""
        if not takes_texts(self.whole):
            return None
        # weak references, so that a summary does not keep its model in memory
        reference = weakref.ref(self.whole)
        reference_of_topics = weakref.ref(self.model)

        def set_in_model(labels: dict[int, str]) -> None:
            """Set labels in the model, if it still exists and still has these topics."""
            model = reference()
            if model is None:  # the user has deleted it
                return
            if topics_in(model) is reference_of_topics():
                model.set_labels(labels)
            else:
                warn_user("The labels are set only in this summary, as its model was fitted again.")

        return set_in_model

    def _facts(self) -> dict[str, Any]:
        """Collect what is known about the fit, for `TopicSummary.methods`."""
        vocabulary = getattr(self.whole, "vocabulary_", None)
        # a vocabulary of fewer than two documents was passed by the user
        is_learned = vocabulary is not None and vocabulary.n_documents > 1
        vectorizer = getattr(self.whole, "vectorizer", None)
        tokenizer = getattr(vectorizer, "tokenizer", None)
        facts = {
            "kind": type(self.model).__name__,
            "vocabulary": vocabulary if is_learned else None,
            "seeded": list(getattr(self.whole, "seed_topics_", ())),
            "choice": getattr(self.whole, "choice_", None),
            "phrases": getattr(vectorizer, "phrases", False),
            # a name, because a summary cannot always store a function in a file
            "tokenizer": tokenizer and getattr(tokenizer, "__name__", type(tokenizer).__name__),
        }
        listed = getattr(vectorizer, "stop_words", None)
        if listed is None:
            facts["stop_words"] = getattr(self.whole, "stop_words", None)
        elif isinstance(listed, str):
            facts["stop_words"] = SCIKIT_LEARN
        mixture = getattr(self.whole, "mixture_", self.model)
        if hasattr(mixture, "weight_concentration_prior") and hasattr(mixture, "word_prior"):
            facts["mixture"] = {
                "priors": (mixture.weight_concentration_prior, mixture.word_prior),
                "path": mixture.temperature_path_.copy(),
                "settings": {"temperature": mixture.temperature},
                # the mixture of a TopicModel begins with its topics, and needs no seed itself
                "seed": getattr(self.whole, "lda_", mixture).random_state,
            }
        lda = lda_in(self.model)
        if lda is None:
            return facts
        settings = getattr(lda, "settings_", {})
        facts["priors"] = lda.doc_topic_prior_, lda.topic_word_prior_
        facts["bound"] = getattr(lda, "bound_", None)
        # False after edits of the topics, or if the fit began with topics that the user passed
        is_one_fit = facts["bound"] is not None and isinstance(settings.get("init"), str)
        # a merged fit has `topic_support_`, unless its topics were replaced
        if is_one_fit and (not settings.get("merged") or hasattr(lda, "topic_support_")):
            facts["settings"] = dict(settings)
            facts["path"] = lda.temperature_path_.copy()
            facts["seed"] = lda.random_state
        return facts

    def read(self, documents: Any, name: str) -> CheckedDocuments:
        """Check documents, and count their words if they are texts."""
        texts = None
        kind = type(self.model).__name__
        index = documents.index if hasattr(documents, "iloc") else None
        n_features = self.components_.shape[1]
        if are_texts(documents, name):
            if self.count is None:
                raise BadParameter(
                    name,
                    f"word counts, because the model is a {kind}",
                    type(documents),
                    f"Pass word counts as {name!r} and the texts as 'texts', or use a TopicModel.",
                )
            texts = check_texts(documents, name)
            documents = self.count(texts)
        counts = check_csr(documents, name=name)
        check_non_negative(counts, f"describe as {name}")
        check_counts(counts)
        check_width(counts, n_features, kind, name=name)
        if not counts.data.any():  # stored zeros are not words
            raise BadParameter(
                name,
                f"documents with words of the model's vocabulary of {n_features} words",
                f"{counts.shape[0]} documents without such words",
            )
        if texts is not None:
            warn_of_empty(counts, "The topic shares of these texts do not depend on the texts.")
        return CheckedDocuments(documents, counts, texts, index)

    def describe(self, documents: CheckedDocuments, refits: Any) -> DescribedDocuments:
        """Infer the shares of topics in documents, and the topic of each document."""
        shares = self.transform(documents.X)
        lengths = summed(documents.counts, axis=1, dtype=np.float64)
        # the prior of shares is a number, or one for each topic; not all other models have it
        prior = np.asarray(getattr(self.model, "doc_topic_prior_", 0.0), float)
        return DescribedDocuments(
            counts=documents.counts,
            shares=shares,
            document_topics=self.document_topics(documents.X, shares),
            lengths=lengths,
            concentration=lengths + float(np.broadcast_to(prior, shares.shape[1]).sum()),
            index=documents.index,
            refits=refits,
        )

    def transform(self, X: Any) -> NDArray:
        """Compute p(k | d) from the result of the model's `transform`.

        For LDA, the rows of the result sum to 1.  For a factorisation X = W H (NMF), the result is
        W.  The number of words of topic k in document d is then W_dk times the sum of row k of H.
        """
        shape = _num_samples(X), len(self._sums)
        shares = transformed(self.model, X, shape).astype(float)
        if shares.min(initial=0) < 0:
            raise BadParameter("transform", "a method that returns shares", shares.min())
        if np.abs(shares.sum(axis=1) - 1).max() > _TOLERANCE:
            shares *= self._sums  # a factorisation, with the sum of each row of H
        shares[shares.sum(axis=1) == 0] = 1.0  # equal shares for documents without words
        return shares / shares.sum(axis=1, keepdims=True)

    def document_topics(self, X: Any, shares: NDArray) -> NDArray:
        """Return the model's prediction of each document's topic, or the topic of largest share."""
        # a TopicModel with a single topic for each document predicts by its mixture
        predict = getattr(getattr(self.whole, "mixture_", self.model), "predict", None)
        if predict is not None:
            topics = np.asarray(predict(X))
            # `predict` of other models need not return topics
            is_topic = topics.dtype.kind == "i" and topics.shape == shares.shape[:1]
            if is_topic and topics.min() >= 0 and topics.max() < shares.shape[1]:
                return topics
        return shares.argmax(axis=1)

    def names(self, feature_names: ArrayLike | None, X: Any) -> NDArray:
        """Return the words of the user, the model or the documents, or otherwise column numbers."""
        n_features = self.components_.shape[1]
        sources = feature_names, self.known_names, getattr(X, "columns", None), range(n_features)
        names = next(names for names in sources if names is not None)
        return word_names(names, n_features).astype(str)

    def unusual(self, X: Any, documents: DescribedDocuments) -> tuple[str, NDArray]:
        """Measure how well topics explain each document; return the name and the values.

        The documents are given twice: counts X for the model's methods, and with their shares.
        """
        if lda_in(self.model) is not None:
            return "temperature", self.model.document_temperatures(X)
        p = probabilities_in(documents, self.components_)
        log_likelihood = special.log(np.maximum(p, _LEAST)) * documents.counts.data
        return "log_likelihood", per_word(documents.counts, log_likelihood)
