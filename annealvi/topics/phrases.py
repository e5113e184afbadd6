"""Phrases: words that occur side by side much more often than by chance, counted as one word.

A phrase is written as its words, joined by spaces.  Two words are a collocation if their normalised
pointwise mutual information (Bouma 2009) is large:

    log [p(ab) / (p(a) p(b))] / -log p(ab),

which is 1 if the words only occur side by side, and 0 if they are independent.  A phrase is a run
of words in which all neighbours are collocations.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from itertools import pairwise
from typing import Any

import numpy as np

#: Words are collocations if their normalised PMI and their count are at least these numbers.
LEAST_NPMI, LEAST_COUNT = 0.5, 10


def find_phrases(
    texts: Callable[[], Iterable[list[str]]], stop_words: frozenset[str], min_df: int, max_df: int
) -> set[str]:
    """Return the phrases that occur in `min_df` to `max_df` texts and contain no stop word.

    Phrases in fewer than LEAST_COUNT texts are left out, even if `min_df` is lower, because a few
    texts say little about a phrase.  `texts` is called twice, and returns the words of each text.
    """
    counts: Counter[str] = Counter()
    pairs: Counter[tuple[str, str]] = Counter()
    for words in texts():
        counts.update(words)
        pairs.update(pair for pair in pairwise(words) if stop_words.isdisjoint(pair))
    n_words = sum(counts.values())
    # log [p(ab) / (p(a) p(b))] >= LEAST_NPMI * -log p(ab)
    collocations = {
        pair
        for pair, n in pairs.items()
        if n >= LEAST_COUNT
        and np.log(n * n_words / (counts[pair[0]] * counts[pair[1]]))
        >= -LEAST_NPMI * np.log(n / n_words)
    }
    # the number of texts that contain each run
    frequency = Counter(run for words in texts() for run in set(_runs(words, collocations)))
    return {run for run, n in frequency.items() if max(min_df, LEAST_COUNT) <= n <= max_df}


def _runs(words: list[str], collocations: set[tuple[str, str]]) -> Iterator[str]:
    """Yield the longest runs of at least two words in which all neighbours are collocations."""
    run: list[str] = []
    for first, second in pairwise(words):
        if (first, second) in collocations:
            run = [*(run or [first]), second]  # a new run begins with both words
        elif run:
            yield " ".join(run)
            run = []
    if run:
        yield " ".join(run)


def lengths_of(phrases: Iterable[str]) -> dict[str, list[int]]:
    """Return the numbers of words of phrases by their first word, largest first."""
    lengths: dict[str, set[int]] = {}
    for phrase in phrases:
        lengths.setdefault(phrase.partition(" ")[0], set()).add(1 + phrase.count(" "))
    return {word: sorted(n_words, reverse=True) for word, n_words in lengths.items()}


def join_phrases(
    text: Any,
    *,
    tokenize: Callable[[Any], list[str]],
    phrases: Collection[str],
    lengths: dict[str, list[int]],
) -> list[str]:
    """Split a text into words, and join those of phrases, the longest phrase first.

    `lengths` is what `lengths_of` returns for the phrases.
    """
    words = tokenize(text)
    joined = []
    start = 0
    while start < len(words):
        # the runs from here that may be phrases, and the word alone, which always is possible
        options = (words[start : start + length] for length in [*lengths.get(words[start], ()), 1])
        phrase = next(run for run in options if len(run) == 1 or " ".join(run) in phrases)
        joined.append(" ".join(phrase))
        start += len(phrase)
    return joined
