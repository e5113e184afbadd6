"""Words of texts in languages that are written without spaces between words."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from functools import cache, partial
from typing import Any

from annealvi._optional import import_optional
from annealvi.topics.phrases import BETWEEN, BREAK

#: A sentence, or as many characters of a longer one as the packages can split at a time.
SENTENCES = re.compile(r"[^。！？!?\n]{1,5000}[。！？!?\n]*")
#: The variable that forbids pythainlp to write files.
_READ_ONLY = "PYTHAINLP_READ_ONLY"
#: Parts of speech of Japanese words that are counted: nouns, verbs, adjectives, adverbs.
_CONTENT = frozenset({"名詞", "動詞", "形容詞", "形状詞", "副詞"})


def segmenter(language: str, breaks: bool) -> Callable[[str], list[str]]:
    """Return a function that splits a text into its words of at least two characters.

    With `breaks` it also returns a BREAK between words that are not neighbours.
    """
    return partial(_words, split=LANGUAGES_WITHOUT_SPACES[language](), breaks=breaks)


def _words(text: str, *, split: Callable[[str], list[str]], breaks: bool) -> list[str]:
    """Split a text, sentence by sentence, into its words of at least two characters."""
    pieces = (piece for sentence in SENTENCES.findall(text) for piece in split(sentence))
    words = []
    for piece in pieces:
        if len(piece) > 1 and piece[0].isalpha():
            words.append(piece)
        elif breaks and not BETWEEN.fullmatch(piece):
            words.append(BREAK)
    return words


@cache
def _chinese() -> Callable[[str], list[str]]:
    """Return a function that splits a Chinese sentence.

    Its dictionary is in memory, not in jieba's file of all users.
    """
    tokenizer = import_optional("jieba", "language='zh'").Tokenizer()
    # what its own initialisation does, without the file
    tokenizer.FREQ, tokenizer.total = tokenizer.gen_pfdict(tokenizer.get_dict_file())
    tokenizer.initialized = True
    return tokenizer.lcut


@cache
def _sudachi() -> Any:
    """Return the dictionary of Japanese, which is loaded once."""
    return import_optional("sudachipy", "language='ja'", "sudachidict_core").Dictionary(dict="core")


def _japanese() -> Callable[[str], list[str]]:
    """Return a function that returns the dictionary forms of words, without particles."""
    tokenizer = _sudachi().tokenizer()  # a new one, because two threads cannot share it

    def split(text: str) -> list[str]:
        """Return the dictionary forms of words that have a meaning of their own.

        Of other words the first character is returned.  It is not counted, but separates words.
        """
        return [
            word.dictionary_form() if word.part_of_speech()[0] in _CONTENT else word.surface()[:1]
            for word in tokenizer.tokenize(text)
        ]

    return split


@cache
def _thai() -> Callable[[str], list[str]]:
    """Return a function that splits a Thai sentence."""
    # otherwise the import would make a folder in the user's home; a value of the user is kept
    before = os.environ.setdefault(_READ_ONLY, "1")
    try:
        tokenize = import_optional("pythainlp.tokenize", "language='th'").word_tokenize
    finally:
        os.environ[_READ_ONLY] = before
    return partial(tokenize, engine="newmm", keep_whitespace=False)


LANGUAGES_WITHOUT_SPACES: dict[str, Callable[[], Any]] = {
    "zh": _chinese,
    "ja": _japanese,
    "th": _thai,
}
