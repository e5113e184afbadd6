"""What all mixtures do alike: starts, history, callbacks, copies, failures."""

import copy
import pickle
from unittest.mock import Mock

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV

from annealvi import Annealed, Fixed
from annealvi.callbacks import Checkpoint
from tests.asserts import refused
from tests.callbacks import stop_at
from tests.marks import cases
from tests.mixtures.fits import BLOBS, COUNTS, X, all_finite, bits, fmm, gmm, mmm

KINDS = ("diag", "full")
DATA = {fmm: X, gmm: BLOBS, mmm: COUNTS}
ALL = pytest.mark.parametrize(("make", "Z"), DATA.items(), ids=["fmm", "gmm", "mmm"])


@ALL
def test_results_repeat(make, Z):
    first, second = make().fit(Z), make().fit(Z)
    assert bits(first) == bits(second)
    if make is fmm:
        assert np.abs(make(random_state=1).fit(Z).components_ - first.components_).max() > 1e-3


@ALL
def test_the_best_start_is_kept(make, Z):
    options = dict(temperature=1, max_iter=30)
    if make is gmm:
        options |= dict(init_params="random_from_data", max_iter=2)
    elif make is mmm:
        options |= dict(init="kmeans++", max_iter=2)
    rng = np.random.RandomState(3)
    singles = [make(random_state=rng, **options).fit(Z).lower_bound_ for _ in range(4)]
    best = make(random_state=np.random.RandomState(3), n_init=4, **options).fit(Z)
    assert np.ptp(singles) > 1e-3
    assert best.lower_bound_ == max(singles)


@ALL
def test_history_and_paths(make, Z):
    estimator = make(temperature=Annealed(4, length=0.5, shape="linear"), max_iter=20).fit(Z)
    history = estimator.history_
    assert set(history) == {"pass", "step", "temperature", "seconds", "elbo", "annealed_elbo"}
    assert_array_equal(history["step"], np.arange(1, 21))
    assert_allclose(history["temperature"], [4 - 3 * t / 10 for t in range(10)] + [1] * 10)
    assert_array_equal(estimator.temperature_path_, history["temperature"])
    assert estimator.temperature_ == 1 and estimator.n_iter_ == 20
    assert estimator.lower_bound_ == history["elbo"][-1] / len(Z)
    assert_array_equal(history["elbo"][10:], history["annealed_elbo"][10:])
    assert np.all(np.diff(history["seconds"]) > 0)


@pytest.mark.thinned
@pytest.mark.parametrize("T", [1.0, 3.0])
@pytest.mark.parametrize("form", ["likelihood", "posterior"])
@cases(
    "make, options",
    *((fmm, dict(covariance=kind, noise_variance=s)) for kind in KINDS for s in (0.05, 5.0)),
    *((fmm, dict(covariance=kind, prior_probability="learn")) for kind in KINDS),
    (fmm, dict(init="data", noise_variance=0.1, component_variance=10.0)),
    (gmm, dict(init_params="random", degrees_of_freedom_prior=9.0)),
    (gmm, dict(init_params="random", degrees_of_freedom_prior=9.0, covariance_type="spherical")),
    (gmm, dict(init_params="random_from_data", covariances=4.0)),
    (gmm, dict(init_params="random_from_data", weights=[0.2, 0.3, 0.5])),
    (gmm, dict(weights=[0.2, 0.3, 0.5], covariances=[1.0, 2.0, 30.0])),
    (mmm, dict(init="kmeans++")),
    (mmm, dict(init="kmeans++", word_prior=2.0, weight_concentration_prior=0.1)),
)
def test_fixed_temperatures_never_lower_their_objective(make, options, form, T):
    for seed, data in enumerate((DATA[make], DATA[make][::9])):
        one = make(temperature=Fixed(T, form=form), max_iter=40, random_state=seed, **options)
        history = one.fit(data).history_
        bound = history["annealed_elbo"]
        assert np.min(np.diff(bound) / np.abs(bound[1:])) >= -1e-9
        assert np.allclose(bound, history["elbo"]) == (T == 1)


@ALL
def test_stopping(make, Z):
    done = make(tol=1e-4, max_iter=300).fit(Z)
    assert done.converged_ and 100 < done.n_iter_ < 300  # not before T has come to 1
    assert done.temperature_path_[-2:].tolist() == [1.0, 1.0]
    assert abs((np.diff(done.history_["elbo"][-3:]) / len(Z))[1]) < 1e-4
    with pytest.warns(ConvergenceWarning, match=r"tol=1e-12 after max_iter=4"):
        cut = make(tol=1e-12, max_iter=4).fit(Z)
    assert not cut.converged_ and cut.n_iter_ == 4


@ALL
def test_callbacks(make, Z):
    seen = []

    def callback(estimator, monitor):
        monitor.record(own=estimator.score(Z))
        seen.append(estimator.n_iter_)
        if monitor.step == 5:
            raise StopIteration

    estimator = make(callback=callback, n_init=3, tol=1e-3).fit(Z)
    assert seen == [1, 2, 3, 4, 5]  # it ends the fit, not one start of it
    assert estimator.history_["own"].shape == (5,)
    assert estimator.history_["own"][-1] == estimator.score(Z)


@ALL
def test_callbacks_see_the_warnings_of_their_own_numbers(make, Z):
    """A fit ignores NumPy's warnings about its numbers, of which it raises an error."""

    def divide(estimator, monitor):
        assert np.isinf(np.ones(1) / np.zeros(1))

    with pytest.warns(RuntimeWarning, match="divide by zero"):
        make(callback=divide).fit(Z)
    with np.errstate(divide="ignore"):
        make(callback=divide).fit(Z)


@ALL
@pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError])
def test_an_interrupted_fit_leaves_what_it_has(make, Z, error):
    """After an interrupt, or an error of the callback."""
    estimator = make(callback=stop_at(4, error))
    with pytest.raises(error):
        estimator.fit(Z)
    assert estimator.n_iter_ == len(estimator.history_["elbo"]) == 4
    assert np.isfinite(estimator.score(Z))
    kept = [v for v in vars(estimator._state.model).values() if isinstance(v, np.ndarray)]
    assert max(v.size for v in kept) <= max(estimator.n_features_in_, 8) * 8  # none of all data


@ALL
def test_clones_copies_and_searches(make, Z):
    estimator = make(temperature=Annealed(3, length=0.5)).fit(Z)
    pickled = pickle.loads(pickle.dumps(estimator))
    assert_array_equal(pickled.score_samples(Z), estimator.score_samples(Z))
    assert not hasattr(clone(estimator), "lower_bound_")
    copy.copy(estimator).fit(Z[:, :2])
    assert_array_equal(pickled.score_samples(Z), estimator.score_samples(Z))
    annealed, grid = make(temperature=Annealed(length=0.5), max_iter=20), [2.0, 5.0]
    best = GridSearchCV(annealed, {"temperature__start": grid}, cv=2).fit(Z).best_estimator_
    assert best.temperature_path_[0] == best.temperature.start in grid


@ALL
def test_verbose_prints_a_line_an_iteration(make, Z, capsys):
    make(verbose=1, max_iter=7, n_init=2).fit(Z)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 14 and lines[0].startswith("run 1, iteration 1: T ")
    assert lines[-1].startswith("run 2, iteration 7: T 1, ELBO per sample -")


FLAT = np.column_stack([np.zeros(120), np.full(120, 7), BLOBS[:, 0]])


@pytest.mark.thinned
@pytest.mark.parametrize("temperature", [1, "annealed"])
@cases("data", X[:1], X[:2], X[:5], X[:, :1], FLAT, np.zeros((20, 3)), np.full((20, 3), 5.0))
@pytest.mark.parametrize("make", [fmm, gmm, mmm])
def test_few_samples_and_constant_dimensions(make, data, temperature):
    # the mixture's other starts need a datum a component
    options = dict(init_params="random") if make is gmm else {}
    data = np.abs(data) if make is mmm else data
    assert all_finite(make(temperature=temperature, **options).fit(data), data)


MANY, IMPROPER = np.tile(BLOBS, 4), Annealed(100, form="posterior")


@cases(
    "make, Z, change, bad",
    (gmm, BLOBS, {}, np.ones((2, 5))),  # fewer than n_components
    (fmm, X, dict(temperature="cold"), X[:, :2]),
    (fmm, X, dict(temperature=Annealed(passes=100)), np.ones((20, 5))),
    (gmm, MANY, dict(temperature=IMPROPER, covariance_type="spherical"), MANY),
    (gmm, BLOBS, dict(mean_prior=[1e160] * 3), BLOBS),
)
def test_a_fit_that_fails_late_changes_nothing(make, Z, change, bad):
    estimator = make().fit(Z)
    scores, before = estimator.score_samples(Z), dict(vars(estimator))
    with pytest.raises(ValueError), np.errstate(all="ignore"):
        estimator.set_params(**change).fit(bad)
    assert estimator.n_features_in_ == Z.shape[1]
    assert vars(estimator).keys() == before.keys()
    assert_array_equal(estimator.score_samples(Z), scores)
    fresh = make(**change)
    with pytest.raises(ValueError), np.errstate(all="ignore"):
        fresh.fit(bad)
    assert not hasattr(fresh, "n_iter_") and not hasattr(fresh, "history_")


@ALL
def test_the_fit_stays_if_its_last_checkpoint_cannot_be_written(make, Z, tmp_path, monkeypatch):
    expected = make(max_iter=8).fit(Z)
    one = make(max_iter=8, callback=Checkpoint(tmp_path / "a", seconds=1e6))
    monkeypatch.setattr(one, "save_state", Mock(side_effect=OSError("no space")))
    refused("no space", one.fit, Z, error=OSError)
    assert_array_equal(one.score_samples(Z), expected.score_samples(Z))
