"""What a fit of TopicModel has: a vectorizer, the words, and a fitted TemperedLDA."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np
from scipy import sparse
from sklearn.base import clone

from annealvi.files import Node
from annealvi.files.parameters import has_function, parameter_of, parameter_tree
from annealvi.lda import TemperedLDA
from annealvi.storage import estimator_of, tree_of
from annealvi.topics.comparison import Choice
from annealvi.topics.texts import check_texts
from annealvi.topics.vectorizer import Vocabulary, with_vocabulary


def number_of_topics(lda: TemperedLDA) -> int:
    """K of a fitted TemperedLDA; `components_` may be an array that is made for the asking."""
    return len(lda.get_feature_names_out())


@dataclass
class TopicState:
    """A fit of TopicModel."""

    #: Fitted.
    vectorizer: Any
    vocabulary: Vocabulary
    lda: TemperedLDA
    #: The topics that have seed words, by name.
    seed_topics: dict[str, int] = field(default_factory=dict)
    #: How the number of topics was chosen, if it was.
    choice: Choice | None = None

    def __copy__(self) -> Self:
        """A copy whose fit goes on for itself."""
        return replace(self, lda=copy.copy(self.lda))

    def counts(self, texts: Any, owner: str) -> sparse.csr_matrix:
        """Count the words of texts, which are checked first."""
        return sparse.csr_matrix(self.vectorizer.transform(check_texts(texts, owner)))

    def state_dict(self, owner: str) -> dict[str, Any]:
        """Return the fit as a tree, see :mod:`annealvi.files`."""
        vocabulary = self.vocabulary
        if _reads_files(self.vectorizer):
            raise TypeError(
                f"A {owner} whose vectorizer has input={self.vectorizer.input!r} cannot be "
                "written: reading a file may not make `transform` open other files."
            )
        functions = has_function(self.vectorizer)
        tree = None if functions else parameter_tree(self.vectorizer, "vectorizer_")
        words = {name: _strings(words) for name, words in vocabulary.dropped.items()}
        return {
            "vectorizer": tree,
            "words": _strings(vocabulary.words),
            "n_documents": vocabulary.n_documents,
            "limits": dict(vocabulary.limits),
            "dropped": words,
            "n_dropped": dict(vocabulary.n_dropped),
            "seeds": list(self.seed_topics),
            "seed_topics": list(self.seed_topics.values()),
            "choice": None if self.choice is None else self.choice.state_dict(),
            "lda": tree_of(self.lda),
        }

    @classmethod
    def of(cls, node: Node, make_vectorizer: Callable[[], Any]) -> Self:
        """Return the fit of a tree that :meth:`state_dict` returned."""
        node.node("lda").string("estimator", ["TemperedLDA"])
        lda = estimator_of(node.node("lda"))
        words = node.strings("words", lda.n_features_in_)
        if len(set(words.tolist())) < len(words):
            raise node.error("words", "an array of different words", words)
        if node.is_none("vectorizer"):
            vectorizer = make_vectorizer()
        else:
            vectorizer = parameter_of(node.plain("vectorizer"), "state.vectorizer")
        if _reads_files(vectorizer):
            raise node.error("vectorizer", "with input='content'", vectorizer.input)
        _check_counts(vectorizer)
        dropped, n_dropped, limits = (
            node.node(name) for name in ("dropped", "n_dropped", "limits")
        )
        vocabulary = Vocabulary(
            words,
            node.integer("n_documents"),
            {name: limits.integer(name) for name in limits},
            {name: dropped.strings(name).tolist() for name in dropped},
            {name: n_dropped.integer(name) for name in n_dropped},
        )
        names, topics = node.items("seeds"), node.items("seed_topics")
        n_topics = number_of_topics(lda)
        sound = len(names) == len(topics) and all(
            isinstance(name, str) and type(topic) is int and 0 <= topic < n_topics
            for name, topic in zip(names, topics, strict=True)
        )
        if not sound:
            raise node.error("seed_topics", "topics, one for each name", topics)
        seed_topics = dict(zip(names, topics, strict=True))
        choice = None  # of files before it was written, and of other models
        if "choice" in node and not node.is_none("choice"):
            choice = Choice.of(node.node("choice"))
        return cls(with_vocabulary(vectorizer, words), vocabulary, lda, seed_topics, choice)


def _reads_files(vectorizer: Any) -> bool:
    """Whether texts are taken for names of files, or for files."""
    return getattr(vectorizer, "input", "content") != "content"


def _check_counts(vectorizer: Any) -> None:
    """Check that a vectorizer of a file can count; it looks at its parameters only in a fit."""
    try:
        clone(vectorizer).set_params(vocabulary=["word"]).fit(["a word"]).transform(["a word"])
    except Exception as error:  # of any library that a strange parameter has reached
        raise ValueError(f"The file is damaged: its vectorizer cannot count: {error}") from error


def _strings(words: Any) -> np.ndarray:
    array = np.empty(len(words), dtype=object)
    array[:] = [str(word) for word in words]
    return array
