"""How to infer the topics of a document, at topics that are held: docs/inference.md.

    python -m bench.studies.inference                    the four corpora, K = 20 and 100
    python -m bench.studies.inference kos -K 20          one of them

Fits of TemperedLDA with its defaults, in float32, on the training documents of
:mod:`bench.studies.splits`.  Half of each validation document gives E[theta]; the other half is
scored.  Every method is scored with the alpha of the fit and with the best of ALPHAS.  The same is
done for documents that the fitted model draws, whose alpha is known, and for a few short ones whose
posterior is summed over all topics.  The tables are printed as Markdown.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from functools import partial
from itertools import product
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.optimize import minimize_scalar
from scipy.special import gammaln, psi

from annealvi import TemperedLDA
from annealvi.metrics import split_tokens
from annealvi.model import Tempering
from annealvi.models.lda import LDA, LocalOptions
from annealvi.models.lda.collapsed import METHODS as METHODS_OF_TRANSFORM
from annealvi.models.lda.collapsed import MOST_SWEEPS, TOLERANCE, infer_collapsed
from bench.studies import splits

CORPORA = ("bbc_news", "20ng_etm", "kos", "debian_desc")
ALPHAS = (0.01, 0.03, 0.1, 0.3)
#: Iterations of the fixed points in NumPy, whose words are updated all at once.
ITERATIONS = 100
#: Words of the documents whose posterior is enumerated; their topics, vocabulary and alpha.
LENGTHS, TINY = (2, 4, 8), (3, 12, 0.1)

#: From documents, topics (V, K) and alpha to gamma, whose shares are E[theta].
Method = Callable[[sparse.csr_matrix, NDArray, float], NDArray]


# --------------------------------------------------------------------------- methods


def _documents(beta: NDArray, alpha: float, options: LocalOptions) -> LDA:
    model = LDA(
        beta.shape[1], len(beta), alpha=alpha, eta=1.0, options=options, topic_estimate="map"
    )
    model.topics.assign(beta.T)
    return model


def mean_field(
    X: sparse.csr_matrix, beta: NDArray, alpha: float, *, n_iter: int = 0, T: float = 1.0
) -> NDArray:
    """The mean field after so many iterations, or converged, at a temperature."""
    options = LocalOptions(n_iter or 500, token_tolerance=0.0 if n_iter else 1e-3)
    return _documents(beta, alpha, options).documents.infer(X, Tempering(1 / T))


def collapsed(
    X: sparse.csr_matrix,
    beta: NDArray,
    alpha: float,
    *,
    tolerance: float = TOLERANCE,
    max_iter: int = MOST_SWEEPS,
) -> NDArray:
    """CVB0, as in `transform`."""
    documents = _documents(beta, alpha, LocalOptions()).documents
    return infer_collapsed(documents, X, tolerance=tolerance, max_iter=max_iter)


def fixed_point(
    X: sparse.csr_matrix, beta: NDArray, alpha: float, *, mean_of_log: bool, own: bool
) -> NDArray:
    """phi proportional to f(alpha + n - own share) beta, with f = exp psi or the identity."""
    gamma = np.empty((X.shape[0], beta.shape[1]))
    for d in range(X.shape[0]):
        entries = slice(X.indptr[d], X.indptr[d + 1])
        rows, counts = beta[X.indices[entries]], X.data[entries]
        phi = rows / rows.sum(axis=1, keepdims=True)
        for _ in range(ITERATIONS):
            weight = alpha + counts @ phi - (0.0 if own else phi)
            phi = (np.exp(psi(weight)) if mean_of_log else weight) * rows
            phi /= phi.sum(axis=1, keepdims=True)
        gamma[d] = alpha + counts @ phi
    return gamma


def gibbs(
    X: sparse.csr_matrix, beta: NDArray, alpha: float, *, burn_in: int, sweeps: int
) -> NDArray:
    """alpha plus the mean over sweeps of the expected counts; documents go side by side."""
    rng, K = np.random.default_rng(0), beta.shape[1]
    lengths = np.asarray(X.sum(axis=1), dtype=int).ravel()
    order = np.argsort(-lengths, kind="stable")
    words = np.zeros((len(lengths), lengths.max()), dtype=int)
    for row, d in enumerate(order):
        entries = slice(X.indptr[d], X.indptr[d + 1])
        tokens = np.repeat(X.indices[entries], X.data[entries].astype(int))
        words[row, : len(tokens)] = tokens
    alive = [int(np.count_nonzero(lengths > j)) for j in range(words.shape[1])]
    z = np.full(words.shape, -1)
    n, total = np.zeros((len(lengths), K)), np.zeros((len(lengths), K))
    for sweep in range(burn_in + sweeps + 1):
        for j, m in enumerate(alive):
            at, here = np.arange(m), z[:m, j]
            if sweep:
                n[at, here] -= 1
            p = (alpha + n[:m]) * beta[words[:m, j]]
            p /= p.sum(axis=1, keepdims=True)
            if sweep > burn_in:
                total[:m] += p
            drawn = (np.cumsum(p, axis=1) < rng.random((m, 1))).sum(axis=1)
            z[:m, j] = np.minimum(drawn, K - 1)
            n[at, z[:m, j]] += 1
    gamma = np.empty_like(total)
    gamma[order] = alpha + total / sweeps
    return gamma


METHODS: dict[str, Method] = {
    "mean field, converged": mean_field,
    **{f"mean field, {n} iterations": partial(mean_field, n_iter=n) for n in (3, 5, 10)},
    **{f"mean field, T = {T}": partial(mean_field, T=T) for T in (1.2, 1.4, 1.7)},
    "exp ψ, own share left out": partial(fixed_point, mean_of_log=True, own=False),
    "α + n, own share kept": partial(fixed_point, mean_of_log=False, own=True),
    "CVB0": collapsed,
    "CVB0, converged": partial(collapsed, tolerance=1e-4, max_iter=1000),
    "Gibbs, 10 + 20 sweeps": partial(gibbs, burn_in=10, sweeps=20),
    "Gibbs, 20 + 200 sweeps": partial(gibbs, burn_in=20, sweeps=200),
}
COMPILED = (mean_field, collapsed)


# --------------------------------------------------------------------------- measures


def shares(gamma: NDArray) -> NDArray:
    return gamma / gamma.sum(axis=1, keepdims=True)


def held_out(theta: NDArray, beta: NDArray, hidden: sparse.csr_matrix) -> float:
    """Log-likelihood in nats for each hidden word."""
    rows = np.repeat(np.arange(hidden.shape[0]), np.diff(hidden.indptr))
    p = np.einsum("ij,ij->i", theta[rows], beta[hidden.indices])
    return float(hidden.data @ np.log(p) / hidden.data.sum())


class Calibration(NamedTuple):
    """How sure E[theta] is of itself.

    `power` is the exponent with which theta^power predicts best: below 1, theta is too sure.
    `surprise` is the realised log-likelihood minus the one that it expects; negative if too sure.
    `topics` is exp of the entropy of theta.
    """

    power: float
    gain: float
    surprise: float
    topics: float

    @classmethod
    def of(cls, theta: NDArray, beta: NDArray, hidden: sparse.csr_matrix) -> Calibration:
        realised = held_out(theta, beta, hidden)
        found = minimize_scalar(
            lambda power: -held_out(shares(theta**power), beta, hidden),
            bounds=(0.5, 2.0),
            method="bounded",
        )
        p = theta @ beta.T
        lengths = np.asarray(hidden.sum(axis=1)).ravel()
        expected = lengths @ (p * np.log(p)).sum(axis=1) / lengths.sum()
        safe = np.maximum(theta, 1e-300)
        topics = np.exp(-(theta * np.log(safe)).sum(axis=1)).mean()
        return cls(found.x, -found.fun - realised, realised - expected, topics)


class Result(NamedTuple):
    score: float
    best: float
    alpha: float
    calibration: Calibration
    seconds: float


def measure(
    method: Method,
    beta: NDArray,
    alpha: float,
    alphas: tuple[float, ...],
    seen: sparse.csr_matrix,
    hidden: sparse.csr_matrix,
) -> Result:
    """Scores with the fit's alpha and with the best of all."""
    start = time.process_time()
    theta = shares(method(seen, beta, alpha))
    seconds = time.process_time() - start
    score = held_out(theta, beta, hidden)
    others = {a: held_out(shares(method(seen, beta, a)), beta, hidden) for a in alphas}
    others[alpha] = score
    best = max(others, key=lambda a: others[a])
    return Result(
        score, others[best], best, Calibration.of(theta, beta, hidden), seconds / seen.shape[0]
    )


# -------------------------------------------------------------------------- documents


def speed(lda: TemperedLDA, X: sparse.csr_matrix) -> None:
    """Print the time of `transform`, with half of each document, in double precision."""
    double = TemperedLDA(len(lda.components_))
    double.components_ = np.asarray(lda.components_, dtype=float)
    seen, _ = split_tokens(X, random_state=0)
    many = sparse.vstack([seen] * 4).tocsr()
    for method in METHODS_OF_TRANSFORM:
        seconds = []
        for _ in range(6):
            start = time.process_time()
            double.transform(many, method=method)
            seconds.append(time.process_time() - start)
        print(f"\ntransform, {method}: {1e6 * min(seconds) / many.shape[0]:.1f} us a document")


def drawn(beta: NDArray, alpha: float, like: sparse.csr_matrix) -> sparse.csr_matrix:
    """Documents that the model draws, as long as others."""
    rng, (V, K) = np.random.default_rng(1), beta.shape
    lengths = np.asarray(like.sum(axis=1), dtype=int).ravel()
    rows = [rng.multinomial(n, beta @ rng.dirichlet(np.full(K, alpha))) for n in lengths]
    return sparse.csr_matrix(np.array(rows, dtype=float).reshape(-1, V))


def exact_mean(words: NDArray, beta: NDArray, alpha: float) -> NDArray:
    """E[theta | words], summed over all topics that the words may have."""
    K = beta.shape[1]
    z = np.array(list(product(range(K), repeat=len(words))))
    n = np.stack([(z == k).sum(axis=1) for k in range(K)], axis=1)
    logs = gammaln(alpha + n).sum(axis=1) + np.log(beta[words, z]).sum(axis=1)
    weights = np.exp(logs - logs.max())
    return weights @ shares(alpha + n) / weights.sum()


def enumerated(n_documents: int) -> None:
    """Short documents against their exact posterior: error of E[theta], nats lost a word."""
    K, V, alpha = TINY
    rng = np.random.default_rng(2)
    print(f"\nK = {K}, {V} words, alpha {alpha}; error of E[theta] / nats lost a word\n")
    print("| words of a document | " + " | ".join(map(str, LENGTHS)) + " |")
    print("|---|" + "---|" * len(LENGTHS))
    beta = np.maximum(rng.dirichlet(np.full(V, 0.3), K).T, 1e-9)
    beta /= beta.sum(axis=0)
    theta = rng.dirichlet(np.full(K, alpha), n_documents)
    words = np.array([rng.choice(V, max(LENGTHS), p=p / p.sum()) for p in theta @ beta.T])
    exact = {n: np.array([exact_mean(w[:n], beta, alpha) for w in words]) for n in LENGTHS}
    for name, method in METHODS.items():
        cells = []
        for n in LENGTHS:
            counts = np.array([np.bincount(w[:n], minlength=V) for w in words], dtype=float)
            found = shares(method(sparse.csr_matrix(counts), beta, alpha))
            p, q = exact[n] @ beta.T, found @ beta.T
            error = np.abs(found - exact[n]).sum(axis=1).mean()
            cells.append(f"{error:.3f} / {(p * np.log(p / q)).sum(axis=1).mean():.4f}")
        print(f"| {name} | " + " | ".join(cells) + " |", flush=True)


def table(
    title: str,
    beta: NDArray,
    alpha: float,
    X: sparse.csr_matrix,
    alphas: tuple[float, ...] = ALPHAS,
) -> dict[str, Result]:
    """Print and return the results of all methods on some documents."""
    seen, hidden = split_tokens(X, random_state=0)
    print(f"\n{title}, {X.shape[0]} documents, alpha {alpha:g}\n")
    print("| method | held out | best alpha | power | gain | surprise | topics | ms a document |")
    print("|---|---|---|---|---|---|---|---|")
    results = {}
    for name, method in METHODS.items():
        r = results[name] = measure(method, beta, alpha, alphas, seen, hidden)
        of_ours = getattr(method, "func", method) in COMPILED
        seconds = f"{1e3 * r.seconds:.3f}" if of_ours else ""
        c = r.calibration
        print(
            f"| {name} | {r.score:.4f} | {r.best:.4f} at {r.alpha:g} | {c.power:.2f} | "
            f"{c.gain:.4f} | {c.surprise:+.3f} | {c.topics:.1f} | {seconds} |",
            flush=True,
        )
    return results


def summary(title: str, cells: dict[str, dict[str, Result]], best: bool) -> None:
    """Gains over the converged mean field at the fit's alpha, a column for each cell."""
    first = next(iter(METHODS))
    print(f"\n{title}\n\n| | " + " | ".join(cells) + " | mean | power |")
    print("|---|" + "---|" * (len(cells) + 2))
    base = [cell[first].score for cell in cells.values()]
    print(f"| {first} | " + " | ".join(f"{score:.3f}" for score in base) + " | | |")
    for name in METHODS:
        results = [cell[name] for cell in cells.values()]
        scores = np.array([r.best if best else r.score for r in results])
        gains = [f"{gain:+.3f}" for gain in [*(scores - base), (scores - base).mean()]]
        power = np.mean([r.calibration.power for r in results])
        print(f"| {name} | " + " | ".join(gains) + f" | {power:.2f} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("corpora", nargs="*", default=CORPORA)
    parser.add_argument("-K", type=int, nargs="+", default=[20, 100])
    parser.add_argument("--documents", type=int, default=200)
    given = parser.parse_args()
    enumerated(given.documents)
    real, model = {}, {}
    for corpus, K in product(given.corpora, given.K):
        split = splits.load(corpus)
        lda = TemperedLDA(K, random_state=0).fit(split.train.astype(np.float32))
        topics = np.asarray(lda.components_, dtype=float)
        beta = np.ascontiguousarray((topics / topics.sum(axis=1, keepdims=True)).T)
        alpha, X = float(lda.doc_topic_prior_), split.validation[: given.documents]
        cell = f"{corpus} {K}"
        speed(lda, split.validation[:600])
        real[cell] = table(f"{corpus}, K = {K}", beta, alpha, X)
        model[cell] = table(
            f"Drawn from the model: {corpus}, K = {K}", beta, alpha, drawn(beta, alpha, X), ()
        )
    summary("Documents of the corpora, alpha of the fit", real, best=False)
    summary("Documents of the corpora, best alpha", real, best=True)
    summary("Documents that the model draws", model, best=False)


if __name__ == "__main__":
    main()
