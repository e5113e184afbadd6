"""What do political blogs write about?
====================================

From posts of blogs to the results of a paper: the topics, the evidence against each topic, the
effects of a blog's side and of the date with their intervals, and the words that each side uses.

Prints a table of the topics, the effect of the side, and words of both sides.  Draws the effects.

::

    python examples/political_blogs.py [--topics 20] [--refits 10] [--output political_blogs.png]

The data are 5,000 posts of six blogs of 2008 from the R package stm.  The file poliblog5k.npz is
read from the folder that the environment variable ANNEALVI_DATA names (default
``../shared/data``).  The words in this file are stems.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

import matplotlib.pyplot as plt
import pandas as pd
from _shared import at_least_one, interval, markdown, or_exit, save

from annealvi import TemperedLDA
from annealvi.datasets import load_corpus
from annealvi.plot import plot_effects
from annealvi.topics import describe

FORMULA = "~ rating + bs(day, df=5)"


def table_of_topics(summary: Any) -> str:
    """The topics, largest first, with what speaks against each."""
    trust = summary.trust
    rows = [
        [
            str(k),
            ", ".join(summary.words(k, 6)),
            f"{summary.topic_shares[k]:.1%}",
            f"{trust.found_again[k]:.1f}",
            trust.reason[k] or "–",
        ]
        for k in summary.topic_shares.argsort()[::-1]
    ]
    return markdown(["topic", "words", "share", "found again", "weak or unclear because"], rows)


def table_of_sides(summary: Any, effects: Any) -> str:
    """How much more of each topic liberal blogs have."""
    differences = effects.contrast({"rating": "Liberal"}, {"rating": "Conservative"})
    rows = [
        [summary.labels[row.topic], f"{row.estimate:+.3f}", interval(row)]
        for row in differences.sort_values("estimate", ascending=False).itertuples()
    ]
    return markdown(["topic", "liberal minus conservative", "95% interval"], rows)


def table_of_words(summary: Any, rating: Any) -> str:
    """The words that each side uses more, in the topics whose words differ most."""
    rows = []
    best = []
    for k in range(len(summary.topics)):
        words = summary.words_by_group(k, rating, n=6)
        best.append((words.z.max(), k, words))
    for _, k, words in sorted(best, key=lambda one: -one[0])[:5]:
        sides = [", ".join(words[words.group == side].word) for side in ("Liberal", "Conservative")]
        rows.append([summary.labels[k], *sides])
    return markdown(["topic", "words of liberal blogs", "of conservative blogs"], rows)


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--topics", type=int, default=20)
    parser.add_argument("--refits", type=int, default=10, help="at least 2")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--output", default="political_blogs.png")
    arguments = parser.parse_args(argv)
    at_least_one(parser, arguments, ("topics", "refits"))
    posts = or_exit(load_corpus, "poliblog5k")
    data = pd.DataFrame({"rating": posts.rating, "day": posts.day})
    lda = TemperedLDA(arguments.topics, random_state=arguments.seed).fit(posts.data)
    summary = describe(lda, posts.data, posts.feature_names, refits=arguments.refits)
    effects = summary.effects(FORMULA, data)
    print(table_of_topics(summary), "", table_of_sides(summary, effects), sep="\n")
    print("", table_of_words(summary, posts.rating), sep="\n")
    figure, axes = plt.subplots(2, 1, figsize=(9, 10), layout="constrained")
    plot_effects(effects, "rating", ax=axes[0])
    # the topics of a campaign: those that change most over the year
    plot_effects(effects, "day", ax=axes[1])
    axes[1].set_xlabel("day of 2008")
    save(figure, arguments.output)


if __name__ == "__main__":
    main()
