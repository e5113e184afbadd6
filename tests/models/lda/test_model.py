"""The annealed objective of LDA: its closed form, and that every step ascends it."""

import pickle
import weakref

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.special import gammaln, logsumexp, psi

from annealvi.model import Batch, Tempering
from annealvi.models.lda import model as model_module
from tests.asserts import refused
from tests.marks import twenty_problems
from tests.models.lda.pair import LDA, LocalOptions
from tests.models.lda.problems import bounds_of_steps, random_corpus
from tests.models.lda.streams import dense


def kl_to_prior(posterior, prior):
    """KL(Dir(posterior) || Dir(prior)) of one Dirichlet."""
    log_norm, other = (gammaln(a.sum()) - gammaln(a).sum() for a in (posterior, prior))
    return log_norm - other + (posterior - prior) @ (psi(posterior) - psi(posterior.sum()))


def annealed_elbo(X, lam, gamma, alpha, eta, b):
    """F(b) of methods' section on LDA, written out."""
    e_log_beta = psi(lam) - psi(lam.sum(axis=1, keepdims=True))
    both = zip(lam, np.broadcast_to(eta, lam.shape), strict=True)
    total = -sum(kl_to_prior(row, e) for row, e in both)
    for counts, row in zip(X, gamma, strict=True):
        e_log_theta = psi(row) - psi(row.sum())
        total += np.sum(counts * logsumexp(b * (e_log_theta[:, None] + e_log_beta), axis=0))
        total -= kl_to_prior(row, alpha)
    return total


@pytest.mark.thinned
@pytest.mark.parametrize("form", ["likelihood", "posterior"])
@pytest.mark.parametrize("T", [1.0, 2.0, 5.0])
@pytest.mark.parametrize("shape", [(), (41,), (4, 41)])
def test_elbo_is_the_written_out_objective(counts, shape, T, form):
    rng = np.random.RandomState(0)
    alpha, eta = rng.rand(4) + 0.1, rng.random_sample(shape) + 0.05
    model = LDA(4, 41, alpha=alpha, eta=eta)
    eta = np.broadcast_to(eta, (4, 41))
    model.initialize(rng)
    gamma = rng.gamma(2.0, 1.0, (60, 4))
    b = 1 / T
    if form == "posterior":  # the priors it amounts to
        alpha, eta = (alpha + T - 1) / T, eta / T
    expected = annealed_elbo(counts.toarray(), model.components, gamma, alpha, eta, b)
    assert model.elbo(counts, gamma, Tempering(b, form)) == pytest.approx(expected, rel=1e-12)


@pytest.mark.thinned
@twenty_problems
@pytest.mark.parametrize("form", ["likelihood", "posterior"])
@pytest.mark.parametrize("T", [1.0, 2.0, 5.0])
def test_the_objective_never_falls(T, form, seeds):
    """Random problems, gamma kept from step to step: F(1/T) rises at every step."""
    tempering = Tempering(1 / T, form)
    for seed in seeds:
        X, shape, rng = random_corpus(seed)
        alpha, eta = rng.choice([0.02, 0.3, 2.0], 2)
        options = LocalOptions(rng.choice([1, 3, 100]), 1e-3, warm=True)
        model = LDA(*shape, alpha=alpha, eta=eta, options=options)
        model.initialize(rng)
        model.start_documents(30)
        bounds = bounds_of_steps(model, X, tempering, 25)
        assert np.min(np.diff(bounds) / np.abs(bounds[1:])) >= -1e-9, (seed, T, form)
        assert bounds[-1] > bounds[0]


def test_as_printed_the_posterior_form_ascends_the_tempered_elbo_and_a_base_measure():
    """T F(1/T; (alpha+T-1)/T, eta/T) = Eq. 5 + (T-1) E log h(beta), up to a constant."""
    rng = np.random.RandomState(0)
    T, alpha, eta = 2.5, 0.3, 0.2
    X = rng.poisson(1.0, (7, 9)).astype(float)

    def entropy(row):
        return -kl_to_prior(row, np.ones_like(row)) - gammaln(len(row))

    def tempered_elbo(lam, gamma):
        e_log_beta = psi(lam) - psi(lam.sum(axis=1, keepdims=True))
        total = np.sum((eta - 1) * e_log_beta) + T * sum(entropy(row) for row in lam)
        total += (T - 1) * np.sum(-e_log_beta)  # E log h(beta), h = prod 1/beta
        for counts, row in zip(X, gamma, strict=True):
            e_log_theta = psi(row) - psi(row.sum())
            scores = e_log_theta[:, None] + e_log_beta
            # energy + T * entropy of phi at its best is T log sum exp(scores / T)
            total += T * np.sum(counts * logsumexp(scores / T, axis=0))
            total += np.sum((alpha - 1) * e_log_theta) + T * entropy(row)
        return total

    differences = []
    for _ in range(3):
        lam, gamma = rng.gamma(2.0, 1.0, (3, 9)) + 0.1, rng.gamma(2.0, 1.0, (7, 3)) + 0.1
        model = LDA(3, 9, alpha=alpha, eta=eta)
        model.assign(lam)
        ours = T * model.elbo(sparse.csr_matrix(X), gamma, Tempering(1 / T, "posterior"))
        differences.append(ours - tempered_elbo(lam, gamma))
    assert_allclose(differences, differences[0], rtol=1e-10)


def test_batch_under_the_posterior_form_divides_by_T(counts):
    model = LDA(3, 41, alpha=0.1, eta=0.3)
    model.initialize(np.random.RandomState(0))
    local = model.local_step(Batch(counts, slice(0, 60)), Tempering(0.5, "posterior"))
    raw = dense(local.statistics, 3) / 0.5
    model.global_step(local.statistics, 1.0, 1.0, Tempering(0.5, "posterior"))
    assert_allclose(model.components.T, (0.3 + raw) / 2, rtol=1e-12)


def test_weights_of_topics_that_have_moved_on_are_let_go(counts):
    model = LDA(3, 41, alpha=0.1, eta=0.3)
    model.initialize(np.random.RandomState(0))
    model.infer(counts)
    weights = weakref.ref(*model.derived.values())
    local = model.local_step(Batch(counts, slice(0, 60)), Tempering())
    model.global_step(local.statistics, 0.5, 1.0, Tempering())
    assert weights() is None


@pytest.mark.slow
def test_a_share_of_tokens_stops_documents_alike_at_any_number_of_topics(counts):
    n_words = np.asarray(counts.sum(axis=1)).ravel()
    for n_topics in (2, 50):
        for share in (0.03, 0.001):
            model = LDA(n_topics, 41, alpha=0.1, eta=0.1)
            model.assign(np.random.RandomState(1).gamma(0.3, 1.0, (n_topics, 41)) + 0.02)
            gammas = [np.ones((60, n_topics))]
            for n in range(1, 200):
                model.options = LocalOptions(n, 0.0)
                gammas.append(model.infer(counts))
            model.options = LocalOptions(199, share, by_topic=False)
            stopped = model.infer(counts)
            enough = np.abs(np.diff(gammas, axis=0)).sum(axis=2) < share * n_words
            n_iterations = np.argmax(enough, axis=0) + 1
            assert enough[:, n_words > 0].any(axis=0).all()
            assert len(set(n_iterations[n_words > 0])) > 1
            for d in np.flatnonzero(n_words > 0):
                assert_allclose(stopped[d], gammas[n_iterations[d]][d], rtol=1e-12)


def test_no_documents_have_no_proportions_and_no_energies(counts):
    model = LDA(4, 41, alpha=0.1, eta=0.1)
    model.initialize(np.random.RandomState(0))
    gamma = model.infer(counts[:0])
    assert gamma.shape == (0, 4)
    assert model.energies(counts[:0], gamma).shape == (0,)


def test_a_random_start_of_documents_needs_a_generator():
    model = LDA(4, 41, alpha=0.1, eta=0.1, options=LocalOptions(exact=True))
    rng = np.random.RandomState(0)
    assert model.engine.start(model, slice(0, 60), rng).shape == (60, 4)
    refused("random_state_", model.engine.start, model, slice(0, 60), None)


def test_sums_that_are_being_computed_are_not_seen(monkeypatch):
    """A worker may send a model to another worker while its task computes the sums."""
    model = model_module.LDA(3, 5, alpha=0.1, eta=0.1)
    model.assign(np.arange(1.0, 16.0).reshape(3, 5))
    compute = model_module.kernels.sum_topics
    seen = []

    def sum_topics(*arguments, **more):
        seen.append(pickle.loads(pickle.dumps(model)))
        compute(*arguments, **more)

    monkeypatch.setattr(model_module.kernels, "sum_topics", sum_topics)
    expected = model.sums
    (copied,) = seen
    assert_array_equal(copied.sums, expected)
    assert_array_equal(expected, [15.0, 40.0, 65.0])
