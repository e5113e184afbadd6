"""A model as the commands see it; ``annealvi label``, ``show`` and ``compare``."""

from __future__ import annotations

import argparse
import csv
import io
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.optimize import linear_sum_assignment
from sklearn.metrics.pairwise import cosine_similarity

from annealvi.cli.inputs import Corpus, read_corpus
from annealvi.files import replacing
from annealvi.lda import TemperedLDA
from annealvi.metrics.topics import RELEVANCE, topic_checksum
from annealvi.storage import load, save
from annealvi.topics import TopicModel, TopicSummary, describe
from annealvi.topics.source import Source
from annealvi.topics.trust import median, n_starts, reasons
from annealvi.topics.words import (
    N_WORDS,
    Labels,
    labels_of,
    most_relevant,
    shares_of_words,
)

LEGENDS = {
    "support": "support: the share of the fit's starts that found the topic; one of low support "
    "may not come back in a new fit",
    "stability": "stability: how like it the topics of other fits are (cosine), those that chose "
    "the number of topics",
}
WEAK = "* weak: read its documents before you rely on it"


class Topics:
    """The topics of a fitted model, with words and labels."""

    def __init__(self, model: Any, origin: str) -> None:
        self.model, self.origin = model, origin
        self.lda = model.lda_ if isinstance(model, TopicModel) else model
        components = np.asarray(self.lda.components_, dtype=np.float64)
        names = getattr(model, "feature_names_", np.arange(components.shape[1]))
        self.words = np.asarray(names).astype(str)
        sums = components.sum(axis=1)
        self.topics, self.shares = components / sums[:, np.newaxis], sums / sums.sum()
        self._word_shares = shares_of_words(self.topics, self.shares)
        self.named = Source(model).named
        self.labels = Labels(labels_of([self.top(k) for k in range(len(sums))], self.named))
        classifier: Any = getattr(model, "mixture_", self.lda)
        self.predict = classifier.predict
        self.support = getattr(self.lda, "topic_support_", None)
        #: NPMI of each topic, if somebody has measured it in documents.
        self.coherence = np.full(len(sums), np.nan)

    def top(self, k: int, n: int = N_WORDS) -> list[str]:
        """The n most relevant words of a topic."""
        return self.words[self.columns(k, n)].tolist()

    def columns(self, k: int, n: int) -> NDArray[np.intp]:
        """The columns of the n most relevant words of a topic."""
        return most_relevant(self.topics[k], self._word_shares, n, RELEVANCE)

    def counts(self, corpus: Corpus) -> sparse.csr_matrix:
        """Counts of the model's words in documents."""
        takes_texts = isinstance(self.model, TopicModel)
        if corpus.texts is not None:
            if not takes_texts:
                raise ValueError(
                    f"{self.origin} was fitted to counts without words, so it cannot read the "
                    f"texts of {corpus.origin}: give it counts with the same columns."
                )
            return self.model.counts(corpus.texts)
        X = corpus.counts
        if corpus.words is not None and takes_texts:
            there = {word: column for column, word in enumerate(corpus.words.tolist())}
            # the last column is for words which the documents do not have
            X = sparse.hstack([X, sparse.csr_matrix((X.shape[0], 1))], format="csr")
            X = X[:, [there.get(word, -1) for word in self.words.tolist()]]
        if X.shape[1] != len(self.words):
            raise ValueError(
                f"{corpus.origin} has counts of {X.shape[1]:,} words, and {self.origin} has "
                f"{len(self.words):,}: they must be the same words."
            )
        return X

    def describe(
        self, corpus: Corpus, X: sparse.csr_matrix, other: Any = None, refits: int = 0
    ) -> TopicSummary:
        """A summary of documents and their counts, with the labels that the commands show."""
        titles = corpus.columns.get("title")
        options = {"texts": corpus.texts, "titles": titles, "other": other, "refits": refits}
        summary = describe(self.model, X, self.words, **options)
        summary.labels = self.labels
        return summary

    @property
    def stability(self) -> NDArray[np.float64]:
        """How alike the topics of other fits are; NaN if there are none."""
        return median(getattr(self.model, "topic_similarity_", None), len(self.topics))

    def reasons(self) -> list[str]:
        """Why each topic is weak, as far as it is known; nothing of one that is not."""
        starts = "starts", n_starts(getattr(self.lda, "settings_", None))
        return reasons(
            self.topics, self.labels, self.support, starts, self.stability, self.coherence
        )

    def print(self, n_words: int) -> None:
        """Print the topics, largest first: number, share, what is known of others, and words.

        Weak ones have a star, and below it says why.
        """
        weak = self.reasons()
        known = {} if self.support is None else {"support": self.support}
        if np.isfinite(self.stability).all():
            known["stability"] = self.stability
        print("  ".join(["topic", "share", *known, "words"]))
        order = np.argsort(-self.shares, kind="stable").tolist()
        for k in order:
            start = f"{k:>5}{'*' if weak[k] else ' '} {self.shares[k]:>5.1%}"
            found = [f"{values[k]:>{len(name)}.2f}" for name, values in known.items()]
            name = f"{self.named[k]}: " if k in self.named else ""
            print("  ".join([start, *found, name + " ".join(self.top(k, n_words))]))
        for name in known:
            print(LEGENDS[name])
        if any(weak):
            print(WEAK)
        for k in order:
            if weak[k]:
                print(f"{k:>5}* {weak[k]}")


def read_topics(path: str) -> Topics:
    """Read a model that ``annealvi fit`` or :func:`annealvi.save` wrote."""
    model = load(path)
    if not isinstance(model, TopicModel | TemperedLDA):
        raise ValueError(f"{path!r} holds no topic model: it holds a {type(model).__name__}.")
    return Topics(model, repr(path))


def say(chosen: argparse.Namespace, line: str) -> None:
    """Write a line to stderr."""
    if not chosen.quiet:
        print(line, file=sys.stderr, flush=True)


def read(chosen: argparse.Namespace) -> Corpus:
    """Read the documents that the options name, and say how many there are."""
    corpus = read_corpus(chosen)
    n_empty = sum(not text.strip() for text in corpus.texts or ())
    note = f"; {n_empty:,} of them have no text" if n_empty else ""
    say(chosen, f"read {len(corpus):,} document{'s' * (len(corpus) != 1)} of {chosen.path}{note}")
    return corpus


# --------------------------------------------------------------------------- commands


def label(chosen: argparse.Namespace) -> None:
    """Write a table of the class of each document, which is a topic, and its share."""
    topics = read_topics(chosen.model)
    corpus = read(chosen)
    X = topics.counts(corpus)
    known = np.asarray(X.sum(axis=1)).ravel() > 0
    table = io.StringIO(newline="")
    writer = csv.writer(table, lineterminator="\n")
    more = [f"share_{k}" for k in range(len(topics.labels))] if chosen.shares else []
    writer.writerow(["document", "topic", "label", "share", *more])
    names = corpus.columns.get("name", range(len(corpus)))
    rows, classes = topics.lda.transform(X), topics.predict(X).tolist()
    for name, row, topic, is_known in zip(names, rows, classes, known.tolist(), strict=True):
        found = [topic, topics.labels[topic], f"{row[topic]:.4f}"] if is_known else [""] * 3
        writer.writerow([name, *found, *(f"{share:.4f}" for share in row[: len(more)])])
    if not known.all():
        n = int((~known).sum())
        say(chosen, f"{n:,} of them have no word that the model knows, and get no topic")
    if chosen.output is None:
        sys.stdout.write(table.getvalue())
        return
    with replacing(Path(os.path.realpath(chosen.output))) as partial:
        partial.write_text(table.getvalue(), encoding="utf-8", newline="")
    say(chosen, f"wrote {chosen.output}")


def show(chosen: argparse.Namespace) -> None:
    """Print the topics of a model, or one of them."""
    topics = read_topics(chosen.model)
    if chosen.topic is not None:
        k, n_topics = chosen.topic, len(topics.labels)
        if k >= n_topics:
            raise ValueError(
                f"--topic: {chosen.model!r} has topics from 0 to {n_topics - 1}. Got {k}."
            )
        found = "" if topics.support is None else f", support {topics.support[k]:.2f}"
        print(f"topic {k}: {topics.labels[k]} ({topics.shares[k]:.1%} of the words{found})")
        if reason := topics.reasons()[k]:
            print(f"weak: {reason}")
        columns = topics.columns(k, chosen.words or 20)
        for column in columns[np.argsort(-topics.topics[k, columns], kind="stable")]:
            print(f"{topics.topics[k, column]:>8.2%}  {topics.words[column]}")
        return
    model = topics.model
    print(f"{type(model).__name__}: {len(topics.labels)} topics, {len(topics.words):,} words")
    print(f"checksum of the topics: {topic_checksum(topics.lda)}")
    if isinstance(model, TopicModel) and model.dropped_words_:
        print(model.vocabulary_note_)
    if hasattr(topics.lda, "bound_"):
        print(f"bound {-np.log(topics.lda.bound_):.3f} nats a word")
    topics.print(chosen.words or 8)


def label_topics(chosen: argparse.Namespace) -> None:
    """Set labels of topics in the file of a model, and print the topics."""
    model, labels = read_topics(chosen.model).model, {}
    if not isinstance(model, TopicModel):
        raise ValueError(
            f"{chosen.model!r} was fitted to counts without words, so its topics take no labels."
        )
    for text in chosen.assignment:
        topic, equals, name = text.partition("=")
        if not equals or not topic.strip().isdecimal():
            raise ValueError(
                f"a label must be given as TOPIC=LABEL, such as 3=robots. Got {text!r}."
            )
        labels[int(topic)] = name.strip()
    save(model.set_labels(labels), chosen.model)
    Topics(model, repr(chosen.model)).print(chosen.words)


def compare(chosen: argparse.Namespace) -> None:
    """Print which topics of two models are alike."""
    first, second = read_topics(chosen.model), read_topics(chosen.other)
    _, mine, yours = np.intersect1d(first.words, second.words, return_indices=True)
    if not len(mine):
        raise ValueError(f"{first.origin} and {second.origin} have no word in common.")
    cosine = cosine_similarity(first.topics[:, mine], second.topics[:, yours])
    n_words = (len(first.words), len(second.words))
    if len(mine) < max(n_words):
        print(f"of {n_words[0]:,} and {n_words[1]:,} words {len(mine):,} are in both models")
    pairs = list(zip(*linear_sum_assignment(-cosine), strict=True))
    width = max(len(" ".join(first.top(k, chosen.words))) for k, _ in pairs)
    print("similarity  topic  words" + " " * max(1, width - 3) + "topic  words")
    for k, m in sorted(pairs, key=lambda pair: -cosine[pair]):
        words, others = " ".join(first.top(k, chosen.words)), " ".join(second.top(m, chosen.words))
        print(f"{cosine[k, m]:>10.2f}  {k:>5}  {words:<{width}}  {m:>5}  {others}")
    for topics, matched in zip((first, second), zip(*pairs, strict=True), strict=True):
        for k in sorted(set(range(len(topics.labels))) - set(matched)):
            words = " ".join(topics.top(k, chosen.words))
            print(f"{'':>10}  {k:>5}  {words}  only in {topics.origin}")
    mean = sum(cosine[pair] for pair in pairs) / max(cosine.shape)
    print(f"stability {mean:.2f}: the mean similarity, 1 if all topics recur")
