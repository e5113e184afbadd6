"""Languages: their stop words, and which language texts seem to be in."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable
from functools import cache

from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

from annealvi._optional import import_optional

#: Words on scikit-learn's list of English stop words that are not used as stop words here because
#: they carry meaning, and endings of contractions that the list lacks (we'll, we've).
_CONTENT = """amount bill bottom cry detail empty fire interest mill serious sincere system thick
thin"""
CONTENT = frozenset(_CONTENT.split())
ENDINGS = ("ll", "ve")
#: Languages with a list of stop words, in scikit-learn (English) or the package stop-words, by
#: their codes (ISO 639-1), and by the names that their speakers use.
_LANGUAGES = """ar arabic, bg bulgarian, ca catalan, cs czech, da danish, nl dutch, en english,
fi finnish, fr french, de german, el greek, gu gujarati, he hebrew, hi hindi, hu hungarian,
id indonesian, it italian, ms malaysian, nb norwegian, no norwegian, fa persian, pl polish,
pt portuguese, ro romanian, ru russian, sk slovak, es spanish, sv swedish, tr turkish,
uk ukrainian, vi vietnamese,
català catalan, čeština czech, dansk danish, nederlands dutch, suomi finnish, français french,
deutsch german, magyar hungarian, italiano italian, norsk norwegian, polski polish,
português portuguese, română romanian, русский russian, slovenčina slovak, español spanish,
svenska swedish, türkçe turkish, українська ukrainian"""
CODES = dict(pair.split() for pair in _LANGUAGES.split(","))
LANGUAGES = frozenset(CODES.values())
#: The name of the whole English list, which a vectorizer with ``stop_words="english"`` excludes.
SCIKIT_LEARN = "scikit-learn"
#: A list of stop words has at least this number of words; shorter ones are the user's own.
SHORTEST_LIST = 50
#: A text seems to be in another language if at least this share of its words are stop words of the
#: other language, and at least this many times as many as those on the list that is used.  This is
#: fewer than 1 because a text may be in two languages.  Of messages of GNU programs in 30 languages
#: up to 5% (in Catalan) seem to be in a language other than that of the list; of abstracts, 0.1%.
OTHER_SHARE = 0.15
OTHER_TIMES = 0.67
#: The words of a topic are those of a language if this share of them are its stop words.
TOPIC_SHARE = 0.5
#: The minimum number of words of a text, and the minimum share of texts that is told.
ENOUGH_WORDS = 8
ENOUGH_TEXTS = 0.1


def languages_in(stop_words: str) -> list[str] | None:
    """Return the languages that a str such as "German" or "de,en_GB" names, or None."""
    names = [name.strip().lower() for name in stop_words.rstrip(", ").split(",")]
    # the code of a language, without a country, or its name
    names = [CODES.get(re.sub("[-_].*", "", name), name) for name in names]
    return names if LANGUAGES.issuperset(names) else None


@cache
def stop_words_of(language: str) -> frozenset[str]:
    """Return the stop words of a language."""
    if language == "english":
        return frozenset({*(ENGLISH_STOP_WORDS - CONTENT), *ENDINGS})
    package = import_optional("stop_words", f"stop_words={language!r}")
    return frozenset(package.get_stop_words(language))


@cache
def _known() -> dict[str, frozenset[str]]:
    """Return the stop words of all languages whose lists are installed."""
    known = {}
    for language in sorted(LANGUAGES):
        try:
            listed = " ".join(stop_words_of(language))
        except ImportError:
            continue
        # some entries are several words, or contain quotation marks or commas
        known[language] = frozenset(re.split(r'[\s"`,()]+', listed))
    return known


def language_of(words: list[str]) -> str:
    """Return the language of which at least half of the words are stop words, or an empty str."""
    n_known = {name: sum(word in stop for word in words) for name, stop in _known().items()}
    language = max(n_known, key=n_known.__getitem__)
    return language if words and n_known[language] >= TOPIC_SHARE * len(words) else ""


def other_languages(texts: Iterable[list[str]], listed: Collection[str]) -> dict[str, float]:
    """Return the share of texts that seem to be in languages of which `listed` has no stop words.

    Without the package stop-words, English is the only other language that is known.
    """
    known = {name: words - set(listed) for name, words in _known().items()}
    others: Counter[str] = Counter()  # the number of texts in each language
    n_texts = 0  # of texts that are long enough
    for words in texts:
        if len(words) < ENOUGH_WORDS:
            continue
        n_texts += 1
        n_listed = sum(word in listed for word in words)
        n_known = {name: sum(word in known[name] for word in words) for name in known}
        language = max(n_known, key=n_known.__getitem__)  # with the most stop words in the text
        if n_known[language] >= max(OTHER_SHARE * len(words), OTHER_TIMES * n_listed):
            others[language] += 1
    return {name: n / n_texts for name, n in others.most_common() if n >= ENOUGH_TEXTS * n_texts}
