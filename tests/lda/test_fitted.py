"""What a fitted TemperedLDA answers, with and without a look at it before."""

import copy
import pickle
from concurrent.futures import ThreadPoolExecutor

import joblib
import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal, assert_equal
from scipy import sparse
from scipy.special import psi
from sklearn.base import clone

from annealvi import Annealed, TemperedLDA
from annealvi.datasets import make_topic_corpus
from tests.asserts import refused
from tests.marks import slow_values
from tests.models.lda.pair import LDA, LocalOptions
from tests.models.lda.streams import K, V, stream


def test_attributes(fit, X):
    lda = fit(X, dtype="float64")
    assert lda.components_.shape == (4, 60)
    lam = np.asarray(lda.components_)
    expected = np.exp(psi(lam) - psi(lam.sum(axis=1, keepdims=True)))
    assert_allclose(lda.exp_dirichlet_component_, expected, rtol=1e-10)
    assert (lda.doc_topic_prior_, lda.topic_word_prior_) == (0.25, 0.25)
    assert lda.n_features_in_ == 60
    assert isinstance(lda.random_state_, np.random.RandomState)
    assert list(lda.get_feature_names_out()) == [f"temperedlda{i}" for i in range(4)]


def test_transform_treats_each_document_alone(fit, X):
    lda = fit(X)
    whole = lda.transform(X)
    for rows in (slice(0, 1), slice(79, 80), slice(10, 30)):
        assert_array_equal(lda.transform(X[rows]), whole[rows])
    assert_array_equal(lda.transform(X[::-1]), whole[::-1])
    gamma, rounding = lda.transform(X, normalize=False), 10 * np.finfo(lda.dtype_).eps
    assert_allclose(gamma.sum(axis=1), 1 + np.asarray(X.sum(axis=1)).ravel(), rtol=rounding)


def test_top_words(fit, X):
    lda = fit(X)
    words = lda.top_words(3, relevance=1)
    assert [len(topic) for topic in words] == [3] * 4
    order = np.argsort(-lda.components_, axis=1)[:, :3]
    assert words == order.tolist()
    names = np.array([f"w{i}" for i in range(60)])
    assert lda.top_words(3, names, relevance=1) == names[order].tolist()
    named = fit(pd.DataFrame(X.toarray(), columns=names))
    assert named.top_words(3, relevance=1) == names[order].tolist()
    assert len(lda.top_words(1000)[0]) == 60
    refused("one name for each of the 60 features", lda.top_words, 3, names[:5])
    refused(r"\[1, inf\)", lda.top_words, 0)


@pytest.mark.parametrize("temperature", [1, *slow_values("annealed")])
def test_scores_and_transforms_at_the_same_time(fit, X, temperature):
    lda = fit(X, temperature=temperature)
    score, theta = lda.score(X), lda.transform(X)

    def work(i):
        return lda.score(X) if i % 2 else lda.transform(X)

    for _ in range(5):
        lda.components_ = lda.components_.copy()  # so that the threads start cold
        with ThreadPoolExecutor(4) as pool:
            for i, result in enumerate(pool.map(work, range(24))):
                assert_array_equal(result, score if i % 2 else theta)


def test_arrays_of_a_fit_are_read_only_and_an_assigned_one_is_copied(fit, X):
    lda = fit(X, doc_topic_prior=[0.1, 0.2, 0.3, 0.4], topic_word_prior=np.full(60, 0.1))
    for name in ("components_", "doc_topic_prior_", "topic_word_prior_"):
        with pytest.raises(ValueError, match="read-only"):
            getattr(lda, name)[0] = 2.0
        refused("read-only", getattr(lda, name).__imul__, 2.0)
        mine = np.array(getattr(lda, name)) + 0.5
        setattr(lda, name, mine)
        before = mine.copy()
        mine[:] = 7.0
        assert_allclose(getattr(lda, name), before, rtol=1e-6)  # in the dtype of the fit
    twin, view, theta = copy.copy(lda), lda.components_, lda.transform(X)
    lda.components_ = view * 3
    assert_array_equal(twin.components_, view)
    assert_array_equal(twin.transform(X), theta)
    assert not np.array_equal(lda.components_, view)


def test_arrays_of_a_fit_under_way_are_copies(fit, X):
    def keep(lda, monitor):
        kept.append((lda.components_, lda.components_.copy()))
        with pytest.raises(ValueError, match="read-only"):
            lda.components_[0] = 1.0

    kept = []
    fit(X, learning_method="online", dtype="float64", callback=keep)
    assert len(kept) > 5
    for array, before in kept:
        assert_array_equal(array, before)


def test_attributes_that_scikit_learn_lets_one_assign(fit, X):
    lda = fit(X)
    theta = lda.transform(X)
    lda.exp_dirichlet_component_ = np.array(lda.exp_dirichlet_component_)
    with pytest.raises(ValueError, match=r"exp_dirichlet_component_.*components_"):
        lda.exp_dirichlet_component_ = np.ones((4, 60))
    lda.doc_topic_prior_ = 50.0
    changed = lda.transform(X)
    assert np.ptp(changed) < np.ptp(theta)
    with pytest.raises(ValueError, match=r"doc_topic_prior_.*Got -1"):
        lda.doc_topic_prior_ = -1
    lda.doc_topic_prior_ = 0.25
    assert_array_equal(lda.transform(X), theta)
    lda.set_params(total_samples=80).n_batch_iter_ = 10**6
    before = lda.components_.copy()
    lda.partial_fit(X)
    assert lda.n_batch_iter_ == 10**6 + 5
    assert_allclose(lda.components_, before, rtol=0.01)  # rho = 6e-5


def test_components_given_to_an_estimator_make_it_whole(fit, X):
    fitted = fit(X)
    lda = clone(fitted)
    assert not hasattr(lda, "components_")
    lda.components_ = fitted.components_
    assert_array_equal(lda.transform(X), fitted.transform(X))
    assert lda.partial_fit(X).n_batch_iter_ == 1 + 5
    lda = TemperedLDA(4, temperature=Annealed(passes=1), total_samples=160, batch_size=16)
    lda.components_ = np.ones((4, 60))
    assert (lda.n_features_in_, lda.n_iter_, lda.n_batch_iter_) == (60, 0, 1)
    assert lda.partial_fit(X).temperature_path_[0] == pytest.approx(3.9)


def test_a_fit_without_a_generator(counts):
    X = counts
    lda = TemperedLDA(3, random_state=0).fit(X)
    lda.random_state_ = None  # NumPy's own
    assert isinstance(lda.random_state_, np.random.RandomState)
    lda.set_params(total_samples=-1)
    refused("'total_samples' parameter of TemperedLDA", lda.perplexity, X, sub_sampling=True)


def collapsed(lda, X):
    return lda.transform(X, method="cvb0")


def test_shares_of_topics(fit, X):
    lda = fit(X, dtype="float64")
    theta = collapsed(lda, X)
    assert theta.shape == (80, 4)
    assert_allclose(theta.sum(axis=1), 1, rtol=1e-12)
    assert np.abs(theta - lda.transform(X)).max() > 1e-3
    gamma = lda.transform(X, method="cvb0", normalize=False)
    assert_allclose(gamma.sum(axis=1), 4 * lda.doc_topic_prior_ + X.sum(axis=1).A1, rtol=1e-10)
    assert_array_equal(gamma / gamma.sum(axis=1, keepdims=True), theta)


def test_dense_sparse_and_single_documents(fit, X):
    lda = fit(X)
    theta = collapsed(lda, X)
    assert_array_equal(collapsed(lda, X.toarray()), theta)
    assert_array_equal(collapsed(lda, sparse.csc_matrix(X)), theta)
    assert_array_equal(collapsed(lda, X[7:9]), theta[7:9])
    empty = collapsed(lda, np.zeros((2, 60)))
    assert_allclose(empty, 0.25, rtol=1e-12)


def test_any_number_of_threads(fit, X):
    lda = fit(X)
    many = sparse.vstack([X] * 8).tocsr()
    theta = collapsed(lda, many)
    assert_array_equal(collapsed(lda.set_params(n_jobs=3), many), theta)
    assert_array_equal(theta[:80], theta[80:160])


def test_parameters_that_are_set_after_the_fit_wait_for_the_next(fit, X):
    """As the docstring of `max_doc_update_iter` says."""
    lda = fit(X)
    before = lda.transform(X)
    lda.set_params(max_doc_update_iter=1)
    assert_array_equal(lda.transform(X), before)
    lda.components_ = lda.components_.copy()
    assert np.any(lda.transform(X) != before)
    other = fit(X).set_params(max_doc_update_iter=1)
    again = fit(X).partial_fit(X[:2]).transform(X)
    assert np.any(other.partial_fit(X[:2]).transform(X) != again)


@pytest.mark.slow
@pytest.mark.parametrize("temperature", [2, 1.5, "learned", None, np.ones(2)])
def test_temperatures_that_collapsed_inference_does_not_have(fit, X, temperature):
    with pytest.raises(ValueError, match=r"must be 1.0 with method='cvb0'"):
        fit(X).transform(X, method="cvb0", temperature=temperature)


PRESETS = ("sklearn", "annealvi")


def estimator(**parameters):
    defaults = dict(temperature=2.0, batch_size=3, total_samples=400, random_state=0)
    defaults["preset"] = "sklearn"
    return TemperedLDA(K, **(defaults | parameters))


LOOKS = {
    "components_": lambda lda, X: lda.components_,
    "kept components_": lambda lda, X: vars(lda).setdefault("_views", []).append(lda.components_),
    "exp_dirichlet_component_": lambda lda, X: lda.exp_dirichlet_component_,
    "transform": lambda lda, X: lda.transform(X),
    "transform, hot": lambda lda, X: lda.transform(X, temperature=3.0),
    "score": lambda lda, X: lda.score(X),
    "top_words": lambda lda, X: lda.top_words(),
    "document_temperatures": lambda lda, X: lda.document_temperatures(X[:5]),
    "pickle": lambda lda, X: pickle.dumps(lda._state.model),
    "topic_sums": lambda lda, X: lda._state.model.sums,
    "lam": lambda lda, X: lda._state.model.up_to_date_lambda(),
}


@pytest.mark.thinned
@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("method", ["partial_fit", "fit"])
@pytest.mark.parametrize("look", LOOKS)
def test_looking_changes_nothing(look, method, preset):
    X = stream(36)
    held_out = stream(8, 40, seed=1)
    results = []
    for looked_at in (False, True):
        lda = estimator(learning_method="online", max_iter=2, preset=preset)
        if looked_at:
            lda.callback = lambda lda, monitor: LOOKS[look](lda, held_out)
        if method == "fit":
            lda.fit(X)
        else:
            for rows in range(0, 36, 9):
                lda.partial_fit(X[rows : rows + 9])
                if looked_at:
                    LOOKS[look](lda, held_out)
        found = [lda._state.model.lam.copy(), lda.components_, lda.transform(held_out)]
        results.append([*found, lda.score(held_out)])
    assert_equal(*results)


def mapped(lda, folder):
    joblib.dump(lda, folder / "lda.joblib")
    return joblib.load(folder / "lda.joblib", mmap_mode="r")


COPIES = {
    "pickle": lambda lda, folder: pickle.loads(pickle.dumps(lda)),
    "deepcopy": lambda lda, folder: copy.deepcopy(lda),
    "mmap": mapped,
}


@pytest.mark.thinned
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("way", COPIES)
@pytest.mark.parametrize("looked_at", [False, True])
@pytest.mark.parametrize("preset", PRESETS)
def test_a_copy_continues_as_the_original(way, looked_at, dtype, preset, tmp_path):
    X = stream(60).astype(dtype)
    lda = estimator(preset=preset).partial_fit(X[:30])
    assert lda._state.model.now != 1
    again = COPIES[way](lda, tmp_path)
    for each, look in ((lda, False), (again, looked_at)):
        view = each.components_ if look else None
        before = None if view is None else view.copy()
        for rows in (slice(30, 33), slice(33, 60)):
            each.partial_fit(X[rows])
        if look:
            assert_array_equal(view, before)
    assert_array_equal(lda.components_, again.components_)
    assert_array_equal(lda._state.model.sums, again._state.model.sums)
    assert_array_equal(lda.transform(X), again.transform(X))


def test_what_was_assigned_is_what_follows():
    """Topics assigned before and after rows have missed steps."""
    X = stream(40)
    rng = np.random.RandomState(3)
    for written_after in (estimator(max_iter=2).fit, estimator().partial_fit):
        lda = written_after(X)
        written = lda.components_ * rng.uniform(0.5, 2, (K, V))
        lda.components_ = written
        fresh = LDA(K, V, alpha=1 / K, eta=1 / K, options=LocalOptions(exact=True))
        fresh.assign(written)
        assert_allclose(lda.transform(X, normalize=False), fresh.infer(X), rtol=1e-12)
        assert lda.score(X) == pytest.approx(fresh.elbo(X), rel=1e-12)


@pytest.mark.parametrize("method", ["fit", "partial_fit"])
def test_a_prior_assigned_in_a_callback_holds_from_the_next_step_on(method):
    """Whether somebody looks at the fit or not."""
    X = stream(30)

    def fitted(looks):
        def callback(lda, monitor):
            if monitor.step == 1:
                lda.doc_topic_prior_ = 2.0
            elif looks:
                lda.transform(X[:2])

        options = dict(max_iter=2, batch_size=10, total_samples=30, callback=callback)
        lda = TemperedLDA(3, random_state=0, **options)
        return getattr(lda, method)(X).components_

    assert_array_equal(fitted(True), fitted(False))


def test_large_buffers_are_released_after_a_fit(monkeypatch):
    X = make_topic_corpus(200, 60, 3, document_length=30, random_state=0).data
    kept = TemperedLDA(3, random_state=0).fit(X)
    monkeypatch.setattr("annealvi.models.lda.cpu.LARGE_BYTES", 0)
    released = TemperedLDA(3, random_state=0).fit(X)
    assert_array_equal(released.components_, kept.components_)
    assert_array_equal(released.transform(X), kept.transform(X))
    assert_array_equal(released.partial_fit(X).components_, kept.partial_fit(X).components_)
