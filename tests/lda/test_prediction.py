"""`transform` by collapsed inference: what it uses, what it leaves alone, and its errors."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from annealvi import TemperedLDA


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


def test_the_default_is_the_mean_field(fit, X):
    lda = fit(X)
    assert_array_equal(lda.transform(X, method="variational"), lda.transform(X))


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


def test_single_precision(fit, X):
    lda = fit(X)
    single = TemperedLDA(4)
    single.components_ = lda.components_.astype(np.float32)
    single.doc_topic_prior_ = lda.doc_topic_prior_
    theta = collapsed(single, X.astype(np.float32))
    assert theta.dtype == np.float32
    assert_allclose(theta, collapsed(lda, X), atol=1e-4)


def test_limits_of_the_local_step_do_not_matter(fit, X):
    """`max_doc_update_iter` of the fit stops the mean field early, and not this."""
    lda, short = fit(X), TemperedLDA(4, max_doc_update_iter=1, doc_topic_prior=0.25)
    short.components_ = lda.components_.astype(lda.settings_["dtype"])
    assert np.any(short.transform(X) != lda.transform(X))
    assert_array_equal(collapsed(short, X), collapsed(lda, X))


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


@pytest.mark.parametrize("estimate", ["map", "variational"])
def test_topics_are_their_means_whatever_the_estimate(fit, X, estimate):
    lda = fit(X, dtype="float64")
    other = TemperedLDA(4, topic_estimate=estimate, doc_topic_prior=0.25)
    other.components_ = lda.components_
    assert_array_equal(collapsed(other, X), collapsed(lda, X))
    other.components_ = 1e6 * lda.components_
    assert_allclose(collapsed(other, X), collapsed(lda, X), rtol=1e-9)


def test_a_stream_whose_topics_wait_for_their_steps(X):
    lda = TemperedLDA(4, random_state=0, batch_size=8, total_samples=80)
    for start in range(0, 80, 8):
        lda.partial_fit(X[start : start + 8])
    theta = collapsed(lda, X)
    other = TemperedLDA(4)
    other.components_ = lda.components_.astype(lda.settings_["dtype"])
    assert_allclose(theta, collapsed(other, X), rtol=1e-5)


@pytest.mark.parametrize("method", ["gibbs", "CVB0", None, 1, ["cvb0"]])
def test_unknown_methods(fit, X, method):
    message = r"'method' parameter of TemperedLDA.transform must be a str among"
    with pytest.raises(ValueError, match=message):
        fit(X).transform(X, method=method)


@pytest.mark.parametrize("temperature", [2, 1.5, "learned", None, np.ones(2)])
def test_temperatures_that_collapsed_inference_does_not_have(fit, X, temperature):
    with pytest.raises(ValueError, match=r"must be 1.0 with method='cvb0'"):
        fit(X).transform(X, method="cvb0", temperature=temperature)


def test_counts_that_are_wrong(fit, X):
    lda = fit(X)
    for wrong in (-X, X[:, :59], X.toarray() * np.nan):
        with pytest.raises(ValueError, match=r"Negative|59 features|NaN"):
            collapsed(lda, wrong)
