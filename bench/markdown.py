"""Functions that format tables and numbers as Markdown, and replace parts of documents."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

#: The markers around the part of a document that a script writes.
BEGIN = "<!-- measured: begin -->"
END = "<!-- measured: end -->"


def table(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    lines = [f"| {' | '.join(header)} |", f"|{'---|' * len(header)}"]
    return "\n".join([*lines, *(f"| {' | '.join(map(str, row))} |" for row in rows)])


def spread(values: ArrayLike, digits: int = 3, sign: str = "") -> str:
    """Format mean ± standard deviation, or a single value; with `sign` "+" a plus is shown."""
    mean = f"{np.mean(values):{sign}.{digits}f}"
    if np.size(values) < 2:
        return mean
    return f"{mean} ± {np.std(values, ddof=1):.{digits}f}"


def between_markers(document: Path, content: str) -> None:
    """Replace the text between the markers of a document."""
    text = document.read_text(encoding="utf-8")
    if text.count(BEGIN) != 1 or text.count(END) != 1:
        raise SystemExit(f"{document} must have each of {BEGIN} and {END} once.")
    before = text.split(BEGIN)[0]
    after = text.split(END)[1]
    document.write_text(f"{before}{BEGIN}\n\n{content}\n\n{END}{after}", "utf-8")
