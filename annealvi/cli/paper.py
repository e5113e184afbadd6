"""The command ``annealvi paper``: tables, figures and a paragraph on methods, for a paper."""

from __future__ import annotations

import functools
import os
import re
from argparse import Namespace
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from annealvi import plot
from annealvi._optional import import_optional
from annealvi.cli.models import (
    check_columns,
    counts_of,
    described,
    progress,
    read,
    read_topics,
    say,
)
from annealvi.exceptions import warn_user
from annealvi.files import replacing
from annealvi.plot import pictures
from annealvi.topics import write_table
from annealvi.topics.effects import design_of, numbers_in
from annealvi.topics.paper import N_ROWS

#: Columns of the LaTeX tables of topics and of effects; the .csv files have more columns.
SHOWN = ("label", "words", "share", "coherence", "probability")
OF_EFFECTS = ["label", "term", "estimate", "std_error", "low", "high"]
#: The largest number of columns of shares in a LaTeX table, which must fit on a page.
N_COLUMNS = 10
#: Formats of the beginning or end of a period; the first is used in which all periods differ.
DATES = ("%Y", "%Y-%m", "%Y-%m-%d", "%Y-%m-%d %H:%M:%S")


def paper(chosen: Namespace) -> None:
    """Write tables as .csv and .tex, figures as .pdf, and a paragraph on methods."""
    formulaic = [] if chosen.formula is None else ["formulaic"]
    import_optional("pandas", "annealvi paper", "matplotlib", *formulaic)
    folder = Path(chosen.folder)
    existing = folder if folder.exists() else folder.parent  # the folder is made below
    if not existing.is_dir() or not os.access(existing, os.W_OK):
        raise OSError(
            f"--folder: {chosen.folder!r} must be a folder whose parent folder exists, and that "
            "you can write to."
        )
    source = read_topics(chosen.model)
    corpus = read(chosen)
    check_columns(corpus, chosen)
    covariates = _covariates(corpus.table)
    if chosen.formula is not None:  # checks the formula before the refits
        design_of(chosen.formula, covariates, np.ones(len(corpus), bool))
    if chosen.refits:
        say(
            chosen,
            f"fitting {chosen.refits} more models, for intervals that allow for uncertain topics",
        )
    with progress(chosen, "counting words"):
        X = counts_of(source, corpus, repr(chosen.model))
    summary = described(source, corpus, X, chosen, refits=chosen.refits)
    with progress(chosen, "making tables"):
        table = summary.table.sort_values("share", ascending=False, kind="stable")
        # in the same order, without columns that are unknown
        trust = summary.trust.loc[table.index].dropna(axis=1, how="all")
    # for each file, the table for .csv and the one for .tex
    tables = {
        "topics": (table, table[[name for name in SHOWN if name in table]]),
        "trust": (trust, trust.drop(columns=["weak", "unclear"])),
    }
    figures: dict[str, Callable[[], Any]] = {
        "topics": lambda: plot.plot_topic_words(summary),
        "map": lambda: plot.plot_topic_map(summary),
    }
    groups = corpus.columns.get("group")
    if groups is not None:
        by_group = summary.by_group(groups)
        in_latex = by_group
        if len(by_group) > N_COLUMNS:
            # one column less, for all other groups
            in_latex = pictures.largest_groups(summary, groups, N_COLUMNS - 1)[0]
        tables["by_group"] = (by_group, _for_page(in_latex, in_latex.index))
        figures["by_group"] = lambda: plot.plot_topics_by_group(summary, groups)
    times = corpus.columns.get("time")
    if times is not None:
        over_time = summary.over_time(times, chosen.freq)
        dates = (over_time.index.strftime(form) for form in DATES)
        # the last format, of 19 characters, even if periods are equal
        names = next(names for names in dates if names.is_unique or len(names[0]) == 19)
        tables["over_time"] = (over_time, _for_page(over_time, names))
        figures["over_time"] = lambda: plot.plot_topics_over_time(summary, times, freq=chosen.freq)
    if chosen.formula is not None:
        with progress(chosen, "estimating effects"):
            effects = summary.effects(chosen.formula, covariates)
        tables["effects"] = (effects.table, effects.table[OF_EFFECTS])
        for name in effects.covariates:
            file = "effects_" + re.sub(r"\W+", "_", name)
            figures[file] = functools.partial(plot.plot_effects, effects, name)
            values = effects.values(name)
            if len(values) == 2:  # also the difference between the two values
                contrast = effects.contrast({name: values[1]}, {name: values[0]})
                contrast = contrast.sort_values(
                    "estimate", ascending=False, kind="stable", ignore_index=True
                )
                difference = f"{values[1]} minus {values[0]}"
                renamed = contrast.rename(columns={"estimate": difference})
                tables[file] = (contrast, renamed[["label", difference, *OF_EFFECTS[3:]]])
    folder.mkdir(exist_ok=True)
    for name, (full, in_latex) in tables.items():
        write_table(full, folder / f"{name}.csv")
        write_table(in_latex, folder / f"{name}.tex")
    long = [f"{name}.tex" for name, (_, in_latex) in tables.items() if len(in_latex) > N_ROWS]
    if long:
        say(
            chosen,
            f"tables of more than {N_ROWS} rows are for the LaTeX package longtable: "
            f"{', '.join(long)}",
        )
    with progress(chosen, "drawing figures", len(figures)) as drawing:
        for name, draw in figures.items():
            _save(draw(), folder / f"{name}.pdf")
            drawing.n_done += 1
    with replacing(folder / "methods.txt") as partial:
        partial.write_text(summary.methods(), encoding="utf-8")
    written = [f"{name}.csv, {name}.tex" for name in tables] + [f"{name}.pdf" for name in figures]
    say(chosen, f"wrote {', '.join([*written, 'methods.txt'])} to {chosen.folder}")


def _covariates(table: Any) -> Any:
    """Return a table as a DataFrame, in which columns of numbers are converted to numbers."""
    pandas = import_optional("pandas", "annealvi paper")
    frame = pandas.DataFrame(table).replace("", None)
    for name in frame:
        # columns that are numbers already
        if not all(isinstance(value, str | None) for value in frame[name]):
            continue
        # None if they are not numbers; odd if some values are texts such as NA
        numbers, is_odd = numbers_in(frame[name], pandas)
        if numbers is not None:
            frame[name] = numbers
        if is_odd:
            warn_user(
                f"The column {name!r} is read as numbers, with {numbers.isna().sum()} missing "
                "values such as NA, or with commas before decimals."
            )
    return frame


def _for_page(shares: Any, names: Any) -> Any:
    """Transpose shares to a row for each topic if there are more topics than groups.

    In more rows than columns of groups or periods, the shares of the largest topics are shown.
    """
    if len(shares) > N_COLUMNS or len(shares) >= shares.shape[1] - 1:
        # column 0 is the number of documents
        order = np.argsort(-shares.iloc[:, 1:].mean().to_numpy(), kind="stable")
        return shares.iloc[:, [0, *sorted(order[:N_COLUMNS] + 1)]]
    counts = shares["n_documents"]
    heads = [f"{name} ({n:,})" for name, n in zip(names, counts, strict=True)]
    return shares.drop(columns="n_documents").set_axis(heads).T.rename_axis("label")


def _save(axes: Any, path: Path) -> None:
    """Write a figure without a time stamp, so that equal figures result in equal files."""
    figure = np.ravel(axes)[0].figure  # `axes` is one or an array
    with replacing(path) as partial:
        figure.savefig(partial, format="pdf", bbox_inches="tight", metadata={"CreationDate": None})
    import_optional("matplotlib.pyplot", "annealvi paper").close(figure)
