"""The Gaussian mixture: its annealed objective written out and maximised, log C(T), symmetry."""

import itertools
from dataclasses import fields, replace
from typing import NamedTuple

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats
from scipy.special import entr, gammaln, logsumexp, psi, softmax

from annealvi import TemperedGaussianMixture
from annealvi.model import UNTEMPERED, Batch, Tempering
from annealvi.models.gmm import GMM, PERTURBATION, Natural, log_mean_power
from tests.marks import cases
from tests.models.test_fmm import maximise

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
    known = dict(known_weights=problem.weights, known_covariances=problem.covariances)
    priors = dict(alpha=problem.alpha, mean_prior=problem.m, kappa=problem.kappa, nu=problem.nu)
    shape, of_type = (len(problem.alpha), problem.X.shape[1]), problem.covariance_type
    return GMM(*shape, beta=problem.beta, covariance_type=of_type, **known, **priors)


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
    local = model.local_step(everything(problem), tempering)
    model.global_step(local.statistics, 1.0, 1.0, tempering)
    return local


def assert_same(q, other, **tolerance):
    for field in fields(Natural):
        pair = getattr(q, field.name), getattr(other, field.name)
        assert_allclose(*pair, err_msg=field.name, **tolerance)


def weight_nodes(alpha, reach=28.0, spacing=0.45):
    """w of two components on an even grid of logits, and log of their spacing in w."""
    reach /= min(1.0, alpha.min())
    logit = np.arange(-reach, reach, spacing)
    log_w = np.stack([-np.logaddexp(0, -logit), -np.logaddexp(0, logit)], axis=1)
    return log_w, log_w.sum(axis=1) + np.log(logit[1] - logit[0])


def log_dirichlet(alpha, log_w):
    return gammaln(alpha.sum()) - gammaln(alpha).sum() + log_w @ (alpha - 1)


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
    return b * np.sum(phi * (log_w + log_x)) + power * prior + entropy


def factors(model):
    """q as the objective takes it."""
    q = model.posterior
    width = 1 if model.covariance_type == "spherical" else model.n_features
    a = np.tile(0.5 * (model.n_features // width) * q.nu[:, None], width)
    kappa = np.tile(q.kappa[:, None], model.n_features)
    return Factors(q.alpha, model.means, kappa, a, a / model.precisions[:, :width])


def responsibilities(model, problem, tempering):
    """phi, read from the statistics of one datum after another."""
    rows = []
    for n in range(len(problem.X)):
        local = model.local_step(Batch(problem.X, slice(n, n + 1)), tempering)
        rows.append(local.statistics.alpha / tempering.inverse)
    return np.array(rows)


@pytest.mark.slow
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


@pytest.mark.slow
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

    parts = zip(start, learned, positive, strict=True)
    packed = [np.ravel(np.log(at) if log else at) for at, is_learned, log in parts if is_learned]
    value = lambda x: objective(problem, phi, unpack(x), tempering)  # noqa: E731
    best = unpack(maximise(value, np.concatenate(packed)))
    step(model, problem, tempering)
    for name, is_learned, ours, theirs in zip(
        Factors._fields, learned, factors(model), best, strict=True
    ):
        if is_learned:
            assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6, err_msg=name)


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
        expected = objective(problem, phi, factors(model), tempering)
        assert model.elbo(tempering) == pytest.approx(expected, rel=1e-11)
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


@cases(
    "rho, tempering, effective",
    (0.3, UNTEMPERED, 0.3),
    (0.3, Tempering(0.4), 0.3),
    (0.3, Tempering(0.4, "posterior"), 0.75),
    (0.7, Tempering(0.4, "posterior"), 1.0),
)
@pytest.mark.parametrize("covariance_type", TYPES)
def test_a_small_step_is_a_convex_combination(covariance_type, rho, tempering, effective):
    problem = make_problem(covariance_type)
    model = in_some_state(problem)
    before = model.posterior
    local = model.local_step(Batch(problem.X, slice(1, 3)), tempering)
    model.global_step(local.statistics, rho, 2.5, tempering)
    prior = prior_of(problem, tempering.inverse if tempering.form == "posterior" else 1.0)
    expected = {}
    for name in (field.name for field in fields(Natural)):
        new = getattr(prior, name) + 2.5 * getattr(local.statistics, name)
        expected[name] = (1 - effective) * getattr(before, name) + effective * new
    assert_same(model.posterior, Natural(**expected), rtol=1e-12)


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
    assert_same(replace(model.posterior, shift=before.shift, square=before.square), before, rtol=0)


@pytest.mark.parametrize("temperature", [1.0, "annealed"])
@pytest.mark.parametrize("known", [{}, dict(weights=[0.2, 0.3, 0.5], covariances=1.0)])
@pytest.mark.parametrize("covariance_type", TYPES)
def test_a_shift_of_the_data_shifts_the_fit(covariance_type, known, temperature):
    rng = np.random.RandomState(0)
    X = np.repeat(np.array([[0, 0], [5, 0], [0, 5]]), 20, axis=0) + rng.standard_normal((60, 2))
    options = dict(covariance_type=covariance_type, temperature=temperature, max_iter=30, tol=0)
    make = lambda: TemperedGaussianMixture(3, random_state=0, **known, **options)  # noqa: E731
    here, there = (make().fit(X + shift) for shift in (0.0, 1e6))
    assert_allclose(there.means_ - 1e6, here.means_, atol=1e-6)
    assert_allclose(there.covariances_, here.covariances_, rtol=1e-6)
    assert_allclose(there.weights_, here.weights_, rtol=1e-6)
    assert_allclose(there.predict_proba(X + 1e6), here.predict_proba(X), atol=1e-6)
    assert_allclose(there.score_samples(X + 1e6), here.score_samples(X), atol=1e-6)
    assert there.lower_bound_ == pytest.approx(here.lower_bound_, abs=1e-6)


INVERSE = np.array([1.0, 0.8, 0.5, 0.25, 0.1])


def log_x_integral(z, b, mu, sigma):
    """log of int dx h(x) prod_n N(x_n; mu_z, sigma_z)^b h(x)^-b on a grid, all x at once."""
    N, D = len(z), mu.shape[1]
    log_h = -np.sum(np.log(sigma).mean(axis=0) + 0.5 * LOG_2PI)  # that of a datum
    reach = np.abs(mu).max() + 8.5 * sigma.max() / np.sqrt(b)
    axis = np.arange(-reach, reach, 0.7 * sigma.min() / np.sqrt(b))
    x = np.stack(np.meshgrid(*[axis] * (N * D)), axis=-1).reshape(-1, N, D)
    log_p = stats.norm.logpdf(x, mu[list(z)], sigma[list(z)]).sum(axis=(1, 2))
    return logsumexp(N * log_h + b * (log_p - N * log_h)) + N * D * np.log(axis[1] - axis[0])


def log_mean_weights(counts, alpha, b):
    """log E prod_k w_k^(b n_k) under the Dirichlet prior of two weights, by quadrature."""
    log_w, log_spacing = weight_nodes(alpha)
    return logsumexp(log_dirichlet(alpha, log_w) + b * log_w @ counts + log_spacing)


@pytest.mark.thinned
@pytest.mark.parametrize("weights", [True, False])
@pytest.mark.parametrize("covariances", ["common", "different"])
@pytest.mark.parametrize(("N", "D"), [(1, 1), (2, 1), (1, 2)])
def test_log_partition_by_enumeration(N, D, covariances, weights):
    """C(b) = sum_z int dw dmu p(w, mu) int dx h(x) exp(b energy); x makes mu irrelevant."""
    rng = np.random.RandomState(4)
    variances = np.full((2, D), 0.7)
    if covariances == "different":
        variances = rng.uniform(0.4, 1.6, (2, D))
    problem = make_problem("diag", shape=(N, 2, D), seed=2)
    problem = problem._replace(covariances=variances, alpha=np.array([0.4, 1.7]))
    if weights:
        problem = problem._replace(weights=np.array([0.3, 0.7]))
    model = make_model(problem)
    model.start(problem.X, responsibilities=random_phi(problem))
    mu = rng.normal(0, 0.5, (2, D))
    expected = []
    for b in INVERSE:
        terms = []
        for z in itertools.product(range(2), repeat=N):
            counts = np.bincount(z, minlength=2)
            if weights:
                log_w = b * counts @ np.log(problem.weights)
            else:
                log_w = log_mean_weights(counts, problem.alpha, b)
            terms.append(log_w + log_x_integral(z, b, mu, np.sqrt(variances)))
        expected.append(logsumexp(terms))
    assert_allclose(model.log_partition(INVERSE), expected, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("weights", [None, np.array([0.3, 0.7])])
def test_log_partition_follows_the_temperatures_and_the_data(weights):
    problem = make_problem(known=(False, True), shape=(6, 2, 2))._replace(weights=weights)
    model = make_model(problem)
    model.n_samples = 6
    first = model.log_partition(INVERSE)
    assert_allclose(model.log_partition(INVERSE[2:]), first[2:], rtol=1e-14)
    model.log_partition(INVERSE)[:] = 7  # what it gives is a copy
    assert_array_equal(model.log_partition(INVERSE), first)
    model.start(problem.X[:3], responsibilities=np.full((3, 2), 0.5))
    third = model.log_partition(INVERSE)
    model.n_samples, model.normaliser = 3, None
    assert_array_equal(model.log_partition(INVERSE), third)
    model.n_samples = 6
    assert_array_equal(model.log_partition(INVERSE), first)
    model.alpha = model.alpha + 2
    assert np.all(model.log_partition(INVERSE) == first) == (weights is not None)


def enumerated_mean_power(alpha, n, b, log_c):
    """log E (sum_k w_k^b c_k)^n by every term of the multinomial theorem."""
    free = itertools.product(range(n + 1), repeat=len(alpha) - 1)
    counts = np.array([(*i, n - sum(i)) for i in free if sum(i) <= n])
    total = alpha.sum()
    terms = gammaln(alpha + b * counts) - gammaln(alpha) - gammaln(counts + 1) + counts * log_c
    return (gammaln(n + 1) + gammaln(total) - gammaln(total + b * n)) + logsumexp(terms.sum(axis=1))


ALPHAS = {"ordinary": [0.7, 2.0, 1.1], "tiny": [1e-8, 1e-6, 1e-7], "uneven": [1e-4, 300.0, 0.1]}


@pytest.mark.thinned
@pytest.mark.parametrize("spread", [0.0, 1.0, 50.0])
@pytest.mark.parametrize("alpha", ALPHAS)
@cases("K, n", (1, 1), (1, 200), (2, 1), (2, 7), (2, 3000), (3, 2), (3, 150))
def test_mean_power_by_enumeration(K, n, alpha, spread):
    for b in (1.0, 0.5, 0.01):
        priors, log_c = np.array(ALPHAS[alpha][:K]), spread * np.array([1.0, -1.0, 0.3])[:K]
        expected = enumerated_mean_power(priors, n, b, log_c)
        assert log_mean_power(priors, n, b, log_c) == pytest.approx(expected, rel=1e-9, abs=1e-10)


@pytest.mark.parametrize("value", [1e6, 1e10, 1e15])
def test_mean_power_of_large_priors(value):
    """Certain to be even: sum_k w_k^b = K^(1 - b), to 1 / alpha."""
    for n in (1, 50, 1000):
        found = [log_mean_power(np.full(3, value), n, b, np.zeros(3)) for b in (1.0, 0.5)]
        assert_allclose(found, [0, 0.5 * n * np.log(3)], atol=max(1e-8, n**2 / value))
