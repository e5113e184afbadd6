"""TemperedLDA as a user meets it: temperature, starts, input, history, callbacks."""

import sys

import joblib
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import ConvergenceWarning

from annealvi import Annealed, Fixed, TemperedLDA
from annealvi.datasets import make_topic_corpus
from bench.speed.footprint import measured
from tests.asserts import with_topics
from tests.callbacks import stop_at
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


def test_n_jobs_may_come_from_a_joblib_context(fit, X):
    with joblib.parallel_backend("threading", n_jobs=2):
        lda = fit(X)
    assert_array_equal(lda.components_, fit(X).components_)


@pytest.mark.thinned
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("form", ["likelihood", "posterior"])
def test_annealing_recovers_planted_documents(fit, method, form):
    corpus = make_topic_corpus(200, 60, 4, document_length=60, random_state=1)
    options = dict(learning_method=method, temperature=Annealed(form=form), max_iter=20)
    found = fit(corpus.data, n_components=4, **options).transform(corpus.data)
    # each planted topic correlates with one that was found
    correlation = np.corrcoef(found.T, corpus.document_topics.T)[:4, 4:]
    assert np.all(correlation.max(axis=0) > 0.8)


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


def test_fitting_changes_no_parameter(X):
    temperature = Annealed(start=3)
    lda = TemperedLDA(4, temperature=temperature, random_state=0)
    before = repr(lda), dict(vars(temperature))
    lda.fit(X)
    assert lda.temperature is temperature
    assert (repr(lda), dict(vars(temperature))) == before


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


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_history(fit, X):
    lda = fit(X, evaluate_every=2, perp_tol=0, max_iter=6, learning_method="batch")
    history = lda.history_
    assert_array_equal(history["pass"], np.arange(1, 7))
    assert_array_equal(history["step"], np.arange(1, 7))
    assert_allclose(history["temperature"], lda.temperature_path_)
    assert np.all(np.diff(history["seconds"]) > 0)
    for name in ("elbo", "annealed_elbo", "perplexity"):
        assert_array_equal(np.isfinite(history[name]), [False, True] * 3)
    # at T > 1 they are different objectives
    assert history["annealed_elbo"][1] != history["elbo"][1]
    assert history["elbo"][-1] == pytest.approx(with_topics(lda).score(X), rel=1e-12)
    assert lda.bound_ == history["perplexity"][-1]


def test_no_stop_while_hot(fit, X):
    """A huge perp_tol stops at the second evaluation at T = 1, not before."""
    half = dict(temperature=Annealed(length=0.5), learning_method="batch")
    lda = fit(X, evaluate_every=1, perp_tol=1e9, max_iter=12, **half)
    assert lda.temperature_ == 1
    assert len(lda.temperature_path_) == 8  # 6 annealing steps, 2 evaluations at T = 1
    assert lda.n_iter_ == 7


def test_a_warning_where_the_budget_ended_the_fit(fit, X):
    settings = dict(evaluate_every=1, perp_tol=1e-9, max_iter=5, temperature="annealed")
    with pytest.warns(ConvergenceWarning, match=r"max_iter=5 passes. Use a larger max_iter"):
        fit(X, **settings)
    with pytest.warns(ConvergenceWarning, match="perp_tol=1e-09"):
        fit(X, **settings)
    # a temperature that falls to the end leaves nothing to compare, whatever perp_tol is
    for hot in (dict(temperature=Annealed(length=1.0)), dict(max_iter=1), dict(evaluate_every=5)):
        with pytest.warns(ConvergenceWarning, match=r"compared only at T = 1"):
            fit(X, **settings | dict(perp_tol=1e9) | hot)


def test_verbose_prints_a_line_a_pass(fit, X, capsys):
    with pytest.warns(ConvergenceWarning):
        fit(X, learning_method="online", verbose=1, max_iter=3, evaluate_every=3, perp_tol=1e9)
    lines = capsys.readouterr().out.splitlines()
    assert lines[:2] == ["iteration: 1 of max_iter: 3", "iteration: 2 of max_iter: 3"]
    assert lines[2].startswith("iteration: 3 of max_iter: 3, perplexity: ")


def test_callback_sees_a_usable_estimator(fit, X):
    seen = []

    def callback(estimator, monitor):
        seen.append((monitor.step, monitor.passes, monitor.temperature))
        if monitor.step % 5 == 0:
            monitor.record(score=estimator.score(X), topics=estimator.components_.sum())

    lda = fit(X, learning_method="online", max_iter=3, callback=callback)
    assert [step for step, _, _ in seen] == list(range(1, 16))
    assert_allclose([temperature for _, _, temperature in seen], lda.temperature_path_)
    assert_array_equal(lda.history_["step"], [5, 10, 15])
    assert np.all(np.isfinite(lda.history_["score"]))
    # looking changes nothing
    assert_array_equal(lda.components_, fit(X, learning_method="online", max_iter=3).components_)


def test_bound_does_not_outlive_its_fit(fit, X):
    lda = fit(X)
    assert hasattr(lda, "bound_")
    with pytest.raises(KeyboardInterrupt):
        lda.set_params(callback=stop_at(1, KeyboardInterrupt)).fit(X)
    assert not hasattr(lda, "bound_")
    assert not hasattr(fit(X).partial_fit(X), "bound_")


def test_a_callback_may_edit_the_topics(fit, X):
    topics = np.random.RandomState(9).gamma(100, 0.01, (4, 60))

    def callback(estimator, monitor):
        if monitor.step == 1:
            estimator.components_ = topics

    settings = dict(temperature=1, learning_method="batch", dtype="float64")
    edited = fit(X, callback=callback, max_iter=4, **settings)
    assert_array_equal(edited.components_, fit(X, init=topics, max_iter=3, **settings).components_)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="the peak of memory is read from /proc")
@pytest.mark.parametrize(
    "task",
    ["fit", "fit, batch", "fit, validation_fraction=0.1", "partial_fit, three portions", "pickle"],
)
def test_peak_in_multiples_of_lambda(task):
    # a pickle is made of a copy, which no other thread can fit meanwhile
    assert measured(task, 300_000, 96) < (3.5 if task == "pickle" else 3)
