"""Texts and their words: checks of texts, and a CountVectorizer with defaults for topic models."""

from __future__ import annotations

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Set
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cache, partial
from itertools import chain, islice
from os import PathLike
from string import ascii_uppercase
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import DTypeLike, NDArray
from scipy.sparse import csr_matrix, issparse
from sklearn.base import _fit_context, clone
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.utils._param_validation import StrOptions

from annealvi.checks import checked, is_int_in, is_missing, naming
from annealvi.exceptions import BadParameter, warn_user
from annealvi.matrices import summed
from annealvi.topics.languages import (
    LANGUAGES,
    SHORTEST_LIST,
    languages_in,
    other_languages,
    stop_words_of,
)
from annealvi.topics.markup import ESCAPED, cleaned, markup_in
from annealvi.topics.phrases import BETWEEN, BREAK, by_first_word, find_phrases, join_phrases
from annealvi.topics.segmenters import LANGUAGES_WITHOUT_SPACES, segmenter

ALLOWED = "a list, a pandas or polars Series, or another iterable of str"


class Tokens(str):
    """A text that was passed as a list of words; as a str it is the words joined by spaces."""

    tokens: list[str]

    def __new__(cls, tokens: Iterable[str]) -> Tokens:
        """Join the words of a text, and keep them as the attribute `tokens`."""
        words = list(tokens)
        text = super().__new__(cls, " ".join(words))
        text.tokens = words
        return text


def are_tokens(text: Any) -> bool:
    """Whether a text is a list, whose items should be words."""
    # an array or a Series of one dimension, too
    return isinstance(text, list | tuple) or len(getattr(text, "shape", ())) == 1


def check_texts(texts: Any, name: str = "documents", *, min_documents: int = 1) -> list[str]:
    """Check texts, each of which is a str or a list of words, and return them as a list."""
    checked_texts = []
    for number, text in enumerate(_items(texts, name)):
        if are_tokens(text):
            text = Tokens(check_texts(text, f"{name}[{number}]", min_documents=0))
        if not isinstance(text, str):
            missing = is_missing(text)
            hint = "Remove the document, or replace it by ''." if missing else ""
            if isinstance(text, bytes | bytearray):
                hint = "Decode bytes, for example by text.decode('utf-8')."
            elif isinstance(text, Mapping):  # a row of a table
                hint = (
                    f"Choose one of the columns, {list(map(str, text))[:10]}, or pass "
                    "the words of a document as a list."
                )
            elif isinstance(text, Iterable) and not hasattr(text, "shape"):
                hint = "Pass the words of a document as a list."
            raise BadParameter(
                f"{name}[{number}]", "a str", (text if missing else type(text)), hint
            )
        checked_texts.append(text)
    rows = [text.tokens for text in checked_texts if isinstance(text, Tokens)]
    has_texts = share_with_spaces([*chain.from_iterable(rows)]) >= 0.5
    if len(rows) > 9 and len({*map(len, rows)}) == 1:  # few lists may be alike by chance
        # a column of texts, if this is a table
        has_texts |= any(share_with_spaces(column) > 0.75 for column in zip(*rows, strict=True))
    if min_documents and has_texts:
        warn_user(
            f"Many words in the lists of {name!r} contain spaces. Each "
            "of them is counted as one word. Pass texts as str, not as rows of a table."
        )
    if len(checked_texts) < min_documents:
        raise BadParameter(
            name,
            f"at least {min_documents} {'documents' if min_documents > 1 else 'document'}",
            len(checked_texts),
        )
    return checked_texts


def share_with_spaces(words: Collection[Any]) -> float:
    """Return the share of words that contain a space; if it is large, they may be texts."""
    spaced = [isinstance(word, str) and " " in word.strip() for word in words]
    return sum(spaced) / max(1, len(words))


def _items(texts: Any, name: str) -> Iterable:
    """Return the texts to iterate over; raise an error for objects that are not texts."""
    texts = column_of(texts)
    kind = getattr(getattr(texts, "dtype", None), "kind", None)
    if isinstance(texts, str | bytes | bytearray):
        hint = "Put a single text in a list. If this is the path of a file, read the file first."
    elif hasattr(texts, "columns"):
        hint = f"Choose one of its columns, {list(map(str, texts.columns))[:10]}."
    elif getattr(texts, "ndim", 1) == 2 and kind in ("U", "T") and not issparse(texts):
        return texts  # an array of str: each row is a list of words
    elif issparse(texts) or getattr(texts, "ndim", 1) != 1:
        hint = "Pass word counts to TemperedLDA, or counts and words to TopicModel.fit_counts."
    elif isinstance(texts, PathLike):
        hint = "Read the file first."
    elif isinstance(texts, Set | Mapping) or not isinstance(texts, Iterable):
        hint = "A set has no order." if isinstance(texts, Set) else ""
    else:
        return texts
    raise BadParameter(name, ALLOWED, type(texts), hint)


def column_of(values: Any) -> Any:
    """Return an iterable for a column of Arrow, of a data set, or of a table with one column."""
    if hasattr(values, "to_pylist"):  # of Arrow
        return values.to_pylist()
    is_sequence = hasattr(values, "__getitem__") and hasattr(values, "__len__")
    if is_sequence and not hasattr(values, "__iter__"):  # of a data set
        return [values[number] for number in range(len(values))]
    if isinstance(values, np.ndarray) and values.shape[1:] == (1,) and values.dtype.kind in "UTO":
        return values.ravel()  # an array of texts
    if isinstance(values, list) and all(are_tokens(row) and len(row) == 1 for row in values):
        # lists of one str are texts if most contain spaces, otherwise lists of one word
        cells = [row[0] for row in values]
        return cells if len(cells) > 1 and share_with_spaces(cells) > 0.5 else values
    return values


def blocks_of(texts: Any) -> Iterator[list[str]]:
    """Check texts and yield them in blocks: a list of str is one block, a list of blocks several.

    An iterator is read only as far as needed.  A text can also be a list of words, so a list of
    lists of str is ambiguous.  If at most a fifth of the str contain a space, each inner list is
    read as one text.  If at least half contain a space, it is read as a block of texts.
    """
    items = iter(_items(texts, "documents"))
    first_items = list(islice(items, 1))  # empty if there are no items
    items = chain(first_items, items)
    head: Any = next(iter(first_items), None)
    # not blocks: `check_texts` raises an error for those that are not texts either
    if isinstance(head, str | bytes | bytearray | Mapping) or not isinstance(head, Iterable):
        yield check_texts(items)
        return
    if are_tokens(head):  # a list: the words of one text, or a block of texts
        # of an iterator, which can be read only once, only the first item is known
        is_iterator = iter(texts) is texts
        samples = [head] if is_iterator else [*islice(texts, 1000)]
        listed = chain.from_iterable(filter(are_tokens, samples))
        words = [word for word in listed if isinstance(word, str)]
        share = share_with_spaces(words)
        hint = (
            "Pass texts as str, words as a list of lists, blocks of texts as a generator of lists."
        )
        if words and share < 0.5:  # otherwise blocks of texts
            if share > 0.2 or (is_iterator and not share):
                raise BadParameter(
                    "documents",
                    "blocks of texts of several words, or a list of lists of words",
                    f"{'an iterator' if is_iterator else 'a list of lists'}, "
                    f"first {first_items[0][:4]!r}",
                    hint,
                )
            warn_user(f"Each list in 'documents' is read as the words of one document. {hint}")
            yield check_texts(items)
            return
    for number, block in enumerate(items):
        yield check_texts(block, f"documents[{number}]")


def are_texts(documents: Any, name: str) -> bool:
    """Whether documents are texts instead of a matrix of counts.

    One-dimensional data are texts.  The items of the data are not checked here:
    :func:`check_texts` raises an error if they are numbers.
    """
    if isinstance(documents, str | bytes | bytearray):
        raise BadParameter(
            name,
            "a list of texts or a matrix of counts",
            type(documents),
            "Put a single text in a list.",
        )
    documents = column_of(documents)
    if issparse(documents) or not hasattr(documents, "__iter__"):
        return False
    if hasattr(documents, "shape"):  # an array, a Series
        return len(documents.shape) == 1
    if isinstance(documents, list | tuple) and documents:
        # the first document that is not an empty list: a text, the words of a text, or a row
        document = next((row for row in documents if not are_tokens(row) or len(row)), documents[0])
        if are_tokens(document):
            return len(document) > 0 and isinstance(document[0], str)
        return not getattr(document, "shape", ())
    return True  # an iterator or an empty list


def is_list(value: Any) -> bool:
    """Whether a parameter is a list, an array or another sequence of values, but not a text."""
    return (
        isinstance(value, Iterable)
        and not isinstance(value, str | bytes | Mapping | Set)
        and getattr(value, "ndim", 1) > 0  # not an array without dimensions
    )


def of_each(values: Any, n: int, name: str, what: str = "document") -> list:
    """Check that there is a value for each of n items, and return the values as a list."""
    values = column_of(values)
    if not is_list(values):
        raise BadParameter(name, f"a sequence with one entry for each {what}", values)
    items = list(values)
    if len(items) != n:
        raise BadParameter(
            name,
            f"a sequence with one entry for each of the {n} {what}s",
            f"{len(items)} entries",
        )
    return items


def different_ints(values: Any, name: str, what: str, lower: int, upper: int) -> list[int]:
    """Check a list of different ints in [lower, upper], and return it; `what` explains them."""
    are_listed = is_list(values)
    numbers = list(values) if are_listed else [values]
    for value in numbers:
        is_valid = are_listed and is_int_in(value, lower, upper)
        if not is_valid or numbers.count(value) > 1:
            raise BadParameter(
                name, f"a list of different ints in the range [{lower}, {upper}], {what}", value
            )
    return list(map(int, numbers))


#: Words of at least two characters, which begin with a letter and may contain digits.  The part of
#: don't or isn't before 't is not a word.
WORDS = r"\b[^\W\d_]\w++(?!['’‘ʼ＇`´]t\b)"
#: The same pattern for ASCII texts, which takes half as long.
PLAIN = r"(?a:\b[a-zA-Z]\w++(?!['`]t\b))"
#: Scripts without spaces between words: a regular expression for their words, and a mean length of
#: words above which the texts have not been split into words.
UNSPACED = {
    "Chinese or Japanese": ("[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\U00020000-\U0003ffff]", 5.0),
    "Chinese": (r"^[\u3400-\u4dbf\u4e00-\u9fff\U00020000-\U0003ffff]+\Z", 3.0),
    "Thai or Lao": ("[\u0e00-\u0eff]", 8.0),
    "a script of South-East Asia": (
        "[\u1000-\u109f\u1780-\u17ff\u1980-\u19df\u1a20-\u1aad\u1b00-\u1b7f\ua980-\ua9df]",
        12.0,
    ),
}
#: A script is checked if its words contain at least this share of all characters.
ENOUGH = 0.02


#: What signs within words are replaced by, each with a pattern of what people type instead: for
#: Ukrainian and Belarusian, for Hebrew acronyms and foreign sounds, for Uzbek, and for accents that
#: a PDF has before their letters.
INNER = {
    "ʼ": "['’‘`´′‛*](?<=[Ѐ-ӿ].)(?:(?=[яюєїеёіЯЮЄЇЕЁІ])|(?<=['’])(?=[Ѐ-ӿ]))",
    "״": '["”](?<=[א-ת].)(?=[א-ת])',
    "׳": "['’](?<=[א-ת].)(?=[א-ת])",
    "ʻ": r"‘(?<=[oOgG].)(?=\w)",
    "\\1\u0308": "¨(?<=[A-Za-z].)([aeiouAEIOU])",
    "\\1\u030c": "ˇ([cdenrstzCDENRSTZ])",
    "\\1\u0327": "¸(?<=[A-Za-z].)([cstCST])",
}
#: Words such as oʻzbek and yoʻq tell that a text is in Uzbek, where other signs are typed for ʻ.
UZBEK = re.compile(
    r"['’`](?=[zlqgapZLQGAP])"
    r"(?i:(?<=\bo.)z|(?<=\bbo.)l|(?<=\byo.)q|(?<=\bto.)g|(?<=\bg.)al|(?<=\bko.)p)"
)
TYPED_UZBEK = re.compile(r"['’`](?<=[oOgG].)(?=\w)")
#: The sign in Lehrer*innen, which is written in several ways.
GENDERED = re.compile(r"(?<=[a-zäöüß])[*:_](?=innen\b)")
#: Letters and digits in a style, such as fullwidth, bold, lowered or joined (ligatures).
LETTERS = "\u2080-\u2089\ufb00-\ufb06\uff10-\uff5a\U0001d400-\U0001d7ff"
#: Letters that are whole words if they are raised, in circles or in boxes; one alone is a note.
RAISED = "\u02b0-\u02b8\u02e0-\u02e4\u1d2c-\u1d6a\u1d9b-\u1dbf\u24b6-\u24e9\U0001f130-\U0001f189"
#: This pattern and the next ones begin with a set, because such a search is several times faster.
STYLED = re.compile(
    rf"[{LETTERS}{RAISED}](?:(?<=[{LETTERS}])[{LETTERS}]*|(?<!\w.)[{RAISED}]+(?!\w))"
)
#: Letters in dark circles and dark boxes, for which Unicode has no compatible letters.
BOXED = dict(
    zip([*range(0x1F150, 0x1F16A), *range(0x1F170, 0x1F18A)], 2 * ascii_uppercase, strict=True)
)
#: Signs within words that are no letters: soft hyphens, the Arabic kashida, invisible joiners,
#: lines under, over and through letters, Armenian signs of questions and exclamations, accents
#: that mark the stress of Cyrillic words, and what joins or separates nothing between letters.
SILENT = re.compile(
    "[\u00ad\u0300\u0301\u034f\u0640\u180e\u200b-\u200f\u2060\ufeff\u0305\u0332-\u0338\u033f"
    "\u055b\u055c\u055e](?:(?<![\u0300\u0301\u200b-\u200f])|(?<=[Ѐ-ӿ][\u0300\u0301])"
    "|(?<=[A-Za-z\u00c0-\u04ff][\u200b-\u200f])(?=[A-Za-z\u00c0-\u04ff]))"
)
#: Signs that are used as apostrophes in contractions, and the endings of contractions.
APOSTROPHE = re.compile(
    r"[’‘ʼ＇`´′‛‵❛❜՚\x91\x92\ufffd\xe2](?:(?<=[A-Za-z].)|(?<=[A-Za-z][\s_*].))"
    r"(?:(?<!\xe2)|\u20ac\u2122)(?=\s?(?i:ll|ve|re|[tsdm])\b)"
)
CONTRACTED = re.compile(r"'(?:(?<=[A-Za-z]')|(?<=[A-Za-z][\s_*]'))(?i:\s?(?:ll|ve)|re)\b")
#: Signs around words: underscores, raised digits and digits in circles, which are the numbers of
#: notes, raised letters after words, and apostrophes around words and after articles.
DIGITS = "\u00b2\u00b3\u00b9\u2070-\u2079\u2460-\u249b\u24ea-\u24ff\u2776-\u2793"
NOTES = "\u00aa\u00ba\u1d43-\u1d61\u1d9c-\u1dbb"
AROUND = re.compile(
    rf"[_ʼ{DIGITS}{NOTES}](?:(?<=[{DIGITS}])|(?<=_)(?:(?<![^\W_]_)|(?![^\W_]))"
    rf"|(?<=[{NOTES}])[{NOTES}]*(?!\w)|(?<=ʼ)(?:(?!\w)|(?<!\wʼ)"
    r"|(?i:(?<=\b[djlmns]ʼ)|(?<=\bcʼ)(?!h)|(?<=\bquʼ))))"
)


def marks(first: int, last: int) -> str:
    """Return the signs that combine with letters, as a set for a regular expression.

    Only characters from `first` to `last` - 1 are in the set.
    """
    # Unicode's category M contains marks
    signs = [code for code in range(first, last) if unicodedata.category(chr(code))[0] == "M"]
    runs = np.split(signs, np.flatnonzero(np.diff(signs) > 1) + 1)  # of consecutive codes
    return "".join(f"{chr(run[0])}-{chr(run[-1])}" for run in runs)


@cache
def words_with_marks() -> str:
    """Return the pattern WORDS, extended by characters within words that \\w does not match.

    These are marks such as accents, invisible joiners, Hebrew signs, and the dot of l·l.  Marks
    beyond U+FFFF are a separate set, because matching with a single set takes five times as long.
    """
    far = rf"(?=[\U00010000-\U0001ffff])[{marks(0x10000, 0x1E95B)}]"
    inside = r"[׳״](?=\w)|·(?<=[lL].)(?=[lL])"
    letters = rf"(?:\w|[{marks(0x300, 0xFFFF)}\u200c\u200d]|{far}|{inside})++"
    return WORDS.replace(r"\w++", letters)


def split_words(text: str) -> list[str]:
    """Return the words of a text, in its order."""
    return re.findall(PLAIN if text.isascii() else words_with_marks(), text)


def split_clauses(text: str) -> list[str]:
    """Return the words of a text, with a BREAK between those that are not neighbours."""
    pattern = PLAIN if text.isascii() else words_with_marks()
    pieces = re.split(f"({pattern})", text)  # what is before the first word, the word, and so on
    # most of these are a space, for which a comparison is faster than a match
    pieces[::2] = [
        "" if piece == " " or BETWEEN.fullmatch(piece) else BREAK for piece in pieces[::2]
    ]
    return list(filter(None, pieces))


def splitter(vectorizer: TopicVectorizer) -> Callable[[str], list[str]] | None:
    """Return the function that splits a text into words, with breaks if phrases are counted.

    It is None if the user chose a tokenizer or a pattern of words: these return no breaks.
    """
    if vectorizer.language is not None:
        return segmenter(vectorizer.language, breaks=vectorizer.phrases)
    # a fit replaces "auto" by this pattern
    automatic = vectorizer.token_pattern in ("auto", words_with_marks())
    if vectorizer.tokenizer is not None or not automatic:
        return None
    return split_clauses if vectorizer.phrases else split_words


def compose(text: str, clean: bool, lowercase: bool, preprocess: Callable[[str], str]) -> str:
    """Preprocess a text without signs that are no part of words, in its composed form (NFC).

    `clean` and `lowercase` are parameters of TopicVectorizer, and `preprocess` is scikit-learn's
    function for a text.
    """
    if "\\" in text or "''" in text:
        text = ESCAPED.sub("'", text)
    if clean:
        text = cleaned(text)
    if "innen" in text:
        text = GENDERED.sub("", text)
    if UZBEK.search(text):
        text = TYPED_UZBEK.sub("ʻ", text)
    if not text.isascii():
        text = unicodedata.normalize("NFC", text)
        text = STYLED.sub(
            lambda match: unicodedata.normalize("NFKC", match[0].translate(BOXED)), text
        )
        text = APOSTROPHE.sub("'", SILENT.sub("", text))
        for sign, typed in INNER.items():  # the sign of a word, and what people type
            text = re.sub(typed, sign, text)
        text = unicodedata.normalize("NFC", text)
        if lowercase:  # otherwise lower case would leave the dot as a mark
            text = text.replace("İ", "i")
    if "'" in text:
        text = CONTRACTED.sub(" ", text)
    return preprocess(AROUND.sub(" ", text))


#: Stop words that occur are searched in about this number of texts.
LOOKED_AT = 200
#: The maximum number of excluded words that are stored for each reason.
REMEMBERED = 10_000
#: A word may occur in this share of the documents, or in this number of documents if it is larger.
LARGEST_SHARE = 0.2
#: Short texts have few common words that say nothing of their subject, but all of them may name it.
LARGEST_SHARE_IF_SHORT = 0.5
ALWAYS_ALLOWED = 50


def fewest_documents(n_documents: int) -> int:
    r"""Return the default of `min_df`: words in fewer documents are excluded.

    For D documents the default is :math:`\sqrt{D} / 10`, rounded up.  From 20 documents on it is at
    least 2.  It is 2 for 100 documents, 6 for 3,000, 15 for 20,000 and 100 for a million.
    """
    return max(1 if n_documents < 20 else 2, math.ceil(n_documents**0.5 / 10))


def most_documents(n_documents: int, n_counted: float | None = None) -> int:
    """Return the default of `max_df`: words in more documents are excluded.

    The default is a fifth of the documents, or half of them if they are short, but at least 50.
    `n_counted` is the mean number of counted words of a document, or None if it is unknown.
    """
    is_short = n_counted is not None and n_counted < SHORT
    share = LARGEST_SHARE_IF_SHORT if is_short else LARGEST_SHARE
    return max(int(share * n_documents), ALWAYS_ALLOWED)


#: Texts are called short if they have fewer counted words on average than the first number (see
#: docs/record/classes.md).  If they have fewer than the second number, a fit of at least as many
#: texts as the third number warns.
SHORT = 25
VERY_SHORT = 10.0
MANY = 100


@dataclass(frozen=True)
class Vocabulary:
    """The words that are counted, and the words that were excluded."""

    #: The words, in the order of the columns.
    words: NDArray
    #: Number of documents that the vocabulary was learned from; 0 if the user passed the words.
    n_documents: int
    #: The limits that were used: `min_df` and `max_df` as numbers of documents, and `max_features`
    #: as a number of words.
    limits: dict[str, int] = field(default_factory=dict)
    #: Excluded words by the parameter that excluded them, at most 10,000 for each parameter.
    #: Words in most documents come first.
    dropped: dict[str, list[str]] = field(default_factory=dict)
    #: The number of excluded words by the parameter that excluded them.
    n_dropped: dict[str, int] = field(default_factory=dict)
    #: The mean number of counted words of a document; None if it is unknown.
    n_counted: float | None = None
    #: The number of documents that repeat an earlier document exactly; None if it is unknown.
    n_repeated: int | None = None
    #: What `clean` removed from the texts, and how often.
    cleaned: dict[str, int] | None = None
    #: The share of texts that seem to be in languages whose stop words are not excluded.
    languages: dict[str, float] | None = None

    def note(self) -> str:
        """Report in a few sentences which words were excluded and why, and unusual texts."""
        sentences = {
            "stop_words": "{words} on the list of stop words",
            "max_df": "{words} in more than {limit:,} documents",
            "min_df": "{words} in fewer than {limit:,} documents",
            "max_features": "{words} rarer than the {limit:,} words that are kept",
        }
        of = f"words of {self.n_documents:,} documents" if self.n_documents else "passed words"
        text = f"{len(self.words):,} {of} are counted."
        for name, sentence in sentences.items():
            n = self.n_dropped.get(name, 0)
            if n:
                words = f"{n:,} {'word is' if n == 1 else 'words are'}"
                sentence = sentence.format(words=words, limit=self.limits.get(name, 0))
                words_out = self.dropped.get(name, [])[:8]
                examples = ", ".join(w if len(w) <= 40 else f"{w[:39]}…" for w in words_out)
                more = ", ..." if n > 8 else ""
                text += f" {name}: {sentence} ({examples}{more})."
        if self.languages:
            text += f" {self.strange()}"
        if self.cleaned:
            gone = ", ".join(f"{what} ({n:,})" for what, n in self.cleaned.items())
            text += f" clean: {gone} were removed."
        n_joined = sum("_" in word for word in self.words.tolist())
        if n_joined:
            text += f" Words with underscores ({n_joined:,}) are counted as one word each."
        if self.n_repeated:
            these = "document repeats" if self.n_repeated == 1 else "documents repeat"
            text += f" {self.n_repeated:,} {these} an earlier document exactly."
        if self.n_counted is not None and self.n_counted < SHORT:
            text += f" {self.shortness()}"
        return text

    def strange(self) -> str:
        """Report texts in languages whose stop words are counted, and what to do."""
        shares = (f"{name} ({share:.0%})" for name, share in (self.languages or {}).items())
        return (
            f"By their stop words, which are counted, texts seem to be in {', '.join(shares)}. Set "
            "'stop_words' to the language of the texts, or to several, such as 'english,german'."
        )

    @property
    def very_short(self) -> bool:
        """Whether a fit should warn that texts are short; it does not for a few texts."""
        return (
            self.n_counted is not None and self.n_counted < VERY_SHORT and self.n_documents >= MANY
        )

    def shortness(self) -> str:
        """Report how short the texts are, and what to do."""
        return (
            f"Texts are short, with {self.n_counted:.1f} counted words on average. "
            "Several topics of such a text cannot be told apart: with single_topic=True, or "
            "annealvi fit --single-topic, each text has one topic."
        )


class TopicVectorizer(CountVectorizer):
    r"""Count the words of texts, with defaults that are suitable for topic models.

    The class differs from scikit-learn's :class:`~sklearn.feature_extraction.text.CountVectorizer`
    in three defaults: `min_df` and `max_df` depend on the number of documents, and words begin
    with a letter (`token_pattern`).  Decomposed accents are composed (Unicode's form NFC).  A
    document can also be a list of words, which are only converted to lower case.

    Parameters
    ----------
    input, encoding, decode_error, strip_accents, lowercase, preprocessor, tokenizer : objects
        As in CountVectorizer.
    stop_words : {"english"} or list of str, default=None
        Words to exclude.
    token_pattern : str, default="auto"
        Regular expression of a word.  With ``"auto"`` a word is a letter and one or more letters or
        digits; accents, vowel signs and other marks on letters are part of it.  Words that end in
        ``n't`` are excluded.
    ngram_range, analyzer : objects
        As in CountVectorizer.
    max_df : float, int or "auto", default="auto"
        Words in more documents than this are excluded.  A float is a share of the documents, an int
        is a number of documents.  ``"auto"`` is a fifth of the documents or, if these have fewer
        than 25 counted words on average, half of the documents, but at least 50.
    min_df : float, int or "auto", default="auto"
        Words in fewer documents than this are excluded.  ``"auto"`` is :math:`\sqrt{D} / 10` for D
        documents, rounded up, and at least 2 if there are at least 20 documents.
    max_features, vocabulary, binary, dtype : objects
        As in CountVectorizer.
    clean : bool, default=False
        Whether to remove HTML tags, scripts and comments, links, @-mentions (``@name``, and ``RT``
        before them) and LaTeX commands (``\\alpha``, ``\\begin{figure}``), which would otherwise
        become words such as `href`, `http` or `alpha`.  HTML entities (``caf&eacute;``) are
        decoded.  ``dropped_.cleaned`` contains the number of removed items of each kind.
    phrases : bool, default=False
        Whether to count phrases, such as "monte carlo" or "bose einstein condensate", as words.  A
        phrase is a run of words, without stop words, in which all neighbours are collocations:
        they occur side by side at least ten times, and their normalised pointwise mutual
        information (Bouma 2009) is at least 0.5.  Words are not side by side if punctuation, a
        number, a single letter, an empty line or a bullet is between them.  Your own `tokenizer`
        or `token_pattern` does not return these, so all its words are side by side.  The limits on
        rare and frequent words apply to phrases, except that `max_features` excludes no phrase.  If
        you pass a `vocabulary`, its entries that contain a space are the phrases.
    language : {"zh", "ja", "th"}, default=None
        Chinese, Japanese or Thai, which are written without spaces between words.  Words are found
        by jieba, SudachiPy (with the dictionary sudachidict_core) or PyThaiNLP, which must be
        installed (the extra ``asia``).  Words of at least two characters are counted;
        of Japanese words, nouns, verbs, adjectives and adverbs in their dictionary form.  Saved
        models contain the language.

    Attributes
    ----------
    vocabulary_ : dict of str to int
        The words and their columns.
    fixed_vocabulary_ : bool
        Whether the words were passed as `vocabulary`.
    dropped_ : Vocabulary
        The words that were excluded.

    Examples
    --------
    >>> from annealvi.topics import TopicVectorizer
    >>> vectorizer = TopicVectorizer(stop_words="english")
    >>> vectorizer.fit_transform(["Stars and planets", "The planets of a star"]).shape
    (2, 3)
    """

    _parameter_constraints: ClassVar[dict] = {
        **CountVectorizer._parameter_constraints,
        "input": [StrOptions({"content", "filename"})],  # texts are str
        **{
            name: [*CountVectorizer._parameter_constraints[name], StrOptions({"auto"})]
            for name in ("min_df", "max_df")
        },
        "clean": ["boolean"],
        "phrases": ["boolean"],
        "language": [StrOptions(set(LANGUAGES_WITHOUT_SPACES)), None],
    }

    def __init__(
        self,
        *,
        input: str = "content",
        encoding: str = "utf-8",
        decode_error: str = "strict",
        strip_accents: str | Callable | None = None,
        lowercase: bool = True,
        preprocessor: Callable | None = None,
        tokenizer: Callable | None = None,
        stop_words: str | list[str] | None = None,
        token_pattern: str | None = "auto",
        ngram_range: tuple[int, int] = (1, 1),
        analyzer: str | Callable = "word",
        max_df: float | Literal["auto"] = "auto",
        min_df: float | Literal["auto"] = "auto",
        max_features: int | None = None,
        vocabulary: Any = None,
        binary: bool = False,
        dtype: DTypeLike = np.int64,
        clean: bool = False,
        phrases: bool = False,
        language: Literal["zh", "ja", "th"] | None = None,
    ) -> None:
        """Store the parameters; see the class."""
        arguments = locals()
        for name in self._get_param_names():
            setattr(self, name, arguments[name])

    def __sklearn_clone__(self) -> TopicVectorizer:
        """Return a clone; scikit-learn's `clone` calls this method."""
        return copied(self)

    def build_preprocessor(self) -> Callable[[str], str]:
        """Return the function that prepares a text before it is split into words."""
        preprocess = super().build_preprocessor()
        if self.preprocessor is not None and not self.clean:
            return preprocess
        return partial(compose, clean=self.clean, lowercase=self.lowercase, preprocess=preprocess)

    def build_tokenizer(self) -> Callable[[str], list[str]]:
        """Return the function that splits a text into words."""
        self._validate_params()
        tokenize = splitter(self) or super().build_tokenizer()
        return self._joining(tokenize) if self.phrases else tokenize

    def _joining(self, tokenize: Callable[[Any], list[str]]) -> Callable[[Any], list[str]]:
        """Return a function that also joins the words of the phrases in the vocabulary."""
        # the words that the user passed, before a fit
        words = getattr(self, "vocabulary_", self.vocabulary) or ()
        phrases = by_first_word(word for word in words if " " in word)
        return partial(join_phrases, tokenize=tokenize, phrases=phrases)

    def build_analyzer(self) -> Callable[[str], list[str]]:
        """Return the function that turns a text into the items to count."""
        self._validate_params()
        analyze = super().build_analyzer()
        if self.analyzer != "word":
            return analyze
        return partial(self._analyzed, analyze=analyze, preprocess=self.build_preprocessor())

    def _analyzed(self, text: str, *, analyze: Callable, preprocess: Callable) -> list[str]:
        """Return what is counted of a text, or of the words of a list.

        `analyze` is scikit-learn's function for a whole text, and `preprocess` that for its parts.
        """
        if not isinstance(text, Tokens):
            return analyze(text)
        words = [preprocess(word).strip() for word in text.tokens]
        words = list(filter(None, words))
        if self.phrases:
            words = self._joining(list)(words)
        return self._word_ngrams(words, self.get_stop_words())

    @checked
    @_fit_context(prefer_skip_nested_validation=True)
    def fit_transform(self, raw_documents: Iterable[str], y: Any = None) -> csr_matrix:
        """Learn the vocabulary of texts and count their words.

        Parameters
        ----------
        raw_documents : iterable of str
        y : Ignored

        Returns
        -------
        CSR matrix of shape (n_samples, n_words)

        Raises
        ------
        TypeError
            If a document is not a str.
        ValueError
            If there are no documents, or all words are excluded.
        """
        texts = check_texts(raw_documents, "raw_documents")
        fitted, X, self.dropped_ = count_words(self, texts)
        self.vocabulary_ = fitted.vocabulary_
        self.fixed_vocabulary_ = fitted.fixed_vocabulary_
        return X

    @checked
    def transform(self, raw_documents: Iterable[str]) -> csr_matrix:
        """Count the words of texts.

        Parameters
        ----------
        raw_documents : iterable of str
            Texts; each can also be a list of words.

        Returns
        -------
        CSR matrix of shape (n_samples, n_words)

        Raises
        ------
        TypeError
            If a document is neither a str nor a list of str.
        """
        self._validate_params()
        texts = check_texts(raw_documents, "raw_documents", min_documents=0)
        return super().transform(readable(self, texts))


def count_words(
    vectorizer: Any,
    texts: list[str],
    *,
    kept: frozenset[str] = frozenset(),
    each: Callable[[list], Iterable] = iter,
) -> tuple[Any, csr_matrix, Vocabulary]:
    """Learn the vocabulary of texts, and count its words; `kept` words are never excluded.

    `each` yields the texts that are counted one by one, as `Progress.each` does.
    """
    counter = copied(vectorizer)
    _check_parameters(counter)
    # whether the vectorizer learns words as a CountVectorizer does, with its limits
    usual = CountVectorizer.fit_transform, TopicVectorizer.fit_transform
    limited = getattr(type(counter), "fit_transform", None) in usual
    if limited:  # words are counted without limits, to find out which words the limits exclude
        words_only = counter.analyzer == "word" and counter.tokenizer is None
        if counter.token_pattern == "auto":  # saved files contain the pattern
            counter.set_params(token_pattern=words_with_marks() if words_only else None)
        # this call checks the limits of the user, which are not used in the counting below
        CountVectorizer.fit_transform(copied(counter).set_params(vocabulary=["word"]), [])
        limits_passed = {
            name: getattr(counter, name) for name in ("min_df", "max_df", "max_features")
        }
        counter.set_params(min_df=1, max_df=1.0, max_features=None)
        if getattr(counter, "phrases", False) and counter.vocabulary is None:
            phrases = _phrases_of(counter, texts, limits_of(limits_passed, len(texts)))
            counter.vocabulary_ = phrases  # which the analyzer joins
            kept |= phrases
        try:
            with naming_text(counter, texts):
                X = CountVectorizer.fit_transform(counter, each(readable(counter, texts)))
        except ValueError as error:
            if "empty vocabulary" not in str(error):
                raise
            raise ValueError(
                f"empty vocabulary: the {len(texts)} texts, such as {texts[0][:60]!r}, contain "
                "only stop words or no words. By default a word has at least two letters. Set "
                f"'token_pattern' of {type(counter).__name__} or 'stop_words' to change this."
            ) from error
        counter.set_params(**limits_passed)
    else:
        with naming_text(counter, texts):
            X = csr_matrix(counter.fit_transform(readable(counter, texts)))
    words = words_of(counter)
    for word in words.tolist():
        if not isinstance(word, str):
            raise BadParameter("vectorizer", "a vectorizer whose words are str", word)
    is_split = getattr(counter, "language", None) or any(isinstance(t, Tokens) for t in texts)
    if limited and words_only and not is_split:
        _warn_of_sentences(words.tolist(), summed(X, axis=0))
    vocabulary = Vocabulary(words, len(texts))
    languages: dict[str, float] = {}
    if limited and not counter.fixed_vocabulary_:
        limits, left_out = _left_out(X, limits_passed, np.isin(words, list(kept)))
        # words in most texts come first
        order = np.argsort(-np.bincount(X.indices, minlength=len(words)), kind="stable")
        dropped = {}
        n_dropped = {}
        for reason, mask in left_out.items():
            columns = order[mask[order]]
            dropped[reason] = words[columns[:REMEMBERED]].tolist()
            n_dropped[reason] = len(columns)
        dropped["stop_words"], languages = _stop_words_in(counter, texts)
        n_dropped["stop_words"] = len(dropped["stop_words"])
        is_kept = ~np.logical_or.reduce(list(left_out.values()))  # words that no limit excludes
        vocabulary = Vocabulary(words[is_kept], len(texts), limits, dropped, n_dropped)
        counter.vocabulary_ = columns_of(vocabulary.words)
        X = X[:, is_kept]
    if not len(vocabulary.words):
        raise ValueError(
            f"All words of the {len(texts)} documents are excluded. {vocabulary.note()} Use a "
            "smaller 'min_df' or a larger 'max_df', for example "
            f"vectorizer={type(vectorizer).__name__}(min_df=1, max_df=1.0)."
        )
    n_counted = None  # not defined for weights, which are not integers
    fractions = X.data[X.data != np.floor(X.data)]
    if len(fractions):
        warn_user(
            f"{type(counter).__name__} computes fractions, such as {fractions[0]:.3g}, which are "
            "weights, not counts of words. Topics of counts are better: use a vectorizer that "
            "counts, such as TopicVectorizer."
        )
    else:
        n_counted = float(X.sum(dtype=float)) / X.shape[0]
    vocabulary = replace(
        vocabulary,
        n_counted=n_counted,
        n_repeated=len(texts) - len(set(texts)),
        cleaned=dict(markup_in(texts if getattr(counter, "clean", False) else ())) or None,
        languages=languages or None,
    )
    if languages:
        warn_user(f"{vocabulary.strange()} Topics may consist of their stop words.")
    return counter, X, vocabulary


def words_of(vectorizer: Any) -> NDArray:
    """Return the words of a fitted vectorizer, which may be a pipeline without names of words."""
    try:
        return vectorizer.get_feature_names_out()
    except AttributeError:
        raise BadParameter(
            "vectorizer",
            "a vectorizer whose steps all have get_feature_names_out",
            vectorizer,
            "A FunctionTransformer has it if its feature_names_out is 'one-to-one'.",
        ) from None


def _phrases_of(counter: TopicVectorizer, texts: list[str], limits: Mapping[str, int]) -> set[str]:
    """Find the phrases of texts, with the limits on the number of texts with a word."""
    # this tokenizer returns breaks, and does not join phrases
    plain = copied(counter).set_params(
        phrases=False,
        stop_words=None,
        language=None,
        tokenizer=splitter(counter) or counter.tokenizer,
    )
    analyze = plain.build_analyzer()
    return find_phrases(
        texts=lambda: map(analyze, texts),  # a function, because the words are read twice
        stop_words=counter.get_stop_words() or frozenset(),
        min_df=limits["min_df"],
        max_df=limits["max_df"],
    )


def warn_of_empty(X: csr_matrix, what: str) -> None:
    """Warn about texts without a counted word; `what` is the consequence for these texts."""
    empty = np.flatnonzero(summed(X, axis=1) == 0)
    if len(empty):
        positions = ", ".join(map(str, empty[:5]))
        if len(empty) > 5:
            positions += ", ..."
        warn_user(
            f"{len(empty):,} of the {X.shape[0]:,} texts contain no word of the model's vocabulary "
            f"(positions {positions}, counted from 0). {what}"
        )


@contextmanager
def naming_text(vectorizer: Any, texts: list[str]) -> Iterator[None]:
    """Name the text for which a function of the user, such as a tokenizer, raises an error.

    The vectorizer counts the texts in this context.  After an error they are analysed again, one by
    one, to find the text.
    """
    try:
        yield
    except Exception as error:
        functions = ("analyzer", "tokenizer", "preprocessor")
        names = [name for name in functions if callable(getattr(vectorizer, name, None))]
        if not names:  # the user has passed no function
            raise
        analyze = vectorizer.build_analyzer()
        for number, text in enumerate(readable(vectorizer, texts)):
            try:
                analyze(text)
            except Exception as cause:
                raise BadParameter(
                    f"documents[{number}]",
                    f"a text that the {names[0]} of {type(vectorizer).__name__} can read",
                    text[:40],
                    f"It has {len(str(text).encode('utf-8', 'replace')):,} bytes. "
                    f"{type(cause).__name__}: {cause}",
                ) from cause
        raise error  # no text alone is the cause


def readable(vectorizer: Any, texts: list[str]) -> list:
    """Return texts in the form that a vectorizer accepts; the user's analyzer gets lists."""
    if not callable(getattr(vectorizer, "analyzer", None)):
        return texts
    return [getattr(text, "tokens", text) for text in texts]


def copied(vectorizer: Any) -> Any:
    """Return a clone; functions of a CountVectorizer are shared, because not all can be copied."""
    if isinstance(vectorizer, CountVectorizer):
        return type(vectorizer)(**vectorizer.get_params(deep=False))
    return clone(vectorizer)


def _stop_words_in(counter: CountVectorizer, texts: list[str]) -> tuple[list[str], dict]:
    """Return the stop words that occur in a sample of the texts, most frequent first.

    The second result is the share of texts that seem to be in other languages than the stop words.
    """
    listed = counter.get_stop_words()
    if not listed or counter.analyzer != "word":
        return [], {}
    analyze = copied(counter).set_params(stop_words=None, ngram_range=(1, 1)).build_analyzer()
    sample = [*map(analyze, readable(counter, texts[:: -(-len(texts) // LOOKED_AT)]))]
    frequency = Counter(chain.from_iterable(listed & set(words) for words in sample))
    others = other_languages(sample, listed) if len(listed) >= SHORTEST_LIST else {}
    return sorted(frequency, key=lambda word: (-frequency[word], word)), others


def _warn_of_sentences(words: list[str], counts: NDArray) -> None:
    """Warn if words are whole sentences, in scripts without spaces between words."""
    # the number of characters of each word, as often as it occurs
    lengths = counts * [len(word) for word in words]
    for script, (letters, longest) in UNSPACED.items():
        search = re.compile(letters).search
        in_script = [search(word) is not None for word in words]
        length = lengths[in_script].sum()
        n = counts[in_script].sum()
        if length > ENOUGH * lengths.sum() and length / n > longest:
            warn_user(
                f"Words in {script} have {length / n:.0f} characters on average. This script has "
                "no spaces, so whole sentences are counted as words. Pass each text as a list of "
                "its words, a tokenizer, or the language, as in TopicVectorizer(language='zh')."
            )
            return


def columns_of(words: NDArray) -> dict[str, int]:
    """Return the column of each word."""
    return {word: column for column, word in enumerate(words.tolist())}


def check_given(words: Any, n_words: int) -> NDArray:
    """Check that there is a different word for each of `n_words` columns of counts."""
    seen: dict[str, None] = {}  # the words so far, as a set in their order
    for column, word in enumerate(of_each(words, n_words, "words", "column")):
        if not isinstance(word, str) or word in seen:
            raise BadParameter(
                f"words[{column}]", "a str that differs from the words of all other columns", word
            )
        seen[str(word)] = None
    return np.array([*seen], dtype=object)


def of_words(vectorizer: Any, words: NDArray) -> Any:
    """Return a clone of a CountVectorizer that counts the given words in texts.

    The clone has no stop words, and keeps capital letters if any of the given words contains one.
    """
    if not isinstance(vectorizer, CountVectorizer | None):
        raise BadParameter("vectorizer", "a CountVectorizer or None in fit_counts", vectorizer)
    counter = TopicVectorizer() if vectorizer is None else copied(vectorizer)
    _check_parameters(counter.set_params(stop_words=None))
    # otherwise texts in lower case would not contain such words
    if any(word != word.lower() for word in words):
        counter.set_params(lowercase=False)
    return with_vocabulary(counter, words)


def with_vocabulary(vectorizer: Any, words: NDArray) -> Any:
    """Return a clone of a CountVectorizer that is fitted to these words."""
    fitted = copied(vectorizer)
    # the attributes that CountVectorizer sets in `fit`
    fitted.vocabulary_ = columns_of(words)
    fitted.fixed_vocabulary_ = vectorizer.vocabulary is not None
    return fitted


def with_stop_words(vectorizer: Any, stop_words: Any) -> Any:
    """Return the vectorizer with stop words, unless it has its own or does not support them."""
    analyzer = getattr(vectorizer, "analyzer", None)
    # 0 if the vectorizer has no such parameter; the user's analyzer excludes words itself
    excluded: Any = getattr(vectorizer, "stop_words", 0)
    has_own = excluded is not None or callable(analyzer)
    listed = excluded if has_own else stop_words
    if is_list(listed) and len(listed) and all(languages_in(str(word)) for word in listed):
        names = list(map(str, listed))
        warn_user(
            f"stop_words={names} excludes these words. To exclude the stop words of languages, "
            f"pass {','.join(names)!r} as the 'stop_words' of TopicModel."
        )
    if stop_words is None or has_own:
        return vectorizer
    if isinstance(stop_words, str):
        languages = languages_in(stop_words)
        if languages is None:
            raise BadParameter(
                "stop_words",
                f"'english', another of {sorted(LANGUAGES)} or its code, such as 'de', several of "
                "them with commas between them, a list of str or None",
                stop_words,
            )
        stop_words = [word for language in languages for word in stop_words_of(language)]
    is_row = is_list(stop_words) and getattr(stop_words, "ndim", 1) == 1
    words: list = list(stop_words) if is_row else [None]
    if not all(isinstance(word, str) for word in words):
        raise BadParameter("stop_words", "'english', a list of str or None", stop_words)
    if isinstance(analyzer, str):  # preprocess them as words of texts
        _check_parameters(vectorizer)
        plain = copied(vectorizer).set_params(analyzer="word", ngram_range=(1, 1), input="content")
        analyze = plain.build_analyzer()
        words += [token for word in words for token in analyze(word)]
    return vectorizer.set_params(stop_words=sorted({*map(str, words)}))


def _check_parameters(vectorizer: Any) -> None:
    """Check parameters that scikit-learn does not check."""
    # otherwise there is no tokenizer
    by_words = getattr(vectorizer, "analyzer", None) == "word"
    tokenizer = vectorizer.tokenizer if by_words else None
    # "" is a correct pattern, for vectorizers that use none
    pattern = vectorizer.token_pattern if by_words and tokenizer is None else ""
    dtype = getattr(vectorizer, "dtype", np.int64)
    with naming(type(vectorizer).__name__):  # the message says whose parameter it is
        try:
            re.compile(pattern)
        except (re.error, TypeError):
            raise BadParameter(
                "token_pattern", "a regular expression, or None if there is a tokenizer", pattern
            ) from None
        if getattr(vectorizer, "language", None) is not None and tokenizer is not None:
            raise BadParameter("language", "None if there is a tokenizer", vectorizer.language)
        if getattr(vectorizer, "phrases", False) and (
            vectorizer.ngram_range != (1, 1) or not by_words
        ):
            raise BadParameter(
                "phrases", "False unless words are counted, not n-grams", vectorizer.phrases
            )
        if tokenizer is not None:
            tokens = tokenizer("a word") if callable(tokenizer) else tokenizer  # a test
            is_iterable = isinstance(tokens, Iterable) and not isinstance(tokens, str)
            kinds = [type(token) for token in tokens] if is_iterable else tokens
            if not is_iterable or not all(issubclass(kind, str) for kind in kinds):
                raise BadParameter(
                    "tokenizer",
                    "a function that returns the words of a text, a list of str",
                    kinds,
                )
        for name in ("stop_words", "vocabulary"):
            words = getattr(vectorizer, name, None)
            if isinstance(words, Collection) and not all(isinstance(word, str) for word in words):
                raise BadParameter(name, "a list of str", words)
        try:
            numeric = np.dtype(dtype).kind in "iuf"
        except (TypeError, ValueError):
            numeric = False
        if not numeric:
            raise BadParameter("dtype", "a dtype of numbers", dtype)


def _left_out(
    X: csr_matrix, parameters: dict[str, Any], kept: NDArray
) -> tuple[dict[str, int], dict[str, NDArray]]:
    """Return the limits as numbers, and for each limit a mask of the words that it excludes.

    `parameters` are those of the vectorizer, and `kept` marks words that are never excluded.
    """
    n_documents, n_words = X.shape
    limits = limits_of(parameters, n_documents, X.sum() / n_documents)
    low = limits["min_df"]
    high = limits["max_df"]
    if high < low:
        raise ValueError(
            f"max_df must not be less than min_df. A word must be in at most {high} of "
            f"{n_documents} texts (max_df={parameters['max_df']!r}) and at least {low} "
            f"(min_df={parameters['min_df']!r})."
        )
    # the number of texts with each word; kept words are within the limits
    frequency = np.where(kept, low, np.bincount(X.indices, minlength=n_words))
    dropped = {"min_df": frequency < low, "max_df": frequency > high}
    if "max_features" in limits:
        remaining = np.flatnonzero((frequency >= low) & (frequency <= high))
        counts = np.where(kept, np.inf, summed(X, axis=0))[remaining]  # kept words come first
        too_rare = remaining[np.argsort(-counts, kind="stable")[limits["max_features"] :]]
        dropped["max_features"] = (np.bincount(too_rare, minlength=n_words) > 0) & ~kept
    return limits, dropped


def limits_of(
    parameters: Mapping[str, Any], n_documents: int, n_counted: float | None = None
) -> dict[str, int]:
    """Return the limits on words, which are parameters of the vectorizer, as integers.

    `n_counted` is the mean number of counted words of a document, or None if it is unknown.
    """
    low = parameters["min_df"]
    high = parameters["max_df"]
    max_words = parameters["max_features"]
    # floats are shares of the documents
    low = low * n_documents if isinstance(low, float) else low
    high = high * n_documents if isinstance(high, float) else high
    # a default that contradicts a parameter of the user is not used
    if low == "auto":
        low = fewest_documents(n_documents)
        low = low if high == "auto" or low <= high else 0
    if high == "auto":
        high = most_documents(n_documents, n_counted)
        high = high if low <= high else max(low, n_documents)
    limits = {"min_df": math.ceil(low), "max_df": math.floor(high)}
    return limits if max_words is None else limits | {"max_features": int(max_words)}
