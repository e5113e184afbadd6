"""Figures of topics with matplotlib, from a :class:`~annealvi.topics.TopicSummary`.

Every function draws into the Axes that you pass, or into new Axes, and returns them.
:mod:`annealvi.plot.interactive` draws the same figures for a browser or a notebook.  The functions
require matplotlib and pandas (``pip install matplotlib pandas``).
"""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.cluster.hierarchy import dendrogram

from annealvi._optional import import_optional
from annealvi.checks import COUNT, Interval, as_array, validated
from annealvi.exceptions import BadParameter
from annealvi.plot import pictures
from annealvi.plot.estimators import one_axes, several_axes
from annealvi.plot.fonts import legible

RELEVANCE = [Interval(Real, 0, 1, closed="both"), None]
PRIOR = [Interval(Real, 1e-6, 1e12, closed="both")]
#: The height of a line of tick labels in points, of which an inch has 72.
LINE = 13


def _axes(ax: Any, width: float, height: float) -> Any:
    """Return the Axes of the user, or (None) new Axes of this size in inches."""
    return one_axes(ax, figsize=(width, height), layout="constrained")


def _height_of(n_lines: int) -> float:
    """Return the height in inches of Axes with this number of lines of text."""
    return max(3.0, 1 + n_lines * LINE / 72)


@legible
@validated(n_words=COUNT, relevance=RELEVANCE, n_columns=COUNT)
def plot_topic_words(
    summary: Any,
    topics: Any = None,
    *,
    n_words: int = 10,
    relevance: float | None = None,
    n_columns: int = 4,
    axes: Any = None,
) -> NDArray:
    """Draw the probabilities of the words of topics as bars.

    Parameters
    ----------
    summary : TopicSummary
        The result of :func:`annealvi.topics.describe`.
    topics : list of int or str, optional
        Numbers or labels of topics.  The default is the 20 largest topics, largest first.
    n_words : int, default=10
        Number of the most relevant words of each topic.
    relevance : float, optional
        A number from 0 to 1.  With 0, words that are much more frequent in the topic than elsewhere
        are drawn; with 1, the most probable words.  The default is that of
        :meth:`TopicSummary.words`.
    n_columns : int, default=4
        Number of topics in a row of new Axes.
    axes : array of matplotlib Axes, optional
        Axes to draw into, at least one for each topic.

    Returns
    -------
    ndarray of matplotlib Axes
        The Axes that were passed, or new Axes of shape (n_rows, n_columns).

    Raises
    ------
    ValueError
        If a topic does not exist, or if there are too few Axes.
    """
    drawn = pictures.bars(summary, topics, n_words, relevance)
    n_lines = max(len(topic.words) for topic in drawn)
    ticker = import_optional("matplotlib.ticker", "annealvi.plot")
    # 0.8 inches are for the title and the ticks; LINE is in points, 1/72 inch
    axes = several_axes(
        axes,
        n=len(drawn),
        what="topic",
        n_columns=n_columns,
        size=(3, 0.8 + n_lines * LINE / 72),
    )
    for ax, topic in zip(axes.flat, drawn, strict=False):
        lines = np.arange(len(topic.words))
        ax.barh(lines, topic.probabilities)
        _name_rows(ax, lines, topic.words)
        ax.set_title(topic.name, fontsize="medium", parse_math=False)
        ax.xaxis.set_major_locator(ticker.MaxNLocator(3))
    return axes


@legible
@validated(documents=["boolean"])
def plot_topic_map(summary: Any, *, documents: bool = False, ax: Any = None) -> Any:
    """Draw a map of the topics, in which topics with similar words are close to each other.

    The area of a circle is proportional to the topic's share of all words.  If names would overlap,
    only the name of the larger topic is drawn.

    Parameters
    ----------
    summary : TopicSummary
    documents : bool, default=False
        Whether to also draw a point for each document, in the colour of its topic.
    ax : matplotlib Axes, optional

    Returns
    -------
    matplotlib Axes
    """
    drawn = pictures.places(summary, documents)
    ax = _axes(ax, width=8, height=6)
    if documents:
        # the colour map has 20 colours
        ax.scatter(*drawn.documents.T, s=4, c=drawn.nearest % 20, cmap="tab20", alpha=0.5, lw=0)
    # areas in square points, the largest 1600; tiny topics are drawn with an area of 15
    area = (1600 * drawn.shares / max(drawn.shares.max(), 1e-12)).clip(15)
    ax.scatter(drawn.x, drawn.y, s=area, alpha=0.35, zorder=2)
    for topic, name in enumerate(drawn.written):
        # a name stands above the circle; without space for it, the number stands in the circle
        radius = np.sqrt(area[topic] / np.pi)
        ax.annotate(
            name or str(topic),
            xy=(drawn.x[topic], drawn.y[topic]),
            xytext=(0, radius if name else 0),
            textcoords="offset points",
            ha="center",
            va="bottom" if name else "center",
            fontsize="small" if name else "x-small",
            parse_math=False,
        )
    ax.margins(0.15)
    ax.set_xticks([])
    ax.set_yticks([])
    return ax


@legible
def plot_topic_heatmap(summary: Any, *, ax: Any = None) -> Any:
    """Draw the Hellinger distances between all topics, with similar topics side by side.

    Parameters
    ----------
    summary : TopicSummary
    ax : matplotlib Axes, optional

    Returns
    -------
    matplotlib Axes
    """
    return _draw_grid(ax, pictures.alike(summary), what="distance", cmap="viridis_r", vmin=0)


def _draw_grid(
    ax: Any, drawn: pictures.Grid, what: str, width: float | None = None, **colours: Any
) -> Any:
    """Draw a Grid into the Axes of the user, or (None) into new Axes, and return the Axes.

    `what` is the name of the values, and `colours` are options of imshow.  By default, columns are
    as wide as rows are high.
    """
    if width is None:
        width = _height_of(len(drawn.columns)) + 3  # 3 inches for labels and colours
    ax = _axes(ax, width=width, height=_height_of(len(drawn.rows)))
    image = ax.imshow(drawn.values, aspect="auto", **colours)
    ax.set_xticks(range(len(drawn.columns)), drawn.columns, rotation=90, parse_math=False)
    ax.set_yticks(range(len(drawn.rows)), drawn.rows, parse_math=False)
    ax.tick_params(length=0, labelsize="small")
    ax.figure.colorbar(image, ax=ax, label=what, shrink=0.6)
    return ax


@legible
def plot_topic_dendrogram(summary: Any, *, ax: Any = None) -> Any:
    """Draw the hierarchy of topics, in which the most similar topics are joined first.

    Parameters
    ----------
    summary : TopicSummary
        A summary with at least two topics.
    ax : matplotlib Axes, optional

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    ValueError
        If there is only one topic.
    """
    if len(pictures.check_summary(summary).topics) < 2:
        raise ValueError("'summary' must contain at least two topics for a hierarchy. Got one.")
    brackets = dendrogram(summary.similar().linkage, no_plot=True)
    names = pictures.topic_names(summary)
    ax = _axes(ax, width=8, height=_height_of(len(names)))
    # each bracket joins two clusters; leaves are on the vertical axis, and SciPy's on the other
    for leaves, distances in zip(brackets["icoord"], brackets["dcoord"], strict=True):
        ax.plot(distances, leaves, color="C0", lw=1)
    # SciPy places the leaves at 5, 15, 25 and so on
    ticks = 10.0 * np.arange(len(names)) + 5
    ax.set_yticks(ticks, [names[k] for k in brackets["leaves"]], parse_math=False)
    ax.set_xlim(0, np.max(brackets["dcoord"]) * 1.03)  # a small margin
    ax.set_ylim(10 * len(names), 0)  # the first leaf is at the top
    ax.set_xlabel("Hellinger distance")
    ax.spines[["top", "right", "left"]].set_visible(False)
    return ax


@legible
def plot_topics_over_time(
    summary: Any, times: ArrayLike, *, freq: Any = "year", topics: Any = None, ax: Any = None
) -> Any:
    """Draw the share of topics in the documents of each period, with 95% intervals.

    :meth:`TopicSummary.by_group` describes the intervals.  Periods with fewer than 20 documents are
    not drawn, because shares of few documents can be extreme.  If all periods have fewer than 20
    documents, all are drawn.

    Parameters
    ----------
    summary : TopicSummary
    times : array-like of shape (n_documents,)
        Date or time of each document.
    freq : str, timedelta or pandas.DateOffset, default="year"
        Length of a period: ``"year"``, ``"5 years"``, ``"quarter"``, ``"month"``, ``"week"``; see
        :meth:`TopicSummary.over_time`.
    topics : list of int or str, optional
        Numbers or labels of topics.  The default is the 8 largest topics.
    ax : matplotlib Axes, optional

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    ValueError
        If a topic does not exist, or if :meth:`TopicSummary.over_time` does not accept `times`.
    """
    drawn = pictures.over_time(summary, times, freq, topics)
    ax = _axes(ax, width=8, height=4)
    for shares, margins, name in zip(drawn.values.T, drawn.margins.T, drawn.names, strict=True):
        _draw_curve(
            ax,
            drawn.labels,
            shares,
            shares - margins,
            shares + margins,
            label=name,
            marker="o",
            ms=3,
        )
    ax.set_ylim(0)
    ax.set_ylabel("share of all words")
    _legend(ax)
    return ax


def _draw_curve(ax: Any, x: Any, shares: Any, low: Any, high: Any, **options: Any) -> None:
    """Draw shares, which are not negative, as a curve, and their intervals as a band."""
    (line,) = ax.plot(x, shares, **options)
    ax.fill_between(x, np.maximum(low, 0), high, color=line.get_color(), alpha=0.15, lw=0)


def _name_rows(ax: Any, heights: Any, names: list[str]) -> None:
    """Write names at heights, the first at the top, and remove the lines above and at the right."""
    # parse_math=False, here and below: a $ in a word does not start a formula
    ax.set_yticks(heights, names, parse_math=False)
    ax.invert_yaxis()
    ax.spines[["top", "right"]].set_visible(False)


def _legend(ax: Any, title: str = "") -> None:
    """Draw a legend beside the figure, in which $ does not start a formula."""
    legend = ax.legend(
        loc="upper left", bbox_to_anchor=(1, 1), frameon=False, fontsize="small", title=title
    )
    for text in [legend.get_title(), *legend.get_texts()]:
        text.set_parse_math(False)


@legible
def plot_topics_by_group(
    summary: Any, groups: ArrayLike, *, topics: Any = None, ax: Any = None
) -> Any:
    """Draw the share of each topic in each group of documents, for example in each category.

    The 40 largest groups are drawn if they have at least 20 documents.  All other groups are
    combined into one, which is drawn last.

    Parameters
    ----------
    summary : TopicSummary
    groups : array-like of shape (n_documents,)
        The group of each document.
    topics : list of int or str, optional
        Numbers or labels of topics.  The default is all topics, largest first.
    ax : matplotlib Axes, optional

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    ValueError
        If a topic does not exist, or if :meth:`TopicSummary.by_group` does not accept `groups`.
    """
    drawn = pictures.group_grid(pictures.by_group(summary, groups, topics))
    width = 3.5 + len(drawn.columns) * 0.3  # inches for the names of topics, and for each group
    return _draw_grid(ax, drawn, what="share of all words", width=width, cmap="Blues", vmin=0)


@legible
def plot_effects(effects: Any, covariate: str, *, topics: Any = None, ax: Any = None) -> Any:
    """Draw how the shares of topics depend on a covariate, with 95% intervals.

    If the covariate has two values, a dot shows how much a topic's share differs between them, and
    a filled dot means that the interval does not contain 0.  For more values, the figure shows for
    each value what the mean shares would be if all documents had this value and kept their other
    covariates.  If there are more than ten values, a numeric covariate is drawn as curves, and for
    other covariates only the ten values with the smallest standard errors are drawn.  A cross or a
    curve without an interval shows a topic that fewer than two refits of the model found again.

    Parameters
    ----------
    effects : Effects
        The result of :meth:`TopicSummary.effects`.
    covariate : str
        The name of the covariate in the data.
    topics : list of int or str, optional
        Numbers or labels of topics.  The default is all topics or, for curves, the 5 topics whose
        shares change most.
    ax : matplotlib Axes, optional

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    ValueError
        If the covariate or a topic does not exist.
    """
    if not hasattr(effects, "contrast"):
        raise TypeError(
            f"'effects' must be a result of TopicSummary.effects. Got {type(effects).__name__}."
        )
    frame = effects.shares(covariate)
    many_values = frame[covariate].nunique(dropna=False) > pictures.FEW_VALUES
    curves = many_values and frame[covariate].dtype.kind in "iuf"  # of a numeric covariate
    if many_values and not curves:
        # only the values that are known best
        errors = frame.groupby(covariate, observed=True)["std_error"].mean()
        frame = frame[frame[covariate].isin(errors.nsmallest(pictures.FEW_VALUES).index)]
    values = frame[covariate].unique().tolist()
    of_difference = len(values) == 2
    if of_difference:
        first, second = values
        frame = effects.contrast({covariate: second}, {covariate: first})
        frame = frame.rename(columns={"estimate": "share"})
        change = frame.set_index("topic")["share"]
    else:
        change = frame.groupby("topic")["share"].agg(np.ptp)  # largest minus smallest share
    change = change.sort_values(kind="stable", ascending=False)
    default = change.index[: pictures.N_BANDS if curves else None]
    labels = dict(zip(frame["topic"], frame["label"], strict=True))
    chosen = _of_effects(labels, default if topics is None else topics)
    names = {k: pictures.shorten(f"{k} {label}") for k, label in labels.items()}
    # dots of several values are drawn one above the other
    n_lines = len(chosen) * (1 + len(values) // 3)
    ax = _axes(ax, width=8, height=4 if curves else _height_of(n_lines))
    if curves:
        for k in chosen:
            curve = frame[frame["topic"] == k]
            _draw_curve(
                ax, curve[covariate], curve["share"], curve["low"], curve["high"], label=names[k]
            )
        ax.set_xlabel(covariate, parse_math=False)
        ax.set_ylabel("mean share of a document")
        ax.set_ylim(0)
        _legend(ax)
        return ax
    # the differences between two values, or the shares for each value
    groups = [("", frame)] if of_difference else list(frame.groupby(covariate, sort=False))
    for number, (value, rows) in enumerate(groups):
        rows = rows.set_index("topic").loc[chosen]
        share = rows["share"]
        # topics are at 0, 1, ..., and the dots of a topic's values are spread around its height
        heights = np.arange(len(chosen)) + (number - (len(groups) - 1) / 2) * 0.7 / len(groups)
        colour = f"C{number}"
        ax.errorbar(
            share,
            heights,
            xerr=(share - rows["low"], rows["high"] - share),
            fmt="none",
            elinewidth=1,
            color=colour,
            label=str(value),  # in the legend, which differences do not have
        )
        # the dot of a difference is hollow if its interval contains 0
        filled = (rows["low"] > 0) | (rows["high"] < 0) | (not of_difference)
        known = rows["low"].notna().to_numpy()  # whether there is an interval
        ax.scatter(
            share[known],
            heights[known],
            s=20,
            c=np.where(filled[known], colour, "white"),
            edgecolors=colour,
            zorder=3,
        )
        # a topic that fewer than two refits found again
        ax.scatter(share[~known], heights[~known], s=20, c=colour, marker="x")
    _name_rows(ax, range(len(chosen)), [names[k] for k in chosen])
    if of_difference:
        ax.axvline(0, color="grey", lw=0.8)
        ax.set_xlabel(f"share if {covariate} is {second}, minus if {first}", parse_math=False)
    else:
        ax.set_xlabel("mean share of a document")
        _legend(ax, covariate)
    return ax


def _of_effects(labels: dict[int, str], topics: Any) -> list[int]:
    """Return the numbers of topics from their numbers or their `labels`."""
    topics = list(topics) if as_array(topics).ndim else [topics]
    numbers = [
        k
        for topic in topics
        for k, label in labels.items()
        if isinstance(topic, str | Real) and topic in (k, label)  # an array cannot be compared
    ]
    if not numbers or len(numbers) < len(topics):  # one of `topics` does not exist
        raise BadParameter(
            "topics", f"a list of numbers or labels of the topics {list(labels.values())}", topics
        )
    return numbers


@legible
@validated(n_words=COUNT, prior=PRIOR, n_columns=COUNT)
def plot_words_by_group(
    summary: Any,
    topic: int | str,
    groups: ArrayLike,
    *,
    n_words: int = 10,
    prior: float = 500.0,
    n_columns: int = 3,
    axes: Any = None,
) -> NDArray:
    """Draw the words of a topic that each group of documents uses more often than other groups.

    A dot shows the difference of a word's log-odds between the group and all other groups, and a
    line shows its 95% interval.  The title of each Axes contains the group and its number of
    documents.  If there are more than 20 groups, only the 20 with the most documents are drawn.
    Groups that rarely use the topic are not drawn.

    Parameters
    ----------
    summary : TopicSummary
    topic : int or str
        Number or label of a topic.
    groups : array-like of shape (n_documents,)
        The group of each document.
    n_words : int, default=10
        Number of words of each group.
    prior : float, default=500
        See :meth:`TopicSummary.words_by_group`.
    n_columns : int, default=3
        Number of groups in a row of new Axes.
    axes : array of matplotlib Axes, optional
        Axes to draw into, at least one for each group.

    Returns
    -------
    ndarray of matplotlib Axes
        The Axes that were passed, or new Axes of shape (n_rows, n_columns).

    Raises
    ------
    ValueError
        If the topic does not exist, if there are too few Axes, or if
        :meth:`TopicSummary.words_by_group` does not accept the arguments.
    """
    drawn = pictures.words_by_group(summary, topic, groups, int(n_words), prior)
    n_lines = max(len(group.words) for group in drawn)
    # 1.1 inches are for the title and the labels of the axis; LINE is in points, 1/72 inch
    axes = several_axes(
        axes,
        n=len(drawn),
        what="group",
        n_columns=n_columns,
        size=(3, 1.1 + n_lines * LINE / 72),
    )
    # all Axes have the same limits, which include 0
    low = min(0.0, *(group.low.min() for group in drawn))
    high = max(0.0, *(group.high.max() for group in drawn))
    margin = 0.04 * (high - low)
    for number, (ax, group) in enumerate(zip(axes.flat, drawn, strict=False)):
        lines = np.arange(len(group.words))
        ax.axvline(0, color="0.7", lw=1, zorder=0)
        ax.hlines(lines, group.low, group.high, color="C0", lw=1)
        ax.plot(group.log_odds, lines, "o", ms=4, color="C0")
        _name_rows(ax, lines, group.words)
        ax.set_xlim(low - margin, high + margin)
        ax.set_title(group.name, fontsize="medium", parse_math=False)
        if number >= len(drawn) - n_columns:  # the lowest Axes of the column
            ax.set_xlabel("log-odds against other groups")
    return axes


@legible
@validated(n_words=COUNT)
def plot_term_ranks(summary: Any, topics: Any = None, *, n_words: int = 50, ax: Any = None) -> Any:
    """Draw the probabilities of a topic's words over their rank, to show how fast they decrease.

    If the curve of a topic is steep at the beginning, its first few words describe the topic well.
    Words in the flat part add little to the description.

    Parameters
    ----------
    summary : TopicSummary
    topics : list of int or str, optional
        Numbers or labels of topics.  The default is the 8 largest topics.
    n_words : int, default=50
        Number of the most probable words of each topic.
    ax : matplotlib Axes, optional

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    ValueError
        If a topic does not exist.
    """
    drawn = pictures.ranks(summary, topics, n_words)
    ax = _axes(ax, width=8, height=4)
    for topic in drawn:
        ranks = np.arange(1, len(topic.words) + 1)
        ax.plot(ranks, topic.probabilities, label=topic.name)
    ax.set_yscale("log")
    ax.set_xlabel("rank of the word")
    ax.set_ylabel("probability in the topic")
    _legend(ax)
    return ax


@legible
def plot_stability(first: Any, second: Any, *, ax: Any = None) -> Any:
    """Draw the cosines between the topics of two fits, to show which topics both fits found.

    Topics are paired so that the total cosine is largest.  The pairs are on the diagonal, the most
    similar first.  :func:`annealvi.metrics.topic_stability` averages each topic's largest cosine.

    Parameters
    ----------
    first, second : TopicSummary
        Summaries with the same vocabulary.  The numbers of topics may differ.
    ax : matplotlib Axes, optional

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    ValueError
        If the words of the two summaries differ.
    """
    drawn = pictures.matches(first, second)
    ax = _draw_grid(ax, drawn, what="cosine", cmap="viridis", vmin=0, vmax=1)
    ax.set_xlabel("topic of the other fit")
    return ax


@legible
@validated(n_words=COUNT, prior=PRIOR)
def plot_words_over_time(
    summary: Any,
    topic: int | str,
    times: ArrayLike,
    *,
    freq: Any = "year",
    n_words: int = 20,
    prior: float = 500.0,
    ax: Any = None,
) -> Any:
    """Draw the words whose share of a topic changes over time.

    A line leads from the share of the word before its clearest change to its share since then,
    which is marked by a dot and by the beginning of the period.

    Parameters
    ----------
    summary : TopicSummary
    topic : int or str
        Number or label of a topic.
    times : array-like of shape (n_documents,)
        Date or time of each document.
    freq : str, timedelta or pandas.DateOffset, default="year"
        Length of a period; see :meth:`TopicSummary.over_time`.
    n_words : int, default=20
        Number of words.
    prior : float, default=500
        See :meth:`TopicSummary.words_over_time`.
    ax : matplotlib Axes, optional

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    ValueError
        If the topic does not exist, or if :meth:`TopicSummary.words_over_time` does not accept the
        arguments.
    """
    pictures.check_summary(summary)
    table = summary.words_over_time(topic, times, freq, n_words, prior)
    heights = np.arange(len(table))
    ax = _axes(ax, width=8, height=_height_of(len(table)))
    ax.hlines(heights, table["before"], table["share"], color="C0", lw=1)
    ax.plot(table["share"], heights, "o", ms=4, color="C0")
    for number, row in enumerate(table.itertuples()):
        text = f"since {row.since:%Y-%m-%d}"
        end = max(row.share, row.before), number  # the right end of the line
        ax.annotate(
            text, xy=end, xytext=(6, 0), textcoords="offset points", va="center", size="small"
        )
    _name_rows(ax, heights, [pictures.shorten(word, 30) for word in table["word"]])
    ax.margins(x=0.2)  # for the texts
    ax.set_xlim(0)
    ax.set_xlabel("share of the words of the topic")
    return ax


@legible
def plot_topics_together(summary: Any, *, ax: Any = None) -> Any:
    """Draw the correlations between the shares of all topics, with similar topics side by side.

    Parameters
    ----------
    summary : TopicSummary
        A summary with at least two topics; :meth:`TopicSummary.together` computes the correlations.
    ax : matplotlib Axes, optional

    Returns
    -------
    matplotlib Axes
    """
    drawn = pictures.together(summary)
    # the middle colour is 0
    limit = max(np.nanmax(np.abs(drawn.values)), 1e-9)
    return _draw_grid(ax, drawn, "correlation", cmap="RdBu_r", vmin=-limit, vmax=limit)
