"""Links of Markdown pages to files outside docs/, which are no pages, become plain names.

On the repository's own page they lead to the file.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

DOCS = Path(__file__).resolve().parents[1]

#: Pages made of files outside docs/.
PAGES = {
    "README.md": "/index.md",
    "CONTRIBUTING.md": "/maintainers/contributing.md",
    "CHANGELOG.md": "/look_up/changelog.md",
}
_LINK = re.compile(r"(?<!!)\[([^\]]+)\]\(((?:\.\./)+[^)#]+)(#[^)]*)?\)")


def _rewritten(match: re.Match[str], folder: Path) -> str:
    text, path, anchor = match[1], match[2], match[3] or ""
    target = (folder / path).resolve()
    if target.is_relative_to(DOCS):
        return match[0]
    name = target.relative_to(DOCS.parent).as_posix()
    if name in PAGES:
        return f"[{text}]({PAGES[name]}{anchor})"
    example = re.fullmatch(r"examples/(\w+)\.py", name)
    if example:
        return f"[{text}](/examples/{example[1]}.rst)"
    return f"{text}" if name in text else f"{text} (`{name}`)"


def _on_source_read(app: Any, name: str, source: list[str]) -> None:
    folder = (DOCS / name).parent
    source[0] = _LINK.sub(lambda match: _rewritten(match, folder), source[0])


def setup(app: Any) -> dict[str, bool]:
    """Join Sphinx.

    Parameters
    ----------
    app : sphinx.application.Sphinx
    """
    app.connect("source-read", _on_source_read)
    return {"parallel_read_safe": True}
