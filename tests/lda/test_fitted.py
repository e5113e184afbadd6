"""What a fitted TemperedLDA answers: attributes, assigned topics, transform, top words."""

import copy

import joblib
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import psi
from sklearn.base import clone

from annealvi import Annealed, TemperedLDA
from tests.lda.fits import METHODS


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


@pytest.mark.parametrize("method", METHODS)
def test_assigning_components(fit, X, method):
    lda, other = fit(X, learning_method=method), fit(X, random_state=5)
    lda.components_ = other.components_
    assert_array_equal(lda.transform(X), other.transform(X))
    assert lda.score(X) == other.score(X)
    lda.partial_fit(X[:16])
    assert lda.components_.shape == (4, 60)


def test_another_number_of_topics(fit, X):
    lda = fit(X)
    lda.components_ = lda.components_[:3]
    assert lda.transform(X).shape == (80, 3)
    assert len(lda.get_feature_names_out()) == 3


def test_topics_given_to_an_estimator_that_was_never_fitted(fit, X):
    fitted = fit(X)
    lda = clone(fitted)
    assert not hasattr(lda, "components_")
    lda.components_ = fitted.components_
    assert_array_equal(lda.transform(X), fitted.transform(X))
    lda.partial_fit(X)
    assert lda.n_batch_iter_ == 1 + 5


@pytest.mark.parametrize("shape", [(4, 59), (4,), (4, 60, 1)])
def test_components_of_a_wrong_shape(fit, X, shape):
    with pytest.raises(ValueError, match="components_"):
        fit(X).components_ = np.ones(shape)


def test_components_must_be_positive(fit, X):
    lda = fit(X)
    with pytest.raises(ValueError, match=r"positive and finite. Got 0"):
        lda.components_ = np.zeros((4, 60))


def test_a_read_only_memory_map(fit, X, tmp_path):
    path = tmp_path / "model.joblib"
    lda = fit(X)
    joblib.dump(lda, path)
    mapped = joblib.load(path, mmap_mode="r")
    assert_array_equal(mapped.transform(X), lda.transform(X))
    assert_array_equal(mapped.partial_fit(X[:16]).components_, lda.partial_fit(X[:16]).components_)


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
    words = lda.top_words(3)
    assert [len(topic) for topic in words] == [3] * 4
    order = np.argsort(-lda.components_, axis=1)[:, :3]
    assert words == order.tolist()
    names = np.array([f"w{i}" for i in range(60)])
    assert lda.top_words(3, names) == names[order].tolist()
    assert len(lda.top_words(1000)[0]) == 60
    with pytest.raises(ValueError, match="one name for each of the 60 features"):
        lda.top_words(3, names[:5])
    with pytest.raises(ValueError, match=r"\[1, inf\)"):
        lda.top_words(0)


def test_transform_from_many_threads(fit, X):
    from concurrent.futures import ThreadPoolExecutor

    lda = fit(X)
    expected = fit(X).transform(X)
    with ThreadPoolExecutor(4) as pool:
        for theta in pool.map(lambda _: lda.transform(X), range(40)):
            assert_array_equal(theta, expected)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_documents_of_words_never_seen(dtype):
    lda = TemperedLDA(3, topic_word_prior=1e-3, temperature=1, dtype=dtype).fit(np.ones((4, 5)))
    lda.components_ = np.full((3, 5), 1e-3)
    theta = lda.transform(np.ones((2, 5)))
    assert_allclose(theta, 1 / 3, rtol=1e-5)
    assert np.isfinite(lda.score(np.ones((2, 5))))


@pytest.mark.parametrize("temperature", [1, "annealed"])
def test_scores_and_transforms_at_the_same_time(fit, X, temperature):
    from concurrent.futures import ThreadPoolExecutor

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
        with pytest.raises(ValueError, match="read-only"):
            setattr(lda, name, getattr(lda, name).__imul__(2.0))
        mine = np.array(getattr(lda, name)) + 0.5
        setattr(lda, name, mine)
        before = mine.copy()
        mine[:] = 7.0
        assert_allclose(getattr(lda, name), before, rtol=1e-6)  # in the dtype of the fit
    twin, view = copy.copy(lda), lda.components_
    lda.components_ = view * 3
    assert_array_equal(twin.components_, view)
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


def test_components_given_to_an_estimator_make_it_whole(X):
    lda = TemperedLDA(4, temperature=Annealed(passes=1), total_samples=160, batch_size=16)
    lda.components_ = np.ones((4, 60))
    assert (lda.n_features_in_, lda.n_iter_, lda.n_batch_iter_) == (60, 0, 1)
    assert lda.partial_fit(X).temperature_path_[0] == pytest.approx(3.9)


def test_memory_mapped_components_can_be_assigned(fit, X, tmp_path):
    joblib.dump(fit(X), tmp_path / "model.joblib")
    mapped = joblib.load(tmp_path / "model.joblib", mmap_mode="r")
    mapped.components_ = np.ones((4, 60))
    assert_allclose(mapped.transform(X), 0.25)


def test_priors_assigned_in_float32(fit, X):
    lda, other = fit(X), fit(X)
    lda.doc_topic_prior_, other.doc_topic_prior_ = np.float32(0.5), 0.5
    assert_array_equal(lda.transform(X), other.transform(X))  # and no warning


def test_a_fit_without_a_generator(counts):
    X = counts
    lda = TemperedLDA(3, document_init="random", random_state=0).fit(X)
    lda.random_state_ = None  # NumPy's own
    assert isinstance(lda.random_state_, np.random.RandomState)
    lda.set_params(total_samples=-1)
    with pytest.raises(ValueError, match="'total_samples' parameter of TemperedLDA"):
        lda.perplexity(X, sub_sampling=True)


def test_log_partition_where_all_powers_are_zero(fit, X):
    assert np.all(np.isfinite(fit(X).posterior_log_partition([1e154], X)))
