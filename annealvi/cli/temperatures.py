"""``annealvi demo --temperatures``: fits with and without cooling, and a figure."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.decomposition import LatentDirichletAllocation
from sklearn.model_selection import train_test_split

from annealvi._kernels import instruction_set
from annealvi._optional import import_optional
from annealvi.datasets import load_arxiv_abstracts
from annealvi.files import replacing
from annealvi.inference import Monitor
from annealvi.lda import TemperedLDA
from annealvi.metrics import HeldOut, document_completion, topic_coherence, topic_stability
from annealvi.plot import plot_learning_curves, plot_temperature

N_TOPICS = 30
#: Rows of the table, and the parameters of TemperedLDA besides the number of topics.
METHODS: dict[str, dict[str, Any]] = {
    "annealvi, the default": {},
    "the same without cooling": {"temperature": 1},
    "scikit-learn's numbers": {"preset": "sklearn", "learning_method": "online"},
}


@dataclass
class _Result:
    """One fit: its scores and its running time."""

    heldout: float
    coherence: float
    seconds: float
    estimator: Any


class _Watch:
    """A callback that records the learning curve and counts its own time."""

    def __init__(self, held_out: Any) -> None:
        self.curve = HeldOut(held_out)
        self.seconds = 0.0

    def __call__(self, estimator: TemperedLDA, monitor: Monitor) -> None:
        start = time.perf_counter()
        self.curve(estimator, monitor)
        self.seconds += time.perf_counter() - start


def _fit(estimator: Any, train: Any, held_out: Any, watch: _Watch | None = None) -> _Result:
    start = time.perf_counter()
    estimator.fit(train)
    seconds = time.perf_counter() - start - (watch.seconds if watch else 0.0)
    score = document_completion(estimator, held_out)
    coherence = topic_coherence(estimator, train).mean()
    return _Result(float(score), float(coherence), seconds, estimator)


def _row(name: str, results: Sequence[_Result]) -> str:
    def spread(values: list[float], digits: int) -> str:
        if len(values) == 1:
            return f"{values[0]:.{digits}f}"
        return f"{np.mean(values):.{digits}f} ± {np.std(values, ddof=1):.{digits}f}"

    pairs = list(combinations([r.estimator for r in results], 2))
    stability = f"{np.mean([topic_stability(*pair) for pair in pairs]):.2f}" if pairs else ""
    return (
        f"{name:<26}{spread([r.heldout for r in results], 3):>17}"
        f"{spread([r.coherence for r in results], 3):>16}{stability:>10}"
        f"{spread([r.seconds for r in results], 2):>14}"
    )


def temperatures(n_seeds: int = 3, output: str = "annealvi_demo.png") -> None:
    """Fit LDA to the bundled corpus in three ways, print scores of the topics, draw a figure."""
    matplotlib = import_optional("matplotlib", "demo", "annealvi demo --temperatures")
    matplotlib.use("Agg")
    tqdm = import_optional("tqdm", "demo", "annealvi demo --temperatures").tqdm
    _check_output(output)
    abstracts = load_arxiv_abstracts()
    train, held_out = train_test_split(abstracts.data, test_size=300, random_state=0)
    print(
        f"{train.shape[0]} arXiv abstracts, {held_out.shape[0]} held out, {train.shape[1]} words; "
        f"K = {N_TOPICS} topics, one thread, {instruction_set()} kernels"
    )
    fits: dict[str, list[_Result]] = {name: [] for name in METHODS}
    with tqdm(total=len(METHODS) * n_seeds, unit="fit", leave=False) as bar:
        for name, parameters in METHODS.items():
            for seed in range(n_seeds):
                bar.set_description(f"{name}, seed {seed}")
                watch = _Watch(held_out)
                lda = TemperedLDA(N_TOPICS, **parameters, random_state=seed, callback=watch)
                fits[name].append(_fit(lda, train, held_out, watch))
                bar.update()
    print("and scikit-learn's LatentDirichletAllocation itself, once ...", flush=True)
    theirs = LatentDirichletAllocation(N_TOPICS, learning_method="online", random_state=0)
    rival = _fit(theirs, train, held_out)

    print()
    print(f"{'':<26}{'held-out log-lik.':>17}{'coherence':>16}{'stability':>10}{'seconds':>14}")
    print(f"{'':<26}{'nats a word':>17}{'NPMI':>16}{'':>10}{'a fit':>14}")
    for name, results in fits.items():
        print(_row(name, results))
    print(_row("scikit-learn", [rival]))
    if n_seeds > 1:
        print(
            f"(mean ± standard deviation over {n_seeds} seeds, scikit-learn one; stability: how "
            "alike the topics\nof two seeds are, 1 if the same)"
        )

    best = max(fits["annealvi, the default"], key=lambda result: result.heldout).estimator
    print("\nTopics of the default fit that predicts best, largest first:")
    order = np.argsort(-best.components_.sum(axis=1, dtype=np.float64))
    words = best.top_words(8, abstracts.feature_names)
    for rank, topic in enumerate(order, start=1):
        print(f"{rank:>4}  {' '.join(words[topic])}")

    _draw(fits, rival, output)
    print(f"\nFigure: {output}")


def _check_output(output: str) -> None:
    """Raise OSError before the fits if the figure cannot be written after them."""
    plt = import_optional("matplotlib.pyplot", "demo", "annealvi demo --temperatures")
    formats = plt.figure().canvas.get_supported_filetypes()
    plt.close("all")
    path = Path(output)
    if path.suffix[1:].lower() not in formats:
        raise OSError(
            f"cannot write the figure to {output!r}: its ending must be one of "
            f"{', '.join('.' + name for name in sorted(formats))}"
        )
    there = path.exists()
    with path.open("ab"):  # raises OSError if the file cannot be written
        pass
    if not there:
        path.unlink()


def _draw(fits: dict[str, list[_Result]], rival: _Result, output: str) -> None:
    plt = import_optional("matplotlib.pyplot", "demo", "annealvi demo --temperatures")
    figure, (left, middle, right) = plt.subplots(1, 3, figsize=(13, 3.8), layout="constrained")
    for name, results in fits.items():
        plot_temperature(results[0].estimator, ax=left, label=name)
    left.set_title("Temperature")
    left.legend()
    estimators = {name: [r.estimator for r in results] for name, results in fits.items()}
    plot_learning_curves(estimators, ax=middle)
    middle.set_title("Over passes")
    plot_learning_curves(estimators, over="seconds", ax=right)
    right.plot(rival.seconds, rival.heldout, "k*", ms=10, label="scikit-learn, end of fit")
    right.set_xscale("log")
    right.set_title("Over seconds")
    right.legend()
    with replacing(Path(output)) as partial:
        figure.savefig(partial, dpi=120, format=Path(output).suffix[1:].lower())
    plt.close(figure)
