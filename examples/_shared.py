"""Functions for several examples: reading files, printing tables, and the command line."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import numpy as np

Data = TypeVar("Data")


def or_exit(load: Callable[[str], Data], name: str) -> Data:
    """Load a file of data; if it is missing, end the script with the message that says so."""
    try:
        return load(name)
    except FileNotFoundError as error:
        raise SystemExit(str(error)) from None


def at_least_one(
    parser: argparse.ArgumentParser, arguments: argparse.Namespace, names: Iterable[str]
) -> None:
    """End the script with an error message if one of these arguments is below 1."""
    for name in names:
        value = getattr(arguments, name)
        if value is not None and value < 1:
            parser.error(f"--{name} must be at least 1")


def mean_and_sd(values: Any, digits: int) -> str:
    """Mean and standard deviation of some runs, for a table; a dash where there are none."""
    if not len(values):
        return "–"
    spread = f" ± {np.std(values, ddof=1):.{digits}f}" if len(values) > 1 else ""
    return f"{np.mean(values):.{digits}f}{spread}"


def markdown(head: list[str], rows: Iterable[list[str]]) -> str:
    """Return a table in Markdown."""
    lines = [f"| {' | '.join(cells)} |" for cells in [head, *rows]]
    return "\n".join([lines[0], "|---" * len(head) + "|", *lines[1:]])


def interval(row: Any) -> str:
    """Return the 95% interval of an effect, which topics that are not found again do not have."""
    return "none" if row.low != row.low else f"{row.low:+.3f} to {row.high:+.3f}"


def save(figure: Any, path: str, dpi: int = 120) -> None:
    """Write a figure to a file, and say so."""
    figure.savefig(path, dpi=dpi)
    print(f"wrote {path}")
