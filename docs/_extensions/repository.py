"""Links of Markdown pages to files outside docs/, which are no pages, become plain names.

On the repository's own page they lead to the file.
"""

from __future__ import annotations

import re
from typing import Any

#: Pages made of files outside docs/.
PAGES = {
    "../README.md": "index.md",
    "../CONTRIBUTING.md": "contributing.md",
    "../CHANGELOG.md": "changelog.md",
}
_LINK = re.compile(r"(?<!!)\[([^\]]+)\]\((\.\./[^)#]+)(#[^)]*)?\)")


def _rewritten(match: re.Match[str]) -> str:
    text, path, anchor = match[1], match[2], match[3] or ""
    if path in PAGES:
        return f"[{text}]({PAGES[path]}{anchor})"
    example = re.fullmatch(r"\.\./examples/(\w+)\.py", path)
    if example:
        return f"[{text}](examples/{example[1]}.rst)"
    name = path.removeprefix("../")
    return f"{text}" if name in text else f"{text} (`{name}`)"


def _on_source_read(app: Any, name: str, source: list[str]) -> None:
    source[0] = _LINK.sub(_rewritten, source[0])


def setup(app: Any) -> dict[str, bool]:
    """Join Sphinx.

    Parameters
    ----------
    app : sphinx.application.Sphinx
    """
    app.connect("source-read", _on_source_read)
    return {"parallel_read_safe": True}
