"""Proximity penalties on a Poisson deep exponential family of topics.

    python examples/proximity_poisson_def.py [--seeds 1] [--iterations 1000] [--full]
                                             [--output FILE.png] [--results FILE.json]

Repeats Table 4 of Altosaar, Ranganath, Blei (2018), *Proximity Variational Inference*, scaled
down: a Poisson deep exponential family of one layer and K = 20 topics on 395 news articles,
fitted by variational inference (VI), by deterministic annealing (T = max(1, k)) and with
penalties k on moving the entropy of q or its mean and variance, averaged over a minibatch.  k
falls from k0 as gamma^(t / iterations); k0 is |ELBO| of the first minibatch (gamma = 1e-10) or
100 (gamma = 1e-5).  --full is 1,500 iterations and 3 seeds.

A fifth of the articles is held out.  A random tenth of the words of each gives its topics; the
table gives the perplexity of the others (Eq. 12, see PoissonDEF.perplexity), which is that of a
word drawn at random from the training articles under "frequencies", and the ELBO of whole
articles: mean and standard deviation over the seeds.

The articles are ``reuters395.npz`` in the folder that the environment variable ANNEALVI_DATA
names (default ``../shared/data``).  With --results, runs are kept in a file as they end, and
those in it are not redone.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib import pyplot
from scipy import sparse

from annealvi import Annealed
from annealvi.datasets import load_corpus
from annealvi.deep import PoissonDEF, ProximityPenalty
from annealvi.inference import Monitor

CORPUS, BATCH = "reuters395", 64
#: k0 (None: |ELBO| of the first minibatch) and gamma.
MAGNITUDES: dict[str, tuple[float | None, float]] = {
    "k0 = ELBO": (None, 1e-10),
    "k0 = 100": (100.0, 1e-5),
}
ANNEALED = "annealing"
STATISTICS = {"PVI, entropy": "entropy", "PVI, mean and variance": "mean_variance"}
METHODS = ["VI"] + [f"{name}, {k}" for k in MAGNITUDES for name in (ANNEALED, *STATISTICS)]
POINTS = 6  # perplexities along a fit


def estimator(method: str, first_elbo: float, **options: Any) -> PoissonDEF:
    """The estimator of a method.

    Annealing needs k0 before the fit: `first_elbo` is what the penalties find for themselves.
    """
    name, _, k = method.rpartition(", ")
    if name:
        k0, gamma = MAGNITUDES[k]
        if name == ANNEALED:
            first = max(1.0, BATCH * abs(first_elbo) if k0 is None else k0)
            length = min(1.0, math.log(first) / -math.log(gamma)) or None
            options["temperature"] = Annealed(first, length, shape="exponential")
        else:
            options["proximity"] = ProximityPenalty(STATISTICS[name], magnitude=k0, gamma=gamma)
    return PoissonDEF(batch_size=BATCH, **options)


def watcher(X: sparse.csr_matrix, iterations: int) -> Callable[[PoissonDEF, Monitor], None]:
    """A callback that records the perplexity of held-out articles."""
    every = max(1, iterations // POINTS)

    def watch(topics: PoissonDEF, monitor: Monitor) -> None:
        if monitor.step % every == 0:
            monitor.record(perplexity=topics.perplexity(X))

    return watch


def run(
    train: sparse.csr_matrix,
    test: sparse.csr_matrix,
    words: Any,
    method: str,
    options: dict[str, Any],
) -> dict[str, Any]:
    """What a fit reached, in numbers and words that JSON can hold."""
    once = estimator("VI", 0.0, **(options | {"max_iter": 1})).fit(train)
    topics = estimator(method, once.history_["elbo"][0], **options)
    topics.set_params(callback=watcher(test, int(options["max_iter"]))).fit(train)
    history = topics.history_
    at = ~np.isnan(history["perplexity"])
    return {
        "perplexity": topics.perplexity(test),
        "elbo": topics.score(test),
        "train_elbo": float(np.mean(history["elbo"][-50:])),
        "seconds": float(history["seconds"][-1]),
        "steps": history["step"][at].tolist(),
        "curve": history["perplexity"][at].tolist(),
        "elbos": [history["step"].tolist(), history["elbo"].tolist()],
        "words": topics.top_words(8, words),
    }


def frequencies(train: sparse.csr_matrix, test: sparse.csr_matrix) -> float:
    """Perplexity of words drawn from those of all training articles, each with half a word more."""
    total = np.asarray(train.sum(axis=0)).ravel() + 0.5
    return float(np.exp(-np.sum(test @ np.log(total / total.sum())) / test.sum()))


def table(runs: list[dict[str, Any]], plain: float) -> str:
    """What the methods reached, in Markdown."""
    head = ["method", "runs", "perplexity", "test ELBO", "training ELBO", "seconds"]
    lines = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    lines.append(f"| frequencies |  | {plain:.0f} |  |  |  |")
    for method in METHODS:
        mine = [one for one in runs if one["method"] == method]
        cells = [
            _mean_and_sd([one[name] for one in mine])
            for name in ("perplexity", "elbo", "train_elbo", "seconds")
        ]
        lines.append(f"| {method} | {len(mine)} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _mean_and_sd(values: list[float]) -> str:
    if not values:
        return "–"
    spread = f" ± {np.std(values, ddof=1):.0f}" if len(values) > 1 else ""
    return f"{np.mean(values):.0f}{spread}"


def draw(runs: list[dict[str, Any]], plain: float) -> Any:
    """Training ELBO above and perplexity of held-out articles below, a column a k0."""
    shape = (2, len(MAGNITUDES))
    figure, axes = pyplot.subplots(*shape, figsize=(11, 8), sharey="row", layout="constrained")
    for (above, below), k in zip(axes.T, MAGNITUDES, strict=True):
        for number, name in enumerate(["VI", ANNEALED, *STATISTICS]):
            method = name if name == "VI" else f"{name}, {k}"
            mine = [one for one in runs if one["method"] == method]
            for i, one in enumerate(mine):
                style = dict(color=f"C{number}", alpha=0.8 if len(mine) == 1 else 0.45)
                steps, elbos = (np.array(values) for values in one["elbos"])
                width = max(1, len(steps) // 50)  # minibatches differ
                n = len(steps) // width * width
                smooth = [values[:n].reshape(-1, width).mean(axis=1) for values in (steps, elbos)]
                above.plot(*smooth, label=name if i == 0 else None, **style)
                below.plot(one["steps"], one["curve"], marker=".", **style)
        below.axhline(plain, color="0.5", ls=":")
        place = dict(xycoords=("axes fraction", "data"), ha="right", va="bottom", color="0.4")
        below.annotate("frequencies", (0.98, plain), **place)
        above.set(xlabel="iteration", title=k)
        below.set(xlabel="iteration")
    last = [one["curve"][-1] for one in runs]
    axes[1, 0].set_ylim(min(last) - 100, max(plain, *last) + 200)
    axes[0, 0].set_ylabel("training ELBO (nats an article)")
    axes[1, 0].set_ylabel("perplexity of held-out articles")
    drawn = [ax.get_legend_handles_labels() for ax in axes[0]]
    lines = {label: line for each in drawn for line, label in zip(*each, strict=True)}
    figure.legend(lines.values(), lines.keys(), loc="outside lower center", ncols=4)
    return figure


def main(argv: Sequence[str] | None = None) -> None:
    assert __doc__ is not None
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--iterations", type=int, default=1000)
    parser.add_argument("--methods", nargs="+", default=METHODS, metavar="METHOD", choices=METHODS)
    parser.add_argument("--full", action="store_true", help="1,500 iterations and 3 seeds")
    parser.add_argument("--output", default="proximity_poisson_def.png")
    parser.add_argument("--results", type=Path, help="JSON file of runs")
    if parser.parse_known_args(argv)[0].full:
        parser.set_defaults(iterations=1500, seeds=3)
    arguments = parser.parse_args(argv)
    iterations, seeds = arguments.iterations, arguments.seeds
    if min(iterations, seeds) < 1:
        parser.error("--seeds and --iterations must be at least 1")
    try:
        corpus = load_corpus(CORPUS)
    except FileNotFoundError as error:
        raise SystemExit(str(error)) from None
    X = corpus.data[np.random.RandomState(0).permutation(corpus.data.shape[0])]
    train, test = X[: X.shape[0] * 4 // 5], X[X.shape[0] * 4 // 5 :]
    kept = arguments.results
    runs = json.loads(kept.read_text()) if kept is not None and kept.exists() else []
    for seed in range(seeds):
        for method in arguments.methods:
            key = {"iterations": iterations, "method": method, "seed": seed}
            if not any(key.items() <= one.items() for one in runs):
                options = {"max_iter": iterations, "random_state": seed}
                found = run(train, test, corpus.feature_names, method, options)
                runs.append(key | found)
                if kept is not None:
                    kept.write_text(json.dumps(runs))
    runs = [one for one in runs if one["iterations"] == iterations]
    plain = frequencies(train, test)
    print(table(runs, plain))
    best = min(runs, key=lambda one: one["perplexity"])
    print(f"\nTopics of {best['method']}:")
    for words in best["words"]:
        print(" ", *words)
    draw(runs, plain).savefig(arguments.output, dpi=110)
    print(f"wrote {arguments.output}")


if __name__ == "__main__":
    main()
