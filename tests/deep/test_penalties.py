"""Penalties: statistics, distances, averages, and functions of the user's own."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats
from sklearn.base import clone
from torch.distributions import Bernoulli, Normal, Poisson

import annealvi
from annealvi.deep import ProximityPenalty, WeightStatistic
from annealvi.deep.penalties import (
    DISTANCES,
    LARGE_RATE,
    OF_UNITS,
    STATISTICS,
    Statistic,
    as_penalty,
    bernoulli_kl,
    gram,
    inverse_huber,
    poisson_entropy,
)
from annealvi.exceptions import DivergenceError
from tests.asserts import refusals, refused
from tests.callbacks import stop_at
from tests.deep.fits import X, model, weights


def my_mean(q, prior):
    return q.mean


@pytest.mark.parametrize("alpha", [0.5, 0.9999, 1.0])
def test_the_average_is_debiased(alpha):
    values = torch.tensor(np.random.RandomState(0).randn(30, 4))
    penalty = ProximityPenalty(magnitude=1.0, decay=alpha).plan(30)
    for step, value in enumerate(values):
        weights = alpha ** np.arange(step, -1, -1.0)
        exact = weights @ values[: step + 1].numpy() / weights.sum()
        assert_allclose(penalty.update_average(value), exact, rtol=1e-12)


def test_magnitudes_fall_from_the_elbo_at_the_start():
    exponential = ProximityPenalty(gamma=1e-4).plan(100)
    linear = ProximityPenalty(shape="linear").plan(100)
    for penalty in (exponential, linear):
        penalty(torch.zeros(1), 0, torch.tensor(-50.0))
        penalty(torch.zeros(1), 1, torch.tensor(-7.0))  # only the first counts
    assert exponential.magnitude(0) == 50 and exponential.magnitude(50) == pytest.approx(0.5)
    assert linear.magnitude(25) == pytest.approx(37.5)


def test_a_fit_goes_on_with_the_magnitude_it_is_given():
    states = {}
    for k in (None, 3.0):
        begun = ProximityPenalty(magnitude=k).plan(20)
        begun(torch.zeros(2), 0, 9.0)
        states[k] = begun.memory
    for before, now, expected in ((3.0, 5.0, 5.0), (None, 5.0, 5.0), (None, None, 9.0)):
        resumed = ProximityPenalty(magnitude=now).plan(20)
        resumed.resume(states[before])
        assert resumed.magnitude(0) == expected


def test_parameters():
    penalty = ProximityPenalty("kl", magnitude=2.0)
    assert clone(penalty).get_params() == penalty.get_params()
    assert as_penalty(None) is None and as_penalty("kl").statistic == "kl"
    assert as_penalty(penalty) is penalty
    for statistic in (my_mean, STATISTICS["kl"], WeightStatistic(my_mean)):
        assert as_penalty(statistic).statistic is statistic
    own = ProximityPenalty(my_mean, distance=torch.square)
    for copied in (clone(own), pickle.loads(pickle.dumps(own))):
        assert copied.statistic is my_mean and copied.distance is torch.square


def test_bad_penalties_name_what_is_allowed():
    refused(r"'proximity' parameter must be None.*'median'", as_penalty, "median")
    with pytest.raises(ValueError, match=r"statistic is one of \['entropy'\].*'kl'"):
        as_penalty(ProximityPenalty("kl"), ["entropy"])
    refused(r"'proximity' .* a callable or an instance.*Got <class", as_penalty, ProximityPenalty)
    for of_weights in (WeightStatistic(my_mean), STATISTICS["orthogonal"]):
        refused(r"or a function of q\. Got WeightStatistic", as_penalty, of_weights, OF_UNITS)


def test_the_penalty_is_the_magnitude_times_the_distance():
    value = torch.tensor([0.5, -3.0, 0.0, 1.0], dtype=torch.double, requires_grad=True)
    at = value.detach().numpy()
    for distance, cost, slope in (
        ("inverse_huber", 6.5, [1.0, -3.0, 0.0, 1.0]),
        ("square", 10.25, [1.0, -6.0, 0.0, 2.0]),
        (DISTANCES["square"], 10.25, [1.0, -6.0, 0.0, 2.0]),
        (lambda u: torch.cosh(u) - 1, np.cosh(at).sum() - 4, np.sinh(at)),
    ):
        penalty = ProximityPenalty(distance=distance, magnitude=2.0, gamma=1.0).plan(2)
        found = penalty(value, 1, 0.0, torch.zeros(4))
        (gradient,) = torch.autograd.grad(found, value)
        assert found.item() == pytest.approx(2 * cost)
        assert_allclose(gradient, 2 * np.array(slope))


test_wrong_distances = refusals(
    lambda distance: as_penalty(ProximityPenalty(distance=distance)),
    (lambda u: u.square().sum(), r"of floats of shape \(7,\)\. Got torch.float32 of shape \(\)"),
    (lambda u: u.detach().numpy(), r"a Tensor of floats of shape \(7,\)\. Got ndarray"),
    (lambda u: u.log(), r"must be finite\. Got -inf at 4 of 7 points, one of them 0\.0"),
    (
        lambda u: u.square().sqrt(),
        r"gradient of the 'dist.* finite\. It is not finite at 1 of 7.* 0",
    ),
    (lambda u: u.abs().detach(), "has no gradient. Compute its value with PyTorch's operations"),
    (lambda u: (u - u.mean()).square(), "must treat each element of its argument separately"),
)


def test_a_distance_that_goes_wrong_later():
    penalty = ProximityPenalty(distance=lambda u: u.square() / (u < 10)).plan(9)
    penalty(torch.zeros(2), 0, 1.0)
    message = r"'distance' of the penalty must be finite\. Got inf at 1 .* 11"
    refused(message, penalty, torch.tensor([1.0, 11.0]), 1, 1.0, torch.zeros(2))


def test_a_statistic_that_changes_its_shape():
    penalty = ProximityPenalty(my_mean).plan(9)
    penalty(torch.zeros(2), 0, 1.0)
    words = r"has 3 values now, but had 2 before.* Keep its shape"
    refused(words, penalty, torch.zeros(3), 1, 1.0)


def of(q, name, prior=None):
    return Statistic(name)([(q, q if prior is None else prior)])


@pytest.mark.parametrize("rate", [1e-3, 0.3, 1.0, 7.5, 29.9, 30.1, 80.0])
def test_poisson_entropy(rate):
    found = float(poisson_entropy(torch.tensor(rate, dtype=torch.double)))
    assert found == pytest.approx(float(stats.poisson(rate).entropy()), rel=1e-6)


@pytest.mark.parametrize("rate", [0.5, 12.0, LARGE_RATE + 3])
def test_slope_of_poisson_entropy(rate):
    at = torch.tensor(rate, dtype=torch.double, requires_grad=True)
    assert torch.autograd.gradcheck(poisson_entropy, (at,))


def test_poisson_entropy_of_no_rate():
    rate = torch.tensor([0.0, 1e-30], requires_grad=True)
    entropy = poisson_entropy(rate)
    entropy.sum().backward()
    assert float(entropy.detach().abs().max()) < 1e-20
    assert bool(torch.isfinite(rate.grad).all())


def test_statistics_are_averaged_before_the_distance():
    logits = torch.randn(6, 5, 3, generator=torch.Generator().manual_seed(0))
    q = Bernoulli(logits=logits)
    p = logits.sigmoid()
    both = torch.cat([p.mean((0, 1)), (p * (1 - p)).mean((0, 1))])
    assert_allclose(of(q, "mean_variance"), both, rtol=1e-5)
    assert_allclose(of(q, "entropy"), stats.bernoulli(p.numpy()).entropy().mean((0, 1)), rtol=1e-4)
    prior = Bernoulli(logits=torch.zeros(3))
    expected = np.log(2) - stats.bernoulli(p.numpy()).entropy().mean((0, 1))
    assert_allclose(of(q, "kl", prior), expected, rtol=1e-3, atol=1e-6)
    assert of(Poisson(p), "entropy").shape == (3,) and of(Normal(p, 1.0), "entropy").shape == (3,)
    assert_allclose(of(q, "mean"), p.mean((0, 1)), rtol=1e-5)
    assert_allclose(of(q, "variance"), (p * (1 - p)).mean((0, 1)), rtol=1e-5)


def test_kl_of_bits_that_are_all_but_certain():
    a = torch.tensor([-500.0, 0.3, 80.0, -2.0], requires_grad=True)
    b = torch.tensor([3.0, -1.0, -90.0, -700.0])
    kl = bernoulli_kl(a, b)
    kl.sum().backward()
    p = 1 / (1 + np.exp(-np.array([0.3, -1.0])))
    one, other = map(stats.bernoulli, p)
    exact = one.expect(lambda z: one.logpmf(z) - other.logpmf(z))
    certain = 700 / (1 + np.exp(2)) - stats.bernoulli(1 / (1 + np.exp(2))).entropy()
    assert_allclose(kl.detach(), [np.log1p(np.exp(3)), exact, 90, certain], rtol=1e-5)
    assert bool(torch.isfinite(a.grad).all())
    found = of(Bernoulli(logits=a[:, None]), "kl", Bernoulli(logits=b[:, None]))
    assert_allclose(found.detach(), kl.detach().mean(), rtol=1e-6)


def test_gram_of_orthogonal_layers_is_the_identity():
    wide, square = torch.empty(3, 7), torch.empty(4, 4)
    torch.nn.init.orthogonal_(wide, generator=torch.Generator().manual_seed(0))
    torch.nn.init.orthogonal_(square, generator=torch.Generator().manual_seed(0))
    expected = np.r_[np.eye(3).ravel(), np.eye(4).ravel()]
    assert_allclose(gram([wide, square]), expected, atol=1e-6)


def test_slope_of_gram():
    weights = [torch.randn(n, 4, dtype=torch.double, requires_grad=True) for n in (3, 2)]
    assert torch.autograd.gradcheck(lambda *layers: gram(layers), weights)


def spread(q, prior):
    return q.mean.reshape(-1, q.mean.shape[-1]).var(dim=0)


LOGITS = torch.randn(6, 5, 3, generator=torch.Generator().manual_seed(0)).requires_grad_()


def a_q(kind):
    if kind is Normal:
        return Normal(LOGITS, LOGITS.exp()), Normal(torch.tensor(0.0), torch.tensor(1.0))
    if kind is Poisson:
        return Poisson(LOGITS.exp()), Poisson(torch.tensor(0.1))
    return Bernoulli(logits=LOGITS), Bernoulli(logits=torch.zeros(3))


def test_a_function_may_average_by_itself_and_return_several():
    q, prior = a_q(Bernoulli)
    p = LOGITS.detach().sigmoid().reshape(-1, 3)
    assert_allclose(Statistic(spread)([(q, prior)]).detach(), p.var(dim=0), rtol=1e-5)
    several = Statistic(lambda q, prior: (q.mean, q.mean.sum(), prior.mean + q.mean[0, 0]))
    expected = torch.cat([p.mean(0), p.sum()[None], p[0] + 0.5])
    assert_allclose(several([(q, prior)]).detach(), expected, rtol=1e-5)


def test_the_prior_has_the_shape_of_q():
    def shapes(q, prior):
        assert prior.batch_shape == q.batch_shape
        return q.mean - prior.mean

    for kind in (Bernoulli, Normal, Poisson):
        Statistic(shapes)([a_q(kind)])


def test_weights():
    weights = [torch.ones(2, 3, requires_grad=True), torch.full((1, 2), 2.0, requires_grad=True)]
    named, own = Statistic("orthogonal"), Statistic(WeightStatistic(lambda w: w[0] @ w[0].T))
    assert_array_equal(named([], iter(weights)).detach(), [3, 3, 3, 3, 8])
    assert_array_equal(own([], iter(weights)).detach(), [3, 3, 3, 3])
    assert named.of_weights and own.of_weights and own.name == "function <lambda>"
    assert Statistic(STATISTICS["orthogonal"]).name == "orthogonal"
    assert repr(WeightStatistic(my_mean)) == "WeightStatistic(my_mean)"
    with pytest.raises(TypeError, match=r"'function' parameter of Weight.* callable\. Got 3"):
        WeightStatistic(3)


def by_numpy(q, prior):
    return torch.tensor(q.mean.detach().numpy())


def of_a_constant(q, prior):
    return torch.ones(3, requires_grad=True)


def root_at_0(q, prior):
    return (q.mean - q.mean).abs().sqrt()


test_wrong_functions = refusals(
    lambda function: Statistic(function)([a_q(Bernoulli)]),
    (lambda q, prior: q.mean.detach().numpy(), "must return a Tensor of floats. Got ndarray"),
    (lambda q, prior: q.mean > 0.5, "must return a Tensor of floats. Got torch.bool"),
    (lambda q, prior: q.mean[..., :0], r"of floats. Got torch.float32 of shape \(6, 5, 0\)"),
    (lambda q, prior: [q.mean], "must return a Tensor of floats. Got list"),
    (lambda q, prior: q.mean / 0.0, "must be finite. Got inf"),
    (lambda q, prior: (q.mean, q.mean * torch.nan), "must be finite. Got nan"),
    (by_numpy, "'by_numpy' has no gradient. Compute its value with PyTorch's operations"),
    (of_a_constant, "'of_a_constant' has no gradient"),
    (lambda q, prior: prior.mean.expand(q.batch_shape), "has no gradient"),
    (root_at_0, "The gradient of the statistic 'root_at_0' must be finite"),
)


def test_a_gradient_is_asked_for_where_there_may_be_one():
    """Past values are computed without gradients, and may come first."""
    statistic = Statistic(by_numpy)
    with torch.no_grad():
        statistic([a_q(Bernoulli)])
    refused("'by_numpy' has no gradient", statistic, [a_q(Bernoulli)])


test_wrong_functions_of_weights = refusals(
    lambda function: Statistic(WeightStatistic(function))(
        [], [torch.ones(2, 2, requires_grad=True)]
    ),
    (lambda weights: None, "must return a Tensor of floats. Got NoneType"),
    (lambda weights: weights[0] / 0, "must be finite. Got inf"),
    (lambda weights: weights[0].detach(), "no gradient"),
)


def another(q, prior):
    return q.mean


KINDS = pytest.mark.parametrize("kind", ["sbn", "vae", "poisson"])


def held(kind, statistic, distance="inverse_huber", **options):
    """A model with a strong penalty."""
    penalty = ProximityPenalty(statistic, distance=distance, magnitude=5.0, gamma=0.1)
    return model(kind, proximity=penalty, **options)


@KINDS
def test_a_function_is_what_the_name_is(kind):
    named = weights(held(kind, "mean").fit(X))
    assert torch.equal(weights(held(kind, my_mean).fit(X)), named)
    assert torch.equal(weights(held(kind, my_mean, lambda u: inverse_huber(u)).fit(X)), named)
    assert (weights(held(kind, my_mean, "square").fit(X)) - named).abs().max() > 1e-4
    if kind != "poisson":
        own = held(kind, WeightStatistic(lambda weights: gram(weights))).fit(X)
        assert torch.equal(weights(own), weights(held(kind, "orthogonal").fit(X)))


@KINDS
@pytest.mark.parametrize("own", [{"statistic": my_mean}, {"distance": torch.square}])
def test_files_are_given_the_function(kind, own, tmp_path):
    penalty = ProximityPenalty(**own, magnitude=5.0)
    fitted = model(kind, proximity=penalty).fit(X)
    for path in (tmp_path / "file", tmp_path / "again"):
        annealvi.save(fitted, path)
        words = r"'proximity', because functions are not saved\. Pass it .* annealvi\.load"
        refused(words, annealvi.load, path)
        loaded = annealvi.load(path, proximity=penalty)
        assert loaded.proximity is penalty and loaded.score(X) == fitted.score(X)
        assert torch.equal(weights(loaded), weights(fitted))
        fitted = loaded


@KINDS
def test_a_fit_is_continued_with_its_function(kind, tmp_path):
    path = tmp_path / "state"
    whole = held(kind, my_mean).fit(X)
    held(kind, my_mean, callback=stop_at(5, path=path)).fit(X)
    assert torch.equal(weights(held(kind, my_mean).fit(X, resume=path)), weights(whole))
    for other, name in ((another, "function another"), ("mean", "mean")):
        words = f"'function my_mean, averaged'. In this .* proximity is '{name}, averaged'"
        refused(words, held(kind, other).fit, X, resume=path)


@KINDS
def test_clones_and_pickles(kind):
    fitted = model(kind, proximity=my_mean).fit(X)
    assert fitted._trainer.penalty.statistic.name == "function my_mean"
    assert clone(fitted).proximity is my_mean
    copied = pickle.loads(pickle.dumps(fitted))
    assert copied.proximity is my_mean and copied.score(X) == fitted.score(X)


def test_a_function_that_goes_wrong_later_leaves_the_steps_made():
    calls = []

    def turning(q, prior):
        calls.append(1)
        return q.mean * (torch.nan if len(calls) > 8 else 1.0)

    vae = held("vae", turning)
    refused("'turning' must be finite", vae.fit, X)
    assert vae.n_iter_ == 8 and bool(torch.isfinite(weights(vae)).all())


@KINDS
@pytest.mark.parametrize("statistic", ["entropy", my_mean])
def test_a_fit_that_diverges_says_so(kind, statistic):
    """Not that its statistic is at fault, which is NaN because q is."""
    with pytest.raises(DivergenceError, match="The fit diverged at step"):
        held(kind, statistic, learning_rate=1e37).fit(X)
