"""Pickles carry the version of annealvi, and another one warns; an installation shows its own."""

import copy
import pickle
import sys
import warnings

import numpy as np
import pytest
from sklearn import exceptions
from sklearn.base import clone

import annealvi
from annealvi import TemperedFMM, TemperedGaussianMixture, TemperedLDA, _kernels, versions
from annealvi.exceptions import InconsistentVersionWarning

X = np.random.RandomState(0).poisson(1.0, (20, 6)).astype(float)
ESTIMATORS = [TemperedLDA(2, max_iter=2), TemperedFMM(2), TemperedGaussianMixture(2)]


@pytest.fixture(params=ESTIMATORS, ids=lambda estimator: type(estimator).__name__)
def fitted(request):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return clone(request.param).set_params(random_state=0).fit(X)


def test_the_same_version_is_silent(fitted):
    for other in (pickle.loads(pickle.dumps(fitted)), copy.deepcopy(fitted)):
        assert vars(other).keys() == vars(fitted).keys()
        assert other.score(X) == fitted.score(X)


def test_another_version_warns(fitted, monkeypatch):
    data = pickle.dumps(fitted)
    assert versions.__version__.encode() in data
    monkeypatch.setattr(versions, "__version__", "99.0")
    name = type(fitted).__name__
    with pytest.warns(
        exceptions.InconsistentVersionWarning,
        match=rf"{name} was written by annealvi 0.* and is now read by annealvi 99\.0",
    ) as caught:
        loaded = pickle.loads(data)
    assert isinstance(caught[0].message, InconsistentVersionWarning)
    assert loaded.score(X) == fitted.score(X)


def test_an_installation_shows_its_versions(capsys, monkeypatch):
    annealvi.show_versions()
    printed = capsys.readouterr().out
    for line in (
        f"python: {sys.version.split()[0]}",
        f"annealvi: {annealvi.__version__}",
        f"numpy: {np.__version__}",
        f"instruction set: {_kernels.instruction_set()} (available: ",
        f"threads: {'OpenMP' if _kernels.openmp_enabled() else 'one, built without OpenMP'}\n",
        f"compiler: {_kernels.built_with()['compiler']}",
        "internal_api: ",  # of threadpoolctl
    ):
        assert f" {line}" in printed
    monkeypatch.setattr(_kernels, "openmp_enabled", lambda: False)
    monkeypatch.setattr(versions, "LIBRARIES", ("not-a-library",))
    annealvi.show_versions()
    printed = capsys.readouterr().out
    assert " threads: one, built without OpenMP\n" in printed
    assert " not-a-library: None\n" in printed
