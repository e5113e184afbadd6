"""Test claims of Abrol et al. (2014), Mandt et al. (2016) and others with small fits.

::

    python -m bench.studies.papers [--parts noise locals ...] [--seeds 2] [--documents N]
        [--results bench/studies/papers.json]

Each part adds its numbers to the file, which is the source of numbers in docs/record/papers.md.  If
the file contains a seed, its fits are not repeated.

- ``noise``: how tempering changes the variance of the stochastic gradient of the topics.
- ``locals``: fits to eight shapes with only the local or only the global variables tempered.
- ``every``: VT as in the paper, where T changes at each step or every 1,000 steps, with predictions
  at T = 1 and at the learned T.
- ``lvt``: LVT without damping and with 2 rounds.  Its first round starts at T = 3.9, which falls or
  not, at T = 1.98, the mean of a uniform q(b), or at T = 1.  T may be fixed for the first 1,000
  steps.  In Algorithm 1 a document keeps its T until its next visit.  Also damped LVT.
- ``lvt_5``, ``lvt_20``: first rounds at 3.9 and 1 with 5 and 20 rounds.
- ``hot``: annealing that starts at T = 2 to 10 and takes 0.1 passes and 1 pass.
- ``low``: annealing of the posterior that starts at T = 1.1 to 5 and takes 0.1 passes over 98,000
  abstracts.
- ``passes``: the scores of plain and annealed fits (T0 = 2, t_A = 0.1) after each of four passes.
- ``growth``: the gain of slow annealing with 25 to 500 topics, in three passes over 60,000
  abstracts; with ``--documents 541000``, with 25 to 100 topics in five passes over the larger
  corpus (500 topics: examples/learning_curves.py).
- ``gaussians``: how many of 100 starts of two Gaussians end in the better optimum.
- ``outliers``: 5% of 1,500 abstracts are replaced by random words.  Are they found by the
  temperature of Eq. 10, by `document_temperatures`, or by the likelihood per word?
- ``layers`` (PyTorch): for energy (d) of Huang et al. (2018), the distances of neighbouring layers,
  two bounds of -KL with 10 to 2,000 draws, and the modes that flows find with beta.
- ``decay`` (PyTorch): exponential and linear decay of k and of T, for belief networks on digits.
- ``costs`` (PyTorch): CPU seconds of 400 steps of the same methods on MNIST, relative to VI.
- ``losses`` (PyTorch): loss-calibrated AVO that draws one of its two losses, or adds both.
- ``halves`` (PyTorch): -ELBO of an autoencoder for the first 5,045, 7,850 and 10,000 test images.
- ``heat`` (PyTorch): an autoencoder whose likelihood is annealed from T0 over half of its steps.

For the parts that need PyTorch, --documents is the number of steps.  ``lvt``, ``hot``, ``low``,
``growth`` and ``heat`` take up to an hour on one core, and the other parts take minutes.
"""

from __future__ import annotations

import json
import time
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logsumexp, psi, softmax
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import roc_auc_score

from annealvi import Annealed, Fixed, LocalVariational, TemperedLDA, Variational
from annealvi.callbacks import HeldOut
from annealvi.datasets import load_corpus, load_images, make_shape_mixture
from annealvi.metrics import component_recovery, document_completion
from annealvi.model import LocalStep, Tempering
from annealvi.models.lda.engine import Engine
from annealvi.temperature import Temperature
from bench import parser
from bench.studies.mixtures import better_optima

START = float(np.geomspace(1, 10, 100).mean())
#: 1 / E[b] of a uniform q over b = .01, ..., 1.
UNIFORM = 1 / 0.505
PERIOD = 1000
#: More documents than this are read from the larger corpus.
LARGEST = 98_000


class Every(Variational):
    """VT whose T changes only every PERIOD steps."""

    def observe(self, local: LocalStep, scale: float) -> None:
        if self._step % PERIOD == PERIOD - 1:
            super().observe(local, scale)
        else:
            self._step += 1


class Undamped(LocalVariational):
    """LVT whose first round is always at T = `start`."""

    def observe(self, local: LocalStep, scale: float) -> None:
        self._learns()


class FixedAtFirst(Undamped):
    """LVT in which all documents have T = `start` in the first PERIOD steps."""

    def tempering(self, step: int) -> Tempering:
        return Tempering(self._level) if step < PERIOD else super().tempering(step)


def keep_temperatures(first: float) -> Any:
    """Algorithm 1: a document has the T of its last visit; its new T is for the next visit."""
    inverses: dict[bytes, float] = {}
    update = Engine.heat

    def heat(self, model, step, X, rows, gamma, b, partition):
        documents = []
        for row in range(rows.start, rows.stop):
            entries = slice(X.indptr[row], X.indptr[row + 1])
            documents.append(X.indices[entries].tobytes() + X.data[entries].tobytes())
        b[:] = [inverses.get(document, 1 / first) for document in documents]
        of_this_visit = b.copy()
        update(self, model, step, X, rows, gamma, b, partition)
        inverses.update(zip(documents, b.tolist(), strict=True))
        b[:] = of_this_visit

    return patch.object(Engine, "heat", heat)


def fit(n: int, temperature: Temperature, seed: int, n_topics: int = 100, **options: Any) -> Any:
    """Fit the first n abstracts; return the fit and the 2,000 abstracts after them."""
    X = load_corpus("arxiv_big" if n > LARGEST else "arxiv_100k").data.astype(np.float32)
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
    expected_counts = np.zeros_like(weights)
    for row in range(X.shape[0]):
        ids = X[row].indices
        n = X[row].data
        gamma = np.full(len(weights), 1.0)
        beta = weights[:, ids]
        for _ in range(60):
            phi = np.exp(b * psi(gamma))[:, None] * beta
            phi /= phi.sum(axis=0) + 1e-300
            before = gamma
            gamma = alpha + b * phi @ n
            if np.abs(gamma - before).mean() < 1e-3:
                break
        expected_counts[:, ids] += b * phi * n
    return expected_counts


def noise(seed: int, n: int = 10_000) -> dict[str, Any]:
    X = load_corpus("arxiv_100k").data[:n].tocsr().astype(np.float64)
    lda, _ = fit(n, Fixed(1), seed, 50, max_iter=3)
    rng = np.random.RandomState(seed)
    variances = {}
    random = rng.gamma(100.0, 0.01, lda.components_.shape)
    batches = [rng.choice(n, 100, replace=False) for _ in range(60)]
    for name, topics in (("random topics", random), ("after 3 passes", lda.components_)):
        log_beta = psi(topics) - psi(topics.sum(axis=1, keepdims=True))
        for T in (1.0, 2.0, 3.9, 10.0):
            weights = np.exp(log_beta / T)
            total = 0.0
            square = 0.0
            for batch in batches:
                s = statistics(X[batch], weights, 1 / 50, 1 / T)
                total = total + s
                square = square + float((s * s).sum())
            mean = total / len(batches)
            variances[f"{name}, T = {T:g}"] = square / len(batches) - float((mean * mean).sum())
    return {k: v / variances[f"{k.split(', T')[0]}, T = 1"] for k, v in variances.items()}


def shapes(seed: int, local: bool, of_globals: bool) -> int:
    """Count how many of eight shapes are found if T falls from 10 to 1 over half of 200 sweeps."""
    toy = make_shape_mixture(1000, random_state=seed)
    rng = np.random.RandomState(seed)
    X = toy.data
    logit = np.log(0.3 / 0.7)
    noise_variance = 0.1
    prior = 0.35
    D = X.shape[1]
    m = rng.normal(0, prior**0.5, (8, D))
    s = np.zeros(8)
    nu = np.full((len(X), 8), 0.3)
    for sweep in range(200):
        b = min(1.0, 10 ** (sweep / 100 - 1))
        b_local = b if local else 1.0
        b_global = b if of_globals else 1.0
        for k in range(8):
            rest = X - nu @ m + np.outer(nu[:, k], m[k])
            fit_of_k = rest @ m[k] - (m[k] @ m[k] + D * s[k]) / 2
            nu[:, k] = expit(logit + b_local / noise_variance * fit_of_k)
        for k in range(8):
            rest = X - nu @ m + np.outer(nu[:, k], m[k])
            s[k] = 1 / (1 / prior + b_global / noise_variance * nu[:, k].sum())
            m[k] = s[k] * b_global / noise_variance * (nu[:, k] @ rest)
    return component_recovery(toy.components, m)[0]


def tempered_parts(seed: int, n: int = 0) -> dict[str, Any]:
    kinds = dict(neither=(0, 0), locals=(1, 0), globals=(0, 1), both=(1, 1))
    return {name: shapes(seed, *map(bool, kind)) for name, kind in kinds.items()}


def printed(seed: int, n: int = 30_000) -> dict[str, Any]:
    scores: dict[str, Any] = {"SVI": score(n, Fixed(1), seed)}
    for name, temperature in {
        "VT, each step": Variational.as_printed(),
        "VT, every 1,000": Every.as_printed(),
    }.items():
        lda, held_out = fit(n, temperature, seed)
        scores[name] = float(document_completion(lda, held_out))
        scores[f"{name}, last T"] = float(lda.temperature_path_[-1])
        learned = document_completion(lda, held_out, temperature="learned")
        scores[f"{name}, predicted at the learned T"] = float(learned)
    return scores


def local_temperatures(rounds: int) -> dict[str, LocalVariational]:
    """LVT with several starts of a document's first round."""
    undamped: dict[str, Any] = dict(rounds=rounds, undamped=True, final_fraction=0.0)
    temperatures = {
        "first round from 3.9, which falls": LocalVariational(**undamped),
        "first round at 3.9": Undamped(start=3.9, **undamped),
        "first round at 1": Undamped(start=1.0, **undamped),
    }
    if rounds == 2:
        temperatures |= {
            "first round at 1.98": Undamped(start=UNIFORM, **undamped),
            "T = 3.9 for 1,000 steps": FixedAtFirst(start=3.9, **undamped),
            "T = 1.98 for 1,000 steps": FixedAtFirst(start=UNIFORM, **undamped),
            "damped, from 3.9": LocalVariational(),
            "damped, from 1.98": LocalVariational(start=UNIFORM),
            "damped, 5 rounds": LocalVariational(rounds=5),
        }
    return temperatures


def local(seed: int, n: int = 30_000, rounds: int = 2) -> dict[str, Any]:
    scores = {name: score(n, t, seed) for name, t in local_temperatures(rounds).items()}
    if rounds == 2:
        for first in (3.9, UNIFORM, 1.0):
            scores[f"Algorithm 1, first T = {first:.3g}"] = algorithm_1(n, first, seed)
    return scores


def algorithm_1(n: int, first: float, seed: int) -> float:
    with keep_temperatures(first):
        once = Undamped(start=first, rounds=1, undamped=True, final_fraction=0.0)
        return score(n, once, seed)


def hot(seed: int, n: int = 30_000) -> dict[str, Any]:
    scores = {"SVI": score(n, Fixed(1), seed)}
    for t in (0.1, 1.0):
        for T in (2, START, 5, 6, 8, 10):
            annealed = Annealed(T, passes=t, shape="linear")
            scores[f"t_A = {t:g}, T0 = {T:.3g}"] = score(n, annealed, seed)
    return scores


def low(seed: int, n: int = 98_000) -> dict[str, Any]:
    curves = {}
    priors = dict(doc_topic_prior=0.01, topic_word_prior=1.0)
    for T in (1, 1.1, 1.25, 1.5, 2, 3, 5):
        cooled = Annealed(T, passes=0.1, shape="exponential", form="posterior")
        annealed = cooled if T > 1 else Fixed(1)
        lda, _ = fit(n, annealed, seed, max_iter=1, learning_offset=1000, curve=0.1, **priors)
        curve = lda.history_["held_out_log_likelihood"]
        curves[f"T0 = {T:g}"] = [float(curve[i]) for i in (0, 1, 4, -1)]
    return curves


def passes(seed: int, n: int = 30_000) -> dict[str, Any]:
    curves = {}
    options = dict(doc_topic_prior=0.01, topic_word_prior=1.0, learning_offset=64)
    annealed = Annealed(2, passes=0.1, shape="exponential", form="posterior")
    for name, temperature in (("SVI", Fixed(1)), ("annealed", annealed)):
        lda, _ = fit(n, temperature, seed, curve=1.0, **options)
        curves[name] = lda.history_["held_out_log_likelihood"].tolist()
    return curves


def growth(seed: int, n: int = 60_000) -> dict[str, Any]:
    gains = {}
    is_large = n > LARGEST
    passes = 5 if is_large else 3
    for K in (25, 50, 100) if is_large else (25, 50, 100, 200, 500):
        slow = Annealed(START, passes=1.0, shape="linear")
        ends = [score(n, t, seed, n_topics=K, max_iter=passes) for t in (Fixed(1), slow)]
        gains[f"K = {K}"] = ends[1] - ends[0]
    return gains


def gaussians(seed: int, n: int = 100) -> dict[str, Any]:
    proportions = {"plain": better_optima(1, n, seed)}
    for T, shape in ((100, "linear"), (20, "exponential")):
        for form in ("likelihood", "posterior"):
            annealed = Annealed(T, length=0.5, shape=shape, form=form)
            name = f"{shape} from {T}, {form} tempered"
            proportions[name] = better_optima(annealed, n, seed)
            # the library moves means at random while T falls, which the paper does not
            with patch("annealvi.models.gmm.SMALL_PERTURBATION", 0.0):
                proportions[f"{name}, nothing moved at random"] = better_optima(annealed, n, seed)
    return proportions


def eq_10(lda: Any, X: Any) -> NDArray:
    """The temperature of each document by Eq. 10, with the document's own normaliser."""
    topics = lda.components_
    alpha = lda.doc_topic_prior_
    inverses = np.arange(1, 101) / 100
    log_beta = psi(topics) - psi(topics.sum(axis=1, keepdims=True))
    log_sums = np.array([logsumexp(b * log_beta, axis=1) for b in inverses])
    temperatures = []
    for row in range(X.shape[0]):
        n = X[row].data
        words = log_beta[:, X[row].indices]
        b = 1.0
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
        temperatures.append(1 / b)
    return np.array(temperatures)


def outliers(seed: int, n: int = 1500) -> dict[str, Any]:
    X = load_corpus("arxiv_100k").data[:n].astype(np.float64)
    rng = np.random.RandomState(seed)
    frequencies = np.asarray(X.sum(axis=0)).ravel()
    planted = rng.permutation(n)[: n // 20]
    mixed = X.tolil()
    for row in planted:
        mixed[row] = rng.multinomial(int(X[row].sum()), frequencies / frequencies.sum())
    X = mixed.tocsr()
    odd = np.isin(np.arange(n), planted)
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


def halves(seed: int, n: int = 1500) -> dict[str, Any]:
    from annealvi.deep import VariationalAutoencoder  # needs PyTorch

    images = load_images("mnist_static_bin")
    test = images.data_test.astype(np.float32)
    vae = VariationalAutoencoder(40, hidden=(100, 100), max_iter=n, random_state=seed)
    vae.fit(images.data[:-10_000].astype(np.float32))
    return {f"the first {size}": -float(vae.score(test[:size])) for size in (5045, 7850, 10_000)}


def heat(seed: int, n: int = 20_000) -> dict[str, Any]:
    from annealvi.deep import VariationalAutoencoder  # needs PyTorch

    images = load_images("mnist_static_bin").data.astype(np.float32)
    train = images[:-10_000]
    test = images[-10_000:]
    scores = {}
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
        scores[f"T0 = {T}"] = {"-ELBO": -float(vae.score(test)), "-log p": -log_p}
    return scores


def belief_network(
    images: NDArray[np.float32], hidden: int, steps: int, seed: int, method: dict[str, Any]
) -> Any:
    """Fit a belief network, and return it."""
    from annealvi.deep import SigmoidBeliefNetwork  # needs PyTorch

    options = dict(batch_size=20, learning_rate=3e-3, max_iter=steps, random_state=seed)
    return SigmoidBeliefNetwork((hidden,), **options, **method).fit(images)


def decay(seed: int, n: int = 2500) -> dict[str, Any]:
    from annealvi.deep import ProximityPenalty  # needs PyTorch

    X = (load_digits().data >= 8).astype(np.float32)
    X = X[np.random.RandomState(0).permutation(len(X))]
    tenth = len(X) // 10
    train = X[: -2 * tenth]
    test = X[-tenth:]
    k = 20 * abs(float(belief_network(train, 50, 1, seed, {}).history_["elbo"][0]))
    # exponential decay by 1e-10 over the fit reaches T = 1 after this share of it
    share = float(np.log(k) / np.log(1e10))
    methods = {
        "VI": {},
        "PVI, exponential": {"proximity": ProximityPenalty("entropy", gamma=1e-10)},
        "PVI, linear": {"proximity": ProximityPenalty("entropy", shape="linear")},
        "annealing, exponential": {"temperature": Annealed(k, share, shape="exponential")},
        "annealing, linear": {"temperature": Annealed(k, 1.0, shape="linear")},
    }
    return {
        name: float(belief_network(train, 50, n, seed, method).score(test, n_draws=20))
        for name, method in methods.items()
    }


def costs(seed: int, n: int = 400) -> dict[str, Any]:
    from annealvi.deep import ProximityPenalty  # needs PyTorch

    train = load_images("mnist_static_bin").data[:-10_000]
    averages: tuple[Any, ...] = ("statistic", "parameters")
    methods = {"VI": {}} | {
        f"{statistic}, average of {average}": {
            "proximity": ProximityPenalty(statistic, average=average)
        }
        for average in averages
        for statistic in ("entropy", "kl", "mean_variance")
    }
    belief_network(train, 200, 50, seed, {})  # the first steps take longer
    seconds = {}
    for name, method in methods.items():
        start = time.process_time()
        belief_network(train, 200, n, seed, method)
        seconds[name] = time.process_time() - start
    return {name: value / seconds["VI"] for name, value in seconds.items()}


def losses(seed: int, n: int = 1500) -> dict[str, Any]:
    from annealvi.deep import VariationalAutoencoder  # needs PyTorch
    from annealvi.deep.vae import AutoencoderNetwork

    images = (load_images("mnist_static_bin").data > 0.5).astype(np.float32)
    train = images[:-10_000]
    test = images[-10_000:]
    drawn = AutoencoderNetwork.chain_bound

    def added(self, x, context, noise, temperature, beta, calibration, decoder_steps):
        """a times the annealed objectives plus 1 - a times the ELBO."""
        chain_bound = partial(drawn, self, x, context, noise, temperature, beta)
        annealed, _ = chain_bound(1.0, decoder_steps)
        bound, elbo = chain_bound(0.0, decoder_steps)
        return calibration * annealed + (1 - calibration) * bound, elbo

    scores = {}
    for name, steps in (("drawn", n), ("added", n), ("drawn, twice the steps", 2 * n)):
        vae = VariationalAutoencoder(
            40,
            hidden=(50, 50),
            transition_hidden=50,
            units="gated-elu",
            n_transitions=5,
            calibration=0.5,
            batch_size=128,
            learning_rate=1e-3,
            annealing=0.2,
            max_iter=steps,
            random_state=seed,
        )
        is_added = name == "added"
        with patch.object(AutoencoderNetwork, "chain_bound", added if is_added else drawn):
            vae.fit(train)
        log_p = float(np.mean(vae.score_samples(test[:200], n_draws=500)))
        scores[name] = {"-ELBO": -float(vae.score(test)), "-log p": -log_p}
    return scores


def layers(seed: int, n: int = 2000) -> dict[str, Any]:
    from annealvi.deep import HierarchicalPosterior  # needs PyTorch
    from annealvi.deep.energies import ENERGIES, modes_found
    from annealvi.deep.training import Noise

    energy = ENERGIES["d"]
    results = {}
    runs = 5
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
        results[name] = {"modes": modes_found(draws[-1], energy).tolist()}
        if transition == "flow":
            continue
        counts = [
            [np.histogram2d(*draws[t, run].numpy().T, bins=edges)[0] + 0.5 for run in range(runs)]
            for t in range(11)
        ]
        q = np.array(counts).reshape(11, runs, -1)
        q /= q.sum(axis=-1, keepdims=True)
        kl = np.sum(q[1:] * np.log(q[1:] / q[:-1]), axis=-1).mean(axis=1)
        results[name]["KL of z_t from z_(t-1), t = 1 to 10"] = kl.tolist()
        for k in (10, 100, 2000):
            below, above = posterior.evidence_bounds(n_draws=200, n_reverse=k)
            results[name][f"bounds of -KL apart, {k} draws"] = float(np.mean(above - below))
    return results


PARTS: dict[str, Callable[..., dict[str, Any]]] = dict(
    noise=noise, locals=tempered_parts, every=printed, hot=hot, low=low, growth=growth
)
PARTS |= {"lvt": local, "lvt_5": partial(local, rounds=5), "lvt_20": partial(local, rounds=20)}
PARTS |= dict(passes=passes, gaussians=gaussians, outliers=outliers, layers=layers, heat=heat)
PARTS |= dict(decay=decay, costs=costs, losses=losses, halves=halves)


def summary(runs: dict[str, dict[str, Any]]) -> dict[str, dict[str, float]]:
    """The means over seeds of all numbers, and their standard errors."""
    first, *others = runs.values()
    if not others:
        return {}
    names = [name for name, value in first.items() if isinstance(value, (int, float))]
    columns = np.array([[run[name] for name in names] for run in runs.values()], dtype=float)
    if not names:
        return {}
    errors = columns.std(axis=0, ddof=1) / len(columns) ** 0.5
    return {
        "mean": dict(zip(names, columns.mean(axis=0).tolist(), strict=True)),
        "standard error": dict(zip(names, errors.tolist(), strict=True)),
    }


def main(argv: Sequence[str] | None = None) -> None:
    options = parser(__doc__)
    options.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS)[:3])
    options.add_argument("--seeds", type=int, default=2)
    options.add_argument("--documents", type=int)
    options.add_argument("--results", type=Path, default=Path(__file__).with_suffix(".json"))
    arguments = options.parse_args(argv)
    kept = json.loads(arguments.results.read_text()) if arguments.results.exists() else {}
    size = {} if arguments.documents is None else {"n": arguments.documents}
    for study in arguments.parts:
        for seed in range(arguments.seeds):
            sized = f"{study}, {arguments.documents} documents" if size else study
            if f"seed {seed}" in kept.get(sized, {}):
                continue
            result = PARTS[study](seed, **size)
            runs = {name: run for name, run in kept.get(sized, {}).items() if "seed" in name}
            runs[f"seed {seed}"] = result
            kept[sized] = runs | summary(runs)
            arguments.results.write_text(json.dumps(kept, indent=1) + "\n")
            print(study, seed, json.dumps(result), flush=True)


if __name__ == "__main__":
    main()
