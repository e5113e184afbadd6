"""The topics of the words of documents, for people to read and for programs that read MALLET's."""

from __future__ import annotations

import gzip
from dataclasses import dataclass
from os import PathLike, fspath
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from annealvi.files import replacing
from annealvi.matrices import check_whole


@dataclass(frozen=True, eq=False, repr=False)
class TopicDocument:
    """A document with its topics, returned by `TopicSummary.document`.

    A notebook shows the text, with its words in the colours of their topics.

    Attributes
    ----------
    number : int
        The position of the document.
    title, text : str or None
    labels : list of str
        The labels of the topics.
    shares : ndarray of shape (K,)
        The shares of the topics in the document, p(k | d).
    words : ndarray of shape (n_words,) of str
        The different words of the document that are in the vocabulary of the model.
    counts : ndarray of shape (n_words,)
        How often each word occurs in the document.
    responsibilities : ndarray of shape (n_words, K)
        The probability that a word comes from each topic,
        :math:`\\phi_{dwk} \\propto \\theta_{dk} \\, p(w \\mid k)`.  Rows sum to 1.
    """

    number: int
    title: str | None
    text: str | None
    labels: list[str]
    shares: NDArray
    words: NDArray
    counts: NDArray
    responsibilities: NDArray

    def __repr__(self) -> str:
        return f"<TopicDocument {self.number} with {self.counts.sum():.0f} words>"

    def _repr_html_(self) -> str:
        from annealvi.plot.notebook import document_html

        return document_html(self)


def document(summary: Any, number: int) -> TopicDocument:
    """Return a document with its topics; see `TopicSummary.document`."""
    row = summary.counts[[number]]
    columns = row.indices  # the words of the document
    # p(k | d) p(w | k), with a row for each word
    joint = summary.shares[number] * summary.topics[:, columns].T
    # a word that no topic of the document contains has the shares of the document
    joint[joint.sum(axis=1) == 0] = summary.shares[number]
    return TopicDocument(
        number=number,
        title=None if summary.titles is None else summary.titles[number],
        text=None if summary.texts is None else summary.texts[number],
        labels=list(summary.labels),
        shares=summary.shares[number],
        words=summary.feature_names[columns],
        counts=row.data,
        responsibilities=joint / joint.sum(axis=1, keepdims=True),
    )


def write_mallet_state(summary: Any, path: str | PathLike, random_state: Any) -> None:
    """Write a state of MALLET; see `TopicSummary.write_mallet_state`."""
    n_documents, n_topics = summary.shares.shape
    check_whole(summary.counts, "write_mallet_state")  # counts are integers
    rng = check_random_state(random_state)
    # the sum of the prior of shares, or 1 if the model has no prior
    prior = float((summary.concentration - summary.lengths)[0]) or 1.0
    alpha, eta = summary.facts.get("priors", (prior / n_topics, 0.01))
    alphas = " ".join(f"{value:.17g}" for value in np.broadcast_to(alpha, n_topics))
    # fields are separated by spaces, so names must not contain any
    names = ["_".join(word.split()) or "_" for word in summary.feature_names.tolist()]
    # the file is replaced only when the new one is complete
    with replacing(Path(path)) as partial:
        opener = gzip.open if fspath(path).endswith(".gz") else open
        with opener(partial, "wt", encoding="utf-8", errors="replace", newline="\n") as file:
            file.write("#doc source pos typeindex type topic\n")
            file.write(f"#alpha : {alphas} \n#beta : {np.mean(eta):.17g}\n")
            for number in range(n_documents):
                read = document(summary, number)
                columns = summary.counts[[number]].indices  # the words of the document
                n_tokens = read.counts.astype(np.int64)  # of each word
                # a topic is the number of cumulative probabilities below a uniform number
                cumulative = read.responsibilities.cumsum(axis=1)[:, :-1]
                limits = cumulative.repeat(n_tokens, axis=0)  # with a row for each token
                topics = (limits < rng.random_sample((len(limits), 1))).sum(axis=1)
                tokens = columns.repeat(n_tokens)
                source = "_".join((read.title or "").split()) or "NA"
                for position, (word, topic) in enumerate(zip(tokens, topics, strict=True)):
                    file.write(f"{number} {source} {position} {word} {names[word]} {topic}\n")
