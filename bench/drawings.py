"""Drawings for the manual: merged runs, an abstract with its topics, the layers of the package.

`python -m bench.pictures drawings` writes them to docs/pictures.
"""

from __future__ import annotations

import re
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch

from bench.structure import FLOORS

#: Those colours of Okabe and Ito on which dark text is readable.
COLOURS = ["#56B4E9", "#E69F00", "#009E73", "#CC79A7", "#F0E442"]
PALE = "0.9"
#: The topics that each of four runs has found, as numbers of colours.  None is a missed topic, and
#: a number that occurs twice is a topic that was split.
RUNS: list[list[int | None]] = [[0, 1, 2, 3], [2, 0, 0, 1], [3, 1, 2, 0], [1, None, 0, 2]]


def box(ax: Any, x: float, y: float, text: str, **options: Any) -> None:
    """Draw a box around a point, with a text in the box."""
    width = options.pop("width", 1.0)
    height = options.pop("height", 0.6)
    style = {"boxstyle": "round,pad=0,rounding_size=0.08", "ec": "0.3", "lw": 0.8, "fc": PALE}
    ax.add_patch(
        FancyBboxPatch((x - width / 2, y - height / 2), width, height, **{**style, **options})
    )
    ax.text(x, y, text, ha="center", va="center")


def arrow(ax: Any, start: tuple[float, float], end: tuple[float, float], **options: Any) -> None:
    style = {"arrowstyle": "-|>", "mutation_scale": 12, "color": "0.4", "lw": 1.1}
    ax.add_patch(FancyArrowPatch(start, end, **{**style, **options}))


def blank(width: float, height: float, right: float, top: float) -> Any:
    """Make a figure from 0 to `right` and `top`, without visible axes."""
    _, ax = plt.subplots(figsize=(width, height), layout="constrained")
    ax.set(xlim=(0, right), ylim=(0, top))
    ax.axis("off")
    return ax


def merging() -> Any:
    """Draw four runs, and their merged topics with the support of each topic."""
    ax = blank(8, 3.6, 9.2, 5.3)
    positions: dict[int, list[tuple[int, float, float]]] = {}
    for row, run in enumerate(RUNS):
        y = 4.4 - row
        ax.text(0, y, f"run {row + 1}", va="center")
        for column, topic in enumerate(run):
            x = 1.4 + column
            split = topic is not None and run.count(topic) > 1
            name = "none" if topic is None else "ABCD"[topic] + ("½" if split else "")
            colour = PALE if topic is None else COLOURS[topic]
            box(ax, x, y, name, width=0.8, height=0.62, fc=colour)
            if topic is not None:
                positions.setdefault(topic, []).append((row, x, y))
    ax.text(2.9, 5.05, "topics of each run, in any order", ha="center")
    ax.text(7.5, 5.05, "merged topics, found by", ha="center")
    arrow(ax, (5.1, 2.9), (6.2, 2.9), lw=2.5, mutation_scale=20)
    ax.text(5.65, 3.15, "merge", ha="center")
    for topic, places in sorted(positions.items()):
        y = 4.4 - topic
        box(ax, 6.8, y, "ABCD"[topic], width=0.8, height=0.62, fc=COLOURS[topic])
        ax.text(7.4, y, f"{len({row for row, *_ in places})} of 4 runs", va="center")
    ax.text(0, 0.55, "Run 2 split A and missed D, and run 4 missed D: the others make up for it.")
    return ax


def abstract(text: str, labels: list[str], topic_of: dict[str, int], shares: Any) -> Any:
    """Draw a text whose counted words have the colours of their topics, and a bar of shares."""
    ax = blank(8, 3.4, 1, 1)
    figure = ax.figure
    figure.canvas.draw()
    box_of = ax.get_window_extent()
    x = 0.0
    y = 0.97
    size = 11
    for token in text.split():
        topic = topic_of.get(re.sub(r"^\W+|\W+$", "", token).lower())
        back = {"fc": COLOURS[topic], "ec": "none", "pad": 1.5} if topic is not None else None
        written = ax.text(x, y, token, va="top", fontsize=size, bbox=back)
        written.set_color("black" if topic is not None else "0.45")
        width = written.get_window_extent().width / box_of.width
        if x + width > 1:
            x = 0.0
            y = y - 0.096
            written.set_position((x, y))
        x += width + 0.011
    left = 0.0
    shown = np.argsort(shares)[::-1]
    for topic in (k for k in shown if k < len(labels)):
        ax.barh(0.09, shares[topic], left=left, height=0.17, color=COLOURS[topic])
        if shares[topic] > 0.12:
            words = f"{labels[topic]}\n{shares[topic]:.0%}"
            ax.text(left + 0.01, 0.09, words, va="center", fontsize=8.5)
        left += shares[topic]
    ax.barh(0.09, 1 - left, left=left, height=0.17, color=PALE)
    if left < 0.92:
        ax.text(left + 0.01, 0.09, "others", va="center", fontsize=8.5)
    return ax


def house() -> Any:
    """Draw the layers of the package; each part imports only from its own layer or lower ones."""
    rows = [sorted(package or "annealvi" for package in floor) for floor in FLOORS]
    ax = blank(7, 6.6, 7, len(rows))
    for number, packages in enumerate(rows):
        width = 6.6 / len(packages)
        for column, package in enumerate(packages):
            fill = COLOURS[0] if package in ("lda", "models", "_kernels") else PALE
            middle = 0.2 + (column + 0.5) * width
            box(ax, middle, number + 0.5, package, width=width - 0.08, height=0.8, fc=fill)
    return ax
