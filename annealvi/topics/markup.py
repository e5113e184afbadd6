"""Removal of HTML, links, @-mentions and LaTeX commands from texts, for the parameter `clean`."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from html import unescape
from html.parser import HTMLParser

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
#: A tag or the beginning of a comment, unlike the `<` and `>` in `a < b and c > d`.
TAG = re.compile(
    r"<(?:!--|!doctype\b|\?xml\b|/[a-z][\w:-]*\s*>"
    rf"|[a-z][\w:-]*(?:\s+(?:[\w:@.-]+{_VALUE}|(?:{_ALONE})\b))*\s*/?>)",
    re.IGNORECASE,
)
#: Tags whose contents are not displayed, and tags that can occur within a word.
HIDDEN = frozenset({"script", "style", "template", "noscript"})
WITHIN = frozenset(
    ("b", "big", "em", "font", "i", "mark", "small", "strong", "sub", "sup", "u", "wbr")
)
#: Decoding is repeated, because texts of web pages may have been escaped more than once.
MOST_TIMES = 3


class _Shown(HTMLParser):
    """A parser that collects the displayed text."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.shown: list[str] = []
        self.hidden: list[str] = []

    def handle_starttag(self, tag: str, attrs: object) -> None:
        if tag in HIDDEN:
            self.hidden.append(tag)
        self._leave_room(tag)

    def handle_startendtag(self, tag: str, attrs: object) -> None:
        self._leave_room(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag in self.hidden:
            del self.hidden[self.hidden.index(tag) :]
        self._leave_room(tag)

    def handle_data(self, data: str) -> None:
        if not self.hidden:
            self.shown.append(data)

    def handle_comment(self, data: str) -> None:
        self._leave_room("")

    def handle_decl(self, decl: str) -> None:
        self._leave_room("")

    def _leave_room(self, tag: str) -> None:
        if tag not in WITHIN:
            self.shown.append(" ")


def cleaned(text: str) -> str:
    """Remove the markup of a text; entities are replaced by the letters that they represent."""
    for _ in range(MOST_TIMES):
        before = text
        text = text.replace("<![CDATA[", " ").replace("]]>", " ")
        if "<" in text and TAG.search(text):
            ends = [0, *(match.start() for match in TAG.finditer(text))]
            pieces = [text[a:b] for a, b in zip(ends, [*ends[1:], len(text)], strict=True)]

            page = _Shown()
            for piece in pieces:
                page.feed(_escaped(piece, page))
            page.close()
            text = "".join(page.shown)
        if "&" in text:
            text = unescape(text)
        if text == before:
            break
    return MARKUP.sub(" ", text)


def _escaped(piece: str, page: _Shown) -> str:
    """Escape each `<` after the tag at the beginning of a part, because it belongs to the text."""
    if page.cdata_elem or page.rawdata.startswith("<!--") or piece.startswith("<!--"):
        return piece
    match = TAG.match(piece)
    end = match.end() if match else 0
    return piece[:end] + piece[end:].replace("<", "&lt;")


def markup_in(texts: Iterable[str]) -> Counter[str]:
    """Count what :func:`cleaned` removes from texts."""
    n_removed: Counter[str] = Counter()
    for text in texts:
        if "<" in text:
            n_removed["tags"] += sum(1 for _ in TAG.finditer(text))
        n_removed.update(str(match.lastgroup) for match in MARKUP.finditer(text))
    return +n_removed
