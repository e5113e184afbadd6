"""Figures of topics with plotly, for a notebook or a browser.

The functions have the same names and parameters as those in :mod:`annealvi.plot`, and return a
plotly Figure: ``figure.show()`` opens it, and ``figure.write_html("map.html")`` writes it to a
file.  Details are shown when the mouse is over the figure.  The functions require plotly and pandas
(``pip install plotly pandas``).
"""

from __future__ import annotations

from html import escape
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from annealvi._optional import import_optional
from annealvi.checks import validated
from annealvi.plot import pictures

#: Colours of curves, which are legible on white and on black.
COLOURS = [
    "#4c8bd0",
    "#e8833a",
    "#4fa560",
    "#d9534f",
    "#a178c9",
    "#a97f63",
    "#d683b9",
    "#8a8f98",
    "#b5a52c",
    "#36a9b8",
]
#: The measures of a fit, in the order in which they are drawn.
MEASURES = {
    "temperature": "temperature T",
    "validation": "validation score",
    "held_out_log_likelihood": "held-out log-likelihood",
    "perplexity": "perplexity",
    "elbo": "ELBO at T = 1",
}
#: The height of a row of words or names in pixels.
ROW = 20


def _go() -> Any:
    return import_optional("plotly.graph_objects", "annealvi.plot.interactive")


def _figure(traces: list[Any], **layout: Any) -> Any:
    layout = dict(template="plotly_white", colorway=COLOURS, margin=dict(t=30, r=20)) | layout
    return _go().Figure(traces, layout)


def _plain(names: Any) -> list[str]:
    """Escape names, because plotly would interpret tags in them."""
    return [escape(str(name), quote=False) for name in names]


@validated(documents=["boolean"])
def plot_topic_map(summary: Any, *, documents: bool = False) -> Any:
    """Draw a map of the topics, in which topics with similar words are close to each other.

    The area of a circle is proportional to the topic's share of all words.

    Parameters
    ----------
    summary : TopicSummary
    documents : bool, default=False
        Whether to also draw a point for each document, in the colour of its topic.

    Returns
    -------
    plotly Figure
    """
    drawn = pictures.places(summary, documents)
    go = _go()
    traces = []
    if documents:
        points = go.Scattergl(
            x=drawn.documents[:, 0],
            y=drawn.documents[:, 1],
            mode="markers",
            marker=dict(
                size=4,
                color=[COLOURS[topic % len(COLOURS)] for topic in drawn.nearest],
                opacity=0.5,
            ),
            hoverinfo="skip",
        )
        traces.append(points)
    circles = go.Scatter(
        x=drawn.x,
        y=drawn.y,
        mode="markers+text",
        text=_plain(name or topic for topic, name in enumerate(drawn.written)),
        textposition=["top center" if name else "middle center" for name in drawn.written],
        cliponaxis=False,
        customdata=np.arange(len(drawn.x)),
        meta="circles",
        hovertext=_plain(
            f"{name}: {share:.1%} of all words"
            for name, share in zip(pictures.topic_names(summary, 80), drawn.shares, strict=True)
        ),
        hoverinfo="text",
        marker=dict(
            size=drawn.shares,
            sizemode="area",
            sizeref=max(drawn.shares.max(), 1e-12) / 900,
            sizemin=4,
            color=COLOURS[0],
            opacity=0.45,
            line_width=1,
        ),
    )
    return _figure(
        [*traces, circles],
        xaxis_visible=False,
        yaxis_visible=False,
        showlegend=False,
        hovermode="closest",
    )


def _grid(drawn: pictures.Grid, hover: str, **options: Any) -> Any:
    """Draw a heatmap, whose attribute `meta` contains the topic of each row."""
    rows = np.arange(len(drawn.rows))
    columns = np.arange(len(drawn.columns))
    heatmap = _go().Heatmap(
        z=drawn.values,
        x=columns,
        y=rows,
        meta=drawn.row_numbers.tolist(),
        hovertemplate=f"%{{y}}<br>%{{x}}<br>{hover}<extra></extra>",
        **options,
    )
    return _figure(
        [heatmap],
        xaxis=dict(tickvals=columns, ticktext=_plain(drawn.columns), tickangle=-90, side="top"),
        yaxis=dict(tickvals=rows, ticktext=_plain(drawn.rows), autorange="reversed"),
        height=150 + ROW * len(rows),
        margin=dict(t=60, r=20),  # so that plotly's buttons do not cover the names of columns
    )


def plot_topics_over_time(
    summary: Any, times: ArrayLike, *, freq: Any = "year", topics: Any = None
) -> Any:
    """Draw the share of topics in the documents of each period, with 95% intervals.

    :meth:`TopicSummary.by_group` explains how the standard errors of the intervals are computed.
    Periods with fewer than 20 documents are not drawn, because shares of few documents can be
    extreme.  If all periods have fewer than 20 documents, all are drawn.

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

    Returns
    -------
    plotly Figure
    """
    drawn = pictures.over_time(summary, times, freq, topics)
    curves = [
        _go().Scatter(
            x=drawn.labels,
            y=shares,
            name=name,
            mode="lines+markers",
            marker_size=4,
            error_y=dict(array=margins, thickness=1, width=0),
            customdata=np.column_stack([np.full(len(shares), topic), drawn.n_documents, margins]),
            hovertemplate="%{x}: %{y:.2%} ± %{customdata[2]:.2%} of all words, "
            "%{customdata[1]} documents",
        )
        for topic, shares, margins, name in zip(
            drawn.topics, drawn.values.T, drawn.margins.T, _plain(drawn.names), strict=True
        )
    ]
    return _figure(
        curves,
        yaxis=dict(title="share of all words", tickformat=".0%", rangemode="tozero"),
        legend=dict(orientation="h", y=-0.12),
        hovermode="closest",
    )


def plot_topics_by_group(summary: Any, groups: ArrayLike, *, topics: Any = None) -> Any:
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

    Returns
    -------
    plotly Figure
    """
    drawn = pictures.group_grid(pictures.by_group(summary, groups, topics))
    return _grid(drawn, "%{z:.2%}", colorscale="Blues", zmin=0)


def plot_stability(first: Any, second: Any) -> Any:
    """Draw the cosine similarities of the topics of two fits, to show which topics both found.

    Topics are paired so that the sum of the similarities of the pairs is as large as possible.  The
    pairs are on the diagonal, starting with the most similar pair.

    Parameters
    ----------
    first, second : TopicSummary
        Summaries with the same vocabulary.  The numbers of topics may differ.

    Returns
    -------
    plotly Figure
    """
    drawn = pictures.matches(first, second)
    figure = _grid(drawn, "cosine %{z:.3f}", colorscale="Viridis", zmin=0, zmax=1)
    return figure.update_xaxes(title="topic of the other fit")


def plot_fit(summary: Any) -> Any:
    """Draw the temperature, perplexity, ELBO and validation scores over the passes of a fit.

    Parameters
    ----------
    summary : TopicSummary
        A summary of a model with ``history_``.

    Returns
    -------
    plotly Figure

    Raises
    ------
    ValueError
        If the model has no ``history_``.
    """
    history = pictures.check_summary(summary).history
    if not history:
        raise ValueError(
            "'summary' must describe a model with the attribute `history_`. Got a model without it."
        )
    values = {key: np.asarray(history.get(key, ()), dtype=float) for key in MEASURES}
    drawn = {key: measured for key, measured in values.items() if np.isfinite(measured).any()}
    subplots = import_optional("plotly.subplots", "annealvi.plot.interactive")
    figure = subplots.make_subplots(
        rows=len(drawn), cols=1, shared_xaxes=True, vertical_spacing=0.06
    )
    for row, (key, measured) in enumerate(drawn.items(), start=1):
        taken = np.isfinite(measured)
        line = _go().Scatter(
            x=np.asarray(history["pass"], dtype=float)[taken],
            y=measured[taken],
            name=MEASURES[key],
            mode="lines+markers",
            marker_size=4,
            line_color=COLOURS[row - 1],
            hovertemplate="pass %{x}: %{y:.5g}<extra></extra>",
        )
        figure.add_trace(line, row=row, col=1)
        figure.update_yaxes(title_text=MEASURES[key], row=row, col=1)
    figure.update_xaxes(title_text="passes over the documents", row=len(drawn), col=1)
    return figure.update_layout(
        template="plotly_white",
        showlegend=False,
        margin=dict(t=30, r=20),
        height=60 + 190 * len(drawn),
    )
