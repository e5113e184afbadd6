"""Readers of the files that MALLET's ``train-topics`` writes."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import zip_longest
from os import PathLike, fspath
from statistics import mode
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from sklearn.utils import Bunch

from annealvi.corpus.files import check_gaps, opened
from annealvi.exceptions import warn_user

#: A line of a state: document, source (which may contain spaces), position, number and text of the
#: word, topic.
TOKEN = re.compile(rb"(\d+) .*\S\s+\d+ (\d+) ([^ ]+) (\d+)")


def read_mallet_state(path: str | PathLike) -> Bunch:
    """Read the complete state of a MALLET model: counts, topics and priors.

    Parameters
    ----------
    path : path
        The file that MALLET writes for ``--output-state``; it may be compressed by gzip.

    Returns
    -------
    :class:`~sklearn.utils.Bunch`
        A Bunch with the following attributes.

        data : CSR matrix of shape (n_documents, n_words)
            Word counts.
        feature_names : ndarray of shape (n_words,)
            The words.
        components : ndarray of shape (n_topics, n_words)
            How often each topic is assigned to each word, plus `topic_word_prior`.
        doc_topic : ndarray of shape (n_documents, n_topics)
            Topic proportions, including `doc_topic_prior`.
        doc_topic_prior : ndarray of shape (n_topics,)
            The prior of topic proportions.
        topic_word_prior : float
            The prior of each word in each topic.

    Raises
    ------
    OSError
        If the file cannot be opened.
    ValueError
        If the file is not a state of MALLET.

    See Also
    --------
    read_mallet_weights : Reads the topics without the documents.
    """
    with opened(path, "a state of MALLET") as stream:
        head = stream.readline().split()
        if head != b"#doc source pos typeindex type topic".split():
            raise ValueError("its first line must be '#doc source pos typeindex type topic'.")
        alpha = _prior(stream, b"#alpha")
        beta = float(_prior(stream, b"#beta")[0])
        tokens = []
        names: dict[int, str] = {}
        for number, line in enumerate(stream, start=4):
            if line.strip():
                token = TOKEN.fullmatch(line.rstrip())
                if token is None:
                    raise ValueError(
                        f"line {number} must have six parts, of which all but the source and the "
                        f"type are numbers. Got {line.decode(errors='replace')!r}."
                    )
                document, word, topic = map(int, token.group(1, 2, 4))
                name = _decoded(token[3], number)
                if topic >= len(alpha):
                    raise ValueError(
                        f"line {number}: topic numbers must be less than {len(alpha)}, the number "
                        f"of values after '#alpha'. Got {topic}."
                    )
                earlier = names.setdefault(word, name)
                if earlier != name:
                    raise ValueError(
                        f"line {number} gives the number {word} to the word {name!r}, but an "
                        f"earlier line gives it to {earlier!r}. Is a number missing in a line?"
                    )
                tokens.append((document, word, topic))
        if not tokens:
            raise ValueError("the file contains no words.")
        documents, words, topics = np.array(tokens, dtype=np.int64).T
        size = check_gaps(documents.max(), len(tokens), "document numbers")
        n_words = check_gaps(words.max(), len(names), "word numbers")
        by_topic = _count(topics, words, (len(alpha), n_words)).toarray() + beta
        by_document = _count(documents, topics, (size, len(alpha))).toarray() + alpha
        # a word that does not occur is represented by its number
        feature_names = [names.get(word, str(word)) for word in range(n_words)]
        return Bunch(
            data=_count(documents, words, (size, n_words)),
            feature_names=np.array(feature_names, dtype=object),
            components=by_topic,
            doc_topic=by_document / by_document.sum(axis=1, keepdims=True),
            doc_topic_prior=alpha,
            topic_word_prior=beta,
        )


def read_mallet_weights(path: str | PathLike) -> Bunch:
    """Read the weight of each word in each topic of a MALLET model.

    Parameters
    ----------
    path : path
        The file that MALLET writes for ``--topic-word-weights-file``.

    Returns
    -------
    :class:`~sklearn.utils.Bunch`
        The attributes are `components`, an ndarray of shape (n_topics, n_words), and
        `feature_names`, an ndarray of shape (n_words,).

    Raises
    ------
    OSError
        If the file cannot be opened.
    ValueError
        If the file does not have MALLET's format for word weights.
    """
    with opened(path, "topic-word weights of MALLET") as stream:
        # topic, word and weight
        lines = _rows(stream)
        rows = _parsed(lines, _weight)
        n_topics = rows[-1][0] + 1 if rows else 1
        words = list(dict.fromkeys(word for topic, word, _ in rows if topic == 0))
        pairs = ((topic, word) for topic in range(n_topics) for word in words or [""])
        for number, row, pair in zip_longest(lines, rows, pairs):
            if row is None or row[:2] != pair:
                place = (
                    f"Line {number} is out of order." if row else "Lines are missing at the end."
                )
                raise ValueError(
                    f"it must list the weights of all words in topic 0, then topic 1, etc. {place}"
                )
        components = np.array([row[2] for row in rows]).reshape(n_topics, -1)
        if not np.all((components > 0) & np.isfinite(components)):
            raise ValueError("weights must be positive and finite.")
    return Bunch(components=components, feature_names=np.array(words, dtype=object))


def read_mallet_doc_topics(path: str | PathLike) -> Bunch:
    """Read the topic proportions of documents from a file of MALLET.

    Parameters
    ----------
    path : path
        The file that MALLET writes for ``--output-doc-topics``.  Files of older versions are also
        accepted; these list pairs of a topic and its share, largest share first.

    Returns
    -------
    :class:`~sklearn.utils.Bunch`
        The attributes are `doc_topic`, an ndarray of shape (n_documents, n_topics), and `names`, a
        list of MALLET's names of the documents.

    Raises
    ------
    OSError
        If the file cannot be opened.
    ValueError
        If the file does not have MALLET's format for topic proportions.
    """
    with opened(path, "document topics of MALLET") as stream:
        # without the header of older versions, and without the empty cell after a last tab
        rows = {
            number: row if row[-1] else row[:-1]
            for number, row in _rows(stream).items()
            if row[0][:1] != "#"
        }
        if not any(row[2:] for row in rows.values()):
            raise ValueError(
                "no line has a document's number, its name and its topics, separated by tabs."
            )
        for number, row in rows.items():
            if len(row) < 2:
                raise ValueError(f"line {number} lacks the name of its document.")
        # the rows in which every second cell is the number of a topic
        n_in_pairs = sum(all(cell.isdigit() for cell in row[2::2]) for row in rows.values())
        if 2 * n_in_pairs > len(rows):
            values = _proportions_from_pairs(rows)
        else:
            # the most frequent number of cells; other rows are reported as errors
            n_cells = mode(map(len, rows.values()))
            values = np.array(_parsed(rows, lambda row: _proportions(row, n_cells - 2)))
    if values.sum(axis=1).min() < 1 - 1e-3:
        warn_user(
            f"The file {fspath(path)!r} was written with a threshold. Shares below it are "
            f"read as 0, and the number of topics is assumed to be {values.shape[1]}, because "
            f"{values.shape[1] - 1} is the largest topic number in the file."
        )
    return Bunch(doc_topic=values, names=[row[1] for row in rows.values()])


def _weight(row: list[str]) -> tuple[int, str, float]:
    """Parse the weight of a word in a topic."""
    topic, word, weight = row
    if not word.strip():
        raise ValueError("the word is empty")
    return int(topic), word, float(weight)


def _key(row: list[str]) -> tuple[int, float, list[str]]:
    """Parse a topic's number, prior and words; a topic without words has an empty cell."""
    topic, prior, words = row
    if not 0 < float(prior) < np.inf:
        raise ValueError(f"the prior must be positive and finite. Got {prior}")
    return int(topic), float(prior), words.split()


def _proportions(row: list[str], n_topics: int) -> list[float]:
    """Parse the proportions of a document, which follow its number and its name."""
    proportions = [float(cell) for cell in row[2:]]
    is_sum_one = np.isclose(sum(proportions), 1, atol=1e-3)
    if len(proportions) != n_topics or not is_sum_one or min(proportions) < 0:
        raise ValueError(
            f"{n_topics} proportions >= 0 that sum to 1, or pairs of a topic's number and its "
            "proportion"
        )
    return proportions


def _pairs(row: list[str]) -> dict[int, float]:
    """Parse the pairs of a topic and its proportion, which follow a document's number and name."""
    topics = list(map(int, row[2::2]))
    shares = list(map(float, row[3::2]))
    is_proportions = sum(shares) <= 1.001 and min(shares, default=0) >= 0
    is_topics = len(set(topics)) == len(topics) and min(topics, default=0) >= 0
    if len(topics) != len(shares) or not is_topics or not is_proportions:
        raise ValueError(
            "pairs of a topic and its proportion. All topics must differ and be >= 0, and the "
            "proportions must be >= 0 and sum to at most 1"
        )
    return dict(zip(topics, shares, strict=True))


def _proportions_from_pairs(rows: dict[int, list[str]]) -> NDArray:
    """Parse proportions of documents, in pairs of a topic's number and its proportion."""
    documents = _parsed(rows, _pairs)
    largest = max(topic for shares in documents for topic in shares)
    n_topics = check_gaps(largest, sum(map(len, rows.values())), "topic numbers")
    values = np.zeros((len(rows), n_topics))
    for proportions, shares in zip(values, documents, strict=True):
        proportions[list(shares)] = list(shares.values())  # writes to a row of `values`
    return values


def _rows(stream: IO[bytes]) -> dict[int, list[str]]:
    """Return the cells of each line that is not empty, by the number of the line."""
    lines = ((number, _decoded(line, number)) for number, line in enumerate(stream, start=1))
    return {number: line.rstrip(" \r\n").split("\t") for number, line in lines if line.strip()}


def _decoded(text: bytes, number: int) -> str:
    """Decode a line, or a word of it; an error names the line."""
    try:
        return text.decode()
    except UnicodeDecodeError as error:
        raise ValueError(
            f"line {number} is not in UTF-8. Save the file as UTF-8, or start MALLET with "
            f"-Dfile.encoding=UTF-8. Got {text[:80].decode(errors='replace')!r}"
        ) from error


def _parsed(rows: dict[int, list[str]], parse: Callable[[list[str]], Any]) -> list[Any]:
    """Parse the cells of each line by the function `parse`; an error names the line."""
    parsed = []
    for number, row in rows.items():
        try:
            parsed.append(parse(row))
        except (ValueError, IndexError) as error:
            raise ValueError(
                f"line {number}, {' '.join(row)[:80]!r}, has a missing or a wrong cell: {error}."
            ) from error
    return parsed


def read_mallet_topic_keys(path: str | PathLike) -> Bunch:
    """Read the most frequent words of each topic of a MALLET model.

    Parameters
    ----------
    path : path
        The file that MALLET writes for ``--output-topic-keys``.

    Returns
    -------
    :class:`~sklearn.utils.Bunch`
        The attributes are `words`, which contains a list of words for each topic, and
        `doc_topic_prior`, an ndarray of shape (n_topics,).

    Raises
    ------
    OSError
        If the file cannot be opened.
    ValueError
        If the file does not have MALLET's format for topic keys.
    """
    with opened(path, "topic keys of MALLET") as stream:
        rows = _parsed(_rows(stream), _key)
        if not rows or any(row[0] != number for number, row in enumerate(rows)):
            raise ValueError("its lines must begin with the topic numbers 0, 1, 2, etc.")
    _, prior, words = zip(*rows, strict=True)
    return Bunch(words=list(words), doc_topic_prior=np.array(prior))


def _prior(stream: IO[bytes], name: bytes) -> NDArray:
    """Read the numbers of a line such as ``#alpha : 0.1 0.2``."""
    head, _, *numbers = stream.readline().split()
    if head != name or not numbers:
        raise ValueError("lines 2 and 3 must begin with '#alpha' and '#beta', and contain numbers.")
    prior = np.array(numbers, dtype=float)
    if not np.all((prior > 0) & np.isfinite(prior)):
        raise ValueError(f"the numbers after {name.decode()!r} must be positive and finite.")
    return prior


def _count(
    rows: NDArray[np.int64], columns: NDArray[np.int64], shape: tuple[int, int]
) -> csr_matrix:
    """Count how often each pair of a row and a column occurs."""
    return csr_matrix((np.ones(len(rows)), (rows, columns)), shape=shape)
