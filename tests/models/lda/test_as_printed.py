"""Steps of the papers against NumPy written from their equations alone."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse
from scipy.special import gammaln, softmax
from scipy.stats import gmean

from annealvi import LocalVariational, Variational
from annealvi.model import Batch, Tempering
from annealvi.models.lda_prior import LDAPrior
from tests.models.lda.naive import fits, make, naive_log_c

ALPHA, ETA, SIZE = 0.1, 0.05, 8
SEEDS = pytest.mark.parametrize("seed", range(5))


def corpus(seed):
    rng = np.random.RandomState(seed)
    counts = rng.poisson(0.6, (24, 41)) * 1.0
    counts[:, 0] += 1  # no document is empty
    return counts, sparse.csr_matrix(counts)


def start(seed):
    """A model, and its topics as an array."""
    model = make(3, alpha=ALPHA, n_iterations=60)
    topics = np.random.RandomState(seed).gamma(1.0, 1.0, (3, 41)) + 0.3
    model.assign(topics)
    return model, topics


def steps(n=9):
    """Rows of minibatches, and step sizes."""
    for t in range(n):
        first = SIZE * (t % 3)
        yield slice(first, first + SIZE), (2 + t) ** -0.7


def fitted(counts, topics, b, alpha=ALPHA):
    """b times the expected counts of documents, and their energy."""
    _, s, energies, _ = fits(counts, 1.0, b, topics, alpha, 60)
    return s, energies.sum()


def log_mean_word(alpha, eta, b):
    """log of the sum over topics and words of E theta^b E beta^b, of Dirichlet priors."""

    def log_moment(a, n):  # log E x^b of one of n proportions
        return gammaln(a + b) - gammaln(a) + gammaln(n * a) - gammaln(n * a + b)

    return np.log(3 * 41) + log_moment(alpha, 3) + log_moment(eta, 41)


@SEEDS
@pytest.mark.parametrize("T", [1.3, 3.5])
def test_deterministic_annealing(seed, T):
    """Abrol et al. (2014), Eqs. 18 and 20 to 22, with rho T at most 1."""
    counts, X = corpus(seed)
    model, topics = start(seed)
    for t, (rows, rho) in enumerate(steps()):
        heat, rho = max(1.0, T * 0.8**t), rho / 4
        tempering = Tempering(1 / heat, "posterior")
        local = model.local_step(Batch(X, rows), tempering)
        model.global_step(local.statistics, rho, 3.0, tempering)
        # gamma is (alpha + T - 1 + sum n phi) / T; the step is rho (eta + D/B s - T lambda)
        s = heat * fitted(counts[rows], topics, 1 / heat, (ALPHA + heat - 1) / heat)[0]
        topics = (1 - rho * heat) * topics + rho * (ETA + 3 * s)
        assert_allclose(model.components, topics, rtol=1e-9)


@SEEDS
@pytest.mark.filterwarnings("ignore:The learned temperature did not cool")
def test_variational_tempering(seed):
    """Mandt et al. (2016), Eqs. 8 and 9."""
    counts, X = corpus(seed)
    model, topics = start(seed)
    grid = np.geomspace(1, 10, 30)
    log_c = counts.sum() * log_mean_word(ALPHA, ETA, 1 / grid)
    options = dict(damping=1.0, monotone=False, energy_average=1.0, final_fraction=0.0)
    planned = Variational(grid=grid, partition=log_c, **options).plan(9, 3, model=model)
    b = float(planned.tempering(0).inverse)
    for t, (rows, rho) in enumerate(steps()):
        tempering = planned.tempering(t)
        assert tempering.inverse == pytest.approx(b, rel=1e-8)
        local = model.local_step(Batch(X, rows), tempering, True)
        model.global_step(local.statistics, rho, 3.0, tempering)
        planned.observe(local, 3.0)
        s, energy = fitted(counts[rows], topics, b)
        topics = (1 - rho) * topics + rho * (ETA + 3 * s)
        assert_allclose(model.components, topics, rtol=1e-9)
        b = float(softmax(3 * energy / grid - log_c) @ (1 / grid))


@SEEDS
@pytest.mark.parametrize("damping", [None, 0.3])
def test_local_temperatures_move_topics_by_eq_11(seed, damping):
    """Mandt et al. (2016), Eq. 10 with the energy divided by T once, and Eq. 11.

    Damped, the inverse temperatures of a minibatch have the geometric mean B, whose log moves to 0.
    """
    counts, X = corpus(seed)
    model, topics = start(seed)
    inverses, level, moved = np.arange(1, 21) / 20, 1 / 3.9, 1.0
    how = dict(undamped=True) if damping is None else dict(damping=damping)
    temperature = LocalVariational(20, rounds=3, final_fraction=0.0, **how)
    planned = temperature.plan(9, 3, model=model)
    for t, (rows, rho) in enumerate(steps(4)):
        tempering = planned.tempering(t)
        local = model.local_step(Batch(X, rows), tempering)
        model.global_step(local.statistics, rho, 3.0, tempering)
        planned.observe(local, 3.0)
        if moved >= 1:  # log C has the topics of the last step before which rho added up to 1
            of_log_c, moved = topics, 0.0
        moved += rho
        b, gamma = np.full(SIZE, level), np.ones((SIZE, 3))
        for _ in range(3):
            gamma, _, energies, _ = fits(counts[rows], gamma, b, topics, ALPHA, 60)
            log_c = naive_log_c(gamma, of_log_c, counts[rows].sum(axis=1), inverses)
            b = softmax(inverses * energies[:, None] - log_c, axis=1) @ inverses
            if damping is not None:
                b = np.clip(b * level / gmean(b), 0.02, 1)
        s = fits(counts[rows], gamma, b, topics, ALPHA, 60)[1]
        topics = (1 - rho) * topics + rho * (ETA + 3 * s)
        assert_allclose(model.components, topics, rtol=1e-9)
        level **= 1 - (1 - np.exp(-12 / 9) if damping is None else damping)


@SEEDS
def test_the_closed_form_of_log_c(seed):
    lengths = np.random.RandomState(seed).randint(1, 50, 6)
    alpha, eta, inverses = 0.1 + 0.2 * seed, 0.05 + 0.1 * seed, np.array([1.0, 0.7, 0.2])
    prior = LDAPrior(3, 41, lengths, doc_topic_prior=alpha, topic_word_prior=eta)
    found = prior.log_mean_word(inverses)
    assert_allclose(found, log_mean_word(alpha, eta, inverses), rtol=1e-10, atol=1e-12)
