"""Pictures of topics and the report, of any summary; plotly's where it is installed."""

from __future__ import annotations

import functools
import io
from importlib.util import find_spec
from typing import Any

import matplotlib
import numpy as np
from matplotlib import pyplot

from annealvi import TemperedLDA, plot
from annealvi.plot import interactive
from annealvi.plot.report import write_report
from annealvi.topics import describe
from tests.fuzz.judge import anything
from tests.fuzz.target import Target
from tests.fuzz.trial import Trial
from tests.fuzz.values import Kind, choice, flag, mostly, odd, parameters, real, whole

TOPICS, WORDS = 3, 7
STRANGE = ("$x_$", "<b>&", "", "\\frac{", "a" * 200)


@functools.cache
def _fitted() -> tuple[Any, Any]:
    X = np.random.RandomState(0).poisson(1.0, (20, WORDS))
    lda = TemperedLDA(TOPICS, max_iter=2, random_state=0).fit(X)
    return lda, X


def _summary(t: Trial) -> Any:
    if t.chance(0.1):
        return odd(t)
    lda, X = _fitted()
    rows = X[: t.whole(1, 20)]
    rows = rows if rows.any() else X
    names = [f"{t.one_of(*STRANGE)}{number}" for number in range(WORDS)]
    texts = [t.one_of(*STRANGE, "\ud800") for _ in rows] if t.chance(0.5) else None
    summary = describe(lda, rows, names, texts=texts)
    summary.labels[0] = t.one_of("plain", *STRANGE[:2], "a" * 200)
    return summary


def _some(t: Trial, summary: Any, *values: Any) -> Any:
    """A value for each document, or something else."""
    n = len(getattr(summary, "shares", "12"))
    return odd(t) if t.chance(0.1) else [t.one_of(*values) for _ in range(n)]


TOPIC = choice(0, [1, 2], [0, 0], None, [3], [], "nothing")
COUNT = whole(1, 9, endless=True)
OPTIONS: dict[str, dict[str, Kind]] = {
    "plot_topic_words": dict(
        topics=TOPIC, n_words=COUNT, relevance=mostly(real(0.01, 1.0), None), n_columns=whole(1, 3)
    ),
    "plot_topic_map": dict(documents=flag),
    "plot_topic_heatmap": {},
    "plot_topic_dendrogram": {},
    "plot_topics_over_time": dict(topics=TOPIC, freq=choice("YE", "ME", "no")),
    "plot_topics_by_group": dict(topics=TOPIC),
    "plot_term_ranks": dict(topics=TOPIC, n_words=COUNT),
    "plot_stability": {},
    "plot_fit": {},
}
NEEDED = {
    "plot_topics_over_time": lambda t, summary: _some(t, summary, "2001", "2003-02-01", None),
    "plot_topics_by_group": lambda t, summary: _some(t, summary, "a", "$x_$", None),
    "plot_stability": lambda t, summary: t.one_of(summary, summary, _summary(t)),
}


def _draw(t: Trial, name: str) -> None:
    matplotlib.use("Agg")
    summary = _summary(t)
    needed = [NEEDED[name](t, summary)] if name in NEEDED else []
    given = parameters(t, OPTIONS[name]) if OPTIONS[name] else {}
    if hasattr(plot, name):
        answered, axes = t.call(
            name, getattr(plot, name), summary, *needed, check=anything, **given
        )
        if answered:
            figure = np.ravel(np.asarray(axes, dtype=object))[0].figure
            t.call("savefig", figure.savefig, io.BytesIO(), dpi=20, check=anything)
        pyplot.close("all")
    if find_spec("plotly") is not None:
        function = getattr(interactive, name)
        answered, figure = t.call(name, function, summary, *needed, check=anything, **given)
        if answered:
            t.call("to_json", figure.to_json, check=anything)


def _report(t: Trial) -> None:
    if find_spec("plotly") is None:
        return
    summary = _summary(t)
    table = dict(
        title=mostly(choice("a", *STRANGE), None),
        n_words=whole(1, 9),
        n_documents=whole(0, 5),
        relevance=mostly(real(0.01, 1.0), None),
    )
    given = parameters(t, table)
    if t.chance(0.5):
        given["times"] = _some(t, summary, "2001", "2003-02-01", None)
    if t.chance(0.5):
        given["groups"] = _some(t, summary, "a", "<b>", None)
    if t.chance(0.2):
        given["other"] = t.one_of(summary, _summary(t))
    path = t.one_of("topics.html", "topics.html", "", "none/topics.html", odd(t))
    t.call("write_report", write_report, summary, path, check=anything, allows=(OSError,), **given)


def _target(name: str) -> Target:
    return Target(name, functools.partial(_draw, name=name), frozenset([name]))


TARGETS = (
    *(_target(name) for name in OPTIONS),
    Target("report", _report, frozenset(["write_report"])),
)
