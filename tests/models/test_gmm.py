"""The Gaussian mixture: its annealed objective written out and ascended; minibatches, symmetry."""

import itertools
from dataclasses import fields, replace
from typing import NamedTuple

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats
from scipy.optimize import minimize
from scipy.special import entr, gammaln, logsumexp, psi, softmax

from annealvi import TemperedGaussianMixture
from annealvi.inference import Monitor, RobbinsMonro, optimise
from annealvi.model import UNTEMPERED, Batch, Tempering
from annealvi.models.gmm import PERTURBATION, Natural
from annealvi.temperature import Fixed
from tests.marks import twenty_problems
from tests.models.gmm_problems import (
    KINDS,
    LOG_2PI,
    TYPES,
    assert_same,
    everything,
    in_some_state,
    log_dirichlet,
    make_model,
    make_problem,
    random_phi,
    step,
    weight_nodes,
)

FORMS = ("likelihood", "posterior")
TEMPERINGS = [UNTEMPERED, Tempering(0.4), Tempering(0.4, "posterior")]


class Factors(NamedTuple):
    """q(w) = Dir(alpha), q(lambda) = Gamma(a, r), q(mu | lambda) = N(m, 1 / (kappa lambda)).

    Wider than the model's: kappa and a may differ between dimensions.
    """

    alpha: np.ndarray
    m: np.ndarray
    kappa: np.ndarray
    a: np.ndarray
    r: np.ndarray


def objective(problem, phi, q, tempering):
    """F(b) as b E log p(x, z | w, mu, lambda) + E log p(w, mu, lambda) + H(q).

    Under the posterior form b multiplies E log p(w, mu, lambda) too, so F is that of the
    normalised p^b up to the logarithm of its normaliser.
    """
    b, form = tempering[:2]
    power = b if form == "posterior" else 1.0
    prior, entropy = 0.0, entr(phi).sum()
    if problem.weights is None:
        log_w = psi(q.alpha) - psi(q.alpha.sum())
        prior += gammaln(problem.alpha.sum()) - gammaln(problem.alpha).sum()
        prior += (problem.alpha - 1) @ log_w
        entropy += gammaln(q.alpha).sum() - gammaln(q.alpha.sum()) - (q.alpha - 1) @ log_w
    else:
        log_w = np.log(problem.weights)
    if problem.covariances is None:
        a, r = problem.gamma
        log_lambda, precision = psi(q.a) - np.log(q.r), q.a / q.r
        prior += np.sum(a * np.log(r) - gammaln(a) + (a - 1) * log_lambda - r * precision)
        entropy += np.sum(q.a - np.log(q.r) + gammaln(q.a) + (1 - q.a) * psi(q.a))
    else:
        log_lambda, precision = -np.log(problem.covariances), 1 / problem.covariances
    log_lambda = log_lambda + np.zeros_like(q.m)  # one for each dimension
    distance = precision * (q.m - problem.m) ** 2 + 1 / q.kappa
    prior += 0.5 * np.sum(np.log(problem.kappa) + log_lambda - LOG_2PI - problem.kappa * distance)
    entropy += 0.5 * np.sum(LOG_2PI + 1 - np.log(q.kappa) - log_lambda)
    distance = precision * (problem.X[:, None] - q.m) ** 2 + 1 / q.kappa
    log_x = 0.5 * np.sum(log_lambda - LOG_2PI - distance, axis=2)
    likelihood = np.sum(phi * (log_w + log_x))
    return b * likelihood + power * prior + entropy


def factors(model):
    """q as the objective takes it."""
    q = model.posterior
    width = 1 if model.covariance_type == "spherical" else model.n_features
    shared = model.n_features // width
    a = np.tile(0.5 * shared * q.nu[:, None], width)
    kappa = np.tile(q.kappa[:, None], model.n_features)
    return Factors(q.alpha, model.means, kappa, a, a / model.precisions[:, :width])


def responsibilities(model, problem, tempering):
    """phi, read from the statistics of one datum after another."""
    rows = []
    for n in range(len(problem.X)):
        local = model.local_step(Batch(problem.X, slice(n, n + 1)), tempering)
        rows.append(local.statistics.alpha / tempering.inverse)
    return np.array(rows)


def maximise(function, start):
    return minimize(lambda x: -function(x), start, jac="3-point", options={"gtol": 1e-7}).x


# -------------------------------------------------------------------- the updates


@pytest.mark.parametrize("tempering", TEMPERINGS)
@pytest.mark.parametrize(("covariance_type", "weights", "precisions"), KINDS)
def test_responsibilities_maximise_the_objective(covariance_type, weights, precisions, tempering):
    problem = make_problem(covariance_type, (weights, precisions), shape=(3, 3, 2))
    model = in_some_state(problem)
    q, b = factors(model), tempering.inverse
    phi = np.empty((3, 3))
    for n in range(3):
        datum = problem._replace(X=problem.X[n : n + 1])

        def after(logits, datum=datum):
            return objective(datum, softmax(np.append(logits, 0))[None], q, tempering)

        phi[n] = softmax(np.append(maximise(after, np.zeros(2)), 0))
    assert_allclose(responsibilities(model, problem, tempering), phi, atol=1e-6)
    local = model.local_step(everything(problem), tempering)
    X = problem.X - problem.X.mean(axis=0)
    count = b * phi.sum(axis=0)
    expected = Natural(count, count, b * phi.T @ X, count, b * phi.T @ X**2)
    assert_same(local.statistics, expected, atol=1e-5)
    assert_allclose(local.entropy, entr(phi).sum(axis=1), atol=1e-5)


@pytest.mark.parametrize("tempering", TEMPERINGS)
@pytest.mark.parametrize(("covariance_type", "weights", "precisions"), KINDS)
def test_every_factor_maximises_the_objective(covariance_type, weights, precisions, tempering):
    """In a family that has a kappa and a Gamma shape for each dimension."""
    problem = make_problem(covariance_type, (weights, precisions))
    model = in_some_state(problem)
    phi = responsibilities(model, problem, tempering)
    learned = Factors(not weights, True, True, not precisions, not precisions)
    positive = Factors(True, False, True, True, True)
    start = factors(model)

    def unpack(parameters):
        values, done = [], 0
        for first, is_learned, is_positive in zip(start, learned, positive, strict=True):
            if not is_learned:
                values.append(first)
                continue
            value = parameters[done : done + first.size].reshape(first.shape)
            values.append(np.exp(value) if is_positive else value)
            done += first.size
        return Factors(*values)

    packed = [
        (np.log(first) if is_positive else first).ravel()
        for first, is_learned, is_positive in zip(start, learned, positive, strict=True)
        if is_learned
    ]
    best = unpack(
        maximise(lambda x: objective(problem, phi, unpack(x), tempering), np.concatenate(packed))
    )
    step(model, problem, tempering)
    for name, is_learned, ours, theirs in zip(
        Factors._fields, learned, factors(model), best, strict=True
    ):
        if is_learned:
            assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6, err_msg=name)


# -------------------------------------------------------------------- the objective


@pytest.mark.parametrize("b", [1.0, 0.4])
@pytest.mark.parametrize(("covariance_type", "weights", "precisions"), KINDS)
def test_elbo_and_energy_in_any_state(covariance_type, weights, precisions, b):
    problem = make_problem(covariance_type, (weights, precisions), shape=(6, 3, 2))
    model, tempering = in_some_state(problem), Tempering(b)
    phi = responsibilities(model, problem, tempering)
    local = model.local_step(everything(problem), tempering)
    variances = problem.covariances if precisions else np.ones((3, 2))
    base = -0.5 * 6 * np.sum(LOG_2PI + np.log(variances).mean(axis=0))
    assert model.log_base_measure() == pytest.approx(base, rel=1e-12)
    for _ in range(2):  # before and after the globals have moved
        assert model.elbo(tempering) == pytest.approx(
            objective(problem, phi, factors(model), tempering), rel=1e-11
        )
        slope = objective(problem, phi, factors(model), Tempering(2.0))  # F is linear in b
        slope -= objective(problem, phi, factors(model), Tempering(1.0))
        assert local.energy == model.energy()
        assert model.energy() + model.log_base_measure() == pytest.approx(slope, rel=1e-10)
        model.global_step(local.statistics, 1.0, 1.0, tempering)


def log_component_prior(problem, mu, precision):
    total = stats.norm.logpdf(mu, problem.m[0], 1 / np.sqrt(problem.kappa * precision))
    if problem.covariances is None:
        total += stats.gamma.logpdf(precision, problem.nu / 2, scale=2 / problem.beta[0])
    return total


def log_prior_normaliser(problem, power):
    """log of the integral of p(w, mu, lambda)^power, by the trapezium rule."""
    log_w, log_spacing = weight_nodes(problem.alpha * power + 1 - power)
    total = logsumexp(power * log_dirichlet(problem.alpha, log_w) + log_spacing)
    for k in range(2):
        if problem.covariances is None:
            log_lambda = np.arange(-60.0, 10.0, 0.25)
            log_spacing = log_lambda + np.log(0.25)
        else:
            log_lambda, log_spacing = -np.log(problem.covariances[k]), np.zeros(1)
        sd = np.exp(-0.5 * log_lambda[:, None]) / np.sqrt(problem.kappa * power)
        mu = problem.m[0] + sd * np.arange(-9.0, 9.0, 0.25)
        log_p = log_component_prior(problem, mu, np.exp(log_lambda[:, None]))
        total += logsumexp(power * log_p + log_spacing[:, None] + np.log(0.25 * sd))
    return total


@pytest.mark.parametrize("precisions", [True, False])
def test_the_posterior_form_powers_the_prior(precisions):
    """By quadrature: apart by the normaliser of p^b, which depends on no factor."""
    problem, tempering = make_problem("diag", (False, precisions), shape=(3, 2, 1)), TEMPERINGS[2]
    for seed in range(3):
        model = in_some_state(problem, seed)
        phi = responsibilities(model, problem, tempering)
        model.local_step(everything(problem), tempering)
        gap = objective(problem, phi, factors(model), tempering) - model.elbo(tempering)
        assert gap == pytest.approx(log_prior_normaliser(problem, tempering.inverse), rel=1e-9)
    model.local_step(everything(problem), UNTEMPERED)
    assert model.elbo(Tempering(1.0, "posterior")) == pytest.approx(model.elbo(), rel=1e-14)
    assert model.elbo(Tempering(0.4)) != pytest.approx(model.elbo(), rel=0.01)


def test_elbo_of_one_component_is_the_evidence():
    """Conjugate and with no z, so q is exact: the evidence is a product of predictives."""
    problem = make_problem("diag", shape=(7, 1, 3))
    model = make_model(problem)
    model.start(problem.X, responsibilities=np.ones((7, 1)))
    step(model, problem)
    evidence = 0.0
    for x, m, beta in zip(problem.X.T, problem.m, problem.beta, strict=True):
        kappa, nu = problem.kappa, problem.nu
        for value in x:
            scale = np.sqrt(beta * (kappa + 1) / (nu * kappa))
            evidence += stats.t.logpdf(value, nu, m, scale)
            beta = beta + kappa * (value - m) ** 2 / (kappa + 1)
            m, kappa, nu = (kappa * m + value) / (kappa + 1), kappa + 1, nu + 1
    assert model.elbo() == pytest.approx(evidence, rel=1e-12)


# -------------------------------------------------------------------- ascent


def random_problem(seed, kind):
    """Clusters, and a problem of other parameters."""
    rng = np.random.RandomState(seed)
    N, K, D = rng.randint(5, 60), rng.randint(1, 7), rng.randint(1, 5)
    problem = make_problem(kind[0], kind[1:], shape=(N, K, D), seed=seed)
    X = rng.normal(0, rng.choice([1.0, 5.0]), (4, D))[rng.randint(4, size=N)]
    return problem._replace(
        X=X + rng.choice([0.1, 1.0]) * rng.standard_normal((N, D)),
        kappa=rng.choice([0.01, 1.0]),
        nu=float(rng.choice([0.3, 1.0, D])),
    )


@twenty_problems
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_the_objective_never_falls(kind, form, seeds):
    """Random problems: F(1/T) rises at every half step, from the first update on."""
    improper = 0
    for seed, T in itertools.product(seeds, (1.0, 2.0, 5.0)):
        problem, tempering = random_problem(seed, kind), Tempering(1 / T, form)
        model = make_model(problem)
        model.start(problem.X, responsibilities=random_phi(problem, seed))
        # p^b holds lambda^(b (shared nu/2 + shared/2 - 1)), a Gamma's with mu's shared/2
        shape = problem.shared / 2 * (problem.nu + 1) - 1
        shape = shape / T + 1 - problem.shared / 2
        if form == "posterior" and problem.covariances is None and shape <= 0:
            improper += 1
            with pytest.raises(ValueError, match=f"{problem.nu}, is improper at T={T:.4g}"):
                step(model, problem, tempering)
            continue
        step(model, problem, tempering)
        bounds = [model.elbo(tempering)]
        for _ in range(5):
            local = model.local_step(everything(problem), tempering)
            bounds.append(model.elbo(tempering))
            model.global_step(local.statistics, 1.0, 1.0, tempering)
            bounds.append(model.elbo(tempering))
        bounds = np.array(bounds)
        assert np.min(np.diff(bounds) / np.abs(bounds[1:])) >= -1e-9, (seed, T)
        if model.n_components > 1:
            assert bounds[-1] > bounds[0]
        if T == 1:
            assert bounds[-1] == pytest.approx(model.elbo(), rel=1e-12)
    assert (improper > 0) == (
        form == "posterior" and kind in [("spherical", False, False), ("spherical", True, False)]
    )


# -------------------------------------------------------------------- minibatches


def prior_of(problem, b=1.0):
    """Natural parameters of p(w, mu, lambda)^b, relative to the mean of the data."""
    K, m = len(problem.alpha), problem.m - problem.X.mean(axis=0)
    shared = problem.shared
    return Natural(
        alpha=b * (problem.alpha - 1) + 1,
        kappa=np.full(K, b * problem.kappa),
        shift=np.tile(b * problem.kappa * m, (K, 1)),
        nu=np.full(K, 2 / shared * (b * (shared / 2 * (problem.nu + 1) - 1) + 1) - 1),
        square=np.tile(b * (problem.beta + problem.kappa * m**2), (K, 1)),
    )


@pytest.mark.parametrize(
    ("rho", "tempering", "effective"),
    [
        (0.3, UNTEMPERED, 0.3),
        (0.3, Tempering(0.4), 0.3),
        (0.3, Tempering(0.4, "posterior"), 0.75),
        (0.7, Tempering(0.4, "posterior"), 1.0),
    ],
)
@pytest.mark.parametrize("covariance_type", TYPES)
def test_a_small_step_is_a_convex_combination(covariance_type, rho, tempering, effective):
    problem = make_problem(covariance_type)
    model = in_some_state(problem)
    before = model.posterior
    local = model.local_step(Batch(problem.X, slice(1, 3)), tempering)
    model.global_step(local.statistics, rho, 2.5, tempering)
    prior = prior_of(problem, tempering.inverse if tempering.form == "posterior" else 1.0)
    expected = {
        field.name: (1 - effective) * getattr(before, field.name)
        + effective * (getattr(prior, field.name) + 2.5 * getattr(local.statistics, field.name))
        for field in fields(Natural)
    }
    assert_same(model.posterior, Natural(**expected), rtol=1e-12)


@pytest.mark.parametrize("tempering", [UNTEMPERED, Tempering(0.8), Tempering(0.8, "posterior")])
def test_many_small_steps_approach_the_batch_optimum(tempering):
    rng = np.random.RandomState(0)
    X = np.concatenate([rng.normal(-3, 1, (100, 1)), rng.normal(3, 0.5, (200, 1))])
    X = X[rng.permutation(300)]
    problem = make_problem(shape=(1, 2, 1))._replace(X=X)
    temperature = Fixed(1 / tempering.inverse, form=tempering.form)

    def fit(n_passes, **how):
        model = make_model(problem)
        model.start(X, means=[[-2.0], [2.0]])
        optimise(model, X, temperature, Monitor(), n_samples=300, n_passes=n_passes, **how)
        return model.posterior

    batch = fit(60)
    assert_same(fit(150, step_size=lambda t: 0.3), batch, rtol=1e-9)
    online = fit(60, batch_size=30, step_size=RobbinsMonro(0.7, 10.0))
    assert_same(online, batch, rtol=0.02)
    assert not np.allclose(online.shift, batch.shift, rtol=1e-6)  # it was stochastic


@pytest.mark.parametrize("covariance_type", TYPES)
def test_each_datum_may_have_a_temperature(covariance_type):
    problem = make_problem(covariance_type)
    model, b = in_some_state(problem), np.array([1.0, 0.2, 0.5, 0.8, 0.05])
    total, energy, entropy = 0.0 * model.prior, 0.0, []
    for n in range(5):
        one = model.local_step(Batch(problem.X, slice(n, n + 1)), Tempering(b[n]))
        total = total + one.statistics
        energy += one.energy
        entropy.append(one.entropy[0])
    together = model.local_step(everything(problem), Tempering(b))
    assert_same(together.statistics, total, rtol=1e-12, atol=1e-12)
    assert together.energy == pytest.approx(energy, rel=1e-12)
    assert_allclose(together.entropy, entropy, rtol=1e-12)


# -------------------------------------------------------------------- symmetry, shifts


@pytest.mark.parametrize(("covariance_type", "weights", "precisions"), KINDS)
def test_perturb_moves_means_and_nothing_else(covariance_type, weights, precisions):
    """The last ten of fifty components are told apart by what is known of them."""
    problem = make_problem(covariance_type, (weights, precisions), shape=(20, 50, 5))
    if weights:
        w = np.append(np.ones(40), np.arange(2.0, 12.0))
        problem = problem._replace(weights=w / w.sum())
    if precisions:
        variances = np.append(np.ones(40), np.arange(2.0, 12.0))
        problem = problem._replace(covariances=np.tile(variances[:, None], 5))
    model = make_model(problem)
    model.start(problem.X, responsibilities=random_phi(problem))
    before, means, precision = model.posterior, model.means, model.precisions.copy()
    model.perturb(np.random.RandomState(0))
    moved = (model.means - means) * np.sqrt(precision)
    assert np.std(moved[:40]) == pytest.approx(PERTURBATION, rel=0.2)
    assert np.abs(np.mean(moved[:40])) < 0.3 * PERTURBATION
    if weights or precisions:
        assert np.std(moved[40:]) < 0.1 * PERTURBATION
    assert_allclose(model.precisions, precision, rtol=1e-10)
    after = model.posterior
    assert_same(replace(after, shift=before.shift, square=before.square), before, rtol=0)


@pytest.mark.parametrize("known_weights", [True, False])
def test_equal_components_separate_only_when_perturbed(known_weights):
    """With known precisions; with learned ones the critical temperature is 1."""
    rng = np.random.RandomState(0)
    X = np.concatenate([rng.normal(-4, 1, (50, 1)), rng.normal(4, 1, (50, 1))])
    problem = make_problem(shape=(1, 2, 1))._replace(
        X=X,
        covariances=np.ones((2, 1)),
        alpha=np.ones(2),
        weights=np.array([0.5, 0.5]) if known_weights else None,
        kappa=0.1,
    )
    ends = []
    for perturbed in (False, True):
        model = make_model(problem)
        model.start(X, means=np.zeros((2, 1)))
        for T in np.linspace(30.0, 1.0, 50):  # critical is 17
            step(model, problem, Tempering(1 / T))
            if perturbed and T > 1:
                model.perturb(rng)
        ends.append(np.sort(model.means.ravel()))
    assert ends[0][1] - ends[0][0] < 1e-9
    assert_allclose(ends[1], [-4, 4], atol=0.5)


@pytest.mark.parametrize("temperature", [1.0, "annealed"])
@pytest.mark.parametrize("known", [{}, dict(weights=[0.2, 0.3, 0.5], covariances=1.0)])
@pytest.mark.parametrize("covariance_type", TYPES)
def test_a_shift_of_the_data_shifts_the_fit(covariance_type, known, temperature):
    rng = np.random.RandomState(0)
    centres = np.array([[0, 0], [5, 0], [0, 5]])
    X = np.repeat(centres, 20, axis=0) + rng.standard_normal((60, 2))
    options = dict(covariance_type=covariance_type, temperature=temperature, max_iter=30, tol=0)
    here, there = (
        TemperedGaussianMixture(3, random_state=0, **known, **options).fit(X + shift)
        for shift in (0.0, 1e6)
    )
    assert_allclose(there.means_ - 1e6, here.means_, atol=1e-6)
    assert_allclose(there.covariances_, here.covariances_, rtol=1e-6)
    assert_allclose(there.weights_, here.weights_, rtol=1e-6)
    assert_allclose(there.predict_proba(X + 1e6), here.predict_proba(X), atol=1e-6)
    assert_allclose(there.score_samples(X + 1e6), here.score_samples(X), atol=1e-6)
    assert there.lower_bound_ == pytest.approx(here.lower_bound_, abs=1e-6)
