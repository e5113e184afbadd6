"""A figure of quality against seconds, with one panel for each corpus and number of topics."""

from __future__ import annotations

from pathlib import Path
from statistics import mean, stdev

from bench.studies.study.tables import (
    ARTM,
    AVERAGED,
    GENSIM,
    LAST,
    LONG_AVERAGED,
    MALLET,
    ONE,
    SCIKIT_LEARN,
    SUBJECT,
    THOROUGH,
    TOPICA,
    Results,
)

#: Colours that colour-blind people can distinguish, and a shape for print without colours.
STYLES = {
    SUBJECT: ("#d55e00", "o"),
    THOROUGH: ("#d55e00", ">"),
    ONE: ("#d55e00", "D"),
    SCIKIT_LEARN: ("#0072b2", "s"),
    GENSIM: ("#56b4e9", "v"),
    LAST: ("#009e73", "^"),
    AVERAGED: ("#009e73", "P"),
    LONG_AVERAGED: ("#009e73", "d"),
    MALLET: ("#000000", "p"),
    TOPICA: ("#cc79a7", "*"),
    ARTM: ("#444444", "X"),
}


def draw(results: Results, path: Path) -> None:
    """Write the figure, with a panel for each corpus and K that have results."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
    from matplotlib.ticker import FormatStrFormatter, MaxNLocator, NullFormatter

    corpora = list(dict.fromkeys(cell.corpus for cell in results))
    sizes = sorted({cell.n_topics for cell in results})
    fig, axes = plt.subplots(
        len(corpora),
        len(sizes),
        figsize=(3.2 * len(sizes), 2 * len(corpora) + 0.6),
        squeeze=False,
        sharex=True,
        layout="constrained",
    )
    handles = {}
    for row, corpus in zip(axes, corpora, strict=True):
        for ax, n_topics in zip(row, sizes, strict=True):
            of_cell = next(
                (
                    methods
                    for cell, methods in results.items()
                    if (cell.corpus, cell.n_topics) == (corpus, n_topics)
                ),
                {},
            )
            for name, (colour, marker) in STYLES.items():
                result = of_cell.get(name)
                if result is None or not result.seconds:
                    continue
                spread = stdev(result.test) if len(result.test) > 1 else 0.0
                handles[name] = ax.errorbar(
                    mean(result.seconds),
                    mean(result.test),
                    yerr=spread,
                    color=colour,
                    marker=marker,
                    markersize=6,
                    linestyle="none",
                    elinewidth=1,
                )
            ax.set_visible(any(result.seconds for result in of_cell.values()))
            ax.set_xscale("log")
            ax.yaxis.set_major_locator(MaxNLocator(4))
            ax.yaxis.set_major_formatter(FormatStrFormatter("%.3f"))
            ax.xaxis.set_major_formatter(FormatStrFormatter("%g"))
            ax.xaxis.set_minor_formatter(NullFormatter())
            ax.set_title(f"{corpus}, K = {n_topics}", fontsize=9)
            ax.tick_params(labelsize=7, labelbottom=True)
            ax.grid(alpha=0.3, linewidth=0.5)
    fig.supxlabel("CPU seconds of the fit", fontsize=9)
    fig.supylabel("held-out log-likelihood per word, nats", fontsize=9)
    names = [name for name in STYLES if name in handles]
    fig.legend(
        [handles[name] for name in names],
        names,
        loc="outside upper center",
        ncols=4,
        fontsize=8,
        frameon=False,
    )
    fig.savefig(path, dpi=80)
    plt.close(fig)
