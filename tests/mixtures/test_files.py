"""Fitted mixtures in files: they predict the same bits, and forged files are refused."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import annealvi
from annealvi import Fixed, TemperedFMM, TemperedGaussianMixture, storage
from annealvi.files import Node, read, write
from tests.files.mutations import mutated_tree, outcome
from tests.marks import slow_values
from tests.mixtures.fits import BLOBS, CASES, X, answers, bits, changed, fmm, gmm


def through_a_file(estimator, path):
    annealvi.save(estimator, path)
    again = annealvi.load(path)
    assert type(again) is type(estimator)
    assert repr(again.get_params(deep=False)) == repr(estimator.get_params(deep=False))
    return again


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("name", CASES)
def test_a_fitted_mixture_comes_back(name, tmp_path):
    make, data, parameters = CASES[name]
    fitted = make(**(parameters | dict(max_iter=4, n_init=1))).fit(data)
    again = through_a_file(fitted, tmp_path / "a")
    assert bits(again) == bits(fitted)
    assert_array_equal(again.history_["seconds"], fitted.history_["seconds"])
    for ours, theirs in zip(answers(again, data), answers(fitted, data), strict=True):
        assert_array_equal(ours, theirs)
    assert bits(through_a_file(again, tmp_path / "b")) == bits(fitted)  # and of what was read


def test_parameters_that_were_changed_after_the_fit(tmp_path):
    fitted = gmm(max_iter=3, covariance_type="spherical").fit(BLOBS)
    fitted.set_params(covariance_type="diag")
    assert bits(through_a_file(fitted, tmp_path / "a")) == bits(fitted)


def test_names_of_features(tmp_path):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(BLOBS, columns=["a", "b", "c"])
    again = through_a_file(gmm(max_iter=3).fit(frame), tmp_path / "a")
    assert again.feature_names_in_.tolist() == ["a", "b", "c"]
    assert again.predict(frame).shape == (120,)


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
    "fit.temperature": {"temperature": {"type": "Fixed", "parameters": {}}, "state": {}},
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


@pytest.mark.parametrize(
    ("make", "data", "way", "value"),
    [(fmm, X, *forged) for forged in FORGED_FMM.items()]
    + [(fmm, X, "fit.model.means", np.zeros((10**6, 0)))]
    + [(gmm, BLOBS, *forged) for forged in FORGED_GMM.items()],
)
def test_forged_files(make, data, way, value, tmp_path):
    write(tmp_path / "a", "test", make(max_iter=2).fit(data).state_dict())
    tree, again = read(tmp_path / "a", "test")["tree"], make()
    with pytest.raises(ValueError, match="file is damaged"):
        again.load_state_dict(Node(changed(tree, way, value)))
    assert not hasattr(again, "lower_bound_")


def test_parameters_are_checked():
    for estimator, wrong in (
        (TemperedFMM(n_components=-1), fmm(max_iter=2).fit(X)),
        (TemperedGaussianMixture(n_components=-1), gmm(max_iter=2).fit(BLOBS)),
    ):
        with pytest.raises(ValueError, match="'n_components' parameter"):
            estimator.load_state_dict(Node(wrong.state_dict()))


def test_the_temperature_of_a_fit_that_ended_is_kept_only_if_learned(tmp_path):
    assert fmm(max_iter=3, temperature=Fixed(2.0)).fit(X).state_dict()["fit"]["temperature"] is None


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("n_changes", [40, *slow_values(2000)])
@pytest.mark.parametrize(
    "name",
    ["fmm, float32, full", "fmm, learned T", "gmm, spherical", "gmm, learned T", "gmm, known"],
)
def test_random_changes(name, n_changes):
    """Whose checksum is right: an error, or a mixture whose answers are finite."""
    make, data, parameters = CASES[name]
    tree = storage.tree_of(make(**(parameters | dict(max_iter=4, n_init=1))).fit(data))
    rng, counts = np.random.default_rng(0), {"refused": 0, "refused in use": 0, "sound": 0}
    for _ in range(n_changes):
        forged, ways = mutated_tree(tree, rng, int(rng.choice([1, 1, 1, 2, 5])))
        found = outcome(
            lambda forged=forged: storage.estimator_of(Node(forged)),
            lambda e: [*answers(e, data[:9]), e.lower_bound_],
        )
        assert found in counts, (ways, found)
        counts[found] += 1
    assert counts["refused"] > 20 and counts["sound"] > 0
