"""The tables of the study, and the targets ("bars") that annealvi should reach."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from statistics import mean

import numpy as np

from bench.markdown import table
from bench.studies.study.methods import AVERAGED, LAST, LONG_AVERAGED
from bench.studies.study.summary import Result, Results

SUBJECT = "annealvi"
ONE = "annealvi, one run"
THOROUGH = "annealvi, n_init=16"
SCIKIT_LEARN = "scikit-learn"
GENSIM = "gensim"
ARTM = "BigARTM"
MALLET = "pyrmallet"
TOPICA = "topica"
COLUMNS = [
    *(SUBJECT, THOROUGH, ONE, SCIKIT_LEARN, GENSIM),
    *(LAST, AVERAGED, LONG_AVERAGED, MALLET, TOPICA, ARTM),
]
ABSENT = "–"


def _by_method(
    results: Results,
    write: Callable[[Result], str],
    best: Callable[[Result], float] | None = None,
    methods: Sequence[str] = COLUMNS,
) -> str:
    """Make a table with a row for each cell and a column for each method; the best is bold."""
    columns = [name for name in methods if any(name in of_cell for of_cell in results.values())]
    rows = []
    for cell, of_cell in results.items():
        values = {name: best(of_cell[name]) for name in columns if best and name in of_cell}
        top = max(values, key=values.__getitem__, default=None)
        row = [str(cell)]
        for name in columns:
            text = write(of_cell[name]) if name in of_cell else ABSENT
            row.append(f"**{text}**" if name == top else text)
        rows.append(row)
    return table(["corpus, K", *columns], rows)


def held_out(results: Results) -> str:
    return _by_method(
        results,
        lambda r: f"{mean(r.test):.3f}" + ("†" if r.stand_in else ""),
        lambda r: mean(r.test),
    )


def seconds(results: Results) -> str:
    return _by_method(
        results,
        lambda r: f"{mean(r.seconds):.3g}" if r.seconds else ABSENT,
        methods=[SUBJECT, THOROUGH, ONE, SCIKIT_LEARN, LAST, LONG_AVERAGED, MALLET, TOPICA],
    )


def topics(results: Results) -> str:
    def write(r: Result) -> str:
        stability = ABSENT if np.isnan(r.stability) else f"{r.stability:.3f}"
        return f"{mean(r.npmi):.3f} / {mean(r.diversity):.2f} / {stability}"

    return _by_method(results, write, methods=[SUBJECT, ONE, SCIKIT_LEARN, AVERAGED, TOPICA])


def at_their_best(results: Results) -> str:
    """Make the table of cells in which every library was tuned; the best method comes first."""
    rows = []
    for cell, of_cell in results.items():
        if MALLET not in of_cell:
            continue
        for name, r in sorted(of_cell.items(), key=lambda item: -mean(item[1].test)):
            spread = f" ± {np.std(r.test, ddof=1):.3f}" if len(r.test) > 1 else ""
            stability = ABSENT if np.isnan(r.stability) else f"{r.stability:.2f}"
            rows.append(
                [
                    *(str(cell), name, ABSENT if "annealvi" in name else r.configuration),
                    f"{mean(r.test):.3f}{spread}" + ("†" if r.stand_in else ""),
                    f"{mean(r.seconds):.3g}" if r.seconds else ABSENT,
                    *(f"{mean(r.npmi):.3f}", f"{mean(r.diversity):.2f}", stability),
                ]
            )
    head = ["corpus, K", "method", "setting that validates best", "held out", "CPU seconds"]
    return table([*head, "NPMI", "diversity", "stability"], rows) if rows else ""


# ---------------------------------------------------------------------------------- bars


@dataclass(frozen=True)
class Bar:
    """A target for annealvi, compared with one other method."""

    text: str
    rival: str
    value: Callable[[Result, Result], float | None]
    least: float
    cells: int
    subject: str = SUBJECT
    average: bool = False
    topics: tuple[int, ...] = (20, 100, 500)


def _gain(key: str) -> Callable[[Result, Result], float | None]:
    def gain(a: Result, b: Result) -> float | None:
        ours = getattr(a, key)
        theirs = getattr(b, key)
        if isinstance(ours, list):
            return mean(ours) - mean(theirs) if ours and theirs else None
        return None if np.isnan(ours) or np.isnan(theirs) else ours - theirs

    return gain


def _saving(a: Result, b: Result) -> float | None:
    """The seconds of the other method divided by annealvi's."""
    return mean(b.seconds) / mean(a.seconds) if a.seconds and b.seconds else None


def _times(a: Result, b: Result) -> float:
    """Minus annealvi's seconds divided by the other method's, so that more is better."""
    return -mean(a.seconds) / mean(b.seconds)


TINY = 1e-12
BARS = [
    *(Bar("held out: ahead", rival, _gain("test"), TINY, 21) for rival in (SCIKIT_LEARN, GENSIM)),
    *(Bar("held out: ahead", rival, _gain("test"), TINY, 21) for rival in (LAST, TOPICA, ARTM)),
    Bar("held out: ahead", AVERAGED, _gain("test"), TINY, 21),
    Bar("held out: ahead", MALLET, _gain("test"), TINY, 21),
    *(
        Bar(text, LONG_AVERAGED, value, least, 12, subject, topics=(20, 100))
        for text, value, least, subject in (
            ("held out: behind by 0.005 at most", _gain("test"), -0.005, SUBJECT),
            ("held out: behind by 0.002 at most", _gain("test"), -0.002, THOROUGH),
            ("a tenth of the CPU seconds at most", _saving, 10.0, THOROUGH),
        )
    ),
    *(
        Bar("a third of the CPU seconds at most", rival, _saving, 3.0, 21)
        for rival in (LAST, TOPICA, ARTM)
    ),
    *(
        Bar(
            f"stability at K = {K}: at least theirs",
            rival,
            _gain("stability"),
            0.0,
            0,
            average=True,
            topics=(K,),
        )
        for rival in (LAST, AVERAGED)
        for K in (20, 100)
    ),
    Bar("stability: above", SCIKIT_LEARN, _gain("stability"), TINY, 19),
    *(Bar("NPMI: at least theirs", rival, _gain("npmi"), 0.0, 15) for rival in (LAST, AVERAGED)),
    Bar("NPMI: at least theirs", SCIKIT_LEARN, _gain("npmi"), 0.0, 20),
    *(
        Bar(
            "diversity: less by 0.05 at most, on average",
            r,
            _gain("diversity"),
            -0.05,
            0,
            average=True,
        )
        for r in (LAST, AVERAGED)
    ),
    Bar("held out: ahead by 0.006 on average", ONE, _gain("test"), 0.006, 0, average=True),
    Bar("held out: worse by 0.003 at most", ONE, _gain("test"), -0.003, 21),
    *(
        Bar(
            f"stability at K = {K}: ahead by {least:.2g}",
            ONE,
            _gain("stability"),
            least,
            0,
            average=True,
            topics=(K,),
        )
        for K, least in ((20, 0.05), (100, 0.04))
    ),
    *(
        Bar(f"{name}: not lower on average", ONE, _gain(key), 0.0, 0, average=True)
        for name, key in (("NPMI", "npmi"), ("diversity", "diversity"))
    ),
    Bar("CPU seconds: 2.5 times at most, on average", ONE, _times, -2.5, 0, average=True),
]


def bars(results: Results) -> str:
    """Make the table of targets, with the numbers of cells in which they are reached."""
    rows = []
    for bar in BARS:
        values = {}
        for cell, of_cell in results.items():
            here = cell.n_topics in bar.topics
            if here and bar.subject in of_cell and bar.rival in of_cell:
                value = bar.value(of_cell[bar.subject], of_cell[bar.rival])
                if value is not None:
                    values[cell] = value
        if not values:
            continue
        won = sum(value >= bar.least for value in values.values())
        average = mean(values.values())
        if bar.average:
            met = average >= bar.least
            open_ = False
            limit = "on average"
            got = f"{average:+.3f}"
        else:
            lost = len(values) - won
            met = won >= bar.cells
            open_ = not met and lost <= len(results) - bar.cells  # cells that were not run decide
            limit = f"{bar.cells} of {7 * len(bar.topics)}"
            got = f"{won} of {len(values)}"
        worst = min(values, key=values.__getitem__)
        extremes = f"{average:.3g}; {values[worst]:.3g} ({worst})"
        verdict = "yes" if met else "so far" if open_ else "**no**"
        rows.append([bar.subject, bar.text, bar.rival, limit, got, extremes, verdict])
    columns = ["ours", "bar", "against", "wanted", "got", "average; least (where)", "cleared"]
    return table(columns, rows) if rows else ""


def sections(results: Results) -> Iterable[tuple[str, str, str]]:
    """Yield the heading, the explanation and the table of each section that is not empty."""
    shown = [r for of_cell in results.values() for name, r in of_cell.items() if name in COLUMNS]
    spreads = [np.std(r.test, ddof=1) for r in shown if len(r.test) > 1]
    for heading, text, make in (
        (
            "The bars",
            "annealvi's value minus the other's, means over seeds. The value for CPU seconds is "
            "the other's divided by annealvi's or, against one run, minus the inverse. *So far*: "
            "too few combinations were run to decide.",
            bars,
        ),
        (
            "Every library at its best setting",
            "The corpora and K for which MALLET was run as well; the best method comes first. At "
            "K = 20 all settings of scikit-learn, gensim and topica were compared; at K = 100 "
            "those of gensim. For other corpora and K, fewer settings were compared.",
            at_their_best,
        ),
        (
            "Held-out log-likelihood per word",
            "Nats; standard deviations over seeds are at most "
            f"{max(spreads, default=0.0):.3f}; the best of a row is bold. † is explained above.",
            held_out,
        ),
        ("CPU seconds of a fit", "Means over seeds.", seconds),
        (
            "Coherence, diversity and stability",
            "NPMI of each topic's top 10 words in training documents / share of distinct words "
            "among the top 25 of all topics / mean best-match cosine of the topics of two seeds.",
            topics,
        ),
    ):
        content = make(results)
        if content:
            yield heading, text, content
