"""VariationalAutoencoder: what it learns, what it answers, how it goes on, what it refuses."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn.linear_model import LinearRegression

from annealvi.deep import ProximityPenalty, VariationalAutoencoder
from annealvi.schedules import Linear


def small(**others):
    parameters = {"hidden": (12, 8), "batch_size": 32, "max_iter": 40, "random_state": 0}
    return VariationalAutoencoder(3, **{**parameters, **others})


@pytest.fixture(scope="module")
def X():
    rng = np.random.RandomState(0)
    return (rng.random_sample((150, 20)) < rng.beta(0.5, 0.5, 20)).astype(np.float32)


def weights(vae):
    return torch.cat([parameter.flatten() for parameter in vae.network_.parameters()]).detach()


def plant(n_samples, seed):
    """Bits whose log-odds are linear in two Gaussian variables."""
    rng = np.random.RandomState(7)
    loadings = rng.standard_normal((2, 40)) * 2
    rng = np.random.RandomState(seed)
    Z = rng.standard_normal((n_samples, 2))
    chance = 1 / (1 + np.exp(-Z @ loadings))
    return (rng.random_sample(chance.shape) < chance).astype(np.float32), Z, loadings


def evidence(X, loadings):
    """log p of each row of planted bits, on a grid of z."""
    axis = np.linspace(-5, 5, 101)
    Z = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
    logits = Z @ loadings
    logs = X @ logits.T - np.logaddexp(0, logits).sum(axis=1) - 0.5 * np.sum(Z**2, axis=1)
    return np.logaddexp.reduce(logs, axis=1) + 2 * np.log(axis[1] - axis[0]) - np.log(2 * np.pi)


@pytest.mark.parametrize(
    "others", [{}, {"n_transitions": 2, "calibration": 0.2}], ids=["plain", "chain"]
)
def test_planted_variables_are_recovered(others):
    X, _, _ = plant(3000, 0)
    test, Z, loadings = plant(500, 1)
    vae = VariationalAutoencoder(
        2, hidden=(40,), max_iter=1500, learning_rate=3e-3, random_state=0, **others
    ).fit(X)
    found = vae.transform(test)
    assert LinearRegression().fit(found, Z).score(found, Z) > 0.8
    exact = evidence(test, loadings).mean()
    elbo, sampled = vae.score(test), vae.score_samples(test, n_draws=200).mean()
    assert exact - 1.0 < elbo < sampled < exact + 0.1


def test_the_evidence_tightens_with_draws(X):
    vae = small(max_iter=200).fit(X)
    bounds = [vae.score_samples(X, n_draws=n).mean() for n in (1, 10, 300)]
    assert bounds[0] == pytest.approx(vae.elbo(X).mean(), abs=1e-6)  # the same draws
    assert vae.elbo(X, n_draws=300).mean() + 0.01 < bounds[1] < bounds[2] - 0.005
    assert vae.score(X) == pytest.approx(np.mean(vae.elbo(X)))


def test_draws_in_several_blocks_are_as_good_as_in_one(X, monkeypatch):
    vae = small().fit(X)
    whole, single = vae.elbo(X[:3], n_draws=1000), [vae.elbo(X[[0] * 500])]
    monkeypatch.setattr("annealvi.deep.vae.BLOCK", 300)
    error = 5 * np.std(single) * np.sqrt(2 / 1000)
    np.testing.assert_allclose(vae.elbo(X[:3], n_draws=1000), whole, atol=error)


def test_what_a_fitted_model_answers(X):
    vae = small(n_transitions=1).fit(X)
    Z = vae.transform(X)
    assert Z.shape == (150, 3) and Z.dtype == np.float32
    chances = vae.inverse_transform(Z)
    assert chances.shape == X.shape and chances.min() > 0 and chances.max() < 1
    drawn, from_ = vae.sample(500)
    assert drawn.shape == (500, 20) and set(np.unique(drawn)) == {0, 1} and from_.shape == (500, 3)
    assert np.abs(drawn.mean(axis=0) - vae.inverse_transform(from_).mean(axis=0)).max() < 0.12
    assert vae.elbo(X).shape == vae.score_samples(X, n_draws=2).shape == (150,)
    assert vae.score_samples(X).dtype == np.float64
    assert vae.get_feature_names_out()[0] == "variationalautoencoder0"
    assert vae.temperature_path_[-1] == 1
    sizes = {name: dead.shape for name, dead in vae.dead_units(X).items()}
    assert sizes == {
        "encoder 1": (12,),
        "encoder 2": (8,),
        "decoder 1": (8,),
        "decoder 2": (12,),
    }


def test_units_with_large_negative_biases_are_dead(X):
    vae = small().fit(X)
    with torch.no_grad():
        vae.network_.encoder.layers[0].bias[:5] = -1e3
        vae.network_.decoder.layers[1].bias[:] = -1e6
        vae.network_.decoder.layers[0].bias[:] = 1e3
    dead = vae.dead_units(X)
    assert dead["encoder 1"][:5].all() and not dead["encoder 1"].all()
    assert dead["decoder 2"].all() and not dead["decoder 1"].any()


def test_heat_leaves_q_wider(X):
    spreads = []
    for T in (1, 3):
        net = small(temperature=T, max_iter=300).fit(X).network_
        with torch.no_grad():
            spreads.append(net.posterior(net.encoder(torch.as_tensor(X))).stddev.mean())
    assert spreads[1] > 1.2 * spreads[0]
    annealed = small(temperature="annealed").fit(X)
    assert annealed.history_["temperature"][0] == pytest.approx(3.9)
    assert annealed.temperature_path_[-1] == 1


def test_the_orthogonal_penalty_holds_the_encoder(X):
    """The products W W^T stay near the identity that they start from."""
    drift = []
    for kind in ({}, {"proximity": ProximityPenalty("orthogonal", magnitude=1.0)}):
        net = small(max_iter=300, **kind).fit(X).network_
        products = [weight.detach() @ weight.detach().T for weight in net.encoder_weights()]
        drift.append(sum(float((p - torch.eye(len(p))).abs().sum()) for p in products))
    assert drift[1] < 0.5 * drift[0]


def test_a_warm_up_moves_the_fit_and_its_schedule_counts(X):
    """A schedule that is 1 throughout is no warm-up."""
    plain, ones = small().fit(X), small(annealing=1.0, schedule=Linear(1, 1)).fit(X)
    assert torch.equal(weights(plain), weights(ones))
    cold = small(annealing=1.0, schedule=Linear(0, 0), max_iter=300, learning_rate=3e-3).fit(X)
    usual = small(max_iter=300, learning_rate=3e-3).fit(X)
    spread = [np.var(vae.transform(X)) for vae in (cold, usual)]
    assert spread[0] > 2 * spread[1]  # nothing holds q at the prior


def test_the_callback_sees_and_stops(X):
    def callback(vae, monitor):
        monitor.record(score=vae.score(X))
        if monitor.step == 6:
            raise StopIteration

    vae = small(callback=callback).fit(X)
    assert vae.n_iter_ == 6
    assert np.isfinite(vae.history_["score"]).sum() == 6


def test_bad_questions(X):
    vae = small().fit(X)
    with pytest.raises(ValueError, match=r"X has 2 features, but inverse_transform .* expecting 3"):
        vae.inverse_transform(X[:, :2])
    with pytest.raises(ValueError, match="dead_units needs a fit with units='relu'"):
        small(units="gated").fit(X).dead_units(X)
