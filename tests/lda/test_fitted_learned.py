"""What TemperedLDA answers at a learned temperature, and how hot documents are."""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import softmax
from sklearn.exceptions import NotFittedError

from annealvi import Annealed, Variational
from annealvi.metrics import document_completion, split_tokens
from annealvi.model import Tempering
from tests.lda.fits import METHODS, without_words
from tests.lda.learned import LEARNED, STREAM

pytestmark = pytest.mark.filterwarnings("ignore:The learned temperature did not cool")


@pytest.fixture(scope="module")
def X(X):
    """The corpus with two documents that have no words."""
    return without_words(X, [7, 30])


# ------------------------------------------------------------------ attributes


def test_attributes_that_come_with_the_temperature(make, X):
    names = ("temperature_posterior_", "temperature_posterior_path_", "document_temperatures_")
    for temperature in ("variational", "local", 1, "annealed"):
        lda = make(temperature=temperature)
        assert not any(hasattr(lda, name) for name in (*names, "temperature_", "history_"))
        lda.fit(X)
        there = [hasattr(lda, name) for name in names]
        variational, local = temperature == "variational", temperature == "local"
        assert there == [variational, variational, local]
        if not variational:
            with pytest.raises(AttributeError, match=r"'temperature_posterior_' of .* is only"):
                _ = lda.temperature_posterior_
    lda = make(temperature="variational").fit(X)
    assert_allclose(lda.temperature_posterior_.sum(), 1)
    assert lda.temperature_posterior_path_.shape == (9, 100)
    assert_allclose(lda.temperature_posterior_path_.sum(axis=1), 1, rtol=1e-5)
    lda.set_params(temperature="local").fit(X)
    assert not hasattr(lda, names[0]) and hasattr(lda, names[2])
    lda.set_params(temperature=1).fit(X)
    assert not any(hasattr(lda, name) for name in names)
    lda.set_params(temperature="local").fit(X).partial_fit(X)
    assert not hasattr(lda, names[2])  # they were of other topics


# ------------------------------------------------------------------ prediction


@pytest.mark.parametrize("T", [1, 1.0, 2.5, 40.0, np.float32(3)])
def test_prediction_at_a_temperature(make, X, T):
    for temperature in (1, "annealed", "variational", "local"):
        lda = make(temperature=temperature, max_iter=4).fit(X)
        expected = lda._state.model.documents.infer(X, Tempering(1 / float(T)))
        assert_array_equal(lda.transform(X, normalize=False, temperature=T), expected)
        assert_allclose(lda.transform(X, temperature=T).sum(axis=1), 1)
        assert lda.score(X, temperature=T) == pytest.approx(lda._state.model.elbo(X, expected))
    if T == 1:
        assert_array_equal(lda.transform(X), lda.transform(X, temperature=T))
        assert lda.score(X) == lda.score(X, temperature=T)


@pytest.mark.parametrize("method", METHODS)
def test_prediction_at_the_learned_temperature(make, X, method):
    lda = make(temperature="variational", learning_method=method).fit(X)
    T = 1 / lda._state.temperature.learned().inverse
    path = lda.temperature_path_
    assert 1 < T < path[path > 1][-1] * 1.001  # at the end of the learning
    at_T = lda.transform(X, temperature=float(T))
    assert_allclose(lda.transform(X, temperature="learned"), at_T, rtol=1e-9)
    assert not np.array_equal(lda.transform(X), at_T)
    assert lda.score(X, temperature="learned") == pytest.approx(lda.score(X, temperature=float(T)))


def test_prediction_with_a_temperature_for_each_document(make, X):
    lda = make(temperature="local").fit(X)
    gamma = lda.transform(X, normalize=False, temperature="learned")
    words = np.asarray(X.sum(axis=1)).ravel()
    b = (gamma.sum(axis=1) - 1) / np.maximum(1, words)
    there = np.arange(80)[~np.isin(np.arange(80), [7, 30])]
    assert 0.02 < b[there].min() < b[there].max() <= 1
    assert len(np.unique(b[there])) == 78
    assert_allclose(gamma[[7, 30]], 0.25)
    assert_array_equal(gamma, lda._state.model.documents.infer(X, lda._state.temperature.learned()))
    # the ELBO stays that of T = 1
    assert lda.score(X, temperature="learned") == pytest.approx(lda._state.model.elbo(X, gamma))
    assert lda.score(X, temperature="learned") < lda.score(X)


@pytest.mark.parametrize("temperature", LEARNED)
def test_rows_are_independent(make, X, temperature):
    """As at T = 1, whatever other documents there are."""
    lda = make(temperature=LEARNED[temperature]).fit(X)
    together = lda.transform(X, temperature="learned")
    scores = lda.document_temperatures(X)
    order = np.random.RandomState(0).permutation(80)
    assert_allclose(lda.transform(X[order], temperature="learned"), together[order], rtol=1e-9)
    for i in (0, 7, 31, 79):
        assert_allclose(lda.transform(X[i], temperature="learned")[0], together[i], rtol=1e-9)
        assert_allclose(lda.document_temperatures(X[i])[0], scores[i], rtol=1e-9)


@pytest.mark.parametrize("temperature", ["variational", "local"])
def test_document_completion_at_a_temperature(make, X, temperature):
    lda = make(temperature=temperature).fit(X)
    observed, hidden = split_tokens(X, random_state=0)
    beta = lda.components_ / lda.components_.sum(axis=1, keepdims=True)
    for T in (1.0, 3.0, "learned"):
        theta = lda.transform(observed, temperature=T)
        expected = np.sum(hidden.toarray() * np.log(theta @ beta)) / hidden.sum()
        assert document_completion(lda, X, temperature=T) == pytest.approx(expected)
    assert document_completion(lda, X) == document_completion(lda, X, temperature=1)
    values = {document_completion(lda, X, temperature=T) for T in (1.0, 3.0, "learned")}
    assert len(values) == 3
    rows = document_completion(lda, X, temperature="learned", per_document=True)
    assert rows.shape == (80,) and np.isnan(rows[7])


BAD = [0.5, 0, -1, math.nan, math.inf, "hot", "variational", None, True, [2.0], 1j, Variational()]


@pytest.mark.parametrize("method", ["transform", "score"])
@pytest.mark.parametrize("value", BAD, ids=repr)
def test_not_a_temperature_to_predict_at(make, X, value, method):
    lda = make(temperature="variational", max_iter=2).fit(X)
    message = rf"'temperature' parameter of TemperedLDA.{method} must be a float in the range \[1"
    with pytest.raises(ValueError, match=message) as error:
        getattr(lda, method)(X, temperature=value)
    assert f"'learned'. Got {value!r} instead" in str(error.value)
    if value is not None:
        with pytest.raises(ValueError, match="must be a float in the range"):
            document_completion(lda, X, temperature=value)


@pytest.mark.parametrize("temperature", [1, 2.5, "annealed", Annealed(passes=1)])
def test_nothing_was_learned(make, X, temperature):
    lda = make(temperature=temperature, max_iter=2).fit(X)
    message = "'learned' needs a fit whose temperature was learned, 'variational' or 'local'. Got"
    for predict in (lda.transform, lda.score):
        with pytest.raises(ValueError, match=message):
            predict(X, temperature="learned")
    with pytest.raises(ValueError, match=message):
        document_completion(lda, X, temperature="learned")
    with pytest.raises(ValueError, match=message):
        make(temperature=temperature).partial_fit(X).transform(X, temperature="learned")


def test_not_fitted(make, X):
    for method in ("transform", "score"):
        with pytest.raises(NotFittedError):
            getattr(make(temperature="local"), method)(X, temperature="learned")
    with pytest.raises(NotFittedError):
        make(temperature="local").document_temperatures(X)


# ------------------------------------------------------------------ documents' temperatures


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("temperature", [1, 3.0, "annealed", "variational", "local"])
def test_document_temperatures(make, X, temperature, dtype):
    """Against the definition: uniform prior, b = m / 100, c(b) of a word of the corpus."""
    lda = make(temperature=temperature).fit(X.astype(dtype))
    found = lda.document_temperatures(X)
    assert found.shape == (80,) and found.dtype == np.float64
    assert_array_equal(np.isnan(found), np.isin(np.arange(80), [7, 30]))
    assert np.nanmin(found) >= 1
    model, b = lda._state.model, np.arange(1, 101) / 100
    data = X.astype(dtype)
    gamma = model.documents.infer(data)
    corpus = model.documents.log_partition(data, gamma, b).sum(axis=0) / X.sum()
    words = np.asarray(X.sum(axis=1)).ravel()
    r = softmax(
        model.documents.energies(data, gamma)[:, None] * b - words[:, None] * corpus, axis=1
    )
    rtol = 1e-10 if dtype is np.float64 else 1e-4
    assert_allclose(found[words > 0], 1 / (r @ b)[words > 0], rtol=rtol)
    if temperature == "local":
        assert_array_equal(lda.document_temperatures_, found)


def test_the_corpus_is_that_of_the_fit(make, X):
    """A document is as odd as the training documents make it, whatever it comes with."""
    lda = make(temperature="variational").fit(X)
    found = lda.document_temperatures(X)
    assert_array_equal(lda.document_temperatures(X[:20]), found[:20])
    assert_array_equal(lda.document_temperatures(X[::-1]), found[::-1])
    lda.partial_fit(X)  # now there is no corpus but X
    assert not np.array_equal(lda.document_temperatures(X[:20]), lda.document_temperatures(X)[:20])


def test_document_temperatures_of_any_estimator(make, X):
    partial = make(temperature="local", **STREAM).partial_fit(X)
    given = make()
    given.components_ = partial.components_
    assert_allclose(given.document_temperatures(X), partial.document_temperatures(X), rtol=1e-9)
    edited = make().fit(X)
    edited.components_ = partial.components_.copy()
    assert_allclose(edited.document_temperatures(X), partial.document_temperatures(X), rtol=1e-9)
    callback_sees = []

    def callback(estimator, monitor):
        callback_sees.append(estimator.document_temperatures(X))

    make(temperature="variational", callback=callback, max_iter=2).fit(X)
    assert np.all(np.isfinite(callback_sees[0][:7]))
    with pytest.raises(ValueError, match="X has 59 features"):
        partial.document_temperatures(X[:, :59])
    with pytest.raises(ValueError, match=r"Negative values .*TemperedLDA\.document_temp"):
        partial.document_temperatures(-X.toarray())


def test_documents_of_words_that_do_not_belong_together_are_hot(make, X):
    lda = make(temperature="local", max_iter=30).fit(X)
    rng = np.random.RandomState(0)
    probability = np.asarray(X.sum(axis=0)).ravel() / X.sum()
    odd = lda.document_temperatures(rng.multinomial(40, probability, size=40))
    assert np.mean(odd) > np.nanmean(lda.document_temperatures(X)) + 0.02
