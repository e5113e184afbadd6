"""Sums over shards: the local step without them, up to rounding, and with one the same bits."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from annealvi import LocalVariational, TemperedLDA, Variational
from annealvi.dask import TemperedLDA as Sharded
from annealvi.datasets import load_arxiv_abstracts
from annealvi.model import Batch, Tempering
from annealvi.models.lda.cpu import CPUEngine
from annealvi.models.lda.shards import ShardEngine, engine_of
from tests.models.lda.naive import make
from tests.models.lda.streams import dense

V = 41
WARNS = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def counts(n_samples, density, seed=0):
    X = sparse.random(n_samples, V, density, "csr", random_state=seed)
    X.data = np.ceil(5 * X.data)
    return X


@pytest.mark.parametrize("density", [0.01, 0.05, 0.4])  # few words, most, or all
@pytest.mark.parametrize("size", [1, 3, 7, 30, 100])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_statistics_add_up(size, density, dtype):
    X, model = counts(30, density).astype(dtype), make(dtype=dtype)
    whole = dense(model.local_step(Batch(X, slice(2, 29)), Tempering(0.5)).statistics, 5)
    engine = ShardEngine(model.engine, size)
    statistics = engine.e_step(model, Batch(X, slice(2, 29)), Tempering(0.5)).statistics
    assert_array_equal(statistics.words(), np.unique(X[2:29].indices))
    rows = dense(statistics, 5)
    exact = dict(rtol=0) if size >= 27 else dict(rtol=1e-5 if dtype == np.float32 else 1e-12)
    assert_allclose(rows, whole, atol=0 if size >= 27 else 1e-7, **exact)


@pytest.fixture(scope="module")
def X():
    return load_arxiv_abstracts().data[:400]


SETTINGS = {
    "annealed": {},
    "learned priors": dict(doc_topic_prior="learn", topic_word_prior="learn", temperature=1.05),
    "learned temperature": dict(temperature=Variational()),
    "over the prior": dict(temperature=Variational(partition="prior")),
    "each document": dict(temperature=LocalVariational()),
    "batch": dict(learning_method="batch", temperature=Variational(partition="prior")),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", SETTINGS)
@WARNS
def test_one_shard_is_no_shards(X, name):
    settings = dict(max_iter=3, random_state=0, batch_size=400) | SETTINGS[name]
    lda = TemperedLDA(5, **settings).fit(X)
    one = Sharded(5, shard_size=400, **settings).fit(X)
    assert_array_equal(one.components_, lda.components_)
    assert_array_equal(one.temperature_path_, lda.temperature_path_)
    assert one.bound_ == lda.bound_


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in SETTINGS if name != "each document"])
@WARNS
def test_shards_change_the_last_digits_only(X, name):
    settings = dict(max_iter=3, random_state=0, dtype="float64", batch_size=99) | SETTINGS[name]
    lda = TemperedLDA(5, **settings).fit(X)
    found = [Sharded(5, shard_size=33, n_jobs=n, **settings).fit(X) for n in (1, 2)]
    assert_allclose(found[0].components_, lda.components_, rtol=1e-6)
    assert_allclose(found[0].bound_, lda.bound_, rtol=1e-9)
    assert_allclose(found[0].doc_topic_prior_, lda.doc_topic_prior_, rtol=1e-8)
    assert_array_equal(found[0].components_, found[1].components_)
    assert found[0].settings_["shard_size"] == 33


def test_random_documents_are_drawn_shard_by_shard(X):
    options = dict(preset="sklearn", max_iter=2, random_state=0)
    fits = [Sharded(3, shard_size=size, **options).fit(X) for size in (50, 50, 400)]
    assert_array_equal(fits[0].components_, fits[1].components_)
    assert np.any(fits[0].components_ != fits[2].components_)


def test_streams_have_shards_too(X):
    settings = dict(random_state=0, batch_size=100)
    plain = TemperedLDA(3, **settings).partial_fit(X).partial_fit(X[:70])
    lda = Sharded(3, shard_size=100, **settings).partial_fit(X).partial_fit(X[:70])
    assert_array_equal(lda.components_, plain.components_)
    lda = Sharded(3, shard_size=9, **settings).partial_fit(X).partial_fit(X[:70])
    assert_allclose(lda.components_, plain.components_, rtol=1e-3)


def test_an_engine_of_another_kind_is_replaced():
    """Even if both have no device; a parameter may name another kind since the last call."""

    class Second(CPUEngine):
        pass

    kept = CPUEngine()
    assert engine_of("cpu", 1, 3, np.dtype("float32"), kept=kept) is kept
    assert engine_of("cpu", 1, 3, np.dtype("float32"), kept=ShardEngine(kept)) is kept
    assert type(engine_of("cpu", 1, 3, np.dtype("float32"), kept=Second())) is CPUEngine
