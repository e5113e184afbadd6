"""Claims of Abrol et al. (2014) and Mandt et al. (2016) that small runs settle.

::

    python -m bench.studies.papers [--parts noise locals every hot low growth] [--seeds 2]
        [--documents N] [--results bench/studies/papers.json]

Each part adds its numbers to the file, and docs/record/papers.md has its numbers from there:

- ``noise``: how tempering changes the variance of the stochastic gradient of the topics.
- ``locals``: eight shapes with only the local or only the global variables tempered.
- ``every``: VT and LVT as printed, T changed at each step and every 1,000 steps as in the paper,
  with predictions at T = 1 and at the learned T.
- ``hot``: annealing from 2 to 10 over .1 and 1 pass.
- ``low``: first temperatures from 1.1 to 5 over .1 pass of 98,000 abstracts, posterior tempered.
- ``growth``: the gain of slow annealing with 25 to 500 topics.

The first three take minutes on one core, the others up to an hour.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, psi
from sklearn.exceptions import ConvergenceWarning

from annealvi import Annealed, Fixed, LocalVariational, TemperedLDA, Variational
from annealvi.datasets import load_corpus, make_shape_mixture
from annealvi.metrics import HeldOut, component_recovery, document_completion
from annealvi.model import LocalStep
from annealvi.temperature import Temperature
from bench import parser

START = float(np.geomspace(1, 10, 100).mean())
PERIOD = 1000


def every(kind: Any) -> Any:
    """A learned temperature whose T changes only every PERIOD steps, as in the paper."""

    class Every(kind):
        def observe(self, local: LocalStep, scale: float) -> None:
            if self._step % PERIOD == PERIOD - 1:
                super().observe(local, scale)
            else:
                self._step += 1

    return Every


def fit(n: int, temperature: Temperature, seed: int, n_topics: int = 100, **options: Any) -> Any:
    """Fit the first n abstracts; return the fit and the 2,000 abstracts after them."""
    X = load_corpus("arxiv_100k").data.astype(np.float32)
    held_out = X[n:][:2000]
    settings = dict(max_iter=4, learning_offset=1024) | options
    if settings.pop("curve", False):
        settings["callback"] = HeldOut(held_out, every=0.1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # VT as printed ends hot, and says so
        lda = TemperedLDA(
            n_topics,
            temperature=temperature,
            preset="sklearn",
            learning_method="online",
            learning_decay=0.7,
            batch_size=100,
            random_state=seed,
            **settings,
        ).fit(X[:n])
    return lda, held_out


def score(n: int, temperature: Temperature, seed: int, **options: Any) -> float:
    """The held-out log-likelihood of a word at the end of a fit."""
    return float(document_completion(*fit(n, temperature, seed, **options)))


def statistics(X: Any, weights: NDArray, alpha: float, b: float) -> NDArray:
    """b times the expected counts of a minibatch, from the paper's updates."""
    found = np.zeros_like(weights)
    for row in range(X.shape[0]):
        ids, n = X[row].indices, X[row].data
        gamma, beta = np.full(len(weights), 1.0), weights[:, ids]
        for _ in range(60):
            phi = np.exp(b * psi(gamma))[:, None] * beta
            phi /= phi.sum(axis=0) + 1e-300
            new = alpha + b * phi @ n
            gamma, moved = new, np.abs(new - gamma).mean()
            if moved < 1e-3:
                break
        found[:, ids] += b * phi * n
    return found


def noise(seed: int, n: int = 10_000) -> dict[str, Any]:
    X = load_corpus("arxiv_100k").data[:n].tocsr().astype(np.float64)
    lda, _ = fit(n, Fixed(1), seed, 50, max_iter=3)
    rng, found = np.random.RandomState(seed), {}
    random = rng.gamma(100.0, 0.01, lda.components_.shape)
    batches = [rng.choice(n, 100, replace=False) for _ in range(60)]
    for name, topics in (("random topics", random), ("after 3 passes", lda.components_)):
        log_beta = psi(topics) - psi(topics.sum(axis=1, keepdims=True))
        for T in (1.0, 2.0, 3.9, 10.0):
            weights, total, square = np.exp(log_beta / T), 0.0, 0.0
            for batch in batches:
                s = statistics(X[batch], weights, 1 / 50, 1 / T)
                total, square = total + s, square + float((s * s).sum())
            mean = total / len(batches)
            found[f"{name}, T = {T:g}"] = square / len(batches) - float((mean * mean).sum())
    return {k: v / found[f"{k.split(', T')[0]}, T = 1"] for k, v in found.items()}


def shapes(seed: int, local: bool, of_globals: bool) -> int:
    """How many of eight shapes are found; T falls from 10 to 1 over half of 200 sweeps."""
    toy, rng = make_shape_mixture(1000, random_state=seed), np.random.RandomState(seed)
    X, logit, noise_variance, prior = toy.data, np.log(0.3 / 0.7), 0.1, 0.35
    D = X.shape[1]
    m, s, nu = rng.normal(0, prior**0.5, (8, D)), np.zeros(8), np.full((len(X), 8), 0.3)
    for sweep in range(200):
        b = min(1.0, 10 ** (sweep / 100 - 1))
        b_local, b_global = (b if local else 1.0), (b if of_globals else 1.0)
        for k in range(8):
            rest = X - nu @ m + np.outer(nu[:, k], m[k])
            fit_of_k = rest @ m[k] - (m[k] @ m[k] + D * s[k]) / 2
            nu[:, k] = expit(logit + b_local / noise_variance * fit_of_k)
        for k in range(8):
            rest = X - nu @ m + np.outer(nu[:, k], m[k])
            s[k] = 1 / (1 / prior + b_global / noise_variance * nu[:, k].sum())
            m[k] = s[k] * b_global / noise_variance * (nu[:, k] @ rest)
    return component_recovery(m, toy.components)[0]


def tempered_parts(seed: int, n: int = 0) -> dict[str, Any]:
    kinds = dict(neither=(0, 0), locals=(1, 0), globals=(0, 1), both=(1, 1))
    return {name: shapes(seed, *map(bool, kind)) for name, kind in kinds.items()}


def printed(seed: int, n: int = 30_000) -> dict[str, Any]:
    found: dict[str, Any] = {"SVI": score(n, Fixed(1), seed)}
    undamped = dict(undamped=True, final_fraction=0.0)
    for name, temperature in {
        "VT, each step": Variational.as_printed(),
        "VT, every 1,000": every(Variational).as_printed(),
        "LVT, each step": LocalVariational(**undamped),
        "LVT, every 1,000": every(LocalVariational)(**undamped),
    }.items():
        lda, held_out = fit(n, temperature, seed)
        found[name] = float(document_completion(lda, held_out))
        if name.startswith("VT"):
            at_end = float(lda.temperature_path_[-1])
            found[f"{name}, last T"] = at_end
            learned = document_completion(lda, held_out, temperature="learned")
            found[f"{name}, predicted at the learned T"] = float(learned)
    return found


def hot(seed: int, n: int = 30_000) -> dict[str, Any]:
    found = {"SVI": score(n, Fixed(1), seed)}
    for t in (0.1, 1.0):
        for T in (2, START, 5, 6, 8, 10):
            annealed = Annealed(T, passes=t, shape="linear")
            found[f"t_A = {t:g}, T0 = {T:.3g}"] = score(n, annealed, seed)
    return found


def low(seed: int, n: int = 98_000) -> dict[str, Any]:
    found = {}
    priors = dict(doc_topic_prior=0.01, topic_word_prior=1.0)
    for T in (1, 1.1, 1.25, 1.5, 2, 3, 5):
        cooled = Annealed(T, passes=0.1, shape="exponential", form="posterior")
        annealed = cooled if T > 1 else Fixed(1)
        lda, _ = fit(n, annealed, seed, max_iter=1, learning_offset=1000, curve=True, **priors)
        curve = lda.history_["held_out_log_likelihood"]
        found[f"T0 = {T:g}"] = [float(curve[i]) for i in (0, 1, 4, -1)]
    return found


def growth(seed: int, n: int = 60_000) -> dict[str, Any]:
    found = {}
    for K in (25, 50, 100, 200, 500):
        slow = Annealed(START, passes=1.0, shape="linear")
        ends = [score(n, t, seed, n_topics=K, max_iter=3) for t in (Fixed(1), slow)]
        found[f"K = {K}"] = ends[1] - ends[0]
    return found


PARTS: dict[str, Callable[..., dict[str, Any]]] = dict(
    noise=noise, locals=tempered_parts, every=printed, hot=hot, low=low, growth=growth
)


def main(argv: Sequence[str] | None = None) -> None:
    options = parser(__doc__)
    options.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS)[:3])
    options.add_argument("--seeds", type=int, default=2)
    options.add_argument("--documents", type=int)
    options.add_argument("--results", type=Path, default=Path(__file__).with_suffix(".json"))
    arguments = options.parse_args(argv)
    kept = json.loads(arguments.results.read_text()) if arguments.results.exists() else {}
    size = {} if arguments.documents is None else {"n": arguments.documents}
    for part in arguments.parts:
        for seed in range(arguments.seeds):
            found = PARTS[part](seed, **size)
            sized = f"{part}, {arguments.documents} documents" if size else part
            kept.setdefault(sized, {})[f"seed {seed}"] = found
            arguments.results.write_text(json.dumps(kept, indent=1) + "\n")
            print(part, seed, json.dumps(found), flush=True)


if __name__ == "__main__":
    main()
