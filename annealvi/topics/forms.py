"""Forms of a word, such as printer, printers and printing, which are shown as one word.

Words are always counted as they are written, because merging forms does not improve topics
(Schofield and Mimno 2016).
"""

from __future__ import annotations

import re
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

#: English endings and what replaces them, in this order.
_ENDINGS = [
    (re.compile(ending), replacement)
    for ending, replacement in (
        (r"ie[sd]$", "y"),
        (r"(?<=[sxz])es$|(?<=[cs]h)es$|(?<![suia])s$", ""),
        (r"(?<=^\w{4})(\w*?)(?:ing|ed|er)+$", r"\1"),
        (r"([bdgmnprt])\1$", r"\1"),
        (r"e$", ""),
    )
]
#: The shortest word whose ending is removed, and a word that is not a form of another word.
_SHORTEST, _ALONE = 4, "news"


def stem(word: str) -> str:
    """Remove the endings of an English word; words with other letters are not changed."""
    if not word.isascii() or len(word) < _SHORTEST or word == _ALONE:
        return word
    for ending, replacement in _ENDINGS:
        word = ending.sub(replacement, word)
    return word


def families_of(words: Iterable[str]) -> NDArray[np.intp]:
    """Return the number of each word's family, which consists of all words with the same stem."""
    return np.unique([stem(word) for word in words], return_inverse=True)[1]


def fold(topic: NDArray, families: NDArray[np.intp]) -> NDArray:
    """Add the probabilities of the forms of each word to that of its most probable form."""
    order = np.argsort(-topic, kind="stable")
    # return_index gives the first, most probable word of each family, in the order of families
    most_probable = order[np.unique(families[order], return_index=True)[1]]
    folded = np.zeros(len(topic))
    folded[most_probable] = np.bincount(families, topic)  # the sum of each family
    return folded
