"""Phrases: words that occur side by side much more often than by chance, counted as one word.

A phrase is written as its words, joined by spaces.  Two words are a collocation if their normalised
pointwise mutual information (Bouma 2009) is large:

    log [p(ab) / (p(a) p(b))] / -log p(ab),

which is 1 if the words only occur side by side, and 0 if they are independent.  A phrase is a run
of words in which all neighbours are collocations.

Words are not neighbours if there is punctuation, a number, a single letter, an empty line or a
bullet between them.  Tokenizers return a BREAK in such places.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise
from typing import Any

#: Words are collocations if they occur side by side at least this often, and their normalised PMI
#: is at least 1/2.
LEAST_COUNT = 10
#: What tokenizers return between two words that are not neighbours.  It is no word of a text.
BREAK = "\0"
#: The spaces within a line; some of them are invisible.
_SPACES = r"(?:[^\S\n]|[\u200b-\u200f])*+"
#: What can be between neighbours: an apostrophe or 's, a hyphen or a dash (-- in LaTeX), and spaces
#: with at most one line end.
BETWEEN = re.compile(rf"(?:'[sS]?)?[-‐‑–]{{0,2}}{_SPACES}\n?+{_SPACES}")


def find_phrases(
    texts: Callable[[], Iterable[list[str]]], stop_words: frozenset[str], min_df: int, max_df: int
) -> set[str]:
    """Return the phrases that occur in `min_df` to `max_df` texts and contain no stop word.

    Phrases in fewer than LEAST_COUNT texts are left out, even if `min_df` is lower, because a few
    texts say little about a phrase.  `texts` is called twice, and returns the words of each text,
    with breaks.
    """
    counts: Counter[str] = Counter()
    pairs: Counter[tuple[str, str]] = Counter()
    for words in texts():
        counts.update(words)
        pairs.update(pairwise(words))
    n_words = counts.total() - counts[BREAK]
    # NPMI >= 1/2 is (p(ab) / (p(a) p(b)))^2 >= 1 / p(ab): in integers, the same on every machine
    collocations = {
        pair
        for pair, n in pairs.items()
        if n >= LEAST_COUNT
        and BREAK not in pair
        and n**3 * n_words >= (counts[pair[0]] * counts[pair[1]]) ** 2
    }
    # the number of texts that contain each run
    frequency = Counter(run for words in texts() for run in set(_runs(words, collocations)))
    # phrases in too many texts, with spaces around each; a part of such a phrase is also left out
    too_frequent = "".join(f" {run} " for run, n in frequency.items() if n > max_df)
    return {
        run
        for run, n in frequency.items()
        if n >= max(min_df, LEAST_COUNT)
        and stop_words.isdisjoint(run.split(" "))
        and f" {run} " not in too_frequent
    }


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


def by_first_word(phrases: Iterable[str]) -> dict[str, list[list[str]]]:
    """Return the words of each phrase by the first word, longest phrases first."""
    table: dict[str, list[list[str]]] = {}
    for words in sorted((phrase.split(" ") for phrase in phrases), key=len, reverse=True):
        table.setdefault(words[0], []).append(words)
    return table


def join_phrases(
    text: Any, *, tokenize: Callable[[Any], list[str]], phrases: dict[str, list[list[str]]]
) -> list[str]:
    """Split a text into words, and join those of phrases, the longest phrase first.

    `tokenize` returns the words with breaks, which are left out here.  `phrases` is what
    `by_first_word` returns.
    """
    words = tokenize(text)
    joined = []
    start = 0
    while start < len(words):
        for phrase in phrases.get(words[start], ()):
            if words[start : start + len(phrase)] == phrase:
                break
        else:
            phrase = [words[start]]
        joined.append(" ".join(phrase))
        start += len(phrase)
    return [word for word in joined if word != BREAK]
