"""Algorithms 1 and 2 and their special cases, against plain NumPy."""

import re

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import entr, expit
from sklearn.base import clone

from annealvi.exceptions import DivergenceError
from annealvi.proximity import (
    STATISTICS,
    Bernoulli,
    BernoulliFactorModel,
    ProximityAscent,
)

RNG = np.random.RandomState(0)
X = (RNG.random_sample((30, 2)) < 0.5) @ np.array([[3.0, 1.0], [0.0, 4.0]]) + RNG.randn(30, 2)
MODEL = BernoulliFactorModel(X, prior_probability=0.4)
START = RNG.normal(0, 3, (5, 2, 2))
LOGITS = RNG.normal(0, 1, (5, 2, 30))
GRADIENT = dict(optimizer="gradient", learning_rate=1e-3)


def entropy(theta):
    return entr(expit(theta)) + entr(expit(-theta))


def naive(n_steps, rate, k0=0.0, gamma=1.0, decay=0.9, annealed=False):
    """Algorithm 2 with the entropy, as it is written in the paper."""
    theta, mu, raw = LOGITS.copy(), START.copy(), 0.0
    x, c = X.T[None], np.log(0.4 / 0.6)
    for t in range(n_steps):
        k = k0 * gamma ** (t / n_steps)
        q = expit(theta)
        others = x[:, None] - np.einsum("rkd,rkn->rdn", mu, q)[:, None]
        others = others + mu[..., None] * q[:, :, None]
        a = c + np.einsum("rkd,rkdn->rkn", mu, others) - 0.5 * np.sum(mu**2, -1)[..., None]
        residual = x - np.einsum("rkd,rkn->rdn", mu, q)
        slope = np.einsum("rkn,rdn->rkd", q, residual) - np.sum(q * (1 - q), -1)[..., None] * mu
        weight = max(1.0, k) if annealed else 1.0
        gradient = (a - weight * theta) * q * (1 - q)
        if t and not annealed:
            sign = np.sign(entropy(theta) - raw / (1 - decay**t))
            gradient = gradient - k * sign * -theta * q * (1 - q)
        raw = decay * raw + (1 - decay) * entropy(theta)
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


@pytest.mark.parametrize("annealed", [False, True], ids=["fast", "annealing"])
def test_algorithm_2_against_plain_numpy(annealed):
    theta, mu = naive(60, 1e-3, k0=200.0, gamma=1e-3, annealed=annealed)
    ascent = ProximityAscent(
        method="annealing" if annealed else "fast",
        magnitude=200.0,
        gamma=1e-3,
        decay=0.9,
        n_steps=60,
        **GRADIENT,
    ).ascend(MODEL, START, LOGITS)
    assert_allclose(ascent.logits, theta, rtol=1e-9, atol=1e-12)
    assert_allclose(ascent.means, mu, rtol=1e-9, atol=1e-12)
    plain = naive(60, 1e-3)[0]
    assert np.abs(theta - plain).max() > 0.1  # the penalty did something


def test_algorithm_1_is_a_gradient_step_where_nothing_holds_it():
    """The inner objective's optimum is theta + rho g; without a penalty one step is there."""
    common = dict(n_steps=1, magnitude=1.0, **GRADIENT)  # no past yet: no penalty
    inner = ProximityAscent(method="inner", n_inner=25, noise=0, **common)
    fast = ProximityAscent(method="fast", **common)
    results = [method.ascend(MODEL, START, LOGITS) for method in (inner, fast)]
    assert_allclose(results[0].logits, results[1].logits, rtol=1e-12)
    assert_array_equal(results[0].means, results[1].means)
    noisy = clone(inner).set_params(noise=0.5, random_state=0).ascend(MODEL, START, LOGITS)
    # gradient steps of size rho contract the noise at once: the optimum is where it was
    assert_allclose(noisy.logits, results[1].logits, rtol=1e-12, atol=1e-14)


def test_algorithm_1_against_plain_numpy():
    """Its inner loop by gradients of size rho, from the last point, with the penalty."""
    rho, k, decay = 1e-3, 50.0, 0.9
    common = dict(method="inner", magnitude=k, gamma=1.0, decay=decay, n_steps=3, noise=0)
    ascent = ProximityAscent(n_inner=4, **common, **GRADIENT).ascend(MODEL, START, LOGITS)
    theta, mu, raw = LOGITS.copy(), START.copy(), 0.0
    for t in range(3):
        q = Bernoulli(theta)
        a, slope = MODEL.gradients(q, mu)
        g, new = (a - theta) * q.variance, theta.copy()
        for _ in range(4):
            pull = 0.0
            if t:
                v = expit(new) * expit(-new)
                pull = np.sign(entropy(new) - raw / (1 - decay**t)) * -new * v
            new = new + rho * (g - (new - theta) / rho - k * pull)
        raw = decay * raw + (1 - decay) * entropy(theta)
        theta, mu = new, mu + rho * slope
    assert_allclose(ascent.logits, theta, rtol=1e-9, atol=1e-12)
    assert_allclose(ascent.means, mu, rtol=1e-9, atol=1e-12)


def test_algorithm_1_holds_the_statistic():
    """Under a heavy penalty the entropy stays where it was, without one it goes."""
    moved = {}
    for k in (0.0, 1e4):
        ascent = ProximityAscent(
            method="inner", magnitude=k, gamma=1.0, n_steps=300, random_state=0
        ).ascend(MODEL, START)
        moved[k] = np.mean(Bernoulli(ascent.logits).entropy)
    assert moved[1e4] > 0.5 > 0.2 > moved[0.0]


@pytest.mark.parametrize("statistic", STATISTICS)
def test_the_penalty_holds_each_statistic(statistic):
    changes = []
    for k in (0.0, 1e4):
        ascent = ProximityAscent(statistic, magnitude=k, gamma=1.0, n_steps=200).ascend(
            MODEL, START, 0.1
        )
        before, after = (
            STATISTICS[statistic](Bernoulli(t), MODEL.prior_logit)[0]
            for t in (np.full_like(ascent.logits, 0.1), ascent.logits)
        )
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


def test_runs_do_not_see_each_other_and_a_lone_run_needs_no_axis():
    together = ProximityAscent(n_steps=50).ascend(MODEL, START)
    alone = ProximityAscent(n_steps=50).ascend(MODEL, START[2])
    assert alone.means.shape == (1, 2, 2)
    assert_allclose(alone.means[0], together.means[2], rtol=1e-10)


def test_divergence_keeps_the_last_finite_state():
    ascent = ProximityAscent(magnitude=0, optimizer="gradient", learning_rate=1.0, n_steps=500)
    words = r"diverged at step \d+ of 500 in \d of 5 runs; the ELBO was last .*'learning_rate'"
    with pytest.raises(DivergenceError, match=words) as caught:
        ascent.ascend(MODEL, START, 1e6)  # factors in every datum: nothing gives way
    state = caught.value.state
    assert 0 < state.n_steps < 500
    assert np.all(np.isfinite(state.means)) and np.all(np.isfinite(state.logits))
    assert np.all(np.isfinite(state.elbo))


@pytest.mark.parametrize(
    ("n_steps", "n_records"), [(500, 100), (500, 1), (87, 1)], ids=["often", "once", "at the end"]
)
def test_a_state_after_divergence_has_a_finite_elbo(n_steps, n_records):
    """Components may be finite where their squares are not: then an earlier state is given."""
    ascent = ProximityAscent(
        magnitude=0,
        optimizer="gradient",
        learning_rate=1.0,
        n_steps=n_steps,
        n_records=n_records,
    )
    with pytest.raises(DivergenceError) as caught:
        ascent.ascend(MODEL, START, 1e6)
    at = int(re.search(r"diverged at step (\d+) of", str(caught.value))[1])
    state = caught.value.state
    assert state.n_steps < at <= n_steps
    assert f"after step {state.n_steps}." in str(caught.value)
    assert_array_equal(state.elbo, MODEL.elbo(Bernoulli(state.logits), state.means))
    assert np.all(np.isfinite(state.elbo))


@pytest.mark.parametrize(
    ("logits", "words"),
    [
        (np.zeros((3, 2, 30)), r"'logits' .* must be broadcastable to shape \(5, 2, 30\)"),
        ([[np.nan]], r"'logits' .* must be finite"),
        ("zero", r"'logits' .* Got 'zero'"),
    ],
)
def test_bad_logits(logits, words):
    with pytest.raises(ValueError, match=words):
        ProximityAscent(n_steps=1).ascend(MODEL, START, logits)


def test_a_model_is_asked_for():
    with pytest.raises(ValueError, match=r"'model' .* must be a BernoulliFactorModel"):
        ProximityAscent(n_steps=1).ascend(X, START)


def test_a_start_without_an_elbo():
    with pytest.raises(ValueError, match=r"ELBO at the start must be finite.*smaller 'means'"):
        ProximityAscent(n_steps=1).ascend(MODEL, np.full((2, 2), 1e200))
