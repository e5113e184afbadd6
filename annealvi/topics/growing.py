"""New words in a stream, which are added to the vocabulary when enough documents contain them.

A new word is a candidate until it is within the limits `min_df`, `max_df` and `max_features`, which
apply to all documents of the stream so far.  Words are never removed.
"""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix
from sklearn.feature_extraction.text import CountVectorizer

from annealvi.topics.markup import markup_in
from annealvi.topics.vectorizer import (
    REMEMBERED,
    TopicVectorizer,
    Vocabulary,
    limits_of,
    readable,
    with_vocabulary,
)

#: If there are more candidates, half of this number are kept: first those in most documents, and
#: among words in equally many documents the latest.
MOST = 200_000


def grows(vectorizer: Any, vocabulary: Vocabulary) -> bool:
    """Whether words may be added: not if the user passed the words or overrides `transform`."""
    usual = CountVectorizer.transform, TopicVectorizer.transform
    return bool(vocabulary.limits) and type(vectorizer).transform in usual


def first_candidates(vectorizer: Any, texts: list[str]) -> dict[str, int]:
    """Return the words of the first block of a stream that are not in the vocabulary."""
    return _bounded(dict(_unknown(_words_of(vectorizer, texts), vectorizer.vocabulary_)))


def candidates_of_fit(vocabulary: Vocabulary) -> dict[str, int]:
    """Return the words that a fit excluded, with numbers of documents that contain them.

    The numbers are not stored: too frequent words count as in all documents, others as in none.
    """
    n_containing = {"max_df": vocabulary.n_documents, "min_df": 0, "max_features": 0}
    dropped = vocabulary.dropped  # words by reason
    return {word: n for reason, n in n_containing.items() for word in dropped.get(reason, ())}


def next_block(
    vectorizer: Any, vocabulary: Vocabulary, candidates: dict[str, int], texts: list[str]
) -> tuple[Any, Vocabulary, dict[str, int], csr_matrix]:
    """Count a block of texts; return the new vectorizer, vocabulary, candidates and counts."""
    words = _words_of(vectorizer, texts)  # of each text
    known = vectorizer.vocabulary_
    unknown = _unknown(words, known)
    candidates = dict(candidates)
    for word, n in unknown.items():
        # pop, so that the latest words come last, where `_bounded` keeps them
        candidates[word] = candidates.pop(word, 0) + n  # 0 if it is new
    n_before = vocabulary.n_documents
    n_documents = n_before + len(texts)
    limits = limits_of(vectorizer.get_params(deep=False), n_documents, vocabulary.n_counted)
    # only words of this block can now be in enough documents
    new = [word for word in unknown if limits["min_df"] <= candidates[word] <= limits["max_df"]]
    new.sort(key=lambda word: (-candidates[word], word))  # frequent words first
    # as many as `max_features` leaves, or all
    new = new[: max(0, limits.get("max_features", len(known) + len(new)) - len(known))]
    if new:
        all_words = np.array([*vocabulary.words, *new], dtype=object)
        vectorizer = with_vocabulary(vectorizer, all_words)
        vocabulary = replace(vocabulary, words=all_words)
    for word in new:
        del candidates[word]
    # texts are words already, so the analyzer of this copy only makes lists of them
    counter = copy.copy(vectorizer).set_params(analyzer=list)
    X = csr_matrix(CountVectorizer.transform(counter, words))
    n_counted = vocabulary.n_counted  # mean number of counted words in a text
    if n_counted is not None:
        n_counted = float(n_counted * n_before + X.sum()) / n_documents
    # how many items of each kind of markup were removed
    removed_markup = markup_in(texts if getattr(vectorizer, "clean", False) else ())
    cleaned = Counter(vocabulary.cleaned) + removed_markup
    vocabulary = replace(
        vocabulary,
        n_documents=n_documents,
        limits=limits,
        n_counted=n_counted,
        n_repeated=None,  # unknown, because earlier texts are not stored
        cleaned=dict(cleaned) or None,
    )
    return vectorizer, vocabulary, _bounded(candidates), X


def with_dropped(vocabulary: Vocabulary, candidates: dict[str, int]) -> Vocabulary:
    """Return the vocabulary of a stream, with its candidates as excluded words by reason."""
    limits = vocabulary.limits
    words_by_reason: dict[str, list[str]] = {reason: [] for reason in limits}
    # the most frequent first, because only the first words of each reason are stored
    for word, n in sorted(candidates.items(), key=lambda item: -item[1]):
        # a word within `min_df` and `max_df` was excluded by `max_features`
        common = "max_features" if n <= limits["max_df"] and "max_features" in limits else "max_df"
        words_by_reason["min_df" if n < limits["min_df"] else common].append(word)
    return replace(
        vocabulary,
        dropped=vocabulary.dropped
        | {reason: of_reason[:REMEMBERED] for reason, of_reason in words_by_reason.items()},
        n_dropped=vocabulary.n_dropped
        | {reason: len(of_reason) for reason, of_reason in words_by_reason.items()},
    )


def _words_of(vectorizer: Any, texts: list[str]) -> list[list[str]]:
    """Return the words of each text, as the vectorizer counts them."""
    return [*map(vectorizer.build_analyzer(), readable(vectorizer, texts))]


def _unknown(words: list[list[str]], known: Mapping[str, int]) -> Counter[str]:
    """Return the number of texts that contain each word that is not `known`."""
    return Counter(
        word
        for words_of_text in words
        for word in dict.fromkeys(words_of_text)  # each word once, in the order of the text
        if word not in known
    )


def _bounded(candidates: dict[str, int]) -> dict[str, int]:
    """Return the candidates, reduced to half of `MOST` if there are more than `MOST`."""
    if len(candidates) <= MOST:
        return candidates
    # those in most documents; the sort is stable, so of equal words the latest
    kept = {*sorted(candidates, key=candidates.__getitem__)[-(MOST // 2) :]}
    return {word: n for word, n in candidates.items() if word in kept}
