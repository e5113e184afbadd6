"""A temperature learned from the data: fits, streams, answers, hot documents."""

import math
import pickle
import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal, assert_equal
from scipy import sparse
from scipy.special import entr, softmax
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from annealvi import Annealed, TemperedLDA, Variational
from annealvi.datasets import make_topic_corpus
from annealvi.metrics import document_completion
from annealvi.model import Tempering
from annealvi.models.lda_prior import LDAPrior
from annealvi.partition import LogPartition
from bench.parameters import mean_field
from tests.asserts import refused
from tests.lda.fits import METHODS, without_words
from tests.lda.learned import LEARNED, STREAM, everything
from tests.lda.resumed import quietly
from tests.marks import slow_values
from tests.models.lda.pair import of

pytestmark = pytest.mark.filterwarnings("ignore:The learned temperature did not cool")


@pytest.fixture(scope="module")
def X(X):
    """The corpus with two documents that have no words."""
    return without_words(X, [7, 30])


@pytest.mark.thinned
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
    plain = make(temperature=1, learning_method=method).fit(X)
    assert lda.bound_ < 1.2 * plain.bound_


@pytest.mark.thinned
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("kind", ["array", "LogPartition"])
def test_log_c_given(make, X, kind, method):
    """The same numbers as when the fit works them out itself."""
    prior = LDAPrior(4, 60, [X.sum()], doc_topic_prior=0.25, topic_word_prior=0.25)
    grid = np.geomspace(1, 10, 100)
    values = X.sum() * prior.log_mean_word(1 / grid)
    made_for = {"n_documents": 80, "n_components": 4, "n_words": X.sum(), "doc_topic_prior": 0.25}
    given = values if kind == "array" else LogPartition(grid, values, made_for=made_for)
    fits = [
        make(temperature=Variational(partition=p), learning_method=method, max_iter=6).fit(X)
        for p in ("prior", given)
    ]
    rtol = 1e-6 if method == "batch" else 0.1  # batches are not of equally many words
    assert_allclose(fits[0].temperature_path_, fits[1].temperature_path_, rtol=rtol)
    # and can be evaluated
    lda = make(temperature=Variational(partition=given), max_iter=4, evaluate_every=2, perp_tol=0)
    quietly(lda.fit, X)
    assert np.isfinite(lda.history_["tempered_elbo"][1])
    if kind == "LogPartition":
        for name, value in (("doc_topic_prior", 0.1), ("n_components", 5)):
            other = clone(lda).set_params(**{name: value})
            refused(f"different hyperparameters.*'{name}'", other.fit, X)
        refused(r"'n_documents' is 80, expected 40", clone(lda).fit, X[:40])


@pytest.mark.thinned
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


@pytest.mark.filterwarnings("ignore:The training perplexity had not converged")
@pytest.mark.parametrize("method", METHODS)
def test_history(make, X, method):
    lda = make(temperature="variational", learning_method=method, evaluate_every=2, perp_tol=0)
    history = lda.fit(X).history_
    assert_array_equal(np.isfinite(history["elbo"]), [False, True] * 6)
    # Eq. 5 is of a temperature that is learned: not of the last quarter
    assert_array_equal(np.isfinite(history["tempered_elbo"]), [False, True] * 4 + [False] * 4)
    assert_allclose(history["annealed_elbo"][-1], history["elbo"][-1])
    for temperature in ("local", "annealed", 1):
        other = make(temperature=temperature, evaluate_every=2, perp_tol=0).fit(X)
        assert "tempered_elbo" not in other.history_
        annealed = np.isfinite(other.history_["annealed_elbo"][1::2])
        # of documents that have temperatures of their own it is not defined
        assert_array_equal(annealed, [False] * 4 + [True] * 2 if temperature == "local" else True)


@pytest.mark.slow
def test_no_stop_while_it_learns(make, X):
    lda = make(temperature="variational", evaluate_every=1, perp_tol=1e9, max_iter=40).fit(X)
    assert len(lda.temperature_path_) == 32  # 30 that learn, 2 evaluations at T = 1
    assert lda.temperature_ == 1


def test_the_tempered_elbo_is_eq_5(make, X):
    """Written out from what is public: energies, log C, q(y), and the ELBO at T = 1."""
    seen = []

    def callback(estimator, monitor):
        if monitor.step == 4:
            seen.append((monitor.temperature, estimator.components_.copy()))

    evaluated = dict(evaluate_every=4, perp_tol=0, max_iter=8, mean_change_tol=0)
    lda = make(temperature="variational", callback=callback, **evaluated)
    quietly(lda.fit, X)
    ((T, topics),) = seen
    again = make()
    again.components_ = topics
    model = of(again)
    model.options = lda._state.model.options
    csr = sparse.csr_matrix(X)
    gamma = model.infer(csr, Tempering(1 / T))
    energy = model.energies(csr, gamma, Tempering(1 / T)).sum()
    b = 1 / np.geomspace(1, 10, 100)
    log_c = model.engine.posterior_log_partition(model, b, csr, gamma)
    r = lda.temperature_posterior_path_[3].astype(float)
    rest = model.elbo(csr, gamma, Tempering(1 / T)) - energy / T
    expected = r @ (b * energy - log_c + log_c[0])
    expected -= np.sum(r[r > 0] * np.log(100 * r[r > 0]))
    assert lda.history_["tempered_elbo"][3] == pytest.approx(rest + expected, rel=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("temperature", LEARNED)
def test_partial_fit_keeps_the_state_of_the_temperature(make, X, temperature):
    one, parts, pickled = (make(temperature=LEARNED[temperature], **STREAM) for _ in range(3))
    one.partial_fit(X)
    for start, end in ((0, 16), (16, 48), (48, 80)):
        parts.partial_fit(X[start:end])
        pickled = pickle.loads(pickle.dumps(pickled.partial_fit(X[start:end])))
    assert_equal(everything(one, X), everything(parts, X))
    assert_equal(everything(one, X), everything(pickled, X))
    path = one.temperature_path_
    assert path.shape == (5,)
    assert len(set(path)) > 2 or temperature == "over the prior"  # which stays hot
    # a stream never settles: T goes on being learned
    for _ in range(6):
        parts.partial_fit(X)
    assert parts.temperature_path_.shape == (35,)
    if temperature in ("variational", "local"):
        assert 1 <= parts.temperature_ < 1.1


def test_another_temperature_is_planned_anew(make, X):
    lda = make(temperature="variational", **STREAM).partial_fit(X)
    T = lda.temperature_
    lda.set_params(temperature=Variational()).partial_fit(X)  # the same
    assert lda.temperature_path_[5] < T
    lda.set_params(temperature=Variational(t_max=5.0)).partial_fit(X)
    assert lda.temperature_path_[10] == pytest.approx(np.mean(np.geomspace(1, 5, 100)))
    lda.set_params(temperature="local").partial_fit(X)
    assert lda.temperature_path_[15] == pytest.approx(3.9, rel=0.1)
    assert not hasattr(lda, "temperature_posterior_")
    lda.set_params(temperature=1).partial_fit(X)
    assert_array_equal(lda.temperature_path_[20:], 1)
    refused("'learned'", lda.transform, X, temperature="learned")
    lda.set_params(temperature="variational").partial_fit(X)
    assert lda.temperature_path_[25] == pytest.approx(np.mean(np.geomspace(1, 10, 100)))


@pytest.mark.filterwarnings("default:The learned temperature did not cool")
def test_the_prior_of_sparse_topics_does_not_cool(make, X):
    eta = 1 / 500
    priors = dict(doc_topic_prior=eta, topic_word_prior=eta)
    lda = make(temperature=Variational(partition="prior"), **priors)
    with pytest.warns(ConvergenceWarning, match=r"did not cool to 1.* Use partition='posterior'"):
        lda.fit(X)
    assert lda.temperature_ == 1  # the last phase is at T = 1 nevertheless
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        lda.set_params(temperature="variational", max_iter=40).fit(X)


def tempered_elbo(model, planned, X, gamma):
    """VT Eq. 5 at a given gamma, with the best phi: log C does not depend on q."""
    r, b = planned.posterior_, 1 / planned.temperatures_
    log_c = planned._current_log_c()
    bound = model.elbo(X, gamma, Tempering(float(r @ b)))
    return bound - r @ (log_c - log_c[0]) + entr(r).sum() - math.log(len(r))


def ascent_problem(seed):
    rng = np.random.RandomState(seed)
    n_topics, V = rng.randint(2, 8), rng.randint(20, 80)
    length = int(rng.choice([3, 15, 60]))
    X = make_topic_corpus(60, V, n_topics, document_length=length, random_state=seed).data
    grid = np.geomspace(1, 10, rng.choice([2, 5, 50, 200]))
    kind = rng.randint(3)
    # log C of something that T comes to rest with inside of the grid
    known = X.sum() * rng.choice([0.7, 1.0, 1.5, 2, 3]) * np.log(grid)
    partition = ["prior", known, LogPartition(grid, known)][kind]
    undamped = dict(damping=1.0, monotone=False, final_fraction=0, start=1 / np.mean(1 / grid))
    own = dict(temperature=Variational(grid=grid, partition=partition, **undamped), max_iter=30)
    own |= {name: rng.choice([0.02, 0.1, 1]) for name in ("doc_topic_prior", "topic_word_prior")}
    own |= dict(mean_change_tol=0, max_doc_update_iter=1000, learning_method="batch")
    lda = TemperedLDA(n_topics, random_state=seed, **mean_field(n_topics) | own)
    return X, lda.set_params(dtype="float64")


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:The training perplexity had not converged")
@pytest.mark.parametrize("seed", [*range(5), *slow_values(*range(5, 20))])
def test_undamped_steps_ascend_the_tempered_elbo(seed):
    """Where log C does not depend on q, no step lowers Eq. 5, that of q(y) included.

    Written out at the gamma of the step, and in the history, at that of an evaluation.
    """
    X, lda = ascent_problem(seed)
    bounds = []

    def callback(estimator, monitor):
        bounds.append(tempered_elbo(of(estimator), estimator._state.temperature, X, None))

    lda.set_params(callback=callback, evaluate_every=1, perp_tol=0).fit(X)
    for values in (bounds, lda.history_["tempered_elbo"]):
        assert np.all(np.isfinite(values))
        assert np.min(np.diff(values) / np.abs(values[1:])) >= -1e-9
    assert bounds[-1] > bounds[0]
    assert len(np.unique(lda.temperature_path_)) > 1
    assert lda.temperature_posterior_path_.shape == (30, len(lda.temperature_posterior_))


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
            with pytest.raises(AttributeError, match=r"'temperature_posterior_' of .* exists only"):
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


@pytest.mark.parametrize("T", [1, 1.0, 2.5, 40.0, np.float32(3)])
def test_prediction_at_a_temperature(make, X, T):
    for temperature in (1, "annealed", "variational", "local"):
        lda = make(temperature=temperature, max_iter=4).fit(X)
        expected = of(lda).infer(X, Tempering(1 / float(T)))
        assert_array_equal(lda.transform(X, normalize=False, temperature=T), expected)
        assert_allclose(lda.transform(X, temperature=T).sum(axis=1), 1)
        assert lda.score(X, temperature=T) == pytest.approx(of(lda).elbo(X, expected))
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
    assert_array_equal(gamma, of(lda).infer(X, lda._state.temperature.learned()))
    # the ELBO stays that of T = 1
    assert lda.score(X, temperature="learned") == pytest.approx(of(lda).elbo(X, gamma))
    assert lda.score(X, temperature="learned") < lda.score(X)


@pytest.mark.parametrize("temperature", [1, 2.5, "annealed", Annealed(passes=1)])
def test_nothing_was_learned(make, X, temperature):
    lda = make(temperature=temperature, max_iter=2).fit(X)
    message = "'learned' requires a fit with temperature='variational' or 'local'. Got"
    for predict in (lda.transform, lda.score):
        refused(message, predict, X, temperature="learned")
    refused(message, document_completion, lda, X, temperature="learned")
    with pytest.raises(ValueError, match=message):
        make(temperature=temperature).partial_fit(X).transform(X, temperature="learned")


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("temperature", [1, 3.0, "annealed", "variational", "local"])
def test_document_temperatures(make, X, temperature, dtype):
    """Against the definition: uniform prior, b = m / 100, c(b) of a word of the corpus."""
    lda = make(temperature=temperature).fit(X.astype(dtype))
    found = lda.document_temperatures(X)
    assert found.shape == (80,) and found.dtype == np.float64
    assert_array_equal(np.isnan(found), np.isin(np.arange(80), [7, 30]))
    assert np.nanmin(found) >= 1
    model, b = of(lda), np.arange(1, 101) / 100
    data = X.astype(dtype)
    gamma = model.infer(data)
    corpus = model.engine.posterior_log_partition(model, b, data, gamma) / X.sum()
    words = np.asarray(X.sum(axis=1)).ravel()
    energies = model.energies(data, gamma)
    r = softmax(energies[:, None] * b - words[:, None] * corpus, axis=1)
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
    refused("X has 59 features", partial.document_temperatures, X[:, :59])
    with pytest.raises(ValueError, match=r"Negative values .*TemperedLDA\.document_temp"):
        partial.document_temperatures(-X.toarray())
