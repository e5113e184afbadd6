"""Callbacks of deep estimators: lists, the progress bar, and scikit-learn's."""

import io

import numpy as np
import pytest
import torch
from sklearn.base import clone

from annealvi.deep import (
    HierarchicalPosterior,
    PoissonDEF,
    SigmoidBeliefNetwork,
    VariationalAutoencoder,
)
from annealvi.deep.energies import ENERGIES
from annealvi.progress import ProgressBar
from tests.deep.fits import stop_at

X = (np.random.RandomState(0).random_sample((40, 12)) < 0.3).astype(np.float32)
FEW = dict(max_iter=6, batch_size=16, random_state=0)
MODELS = {
    "sbn": SigmoidBeliefNetwork((4, 3), **FEW),
    "poisson": PoissonDEF(3, n_local_steps=3, **FEW),
    "vae": VariationalAutoencoder(3, hidden=(8,), **FEW),
    "posterior": HierarchicalPosterior(ENERGIES["d"], 2, 2, n_init=2, hidden=4, **FEW),
}
NAMES = pytest.mark.parametrize("name", MODELS)


def weights(estimator):
    return torch.cat([p.detach().ravel() for p in estimator.network_.parameters()])


def fit(name, *callbacks, resume=None, **parameters):
    estimator = clone(MODELS[name]).set_params(**parameters)
    if callbacks:
        estimator.set_callbacks(*callbacks)
    return estimator.fit(None if name == "posterior" else X, resume=resume)


class Log:
    """A callback of scikit-learn's that writes down the tasks and the copies."""

    def __init__(self, stop_at=None):
        self.events, self.copies, self.stop_at = [], [], stop_at

    def setup(self, estimator, context):
        self.events.append("setup")

    def teardown(self, estimator, context):
        self.events.append("teardown")

    def on_fit_task_begin(self, estimator, context, *, X=None):
        self.events.append(context.task_name)

    def on_fit_task_end(self, estimator, context, *, X=None, fitted_estimator=None):
        if fitted_estimator is not None:
            self.copies.append((fitted_estimator, weights(fitted_estimator)))
        return context.task_name == "step" and context.task_id == self.stop_at


@pytest.fixture
def callback():
    return pytest.importorskip("sklearn.callback", reason="scikit-learn has them since 1.9")


@NAMES
def test_scikit_learns_callbacks_see_the_steps(callback, name):
    log, plain = Log(), fit(name)
    told = fit(name, log)
    assert log.events == ["setup", "fit", *["step"] * 6, "teardown"]
    assert torch.equal(weights(told), weights(plain))
    n_passes = 6 if name == "posterior" else 3  # 40 rows, 16 a step
    assert len(log.copies) == n_passes + 1
    for fitted, before in log.copies:  # the fit has gone on, and they have not
        assert torch.equal(weights(fitted), before)
    assert len({copy.sum().item() for _, copy in log.copies}) == n_passes
    assert [fitted.n_iter_ for fitted, _ in log.copies][-2:] == [6, 6]
    assert vars(told).keys() - vars(plain).keys() == {"_skl_callbacks"}


def test_a_callback_of_scikit_learns_stops_the_fit(callback):
    log = Log(stop_at=2)
    assert fit("vae", log).n_iter_ == 3
    assert log.events == ["setup", "fit", *["step"] * 3, "teardown"]


def test_scikit_learns_monitor_scores_each_pass(callback):
    pandas = pytest.importorskip("pandas")
    monitor = callback.ScoringMonitor(scoring={"bound": lambda vae, X, y: vae.score(X)})
    vae = clone(MODELS["vae"]).set_callbacks(monitor)
    frame = pandas.DataFrame(X, columns=[f"pixel {k}" for k in range(12)])
    vae.fit(frame)
    scores = [row["bound"] for row in monitor.get_logs().data if row["task_name"] == "step"]
    assert len(scores) == 3 and scores[-1] == vae.score(frame)


def bar(name, **parameters):
    """A fit with a bar, and what the bar showed at last."""
    pytest.importorskip("tqdm")
    file = io.StringIO()
    found = fit(name, callback=[ProgressBar(file=file)], **parameters)
    return found, file.getvalue().rstrip("\n").rpartition("\r")[2]


@NAMES
def test_the_bar_shows_the_elbo_of_the_last_step(name):
    steps = []
    recorded = fit(name, callback=lambda _, monitor: steps.append(monitor.history["elbo"][-1]))
    estimator, line = bar(name)
    assert torch.equal(weights(estimator), weights(recorded))
    assert line.startswith(f"{type(estimator).__name__}: 100%") and "| 6/6 [" in line
    assert f", ELBO {steps[-1]:.6g}]" in line


def test_the_bar_of_a_fit_that_is_resumed_begins_where_it_is(tmp_path):
    path = tmp_path / "state"
    fit("vae", callback=stop_at(4, path))
    found, line = bar("vae", resume=path)
    assert "| 6/6 [" in line and torch.equal(weights(found), weights(fit("vae")))
