"""Fits at a learned temperature: what they record, streams, warnings, interrupts."""

import pickle
import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from annealvi import LocalVariational, Variational
from annealvi.model import Tempering
from annealvi.models.lda_prior import LDAPrior
from annealvi.partition import LogPartition
from tests.lda.fits import METHODS, assert_identical, without_words
from tests.lda.learned import LEARNED, STREAM, everything

pytestmark = pytest.mark.filterwarnings("ignore:The learned temperature did not cool")


@pytest.fixture(scope="module")
def X(X):
    """The corpus with two documents that have no words."""
    return without_words(X, [7, 30])


# ------------------------------------------------------------------ what is recorded


@pytest.mark.filterwarnings("ignore:The training perplexity had not converged")
@pytest.mark.parametrize("method", METHODS)
def test_history(make, X, method):
    lda = make(temperature="variational", learning_method=method, evaluate_every=2, perp_tol=0).fit(
        X
    )
    history = lda.history_
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

    lda = make(
        temperature="variational",
        evaluate_every=4,
        perp_tol=0,
        max_iter=8,
        callback=callback,
        mean_change_tol=0,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        lda.fit(X)
    ((T, topics),) = seen
    again = make()
    again.components_ = topics
    model = again._state.model
    model.documents.options = lda._state.model.documents.options
    csr = sparse.csr_matrix(X)
    gamma = model.documents.infer(csr, Tempering(1 / T))
    energy = model.documents.energies(csr, gamma, Tempering(1 / T)).sum()
    b = 1 / np.geomspace(1, 10, 100)
    log_c = model.documents.log_partition(csr, gamma, b).sum(axis=0)
    r = lda.temperature_posterior_path_[3].astype(float)
    rest = model.elbo(csr, gamma, Tempering(1 / T)) - energy / T
    expected = r @ (b * energy - log_c + log_c[0])
    expected -= np.sum(r[r > 0] * np.log(100 * r[r > 0]))
    assert lda.history_["tempered_elbo"][3] == pytest.approx(rest + expected, rel=1e-5)


# ------------------------------------------------------------------ partial_fit


@pytest.mark.parametrize("temperature", LEARNED)
def test_partial_fit_keeps_the_state_of_the_temperature(make, X, temperature):
    one, parts, pickled = (make(temperature=LEARNED[temperature], **STREAM) for _ in range(3))
    one.partial_fit(X)
    for start, end in ((0, 16), (16, 48), (48, 80)):
        parts.partial_fit(X[start:end])
        pickled = pickle.loads(pickle.dumps(pickled.partial_fit(X[start:end])))
    assert_identical(everything(one, X), everything(parts, X))
    assert_identical(everything(one, X), everything(pickled, X))
    path = one.temperature_path_
    assert path.shape == (5,)
    assert len(set(path)) > 2 or temperature == "over the prior"  # which stays hot
    # a stream never settles: T goes on being learned
    for _ in range(6):
        parts.partial_fit(X)
    assert parts.temperature_path_.shape == (35,)
    if temperature in ("variational", "local"):
        assert 1 <= parts.temperature_ < 1.1


def test_looking_between_calls_changes_nothing(make, X):
    one, other = (make(temperature="variational", **STREAM) for _ in range(2))
    for start in range(0, 80, 16):
        one.partial_fit(X[start : start + 16])
        other.partial_fit(X[start : start + 16])
        for temperature in (1, 2.5, "learned"):
            other.transform(X, temperature=temperature)
        other.document_temperatures(X)
        _ = other.components_.sum(), other.temperature_posterior_, other.history_
    assert_identical(everything(one, X), everything(other, X))


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
    with pytest.raises(ValueError, match="'learned'"):
        lda.transform(X, temperature="learned")
    lda.set_params(temperature="variational").partial_fit(X)
    assert lda.temperature_path_[25] == pytest.approx(np.mean(np.geomspace(1, 10, 100)))


def test_a_fit_after_a_stream_starts_over(make, X):
    fitted = make(temperature="variational").fit(X)
    lda = make(temperature="variational", total_samples=80).partial_fit(X).fit(X)
    assert_identical(everything(fitted, X), everything(lda, X))


@pytest.mark.parametrize("temperature", ["variational", "local"])
def test_assigned_topics_in_a_stream(make, X, temperature):
    """The next call goes on from them."""
    topics = np.random.RandomState(3).gamma(0.3, 1.0, (4, 60)) * 40 + 0.01
    settings = dict(temperature=temperature, batch_size=16, total_samples=800)
    lda = make(**settings).partial_fit(X)
    level = lda._state.temperature.inverse(5)
    lda.components_ = topics
    lda.partial_fit(X)
    assert level < lda._state.temperature.inverse(10) < 0.95  # still cooling, not from the start


def test_a_stream_from_given_topics(make, X):
    lda = make(temperature="variational", **STREAM)
    lda.components_ = np.random.RandomState(0).rand(4, 60) + 0.1
    lda.partial_fit(X)
    assert lda.temperature_path_[0] == pytest.approx(np.mean(np.geomspace(1, 10, 100)))
    assert lda.temperature_path_.shape == (5,)


# ------------------------------------------------------------------ warnings and interrupts


@pytest.mark.filterwarnings("default:The learned temperature did not cool")
def test_the_prior_of_sparse_topics_does_not_cool(make, X):
    eta = 1 / 500
    lda = make(
        doc_topic_prior=eta,
        topic_word_prior=eta,
        temperature=Variational(partition="prior"),
    )
    with pytest.warns(ConvergenceWarning, match="did not cool to 1") as record:
        lda.fit(X)
    (message,) = [str(w.message) for w in record if "cool" in str(w.message)]
    energy = float(message.split("the energy is ")[1].split(" nats a word")[0])
    threshold = float(message.split("preferred up to ")[1].split(" with log C(T)")[0])
    grid = np.geomspace(1, 10, 100)
    prior = LDAPrior(4, 60, [1], doc_topic_prior=eta, topic_word_prior=eta)
    per_word = prior.log_mean_word(1 / grid)[1:] / (1 - 1 / grid[1:])
    assert threshold == pytest.approx(per_word.min(), rel=1e-3)
    assert energy > threshold
    assert "partition='prior'" in message and "Use partition='posterior'" in message
    assert lda.temperature_ == 1  # the last phase is at T = 1 nevertheless
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        lda.set_params(temperature="variational", max_iter=40).fit(X)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("temperature", ["variational", "local"])
@pytest.mark.parametrize("stop", [KeyboardInterrupt, StopIteration, RuntimeError])
def test_a_fit_that_was_stopped_can_be_used(make, X, stop, temperature, method):
    def callback(estimator, monitor):
        if monitor.step == 3:
            raise stop

    lda = make(temperature=temperature, learning_method=method, callback=callback)
    if stop is StopIteration:
        lda.fit(X)
    else:
        with pytest.raises(stop):
            lda.fit(X)
    assert lda.temperature_path_.shape == (3,)
    for T in (1, "learned"):
        assert_allclose(lda.transform(X, temperature=T).sum(axis=1), 1)
        assert np.isfinite(lda.score(X, temperature=T))
    assert np.isnan(lda.document_temperatures(X)).sum() == 2
    if temperature == "variational":
        assert lda.temperature_posterior_path_.shape == (3, 100)
    copy = pickle.loads(pickle.dumps(lda.set_params(callback=None)))
    assert_array_equal(
        copy.transform(X, temperature="learned"), lda.transform(X, temperature="learned")
    )
    for one in (lda, copy):  # and goes on cooling
        one.partial_fit(X)
    assert_array_equal(copy.components_, lda.components_)
    assert lda.temperature_path_[-1] < lda.temperature_path_[2]


def test_a_callback_may_look_at_everything(make, X):
    seen = []

    def callback(estimator, monitor):
        seen.append(estimator.temperature_posterior_.sum())
        estimator.transform(X, temperature="learned")
        monitor.record(score=estimator.score(X, temperature="learned"))

    settings = dict(temperature="variational", learning_method="online", max_iter=3)
    lda = make(**settings, callback=callback).fit(X)
    assert_allclose(seen, 1)
    assert_identical(everything(lda, X), everything(make(**settings).fit(X), X))


def test_an_error_leaves_the_estimator_as_it_was(make, X):
    lda = make(temperature="variational").fit(X)
    before = everything(lda, X)
    for wrong in (Variational(grid=[2, 3]), LocalVariational(rounds=0), "vartiational"):
        for method in ("fit", "partial_fit"):
            with pytest.raises(ValueError):
                getattr(lda.set_params(temperature=wrong), method)(X)
            assert_identical(before, everything(lda, X))
    wrong = LogPartition(1 / np.geomspace(1, 10, 100), np.zeros(100), made_for={"n_features": 61})
    with pytest.raises(ValueError, match="'n_features' is 61, expected 60"):
        lda.set_params(temperature=Variational(partition=wrong)).fit(X)
    with pytest.raises(ValueError, match="'n_features' is 61, expected 60"):
        lda.partial_fit(X)
    assert_identical(before, everything(lda.set_params(temperature="variational"), X))
