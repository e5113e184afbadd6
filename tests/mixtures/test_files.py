"""Mixtures in files: what is loaded predicts the same bits, what is resumed ends at the same."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal, assert_equal

import annealvi
from annealvi import Fixed, TemperedFMM, TemperedGaussianMixture
from annealvi.files import read, write
from tests.asserts import refused
from tests.callbacks import stop_at
from tests.files.mutations import changed, outcomes
from tests.lda.resumed import Snapshots
from tests.marks import cases, quick_values
from tests.mixtures.fits import BLOBS, CASES, X, answers, bits, fmm, gmm

Z = X[:60]


def through_a_file(estimator, path):
    annealvi.save(estimator, path)
    again = annealvi.load(path)
    assert type(again) is type(estimator)
    assert repr(again.get_params(deep=False)) == repr(estimator.get_params(deep=False))
    return again


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("name", quick_values(CASES, "fmm", "gmm, learned T", "mmm, given"))
def test_a_fitted_mixture_comes_back(name, tmp_path):
    make, data, parameters = CASES[name]
    fitted = make(**(parameters | dict(max_iter=4, n_init=1))).fit(data)
    again = through_a_file(fitted, tmp_path / "a")
    assert bits(again) == bits(fitted)
    assert_array_equal(again.history_["seconds"], fitted.history_["seconds"])
    assert_equal(answers(again, data), answers(fitted, data))
    assert bits(through_a_file(again, tmp_path / "b")) == bits(fitted)  # and of what was read


def test_parameters_that_were_changed_after_the_fit(tmp_path):
    fitted = gmm(max_iter=3, covariance_type="spherical").fit(BLOBS)
    fitted.set_params(covariance_type="diag")
    assert bits(through_a_file(fitted, tmp_path / "a")) == bits(fitted)


FORGED_FMM = {
    "fit.model.dtype": "float16",
    "fit.model.covariance": "none",
    "fit.model.component_variance": -1.0,
    "fit.model.n_samples": 0,
    "fit.model.means": np.zeros((10**6, 1)),
    "fit.model.covariance_matrix": np.zeros((8, 7)),
    "fit.model.last": {"data": np.zeros((8, 16)), "pairs": 0},
    "fit.monitor.step": 3.5,
    "fit.lower_bound": "high",
    "fit.converged": 1,
    "fit.temperature": {"temperature": {"type": "TemperedLDA", "parameters": {}}, "state": {}},
    "feature_names_in": np.array(["a"], dtype=object),
}
FORGED_GMM = {
    "fit.model.kappa": 0.0,
    "fit.model.covariance_type": "full",
    "fit.model.known_weights": np.array([0.5, 0.5, -1.0]),
    "fit.model.beta": np.ones(4),
    "fit.model.posterior.kappa": np.array([1.0, 0.0, 1.0]),
    "fit.model.posterior.shift": np.zeros((4, 3)),
    "fit.model.posterior.square": np.full((3, 3), np.inf),
    "fit.model.least_beta": np.zeros(3),
    "fit.model.offset": None,
    "fit.model.posterior": {"shift": np.zeros((0, 10**12))},
}


@cases(
    "make, data, way, value",
    *((fmm, X, *forged) for forged in FORGED_FMM.items()),
    (fmm, X, "fit.model.means", np.zeros((10**6, 0))),
    *((gmm, BLOBS, *forged) for forged in FORGED_GMM.items()),
)
def test_forged_files(make, data, way, value, tmp_path):
    write(tmp_path / "a", "test", make(max_iter=2).fit(data).state_dict())
    tree, again = read(tmp_path / "a", "test")["tree"], make()
    refused("file is damaged", again.load_state_dict, changed(tree, way, value))
    assert not hasattr(again, "lower_bound_")


def test_parameters_are_checked():
    for estimator, wrong in (
        (TemperedFMM(n_components=-1), fmm(max_iter=2).fit(X)),
        (TemperedGaussianMixture(n_components=-1), gmm(max_iter=2).fit(BLOBS)),
    ):
        refused("'n_components' parameter", estimator.load_state_dict, wrong.state_dict())


def test_the_temperature_of_a_fit_that_ended_is_kept_only_if_learned(tmp_path):
    assert fmm(max_iter=3, temperature=Fixed(2.0)).fit(X).state_dict()["fit"]["temperature"] is None


def record(estimator, monitor):
    monitor.record(mine=monitor.step % 4)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("name", quick_values(CASES, "fmm, starts", "gmm", "mmm, learned T"))
def test_every_seventh_step(name, tmp_path):
    make, data, parameters = CASES[name]
    parameters = dict(max_iter=14) | parameters
    snapshots = Snapshots(tmp_path, every=1 if "converges" in name else 7)
    whole = make(callback=[record, snapshots], **parameters).fit(data)
    assert len(snapshots.paths) > 1
    for path in snapshots.paths:
        again = make(callback=record, **parameters).fit(data, resume=path)
        assert bits(again) == bits(whole)
        assert not hasattr(again, "_runs")
    assert_array_equal(again.score_samples(data), whole.score_samples(data))


def interrupted(make, data, path, step=3, **parameters):
    with pytest.raises(KeyboardInterrupt):
        make(callback=stop_at(step, KeyboardInterrupt, path), **parameters).fit(data)


def test_save_state_is_for_callbacks(tmp_path):
    for estimator in (fmm(), fmm(max_iter=2).fit(Z)):
        refused("only in a callback, while `fit` is running", estimator.save_state, tmp_path / "a")


@cases(
    "first, make, data, parameters, message",
    (fmm, fmm, Z[1:], {}, "fit to another X: its shape"),
    (fmm, fmm, np.float32(Z), {}, "fit to another X: its dtype"),
    (fmm, fmm, Z[::-1].copy(), {}, "fit to another X: the numbers"),
    (fmm, fmm, Z, dict(n_components=7), "another value of 'n_components': .* it is 8, .* it is 7"),
    (fmm, fmm, Z, dict(temperature=2.0), "another value of 'temperature'"),
    (fmm, gmm, Z, {}, "checkpoint of TemperedGaussianMixture. Got a checkpoint of TemperedFMM"),
    (gmm, gmm, BLOBS, dict(means_init=BLOBS[:3]), "another value of 'means_init'"),
)
def test_other_fits_are_refused(first, make, data, parameters, message, tmp_path):
    interrupted(first, Z if first is fmm else BLOBS, tmp_path / "a")
    estimator = make(**parameters)
    refused(message, estimator.fit, data, resume=tmp_path / "a")
    assert not hasattr(estimator, "n_features_in_") and not hasattr(estimator, "n_iter_")


FORGERIES = {
    "scores": ("scores", np.zeros(9)),
    "no scores and no run": ("under_way", None),
    "step": ("under_way.state.monitor.step", 10**6),
    "size": ("under_way.state.model.n_samples", 59),
    "nu": ("under_way.state.model.nu", np.full((8, 64), 2.0)),
    "no nu": ("under_way.state.model.nu", None),
    "temperature": ("under_way.state.temperature.state.start_", 0.0),
    "no temperature": ("under_way.state.temperature", None),
    "generator": ("generator_now.pos", 10**6),
}


@pytest.mark.parametrize("name", FORGERIES)
def test_forged_checkpoints(name, tmp_path):
    interrupted(fmm, Z, tmp_path / "a")
    tree = read(tmp_path / "a", "checkpoint")["tree"]
    write(tmp_path / "b", "checkpoint", changed(tree, *FORGERIES[name]))
    refused("file is damaged", fmm().fit, Z, resume=tmp_path / "b")


FORGED = {"fit": ["fmm, learned T", "fmm, proximity", "gmm"]}
FORGED["file"] = [*FORGED["fit"][:1], "fmm, float32, full", "gmm, spherical", "gmm, learned T"]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("n_changes", [30, 400])
@pytest.mark.parametrize(("of", "name"), [(of, name) for of in FORGED for name in FORGED[of]])
def test_random_changes(of, name, n_changes, tmp_path):
    """Whose checksum is right: an error, or finite results."""
    (make, data, parameters), path = CASES[name], tmp_path / "a"
    parameters = parameters | dict(max_iter=6)
    kind, fit = "checkpoint" if of == "fit" else "estimator", {}
    if of == "fit":
        interrupted(make, data, path, step=4, **parameters)
        fit = {"fit": read(path, kind)["tree"]["fit"]}
    else:
        annealvi.save(make(**parameters).fit(data), path)
    tree = {key: part for key, part in read(path, kind)["tree"].items() if key not in fit}

    def opened(forged):
        try:
            write(path, kind, forged | fit)
        except TypeError as error:  # such a name cannot be in a file
            raise ValueError("not written") from error
        return make(**parameters).fit(data, resume=path) if fit else annealvi.load(path)

    def use(estimator):
        return [*answers(estimator, data[:9]), estimator.lower_bound_]

    counts = outcomes(tree, n_changes, opened, use)
    assert counts["refused"] > 10 and counts["sound"] > 0
