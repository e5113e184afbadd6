"""What changed in science over the years?
=======================================

Which subjects of arXiv grow, and how certain is this?

Prints how much the share of each topic changes over the years if the mix of fields does not
change.  Draws the shares over the years with 95% intervals: in all words of a period, and for a
fixed mix of fields.

::

    python examples/arxiv_years.py [--topics 15] [--refits 10] [--output arxiv_years.png]
    python examples/arxiv_years.py --full --topics 40

The intervals allow for the fact that another fit finds other topics.  For this, the model is fitted
again --refits times, to documents drawn with replacement.  A topic that fewer than two of these
refits find has no interval.

Options
-------
default
    The 3,000 abstracts of the package.

--full
    20,000 abstracts: the file arxiv_texts20k.jsonl.gz in the folder that the environment variable
    ANNEALVI_DATA names (default ``../shared/data``).
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import pandas as pd
from _shared import at_least_one, interval, markdown, save

from annealvi import TopicModel
from annealvi.datasets import load_arxiv_abstracts
from annealvi.plot import plot_effects, plot_topics_over_time
from annealvi.topics import describe

#: A curve over the years for physics, and another one for the rest.
FORMULA = "~ physics * bs(year, df=4)"
PHYSICS = "astro-ph|cond-mat|gr-qc|hep|nlin|nucl|physics|quant-ph"
#: Before it there are few abstracts a year.
FIRST = 1996


def load(full: bool) -> Any:
    """A DataFrame of texts, years and fields."""
    if full:
        folder = Path(os.environ.get("ANNEALVI_DATA", "../shared/data"))
        path = folder / "arxiv_texts20k.jsonl.gz"
        if not path.exists():
            raise SystemExit(f"--full needs {path}: name its folder by ANNEALVI_DATA.")
        frame = pd.read_json(path, lines=True, dtype=False)
        frame["text"] = frame.title + "\n" + frame.abstract
    else:
        abstracts = load_arxiv_abstracts(texts=True)
        categories = abstracts.target_names[abstracts.target]
        frame = pd.DataFrame({"text": abstracts.texts, "category": categories})
        frame["created"] = abstracts.created
    frame["year"] = frame.created.str[:4].astype(int)
    is_physics = frame.category.str.match(PHYSICS)
    frame["physics"] = is_physics.map({True: "physics", False: "other fields"})
    return frame[frame.year >= FIRST].reset_index(drop=True)


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--topics", type=int, default=15)
    parser.add_argument("--refits", type=int, default=10, help="at least 2")
    parser.add_argument("--full", action="store_true", help="20,000 abstracts")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--output", default="arxiv_years.png")
    arguments = parser.parse_args(argv)
    at_least_one(parser, arguments, ("topics", "refits"))
    papers = load(arguments.full)
    model = TopicModel(arguments.topics, random_state=arguments.seed).fit(papers.text)
    summary = describe(model, papers.text, refits=arguments.refits)
    effects = summary.effects(FORMULA, papers)
    first, last = (int(papers.year.quantile(q)) for q in (0.1, 0.9))
    change = effects.contrast({"year": last}, {"year": first})
    change = change.sort_values("estimate", ascending=False)
    rows = [
        [
            row.label,
            f"{row.estimate:+.3f}",
            interval(row),
            f"{row.found_again:.1f}",
        ]
        for row in change.itertuples()
    ]
    print(
        markdown(
            ["topic", f"share in {last}, minus in {first}", "95% interval", "found again"], rows
        )
    )
    figure, axes = plt.subplots(2, 1, figsize=(9, 9), layout="constrained")
    grown = change[change.low.notna()].topic
    topics = [*grown[:2], *grown[-2:]] or None  # None: the largest topics
    plot_topics_over_time(summary, papers.year, freq="3YE", topics=topics, ax=axes[0])
    plot_effects(effects, "year", topics=topics, ax=axes[1])
    save(figure, arguments.output)


if __name__ == "__main__":
    main()
