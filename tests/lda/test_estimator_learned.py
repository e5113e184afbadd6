"""TemperedLDA with a temperature learned from the data, as a user meets it."""

import pickle
import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV

from annealvi import LocalVariational, TemperedLDA, Variational
from annealvi.datasets import load_arxiv_abstracts
from annealvi.models.lda_prior import LDAPrior
from annealvi.partition import LogPartition, exponential_grid, log_partition
from tests.lda.fits import METHODS, assert_identical, without_words
from tests.lda.learned import LEARNED, everything

pytestmark = pytest.mark.filterwarnings("ignore:The learned temperature did not cool")


@pytest.fixture(scope="module")
def X(X):
    """The corpus with two documents that have no words."""
    return without_words(X, [7, 30])


# ------------------------------------------------------------------ fits


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("temperature", LEARNED)
def test_it_cools_and_ends_at_T_1(make, X, temperature, method):
    lda = make(temperature=LEARNED[temperature], learning_method=method, max_iter=20).fit(X)
    path = lda.temperature_path_
    n_learning = 15 if method == "batch" else 75
    assert path.shape == (n_learning * 4 // 3,)
    assert np.all(path[n_learning:] == 1) and lda.temperature_ == 1
    assert path[0] > 1.5 and path[0] > path[n_learning - 1] > 1
    if temperature in ("variational", "over the prior"):
        assert np.all(np.diff(path) <= 0)
        assert_allclose(path[0], np.mean(lda._state.temperature.temperatures_))
    assert np.all(np.isfinite(lda.components_))
    last_of_pass = path if method == "batch" else path[4::5]
    assert_array_equal(lda.history_["temperature"], last_of_pass)
    # the last pass over the documents is plain inference
    plain = make(temperature=1, document_init="constant", learning_method=method).fit(X)
    assert lda.bound_ < 1.2 * plain.bound_


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("max_iter", [1, 2])
@pytest.mark.parametrize("temperature", ["variational", "local"])
def test_short_fits_end_at_T_1(make, X, temperature, max_iter, method):
    lda = make(temperature=temperature, learning_method=method, max_iter=max_iter).fit(X)
    assert lda.temperature_path_[-1] == 1
    assert lda.transform(X).shape == (80, 4)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("temperature", ["variational", "local"])
def test_dense_input_is_sparse_input(make, X, temperature, method):
    one = make(temperature=temperature, learning_method=method).fit(X)
    other = make(temperature=temperature, learning_method=method).fit(X.toarray())
    assert_identical(everything(one, X), everything(other, X.toarray()))


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("temperature", ["variational", "local", "corpus"])
def test_float32_follows_float64(make, X, temperature, method):
    fits = [
        make(temperature=LEARNED[temperature], learning_method=method).fit(X.astype(dtype))
        for dtype in (np.float32, np.float64)
    ]
    assert [lda.components_.dtype for lda in fits] == [np.float32, np.float64]
    assert_allclose(fits[0].temperature_path_, fits[1].temperature_path_, rtol=2e-3)
    assert_allclose(fits[0].components_, fits[1].components_, rtol=0.02, atol=0.02)
    assert_allclose(fits[0].document_temperatures(X), fits[1].document_temperatures(X), rtol=0.01)
    assert fits[0].bound_ == pytest.approx(fits[1].bound_, rel=1e-3)
    assert fits[0].document_temperatures(X).dtype == np.float64


@pytest.mark.parametrize("n_components", [1, 3, 8, 9, 17])
def test_float32_at_any_width(make, X, n_components):
    """Rows are padded otherwise in float32 than in float64."""
    paths = [
        make(n_components=n_components, temperature="variational", max_iter=8)
        .fit(X.astype(dtype))
        .temperature_path_
        for dtype in (np.float32, np.float64)
    ]
    assert_allclose(*paths, rtol=1e-3)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("temperature", ["variational", "local"])
def test_bit_identical_for_any_n_jobs_and_from_run_to_run(make, X, temperature, dtype, method):
    results = []
    for n_jobs in (1, 1, 2, 3):
        lda = make(temperature=temperature, learning_method=method, max_iter=2, n_jobs=n_jobs)
        results.append(everything(lda.fit(X.astype(dtype)), X))
    for other in results[1:]:
        assert_identical(results[0], other)


def test_fits_do_not_touch_the_temperature(make, X):
    temperature = Variational(prior=np.ones(100))
    before = pickle.dumps(temperature)
    lda = make(temperature=temperature)
    first = everything(lda.fit(X), X)
    assert pickle.dumps(temperature) == before
    assert lda.temperature is temperature
    assert_identical(first, everything(lda.fit(X), X))  # nor does a fit reach into the next
    assert_identical(first, everything(clone(lda).fit(X), X))


@pytest.mark.parametrize("temperature", LEARNED)
def test_clones_pickles_and_parameters(make, X, temperature):
    lda = make(temperature=LEARNED[temperature]).fit(X)
    copy = pickle.loads(pickle.dumps(lda))
    assert_identical(everything(lda, X), everything(copy, X))
    cloned = clone(lda)
    assert cloned.get_params()["temperature"] == LEARNED[temperature]
    assert not hasattr(cloned, "temperature_")


def test_parameters_of_the_temperature(make, X):
    lda = make(temperature=Variational()).set_params(temperature__t_max=2.0, temperature__grid=7)
    assert lda.temperature == Variational(t_max=2.0, grid=7)
    assert lda.fit(X).temperature_posterior_.shape == (7,)
    lda = make(temperature=LocalVariational()).set_params(temperature__start=1.5)
    assert lda.fit(X).temperature_path_[0] == pytest.approx(1.5, rel=0.1)


def test_grid_search_reaches_the_temperature(make, X):
    search = GridSearchCV(
        make(temperature=Variational(), max_iter=4),
        {"temperature__t_max": [1.5, 10.0]},
        cv=2,
    ).fit(X)
    assert search.best_estimator_.temperature.t_max == search.best_params_["temperature__t_max"]
    first, second = search.cv_results_["mean_test_score"]
    assert first != second and np.all(np.isfinite([first, second]))
    search = GridSearchCV(
        make(max_iter=4), {"temperature": [1, "variational", "local", Variational(t_max=2)]}, cv=2
    ).fit(X)
    assert len(set(search.cv_results_["mean_test_score"])) == 4


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("kind", ["array", "LogPartition"])
def test_log_c_given(make, X, kind, method):
    """The same numbers as when the fit works them out itself."""
    prior = LDAPrior(4, 60, [X.sum()], doc_topic_prior=0.25, topic_word_prior=0.25)
    grid = np.geomspace(1, 10, 100)
    values = X.sum() * prior.log_mean_word(1 / grid)
    made_for = {"n_documents": 80, "n_components": 4, "n_words": X.sum(), "doc_topic_prior": 0.25}
    given = values if kind == "array" else LogPartition(1 / grid, values, made_for=made_for)
    fits = [
        make(temperature=Variational(partition=p), learning_method=method, max_iter=6).fit(X)
        for p in ("prior", given)
    ]
    rtol = 1e-6 if method == "batch" else 0.1  # batches are not of equally many words
    assert_allclose(fits[0].temperature_path_, fits[1].temperature_path_, rtol=rtol)
    # and can be evaluated
    lda = make(temperature=Variational(partition=given), max_iter=4, evaluate_every=2, perp_tol=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        lda.fit(X)
    assert np.isfinite(lda.history_["tempered_elbo"][1])
    if kind == "LogPartition":
        for other, name in (
            (dict(doc_topic_prior=0.1), "doc_topic_prior"),
            (dict(n_components=5), "n_components"),
        ):
            with pytest.raises(ValueError, match=f"other hyperparameters.*'{name}'"):
                clone(lda).set_params(**other).fit(X)
        with pytest.raises(ValueError, match=r"'n_documents' is 80, expected 40"):
            clone(lda).fit(X[:40])


@pytest.mark.filterwarnings("ignore:One draw dominates")
@pytest.mark.parametrize("form", ["explicit", "collapsed"])
def test_equation_18_as_printed(form):
    """Without topics log C(T) is too small beside energies that contain them: T stays highest."""
    X = load_arxiv_abstracts().data[:150]
    prior = LDAPrior.from_counts(X, 5, form=form)
    grid = exponential_grid(10, 100)
    log_c = log_partition(prior, grid, "monte-carlo", n_samples=2, n_theta=5, random_state=0)
    temperature = Variational.as_printed(log_c)
    lda = TemperedLDA(5, temperature=temperature, preset="sklearn", max_iter=6, random_state=0)
    path = lda.fit(X).temperature_path_
    assert path[0] == pytest.approx(1 / np.mean(grid))
    if form == "collapsed":
        assert_allclose(path[1:], 10.0)
    else:
        assert np.all((path[1:] > 2) & (path[1:] < 9))


# ------------------------------------------------------------------ extremes


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("temperature", ["variational", "local", "over the prior", "corpus"])
@pytest.mark.parametrize("estimate", ["map", "variational"])
def test_sparse_priors_of_a_large_vocabulary(estimate, temperature, dtype):
    Z = sparse.random(60, 8000, 0.005, "csr", random_state=0, dtype=np.float64)
    Z.data = np.ceil(Z.data * 5)
    lda = TemperedLDA(
        20,
        doc_topic_prior=1 / 500,
        topic_word_prior=1 / 500,
        learning_method="online",
        batch_size=30,
        max_iter=4,
        temperature=LEARNED[temperature],
        topic_estimate=estimate,
        preset="sklearn",
        random_state=0,
    ).fit(Z.astype(dtype))
    assert np.all(np.isfinite(lda.components_)) and np.all(lda.components_ > 0)
    assert np.all(np.isfinite(lda.temperature_path_))
    assert np.isfinite(lda.bound_)
    for T in (1, 10.0, "learned"):
        assert_allclose(lda.transform(Z, temperature=T).sum(axis=1), 1, rtol=1e-5)
        assert np.isfinite(lda.score(Z, temperature=T))
    assert np.all(np.isfinite(lda.document_temperatures(Z)))
    if hasattr(lda, "temperature_posterior_"):
        assert lda.temperature_posterior_.sum() == pytest.approx(1)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("temperature", LEARNED)
def test_documents_without_any_words(make, temperature, method):
    Z = np.zeros((30, 10))
    Z[4, 9] = 1  # a corpus has a word
    lda = make(temperature=LEARNED[temperature], learning_method=method, max_iter=20).fit(Z)
    assert np.all(np.isfinite(lda.components_))
    assert lda.temperature_ == 1 and np.all(np.isfinite(lda.temperature_path_))
    if method == "batch":
        assert_allclose(lda.components_[:, :9], 0.25)
    empty = np.zeros((30, 10))
    assert np.all(np.isnan(lda.document_temperatures(empty)))
    assert_allclose(lda.transform(empty, temperature="learned"), 0.25)


@pytest.mark.parametrize("temperature", ["variational", "local"])
def test_a_minibatch_without_words(make, X, temperature):
    Z = sparse.vstack([sparse.csr_matrix((16, 60)), X, sparse.csr_matrix((16, 60))], "csr")
    lda = make(temperature=temperature, learning_method="online").fit(Z)
    assert np.all(np.isfinite(lda.components_)) and np.all(np.isfinite(lda.temperature_path_))
    assert lda.temperature_ == 1


@pytest.mark.parametrize("temperature", ["variational", "local"])
@pytest.mark.parametrize("settings", [dict(n_components=1), dict(max_doc_update_iter=0)])
def test_small_things(make, X, temperature, settings):
    lda = make(temperature=temperature, **settings).fit(X)
    assert np.all(np.isfinite(lda.components_))
    assert np.all(np.isfinite(lda.transform(X, temperature="learned")))


def test_no_passes_at_all(make, X):
    lda = make(temperature="variational", max_iter=0).fit(X)
    assert lda.temperature_path_.shape == (0,)
    assert lda.temperature_posterior_path_.shape == (0, 100)
    local = make(temperature="local", max_iter=0).fit(X)
    assert local.document_temperatures_.shape == (80,)


@pytest.mark.parametrize("temperature", ["variational", "local"])
def test_counts_that_are_not_integers(make, X, temperature):
    one = make(temperature=temperature).fit(X * 0.37)
    assert np.all(np.isfinite(one.components_))
    assert 1 < one.temperature_path_[0] < 5


@pytest.mark.parametrize("prior", ["vector", "seeded"])
def test_asymmetric_priors(make, X, prior):
    alpha = np.array([0.1, 0.2, 0.3, 2.0])
    eta = np.random.RandomState(0).rand(*((60,) if prior == "vector" else (4, 60))) + 0.05
    for temperature in LEARNED.values():
        lda = make(doc_topic_prior=alpha, topic_word_prior=eta, temperature=temperature).fit(X)
        assert np.all(np.isfinite(lda.components_)) and lda.temperature_ == 1
