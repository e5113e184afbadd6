"""What a notebook shows of a summary, a choice, effects or a document: HTML without JavaScript.

Figures are drawn by :mod:`annealvi.plot` if matplotlib is installed, and are left out otherwise.
"""

from __future__ import annotations

import base64
import io
import re
import unicodedata
from collections.abc import Callable
from html import escape
from typing import Any

import numpy as np

from annealvi.plot import pictures
from annealvi.plot.estimators import TITLES, plot_choice
from annealvi.plot.topics import plot_effects, plot_topic_map

#: Okabe and Ito's colours, which people with colour blindness can distinguish.
COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442")
GREY = "#999999"
#: The largest numbers of rows of a table, and of characters of a text.
N_ROWS, TEXT_LENGTH = 30, 20_000
#: Topics with smaller shares are not in the legend of a document.
LEAST_SHARE = 0.01
#: Styles of a part of a document's bar, and of a name in the legend.
_BAR = "display:inline-block;height:12px;width"
_KEY = "margin-right:12px;padding-left:4px;border-left:12px solid"
#: Scripts without spaces between words.
_UNSPACED = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff]")


def summary_html(summary: Any) -> str:
    """Return the map of the topics and their table, largest first."""
    table = summary.table[["label", "share", "documents", "words", "coherence"]]
    table = table.assign(weak=summary.trust["reason"]).iloc[pictures.by_size(summary)]
    return _page(repr(summary)[1:-1], lambda ax: plot_topic_map(summary, ax=ax), table)


def choice_html(choice: Any) -> str:
    """Return the measures for each number of topics, as curves and as a table."""
    table = choice.table[[*choice.measures, "recommended"]]
    return _page(choice.rule, lambda axes: plot_choice(choice, axes=axes), table, len(TITLES))


def effects_html(effects: Any) -> str:
    """Return a figure of the first covariate, and the table of the effects."""
    name = effects.covariates[0]
    table = effects.table.set_index("topic")
    return _page(repr(effects)[1:-1], lambda ax: plot_effects(effects, name, ax=ax), table)


def _page(headline: str, plot: Callable[[Any], Any], table: Any, n_axes: int = 1) -> str:
    """Return a headline, a figure and a table."""
    html = table.to_html(max_rows=N_ROWS, float_format="{:.3g}".format, border=0)
    return f"<p>{escape(headline)}</p>{_figure(plot, n_axes)}{html}"


def _figure(plot: Callable[[Any], Any], n_axes: int) -> str:
    """Return a figure as an image that contains its SVG; pages may remove SVG elements."""
    try:
        import matplotlib
        from matplotlib.figure import Figure
    except ImportError:
        return ""
    # not by pyplot, because notebooks show its figures themselves
    figure = Figure(figsize=(8 if n_axes == 1 else 3 * n_axes, 4.5), layout="constrained")
    axes = figure.subplots(1, n_axes)
    file = io.BytesIO()
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "annealvi"}):
        plot(axes)
        figure.savefig(file, format="svg", metadata={"Date": None}, bbox_inches="tight")
    data = base64.b64encode(file.getvalue()).decode()
    return f'<img alt="" style="max-width:100%" src="data:image/svg+xml;base64,{data}">'


def document_html(document: Any) -> str:
    """Return the text of a document, whose words have the colours of their topics."""
    order = np.argsort(-document.shares, kind="stable").tolist()
    colours = dict(zip(order, COLOURS, strict=False))
    bar = ""
    legend = ""
    body = ""
    for k, colour in colours.items():
        name = f"{k} {escape(document.labels[k])}"
        if document.shares[k] >= LEAST_SHARE:
            bar += f'<span style="{_BAR}:{document.shares[k]:.2%};background:{colour}"></span>'
            legend += f'<span style="{_KEY} {colour}">{name} · {document.shares[k]:.0%}</span> '
    words = document.words.tolist()
    text = " ".join(words) if document.text is None else str(document.text)[:TEXT_LENGTH]
    for piece, number in marked(text, words):
        piece = escape(piece)
        if number is not None:
            k = document.responsibilities[number].argmax()
            strength = document.responsibilities[number, k]
            colour = f"{colours.get(k, GREY)}{round(153 * strength):02x}"
            name = f"{k} {escape(document.labels[k])}: {strength:.0%}"
            style = f"color:inherit;background:{colour}"
            piece = f'<mark style="{style}" title="{name}">{piece}</mark>'
        body += piece
    title = escape(document.title or f"Document {document.number}")
    return (
        f'<div style="max-width:50em"><b>{title}</b><div style="font-size:0">{bar}</div>'
        f'<small>{legend}</small><p style="white-space:pre-wrap">{body}</p></div>'
    )


def marked(text: str, words: list[str]) -> list[tuple[str, int | None]]:
    """Divide a text into words of a list, with their numbers in the list, and what is between."""
    numbers = {word.lower(): number for number, word in enumerate(words)}
    patterns = []
    for word in sorted(numbers, key=len, reverse=True):
        pattern = r"[\W_]+".join(map(re.escape, word.split(" ")))
        patterns.append(pattern if _UNSPACED.search(word) else rf"(?<!\w){pattern}(?!\w)")
    pattern = "|".join(patterns) or "$^"
    pieces = re.split(f"({pattern})", unicodedata.normalize("NFC", text), flags=re.IGNORECASE)
    keys = [re.sub(r"[\W_]+", " ", piece.lower()) for piece in pieces]
    return [(piece, numbers.get(key)) for piece, key in zip(pieces, keys, strict=True)]
