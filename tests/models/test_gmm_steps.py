"""Steps of the Gaussian mixture: ascent, minibatches, symmetry and its breaking, shifts."""

import itertools
from dataclasses import fields, replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

from annealvi import Annealed, TemperedGaussianMixture
from annealvi.inference import Monitor, RobbinsMonro, optimise
from annealvi.model import UNTEMPERED, Batch, Tempering
from annealvi.models.gmm import PERTURBATION, Natural
from annealvi.temperature import Fixed
from tests.marks import twenty_problems
from tests.models.gmm_problems import (
    KINDS,
    TYPES,
    assert_same,
    everything,
    in_some_state,
    make_model,
    make_problem,
    random_phi,
    step,
)

FORMS = ("likelihood", "posterior")


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


def test_a_fit_perturbs_until_it_has_cooled():
    rng = np.random.RandomState(0)
    X = np.concatenate([rng.normal(-4, 1, (50, 1)), rng.normal(4, 1, (50, 1))])
    settings = dict(means_init=np.zeros((2, 1)), covariances=1.0, tol=0, random_state=0)
    gaps = {}
    for name, temperature in [("cold", 1.0), ("annealed", Annealed(start=30.0, length=0.5))]:
        mixture = TemperedGaussianMixture(2, temperature=temperature, **settings).fit(X)
        gaps[name] = np.ptp(mixture.means_)
    assert gaps["cold"] < 1e-9
    assert gaps["annealed"] == pytest.approx(8, abs=1)


@pytest.mark.parametrize("mean_prior", [None, [0.0]])
def test_components_of_different_weights_separate(mean_prior):
    """Where the prior mean is that of the data, heat makes these equal as well."""
    rng = np.random.RandomState(0)
    X = np.concatenate([rng.normal(4, 1, (150, 1)), rng.normal(-4, 1, (350, 1))])
    mixture = TemperedGaussianMixture(
        2,
        weights=[0.3, 0.7],
        covariances=1.0,
        mean_prior=mean_prior,
        mean_precision_prior=0.1,
        random_state=0,
    )
    assert_allclose(np.sort(mixture.fit(X).means_.ravel()), [-4, 4], atol=0.5)


@pytest.mark.parametrize("temperature", [1.0, "annealed"])
@pytest.mark.parametrize(("covariance_type", "weights", "precisions"), KINDS)
def test_a_shift_of_the_data_shifts_the_fit(covariance_type, weights, precisions, temperature):
    rng = np.random.RandomState(0)
    centres = np.array([[0, 0], [5, 0], [0, 5]])
    X = np.repeat(centres, 20, axis=0) + rng.standard_normal((60, 2))
    fits = []
    for shift in (0.0, 1e6):
        mixture = TemperedGaussianMixture(
            3,
            covariance_type=covariance_type,
            weights=[0.2, 0.3, 0.5] if weights else None,
            covariances=1.0 if precisions else None,
            temperature=temperature,
            max_iter=30,
            tol=0,
            random_state=0,
        )
        fits.append(mixture.fit(X + shift))
    here, there = fits
    assert_allclose(there.means_ - 1e6, here.means_, atol=1e-6)
    assert_allclose(there.covariances_, here.covariances_, rtol=1e-6)
    assert_allclose(there.weights_, here.weights_, rtol=1e-6)
    assert_allclose(there.predict_proba(X + 1e6), here.predict_proba(X), atol=1e-6)
    assert_allclose(there.score_samples(X + 1e6), here.score_samples(X), atol=1e-6)
    assert there.lower_bound_ == pytest.approx(here.lower_bound_, abs=1e-6)
