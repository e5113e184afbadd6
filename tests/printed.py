"""The Python blocks of a page run, and what they print is what stands beneath them.

    python -m tests.printed PAGE ...     writes what the blocks print into the pages

A block that prints is followed by a block without a language that has its output.  The comment
``<!-- not run: REASON -->`` or ``<!-- not compared: REASON -->`` above a block exempts it.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import sys
import tempfile
import warnings
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

BLOCK = re.compile(
    r"^(?:<!-- not (?P<mark>run|compared): (?P<reason>[^>]+?) -->\n+)?"
    r"```python\n(?P<code>.*?)^```\n(?:\n```\n(?P<out>.*?)^```\n)?",
    flags=re.DOTALL | re.MULTILINE,
)


class Ran(NamedTuple):
    """A block, what it printed, and where its output belongs in the page."""

    code: str
    printed: str
    expected: str
    mark: str | None
    end: int
    span: tuple[int, int]  # of the output that is there, or nothing


def tidy(text: str) -> str:
    """Output without blanks at the ends of lines."""
    return "\n".join(line.rstrip() for line in text.strip("\n").splitlines())


def blocks(path: Path, *, without: str = "") -> Iterator[Ran]:
    """Run a page's blocks in one namespace, in the current folder, but those with `without`."""
    text = path.read_text(encoding="utf-8")
    namespace: dict[str, Any] = {"__name__": "__main__" if "__main__" in text else "a page"}
    for found in BLOCK.finditer(text):
        code, mark = found["code"], found["mark"]
        # sklearn.callback came with scikit-learn 1.9
        is_old = "sklearn.callback" in code and find_spec("sklearn.callback") is None
        if mark == "run" or is_old or (without and without in code):
            continue
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(code, path.name, "exec"), namespace)
        end = found.start() + found[0].index("```\n", found[0].index("```python") + 3) + 4
        yield Ran(
            code, tidy(printed.getvalue()), tidy(found["out"] or ""), mark, end, found.span("out")
        )


def rewrite(path: Path) -> None:
    """Put what the blocks of a page print beneath them."""
    text = path.read_text(encoding="utf-8")
    for one in reversed(list(blocks(path))):
        if one.mark == "compared" or one.printed == one.expected:
            continue
        if one.span[0] >= 0:
            text = text[: one.span[0]] + one.printed + "\n" + text[one.span[1] :]
        else:
            text = text[: one.end] + f"\n```\n{one.printed}\n```\n" + text[one.end :]
    path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    pages = [Path(name).resolve() for name in sys.argv[1:]]
    warnings.simplefilter("ignore")
    for page in pages:
        with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
            os.environ.setdefault("MPLBACKEND", "Agg")
            rewrite(page)
