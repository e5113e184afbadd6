"""Estimators with statistics and distances of the user's own: fits, files, copies, errors."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import torch
from sklearn.base import clone

import annealvi
from annealvi.deep import (
    PoissonDEF,
    ProximityPenalty,
    SigmoidBeliefNetwork,
    VariationalAutoencoder,
    WeightStatistic,
)
from annealvi.deep.statistics import gram
from annealvi.exceptions import DivergenceError
from tests.deep.fits import stop_at

X = (np.random.RandomState(0).random_sample((30, 6)) < 0.4).astype(np.float32)
KINDS = {
    "sbn": (SigmoidBeliefNetwork, dict(hidden=(4, 3))),
    "vae": (VariationalAutoencoder, dict(n_components=3, hidden=(5,))),
    "def": (PoissonDEF, dict(n_components=3, n_local_steps=2, n_draws=4)),
}


def my_mean(q, prior):
    return q.mean


def another(q, prior):
    return q.mean


def my_huber(u):
    size = u.abs()
    return torch.where(size < 1, size, 0.5 * (u.square() + 1))


def not_a_number(q, prior):
    return q.mean * torch.nan


def model(kind, proximity, **options):
    cls, common = KINDS[kind]
    if not isinstance(proximity, ProximityPenalty):
        proximity = ProximityPenalty(proximity, magnitude=5.0, gamma=0.1)
    settings = common | dict(max_iter=12, batch_size=10, random_state=0) | options
    return cls(proximity=proximity, **settings)


def weights(fitted):
    return torch.cat([p.detach().flatten() for p in fitted.network_.parameters()]).numpy()


@pytest.mark.parametrize("kind", KINDS)
def test_a_function_is_what_the_name_is(kind):
    named = model(kind, "mean").fit(X)
    np.testing.assert_array_equal(weights(model(kind, my_mean).fit(X)), weights(named))
    huber = ProximityPenalty(my_mean, distance=my_huber, magnitude=5.0, gamma=0.1)
    np.testing.assert_array_equal(weights(model(kind, huber).fit(X)), weights(named))
    square = ProximityPenalty(my_mean, distance="square", magnitude=5.0, gamma=0.1)
    assert np.abs(weights(model(kind, square).fit(X)) - weights(named)).max() > 1e-4


@pytest.mark.parametrize("kind", ["sbn", "vae"])
def test_functions_of_weights(kind):
    named = model(kind, "orthogonal").fit(X)
    own = model(kind, WeightStatistic(lambda weights: gram(weights))).fit(X)
    np.testing.assert_array_equal(weights(own), weights(named))


def test_a_function_in_the_place_of_a_penalty():
    vae = VariationalAutoencoder(3, hidden=(5,), proximity=my_mean, max_iter=3).fit(X)
    assert vae.network_.penalty.statistic.name == "function my_mean"


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("part", ["statistic", "distance"])
def test_files_are_given_the_function(kind, part, tmp_path):
    own = {"statistic": my_mean} if part == "statistic" else {"distance": my_huber}
    penalty = ProximityPenalty(**own, magnitude=5.0)
    fitted = model(kind, penalty).fit(X)
    path = tmp_path / "file"
    annealvi.save(fitted, path)
    words = r"The file has no 'proximity': a file cannot hold a function\. Pass it: annealvi\.load"
    with pytest.raises(ValueError, match=words):
        annealvi.load(path)
    loaded = annealvi.load(path, proximity=penalty)
    assert loaded.proximity is penalty
    np.testing.assert_array_equal(weights(loaded), weights(fitted))
    np.testing.assert_array_equal(loaded.score(X), fitted.score(X))
    again = tmp_path / "again"
    annealvi.save(loaded, again)
    np.testing.assert_array_equal(weights(annealvi.load(again, proximity=penalty)), weights(loaded))


@pytest.mark.parametrize("given", [None, "mean", ProximityPenalty(another)])
def test_a_file_is_given_another_function(given, tmp_path):
    path = tmp_path / "file"
    annealvi.save(model("vae", my_mean).fit(X), path)
    words = r"written with a penalty of the statistic 'my_mean', and the 'proximity' of this Vari"
    with pytest.raises(ValueError, match=words):
        annealvi.load(path, proximity=given)


@pytest.mark.parametrize("kind", KINDS)
def test_a_fit_is_continued_with_its_function(kind, tmp_path):
    path = tmp_path / "state"
    whole = model(kind, my_mean).fit(X)
    model(kind, my_mean, callback=stop_at(5, path)).fit(X)
    np.testing.assert_array_equal(weights(model(kind, my_mean).fit(X, resume=path)), weights(whole))
    words = "has proximity='function my_mean', this .* has proximity='function another'"
    with pytest.raises(ValueError, match=words):
        model(kind, another).fit(X, resume=path)
    with pytest.raises(ValueError, match=r"this .* has proximity='mean'"):
        model(kind, "mean").fit(X, resume=path)


@pytest.mark.parametrize("kind", KINDS)
def test_clones_and_pickles(kind):
    fitted = model(kind, my_mean).fit(X)
    assert clone(fitted).proximity.statistic is my_mean
    copied = pickle.loads(pickle.dumps(fitted))
    assert copied.proximity.statistic is my_mean
    np.testing.assert_array_equal(copied.score(X), fitted.score(X))
    with pytest.raises((pickle.PicklingError, AttributeError), match=r"[Cc]an't .*pickle.*lambda"):
        pickle.dumps(model(kind, lambda q, prior: q.mean))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("proximity", "words"),
    [
        (not_a_number, "The statistic 'not_a_number' must be finite where q is. Got nan"),
        (lambda q, prior: q.mean.detach(), "has no gradient with respect to q"),
        (lambda q, prior: None, "must return a Tensor of floats. Got NoneType"),
        (ProximityPenalty(distance=torch.sum), r"'distance' 'sum' must return a Tensor of shape"),
    ],
)
def test_wrong_functions_leave_the_estimator_as_it_was(kind, proximity, words):
    fitted = model(kind, "mean", max_iter=2).set_params(proximity=None).fit(X)
    before = weights(fitted)
    with pytest.raises(ValueError, match=words):
        fitted.set_params(proximity=proximity).fit(X)
    np.testing.assert_array_equal(weights(fitted), before)


def test_a_function_that_goes_wrong_later_leaves_the_steps_made():
    calls = []

    def turning(q, prior):
        calls.append(1)
        return q.mean * (torch.nan if len(calls) > 4 else 1.0)

    vae = model("vae", turning)
    with pytest.raises(ValueError, match="'turning' must be finite where q is"):
        vae.fit(X)
    assert vae.n_iter_ == 4 and np.all(np.isfinite(weights(vae)))


@pytest.mark.parametrize("proximity", ["entropy", my_mean])
def test_a_fit_that_diverges_says_so(proximity):
    """Not that its statistic is at fault, which is NaN because q is."""
    for kind in KINDS:
        with pytest.raises(DivergenceError, match="The fit diverged at step"):
            model(kind, proximity, learning_rate=1e38).fit(X)
