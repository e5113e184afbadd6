"""The chart of README: held-out log-likelihood against CPU seconds of each library on one corpus.

`python -m bench.pictures chart` draws it.  The numbers come from the tables of
docs/record/quality.md, from the seconds in bench/studies/rivals.json and, for scikit-learn's
defaults, from docs/record/defaults.md.
"""

from __future__ import annotations

import json
import re
from typing import Any

from bench import CHECKOUT

RECORD = CHECKOUT / "docs" / "record"
CORPUS = "arxiv_100k"
K = 100
#: The name of each method in the chart, and its colour (Okabe and Ito).
NAMES = {
    "annealvi": ("annealvi, the default", "#0072B2"),
    "annealvi, one run": ("annealvi, one run", "#56B4E9"),
    "tomotopy, averaged": ("tomotopy", "#009E73"),
    "topica": ("topica", "#CC79A7"),
    "BigARTM": ("BigARTM", "#E69F00"),
    "gensim": ("gensim", "#D55E00"),
    "scikit-learn": ("scikit-learn", "#000000"),
}


def rows(page: str, heading: str) -> dict[str, dict[str, str]]:
    """Read the first table after a heading: for each row a dict from column names to cells."""
    text = (RECORD / page).read_text("utf-8").partition(f"\n{heading}\n")[2]
    first = re.search(r"(?:^\|.*\|\n)+", text, flags=re.M)
    assert first is not None, (page, heading)
    cells = [[cell.strip(" |*†") for cell in one.split(" | ")] for one in first[0].splitlines()]
    return {one[0]: dict(zip(cells[0], one, strict=False)) for one in cells[2:]}


def points() -> dict[str, tuple[float, float]]:
    """For each method, the CPU seconds of a fit and the held-out log-likelihood in nats a word."""
    cell = f"{CORPUS}, {K}"
    held_out = rows("quality.md", "### Held-out log-likelihood per word")[cell]
    seconds = rows("quality.md", "### CPU seconds of a fit")[cell]
    kept = json.loads((CHECKOUT / "bench" / "studies" / "rivals.json").read_text("utf-8"))
    here = [one for one in kept if one["cell"] == [CORPUS, K]]
    of_rivals = {one["method"]: float(f"{one['seconds'][0]:.3g}") for one in here}
    coordinates = {}
    for name in NAMES:
        ours = name.startswith("annealvi")
        coordinates[name] = (
            float(seconds[name]) if ours else of_rivals[name],
            float(held_out[name]),
        )
    defaults = rows("defaults.md", "## What it costs")[cell]
    # the better of two results: its defaults, with ten batch passes, and its best online fit
    coordinates["scikit-learn"] = (
        float(defaults["CPU s"]) * float(defaults["scikit-learn: CPU ratio"]),
        float(defaults["scikit-learn: held out"]),
    )
    return coordinates


def draw(axes: Any) -> None:
    """Draw the points, with the names of the methods."""
    for name, (x, y) in points().items():
        label, colour = NAMES[name]
        is_left = name in ("BigARTM", "gensim")
        axes.plot(x, y, "o", color=colour, markersize=9)
        axes.annotate(
            label,
            (x, y),
            (-9 if is_left else 9, -4),
            textcoords="offset points",
            ha="right" if is_left else "left",
        )
    axes.set_xscale("log")
    axes.set_xlim(1, 500)
    axes.set_ylim(-7.55, -7.19)
    axes.set_xticks([1, 3, 10, 30, 100, 300], ["1", "3", "10", "30", "100", "300"])
    axes.minorticks_off()
    axes.set_xlabel("CPU seconds of a fit, one thread")
    axes.set_ylabel("held-out log-likelihood,\nnats per word")
    axes.set_title("16,000 abstracts, 100 topics: up and left is better", fontsize=12)
