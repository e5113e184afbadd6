"""Algorithms 1 and 2 and their special cases, against plain NumPy."""

import re

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import entr, expit

from annealvi.exceptions import DivergenceError
from annealvi.proximity import (
    STATISTICS,
    Adam,
    Bernoulli,
    BernoulliFactorModel,
    Distance,
    ProximityAscent,
)
from tests.asserts import refusals, refused
from tests.marks import cases

RNG = np.random.RandomState(0)
X = (RNG.random_sample((30, 2)) < 0.5) @ np.array([[3.0, 1.0], [0.0, 4.0]]) + RNG.randn(30, 2)
MODEL = BernoulliFactorModel(X, prior_probability=0.4)
START = RNG.normal(0, 3, (5, 2, 2))
LOGITS = RNG.normal(0, 1, (5, 2, 30))
GRADIENT = dict(optimizer="gradient", learning_rate=1e-3)


def entropy(theta):
    return entr(expit(theta)) + entr(expit(-theta))


class Past:
    """f of the average of the parameters, or the average of f; both with the newest value."""

    def __init__(self, f, decay, average="parameters"):
        self.f, self.decay, self.of_parameters = f, decay, average == "parameters"
        self.raw = self.t = 0

    def __call__(self, theta):
        self.t += 1
        value = theta if self.of_parameters else self.f(theta)
        self.raw = self.decay * self.raw + (1 - self.decay) * value
        mean = self.raw / (1 - self.decay**self.t) if self.t > 1 else value
        return self.f(mean) if self.of_parameters else mean


def naive(n_steps, rate, k0=0.0, gamma=1.0, decay=0.9, annealed=False, average="parameters"):
    """Algorithm 2 with the entropy, as it is written in the paper."""
    theta, mu, past = LOGITS.copy(), START.copy(), Past(entropy, decay, average)
    x, c = X.T[None], np.log(0.4 / 0.6)
    for t in range(n_steps):
        k = k0 * gamma ** (t / n_steps)
        q = expit(theta)
        others = x[:, None] - np.einsum("rkd,rkn->rdn", mu, q)[:, None]
        others = others + mu[..., None] * q[:, :, None]
        a = c + np.einsum("rkd,rkdn->rkn", mu, others) - 0.5 * np.sum(mu**2, -1)[..., None]
        residual = x - np.einsum("rkd,rkn->rdn", mu, q)
        slope = np.einsum("rkn,rdn->rkd", q, residual) - np.sum(q * (1 - q), -1)[..., None] * mu
        gradient = (a - (max(1.0, k) if annealed else 1.0) * theta) * q * (1 - q)
        if not annealed:
            gradient = gradient - k * np.sign(entropy(theta) - past(theta)) * -theta * q * (1 - q)
        theta, mu = theta + rate * gradient, mu + rate * slope
    return theta, mu


@pytest.mark.parametrize("statistic", STATISTICS)
@pytest.mark.parametrize("method", ["fast", "annealing"])
def test_no_magnitude_is_plain_gradient_ascent(method, statistic):
    options = dict(method=method, statistic=statistic, magnitude=0, n_steps=40)
    theta, mu = naive(40, 1e-3)
    ascent = ProximityAscent(**options, **GRADIENT).ascend(MODEL, START, LOGITS)
    assert_allclose(ascent.logits, theta, rtol=1e-9, atol=1e-12)
    assert_allclose(ascent.means, mu, rtol=1e-9, atol=1e-12)


@cases(
    "annealed, average",
    (False, "parameters"),
    (False, "statistic"),
    (True, "parameters"),
    ids=["fast", "fast, average of f", "annealing"],
)
def test_algorithm_2_against_plain_numpy(annealed, average):
    theta, mu = naive(60, 1e-3, k0=200.0, gamma=1e-3, annealed=annealed, average=average)
    options = dict(average=average, magnitude=200.0, gamma=1e-3, decay=0.9, n_steps=60) | GRADIENT
    method = "annealing" if annealed else "fast"
    ascent = ProximityAscent(method=method, **options).ascend(MODEL, START, LOGITS)
    assert_allclose(ascent.logits, theta, rtol=1e-9, atol=1e-12)
    assert_allclose(ascent.means, mu, rtol=1e-9, atol=1e-12)
    assert np.abs(theta - naive(60, 1e-3)[0]).max() > 0.1  # the penalty did something


def test_algorithm_1_against_plain_numpy():
    """Its inner loop by gradients of size rho, from the last point, with the penalty."""
    rho, k, decay = 1e-3, 50.0, 0.9
    common = dict(method="inner", magnitude=k, gamma=1.0, decay=decay, n_steps=3, noise=0)
    ascent = ProximityAscent(n_inner=4, **common, **GRADIENT).ascend(MODEL, START, LOGITS)
    theta, mu, past = LOGITS.copy(), START.copy(), Past(entropy, decay)
    for _ in range(3):
        q = Bernoulli(theta)
        a, slope = MODEL.gradients(q, mu)
        g, new, before = (a - theta) * q.variance, theta.copy(), past(theta)
        for _ in range(4):
            pull = np.sign(entropy(new) - before) * -new * expit(new) * expit(-new)
            new = new + rho * (g - (new - theta) / rho - k * pull)
        theta, mu = new, mu + rho * slope
    assert_allclose(ascent.logits, theta, rtol=1e-9, atol=1e-12)
    assert_allclose(ascent.means, mu, rtol=1e-9, atol=1e-12)


@pytest.mark.slow
@cases("statistic, method", *((name, "fast") for name in STATISTICS), ("entropy", "inner"))
def test_the_penalty_holds_each_statistic(statistic, method):
    changes = []
    for k in (0.0, 1e4):
        options = dict(magnitude=k, gamma=1.0, n_steps=200, random_state=0)
        ascent = ProximityAscent(statistic, method=method, **options).ascend(MODEL, START, 0.1)
        states = np.full_like(ascent.logits, 0.1), ascent.logits
        prior = MODEL.prior_logit
        before, after = (STATISTICS[statistic](Bernoulli(t), prior)[0] for t in states)
        changes.append(np.mean(np.abs(after - before)))
    assert changes[1] < 0.3 * changes[0]


def test_magnitudes_and_records():
    ascent = ProximityAscent(n_steps=10, n_records=5, gamma=1e-2).ascend(MODEL, START, LOGITS)
    assert ascent.steps.tolist() == [0, 2, 4, 6, 8, 10]
    start = MODEL.elbo(Bernoulli(LOGITS), START)
    assert_array_equal(ascent.elbo_path[0], start)
    assert_array_equal(ascent.elbo_path[-1], ascent.elbo)
    assert_allclose(ascent.elbo, MODEL.elbo(Bernoulli(ascent.logits), ascent.means))
    expected = np.abs(start) * 1e-2 ** (ascent.steps[:-1, None] / 10)
    assert_allclose(ascent.magnitude_path[:-1], expected)
    assert np.all(np.isnan(ascent.magnitude_path[-1]))
    linear = ProximityAscent(n_steps=10, shape="linear", magnitude=4).ascend(MODEL, START)
    assert_allclose(linear.magnitude_path[:-1, 0], 4 - 0.4 * np.arange(10))


@cases("n_steps, n_records", (500, 100), (500, 1), (87, 1), ids=["often", "once", "at the end"])
def test_a_state_after_divergence_has_a_finite_elbo(n_steps, n_records):
    """Components may be finite where their squares are not: then an earlier state is given."""
    options = dict(magnitude=0, optimizer="gradient", learning_rate=1.0)
    ascent = ProximityAscent(n_steps=n_steps, n_records=n_records, **options)
    words = (
        r"diverged at step \d+ of \d+ in \d of 5 runs. The last finite ELBO was .*'learning_rate'"
    )
    with pytest.raises(DivergenceError, match=words) as caught:
        ascent.ascend(MODEL, START, 1e6)  # factors in every datum: nothing gives way
    at = int(re.search(r"diverged at step (\d+) of", str(caught.value))[1])
    state = caught.value.state
    assert state.n_steps < at <= n_steps and f"after step {state.n_steps}." in str(caught.value)
    assert_array_equal(state.elbo, MODEL.elbo(Bernoulli(state.logits), state.means))
    assert all(np.all(np.isfinite(part)) for part in (state.elbo, state.means, state.logits))


test_bad_starts = refusals(
    ProximityAscent(n_steps=1).ascend,
    (MODEL, START, np.zeros((3, 2, 30)), r"'logits' .* broadcastable to shape \(5, 2, 30\)"),
    (MODEL, START, [[np.nan]], "'logits' .* must be finite"),
    (MODEL, START, "zero", "'logits' .* Got 'zero'"),
    (X, START, None, "'model' .* must be a BernoulliFactorModel"),
    (MODEL, np.full((2, 2), 1e200), None, "ELBO at the start must be fin.*smaller 'means'"),
)


def test_adam():
    """Against the paper's own lines, and a quadratic's optimum."""
    adam, m, v = Adam(0.1), 0.0, 0.0
    for t, g in enumerate(np.random.RandomState(0).normal(0, 2, (20, 3)), start=1):
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g**2
        expected = 0.1 * (m / (1 - 0.9**t)) / (np.sqrt(v / (1 - 0.999**t)) + 1e-8)
        assert_allclose(adam(g), expected, rtol=1e-10)
    x, adam = np.array([4.0]), Adam(0.05)
    for _ in range(2000):
        x = x - adam(2 * (x - 1))
    assert_allclose(x, 1, atol=1e-6)


HELD = dict(magnitude=1e4, gamma=1.0, n_steps=200)


def mean_of_my_own(q, prior_logit):
    return q.probability, q.variance


def mean_times_q(q, prior_logit):
    return q.probability, lambda c: c * q.variance


def usage(q, prior_logit):
    """The share of the data that has each factor: it mixes all data of a run."""
    n = q.logit.shape[-1]
    return q.probability.mean(axis=-1), lambda c: c[..., None] * q.variance / n


SMOOTH = Distance(lambda u: np.log(np.cosh(u)), np.tanh)


@pytest.mark.parametrize("method", ["fast", "inner"])
@pytest.mark.parametrize("own", [mean_of_my_own, mean_times_q])
def test_a_function_is_what_the_name_is(own, method):
    """Whether its derivative is elementwise or a product."""
    options = dict(method=method, n_steps=30, random_state=0)
    named = ProximityAscent("mean", **options).ascend(MODEL, START, LOGITS)
    found = ProximityAscent(own, **options).ascend(MODEL, START, LOGITS)
    assert_array_equal(found.logits, named.logits)
    assert_array_equal(found.means, named.means)


def test_a_statistic_that_mixes_elements_is_held():
    moved = {}
    for k in (0.0, 1e5):
        ascent = ProximityAscent(usage, **HELD | {"magnitude": k}).ascend(MODEL, START, LOGITS)
        shares = [Bernoulli(theta).probability.mean(axis=-1) for theta in (LOGITS, ascent.logits)]
        moved[k] = np.mean(np.abs(shares[1] - shares[0]))
    assert moved[1e5] < 0.2 * moved[0.0]


@pytest.mark.parametrize("distance", ["square", SMOOTH], ids=["square", "smooth"])
def test_algorithm_2_with_another_distance_against_plain_numpy(distance):
    theta, mu, rate, k, decay = LOGITS.copy(), START.copy(), 1e-3, 50.0, 0.9
    past = Past(lambda theta: Bernoulli(theta).probability, decay)
    slope_of = np.tanh if distance is SMOOTH else lambda u: 2 * u
    for _ in range(20):
        q = Bernoulli(theta)
        a, slope = MODEL.gradients(q, mu)
        gradient = (a - theta) * q.variance
        gradient = gradient - k * slope_of(q.probability - past(theta)) * q.variance
        theta, mu = theta + rate * gradient, mu + rate * slope
    options = dict(decay=decay, magnitude=k, gamma=1.0, optimizer="gradient", learning_rate=rate)
    options["average"] = "parameters"
    ascent = ProximityAscent("mean", distance=distance, n_steps=20, **options)
    found = ascent.ascend(MODEL, START, LOGITS)
    assert_allclose(found.logits, theta, rtol=1e-9, atol=1e-12)
    assert_allclose(found.means, mu, rtol=1e-9, atol=1e-12)


@cases(
    "own, words",
    (lambda q: q.probability, r"must return a tuple of f and its derivative\. Got ndarray"),
    (lambda q: ("half", q.variance), r"must be an array of floats\. Got 'half'"),
    (lambda q: (q.probability, q.variance[..., :1]), r"shape \(5, 2, 30\)\. Got .*, 1\)"),
    (
        lambda q: (q.probability.sum(axis=-1), q.variance),
        r"must be a function, because f and q have different shapes",
    ),
    (lambda q: (q.probability, lambda c: c.sum(axis=0)), r"\(5, 2, 30\)\. Got shape \(2"),
    (lambda q: (q.probability, 1.01 * q.variance), "gradient of .* is wrong: it is .* finite diff"),
    (
        lambda q: (usage(q, 0)[0], lambda c: c[..., None] * q.probability),
        "it is .*, but finite differences",
    ),
    (lambda q: (np.where(q.logit > 0, np.nan, q.logit), q.variance), r"finite\. Got nan"),
    (lambda q: (q.probability, q.variance * np.nan), r"derivative of .* finite\. Got nan"),
)
def test_wrong_statistics(own, words):
    def statistic(q, prior_logit):
        return own(q)

    refused(words, ProximityAscent(statistic, n_steps=3).ascend, MODEL, START, LOGITS)
    annealed = ProximityAscent(statistic, method="annealing", n_steps=1)
    assert annealed.ascend(MODEL, START, LOGITS).n_steps == 1  # which does not use it


class Turning:
    """A statistic that goes wrong during the fit."""

    def __init__(self, after, bad):
        self.after, self.bad, self.calls = after, bad, 0

    def __call__(self, q, prior_logit):
        self.calls += 1
        if self.calls > self.after:
            return self.bad(q)
        return q.probability, q.variance


@cases(
    "bad, words",
    (lambda q: (q.probability * np.nan, q.variance), r"'Turning' must be finite"),
    (lambda q: (q.probability[..., :4], q.variance[..., :4]), r"must have shape \(5, 2, 30\)"),
    (lambda q: (q.probability, q.variance * np.inf), r"derivative of .* finite.*Got inf"),
    (lambda q: (q.probability, lambda c: c * np.nan), r"gradient of 'Turning' must be finite"),
)
def test_a_statistic_that_goes_wrong_later(bad, words):
    counted = Turning(10**9, bad)
    ProximityAscent(counted, n_steps=1).ascend(MODEL, START, LOGITS)
    with pytest.raises(ValueError, match=words):
        ProximityAscent(Turning(counted.calls + 4, bad), n_steps=50).ascend(MODEL, START, LOGITS)


def test_a_distance_that_goes_wrong_later():
    narrow = Distance(lambda u: u**2, lambda u: np.where(np.abs(u) > 8, np.nan, 2 * u))
    wide = ProximityAscent(lambda q, c: (q.logit, np.ones_like(q.logit)), distance=narrow)
    wide.set_params(n_steps=50, learning_rate=20.0, magnitude=1e-3)
    refused(r"derivative of Distance.* must be finite", wide.ascend, MODEL, START, LOGITS)
