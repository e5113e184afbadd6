"""The finishing passes: how many, how far they go, what they gain, and when they end."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import ConvergenceWarning

from annealvi import TemperedLDA
from annealvi.datasets import make_topic_corpus
from annealvi.lda.hooks import moved_share
from annealvi.lda.settings import words_per_entry
from annealvi.metrics import document_completion


@pytest.fixture(scope="module")
def plenty():
    """Many words for each entry of the topics, in more documents than a minibatch."""
    return make_topic_corpus(600, 80, 5, document_length=40, random_state=1).data


def quietly(fit, *args):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return fit(*args)


def test_the_share_of_words_that_moved():
    before = np.array([[3.0, 1.0], [0.0, 4.0]])
    after = np.array([[1.0, 3.0], [0.0, 4.0]])
    assert moved_share(before, after) == pytest.approx(2 / 8)
    assert moved_share(before, before) == 0
    rng = np.random.RandomState(0)
    before, after = rng.gamma(1.0, size=(2, 3000, 7))  # in several blocks
    expected = np.abs(after - before).sum() / (2 * max(before.sum(), after.sum()))
    assert moved_share(before, after) == pytest.approx(expected, rel=1e-12)


def test_where_data_are_plenty(plenty):
    assert words_per_entry(plenty, 5) == pytest.approx(
        plenty.sum() / (5 * np.count_nonzero(plenty.getnnz(axis=0)))
    )
    lda = TemperedLDA(5, random_state=0).fit(plenty)
    assert lda.settings_["finish_iter"] == 12
    change = lda.history_["topic_change"]
    n_online = lda.settings_["max_iter"]
    assert np.isnan(change[:n_online]).all() and np.isfinite(change[n_online:]).all()
    assert lda.n_iter_ == n_online + np.isfinite(change).sum()
    assert lda.temperature_path_[-1] == 1
    # a word of the vocabulary that no document has makes no difference
    wide = np.hstack([plenty.toarray(), np.zeros((600, 80))])
    assert TemperedLDA(5, random_state=0).fit(wide).settings_["finish_iter"] == 12


@pytest.mark.parametrize(
    "parameters",
    [
        dict(n_components=500),  # few words for each entry
        dict(max_iter=3),
        dict(learning_method="batch", max_iter=None),
        dict(validation_fraction=0.2),
        dict(temperature=1.0),
        dict(temperature="variational"),
        dict(preset="sklearn"),
    ],
)
def test_nowhere_else(plenty, parameters):
    lda = TemperedLDA(**dict(n_components=5) | parameters, random_state=0).fit(plenty)
    assert lda.settings_["finish_iter"] == 0
    assert "topic_change" not in lda.history_


def test_the_steps_go_beyond_the_optimum_and_the_last_does_not(plenty):
    """The same topics as of single batch steps, taken 1.9 times as far by hand."""
    options = dict(random_state=0, document_estimate="variational", dtype="float64")
    options["token_change_tol"] = 0.01  # given, so the same at every temperature
    start = TemperedLDA(5, max_iter=4, **options).fit(plenty)
    finished = quietly(TemperedLDA(5, max_iter=4, finish_iter=3, **options).fit, plenty)
    topics = start.components_
    for factor in (1.9, 1.9, 1.0):
        batch = dict(init=topics, temperature=1, learning_method="batch", max_iter=1)
        optimum = TemperedLDA(5, **batch, **options).fit(plenty).components_
        floor = np.min(start.topic_word_prior_)
        topics = np.maximum(topics + factor * (optimum - topics), floor)
    assert_allclose(finished.components_, topics, rtol=1e-6)
    assert finished.n_iter_ == 4 + 3


@pytest.mark.parametrize("eta", [0.1, "words", "topics"])
def test_no_topic_falls_below_the_prior(plenty, eta):
    rng = np.random.RandomState(0)
    shapes = {"words": (80,), "topics": (5, 80)}
    prior = rng.uniform(0.05, 0.5, shapes[eta]) if eta in shapes else eta
    lda = TemperedLDA(5, max_iter=2, finish_iter=6, topic_word_prior=prior, random_state=0)
    for dtype, rounding in (("float32", 1e-6), ("float64", 1e-12)):
        topics = quietly(lda.set_params(dtype=dtype).fit, plenty).components_
        assert np.all(topics >= np.broadcast_to(prior, topics.shape) * (1 - rounding))


def test_they_raise_the_bound_and_the_held_out_likelihood(plenty):
    train, held_out = plenty[:400], plenty[400:]
    short = TemperedLDA(5, max_iter=3, random_state=0).fit(train)
    finished = TemperedLDA(5, max_iter=3, finish_iter=15, random_state=0).fit(train)
    assert finished.bound_ < short.bound_
    assert document_completion(finished, held_out) > document_completion(short, held_out)


def test_they_end_once_the_topics_stay_as_they_are(plenty):
    lda = TemperedLDA(5, max_iter=2, finish_iter=500, random_state=0).fit(plenty)
    change = lda.history_["topic_change"][2:]
    assert len(change) < 400
    assert change[-1] < 1e-3 and np.all(change[:-1] >= 1e-3)
    assert lda.n_iter_ == 2 + len(change)


def test_a_warning_says_that_the_topics_were_still_moving(plenty):
    lda = TemperedLDA(5, max_iter=1, finish_iter=1, random_state=0)
    message = r"after finish_iter=1 passes: the last one moved \d+\.\d% of their words"
    with pytest.warns(ConvergenceWarning, match=message):
        lda.fit(plenty)


def test_the_printed_lines(plenty, capsys):
    quietly(TemperedLDA(5, max_iter=1, finish_iter=2, verbose=1, random_state=0).fit, plenty)
    assert capsys.readouterr().out.splitlines() == [
        "iteration: 1 of max_iter: 1",
        "iteration: 1 of finish_iter: 2",
        "iteration: 2 of finish_iter: 2",
    ]


def test_the_same_bits_for_any_number_of_threads(plenty):
    one, two = (
        quietly(TemperedLDA(5, max_iter=3, finish_iter=9, n_jobs=n, random_state=0).fit, plenty)
        for n in (1, 2)
    )
    assert_array_equal(one.components_, two.components_)
    assert_array_equal(one.history_["topic_change"], two.history_["topic_change"])


def test_no_warning_where_another_test_ended_them(plenty):
    """The perplexity had converged, so more passes would not be made."""
    lda = TemperedLDA(5, max_iter=0, finish_iter=15, evaluate_every=1, perp_tol=1e6)
    lda.set_params(random_state=0).fit(plenty)
    assert lda.n_batch_iter_ == 1 + 2


@pytest.mark.parametrize(
    "parameters",
    [
        dict(temperature="variational"),
        dict(temperature="local"),
        dict(temperature=2.0),
        dict(validation_fraction=0.2),
    ],
)
def test_what_has_no_finish(plenty, parameters):
    lda = TemperedLDA(5, finish_iter=2, **parameters)
    with pytest.raises(ValueError, match=r"'finish_iter' parameter .* must be 0 or None .* Got 2"):
        lda.fit(plenty)
    assert not hasattr(lda, "components_")


@pytest.mark.parametrize("temperature", ["variational", "local"])
def test_no_sparse_documents_with_a_temperature_that_is_learned(plenty, temperature):
    lda = TemperedLDA(5, document_estimate="sparse", temperature=temperature)
    with pytest.raises(ValueError, match=r"'document_estimate' .* must be 'auto' or 'variational'"):
        lda.fit(plenty)
    assert not hasattr(lda, "components_")


@pytest.mark.parametrize("value", [-1, 1.5, "auto"])
def test_what_is_no_number_of_passes(plenty, value):
    with pytest.raises(
        ValueError, match="'finish_iter' parameter of TemperedLDA must be None or an int"
    ):
        TemperedLDA(5, finish_iter=value).fit(plenty)
