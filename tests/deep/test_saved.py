"""Fitted deep estimators in files: the same answers, the same fit goes on, no forged networks."""

import numpy as np
import pytest
import torch

import annealvi
from annealvi import storage
from annealvi.callbacks import Checkpoint
from annealvi.deep.energies import ENERGIES
from tests.asserts import refused
from tests.deep.fits import MODELS, X, answers, model
from tests.files.mutations import changed, outcomes
from tests.marks import cases

NAMES = pytest.mark.parametrize("name", MODELS)


def given(name):
    return {"log_density": ENERGIES["d"]} if name in ("posterior", "flow") else {}


@NAMES
def test_a_fitted_estimator_comes_back_and_goes_on(name, tmp_path):
    fitted = model(name).fit(X)
    annealvi.save(fitted, tmp_path / "a")
    loaded = annealvi.load(tmp_path / "a", **given(name))
    assert type(loaded) is type(fitted) and repr(loaded.get_params()) == repr(fitted.get_params())
    assert answers(loaded) == answers(fitted)
    for number, each in enumerate((loaded, fitted)):
        each.save_state(tmp_path / f"{number}")
    goes_on = [model(name, max_iter=20).fit(X, resume=tmp_path / f"{n}") for n in range(2)]
    assert answers(goes_on[0]) == answers(goes_on[1]) != answers(fitted)
    annealvi.save(loaded, tmp_path / "b")
    assert answers(annealvi.load(tmp_path / "b", **given(name))) == answers(fitted)


@NAMES
def test_a_checkpoint_at_every_step(name, tmp_path):
    """In a list of callbacks; the fit that goes on has the same records too."""
    paths = [tmp_path / f"{step}" for step in range(1, 12)]

    def keep(estimator, monitor):
        monitor.record(mine=monitor.step % 5)
        if monitor.step < 12:
            estimator.save_state(paths[monitor.step - 1])

    last = tmp_path / "last"
    whole = model(name, callback=[Checkpoint(last), keep]).fit(X)
    for path in [*paths[::5], last]:
        assert answers(model(name, callback=[keep]).fit(X, resume=path)) == answers(whole)


def test_functions_are_given_when_a_file_is_loaded(tmp_path):
    fitted = model("posterior", schedule=lambda s: 1.0, max_iter=2).fit()
    annealvi.save(fitted, tmp_path / "a")
    for parameters, missing in (({}, "log_density"), (given("posterior"), "schedule")):
        message = (
            rf"parameter '{missing}', because functions are not saved. Pass .*: annealvi\.load\("
        )
        refused(message, annealvi.load, tmp_path / "a", **parameters)
    loaded = annealvi.load(tmp_path / "a", schedule=None, **given("posterior"))
    assert loaded.schedule is None and answers(loaded) == answers(fitted)
    with pytest.raises(TypeError, match="HierarchicalPosterior has no parameter 'density'"):
        annealvi.load(tmp_path / "a", density=1)


def test_another_device(tmp_path):
    annealvi.save(model("vae", max_iter=2).fit(X), tmp_path / "a")
    refused(r"'device' parameter .* PyTorch finds", annealvi.load, tmp_path / "a", device="cuda:99")
    assert annealvi.load(tmp_path / "a", device="cpu").score(X) < 0


def test_parameters_that_were_changed_after_the_fit(tmp_path):
    fitted = model("vae", max_iter=3).fit(X)
    before = fitted.transform(X)
    fitted.set_params(n_components=7, hidden=(2, 2), n_transitions=1)
    annealvi.save(fitted, tmp_path / "a")
    np.testing.assert_array_equal(annealvi.load(tmp_path / "a").transform(X), before)


@pytest.fixture(scope="module")
def trees():
    return {name: storage.tree_of(model(name, max_iter=3).fit(X)) for name in MODELS}


@cases(
    "name, way, value",
    ("vae", "n_components", 2**40),
    ("vae", "n_components", 4),
    ("vae", "n_features", 2**53),
    ("vae", "hidden", [2**62]),
    ("vae", "units", "none"),
    ("vae", "hidden", []),
    ("vae", "training.penalty.sum", np.zeros((1, 9))),
    ("vae", "training.module", {}),
    ("vae", "training.optimiser", {"0": {"step": np.zeros((), np.float32)}}),
    ("vae", "training.optimiser.0.step", np.array(-1, np.float32)),
    ("vae", "training.noise", np.zeros(5056, np.uint8)),
    ("vae", "training.noise", np.zeros(10, np.uint8)),
    ("vae", "training.order", np.zeros(40, np.int64)),
    ("vae", "training.order", np.arange(40) + 1),
    ("vae", "training.order", np.arange(41)),
    ("vae", "training.count", -1),
    ("vae", "n_samples", 39),
    ("poisson", "prior_rate", 0.0),
    ("poisson", "n_samples", 2**50),
    ("sbn", "hidden", [4, 3, 2]),
    ("chain", "n_transitions", 3),
    ("chain", "transition_hidden", None),
    ("posterior", "n_init", 3),
    ("posterior", "lower_bounds", np.zeros(3)),
)
def test_forged_files(trees, name, way, value):
    tree = changed(trees[name], f"state.{way}", value)
    storage.estimator_of(trees[name], given(name))
    refused("damaged", storage.estimator_of, tree, given(name))


def test_a_generator_that_would_read_beyond_its_numbers(trees):
    """PyTorch takes this state: 600 numbers left, of which the next one is the last."""
    noise = trees["vae"]["state"]["training"]["noise"].copy()
    noise[8:12].view(np.int32)[0], noise[16:24].view(np.uint64)[0] = 600, 624
    torch.Generator().set_state(torch.from_numpy(noise.copy()))
    tree = changed(trees["vae"], "state.training.noise", noise)
    refused("noise' must be the state of a generator of PyTorch", storage.estimator_of, tree)


def use(estimator):
    estimator.score(X)
    estimator.sample(2)
    return []  # weights may be any numbers, so results need not be finite


@NAMES
def test_random_changes(trees, name):
    counts = outcomes(trees[name], 40, lambda tree: storage.estimator_of(tree, given(name)), use)
    assert counts["refused"] > 10 and counts["sound"] > 0
