"""Problems for the Gaussian mixture, and its annealed objective written out."""

import itertools
from dataclasses import fields
from typing import NamedTuple

import numpy as np
from numpy.testing import assert_allclose
from scipy.special import gammaln

from annealvi.model import UNTEMPERED, Batch
from annealvi.models.gmm import GMM, Natural

TYPES = ("diag", "spherical")
#: Covariance type, whether weights are known, whether precisions are.
KINDS = list(itertools.product(TYPES, (False, True), (False, True)))
LOG_2PI = np.log(2 * np.pi)


class Problem(NamedTuple):
    """Data, priors, and what is known."""

    X: np.ndarray
    alpha: np.ndarray
    m: np.ndarray
    kappa: float
    nu: float
    beta: np.ndarray
    weights: np.ndarray | None
    covariances: np.ndarray | None
    covariance_type: str

    @property
    def shared(self):
        """Dimensions that share a precision."""
        return self.X.shape[1] if self.covariance_type == "spherical" else 1

    @property
    def gamma(self):
        """Shape and rates of the prior of the precisions."""
        beta = np.sum(self.beta, keepdims=True) if self.shared > 1 else self.beta
        return self.shared * self.nu / 2, beta / 2


def make_problem(covariance_type="diag", known=(False, False), *, shape=(5, 2, 2), seed=0):
    """A problem of (N, K, D) with `known` weights and precisions."""
    rng = np.random.RandomState(seed)
    N, K, D = shape
    covariances = rng.uniform(0.3, 2.0, (K, 1 if covariance_type == "spherical" else D))
    return Problem(
        X=rng.normal(1.0, 1.5, (N, D)),
        alpha=rng.uniform(0.3, 2.0, K),
        m=rng.normal(0, 1, D),
        kappa=rng.uniform(0.2, 1.5),
        nu=rng.uniform(1.5, 4.0),
        beta=rng.uniform(0.5, 3.0, D),
        weights=rng.dirichlet(np.ones(K)) if known[0] else None,
        covariances=np.broadcast_to(covariances, (K, D)) if known[1] else None,
        covariance_type=covariance_type,
    )


def make_model(problem):
    return GMM(
        len(problem.alpha),
        problem.X.shape[1],
        alpha=problem.alpha,
        mean_prior=problem.m,
        kappa=problem.kappa,
        nu=problem.nu,
        beta=problem.beta,
        known_weights=problem.weights,
        known_covariances=problem.covariances,
        covariance_type=problem.covariance_type,
    )


def random_phi(problem, seed=0):
    shape = len(problem.X), len(problem.alpha)
    return np.random.RandomState(seed).dirichlet(np.ones(shape[1]), shape[0])


def in_some_state(problem, seed=0):
    """A model whose q is not what any update gives."""
    model, rng = make_model(problem), np.random.RandomState(seed)
    model.start(problem.X, responsibilities=random_phi(problem, seed))
    K, D = model.n_components, model.n_features
    kappa, m = rng.uniform(0.5, 4.0, K), rng.normal(0, 1, (K, D))
    model.posterior = Natural(
        alpha=rng.uniform(1.0, 4.0, K),
        kappa=kappa,
        shift=kappa[:, None] * m,
        nu=rng.uniform(8.0, 12.0, K),
        square=rng.uniform(3.0, 9.0, (K, D)) + kappa[:, None] * m**2,
    )
    return model


def everything(problem):
    return Batch(problem.X, slice(0, len(problem.X)))


def step(model, problem, tempering=UNTEMPERED):
    """One iteration of batch inference."""
    local = model.local_step(everything(problem), tempering)
    model.global_step(local.statistics, 1.0, 1.0, tempering)
    return local


def assert_same(q, other, **tolerance):
    """Two sets of natural parameters, field by field."""
    for field in fields(Natural):
        assert_allclose(
            getattr(q, field.name), getattr(other, field.name), err_msg=field.name, **tolerance
        )


def weight_nodes(alpha, reach=28.0, spacing=0.45):
    """w of two components on an even grid of logits, and log of their spacing in w."""
    reach /= min(1.0, alpha.min())
    logit = np.arange(-reach, reach, spacing)
    log_w = np.stack([-np.logaddexp(0, -logit), -np.logaddexp(0, logit)], axis=1)
    return log_w, log_w.sum(axis=1) + np.log(logit[1] - logit[0])


def log_dirichlet(alpha, log_w):
    return gammaln(alpha.sum()) - gammaln(alpha).sum() + log_w @ (alpha - 1)
