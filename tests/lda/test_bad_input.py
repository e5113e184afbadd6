"""Every bad input gets an error that says why, or a finite answer."""

import math

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal
from scipy import sparse
from sklearn.exceptions import NotFittedError

from annealvi import Annealed, Fixed, TemperedLDA
from annealvi.datasets import make_topic_corpus
from tests.asserts import refusals, refused
from tests.marks import cases

X = make_topic_corpus(30, 20, 3, document_length=20, random_state=0).data
SPOILT = X.toarray()


def spoil(value):
    Z = SPOILT.copy()
    Z[3, 4] = value
    return Z


test_parameters = refusals(
    lambda parameters: TemperedLDA(**dict(n_components=3) | parameters).fit(X),
    (dict(doc_topic_prior=[0.1, 0.2]), r"'doc_topic_prior' .* shape \(3,\). Got .*shape \(2,\)"),
    (dict(doc_topic_prior=[0.1, 0.2, math.nan]), "'doc_topic_prior' .* finite. Got nan"),
    (dict(doc_topic_prior=np.ones(3, dtype=complex)), "'doc_topic_prior' .* array of floats"),
    (dict(topic_word_prior=np.ones(19)), r"'topic_word_prior' .* \(20,\) or \(3, 20\). Got .*19"),
    (dict(topic_word_prior=np.zeros((3, 20))), "'topic_word_prior' .* positive .* Got 0"),
    (dict(n_jobs=0), "n_jobs == 0 in Parallel has no meaning"),
    (dict(temperature=Annealed(passes=11), max_iter=10), "'passes' .* at most the 10 passes"),
    (dict(temperature=Annealed(passes={})), r"'passes' .* in the range \(0.0, inf\). Got {}"),
    (dict(init=np.ones((3, 19))), r"'init' .* \(3, 20\).* Got shape \(3, 19\)"),
    (dict(init=np.full((3, 20), math.inf)), "'init' .* positive and finite. Got inf"),
    (dict(init="documents", n_components=31), "n_components=31 must be at most n_samples=30"),
)


@pytest.mark.thinned
@pytest.mark.parametrize("method", ["fit", "partial_fit", "transform", "score", "perplexity"])
@cases(
    ("Z", "message"),
    (spoil(-1), r"Negative values in data passed to TemperedLDA\.METHOD"),
    (sparse.csr_matrix(spoil(-1)), r"Negative values in data passed to TemperedLDA\.METHOD"),
    (spoil(np.nan), "contains NaN"),
    (spoil(np.inf), "contains infinity"),
    (sparse.csr_matrix(spoil(np.nan)), "contains NaN"),
    (SPOILT.astype(complex), "Complex data not supported"),
    (np.full((3, 20), "word", dtype=object), "could not convert string to float"),
    (SPOILT[0], "Expected 2D array, got 1D array"),
    (np.zeros((0, 20)), r"Found array with 0 sample\(s\)"),
    (np.zeros((3, 0)), r"0 feature\(s\)|has 0 features"),
)
def test_data(method, Z, message):
    lda = TemperedLDA(3).fit(X) if method != "fit" else TemperedLDA(3)
    refused(message.replace("METHOD", method), getattr(lda, method), Z)


@pytest.mark.thinned
@pytest.mark.parametrize("method", ["fit", "partial_fit", "transform", "score", "perplexity"])
@pytest.mark.parametrize("kind", [list, tuple, np.array, pd.Series])
def test_texts_belong_to_a_topic_model(method, kind):
    lda = TemperedLDA(3).fit(X)
    message = (
        rf"The 'X' parameter of TemperedLDA\.{method} must be a matrix of word counts\. Got texts"
    )
    refused(message, getattr(lda, method), kind(["bread and butter", "stars"]), error=TypeError)


def damaged(**arrays):
    Z = X.copy()
    for name, (place, value) in arrays.items():
        getattr(Z, name)[place] = value
    return Z


def shortened():
    Z = X.copy()
    Z.indptr = Z.indptr[:10].copy()
    return Z


@pytest.mark.thinned
@pytest.mark.parametrize("method", ["fit", "transform"])
@cases(
    "Z",
    *(damaged(indices=(5, 20)), damaged(indices=(5, 10**6)), damaged(indices=(5, -1))),
    *(damaged(indptr=(-1, 10**6)), damaged(indptr=(3, 10**5)), damaged(indptr=(0, -2))),
    shortened(),
)
def test_a_broken_csr_matrix_is_not_read(method, Z):
    lda = TemperedLDA(3) if method == "fit" else TemperedLDA(3).fit(X)
    refused("The sparse matrix X is damaged: ", getattr(lda, method), Z)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["transform", "score", "perplexity", "partial_fit"])
@pytest.mark.parametrize("width", [19, 21])
def test_another_number_of_features(method, width):
    lda = TemperedLDA(3).fit(X)
    message = f"X has {width} features, but TemperedLDA is expecting 20 features as input"
    refused(message, getattr(lda, method), np.ones((2, width)))
    assert lda.n_features_in_ == 20
    given = TemperedLDA(3)
    given.components_ = np.ones((3, 20))
    refused(message, getattr(given, method), np.ones((2, width)))


@pytest.mark.parametrize("method", ["transform", "score", "perplexity"])
def test_not_fitted(method):
    message = "This TemperedLDA instance is not fitted yet. Call 'fit' with appropriate arguments"
    refused(message, getattr(TemperedLDA(), method), X, error=NotFittedError)
    refused(message, TemperedLDA().top_words, error=NotFittedError)


def test_perplexity_at_a_given_gamma():
    lda = TemperedLDA(3, dtype="float64", random_state=0).fit(X)
    gamma = lda.transform(X, normalize=False)
    expected = pytest.approx(lda.perplexity(X), rel=1e-12)
    assert lda._perplexity_precomp_distr(X, gamma) == expected
    message = "Number of samples in X and doc_topic_distr do not match."
    refused(message, lda._perplexity_precomp_distr, X, gamma[:-1])
    refused("Number of topics does not match.", lda._perplexity_precomp_distr, X, gamma[:, :-1])


@pytest.mark.parametrize("method", ["fit", "partial_fit"])
def test_steps_of_the_posterior_form_must_stay_below_1(method):
    hot = dict(learning_method="online", learning_decay=0.7, n_components=3, batch_size=5)
    message = r"Got 0.1866 \* 6 = 1.12 at step 1\. .* learning_offset than 10"
    for temperature in (Fixed(6.0, form="posterior"), Annealed(6, passes=3, form="posterior")):
        refused(message, getattr(TemperedLDA(**hot, temperature=temperature), method), X)
    # the likelihood form has no such limit, nor has batch inference, nor a larger offset
    getattr(TemperedLDA(**hot, temperature=Fixed(6.0)), method)(X)
    posterior = Fixed(6.0, form="posterior")
    TemperedLDA(3, temperature=posterior).fit(X)
    lda = TemperedLDA(**hot, learning_offset=50, temperature=posterior)
    getattr(lda, method)(X)
    assert np.all(lda.components_ > 0)


@pytest.mark.slow
@cases(
    ("method", "parameters"),
    ("fit", dict(temperature=Fixed(9.0, form="posterior"), learning_method="online")),
    ("fit", dict(n_jobs=0)),
    ("fit", dict(init=np.ones((3, 2)))),
    ("fit", dict(doc_topic_prior=[1, 2])),
    ("partial_fit", dict(temperature=Fixed(9.0, form="posterior"))),
    ("partial_fit", dict(n_jobs=0)),
)
def test_an_error_leaves_the_estimator_as_it_was(method, parameters):
    with pytest.raises(ValueError):
        getattr(new := TemperedLDA(3, **parameters), method)(X)
    with pytest.raises(NotFittedError):
        new.transform(X)
    lda = TemperedLDA(3, max_iter=10, random_state=0).fit(X)
    before = lda.transform(X)
    lda.set_params(**parameters)
    with pytest.raises(ValueError):
        getattr(lda, method)(np.ones((40, 25)) if method == "fit" else X)
    assert lda.n_features_in_ == 20
    np.testing.assert_array_equal(lda.set_params(n_jobs=None).transform(X), before)


@pytest.mark.parametrize("name", ["doc_topic_prior", "topic_word_prior"])
def test_a_prior_must_not_underflow_in_the_dtype_of_the_fit(name):
    with pytest.raises(ValueError, match=rf"{name}.* float32.* Got .*1e-40"):
        TemperedLDA(3, dtype="float32", **{name: 1e-40}).fit(X)
    for dtype in (np.float32, np.float64):
        assert TemperedLDA(3, **{name: 1e-40}).fit(X.astype(dtype)).dtype_ == np.float64
    refused(r"init.* float32", TemperedLDA(3, dtype="float32", init=np.full((3, 20), 1e-50)).fit, X)


@cases(
    ("name", "value", "message"),
    ("random_state_", "a", "'a' cannot be used to seed"),
    ("components_", [[1.0], [1.0, 2.0]], "must be an array of numbers"),
    ("exp_dirichlet_component_", "a", "Assign only"),
    ("exp_dirichlet_component_", [[1.0], [1.0, 2.0]], "Assign only"),
)
def test_assignments(name, value, message):
    lda = TemperedLDA(3, random_state=0).fit(X)
    before = lda.transform(X)
    refused(message, setattr, lda, name, value)
    np.testing.assert_array_equal(lda.transform(X), before)
    lda.random_state_, lda.n_batch_iter_ = 3, 5
    assert isinstance(lda.random_state_, np.random.RandomState) and lda.n_batch_iter_ == 5


@cases(
    "parameters",
    *(dict(estimate=np.ones(3)), dict(batch_size=0), dict(max_doc_update_iter="a")),
    dict(batch_size=9.0),  # which equals the one before
)
def test_parameters_are_checked_in_each_portion(parameters):
    lda = TemperedLDA(3, batch_size=9, random_state=0).partial_fit(X)
    before = lda.components_.copy()
    with pytest.raises(ValueError, match=f"{next(iter(parameters))!r} parameter of TemperedLDA"):
        lda.set_params(**parameters).partial_fit(X)
    np.testing.assert_array_equal(lda.components_, before)
    with pytest.raises(TypeError, match=r"'n_jobs' parameter .* must be an int or None. Got 0.5"):
        lda.set_params(n_jobs=0.5).transform(X)


EMPTY = np.zeros((5, 20))
LARGEST = {np.float32: 3e38, np.float64: 1.7e308}


def answers(lda, Z=X):
    """Everything that an estimator answers, one after another."""
    found = [lda.components_, lda.exp_dirichlet_component_, lda.transform(Z), lda.score(Z)]
    found += [lda.perplexity(Z), lda.temperature_path_, lda.doc_topic_prior_, lda.topic_word_prior_]
    return np.concatenate([np.ravel(answer) for answer in [*found, getattr(lda, "bound_", 0.0)]])


def full(value, dtype=np.float64):
    """Documents with one entry of this value, and one of 1."""
    Z = np.zeros((4, 20), dtype)
    Z[0, 3], Z[1, 2] = value, 1
    return Z


@pytest.mark.parametrize("temperature", ["auto", "variational"])
@pytest.mark.parametrize("preset", ["annealvi", "sklearn"])
@pytest.mark.parametrize(
    ("value", "dtype"),
    [(1e35, np.float32), (3e38, np.float32), (1e305, np.float64), (1.7e308, np.float64)],
)
def test_counts_whose_sums_overflow(value, dtype, preset, temperature):
    lda = TemperedLDA(3, preset=preset, temperature=temperature, random_state=0, max_iter=3)
    Z = np.repeat(full(value, dtype), 2, axis=0)
    for method in ("fit", "partial_fit"):
        refused(r"counts in X must sum to at most .* Got", getattr(lda, method), Z)
        assert not hasattr(lda, "components_") and not hasattr(lda, "n_features_in_")
    before = answers(lda.partial_fit(X.astype(dtype)))
    for method in ("partial_fit", "fit", "transform", "score", "perplexity"):
        refused("counts in X must sum to at most", getattr(lda, method), Z)
        assert_array_equal(answers(lda), before)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_counts_up_to_the_limit_give_finite_answers(dtype):
    most = 0.9 * LARGEST[dtype] / 4e8
    for value, method in ((1e-30, "fit"), (most, "fit"), (1e20, "partial_fit")):
        Z = full(value, dtype)
        for temperature in (1, "auto", "variational", "local"):
            lda = TemperedLDA(3, temperature=temperature, random_state=0, max_iter=3)
            found = answers(getattr(lda, method)(Z), Z)
            assert np.all(np.isfinite(found)), (value, method, temperature)


@pytest.mark.parametrize("total_samples", [1e-308, 1e305])
def test_populations_out_of_range(total_samples):
    lda = TemperedLDA(3, total_samples=total_samples, random_state=0)
    refused("total_samples", lda.partial_fit, X)
    assert not hasattr(lda, "components_")
    part = TemperedLDA(3, total_samples=0.1, learning_method="online", random_state=0)
    assert np.all(np.isfinite(part.partial_fit(X).components_))
    lda = TemperedLDA(3, random_state=0).fit(X).set_params(total_samples=1e305)
    refused("total_samples", lda.perplexity, X, sub_sampling=True)


@pytest.mark.filterwarnings("ignore:None of the . documents has a counted word")
def test_a_corpus_without_words():
    for preset in ("annealvi", "sklearn"):
        lda = TemperedLDA(3, preset=preset, random_state=0).fit(EMPTY)
        assert lda.bound_ == 1 and np.all(np.isfinite(lda.components_))
    lda = TemperedLDA(3, random_state=0)
    for method in ("batch", "online"):  # a portion of a stream may have none
        lda.set_params(learning_method=method).partial_fit(EMPTY)
        assert np.all(np.isfinite(lda.components_)) and np.isfinite(lda.score(EMPTY))
        np.testing.assert_allclose(lda.transform(EMPTY), 1 / 3)
        refused(r"perplexity must contain words. Got 5 documents", lda.perplexity, EMPTY)


def test_a_perplexity_beyond_the_largest_float_warns():
    lda = TemperedLDA(3, random_state=0, estimate="variational").fit(X)
    lda.set_params(preset="sklearn")  # which spreads the topics' KL over few words
    with pytest.warns(RuntimeWarning, match="perplexity of X.* exceeds the largest float"):
        assert lda.perplexity(full(1e-3)[:1]) == math.inf


def test_an_error_in_the_first_step_of_a_portion_changes_nothing(monkeypatch):
    lda = TemperedLDA(3, batch_size=10, random_state=0)

    def broken(*arguments, **options):
        raise ValueError("broken")

    for method in ("fit", "partial_fit"):
        with monkeypatch.context() as context:
            context.setattr("annealvi.models.lda.CPUEngine.e_step", broken)
            refused("broken", getattr(lda, method), X)
        assert not hasattr(lda, "components_") and not hasattr(lda, "n_features_in_")
    before = answers(lda.fit(X))
    with monkeypatch.context() as context:
        context.setattr("annealvi.models.lda.CPUEngine.e_step", broken)
        refused("broken", lda.partial_fit, X)
    assert_array_equal(answers(lda), before)
    assert lda.n_batch_iter_ == TemperedLDA(3, batch_size=10, random_state=0).fit(X).n_batch_iter_
