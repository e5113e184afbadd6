"""The command line: ``annealvi demo``."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.decomposition import LatentDirichletAllocation
from sklearn.model_selection import train_test_split

from annealvi import TemperedLDA, __version__
from annealvi._kernels import instruction_set, openmp_enabled
from annealvi._optional import import_optional
from annealvi.datasets import load_arxiv_abstracts
from annealvi.inference import Monitor
from annealvi.metrics import HeldOut, document_completion
from annealvi.plot import plot_learning_curves, plot_temperature

#: Small minibatches and steps that start small, because the corpus is small: where both
#: methods predict about as well as at any step sizes tried (docs/evidence.md).
SETTINGS: dict[str, Any] = dict(
    n_components=30,
    doc_topic_prior=0.1,
    topic_word_prior=0.01,
    learning_method="online",
    learning_offset=256,
    batch_size=32,
    max_iter=10,
)
METHODS: dict[str, float | str] = {"plain SVI (T = 1)": 1, "annealed": "annealed"}


@dataclass
class _Result:
    """One fit: what it reached and what it took."""

    heldout: float
    elbo: float
    seconds: float
    estimator: Any


class _Watch:
    """A callback that records the learning curve, moves the bar and counts its own time."""

    def __init__(self, held_out: Any, bar: Any) -> None:
        self.curve = HeldOut(held_out)
        self.bar = bar
        self.seconds = 0.0

    def __call__(self, estimator: TemperedLDA, monitor: Monitor) -> None:
        start = time.perf_counter()
        self.curve(estimator, monitor)
        self.bar.update()
        self.seconds += time.perf_counter() - start


def _fit(estimator: Any, train: Any, held_out: Any, watch: _Watch | None = None) -> _Result:
    start = time.perf_counter()
    estimator.fit(train)
    seconds = time.perf_counter() - start - (watch.seconds if watch else 0.0)
    score = document_completion(estimator, held_out)
    return _Result(float(score), -float(np.log(estimator.bound_)), seconds, estimator)


def _row(name: str, results: Sequence[_Result]) -> str:
    def spread(values: list[float], digits: int) -> str:
        if len(values) == 1:
            return f"{values[0]:.{digits}f}"
        return f"{np.mean(values):.{digits}f} ± {np.std(values, ddof=1):.{digits}f}"

    return (
        f"{name:<28}{spread([r.heldout for r in results], 3):>18}"
        f"{spread([r.elbo for r in results], 3):>18}"
        f"{spread([r.seconds for r in results], 2):>16}"
    )


def demo(n_seeds: int = 3, output: str = "annealvi_demo.png") -> None:
    """Fit plain and annealed LDA to the bundled corpus, print what they reach, draw a figure.

    Parameters
    ----------
    n_seeds : int, default=3
        Fits of each method, from random states 0, 1, ...
    output : str, default="annealvi_demo.png"
        Where the figure goes.

    Raises
    ------
    ImportError
        Without matplotlib or tqdm; the message names the extra.
    OSError
        If the figure could not be written to `output`.
    """
    matplotlib = import_optional("matplotlib", "demo", "annealvi demo")
    matplotlib.use("Agg")
    _check_output(output)
    tqdm = import_optional("tqdm", "demo", "annealvi demo").tqdm
    abstracts = load_arxiv_abstracts()
    train, held_out = train_test_split(abstracts.data, test_size=300, random_state=0)
    print(
        f"{train.shape[0]} arXiv abstracts, {held_out.shape[0]} held out, {train.shape[1]} words; "
        f"K = {SETTINGS['n_components']} topics, alpha = {SETTINGS['doc_topic_prior']}, "
        f"eta = {SETTINGS['topic_word_prior']}, {SETTINGS['max_iter']} passes in minibatches of "
        f"{SETTINGS['batch_size']}, one thread, {instruction_set()} kernels"
    )
    steps = SETTINGS["max_iter"] * -(-train.shape[0] // SETTINGS["batch_size"])
    fits: dict[str, list[_Result]] = {name: [] for name in METHODS}
    with tqdm(total=len(METHODS) * n_seeds * steps, unit="step", leave=False) as bar:
        for name, temperature in METHODS.items():
            for seed in range(n_seeds):
                bar.set_description(f"{name}, seed {seed}")
                watch = _Watch(held_out, bar)
                lda = TemperedLDA(
                    **SETTINGS,
                    temperature=temperature,
                    document_init="constant",
                    preset="sklearn",  # the mean field, from random starts
                    random_state=seed,
                    callback=watch,
                )
                fits[name].append(_fit(lda, train, held_out, watch))
    print("and scikit-learn's LatentDirichletAllocation on the same work, once ...", flush=True)
    rival = _fit(LatentDirichletAllocation(**SETTINGS, random_state=0), train, held_out)

    print()
    print(f"{'':<28}{'held-out log-lik.':>18}{'ELBO at T = 1':>18}{'seconds':>16}")
    print(f"{'':<28}{'nats a word':>18}{'nats a word':>18}{'a fit':>16}")
    for name, results in fits.items():
        print(_row(name, results))
    print(_row("scikit-learn", [rival]))
    if n_seeds > 1:
        print(f"(mean ± standard deviation over {n_seeds} seeds; scikit-learn one seed)")

    best = max(fits["annealed"], key=lambda result: result.heldout).estimator
    print("\nTopics of the annealed fit that predicts best, largest first:")
    order = np.argsort(-best.components_.sum(axis=1))
    words = best.top_words(8, abstracts.feature_names)
    for rank, topic in enumerate(order, start=1):
        print(f"{rank:>4}  {' '.join(words[topic])}")

    _draw(fits, rival, output)
    print(f"\nFigure: {output}")


def _check_output(output: str) -> None:
    """Find out before the fits that the figure could not be written after them."""
    plt = import_optional("matplotlib.pyplot", "demo", "annealvi demo")
    formats = plt.figure().canvas.get_supported_filetypes()
    plt.close("all")
    path = Path(output)
    if path.suffix[1:].lower() not in formats:
        raise OSError(
            f"cannot write the figure to {output!r}: its ending must be one of "
            f"{', '.join('.' + name for name in sorted(formats))}"
        )
    with path.open("ab"):  # raises what is wrong with the place
        pass


def _draw(fits: dict[str, list[_Result]], rival: _Result, output: str) -> None:
    plt = import_optional("matplotlib.pyplot", "demo", "annealvi demo")
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
    figure.savefig(output, dpi=120)
    plt.close(figure)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit status."""
    parser = argparse.ArgumentParser(
        prog="annealvi",
        description="Annealed and tempered variational inference for topic models.",
    )
    threads = "OpenMP" if openmp_enabled() else "no OpenMP, one thread"
    version = f"annealvi {__version__} ({instruction_set()} kernels, {threads})"
    parser.add_argument("--version", action="version", version=version)
    commands = parser.add_subparsers(dest="command", required=True)
    show = commands.add_parser(
        "demo", help="fit plain and annealed LDA to the bundled corpus and compare them"
    )
    show.add_argument("--seeds", type=int, default=3, help="fits of each method (default: 3)")
    show.add_argument(
        "--output",
        default="annealvi_demo.png",
        help="file of the figure (default: annealvi_demo.png)",
    )
    chosen = parser.parse_args(arguments)
    if chosen.seeds < 1:
        parser.error(f"argument --seeds: must be at least 1, got {chosen.seeds}")
    try:
        demo(chosen.seeds, chosen.output)
    except (ImportError, OSError) as error:
        print(f"annealvi: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("annealvi: interrupted", file=sys.stderr)
        return 130
    return 0
