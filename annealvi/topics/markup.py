"""Removal of HTML, links, @-mentions and LaTeX from texts, for the parameter `clean`."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable
from html import unescape

#: A pattern for markup that is removed after HTML; notes contain the names of its groups.
MARKUP = re.compile(
    r"(?P<links>(?:https?://|www\.)\S+)"
    r"|(?P<retweets>\b(?:RT|rt)(?=\s+@\w))"
    r"|(?P<mentions>(?<![\w.])@\w+)"
    r"|(?P<entities>&(?:[A-Za-z]\w{1,31}|\#\d{1,7}|\#x[0-9A-Fa-f]{1,6});)"
    r"|(?P<commands>\\(?:begin|end)\s*\{[^{}]*\}|\\[A-Za-z]+)"
)
_VALUE = r"""(?:\s*=\s*(?:"[^"]*"|'[^']*'|[^\s"'>]+))"""
_ALONE = "async|checked|controls|defer|disabled|hidden|loop|muted|nowrap|open|required|selected"
#: A tag, unlike the `<` and `>` in `a < b and c > d`.
TAG = re.compile(
    r"<(?:!doctype\b[^<>]*>|\?xml\b[^<>]*>|/(?P<end>[a-z][\w:-]*)\s*>"
    rf"|(?P<start>[a-z][\w:-]*)(?:\s+(?:[\w:@.-]+{_VALUE}|(?:{_ALONE})\b))*\s*/?>)",
    re.IGNORECASE,
)
#: Comments, and elements whose contents are not displayed; what does not end goes on to the end.
HIDDEN = re.compile(
    r"<!--(?:-?>|.*?(?:--!?>|\Z))"
    r"|<(script|style|template|noscript)\b(?:\s[^<>]*)?>.*?(?:</\1\s*>|\Z)",
    re.IGNORECASE | re.DOTALL,
)
#: Tags that can occur within a word.
WITHIN = frozenset(
    ("b", "big", "em", "font", "i", "mark", "small", "strong", "sub", "sup", "u", "wbr")
)
#: What replaces other tags, links and commands: an empty line, so that no phrase crosses them.
GAP = "\n\n"
#: Decoding is repeated, because texts of web pages may have been escaped more than once.
MOST_TIMES = 3
#: Accents and letters of LaTeX, such as in Schr\\"odinger, \\v{C}ech and S\\o ren.  Programs may
#: have doubled the backslash, more than once.
ACCENT = re.compile(
    r"""(?:(?:\\(?:text|mbox))?\{)?\\{1,4}"""
    r"""(?:(?P<sign>["'`^~=.])|(?P<name>[uvHckrdb])(?:\s+|(?=[{\u00c0-\u1eff])))"""
    r"""(?P<brace>\{)?(?:\\(?:(?:rm|bf|it|em|sc|sf|tt)\s+|(?=[ij](?![A-Za-z]))))?"""
    r"""(?P<letter>[A-Za-z]|(?(name)[\u00c0-\u1eff]|(?!)))(?:(?<=\\[ij])\s)?(?(brace)\})\}?(?:\{\})?"""
)
COMBINING = dict(
    zip(
        "\"'`^~=.uvHckrdb",
        "\u0308\u0301\u0300\u0302\u0303\u0304\u0307\u0306\u030c\u030b\u0327\u0328\u030a\u0323\u0331",
        strict=True,
    )
)
LETTER = re.compile(
    r"\{?\\(ss|[ao]e|A[EA]|OE|aa|d[jh]|D[JH]|th|TH|ng|NG|[oOlLi])(?![A-Za-z])(?:\{\}|\s(?=[a-z])|\})?"
)
LETTERS = {"ss": "ß", "ae": "æ", "AE": "Æ", "oe": "œ", "OE": "Œ", "aa": "å", "AA": "Å"}
LETTERS |= {"dj": "đ", "DJ": "Đ", "dh": "ð", "DH": "Ð", "th": "þ", "TH": "Þ", "ng": "ŋ", "NG": "Ŋ"}
LETTERS |= {"o": "ø", "O": "Ø", "l": "ł", "L": "Ł", "i": "i"}
#: An apostrophe that a program has escaped or doubled, as in don\\'t, and a quotation mark that
#: ends a quote.
ESCAPED = re.compile(r"(?<=[A-Za-z])(?:\\{1,2}(?:'|u2019)|'')(?=(?:s|t|d|m|ll|ve|re)\b)")
END_OF_QUOTE = re.compile(r"""\\(["'`])(?![A-Za-z{\\])""")


def _with_accents(text: str) -> str:
    """Replace accents and letters in LaTeX's notation by the letters that they represent."""
    # quotation marks that end a quote are escaped too, and such a text has no accents by this sign
    quotes = {match[1] for match in END_OF_QUOTE.finditer(text)}

    def accented_letter(match: re.Match[str]) -> str:
        """Return the letter of a match of ACCENT, or the match unchanged if it is a quote."""
        plain = match["letter"]
        # an accent in braces is no quotation mark
        is_quote = match["sign"] in quotes and not match["brace"] and match[0][0] != "{"
        composed = unicodedata.normalize("NFC", plain + COMBINING[match["sign"] or match["name"]])
        begins_word = not match.string[match.start() - 1 : match.start()].isalpha()
        # Unicode has no letter with this accent if the composed form has two characters
        return match[0] if len(composed) > 1 or (is_quote and begins_word) else composed

    for _ in range(2):  # a letter may have two accents
        text = ACCENT.sub(accented_letter, text)
    return LETTER.sub(lambda match: LETTERS[match[1]], text)


def cleaned(text: str) -> str:
    """Remove the markup of a text; entities are replaced by the letters that they represent."""
    for _ in range(MOST_TIMES):  # decoded entities may be tags or entities
        before = text
        text = text.replace("<![CDATA[", " ").replace("]]>", " ")
        if "<" in text:
            text = TAG.sub(_space, HIDDEN.sub(GAP, text))
        if "&" in text:
            text = unescape(text)
        if text == before:
            break
    if "\\" in text:
        text = _with_accents(text)
    return MARKUP.sub(GAP, text)


def _space(tag: re.Match[str]) -> str:
    """Return what replaces a tag: nothing if the tag can occur within a word, otherwise GAP.

    The groups `start` and `end` of TAG contain the name of an opening or a closing tag.
    """
    return "" if (tag["start"] or tag["end"] or "").lower() in WITHIN else GAP


def markup_in(texts: Iterable[str]) -> Counter[str]:
    """Count what :func:`cleaned` removes from texts."""
    n_removed: Counter[str] = Counter()
    for text in texts:
        if "<" in text:
            n_removed["tags"] += sum(1 for form in (HIDDEN, TAG) for _ in form.finditer(text))
        # the name of the group that matched
        n_removed.update(str(match.lastgroup) for match in MARKUP.finditer(text))
    return +n_removed  # without kinds that do not occur
