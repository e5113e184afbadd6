"""TemperedLDA as a user meets it: temperature, starts, priors, input formats, partial_fit."""

import pickle

import joblib
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.special import psi
from sklearn.base import clone
from sklearn.decomposition import LatentDirichletAllocation
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from annealvi import Annealed, Fixed, TemperedLDA
from annealvi.datasets import make_topic_corpus
from tests.lda.fits import METHODS, mean_field


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("max_iter", [1, 2, 7])
def test_the_fit_ends_at_T_1(fit, X, method, max_iter):
    lda = fit(X, learning_method=method, max_iter=max_iter)
    n_steps = max_iter * (5 if method == "online" else 1)
    assert lda.temperature_path_.shape == (n_steps,)
    assert lda.temperature_path_[-1] == lda.temperature_ == 1.0
    if n_steps == 1:
        assert lda.temperature_path_[0] == 1
    elif fit is mean_field:
        assert lda.temperature_path_[0] == pytest.approx(3.9)
    else:
        assert lda.temperature_path_[0] > 1.1


def test_a_fixed_temperature_stays(fit, X):
    lda = fit(X, temperature=2.5)
    assert_array_equal(lda.temperature_path_, np.full(lda.n_batch_iter_ - 1, 2.5))
    assert lda.temperature_ == 2.5
    assert_array_equal(lda.components_, fit(X, temperature=Fixed(2.5)).components_)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("document_init", ["random", "warm", "constant"])
def test_bit_identical_for_any_n_jobs_and_from_run_to_run(
    fit, X, method, dtype, document_init, instruction_set
):
    results = []
    for n_jobs in (1, 1, 3, -1):
        lda = fit(
            X, dtype=dtype, learning_method=method, document_init=document_init, n_jobs=n_jobs
        )
        results.append((lda.components_.copy(), lda.transform(X), lda.score(X), lda.bound_))
    for other in results[1:]:
        for one, two in zip(results[0], other, strict=True):
            assert_array_equal(one, two)


def test_n_jobs_may_come_from_a_joblib_context(fit, X):
    with joblib.parallel_backend("threading", n_jobs=2):
        lda = fit(X)
    assert_array_equal(lda.components_, fit(X).components_)


def test_document_init_auto(X):
    def same(method, **kwargs):
        return mean_field(X, learning_method=method, **kwargs).components_

    for method in METHODS:
        assert_array_equal(same(method), same(method, document_init="constant"))
        for one in (1, 1.0, Fixed()):
            auto = same(method, temperature=one)
            assert_array_equal(auto, same(method, temperature=one, document_init="random"))
        auto = same(method, temperature=1, init="documents")
        assert not np.array_equal(
            auto, same(method, temperature=1, init="documents", document_init="random")
        )


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("form", ["likelihood", "posterior"])
def test_annealing_recovers_planted_documents(fit, method, form):
    corpus = make_topic_corpus(200, 60, 4, document_length=60, random_state=1)
    lda = fit(
        corpus.data,
        learning_method=method,
        temperature=Annealed(form=form),
        max_iter=20,
        n_components=4,
    )
    found = lda.transform(corpus.data)
    # each planted topic correlates with one that was found
    correlation = np.corrcoef(found.T, corpus.document_topics.T)[:4, 4:]
    assert np.all(correlation.max(axis=0) > 0.8)


def test_starting_topics(X):
    topics = np.random.RandomState(0).gamma(100, 0.01, (4, 60))
    assert_array_equal(mean_field(X, init=topics).components_, mean_field(X).components_)
    again = mean_field(X, init="documents")
    assert not np.array_equal(again.components_, mean_field(X).components_)
    assert_array_equal(again.components_, mean_field(X, init="documents").components_)


def test_priors(fit, X):
    alpha = [0.1, 0.2, 3.0, 0.4]
    rng = np.random.RandomState(0)
    for eta in (2.5, rng.rand(60) + 0.1, rng.rand(4, 60) + 0.1):
        lda = fit(X, doc_topic_prior=alpha, topic_word_prior=eta, learning_method="batch")
        assert_array_equal(lda.doc_topic_prior_, alpha)
        assert_array_equal(lda.topic_word_prior_, eta)
        empty = lda.transform(np.zeros((1, 60)))
        assert_allclose(empty[0], np.array(alpha) / sum(alpha))
    # equal numbers in any shape are the same prior
    batch = dict(learning_method="batch")
    one = fit(X, doc_topic_prior=0.3, topic_word_prior=0.2, **batch)
    for eta in (np.full(60, 0.2), np.full((4, 60), 0.2)):
        other = fit(X, doc_topic_prior=np.full(4, 0.3), topic_word_prior=eta, **batch)
        assert_array_equal(one.components_, other.components_)
        assert one.bound_ == pytest.approx(other.bound_, rel=1e-13)


def test_seeded_topics(fit, X):
    """A word with a large prior in one topic ends in that topic."""
    eta = np.full((4, 60), 0.01)
    word = int(np.asarray(X.sum(axis=0)).argmax())
    eta[2, word] = 500
    lda = fit(X, topic_word_prior=eta, max_iter=20)
    assert lda.components_[:, word].argmax() == 2


@pytest.mark.parametrize("method", METHODS)
def test_input_formats(fit, X, method):
    expected = fit(X, learning_method=method)
    shuffled = X.copy()
    for start, stop in zip(X.indptr[:-1], X.indptr[1:], strict=True):
        shuffled.indices[start:stop] = X.indices[start:stop][::-1]
        shuffled.data[start:stop] = X.data[start:stop][::-1]
    shuffled.has_sorted_indices = True  # a lie that must not matter
    halves = sparse.csr_matrix(
        (
            np.repeat(X.data / 2, 2),
            np.repeat(X.indices, 2),
            X.indptr * 2,
        ),
        shape=X.shape,
    )
    wide = X.copy()
    wide.indices, wide.indptr = X.indices.astype(np.int64), X.indptr.astype(np.int64)
    zeros = sparse.csr_matrix(
        (
            np.append(X.data, 0.0),
            np.append(X.indices, 59 if X[79, 59] == 0 else 0),
            np.append(X.indptr[:-1], X.nnz + 1),
        ),
        shape=X.shape,
    )
    formats = {
        "dense": X.toarray(),
        "Fortran": np.asfortranarray(X.toarray()),
        "integer": X.toarray().astype(int),
        "lists": X.toarray().tolist(),
        "csc": X.tocsc(),
        "coo": X.tocoo(),
        "csr_array": sparse.csr_array(X),
        "integer csr": X.astype(np.int32),
        "int64 indices": wide,
        "unsorted": shuffled,
        "duplicates": halves,
        "explicit zero": zeros,
        "strided": np.repeat(X.toarray(), 2, axis=1)[:, ::2],
    }
    for name, Z in formats.items():
        before = Z.copy() if sparse.issparse(Z) else np.array(Z, copy=True)
        lda = fit(Z, learning_method=method)
        assert_array_equal(lda.components_, expected.components_, err_msg=name)
        assert_array_equal(lda.transform(Z), expected.transform(X), err_msg=name)
        if sparse.issparse(Z):
            assert_array_equal(Z.data, before.data, err_msg=name)


@pytest.mark.parametrize("counts", [1e-3, 0.37, 1e8, 1e15])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_counts_of_any_size(fit, X, counts, dtype):
    Z = (X * counts).astype(dtype)
    settings = dict(evaluate_every=5, perp_tol=1e30, max_iter=20, temperature="annealed")
    lda = fit(Z, dtype=dtype, **settings)
    assert np.all(np.isfinite(lda.components_))
    assert np.isfinite(lda.bound_)
    assert_allclose(lda.transform(Z).sum(axis=1), 1, rtol=1e-5)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    "Z",
    [
        np.array([[0, 2, 1.0]]),
        np.array([[3.0]]),
        np.array([[0.0], [2], [5]]),
        np.array([[0, 0, 0, 1.0], [0, 0, 0, 0]]),
    ],
    ids=["one document", "one word", "V = 1", "a single count"],
)
@pytest.mark.parametrize("n_components", [1, 3])
def test_corners(Z, method, n_components):
    lda = TemperedLDA(n_components, learning_method=method, random_state=0).fit(Z)
    theta = lda.transform(Z)
    assert_allclose(theta.sum(axis=1), 1)
    assert_allclose(theta[Z.sum(axis=1) == 0], 1 / n_components)
    assert np.isfinite(lda.score(Z))
    # 1/K a word and topic, and the counts
    if method == "batch":
        used = Z.sum() / lda.temperature_  # a batch step counts words by 1/T
        assert lda.components_.sum() == pytest.approx(Z.shape[1] + used)


@pytest.mark.parametrize("preset", ["sklearn", "annealvi"])
def test_words_of_no_document_for_long(preset):
    lda = TemperedLDA(max_iter=750, preset=preset).fit(np.eye(6, 5, 4))
    rtol = max(1e-12, np.finfo(lda.dtype_).eps)
    assert_allclose(lda.components_[:, :4].sum(axis=0), np.ones(4), rtol=rtol)
    assert np.isfinite(lda.bound_)


def test_no_iterations(fit, X):
    assert fit(X, max_iter=0).n_iter_ == 0
    assert fit(X, max_iter=0).temperature_ == 1
    theta = fit(X, max_doc_update_iter=0).transform(X)
    assert_allclose(theta, 0.25)


def test_partial_fit_goes_on_where_fit_ended(fit, X):
    lda = fit(X, temperature=Annealed(passes=2), max_iter=4, learning_method="online")
    lda.partial_fit(X)
    assert_array_equal(lda.temperature_path_[-5:], 1)
    assert lda.n_batch_iter_ == 26


def test_partial_fit_anneals_by_passes(X):
    settings = dict(n_components=4, batch_size=16, total_samples=160, random_state=0)
    lda = TemperedLDA(**settings, temperature=Annealed(passes=1, shape="linear"))
    for _ in range(3):
        lda.partial_fit(X)
    assert_allclose(lda.temperature_path_, [*np.linspace(3.9, 1, 11)[:10], *[1.0] * 5])
    lda = TemperedLDA(**settings).partial_fit(X)
    assert_array_equal(lda.temperature_path_, 1)


def test_partial_fit_after_pickling(X):
    def start():
        lda = TemperedLDA(
            4, batch_size=16, total_samples=160, random_state=0, temperature=Annealed(passes=1)
        )
        return lda.partial_fit(X[:40])

    straight = start().partial_fit(X[40:])
    pickled = pickle.loads(pickle.dumps(start())).partial_fit(X[40:])
    assert_array_equal(straight.components_, pickled.components_)
    assert_array_equal(straight.temperature_path_, pickled.temperature_path_)


def test_float32(fit, X):
    lda = fit(X.astype(np.float32), max_iter=5)
    assert lda.components_.dtype == np.float32
    assert lda.transform(X.astype(np.float32)).dtype == np.float32
    assert_allclose(lda.components_, fit(X, max_iter=5, dtype="float64").components_, rtol=2e-3)


def test_fitting_changes_no_parameter(X):
    temperature = Annealed(start=3)
    lda = TemperedLDA(4, temperature=temperature, random_state=0)
    before = repr(lda), dict(vars(temperature))
    lda.fit(X)
    assert lda.temperature is temperature
    assert (repr(lda), dict(vars(temperature))) == before


def test_grid_search_reaches_the_temperature(X):
    search = GridSearchCV(
        TemperedLDA(3, max_iter=3, temperature=Annealed(), random_state=0),
        {"temperature__start": [2, 4], "temperature__shape": ["linear", "relax"]},
        cv=2,
    ).fit(X)
    assert set(search.best_params_) == {"temperature__start", "temperature__shape"}


def test_pipeline_pandas_and_clone(X):
    import pandas as pd

    frame = pd.DataFrame(X.toarray(), columns=[f"word{i}" for i in range(60)])
    lda = TemperedLDA(4, random_state=0).set_output(transform="pandas")
    theta = lda.fit(frame).transform(frame)
    assert list(theta.columns) == [f"temperedlda{i}" for i in range(4)]
    assert lda.feature_names_in_[3] == "word3"
    assert lda.top_words(1)[0][0].startswith("word")
    pipeline = make_pipeline(FunctionTransformer(), clone(lda))
    assert pipeline.fit_transform(X.toarray()).shape == (80, 4)


def written_out_elbo(lda, X):
    """The T = 1 ELBO of a fit's lambda at gamma as transform gives it, by SciPy."""
    from scipy.special import gammaln, logsumexp

    def negative_kl(q, p):
        e_log = psi(q) - psi(q.sum(axis=1, keepdims=True))
        inner = ((p - q) * e_log + gammaln(q) - gammaln(p)).sum(axis=1)
        return np.sum(inner + gammaln(np.full(q.shape, p).sum(axis=1)) - gammaln(q.sum(axis=1)))

    lam, gamma = lda.components_, lda.transform(X, normalize=False)
    e_log_beta = psi(lam) - psi(lam.sum(axis=1, keepdims=True))
    e_log_theta = psi(gamma) - psi(gamma.sum(axis=1, keepdims=True))
    total = negative_kl(gamma, lda.doc_topic_prior_) + negative_kl(lam, lda.topic_word_prior_)
    for d, counts in enumerate(np.asarray(X)):
        total += np.sum(counts * logsumexp(e_log_theta[d][:, None] + e_log_beta, axis=0))
    return total


@pytest.mark.parametrize("temperature", [1, "annealed"])
@pytest.mark.parametrize(
    ("shape", "n_components", "priors"),
    [
        ((30, 1), 100, None),
        ((60, 20), 300, None),
        ((40, 5), 8, 1e-3),
        ((40, 60), 20, 1e-4),
        ((40, 10), 3, 3e-3),
    ],
)
def test_topics_without_words_stay_without(shape, n_components, priors, temperature):
    """A dead topic of small eta has E log beta far below the others', whatever its psi."""
    Z = np.random.RandomState(0).poisson(2.0, shape).astype(float)
    lda = TemperedLDA(
        n_components,
        doc_topic_prior=priors,
        topic_word_prior=priors,
        temperature=temperature,
        max_iter=20,
        preset="sklearn",
        random_state=0,
    ).fit(Z)
    assert lda.score(Z) == pytest.approx(written_out_elbo(lda, Z), rel=1e-6)
    assert lda.bound_ >= 1
    if temperature == 1:  # with scikit-learn's eps, which loses words where K is large
        theirs = LatentDirichletAllocation(
            n_components,
            doc_topic_prior=priors,
            topic_word_prior=priors,
            max_iter=20,
            random_state=0,
        ).fit(Z)
        assert_allclose(lda.components_, theirs.components_, rtol=1e-3, atol=1e-5)
    else:
        mass = Z.sum() + n_components * shape[1] * lda.topic_word_prior_
        assert lda.components_.sum() == pytest.approx(mass, rel=1e-9)


def test_a_new_temperature_in_partial_fit(X):
    lda = TemperedLDA(4, temperature=1, random_state=0, batch_size=80).partial_fit(X)
    lda.set_params(temperature=5.0).partial_fit(X)
    assert_array_equal(lda.temperature_path_, [1, 5])


def test_a_subclass_whose_constructor_has_few_parameters(X):
    class Topics(TemperedLDA):
        def __init__(self, n_components=3, extra=None, random_state=0):
            super().__init__(n_components, max_iter=2, random_state=random_state)
            self.extra = extra

    plain = TemperedLDA(3, max_iter=2, random_state=0)
    assert_array_equal(Topics().fit(X).components_, plain.fit(X).components_)
    first = TemperedLDA(3, max_iter=2, random_state=0).partial_fit(X)
    assert_array_equal(Topics().partial_fit(X).components_, first.components_)
    given = Topics()
    given.components_ = plain.components_
    assert given.score(X) == plain.score(X)
