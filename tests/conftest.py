"""Shared fixtures, and how Hypothesis searches: the same examples in every run, or random ones."""

import logging
import os
import shutil
import signal
import sys
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import settings
from scipy import sparse

from annealvi import datasets
from annealvi.models.lda import gpu as gpu_engine
from tests.examples import load_example

CHECKOUT = Path(__file__).resolve().parents[1]
os.environ.setdefault(datasets.DATA_VARIABLE, str(CHECKOUT / datasets.DEFAULT_DATA))


@pytest.fixture
def finish(monkeypatch):
    """Sets the number of passes that end a fit where data are plenty."""
    return lambda n: monkeypatch.setattr("annealvi.lda.settings.FINISH", n)


@pytest.fixture
def no_finish(finish):
    finish(0)


@pytest.fixture
def gpu(monkeypatch):
    """A GPU that is emulated on the processor; returns what stands in for CuPy."""
    if shutil.which("g++") is None:
        pytest.skip("needs g++ to compile the kernels")
    from tests._kernels import cupy_stand_in

    monkeypatch.setitem(sys.modules, "cupy", cupy_stand_in)
    monkeypatch.setattr(cupy_stand_in, "limits", SimpleNamespace(**cupy_stand_in.LIMITS))
    gpu_engine.opened.cache_clear()
    yield cupy_stand_in
    gpu_engine.opened.cache_clear()


EXAMPLES = dict(database=None, deadline=None)  # tests do not set these, nor their max_examples
settings.register_profile("repeatable", derandomize=True, max_examples=60, **EXAMPLES)
settings.register_profile("search", print_blob=True, max_examples=2000, **EXAMPLES)
settings.load_profile("repeatable")  # --hypothesis-profile=search replaces it


def pytest_sessionstart():
    """Make runs alike, whatever started them.

    Hypothesis may not draw constants of our modules: tests decide which are loaded.  A shell starts
    programs in the background with SIGINT ignored, and then no test could send it.
    """
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    providers = sys.modules.get("hypothesis.internal.conjecture.providers")  # of new versions
    if settings.default.derandomize and hasattr(providers, "is_local_module_file"):
        providers.is_local_module_file = lambda path: False


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item):
    """Let what is drawn without a seed be the same in every run."""
    np.random.seed(0)


@pytest.hookimpl(tryfirst=True)  # before pytest leaves out what is slow
def pytest_collection_modifyitems(items):
    """Skip `deep` tests where PyTorch is not installed; of a `thinned` grid most cases are slow."""
    seen, without_torch = set(), find_spec("torch") is None
    for item in items:
        if without_torch and item.get_closest_marker("deep"):
            item.add_marker(pytest.mark.skip(reason="needs PyTorch, the extra 'deep'"))
        if item.get_closest_marker("thinned") and not item.get_closest_marker("slow"):
            values = {(item.function, name, id(v)) for name, v in item.callspec.params.items()}
            if values <= seen:
                item.add_marker(pytest.mark.slow)
            seen |= values


@contextmanager
def client_of(n_workers):
    """A client of worker processes of Dask, of one thread each."""
    from distributed import Client, LocalCluster

    options = dict(threads_per_worker=1, dashboard_address=":0", silence_logs=logging.CRITICAL)
    cluster = LocalCluster(n_workers=n_workers, **options)
    with cluster, Client(cluster, set_as_default=False) as client:
        yield client


@pytest.fixture(scope="session")
def workers():
    with client_of(2) as client:
        yield client


@pytest.fixture
def clients():
    """Makes clients whose workers may be killed."""
    return client_of


@pytest.fixture
def callback():
    """scikit-learn's callbacks."""
    return pytest.importorskip("sklearn.callback", reason="scikit-learn has them since 1.9")


@pytest.fixture
def corpus():
    """Load a corpus by name, or skip the test with the reason."""

    def load(name):
        try:
            return datasets.load_corpus(name).data
        except FileNotFoundError as error:
            pytest.skip(str(error))

    return load


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
