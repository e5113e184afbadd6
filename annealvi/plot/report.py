"""The report, which is an HTML file with the contents of a summary of topics.

The file contains its data (words, documents, shares and figures) as JSON, which report.js shows.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from html import escape
from importlib.resources import files
from numbers import Integral, Real
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from annealvi._optional import import_optional
from annealvi.checks import Interval, validated
from annealvi.files import replacing
from annealvi.plot import interactive, pictures

#: Headlines of the sections that are shown only if their data exist.
SECTIONS = {"time": "Over time", "groups": "Groups", "stability": "Another fit", "fit": "The fit"}
#: The possible positions of the relevance slider.
STEPS = np.arange(21) / 20
#: The number of topics in the figure of shares over time.
N_COURSES = 8
#: The number of listed neighbours of a topic.
N_NEAR = 5
#: Other topics of a document are listed if they have at least SMALLEST_SHARE, up to N_OTHERS.
SMALLEST_SHARE = 0.05
N_OTHERS = 3
#: The maximum numbers of characters of a text and of a title in the report.
TEXT_LENGTH = 2000
TITLE_LENGTH = 300

#: The documents that can be searched are a sample if there are more of them, or more bytes.
N_READ, READ_BYTES = 5000, 20_000_000
#: About how many bytes the number, the topic and the percentage of a word take.
BYTES_OF_WORD = 13

#: Names of measures of quality, and how to read them.
QUALITY = {
    "held_out_log_likelihood": (
        "Held-out log-likelihood per word",
        "How well the topics predict words of documents that were not fitted. "
        "Closer to 0 is better.",
    ),
    "coherence": (
        "Coherence (NPMI)",
        "How often the top words of a topic occur in the same documents, as the mean over topics. "
        "The coherence is 1 if they always do, and 0 if they do as often as by chance.",
    ),
    "diversity": (
        "Diversity",
        "Share of distinct words among the top words of all topics. The diversity is 1 if no two "
        "topics share a top word.",
    ),
    "stability": (
        "Stability",
        "How similar the topics of a second fit are. The stability is 1 if both fits have the same "
        "topics.",
    ),
}


@validated(
    path=[str, PathLike],
    title=[str, None],
    n_words=[Interval(Integral, 1, 200, closed="both")],
    n_documents=[Interval(Integral, 0, 200, closed="both")],
    relevance=[Interval(Real, 0, 1, closed="both"), None],
)
def write_report(
    summary: Any,
    path: str | PathLike,
    *,
    title: str | None = None,
    times: ArrayLike | None = None,
    freq: Any = "year",
    groups: ArrayLike | None = None,
    other: Any = None,
    n_words: int = 20,
    n_documents: int = 10,
    relevance: float | None = None,
) -> None:
    """Write a report; :meth:`TopicSummary.write_report` describes the parameters."""
    pictures.check_summary(summary)
    if other is not None:
        pictures.check_summaries(summary, other, ("summary", "other"))
    path = Path(path)
    offline = import_optional("plotly.offline", "The report", "pandas")
    if path.is_dir() or not path.parent.is_dir():
        raise OSError(
            f"The report cannot be written to {str(path)!r}. The path must be a file in a folder "
            "that exists."
        )
    if relevance is None:
        relevance = summary.relevance
    data = records(summary, n_words, n_documents, relevance, times, freq, groups)
    data["figures"] = figures(summary, times, freq, groups, other)
    sections = {name: headline for name, headline in SECTIONS.items() if name in data["figures"]}
    plotly_script = offline.get_plotlyjs()
    page_script = _resource("report.js")
    page = fill(
        _resource("page.html"),
        {
            "title": escape(title or "Topics"),
            "facts": _facts(summary),
            "css": _resource("report.css"),
            "sections": " ".join(sections),
            "navigation": _navigation(sections, documents=bool(data["reading"]["numbers"])),
            "table": _table(summary),
            "quality": _quality(summary),
            "data": as_script_data(data),
            "policy": _policy([plotly_script, page_script]),
            "plotly": plotly_script,
            "script": page_script,
        },
    )
    with replacing(path) as partial:
        # a lone surrogate, which UTF-8 cannot represent, is replaced by a question mark
        partial.write_text(page, encoding="utf-8", errors="replace", newline="\n")


def fill(template: str, values: dict[str, str]) -> str:
    """Replace each ``{{name}}`` in a template; the inserted values are not changed."""
    return re.sub(r"\{\{(\w+)\}\}", lambda slot: values[slot[1]], template)


def as_script_data(data: Any) -> str:
    """Convert data to JSON that cannot end the script element which contains it."""
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c")


def _resource(name: str) -> str:
    """Return the text of a file that is installed with the package."""
    return files("annealvi.plot").joinpath(name).read_text(encoding="utf-8")


def _policy(scripts: list[str]) -> str:
    """Return a content security policy that allows only these scripts."""
    digests = [base64.b64encode(hashlib.sha256(s.encode()).digest()).decode() for s in scripts]
    allowed = " ".join(f"'sha256-{digest}'" for digest in digests)
    return (
        f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; "
        "img-src data: blob:; base-uri 'none'; form-action 'none'"
    )


def _navigation(sections: dict[str, str], *, documents: bool) -> str:
    shown = {"topics": "Topics", **sections, "table": "All topics", "quality": "Quality"}
    if documents:
        shown["reading"] = "Documents"
    if "fit" in shown:
        shown["fit"] = shown.pop("fit")  # moved to the end, as on the page
    return "".join(f'<a href="#{name}">{headline}</a>' for name, headline in shown.items())


def _facts(summary: Any) -> str:
    n_documents, n_topics = summary.shares.shape
    return (
        f"{n_topics:,} topics · {n_documents:,} documents · "
        f"{len(summary.feature_names):,} different words · "
        f"{summary.lengths.sum():,.0f} words in total · checksum of the topics {summary.checksum}"
    )


def _table(summary: Any) -> str:
    trust = summary.trust
    rows = []
    for k in pictures.by_size(summary):
        topic = summary.table.iloc[k]
        cells = [f"{topic['share']:.1%}", f"{topic['documents']}"]
        cells += [_short(topic[name]) for name in ("coherence", "exclusivity", "certainty")]
        reliability = ("overlap", "distinctness", "probability", "found_again", "similarity")
        cells += [_short(trust[name][k]) for name in reliability]
        numbers = "".join(f'<td class="number">{cell}</td>' for cell in cells)
        reason = escape(clean(trust["reason"][k], 400))
        weak = f'<p class="weak">{reason[0].upper()}{reason[1:]}.</p>' if reason else ""
        rows.append(
            f'<tr data-topic="{k}"><td class="number">{k}</td><td class="label">'
            f'<a href="#topic-{k}">{escape(clean(topic["label"], 400))}</a>{weak}</td>'
            f'<td class="words">{escape(clean(topic["words"], 400))}</td>{numbers}</tr>'
        )
    return "\n".join(rows)


def _short(value: float) -> str:
    return f"{value:.2f}" if np.isfinite(value) else "–"


def _quality(summary: Any) -> str:
    rows = []
    for key, value in summary.quality.items():
        name, meaning = QUALITY.get(key, (key.replace("_", " "), ""))
        rows.append(
            f'<tr><th scope="row">{escape(name)}</th><td class="number">{value:.3f}</td>'
            f"<td>{escape(meaning)}</td></tr>"
        )
    return "\n".join(rows)


# ------------------------------------------------------------------------------- data


def records(
    summary: Any,
    n_words: int,
    n_documents: int,
    relevance: float,
    times: Any,
    freq: Any,
    groups: Any,
) -> dict[str, Any]:
    """Return the data of the report, without its figures and its title."""
    words = candidates(summary, n_words)
    topic_map = summary.map()
    used = np.unique(np.concatenate(words))
    distances = summary.similar().distances
    weak = summary.trust["reason"]
    topics = []
    documents: dict[int, Any] = {}
    for k, label in enumerate(summary.labels):
        numbers = summary.documents(k, n_documents).attrs["positions"] if n_documents else []
        documents |= {number: document(summary, number) for number in numbers}
        near = [int(j) for j in np.argsort(distances[k], kind="stable") if j != k]
        topics.append(
            {
                "label": clean(label, 200),
                "share": _rounded(summary.topic_shares[k]),
                "weak": clean(weak[k], 400),
                "words": np.searchsorted(used, words[k]).tolist(),
                "logs": _rounded(np.log(summary.folded(k)[words[k]])),
                "documents": numbers,
                "near": near[:N_NEAR],
            }
        )
    all_topics = range(len(topics))
    courses = None if times is None else pictures.over_time(summary, times, freq, all_topics)
    by_group = None if groups is None else pictures.by_group(summary, groups, all_topics)
    numbers = readable_documents(summary) if n_documents else []
    read_words: dict[str, int] = {}
    for number in numbers:
        record = documents.setdefault(number, document(summary, number))
        record["words"] = words_of(summary.document(number), read_words)
    if groups is not None:
        if summary.index is not None and hasattr(groups, "reindex"):
            groups = groups.reindex(summary.index)
        for number, group in enumerate(groups):
            if number in documents:
                documents[number]["group"] = clean(group, 80)
    return {
        "relevance": float(relevance),
        "nWords": int(n_words),
        "vocabulary": [clean(word, 60) for word in summary.feature_names[used]],
        "logs": _rounded(np.log(summary.folded_word_shares[used])),
        "topics": topics,
        "order": pictures.by_size(summary),
        "map": {"x": _rounded(topic_map["x"]), "y": _rounded(topic_map["y"])},
        "documents": dict(sorted(documents.items())),
        "courses": _shares(courses),
        "groups": _shares(by_group),
        "reading": {
            "numbers": numbers,
            "words": [clean(word, 60) for word in read_words],
            "nDocuments": len(summary.shares),
        },
    }


def candidates(summary: Any, n_words: int) -> list[NDArray[np.intp]]:
    """Return the columns of the words of each topic for all positions of the slider."""
    overall = np.log(summary.folded_word_shares)
    columns_of_topics = []
    for k in range(len(summary.topics)):
        topic = summary.folded(k)
        columns = np.flatnonzero(topic > 0)
        logs = np.log(topic[columns])
        top = {0}
        for step in STEPS:
            order = np.argsort((1 - step) * overall[columns] - logs, kind="stable")
            top.update(order[:n_words].tolist())
        columns_of_topics.append(columns[sorted(top)])
    return columns_of_topics


def document(summary: Any, number: int) -> dict[str, Any]:
    """Return the title and text of a document, and the topics with large shares in it."""
    shares = summary.shares[number]
    order = np.argsort(-shares, kind="stable")[: N_OTHERS + 1]
    largest = [[int(k), _rounded(shares[k])] for k in order if shares[k] >= SMALLEST_SHARE]
    record: dict[str, Any] = {"topics": largest}
    if summary.titles is not None:
        record["title"] = clean(summary.titles[number], TITLE_LENGTH)
    if summary.texts is not None:
        record["text"] = clean(summary.texts[number], TEXT_LENGTH)
    return record


def readable_documents(summary: Any) -> list[int]:
    """Return the numbers of the documents that can be searched: all with a text, or a sample."""
    if summary.texts is None:
        return []
    n_documents = len(summary.texts)
    numbers = np.linspace(0, n_documents - 1, min(n_documents, N_READ)).astype(int)
    n_bytes = sum(min(len(summary.texts[number]), TEXT_LENGTH) for number in numbers)
    n_bytes += BYTES_OF_WORD * np.diff(summary.counts.indptr)[numbers].sum()
    return numbers[:: int(np.ceil(n_bytes / READ_BYTES)) or 1].tolist()


def words_of(document: Any, words: dict[str, int]) -> list[list[int]]:
    """Return the number in `words`, the topic and its percentage for each word of a document."""
    best = document.responsibilities.argmax(axis=1)
    percent = np.rint(100 * document.responsibilities.max(axis=1, initial=0.0))
    numbers = [words.setdefault(word, len(words)) for word in document.words.tolist()]
    return np.column_stack([numbers, best, percent]).astype(int).tolist()


def _shares(drawn: pictures.Courses | None) -> dict[str, Any] | None:
    """Return the shares of all topics in periods or groups; None if there are none."""
    if drawn is None:
        return None
    return {
        "labels": [clean(label, 80) for label in drawn.labels],
        "nDocuments": drawn.n_documents.tolist(),
        "shares": _rounded(drawn.values.T),
        "margins": _rounded(drawn.margins.T),
        "ofRefits": None if drawn.of_refits is None else _rounded(drawn.of_refits.T),
    }


def figures(
    summary: Any, times: Any, freq: Any, groups: Any, other: Any
) -> dict[str, dict[str, Any]]:
    """Return the plotly figures by the names of their sections."""
    drawn = {"map": interactive.plot_topic_map(summary)}
    if times is not None:
        drawn["time"] = interactive.plot_topics_over_time(
            summary, times, freq=freq, topics=pictures.by_size(summary)[:N_COURSES]
        )
    if groups is not None:
        drawn["groups"] = interactive.plot_topics_by_group(summary, groups)
    if other is not None:
        drawn["stability"] = interactive.plot_stability(summary, other)
    if summary.history and any(map(len, summary.history.values())):  # not after an edit of topics
        drawn["fit"] = interactive.plot_fit(summary)
    for figure in drawn.values():  # the page sets these
        figure.layout.template = None
        figure.layout.margin = None
    return {name: json.loads(figure.to_json()) for name, figure in drawn.items()}


def clean(text: Any, length: int) -> str:
    """Truncate a text to a length, and replace characters that UTF-8 cannot represent."""
    text = str(text)
    cut = text if len(text) <= length else text[: length - 1] + "…"
    return cut.encode("utf-8", "replace").decode("utf-8")


def _rounded(values: Any) -> Any:
    """Round numbers to five decimals; NaN and infinity become None."""
    if np.ndim(values):
        return [_rounded(value) for value in values]
    return round(float(values), 5) if np.isfinite(values) else None
