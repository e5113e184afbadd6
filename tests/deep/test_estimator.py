"""What all deep estimators share: fits, answers, callbacks, and what they refuse."""

from __future__ import annotations

import io
import warnings

import numpy as np
import pytest
import torch
from scipy import sparse
from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks

from annealvi import Annealed, LocalVariational, Variational
from annealvi.callbacks import ProgressBar
from annealvi.deep import PoissonDEF, ProximityPenalty, SigmoidBeliefNetwork, VariationalAutoencoder
from annealvi.exceptions import DivergenceError
from annealvi.matrices import check_matrix
from tests import callbacks
from tests.asserts import refused
from tests.callbacks import stop_at
from tests.deep.fits import MODELS, X, answers, model, weights
from tests.marks import cases

ORTHOGONAL = ProximityPenalty("orthogonal")
OF_MEAN = ProximityPenalty("orthogonal", average="parameters")
NAMES = pytest.mark.parametrize("name", MODELS)
FEW_NAMES = pytest.mark.parametrize("name", ["sbn", "poisson", "vae", "posterior"])
OF_DATA = pytest.mark.parametrize("name", ["sbn", "poisson", "vae"])


@NAMES
def test_the_same_seed_gives_the_same_fit(name):
    one, two, other = (model(name, random_state=seed).fit(X) for seed in (0, 0, 1))
    assert answers(one) == answers(two)
    assert not torch.equal(weights(one), weights(other))


@OF_DATA
def test_sparse_is_dense(name):
    dense = model(name, proximity="entropy").fit(X)
    for data in (sparse.csr_matrix(X), sparse.csr_array(X.astype(np.int64)), X.astype(bool)):
        assert torch.equal(weights(model(name, proximity="entropy").fit(data)), weights(dense))
        np.testing.assert_array_equal(dense.transform(X), dense.transform(data))


@NAMES
def test_fits_are_in_single_precision_whatever_the_default_is(name):
    torch.set_default_dtype(torch.float64)
    try:
        again = model(name).fit(X)
        assert all(p.dtype == torch.float32 for p in again.network_.parameters())
        assert np.isfinite(again.score(X)) and again.sample(2)[0].dtype == np.float32
    finally:
        torch.set_default_dtype(torch.float32)


@NAMES
def test_devices_agree(name, cuda):
    fits = [model(name, max_iter=100, device=device).fit(X) for device in ("cpu", str(cuda))]
    np.testing.assert_allclose(fits[1].history_["elbo"], fits[0].history_["elbo"], rtol=1e-3)
    torch.testing.assert_close(weights(fits[1]), weights(fits[0]), rtol=1e-3, atol=1e-3)


@FEW_NAMES
def test_attributes_before_a_fit(name):
    for attribute in ("history_", "n_iter_", "network_", "made_up_"):
        assert not hasattr(MODELS[name], attribute)
        with pytest.raises(AttributeError, match=f"is not fitted yet, so it has no '{attribute}'"):
            getattr(MODELS[name], attribute)
    with pytest.raises(AttributeError, match="has no attribute 'made_up'"):
        _ = MODELS[name].made_up


@FEW_NAMES
def test_every_fitted_attribute_is_documented(name):
    fitted = model(name).fit(X)
    names = {name for name in dir(fitted) if name.endswith("_") and not name.startswith("_")}
    listed = type(fitted).__doc__.split("Attributes\n")[1]
    assert {name for name in names if f"    {name} : " not in listed} <= {"feature_names_in_"}


@OF_DATA
def test_names(name):
    import pandas as pd

    frame = pd.DataFrame(X, columns=[f"pixel {i}" for i in range(12)])
    fitted = model(name, max_iter=1).fit(frame)
    assert list(fitted.feature_names_in_) == list(frame.columns)
    assert fitted.get_feature_names_out()[2] == f"{type(fitted).__name__.lower()}2"
    refused("feature names", fitted.transform, frame.rename(columns={"pixel 0": "other"}))


@cases(
    "name, options, message",
    ("vae", {"hidden": ()}, r"'hidden' .* sequence of ints .* Got \(\) instead"),
    ("sbn", {"hidden": (3, 0)}, r"'hidden' parameter of Sigmoid.* Got \(3, 0\)"),
    ("sbn", {"hidden": (2.5,)}, r"'hidden' parameter .* Got \(2.5,\)"),
    ("vae", {"hidden": 10}, "'hidden' parameter .* Got 10 instead"),
    ("vae", {"proximity": "median"}, r"'proximity' parameter of Vari.* Got 'median'"),
    ("sbn", {"proximity": ProximityPenalty(gamma=0.0)}, r"'gamma' .* \(0.0, 1.0\]"),
    ("poisson", {"proximity": "orthogonal"}, r"'proximity' parameter .* Got 'orthogonal'"),
    (
        "poisson",
        {"proximity": ORTHOGONAL},
        r"one of \['entropy', 'kl', .*\] or a function .* Got 'orthogonal'",
    ),
    ("vae", {"temperature": 0.5}, "'temperature' parameter of VariationalAutoencoder"),
    ("sbn", {"temperature": "variational"}, r"'temperature' parameter .* Got 'variational'"),
    ("vae", {"temperature": Variational()}, "must be a float, 'annealed', a Fixed.* Got Vari"),
    ("vae", {"temperature": LocalVariational()}, "must be a float, 'annealed', a Fixed.* Got Loc"),
    ("vae", {"temperature": Annealed("auto")}, "'start' .* must be a number for this.* Got 'auto'"),
    ("gated", {"schedule": lambda done: -1.0}, "'schedule' .* of Vari.* Got -1.0 .* 0 of the"),
    ("posterior", {"schedule": lambda done: torch.nan}, "'schedule' .* Got nan"),
    ("posterior", {"schedule": lambda done: "hot"}, "'schedule' .* Got 'hot'"),
    ("posterior", {"log_density": lambda z: z}, "'log_density' parameter of Hier"),
    ("poisson", {"prior_rate": 1e300}, r"'prior_rate' .* \(0.0, 1e\+37\]"),
    ("vae", {"device": "abacus"}, "'device' parameter .* must be 'cpu', 'cuda'"),
    ("sbn", {"device": "cuda:99"}, "'device' parameter .* PyTorch finds .* Got 'cuda:99'"),
    ("posterior", {"device": 2**70}, "'device' parameter of Hier"),
    ("posterior", {"learning_rate": 1e300}, r"'learning_rate' .* \(0.0, 1e\+37\]"),
)
def test_bad_parameters_leave_the_estimator_as_it_was(name, options, message):
    fitted = model(name, max_iter=1).fit(X)
    before = weights(fitted)
    fresh = clone(fitted).set_params(**options)
    refused(message, fitted.set_params(**options).fit, X)
    assert torch.equal(weights(fitted), before)
    refused(message, fresh.fit, X)
    assert not hasattr(fresh, "network_") and not hasattr(fresh, "n_features_in_")


BITS, COUNTS, PIXELS = (
    "only 0 and 1 for .* Got",
    "counts, non-negative integers, .* Got",
    r"pixels in \[0, 1\].* Got",
)


@cases(
    "name, data, message",
    ("sbn", np.full((4, 3), 0.5), f"X may contain {BITS} 0.5"),
    ("sbn", np.full((4, 3), -1), f"{BITS} -1.0"),
    ("sbn", sparse.csr_matrix(np.full((4, 3), 2)), f"{BITS} 2.0"),
    ("sbn", sparse.csr_matrix((np.ones(2), ([0, 0], [1, 1])), shape=(2, 3)), f"{BITS} 2.0"),
    ("sbn", np.array([[0.0, np.nan]]), "NaN"),
    ("sbn", np.zeros((0, 3)), "0 sample"),
    ("poisson", np.full((4, 3), 0.5), f"X must contain {COUNTS} 0.5"),
    ("poisson", np.full((4, 3), -1), "Negative values in data passed to PoissonDEF"),
    ("poisson", sparse.csr_matrix(np.full((4, 3), 1.25)), f"{COUNTS} 1.25"),
    ("poisson", np.array([[0.0, np.inf]]), "infinity"),
    (
        "poisson",
        1e200 * np.eye(3),
        r"counts in X must sum to at most .* float32 overflows. Got 3e\+200",
    ),
    ("vae", np.full((4, 3), -0.5), "Negative values in data passed to VariationalAuto"),
    ("vae", np.full((4, 3), 255), f"{PIXELS} 255. Divide X by"),
    ("vae", sparse.csr_matrix(np.full((4, 3), 1.5)), f"{PIXELS} 1.5"),
    ("vae", np.array([["ink", "no"]]), "could not convert string"),
)
def test_bad_data(name, data, message):
    fresh, fitted = model(name), model(name, max_iter=1).fit(X[:, :3])
    refused(message, fresh.fit, data)
    assert not hasattr(fresh, "n_features_in_")
    if data.shape[1] == 3:
        refused(message, fitted.transform, data)


@FEW_NAMES
def test_bad_questions(name):
    fitted = model(name, max_iter=1).fit(X)
    option = {"poisson": None, "posterior": "n_reverse"}.get(name, "n_draws")
    data = X[:, :2] if name == "posterior" else X
    for wrong in (0, -1, 2.5):
        refused(r"'n_samples' parameter .* in the range \[1, inf\)", fitted.sample, wrong)
        if option:
            words = rf"'{option}' parameter .*must be an int"
            refused(words, fitted.score_samples, data, **{option: wrong})
    if name != "posterior":
        refused("X has 11 features", fitted.score, X[:, 1:])


@pytest.mark.parametrize(("name", "rate"), [("sbn", 1e37), ("poisson", 1e5), ("vae", 1e18)])
def test_a_fit_that_diverges_keeps_what_was_finite(name, rate):
    fitted = model(name, learning_rate=rate, max_iter=40)
    message = r"diverged at step \d+ of 40: the loss is .*'learning_rate'"
    refused(message, fitted.fit, X, error=DivergenceError)
    assert bool(torch.isfinite(weights(fitted)).all()) and fitted.n_iter_ >= 1
    if name != "poisson":
        assert np.all(np.isfinite(fitted.transform(X)))


@cases(
    "name, options, message",
    ("vae", {"hidden": (12,)}, r"in which hidden is \[8\]. In this Vari.*, hidden is \[12\]"),
    ("vae", {"n_components": 4}, "n_components is 3. In this .* n_components is 4"),
    ("vae", {"n_transitions": 1}, "n_transitions is 0. In this .* n_transitions is 1"),
    ("vae", {"units": "gated"}, "units is 'relu'. In this .* units is 'gated'"),
    ("vae", {"proximity": None}, "proximity is 'orthogonal, averaged'. In this .* is None"),
    ("vae", {"proximity": OF_MEAN}, "is 'orthogonal, averaged'. In this .* is 'orthogonal'"),
    ("poisson", {"background": 0.02}, "background is 0.01. In this .* background is 0.02"),
    ("posterior", {"n_transitions": 3}, "n_transitions is 2. In this .* n_transitions is 3"),
    ("posterior", {"transition": "flow"}, "transition is 'gaussian'. In this .*'flow'"),
)
def test_states_of_another_architecture_are_refused(name, options, message, tmp_path):
    path = tmp_path / "state"
    model(name, max_iter=1).fit(X).save_state(path)
    fresh = model(name, **options)
    refused(message, fresh.fit, X, resume=path)
    assert not hasattr(fresh, "network_") and not hasattr(fresh, "n_features_in_")
    if name != "posterior":
        with pytest.raises(ValueError, match=r"n_features is 12. In this .* n_features is 11"):
            model(name).fit(X[:, :11], resume=path)
        words = r"n_samples is 40. In this .* n_samples is 39"
        refused(words, model(name).fit, X[:39], resume=path)
        with pytest.raises(ValueError, match=r"X is '.*A fit can be continued only with the"):
            model(name).fit(X[::-1].copy(), resume=path)
        with pytest.raises(ValueError, match=f"was written by a {type(fresh).__name__}. A "):
            model("posterior").fit(resume=path)


def told(name, *callbacks, resume=None, **parameters):
    """A fit with scikit-learn's callbacks."""
    estimator = model(name, **({"max_iter": 6} | parameters))
    if callbacks:
        estimator.set_callbacks(*callbacks)
    return estimator.fit(None if name == "posterior" else X, resume=resume)


class Log(callbacks.Log):
    def look(self, estimator, X):
        return weights(estimator)


@FEW_NAMES
def test_scikit_learns_callbacks_see_the_steps(callback, name):
    log, plain = Log(), told(name)
    fitted = told(name, log)
    assert log.events == ["setup", "fit", *["step"] * 6, "teardown"]
    assert torch.equal(weights(fitted), weights(plain))
    n_passes = 6 if name == "posterior" else 3  # 40 rows, 16 a step
    assert len(log.offered) == n_passes + 1
    for _, copied, before in log.offered:  # the fit has gone on, and they have not
        assert torch.equal(weights(copied), before)
    assert len({copied.sum().item() for *_, copied in log.offered}) == n_passes
    assert [copied.n_iter_ for _, copied, _ in log.offered][-2:] == [6, 6]
    assert vars(fitted).keys() - vars(plain).keys() == {"_skl_callbacks"}


def test_a_callback_of_scikit_learns_stops_the_fit(callback):
    log = Log(stop_at=2)
    assert told("vae", log).n_iter_ == 3
    assert log.events == ["setup", "fit", *["step"] * 3, "teardown"]


def bar(name, **parameters):
    """A fit with a bar, and what the bar showed at last."""
    file = io.StringIO()
    found = told(name, callback=[ProgressBar(file=file)], **parameters)
    return found, file.getvalue().splitlines()[-1].strip()


@FEW_NAMES
def test_the_bar_shows_the_elbo_of_the_last_step(name):
    steps = []
    recorded = told(name, callback=lambda _, monitor: steps.append(monitor.history["elbo"][-1]))
    estimator, line = bar(name)
    assert torch.equal(weights(estimator), weights(recorded))
    assert line.startswith(f"{type(estimator).__name__}: 100%") and "| 6/6 [" in line
    assert f", ELBO {steps[-1]:.6g}]" in line


def test_the_bar_of_a_fit_that_is_resumed_begins_where_it_is(tmp_path):
    path = tmp_path / "state"
    told("chain", callback=stop_at(4, path=path))
    found, line = bar("chain", resume=path)
    assert "| 6/6 [" in line and torch.equal(weights(found), weights(told("chain")))


def test_verbose_shows_the_elbo(capsys):
    model("vae", verbose=1).fit(X)
    assert ", ELBO -" in capsys.readouterr().err


class Squashed(VariationalAutoencoder):
    """Takes the data of scikit-learn's checks, which are no pixels."""

    def _check_X(self, X, reset=False):
        X = check_matrix(X, estimator=self, reset=reset, dtype=np.float32)
        values = X.data if sparse.issparse(X) else X
        self._check_values(np.minimum(values, 1))  # negative ones are refused
        return X / (1 + values.max(initial=0))


class Thresholded(SigmoidBeliefNetwork):
    """Takes the data of scikit-learn's checks, which are not binary."""

    def __init__(self, hidden=(3,), *, max_iter=3, random_state=0):
        super().__init__(hidden, max_iter=max_iter, random_state=random_state)

    def _check_X(self, X, reset=False):
        X = check_matrix(X, estimator=self, reset=reset, dtype=np.float32)
        return (X > 0.5).astype(X.dtype)


@parametrize_with_checks(
    [
        Squashed(2, hidden=(4,), max_iter=3, batch_size=10),
        Squashed(2, hidden=(4,), max_iter=3, proximity="kl", n_transitions=1, calibration=0.5),
        Thresholded(),
        PoissonDEF(2, max_iter=3, n_local_steps=3, n_draws=4, random_state=0),
    ],
    expected_failed_checks=lambda estimator: dict.fromkeys(
        ["check_methods_sample_order_invariance", "check_methods_subset_invariance"],
        "the draws of a datum depend on how many there are before it",
    ),
)
def test_scikit_learn_checks(estimator, check):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", category=UserWarning)
        check(clone(estimator))
