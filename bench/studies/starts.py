"""Several runs of a fit are merged, or the best run is kept: the gains and the CPU seconds.

    python -m bench.studies.starts curves [--corpora bbc_news ...] [--topics 20 100] [--seeds 3]
    python -m bench.studies.starts spread [--seeds 10]

Models are fitted to the training documents of splits.py on one thread, and scored on the validation
documents.  The settings of the score are chosen on a fit with one run.  `curves` prints means over
seeds and draws docs/record/runs.png; tomotopy and topica are fitted with one seed, if they are
installed.  `spread` prints the standard deviation over seeds.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterator
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from annealvi import TemperedLDA, metrics
from bench import CHECKOUT, parser
from bench.adapters import RIVALS
from bench.markdown import table
from bench.problems import Problem
from bench.studies import fold_in, splits

CORPORA = ("bbc_news", "20ng_etm", "reuters21578", "debian_desc")
NUMBERS = (2, 3, 5, 9)
HEADINGS = ["", "bound", "held out", "sd", "stability", "NPMI", "diversity", "CPU s"]
SWEEPS = {"tomotopy": (50, 100, 200, 400), "topica": (50, 200, 1000)}
PICTURE = CHECKOUT / "docs" / "record" / "runs.png"


class Solution(NamedTuple):
    """The topics E[beta], the bound and the CPU seconds of a fit."""

    topics: NDArray[np.float64]
    bound: float
    seconds: float


def fit(X: sparse.csr_matrix, n_topics: int, **parameters: Any) -> tuple[TemperedLDA, Solution]:
    began = time.process_time()
    lda = TemperedLDA(n_topics, **parameters).fit(X)
    seconds = time.process_time() - began
    topics = lda.components_ / lda.components_.sum(axis=1, keepdims=True, dtype=np.float64)
    return lda, Solution(topics, lda.bound_, seconds)


# ------------------------------------------------------------------------------ curves


def ours(X: sparse.csr_matrix, n_topics: int, seed: int) -> Iterator[tuple[str, Solution]]:
    """Yield fits with one run, with the best of several runs, and with several merged runs."""
    singles = [
        fit(X, n_topics, n_init=1, random_state=1000 * seed + n)[1] for n in range(max(NUMBERS))
    ]
    yield "one start", singles[0]
    for n in NUMBERS:
        best = min(singles[:n], key=lambda one: one.bound)
        yield f"best of {n}", best._replace(seconds=sum(one.seconds for one in singles[:n]))
    for n in NUMBERS:
        yield f"{n} merged", fit(X, n_topics, n_init=n, random_state=seed)[1]


def rivals(X: sparse.csr_matrix, n_topics: int) -> Iterator[tuple[str, Solution]]:
    """Yield fits by Gibbs sampling of several lengths: tomotopy's last sample, topica's average."""
    for library in RIVALS:
        if library.name not in SWEEPS or library.version() is None:
            continue
        problem = Problem("", X.shape[0], n_topics, 0.1, 0.1, 256)
        for sweeps in SWEEPS[library.name]:
            sampler = library.adapter().start(problem, X)
            began = time.process_time()
            sampler.one_pass(sweeps)
            seconds = time.process_time() - began
            yield f"{library.name}, {sweeps}", Solution(sampler.topics(), np.nan, seconds)


def curves(corpora: list[str], sizes: list[int], seeds: int) -> None:
    points_of_corpora: dict[tuple[str, int], dict[str, tuple[float, float, float]]] = {}
    for name in corpora:
        corpus = splits.load(name)
        for n_topics in sizes:
            fits: dict[str, list[Solution]] = defaultdict(list)
            for seed in range(seeds):
                for method, one in ours(corpus.train, n_topics, seed):
                    fits[method].append(one)
            for method, one in rivals(corpus.train, n_topics):
                fits[method].append(one)
            chosen = fold_in.choose(fits["one start"][0].topics, corpus.validation[:500])
            rows = []
            points: dict[str, tuple[float, float, float]] = {}
            points_of_corpora[name, n_topics] = points
            for method, several in fits.items():
                held_out = [chosen.score(one.topics, corpus.validation) for one in several]
                bound, seconds = (float(np.mean([one[i] for one in several])) for i in (1, 2))
                points[method] = seconds, bound, float(np.mean(held_out))
                rows.append([method, *_row(several, held_out, corpus.train, bound, seconds)])
            print(f"\n**{name}, K = {n_topics}**\n\n{table(HEADINGS, rows)}", flush=True)
    _draw(points_of_corpora)


def _stabilities(topics: list[NDArray[np.float64]]) -> list[float]:
    return [metrics.topic_stability(*pair) for pair in combinations(topics, 2)]


def _row(
    several: list[Solution],
    held_out: list[float],
    X: sparse.csr_matrix,
    bound: float,
    seconds: float,
) -> list[str]:
    topics = [one.topics for one in several]
    pairs = _stabilities(topics)
    npmi = np.mean([metrics.topic_coherence(one, X, measure="npmi") for one in topics])
    diversity = np.mean([metrics.topic_diversity(one, n_words=25) for one in topics])
    return [
        "" if np.isnan(bound) else f"{bound:.1f}",
        f"{np.mean(held_out):.4f}",
        f"{np.std(held_out):.4f}" if pairs else "",
        f"{np.mean(pairs):.3f}" if pairs else "",
        f"{npmi:.3f}",
        f"{diversity:.3f}",
        f"{seconds:.2f}",
    ]


def _draw(points_of_corpora: dict[tuple[str, int], dict[str, tuple[float, float, float]]]) -> None:
    """Draw the bound and the held-out likelihood against CPU seconds, a column for each corpus."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
    from matplotlib.ticker import FixedLocator, NullLocator

    styles = {
        "one start": ("k", "o"),
        "best of": ("#0072b2", "s"),
        "merged": ("#d55e00", "o"),
        "tomotopy": ("#009e73", "^"),
        "topica": ("#cc79a7", "*"),
    }
    corpora = list(dict.fromkeys(name for name, _ in points_of_corpora))
    sizes = list(dict.fromkeys(n_topics for _, n_topics in points_of_corpora))
    n_rows = 2 * len(sizes)
    fig, axes = plt.subplots(
        n_rows,
        len(corpora),
        figsize=(3 * len(corpora), 2.1 * n_rows),
        squeeze=False,
        layout="constrained",
    )
    for (name, n_topics), points in points_of_corpora.items():
        row = 2 * sizes.index(n_topics)
        column = corpora.index(name)
        for value, label in ((1, "bound"), (2, "held out")):
            ax = axes[row + value - 1, column]
            for kind, (colour, marker) in styles.items():
                line = [point for method, point in points.items() if kind in method]
                seconds = [point[0] for point in line]
                values = [point[value] for point in line]
                ax.plot(seconds, values, marker=marker, color=colour, label=kind, ms=4, lw=1)
            ax.set_xscale("log")
            ax.xaxis.set_major_locator(FixedLocator([0.3, 1, 3, 10, 30, 100]))
            ax.xaxis.set_major_formatter("{x:g}")
            ax.xaxis.set_minor_locator(NullLocator())
            if value == 2:  # short runs of topica have much lower values
                others = [point[2] for method, point in points.items() if "topica" not in method]
                margin = 0.1 * (max(others) - min(others))
                ax.set_ylim(min(others) - margin, max(others) + margin)
            ax.set_title(f"{name}, K = {n_topics}", fontsize=9)
            if not column:
                ax.set_ylabel(f"{label}, nats a word" if value == 2 else "bound (perplexity)")
            if row + value == n_rows:
                ax.set_xlabel("CPU seconds")
    handles, labels = axes[1, 0].get_legend_handles_labels()
    fig.legend(handles, labels, ncols=len(styles), loc="outside lower center")
    fig.savefig(PICTURE, dpi=110)


# ------------------------------------------------------------------------------ spread


def spread(corpora: list[str], sizes: list[int], seeds: int) -> None:
    rows = []
    for name in corpora:
        corpus = splits.load(name)
        for n_topics in sizes:
            cells = []
            chosen = None
            for n_init in (1, "auto"):
                fits = [
                    fit(corpus.train, n_topics, n_init=n_init, random_state=seed)[1]
                    for seed in range(seeds)
                ]
                chosen = chosen or fold_in.choose(fits[0].topics, corpus.validation[:500])
                held_out = [chosen.score(one.topics, corpus.validation) for one in fits]
                bounds = [one.bound for one in fits]
                pairs = [
                    metrics.topic_stability(a.topics, b.topics) for a, b in combinations(fits, 2)
                ]
                cells.append((np.std(held_out), np.std(bounds), np.mean(pairs)))
            one, merged = cells
            rows.append(
                [f"{name}, {n_topics}"]
                + [f"{a:.{d}f} / {b:.{d}f}" for a, b, d in zip(one, merged, (4, 1, 3), strict=True)]
            )
    headings = ["one start / the default", "sd of held out", "sd of bound", "stability"]
    print(table(headings, rows))


def main() -> None:
    options = parser(__doc__)
    options.add_argument("what", choices=["curves", "spread"])
    options.add_argument("--corpora", nargs="+", default=CORPORA, choices=list(splits.CORPORA))
    options.add_argument("--topics", nargs="+", type=int)
    options.add_argument("--seeds", type=int)
    arguments = options.parse_args()
    if arguments.what == "curves":
        curves(arguments.corpora, arguments.topics or [20, 100], arguments.seeds or 3)
    else:
        spread(arguments.corpora, arguments.topics or [20], arguments.seeds or 10)


if __name__ == "__main__":
    main()
