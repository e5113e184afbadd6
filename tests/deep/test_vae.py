"""VariationalAutoencoder: what it learns, what it answers, how it goes on, what it refuses."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy import sparse
from sklearn.base import clone
from sklearn.linear_model import LinearRegression
from sklearn.utils.estimator_checks import parametrize_with_checks
from sklearn.utils.validation import check_non_negative

from annealvi import Annealed, Variational
from annealvi.deep import ProximityPenalty, VariationalAutoencoder
from annealvi.exceptions import DivergenceError
from annealvi.schedules import Linear
from tests.deep.fits import order_matters, stop_at

KINDS = {
    "plain": {},
    "orthogonal": {"proximity": ProximityPenalty("orthogonal", magnitude=0.1, gamma=1.0)},
    "entropy, annealed": {"proximity": "entropy", "temperature": "annealed"},
    "chain": {"n_transitions": 2, "calibration": 0.5, "transition_hidden": 8},
    "gated chain, warm-up": {
        "n_transitions": 1,
        "calibration": 0.5,
        "transition_hidden": 8,
        "units": "gated",
        "annealing": 0.7,
    },
    "chain, kl": {"n_transitions": 1, "proximity": "kl", "transition_hidden": 8},
}
kinds = pytest.mark.parametrize("kind", list(KINDS.values()), ids=list(KINDS))


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


@kinds
def test_the_same_seed_gives_the_same_fit(X, kind):
    one, two, other = (small(random_state=seed, **kind).fit(X) for seed in (0, 0, 1))
    assert torch.equal(weights(one), weights(two))
    assert not torch.equal(weights(one), weights(other))
    np.testing.assert_array_equal(one.history_["elbo"], two.history_["elbo"])
    assert one.score(X) == two.score(X)


@kinds
def test_a_resumed_fit_is_the_fit_that_never_stopped(X, kind, tmp_path):
    path = tmp_path / "state.pt"
    whole = small(**kind).fit(X)
    begun = small(callback=stop_at(17, path), **kind).fit(X)
    resumed = small(random_state=9, **kind).fit(X, resume=path)
    assert begun.n_iter_ == 17 and resumed.n_iter_ == 40
    assert not torch.equal(weights(begun), weights(whole))
    assert torch.equal(weights(resumed), weights(whole))
    np.testing.assert_array_equal(resumed.history_["elbo"], whole.history_["elbo"])


@pytest.mark.parametrize(
    "other",
    [
        {"hidden": (12,)},
        {"n_components": 4},
        {"n_transitions": 1},
        {"units": "gated"},
        {"proximity": "orthogonal"},
    ],
    ids=lambda other: next(iter(other)),
)
def test_states_of_another_architecture_are_refused(X, other, tmp_path):
    path = tmp_path / "state.pt"
    small().fit(X).save_state(path)
    vae = small().set_params(**other)
    name = next(iter(other))
    with pytest.raises(ValueError, match=rf"another architecture: it has {name}=.*, this Vari"):
        vae.fit(X, resume=path)
    assert not hasattr(vae, "network_") and not hasattr(vae, "n_features_in_")
    with pytest.raises(ValueError, match="it has n_features=20"):
        small().fit(X[:, :19], resume=path)
    with pytest.raises(ValueError, match="is of a fit of 150 data, X has 149"):
        small().fit(X[:149], resume=path)


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


def test_sparse_bits_are_the_same_data(X):
    dense, csr = small().fit(X), small().fit(sparse.csr_matrix(X))
    assert torch.equal(weights(dense), weights(csr))
    np.testing.assert_array_equal(dense.transform(X), csr.transform(sparse.csr_array(X)))


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
    for kind in (KINDS["plain"], {"proximity": ProximityPenalty("orthogonal", magnitude=1.0)}):
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


def test_a_diverging_fit_keeps_the_last_finite_state(X):
    vae = small(learning_rate=1e18)
    with pytest.raises(DivergenceError, match=r"diverged at step \d+ of 40.*'learning_rate'"):
        vae.fit(X)
    assert bool(torch.isfinite(weights(vae)).all())
    assert vae.transform(X).shape == (150, 3)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda X: X - 0.5, "Negative values in data passed to VariationalAutoencoder"),
        (lambda X: 255 * X, r"needs pixels in \[0, 1\].*values up to 255: divide by"),
        (lambda X: sparse.csr_matrix(1.5 * X), r"needs pixels in \[0, 1\].*up to 1.5"),
        (lambda X: np.where(X > 0, np.nan, X), "contains NaN"),
        (lambda X: np.where(X > 0, "ink", "no"), "could not convert string"),
    ],
    ids=["negative", "bytes", "sparse", "NaN", "text"],
)
def test_bad_pixels(X, change, message):
    vae = small()
    with pytest.raises(ValueError, match=message):
        vae.fit(change(X))
    assert not hasattr(vae, "n_features_in_")
    vae.fit(X)
    with pytest.raises(ValueError, match=message):
        vae.transform(change(X))


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"hidden": ()}, r"'hidden' parameter .* sequence of ints .* Got \(\) instead"),
        ({"hidden": (10, 0)}, r"'hidden' parameter .* Got \(10, 0\)"),
        ({"hidden": 10}, "'hidden' parameter .* Got 10 instead"),
        ({"proximity": "median"}, "'proximity' parameter of VariationalAutoencoder"),
        ({"temperature": Variational()}, "VariationalAutoencoder must be one that follows a plan"),
        ({"temperature": Annealed("auto")}, r"'auto' .* VariationalAutoencoder needs a number"),
        (
            {"annealing": 0.5, "schedule": lambda done: -1.0},
            "'schedule' parameter .* a function that gives finite floats .* Got -1.0",
        ),
        ({"device": "abacus"}, "'device' parameter .* must be 'cpu', 'cuda'"),
    ],
)
def test_bad_parameters(X, parameters, message):
    vae = small(**{name: value for name, value in parameters.items() if name != "n_components"})
    vae.set_params(**parameters)
    with pytest.raises(ValueError, match=message):
        vae.fit(X)
    assert not hasattr(vae, "network_")


def test_progress(X, capsys):
    small(verbose=1).fit(X)
    assert "elbo=-" in capsys.readouterr().err


def test_bad_questions(X):
    vae = small().fit(X)
    with pytest.raises(ValueError, match=r"'n_draws' parameter .*must be an int"):
        vae.score_samples(X, n_draws=0)
    with pytest.raises(ValueError, match=r"'n_samples' parameter .*must be an int"):
        vae.sample(0)
    with pytest.raises(ValueError, match=r"X has 2 features, but inverse_transform .* expecting 3"):
        vae.inverse_transform(X[:, :2])
    with pytest.raises(ValueError, match="dead_units needs a fit with units='relu'"):
        small(units="gated").fit(X).dead_units(X)
    with pytest.raises(ValueError, match="X has 19 features"):
        vae.elbo(X[:, 1:])


@kinds
def test_devices_agree(X, kind, cuda):
    """After 100 steps, to 1e-4 of the ELBO."""
    fits = [small(max_iter=100, device=device, **kind).fit(X) for device in ("cpu", str(cuda))]
    on_cpu, on_gpu = (vae.history_["elbo"] for vae in fits)
    np.testing.assert_allclose(on_gpu, on_cpu, rtol=1e-4)
    assert fits[1].score(X) == pytest.approx(fits[0].score(X), rel=1e-4)


class Squashed(VariationalAutoencoder):
    """For checks whose data are not pixels."""

    def _check_pixels(self, X):
        check_non_negative(X, type(self).__name__)
        return X / (1 + X)


@parametrize_with_checks(
    [
        Squashed(2, hidden=(4,), max_iter=3, batch_size=10),
        Squashed(2, hidden=(4,), max_iter=3, proximity="kl", n_transitions=1, calibration=0.5),
    ],
    expected_failed_checks=order_matters("score_samples draws z for one row after the other"),
)
def test_scikit_learn_checks(estimator, check):
    check(clone(estimator))
