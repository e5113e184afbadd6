"""Test claims of Abrol et al. (2014), Mandt et al. (2016) and others with small fits.

::

    python -m bench.studies.papers [--parts noise locals ...] [--seeds 2] [--documents N]
        [--results bench/studies/papers.json]

Each part adds its numbers to the file, which is the source of numbers in docs/record/papers.md.  If
the file contains a seed, its fits are not repeated.

- ``noise``: how tempering changes the variance of the stochastic gradient of the topics.
- ``locals``: fits to eight shapes with only the local or only the global variables tempered.
- ``every``: VT and LVT as in the paper, where T changes at each step or every 1,000 steps, with
  predictions at T = 1 and at the learned T.
- ``hot``: annealing that starts at T = 2 to 10 and takes 0.1 passes and 1 pass.
- ``low``: annealing of the posterior that starts at T = 1.1 to 5 and takes 0.1 passes over 98,000
  abstracts.
- ``passes``: the scores of plain and annealed fits (T0 = 2, t_A = 0.1) after each of four passes.
- ``growth``: the gain of slow annealing with 25 to 500 topics.
- ``gaussians``: how many of 100 starts of two Gaussians end in the better optimum.
- ``outliers``: 5% of 1,500 abstracts are replaced by random words.  Are they found by the
  temperature of Eq. 10, by `document_temperatures`, or by the likelihood per word?
- ``layers`` (PyTorch): for energy (d) of Huang et al. (2018), the distances of neighbouring layers,
  two bounds of -KL with 10 to 2,000 draws, and the modes that flows find with beta.
- ``heat`` (PyTorch): an autoencoder whose likelihood is annealed from T0 over half of its steps.

For ``layers`` and ``heat``, --documents is the number of steps.  ``hot``, ``low``, ``growth`` and
``heat`` take up to an hour on one core, and the other parts take minutes.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logsumexp, psi, softmax
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import roc_auc_score

from annealvi import Annealed, Fixed, LocalVariational, TemperedLDA, Variational
from annealvi.callbacks import HeldOut
from annealvi.datasets import load_corpus, load_images, make_shape_mixture
from annealvi.metrics import component_recovery, document_completion
from annealvi.model import LocalStep
from annealvi.temperature import Temperature
from bench import parser
from bench.studies.mixtures import better_optima

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
    if every := settings.pop("curve", 0.0):
        settings["callback"] = HeldOut(held_out, every=every)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the paper's VT ends above T = 1
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
    """The held-out log-likelihood per word at the end of a fit."""
    return float(document_completion(*fit(n, temperature, seed, **options)))


def statistics(X: Any, weights: NDArray, alpha: float, b: float) -> NDArray:
    """Compute b times the expected counts of a minibatch by the updates of the paper."""
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
    """Count how many of eight shapes are found if T falls from 10 to 1 over half of 200 sweeps."""
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
        lda, _ = fit(n, annealed, seed, max_iter=1, learning_offset=1000, curve=0.1, **priors)
        curve = lda.history_["held_out_log_likelihood"]
        found[f"T0 = {T:g}"] = [float(curve[i]) for i in (0, 1, 4, -1)]
    return found


def passes(seed: int, n: int = 30_000) -> dict[str, Any]:
    found, options = {}, dict(doc_topic_prior=0.01, topic_word_prior=1.0, learning_offset=64)
    annealed = Annealed(2, passes=0.1, shape="exponential", form="posterior")
    for name, temperature in (("SVI", Fixed(1)), ("annealed", annealed)):
        lda, _ = fit(n, temperature, seed, curve=1.0, **options)
        found[name] = lda.history_["held_out_log_likelihood"].tolist()
    return found


def growth(seed: int, n: int = 60_000) -> dict[str, Any]:
    found = {}
    for K in (25, 50, 100, 200, 500):
        slow = Annealed(START, passes=1.0, shape="linear")
        ends = [score(n, t, seed, n_topics=K, max_iter=3) for t in (Fixed(1), slow)]
        found[f"K = {K}"] = ends[1] - ends[0]
    return found


def gaussians(seed: int, n: int = 100) -> dict[str, Any]:
    found = {"plain": better_optima(1, n, seed)}
    for T, shape in ((100, "linear"), (20, "exponential")):
        for form in ("likelihood", "posterior"):
            annealed = Annealed(T, length=0.5, shape=shape, form=form)
            name = f"{shape} from {T}, {form} tempered"
            found[name] = better_optima(annealed, n, seed)
            # the library moves means at random while T falls, which the paper does not
            with patch("annealvi.models.gmm.SMALL_PERTURBATION", 0.0):
                found[f"{name}, nothing moved at random"] = better_optima(annealed, n, seed)
    return found


def eq_10(lda: Any, X: Any) -> NDArray:
    """The temperature of each document by Eq. 10, with the document's own normaliser."""
    topics, alpha, inverses = lda.components_, lda.doc_topic_prior_, np.arange(1, 101) / 100
    log_beta = psi(topics) - psi(topics.sum(axis=1, keepdims=True))
    log_sums = np.array([logsumexp(b * log_beta, axis=1) for b in inverses])
    found = []
    for row in range(X.shape[0]):
        n, words, b = X[row].data, log_beta[:, X[row].indices], 1.0
        for _ in range(3):
            gamma = np.full(len(topics), 1.0)
            for _ in range(60):
                log_theta = psi(gamma) - psi(gamma.sum())
                scores = log_theta[:, None] + words
                phi = softmax(b * scores, axis=0)
                gamma = alpha + b * phi @ n
            log_theta = psi(gamma) - psi(gamma.sum())
            energy = float(np.sum(n * phi * (log_theta[:, None] + words)))
            log_c = n.sum() * logsumexp(inverses[:, None] * log_theta + log_sums, axis=1)
            b = float(softmax(inverses * energy - log_c) @ inverses)
        found.append(1 / b)
    return np.array(found)


def outliers(seed: int, n: int = 1500) -> dict[str, Any]:
    X, rng = load_corpus("arxiv_100k").data[:n].astype(np.float64), np.random.RandomState(seed)
    frequencies = np.asarray(X.sum(axis=0)).ravel()
    planted = rng.permutation(n)[: n // 20]
    mixed = X.tolil()
    for row in planted:
        mixed[row] = rng.multinomial(int(X[row].sum()), frequencies / frequencies.sum())
    X, odd = mixed.tocsr(), np.isin(np.arange(n), planted)
    options = dict(doc_topic_prior=0.1, topic_word_prior=0.01, learning_offset=64, batch_size=100)
    options |= dict(temperature=1, preset="sklearn", learning_method="online", max_iter=10)
    lda = TemperedLDA(50, random_state=seed, **options).fit(X)
    theta = lda.transform(X)
    beta = lda.components_ / lda.components_.sum(axis=1, keepdims=True)
    rows = np.repeat(np.arange(n), np.diff(X.indptr))
    log_p = X.data * np.log(np.einsum("ek,ke->e", theta[rows], beta[:, X.indices]))
    a_word = np.bincount(rows, log_p, n) / np.asarray(X.sum(axis=1)).ravel()
    scores = {"Eq. 10": eq_10(lda, X), "ours": lda.document_temperatures(X), "a word": -a_word}
    return {name: float(roc_auc_score(odd, score)) for name, score in scores.items()}


def heat(seed: int, n: int = 20_000) -> dict[str, Any]:
    from annealvi.deep import VariationalAutoencoder  # needs PyTorch

    images = load_images("mnist_static_bin").data.astype(np.float32)
    train, test, found = images[:-10_000], images[-10_000:], {}
    for T in (1, 2, 5, 10):
        vae = VariationalAutoencoder(
            40,
            hidden=(100, 100),
            units="gated",
            temperature=Annealed(T, length=0.5) if T > 1 else 1,
            max_iter=n,
            random_state=seed,
        ).fit(train)
        log_p = float(np.mean(vae.score_samples(test[:500], n_draws=500)))
        found[f"T0 = {T}"] = {"-ELBO": -float(vae.score(test)), "-log p": -log_p}
    return found


def layers(seed: int, n: int = 2000) -> dict[str, Any]:
    from annealvi.deep import HierarchicalPosterior  # needs PyTorch
    from annealvi.deep.energies import ENERGIES, modes_found
    from annealvi.deep.training import Noise

    energy, found, runs = ENERGIES["d"], {}, 5
    edges = np.linspace(-energy.extent, energy.extent, 41)
    for name, objective, transition, beta in (
        ("ELBO", "elbo", "gaussian", 0.0),
        ("AVO", "avo", "gaussian", 0.0),
        ("flow, beta over .8, ELBO", "elbo", "flow", 0.8),
        ("flow, beta over .8, AVO", "avo", "flow", 0.8),
    ):
        posterior = HierarchicalPosterior(
            energy,
            dim=2,
            n_transitions=10,
            transition=transition,
            objective=objective,
            annealing=beta,
            max_iter=n,
            n_init=runs,
            random_state=seed,
        ).fit()
        draws = posterior.network_.layers(20_000, Noise(1))
        found[name] = {"modes": modes_found(draws[-1], energy).tolist()}
        if transition == "flow":
            continue
        counts = [
            [np.histogram2d(*draws[t, run].numpy().T, bins=edges)[0] + 0.5 for run in range(runs)]
            for t in range(11)
        ]
        q = np.array(counts).reshape(11, runs, -1)
        q /= q.sum(axis=-1, keepdims=True)
        kl = np.sum(q[1:] * np.log(q[1:] / q[:-1]), axis=-1).mean(axis=1)
        found[name]["KL of z_t from z_(t-1), t = 1 to 10"] = kl.tolist()
        for k in (10, 100, 2000):
            below, above = posterior.evidence_bounds(n_draws=200, n_reverse=k)
            found[name][f"bounds of -KL apart, {k} draws"] = float(np.mean(above - below))
    return found


PARTS: dict[str, Callable[..., dict[str, Any]]] = dict(
    noise=noise, locals=tempered_parts, every=printed, hot=hot, low=low, growth=growth
)
PARTS |= dict(passes=passes, gaussians=gaussians, outliers=outliers, layers=layers, heat=heat)


def summary(runs: dict[str, dict[str, Any]]) -> dict[str, dict[str, float]]:
    """The means over seeds of all numbers, and their standard errors."""
    first, *others = runs.values()
    if not others:
        return {}
    names = [name for name, value in first.items() if isinstance(value, (int, float))]
    columns = np.array([[run[name] for name in names] for run in runs.values()], dtype=float)
    parts = columns.mean(axis=0), columns.std(axis=0, ddof=1) / len(columns) ** 0.5
    both = (dict(zip(names, part.tolist(), strict=True)) for part in parts)
    return dict(zip(("mean", "standard error"), both, strict=True)) if names else {}


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
            sized = f"{part}, {arguments.documents} documents" if size else part
            if f"seed {seed}" in kept.get(sized, {}):
                continue
            found = PARTS[part](seed, **size)
            runs = {name: run for name, run in kept.get(sized, {}).items() if "seed" in name}
            runs[f"seed {seed}"] = found
            kept[sized] = runs | summary(runs)
            arguments.results.write_text(json.dumps(kept, indent=1) + "\n")
            print(part, seed, json.dumps(found), flush=True)


if __name__ == "__main__":
    main()
