"""Shared fixtures: corpora outside the package, and each instruction set in turn."""

import os
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

from annealvi import _kernels, datasets
from tests.examples import load_example

CHECKOUT = Path(__file__).resolve().parents[1]
os.environ.setdefault(datasets.DATA_VARIABLE, str(CHECKOUT / datasets.DEFAULT_DATA))


def pytest_collection_modifyitems(items):
    """Skip the tests marked `deep` where PyTorch is not installed."""
    if find_spec("torch") is None:
        for item in items:
            if item.get_closest_marker("deep"):
                item.add_marker(pytest.mark.skip(reason="needs PyTorch, the extra 'deep'"))


@pytest.fixture
def corpus():
    """Load a corpus by name, or skip the test with the reason."""

    def load(name):
        try:
            return datasets.load_corpus(name).data
        except FileNotFoundError as error:
            pytest.skip(str(error))

    return load


@pytest.fixture(params=_kernels.available_instruction_sets())
def instruction_set(request):
    """Run the test with each build of the kernels that this processor can run."""
    before = _kernels.instruction_set()
    _kernels.use_instruction_set(request.param)
    yield request.param
    _kernels.use_instruction_set(before)


@pytest.fixture
def counts():
    """A small corpus with empty documents, unused words and long and short documents."""
    rng = np.random.RandomState(0)
    X = rng.poisson(0.3, (60, 41)).astype(float)
    X[:, 7] = 0
    X[[3, 11]] = 0
    X[5] = 0
    X[5, 12] = 1
    X[20] = rng.poisson(20, 41)
    return sparse.csr_matrix(X)


@pytest.fixture
def load(monkeypatch):
    """Load an example by name, as a module that draws without a window; close its figures."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    monkeypatch.syspath_prepend(CHECKOUT / "examples")  # what the examples share lies there

    yield load_example
    pyplot.close("all")
