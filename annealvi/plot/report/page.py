"""Puts the report together: one HTML file that needs no other."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
from html import escape
from importlib.resources import files
from numbers import Integral, Real
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils._param_validation import validate_params

from annealvi._optional import import_optional
from annealvi.checks import Interval
from annealvi.files import replacing
from annealvi.plot import pictures
from annealvi.plot.report import records


@validate_params(
    {
        "path": [str, os.PathLike],
        "title": [str, None],
        "n_words": [Interval(Integral, 1, 200, closed="both")],
        "n_documents": [Interval(Integral, 0, 200, closed="both")],
        "relevance": [Interval(Real, 0, 1, closed="both"), None],
    },
    prefer_skip_nested_validation=True,
)
def write_report(
    summary: Any,
    path: str | os.PathLike,
    *,
    title: str | None = None,
    times: ArrayLike | None = None,
    freq: Any = "YE",
    groups: ArrayLike | None = None,
    other: Any = None,
    n_words: int = 20,
    n_documents: int = 10,
    relevance: float | None = None,
) -> None:
    """Write a report of topics: one HTML file that opens in a browser without a network.

    It has a map of the topics; for each topic its words, with a slider for their relevance, its
    documents, its course over time and its share of each class; a table of all topics; the
    quality of the model; and how the fit went.  Texts are shown as they are, whatever they
    contain.  The file holds the first 2,000 characters of those documents that it shows.

    Parameters
    ----------
    summary : TopicSummary
        From :func:`annealvi.topics.describe`.
    path : path
        The file to write.  It is replaced only once the report is complete.
    title : str, optional
        The headline.
    times : array-like of shape (n_documents,), optional
        Date or time of each document.
    freq : str, timedelta or pandas.DateOffset, default="YE"
        Length of the periods of `times`, as in pandas: ``"YE"``, ``"QE"``, ``"ME"``, ``"W"``;
        see :meth:`TopicSummary.over`.
    groups : array-like of shape (n_documents,), optional
        The class of each document.
    other : TopicSummary, optional
        Of a second fit of the same words, to compare topics with.
    n_words : int, default=20
        Words shown of a topic.
    n_documents : int, default=10
        Documents shown of a topic.
    relevance : float, optional
        Where the slider stands first; by default that of :meth:`TopicSummary.words`.

    Raises
    ------
    ImportError
        If plotly or pandas is not installed.
    OSError
        If the file cannot be written.
    ValueError
        If a parameter is outside its range; if the number of `times` or `groups` is not the
        number of documents.
    """
    pictures.check_summary(summary)
    if other is not None:
        pictures.check_summaries(summary, other, ("summary", "other"))
    path = Path(path)
    offline = import_optional("plotly.offline", "report", "The report")
    if path.is_dir() or not path.parent.is_dir():
        raise OSError(f"cannot write the report to {str(path)!r}: it must be a file in a folder.")
    relevance = summary.relevance if relevance is None else relevance
    held = records.records(summary, n_words, n_documents, relevance, times, freq, groups)
    held["figures"] = records.figures(summary, times, freq, groups, other)
    page = fill(
        _own("page.html"),
        {
            "title": escape(title or "Topics"),
            "facts": _facts(summary),
            "css": _own("report.css"),
            "sections": " ".join(sections(held)),
            "navigation": _navigation(held),
            "table": _table(summary),
            "quality": _quality(summary),
            "data": as_script_data(held),
            "policy": _policy(scripts := [offline.get_plotlyjs(), _own("report.js")]),
            "plotly": scripts[0],
            "script": scripts[1],
        },
    )
    with replacing(path) as partial:
        # half of a pair of surrogates, which UTF-8 has not, becomes a question mark
        partial.write_text(page, encoding="utf-8", errors="replace", newline="\n")


#: Headlines of the sections that depend on what is known.
SECTIONS = {
    "time": "Over time",
    "groups": "Classes",
    "stability": "Another fit",
    "fit": "The fit",
}


def sections(held: dict[str, Any]) -> list[str]:
    """Those of `SECTIONS` for which there is a figure."""
    return [name for name in SECTIONS if name in held["figures"]]


def fill(template: str, values: dict[str, str]) -> str:
    """Replace each ``{{name}}`` in a template once; what a value contains stays as it is."""
    return re.sub(r"\{\{(\w+)\}\}", lambda slot: values[slot[1]], template)


def as_script_data(data: Any) -> str:
    """JSON within a script element: nothing in it can end the element."""
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c")


def _own(name: str) -> str:
    return files("annealvi.plot.report").joinpath(name).read_text(encoding="utf-8")


def _policy(scripts: list[str]) -> str:
    """What the browser may run and load: these scripts, and nothing from elsewhere."""
    digests = [base64.b64encode(hashlib.sha256(s.encode()).digest()).decode() for s in scripts]
    allowed = " ".join(f"'sha256-{digest}'" for digest in digests)
    return (
        f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; "
        "img-src data: blob:; base-uri 'none'; form-action 'none'"
    )


def _navigation(held: dict[str, Any]) -> str:
    names = {name: SECTIONS[name] for name in sections(held)}
    shown = {"topics": "Topics", **names, "table": "All topics", "quality": "Quality"}
    if "fit" in shown:
        shown["fit"] = shown.pop("fit")  # last, as on the page
    return "".join(f'<a href="#{name}">{headline}</a>' for name, headline in shown.items())


def _facts(summary: Any) -> str:
    n_documents, n_topics = summary.shares.shape
    return (
        f"{n_topics:,} topics · {n_documents:,} documents · "
        f"{len(summary.feature_names):,} different words · "
        f"{summary.lengths.sum():,.0f} words in all"
    )


def _table(summary: Any) -> str:
    """The rows of the table of all topics, largest first."""
    table = summary.table
    rows = []
    for k in pictures.by_size(summary):
        row = table.iloc[k]
        numbers = "".join(
            f'<td class="number">{value}</td>'
            for value in (
                f"{row['share']:.1%}",
                *(_short(row[name]) for name in ("coherence", "exclusivity", "certainty")),
            )
        )
        label, words = (escape(records.clean(row[name], 400)) for name in ("label", "words"))
        rows.append(
            f'<tr data-topic="{k}"><td class="number">{k}</td>'
            f'<td><a href="#topic-{k}">{label}</a></td><td class="words">{words}</td>{numbers}</tr>'
        )
    return "\n".join(rows)


def _short(value: float) -> str:
    return f"{value:.2f}" if np.isfinite(value) else "–"


def _quality(summary: Any) -> str:
    return "\n".join(
        f'<tr><th scope="row">{escape(name)}</th><td class="number">{value:.3f}</td>'
        f"<td>{escape(meaning)}</td></tr>"
        for name, value, meaning in records.quality(summary)
    )
