"""What a fit records, prints and hands to callbacks, and when it stops."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import ConvergenceWarning

from annealvi import Annealed, Fixed, TemperedLDA
from tests.lda.fits import METHODS


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
    assert history["elbo"][-1] == pytest.approx(lda.score(X), rel=1e-12)
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
    with pytest.warns(ConvergenceWarning, match=r"max_iter=5 passes. Increase max_iter or perp"):
        fit(X, **settings)
    with pytest.warns(ConvergenceWarning, match="perp_tol=1e-09"):
        fit(X, **settings)
    # a temperature that falls to the end leaves nothing to compare, whatever perp_tol is
    for hot in (dict(temperature=Annealed(length=1.0)), dict(max_iter=1), dict(evaluate_every=5)):
        with pytest.warns(ConvergenceWarning, match=r"compared at T = 1 only|no two evaluations"):
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


def test_callback_stops_the_fit(fit, X):
    def callback(estimator, monitor):
        if monitor.passes >= 2:
            raise StopIteration

    lda = fit(X, callback=callback, learning_method="batch")
    assert lda.n_batch_iter_ == 3
    assert lda.transform(X).shape == (80, 4)
    assert np.isfinite(lda.bound_)


@pytest.mark.parametrize("method", METHODS)
def test_an_interrupt_leaves_a_fitted_estimator(X, method):
    def callback(estimator, monitor):
        if monitor.step == 3:
            raise KeyboardInterrupt

    lda = TemperedLDA(4, learning_method=method, callback=callback, batch_size=16, random_state=0)
    with pytest.raises(KeyboardInterrupt):
        lda.fit(X)
    assert lda.n_batch_iter_ == 4
    assert_allclose(lda.transform(X).sum(axis=1), 1)
    assert lda.temperature_path_.shape == (3,)
    assert lda.history_["step"].shape == ((3,) if method == "batch" else (1,))
    assert_array_equal(
        pickle.loads(pickle.dumps(lda.set_params(callback=None))).transform(X), lda.transform(X)
    )


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("form", ["likelihood", "posterior"])
def test_history_shows_that_the_objective_never_falls(fit, X, form):
    temperature = Fixed(2, form=form)
    settings = dict(document_init="warm", evaluate_every=1, perp_tol=0, max_iter=30)
    lda = fit(X, temperature=temperature, **settings)
    objective = lda.history_["annealed_elbo"]
    assert np.min(np.diff(objective) / np.abs(objective[1:])) > -1e-9


def test_callback_may_use_another_number_of_threads(fit, X):
    def callback(estimator, monitor):
        estimator.set_params(n_jobs=8 if monitor.step % 2 else 1).transform(X)
        monitor.record(temperature_seen=estimator.temperature_, n=len(estimator.history_["step"]))

    expected = fit(X, max_iter=4)
    lda = fit(X, max_iter=4, callback=callback)
    assert_array_equal(lda.components_, expected.components_)
    assert_array_equal(lda.history_["temperature_seen"], lda.temperature_path_)


def test_bound_does_not_outlive_its_fit(fit, X):
    def callback(estimator, monitor):
        raise KeyboardInterrupt

    lda = fit(X)
    assert hasattr(lda, "bound_")
    with pytest.raises(KeyboardInterrupt):
        lda.set_params(callback=callback).fit(X)
    assert not hasattr(lda, "bound_")
    assert not hasattr(fit(X).partial_fit(X), "bound_")


def test_partial_fit_records_and_calls_back(X):
    steps = []
    lda = TemperedLDA(
        4, batch_size=16, random_state=0, callback=lambda _, monitor: steps.append(monitor.step)
    )
    lda.partial_fit(X).partial_fit(X[:16])
    assert steps == [1, 2, 3, 4, 5, 6]
    assert_array_equal(lda.history_["step"], [5, 6])


def test_a_callback_may_edit_the_topics(fit, X):
    topics = np.random.RandomState(9).gamma(100, 0.01, (4, 60))

    def callback(estimator, monitor):
        if monitor.step == 1:
            estimator.components_ = topics

    settings = dict(temperature=1, document_init="constant", max_iter=4, learning_method="batch")
    settings["dtype"] = "float64"
    edited = fit(X, callback=callback, **settings)
    assert_array_equal(
        edited.components_, fit(X, init=topics, **settings | dict(max_iter=3)).components_
    )


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("temperature", [1.0, 1.2])
def test_sparse_documents_never_lower_their_objective(X, temperature):
    lda = TemperedLDA(
        4,
        document_estimate="sparse",
        temperature=temperature,
        learning_method="batch",
        document_init="warm",
        token_change_tol=1e-10,
        max_doc_update_iter=2000,
        max_iter=25,
        evaluate_every=1,
        perp_tol=0.0,
        dtype="float64",
        random_state=0,
    ).fit(X)
    objective = lda.history_["annealed_elbo"]
    assert len(objective) == 25
    assert np.min(np.diff(objective)) > -1e-9 * abs(objective[-1])
    assert objective[-1] > objective[0] + 1
    # at T = 1 it is the mean field's less what the topics of documents cost
    assert temperature > 1 or np.all(objective < lda.history_["elbo"])
