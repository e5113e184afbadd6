"""The annealed objective of the factorial mixture, written out."""

import itertools

import numpy as np
from scipy.special import entr

from annealvi.model import UNTEMPERED, Batch
from annealvi.models.fmm import FMM

FORMS = ("likelihood", "posterior")
COVARIANCES = ("diag", "full")


def objective(X, nu, M, Q, pi, noise, variance, tempering=UNTEMPERED):
    """F(b) as b E log p(x, z | mu) + E log p(mu) + H(z) + H(mu), datum by datum.

    nu is (N, K) here; under the posterior form p(mu) has variance T sigma_mu.
    """
    b, form = tempering[:2]
    prior = variance / b if form == "posterior" else variance
    K, D = M.shape
    total = 0.0
    for x, p in zip(X, nu, strict=True):
        pairs = np.outer(p, p)
        np.fill_diagonal(pairs, p)
        squares = sum(np.sum(pairs * (np.outer(m, m) + Q)) for m in M.T)
        distance = x @ x - 2 * x @ (p @ M) + squares
        likelihood = -0.5 * D * np.log(2 * np.pi * noise) - distance / (2 * noise)
        likelihood += np.sum(p * np.log(pi) + (1 - p) * np.log(1 - pi))
        total += b * likelihood + np.sum(entr(p) + entr(1 - p))
    for m in M.T:
        total -= 0.5 * (K * np.log(2 * np.pi * prior) + (m @ m + np.trace(Q)) / prior)
        total += 0.5 * np.linalg.slogdet(2 * np.pi * np.e * Q)[1]
    return total


def tiny_problem(covariance, *, shape=(4, 3, 2), seed=0, **options):
    """A model of (N, K, D) in some state of its factors, and its data."""
    rng = np.random.RandomState(seed)
    N, K, D = shape
    X = rng.normal(0, 1.5, (N, D))
    model = FMM(
        K,
        D,
        prior_probability=rng.uniform(0.2, 0.7, K),
        noise_variance=0.6,
        component_variance=0.8,
        covariance=covariance,
        **options,
    )
    model.start(X, rng.normal(0, 1, (K, D)))
    spread = rng.normal(0, 0.4, (K, K))
    model.covariance_matrix = np.eye(K) * rng.uniform(0.1, 0.5, K)
    if covariance == "full":
        model.covariance_matrix += spread @ spread.T
    model.nu[:, :N] = rng.uniform(0.1, 0.9, (K, N))
    return model, X


def value(model, X, tempering=UNTEMPERED, **changed):
    """The written-out objective of a model's state, with something changed."""
    state = {
        "nu": model.nu[:, : len(X)].T,
        "M": model.means,
        "Q": model.covariance_matrix,
        "pi": model.prior_probability,
        "noise": model.noise_variance,
        "variance": model.component_variance,
        "tempering": tempering,
    }
    return objective(X, **(state | changed))


def step(model, X, tempering=UNTEMPERED):
    """One iteration of batch inference."""
    local = model.local_step(Batch(X, slice(0, len(X))), tempering)
    model.global_step(local.statistics, 1.0, 1.0, tempering)


def bit_matrices(n_rows, n_columns):
    """All matrices of 0 and 1."""
    for bits in itertools.product((0.0, 1.0), repeat=n_rows * n_columns):
        yield np.reshape(bits, (n_rows, n_columns))
