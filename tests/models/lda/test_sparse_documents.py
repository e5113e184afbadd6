"""The sparse local step against loops, and the objective that it never lowers."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse
from scipy.special import gammaln, logsumexp, psi

from annealvi.model import Batch, Tempering
from tests.models.lda.naive import fits
from tests.models.lda.pair import LDA, LocalOptions

SHAPE = (6, 50)
TEMPERATURES = (1.0, 1.2, 1.4)


def corpus(n_samples=12, seed=0):
    X = np.random.RandomState(seed).poisson(0.6, (n_samples, SHAPE[1])).astype(float)
    X[3] = 0
    X[4] = np.eye(SHAPE[1])[7]
    return sparse.csr_matrix(X)


def make(is_sparse=True, dtype=np.float64, alpha=0.15, **options):
    options = dict(max_iter=300, tolerance=1e-12) | options
    given = LocalOptions(sparse=is_sparse, **options)
    model = LDA(*SHAPE, alpha=alpha, eta=0.1, dtype=dtype, estimate="map", options=given)
    model.initialize(np.random.RandomState(1))
    return model


def objective(model, X, gamma, tempering):
    """Each document's part of the objective of training."""
    gammas = [None] * X.shape[0] if gamma is None else [row[None] for row in gamma]
    pairs = zip(X, gammas, strict=True)
    return np.array(
        [model.engine.objective(model, one, tempering, gamma=own) for one, own in pairs]
    )


def naive_objective(counts, beta, gamma, alpha, b, kappa):
    """J of a document at the phi of a gamma, where gamma = alpha + b n already holds."""
    scores = b * ((psi(gamma) - kappa / gamma)[:, None] + np.log(beta))
    log_phi = scores - logsumexp(scores, axis=0)
    total = np.sum(counts * np.exp(log_phi) * (b * np.log(beta) - log_phi))
    total += gammaln(gamma).sum() - gammaln(alpha * np.ones(len(gamma))).sum()
    total -= gammaln(gamma.sum()) - gammaln(alpha * len(gamma))
    return total - kappa * np.log(gamma / alpha).sum()


@pytest.mark.parametrize("T", [1.0, 1.1, 1.25, 1.4, 1.5, 2.0, 6.0])
def test_the_sparsity_of_a_temperature(T):
    expected = 0.5 * max(0.0, (1.5 - T) / 0.5)
    assert make().kappa(Tempering(1 / T)) == pytest.approx(expected)
    assert make(False).kappa(Tempering(1 / T)) == 0


@pytest.mark.thinned
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("T", TEMPERATURES)
@pytest.mark.parametrize("n_iterations", [1, 2, 7])
def test_iterations_against_loops(n_iterations, T, dtype):
    model, X, b = make(dtype=dtype, max_iter=n_iterations), corpus().astype(dtype), 1 / T
    kappa = model.kappa(Tempering(b))
    beta = model.up_to_date_lambda()[:, : SHAPE[0]].T.astype(np.float64)
    beta /= beta.sum(axis=1, keepdims=True)
    gamma = np.ones((X.shape[0], SHAPE[0]), dtype)
    model.fit(X, gamma, Tempering(b), kappa=kappa)
    given = np.log(beta), 0.15, n_iterations
    expected = fits(X.toarray(), 1.0, b, *given, log_of=np.asarray, kappa=kappa)[0]
    assert_allclose(gamma, expected, rtol=2e-4 if dtype == np.float32 else 1e-9)


def test_training_uses_it_and_inference_does_not():
    sparse_one, plain, X = make(warm=True), make(False, warm=True), corpus()
    for model in (sparse_one, plain):
        model.assign(np.random.RandomState(2).gamma(0.2, 1.0, SHAPE) + 0.05)
        model.start_documents(X.shape[0])
        model.local_step(Batch(X, slice(0, X.shape[0])), Tempering())
    concentrated = [np.sum(model.gamma**2) for model in (sparse_one, plain)]
    assert concentrated[0] > 1.02 * concentrated[1]  # documents of fewer topics
    assert_allclose(sparse_one.infer(X), plain.infer(X), rtol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("T", [1.2, 1.0, 1.4])
def test_the_objective_against_loops(T):
    model, X, b = make(), corpus(), 1 / T
    kappa = model.kappa(Tempering(b))
    beta = model.up_to_date_lambda()[:, : SHAPE[0]].T
    beta = beta / beta.sum(axis=1, keepdims=True)
    given = np.log(beta), 0.15, 3000
    gamma = fits(X.toarray(), 1.0, b, *given, log_of=np.asarray, kappa=kappa)[0]
    both = zip(X.toarray(), gamma, strict=True)
    found = objective(model, X, gamma, Tempering(b))
    expected = [naive_objective(row, beta, at, 0.15, b, kappa) for row, at in both]
    assert_allclose(found, expected, rtol=1e-8, atol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("T", TEMPERATURES)
def test_no_iteration_lowers_the_objective(T):
    X, values = corpus(), []
    for n_iterations in range(1, 40):
        model = make(max_iter=n_iterations, prune=False)
        values.append(objective(model, X, None, Tempering(1 / T)))
    rises = np.diff(values, axis=0)
    assert np.min(rises) > -1e-9
    assert np.max(rises) > 0.1  # there was something to ascend


@pytest.mark.slow
@pytest.mark.parametrize("T", [1.2, 1.0, 1.4])
def test_no_full_step_lowers_the_objective(T):
    """Of documents and topics together, each document going on from its gamma."""
    model, X, tempering, values = make(warm=True), corpus(40), Tempering(1 / T), []
    model.start_documents(X.shape[0])
    for _ in range(30):
        step = model.local_step(Batch(X, slice(0, X.shape[0])), tempering)
        gamma = model.gamma
        before = objective(model, X, gamma, tempering).sum()
        values.append(before + model.bound(tempering.of_priors))
        model.global_step(step.statistics, 1.0, 1.0, tempering)
        after = objective(model, X, gamma, tempering).sum()
        values.append(after + model.bound(tempering.of_priors))
    assert np.min(np.diff(values)) > -1e-8 * abs(values[-1]) and values[-1] > values[0] + 1


def test_without_sparsity_it_is_the_bound():
    model, X = make(False), corpus()
    gamma = model.infer(X)
    found = objective(model, X, gamma, Tempering())
    assert_allclose(found, model.bounds(X, gamma))
