"""TemperedLDA on an emulated GPU, and what it says where there is none."""

import copy
import pickle
import sys

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

import annealvi
from annealvi import Annealed, TemperedLDA
from annealvi.datasets import make_topic_corpus
from annealvi.metrics import document_completion
from tests.asserts import refused
from tests.marks import slow_values

K = 5


@pytest.fixture(scope="module")
def X():
    return make_topic_corpus(60, 50, K, document_length=30, random_state=1).data


def fitted(X, device="cuda", **parameters):
    usual = dict(n_components=K, random_state=0, max_iter=2, n_init=1, device=device)
    return TemperedLDA(**usual | parameters).fit(X)


TEMPERATURES = [
    dict(),
    *slow_values(
        dict(n_init=3, n_jobs=2),
        dict(temperature=2.5, learning_method="batch"),
        dict(temperature=Annealed(2.0, form="posterior")),
        dict(temperature="annealed", estimate="variational"),
        dict(temperature="variational"),
        dict(temperature="local"),
        dict(temperature=1.0, doc_topic_prior="learn", topic_word_prior="learn"),
        dict(preset="sklearn"),  # in float64 on the processor
        dict(validation_fraction=0.2),
        dict(evaluate_every=1, init="documents"),
    ),
]


@pytest.mark.parametrize("parameters", TEMPERATURES, ids=lambda p: ", ".join(map(str, p.values())))
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_fit_finds_the_same_and_repeats_itself(gpu, X, parameters):
    here = fitted(X, "cpu", **parameters)
    there, again = (fitted(X, **parameters) for _ in range(2))
    assert_array_equal(again.components_, there.components_)
    assert again.bound_ == there.bound_
    assert there.dtype_ == np.float32
    own, other = there.components_, here.components_
    assert np.abs(own - other).sum() <= 1e-3 * other.sum()
    differ = np.abs(there.transform(X) - here.transform(X))
    assert differ.mean() <= 1e-4 and differ.max() <= 1e-2  # what rounding grows to in a fit
    assert_allclose(there.bound_, here.bound_, rtol=1e-4)
    assert_allclose(there.score(X), here.score(X), rtol=1e-4)
    assert_allclose(there.temperature_path_, here.temperature_path_, rtol=1e-3)
    assert there.settings_["device"] == "cuda" and here.settings_["device"] == "cpu"


def test_questions_are_answered_there(gpu, X):
    here, X = fitted(X, "cpu"), X[:20]
    there = copy.copy(here).set_params(device="cuda")
    before = gpu.limits.copied
    for ask in (
        lambda lda: lda.transform(X),
        lambda lda: lda.transform(X, temperature=2.0),
        lambda lda: lda.transform(X, method="cvb0"),
        lambda lda: lda.score(X),
        lambda lda: lda.perplexity(X),
        lambda lda: lda.predict(X),
        lambda lda: lda.document_temperatures(X),
        lambda lda: lda.posterior_log_partition([2.0, 1.0], X),
        lambda lda: document_completion(lda, X, random_state=0),
    ):
        assert_allclose(ask(there), ask(here), rtol=1e-4, atol=1e-5)
    assert gpu.limits.copied > before


def test_a_fit_made_there_is_used_anywhere(gpu, X, tmp_path, monkeypatch):
    lda, path = fitted(X), tmp_path / "topics.safetensors"
    annealvi.save(lda, path)
    loaded = annealvi.load(path)
    assert loaded.device == "cuda"
    answers = lda.transform(X)
    for other in (loaded, copy.copy(lda), copy.deepcopy(lda), pickle.loads(pickle.dumps(lda))):
        assert_array_equal(other.components_, lda.components_)
        assert_array_equal(other.transform(X), answers)
    monkeypatch.setitem(sys.modules, "cupy", None)
    assert_array_equal(annealvi.load(path).components_, lda.components_)
    refused("device='cuda' needs cupy-cuda12x", annealvi.load(path).transform, X, error=ImportError)
    assert_allclose(annealvi.load(path, device="cpu").transform(X), answers, atol=1e-5)


def test_a_stream(gpu, X):
    lda = [TemperedLDA(K, total_samples=60, random_state=0, device=d) for d in ("cpu", "cuda")]
    shown = []
    for start in range(0, 60, 20):
        for one in lda:
            one.partial_fit(X[start : start + 20])
        assert_allclose(*(one.components_ for one in lda), rtol=1e-3)
        shown.append(lda[1].components_.copy())
    assert not np.array_equal(shown[1], shown[2])
    X = sparse.hstack([X, X[:, :3]]).tocsr()
    for one in lda:
        one.add_words(3).partial_fit(X).set_params(device="cpu").partial_fit(X)
    assert_allclose(*(one.components_ for one in lda), rtol=1e-3)


@pytest.mark.slow
def test_a_callback_looks_at_topics_and_a_fit_is_resumed(gpu, no_finish, X, tmp_path):
    seen = []

    def look(lda, monitor):
        seen.append(lda.components_.copy())
        lda.set_params(device="cpu").transform(X[:2])  # the fit stays where it is
        lda.set_params(device="cuda")
        if monitor.step == 2:
            lda.save_state(tmp_path / "state")

    parameters = dict(batch_size=20, callback=look)
    lda = fitted(X, **parameters)
    assert len(seen) == 6 and not np.array_equal(seen[0], seen[1])
    assert_array_equal(fitted(X, batch_size=20).components_, lda.components_)
    lda.set_params(callback=None)
    resumed = TemperedLDA(**lda.get_params()).fit(X, resume=tmp_path / "state")
    assert_array_equal(resumed.components_, lda.components_)


BAD = [
    (
        dict(device="cuda:7"),
        "'cpu' or an index below 1, because CuPy finds 1 CUDA devices. Got 'cuda:7'",
    ),
    (dict(dtype="float64"), "for 5 topics in float64. Got 'cuda' instead. GPUs compute in float32"),
    (dict(n_components=2049), "'cpu' for 2049 topics in float32. Got 'cuda'"),
]


@pytest.mark.parametrize(("parameters", "words"), BAD, ids=[words for _, words in BAD])
@pytest.mark.parametrize("method", ["fit", "partial_fit"])
def test_what_is_not_there_is_refused(gpu, X, parameters, words, method):
    lda = TemperedLDA(**dict(n_components=K, device="cuda", init="random") | parameters)
    refused(words, getattr(lda, method), X)
    assert not hasattr(lda, "components_")


def test_without_a_gpu_or_cupy_the_error_says_so(gpu, X, monkeypatch):
    gpu.limits.devices = 0
    words = (
        "'cpu', because CuPy finds 0 CUDA devices. Got 'cuda' instead. CUDA reports: cudaErrorNo"
    )
    refused(words, TemperedLDA(device="cuda").fit, X)
    monkeypatch.setitem(sys.modules, "cupy", None)
    refused("Install with: pip install 'cupy-cuda12x", fitted, X, error=ImportError)
