"""What a notebook shows of a summary, a choice, effects or a document: HTML without JavaScript."""

from __future__ import annotations

import base64
import re
import unicodedata
from html import escape
from typing import Any

import numpy as np
from numpy.typing import NDArray

from annealvi.plot import pictures

#: Okabe and Ito's colours, which people with colour blindness can distinguish.
COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442")
GREY = "#999999"
#: The largest numbers of rows of a table, and of characters of a text.
N_ROWS, TEXT_LENGTH = 30, 20_000
#: Scripts without spaces between words.
_UNSPACED = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff]")


def summary_html(summary: Any) -> str:
    """Return the table of the topics, largest first, and their map."""
    order = pictures.by_size(summary)
    table = summary.table.iloc[order]
    weak = summary.trust["reason"].iloc[order]
    shown = table[["label", "share", "documents", "words", "coherence"]].assign(weak=weak)
    return f"<p>{escape(repr(summary)[1:-1])}</p>{_image(map_svg(summary))}{_table(shown)}"


def choice_html(choice: Any) -> str:
    """Return the table of the numbers of topics, and a curve of the criterion."""
    names = [choice.criterion, "held_out_log_likelihood", "coherence", "diversity", "stability"]
    table = choice.table[[*dict.fromkeys(names), "recommended"]]
    curve = _curve(table.index.to_numpy(), table[choice.criterion].to_numpy(), choice.criterion)
    return f"<p>{escape(choice.rule)}</p>{_image(curve)}{_table(table)}"


def effects_html(effects: Any) -> str:
    """Return the table of the effects, and their intervals as a picture."""
    table = effects.table[effects.table["term"] != "Intercept"]
    names = [f"{label}: {term}" for label, term in zip(table["label"], table["term"], strict=True)]
    bars = _intervals(names, *(table[name].to_numpy() for name in ("estimate", "low", "high")))
    return f"<p>{escape(repr(effects)[1:-1])}</p>{_image(bars)}{_table(table.set_index('topic'))}"


def document_html(document: Any) -> str:
    """Return the text of a document, whose words have the colours of their topics."""
    largest = np.argsort(-document.shares, kind="stable")[: len(COLOURS)]
    largest = [int(k) for k in largest if document.shares[k] >= 0.01] or [int(largest[0])]
    colours = dict(zip(largest, COLOURS, strict=False))
    bar = legend = ""
    for k, colour in colours.items():
        share = document.shares[k]
        bar += f'<span style="display:inline-block;height:12px;width:{share:.2%};background:{colour}"></span>'
        legend += (
            f'<span style="border-left:12px solid {colour};padding-left:4px;margin-right:12px">'
            f"{k} {escape(document.labels[k])} · {share:.0%}</span> "
        )
    best = document.responsibilities.argmax(axis=1)
    strengths = document.responsibilities.max(axis=1, initial=0)
    text = document.text
    if text is None:
        text = " ".join(document.words.tolist())
    body = ""
    for piece, number in marked(str(text)[:TEXT_LENGTH], document.words.tolist()):
        if number is None:
            body += escape(piece)
            continue
        k = int(best[number])
        opacity = f"{round(255 * 0.6 * strengths[number]):02x}"
        body += (
            f'<mark style="color:inherit;background:{colours.get(k, GREY)}{opacity}" '
            f'title="{k} {escape(document.labels[k])}: {strengths[number]:.0%}">'
            f"{escape(piece)}</mark>"
        )
    title = "" if document.title is None else f"<p><b>{escape(document.title)}</b></p>"
    return (
        f'<div style="max-width:50em">{title}<div style="font-size:0">{bar}</div>'
        f'<p style="font-size:small">{legend}</p><p style="white-space:pre-wrap">{body}</p></div>'
    )


def marked(text: str, words: list[str]) -> list[tuple[str, int | None]]:
    """Divide a text into words of a list, with their numbers in the list, and what is between."""
    text = unicodedata.normalize("NFC", text)
    numbers = {word.lower(): number for number, word in enumerate(words)}
    patterns = []
    for word in sorted(numbers, key=len, reverse=True):
        pattern = r"[\W_]+".join(map(re.escape, word.split(" ")))
        patterns.append(pattern if _UNSPACED.search(word) else rf"(?<!\w){pattern}(?!\w)")
    if not patterns:
        return [(text, None)]
    pieces = re.split(f"({'|'.join(patterns)})", text, flags=re.IGNORECASE)
    return [
        (piece, numbers.get(re.sub(r"[\W_]+", " ", piece.lower())) if place % 2 else None)
        for place, piece in enumerate(pieces)
    ]


# ------------------------------------------------------------------------------ parts


def _table(frame: Any) -> str:
    """Return a table of at most `N_ROWS` rows, with numbers rounded."""
    head = "".join(f"<th>{escape(str(name))}</th>" for name in (frame.index.name or "", *frame))
    rows = ""
    for key, row in zip(frame.index[:N_ROWS], frame.itertuples(index=False), strict=False):
        cells = "".join(f'<td style="text-align:left">{_cell(value)}</td>' for value in row)
        rows += f"<tr><th>{escape(str(key))}</th>{cells}</tr>"
    more = f"<p>… and {len(frame) - N_ROWS:,} more rows</p>" if len(frame) > N_ROWS else ""
    return f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>{more}"


def _cell(value: Any) -> str:
    return escape(f"{value:.3g}" if isinstance(value, float) else str(value))


def _image(svg: str) -> str:
    """Return an image that contains its SVG, so that pages that remove SVG elements show it."""
    data = base64.b64encode(svg.encode("utf-8", "replace")).decode()
    return f'<img alt="" style="background:white;max-width:100%" src="data:image/svg+xml;base64,{data}">'


def _svg(width: float, height: float, *elements: str) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
        f'font-family="sans-serif" font-size="11">{"".join(elements)}</svg>'
    )


def _text(x: float, y: float, text: str, anchor: str = "middle") -> str:
    text = "".join(sign for sign in str(text) if sign.isprintable())
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'


def _scaled(values: NDArray, size: float, margin: float) -> NDArray[np.float64]:
    """Scale values to a size in pixels, with a margin at both ends."""
    low = np.nanmin(values)
    extent = np.nanmax(values) - low
    return margin + (size - 2 * margin) * (values - low) / (extent if extent > 0 else 1.0)


def map_svg(summary: Any) -> str:
    """Draw the map of the topics: circles whose areas are proportional to the shares of topics."""
    places = pictures.places(summary)
    width, height = pictures.MAP_SIZE
    x = _scaled(places.x, width + 160, 80)
    y = height + 80 - _scaled(places.y, height + 80, 40)
    radii = pictures.RADIUS * np.sqrt(places.shares / max(float(places.shares.max()), 1e-12))
    elements = []
    for k, name in enumerate(places.written):
        elements.append(
            f'<circle cx="{x[k]:.1f}" cy="{y[k]:.1f}" r="{max(radii[k], 3):.1f}" '
            f'fill="{COLOURS[0]}" fill-opacity="0.35"/>'
        )
        elements.append(_text(x[k], y[k] - radii[k] - 3 if name else y[k] + 4, name or str(k)))
    return _svg(width + 160, height + 80, *elements)


def _curve(x: NDArray, y: NDArray, name: str) -> str:
    """Draw a curve with a dot for each value; numbers of topics are spaced by their logarithm."""
    across = _scaled(np.log(x), 400, 40)
    up = 160 - _scaled(y, 160, 30)
    points = " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(across, up, strict=True))
    line = f'<polyline points="{points}" fill="none" stroke="{COLOURS[0]}"/>'
    dots = []
    for a, b, n_topics, value in zip(across, up, x, y, strict=True):
        dots.append(f'<circle cx="{a:.1f}" cy="{b:.1f}" r="3" fill="{COLOURS[0]}"/>')
        dots.append(_text(a, b - 8, f"{value:.3g}"))
        dots.append(_text(a, 155, f"{n_topics}"))
    return _svg(400, 170, line, *dots, _text(200, 168, f"number of topics; {name}"))


def _intervals(names: list[str], estimates: NDArray, low: NDArray, high: NDArray) -> str:
    """Draw estimates with their intervals, one below the other."""
    names = names[:N_ROWS]
    n = len(names)
    ends = np.concatenate([estimates[:n], low[:n], high[:n], [0.0]])
    places = 320 + _scaled(ends, 300, 10)
    zero = places[-1]
    elements = [f'<path d="M{zero:.1f} 0V{16 * n}" stroke="{GREY}"/>']
    for number, name in enumerate(names):
        y = 16 * number + 12
        dot, left, right = places[[number, n + number, 2 * n + number]]
        elements.append(_text(310, y, pictures.shorten(name, 48), "end"))
        if np.isfinite(left):
            line = f"M{left:.1f} {y - 4}H{right:.1f}"
            elements.append(f'<path d="{line}" stroke="{COLOURS[0]}"/>')
        elements.append(f'<circle cx="{dot:.1f}" cy="{y - 4}" r="3" fill="{COLOURS[0]}"/>')
    return _svg(640, 16 * n + 8, *elements)
