"""``annealvi label``, ``show`` and ``compare``: what a model says."""

from __future__ import annotations

import argparse
import csv
import io
import os
import sys
from pathlib import Path

import numpy as np
from scipy import sparse
from scipy.optimize import linear_sum_assignment

from annealvi.cli.console import Console
from annealvi.cli.fit import print_topics, read
from annealvi.cli.models import Topics, read_topics
from annealvi.files import replacing
from annealvi.topics import TopicModel

#: Words of a topic that are shown, among all topics and alone.
_FEW, _MANY = 8, 20


def label(chosen: argparse.Namespace) -> None:
    """Write a table of the largest topic of each document."""
    console = Console(chosen.quiet)
    if chosen.output is not None and not Path(chosen.output).parent.is_dir():
        raise FileNotFoundError(f"--output: there is no folder for {chosen.output!r}.")
    topics = read_topics(chosen.model)
    corpus = read(chosen, console)
    X = sparse.csr_matrix(topics.counts(corpus))
    shares = topics.lda.transform(X)
    largest = shares.argmax(axis=1)
    known = np.asarray(X.sum(axis=1)).ravel() > 0
    table = io.StringIO(newline="")
    writer = csv.writer(table, lineterminator="\n")
    more = [f"share_{k}" for k in range(len(topics.labels))] if chosen.shares else []
    writer.writerow(["document", "topic", "label", "share", *more])
    for document, (topic, row) in enumerate(zip(largest.tolist(), shares, strict=True)):
        name = document if corpus.names is None else corpus.names[document]
        found = [topic, topics.labels[topic], f"{row[topic]:.4f}"]
        rest = [f"{share:.4f}" for share in row] if chosen.shares else []
        writer.writerow([name, *(found if known[document] else ["", "", ""]), *rest])
    if not known.all():
        n = int((~known).sum())
        console.say(f"{n:,} of them have no word that the model knows, and get no topic")
    if chosen.output is None:
        sys.stdout.write(table.getvalue())
        return
    with replacing(Path(os.path.realpath(chosen.output))) as partial:
        partial.write_text(table.getvalue(), encoding="utf-8", newline="")
    console.say(f"wrote {chosen.output}")


def show(chosen: argparse.Namespace) -> None:
    """Print the topics of a model, or one of them."""
    topics = read_topics(chosen.model)
    if chosen.topic is not None:
        k, n_topics = chosen.topic, len(topics.labels)
        if k >= n_topics:
            raise ValueError(
                f"--topic: {chosen.model!r} has topics from 0 to {n_topics - 1}. Got {k}."
            )
        print(f"topic {k}: {topics.labels[k]} ({topics.shares[k]:.1%} of the words)")
        for column in topics.columns(k, chosen.words or _MANY):
            print(f"{topics.topics[k, column]:>8.2%}  {topics.words[column]}")
        return
    model = topics.model
    print(f"{type(model).__name__}: {len(topics.labels)} topics, {len(topics.words):,} words")
    if isinstance(model, TopicModel) and model.dropped_words_:
        print(model.vocabulary_note_)
    if hasattr(topics.lda, "bound_"):
        print(f"bound {-np.log(topics.lda.bound_):.3f} nats a word")
    print_topics(topics, chosen.words or _FEW)


def compare(chosen: argparse.Namespace) -> None:
    """Print which topics of two models are alike."""
    first, second = read_topics(chosen.model), read_topics(chosen.other)
    a, b, n_common = _on_common_words(first, second)
    cosine = _cosines(a, b)
    rows, columns = linear_sum_assignment(-cosine)
    order = np.argsort(-cosine[rows, columns], kind="stable")
    n_words = (len(first.words), len(second.words))
    if n_common < max(n_words):
        print(f"of {n_words[0]:,} and {n_words[1]:,} words {n_common:,} are in both models")
    width = max(len(" ".join(first.top(k, chosen.words))) for k in rows.tolist())
    print("similarity  topic  words" + " " * max(1, width - 3) + "topic  words")
    for row, column in zip(rows[order].tolist(), columns[order].tolist(), strict=True):
        mine = " ".join(first.top(row, chosen.words))
        yours = " ".join(second.top(column, chosen.words))
        print(f"{cosine[row, column]:>10.2f}  {row:>5}  {mine:<{width}}  {column:>5}  {yours}")
    for topics, matched in ((first, rows), (second, columns)):
        for k in sorted(set(range(len(topics.labels))) - set(matched.tolist())):
            words = " ".join(topics.top(k, chosen.words))
            print(f"{'':>10}  {k:>5}  {words}  only in {topics.origin}")
    mean = cosine[rows, columns].sum() / max(cosine.shape)
    print(f"stability {mean:.2f}: the mean similarity, 1 if all topics recur")


def _on_common_words(first: Topics, second: Topics) -> tuple[np.ndarray, np.ndarray, int]:
    """The topics of both models as probabilities of the words that both have."""
    _, mine, yours = np.intersect1d(first.words, second.words, return_indices=True)
    if not len(mine):
        raise ValueError(f"{first.origin} and {second.origin} have no word in common.")
    return first.topics[:, mine], second.topics[:, yours], len(mine)


def _cosines(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    norms = np.outer(np.linalg.norm(a, axis=1), np.linalg.norm(b, axis=1))
    return np.minimum(a @ b.T / np.maximum(norms, np.finfo(float).tiny), 1.0)
