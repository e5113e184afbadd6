"""Held-out documents and finishing passes: when a fit stops and what it keeps."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from annealvi import Annealed, TemperedLDA, Variational
from annealvi.datasets import make_topic_corpus
from annealvi.lda import hooks
from annealvi.lda import plan as lda_plan
from annealvi.lda.estimator import generators
from annealvi.lda.hooks import LEAST_GAIN, hold_out, moved_share
from annealvi.lda.settings import passes, resolve, words_per_entry
from annealvi.metrics import document_completion
from annealvi.metrics import held_out as completion
from tests.asserts import refused
from tests.marks import cases, slow_values


def settings_of(lda, X):
    """The settings of a fit to X, with what follows from the parameters."""
    density = words_per_entry(X, lda.n_components)
    return resolve(lda.get_params(deep=False), X.shape[0], density)


WARNS = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


@pytest.fixture(scope="module")
def X():
    rng = np.random.RandomState(0)
    topics = rng.dirichlet(np.full(50, 0.1), 3)
    theta = rng.dirichlet(np.full(3, 0.3), 120)
    return sparse.csr_matrix([rng.multinomial(20, p) for p in theta @ topics], dtype=float)


def make(**parameters):
    settings = {"n_components": 3, "random_state": 0, "validation_fraction": 0.25, "n_init": 1}
    return TemperedLDA(**(settings | parameters))


def parts(lda, X):
    """What a fit has held out, and its rows."""
    rng = generators(check_random_state(lda.random_state), lda.n_init)[1]
    return hold_out(X, lda.validation_fraction, rng)


def test_the_share_that_is_held_out(X):
    for fraction, size in ((0.25, 30), (0.1, 12), (0.001, 1), (0.7, 84), (0.991, 119)):
        training, held_out = parts(make(validation_fraction=fraction), X)
        assert (training.shape[0], held_out.shape[0]) == (120 - size, size)
        rows = [tuple(row) for row in np.vstack([training.toarray(), held_out.toarray()])]
        assert sorted(rows) == sorted(tuple(row) for row in X.toarray())
    # both in the order they were in
    numbers = sparse.csr_matrix(np.arange(1.0, 31)[:, None])
    training, held_out = hold_out(numbers, 0.3, np.random.RandomState(0))
    assert np.all(np.diff(training.toarray().ravel()) > 0)
    assert np.all(np.diff(held_out.toarray().ravel()) > 0)
    assert held_out.shape[0] == 9


@WARNS
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("method", ["batch", "online"])
def test_the_fit_is_that_of_the_other_documents(X, method, dtype, finish):
    """Bit for bit, up to where it stops: what is scored and drawn changes nothing."""
    X = X.astype(dtype)
    seen = []

    def callback(estimator, monitor):
        seen.append(estimator.components_.copy())

    settings = dict(learning_method=method, max_iter=6, temperature="annealed", batch_size=20)
    settings |= {"dtype": dtype, "n_init": 1}
    finish(0)  # which validation has not
    make(callback=callback, **settings).fit(X)
    alone, seen = seen, []
    training, _ = parts(make(), X)
    make(callback=callback, **settings).set_params(validation_fraction=None).fit(training)
    assert_array_equal(seen, alone)
    assert seen[0].dtype == dtype


@WARNS
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_the_score_is_document_completion(X, dtype):
    X = X.astype(dtype)
    lda = make(max_iter=3, dtype=dtype).fit(X)
    _, held_out = parts(lda, X)
    # the split of tokens is drawn after that of documents
    rng = generators(check_random_state(lda.random_state), lda.n_init)[1]
    rng.permutation(X.shape[0])
    expected = document_completion(lda, held_out, random_state=rng)
    rel = 1e-12 if dtype is np.float64 else 1e-6
    assert lda.validation_score_ == pytest.approx(expected, rel=rel)
    assert lda.validation_score_ == lda.history_["validation"].max()


def test_early_stopping(X, monkeypatch):
    for patience in (1, 3, 5):
        monkeypatch.setattr(hooks, "PATIENCE", patience)
        lda = make().fit(X)
        scores, usual = lda.history_["validation"], passes(90)
        assert usual + patience <= len(scores) < lda_plan.PROLONGED * usual
        assert_allclose(lda.history_["pass"], np.arange(1, len(scores) + 1))
        # T falls over the usual passes, and only from then on is there a reason to stop
        temperatures = lda.history_["temperature"]
        assert np.all(temperatures[: usual - 1] > 1) and np.all(temperatures[usual - 1 :] == 1)
        reference, waited = -np.inf, []
        for score in scores[usual - 1 :]:
            gained = score > reference + LEAST_GAIN
            waited.append(0 if gained else waited[-1] + 1)
            reference = score if gained else reference
        assert waited[-1] == patience and max(waited[:-1]) < patience
        assert lda.n_iter_ == np.argmax(scores) + 1
        assert lda.n_batch_iter_ == lda.history_["step"][-1] + 1


@WARNS
def test_the_best_topics_are_kept(X):
    """Those of the pass of the best score, which is not always the last."""
    earlier = 0
    for seed in range(8):
        kept = {}

        def callback(estimator, monitor, kept=kept):
            kept[monitor.step] = estimator.components_.copy()

        lda = make(n_components=12, random_state=seed, callback=callback, topic_word_prior=0.01)
        lda.set_params(dtype="float64")
        lda.fit(X)
        best = np.argmax(lda.history_["validation"])
        earlier += best + 1 < len(lda.history_["validation"])
        assert lda.validation_score_ == lda.history_["validation"][best]
        assert_allclose(lda.components_, kept[lda.history_["step"][best]], rtol=1e-12)
        assert lda.n_iter_ == best + 1
    assert earlier >= 4


def test_max_iter_is_the_budget(X):
    usual = passes(90)

    def cooled(lda):
        return int(np.sum(lda.history_["temperature"] > 1)) + 1

    # more than the usual passes: T falls over these
    lda = make(max_iter=10 * usual).fit(X)
    assert cooled(lda) == usual and len(lda.history_["pass"]) < 10 * usual
    assert_array_equal(lda.components_, make().fit(X).components_)
    # fewer: over all there are, so there is no reason to stop before, nor two scores to compare
    lda = make(max_iter=7).fit(X)
    assert cooled(lda) == 7 == len(lda.history_["validation"])
    # what is said of T holds of the budget
    lda = make(max_iter=90, temperature=Annealed(length=0.5)).fit(X)
    assert cooled(lda) == 46
    lda = make(temperature=Annealed(length=0.5)).fit(X)
    assert cooled(lda) == usual // 2 + 1
    assert make(preset="sklearn", max_iter=50).fit(X).temperature_path_.max() == 1


def test_warnings(X, recwarn, monkeypatch):
    """Only where the budget ended a fit that was still improving."""
    make().fit(X)  # validation ended it
    make(validation_fraction=None).fit(X)  # no test
    make(validation_fraction=None, max_iter=2).fit(X)
    make(temperature=Variational.as_printed(), max_iter=2).fit(X)  # T never settles
    assert not [w for w in recwarn if issubclass(w.category, ConvergenceWarning)]
    for method in ("fit", "fit_transform"):
        with pytest.warns(ConvergenceWarning, match=r"=2 passes\. Increase max_iter\.$") as w:
            getattr(make(max_iter=2, temperature=1), method)(X)
        assert len(w) == 1 and w[0].filename == __file__
    # patience is not exhausted, but nothing was gained any more
    monkeypatch.setattr(hooks, "PATIENCE", 10**6)
    lda = make(max_iter=300)
    lda.fit(X)
    assert len(lda.history_["validation"]) == 300
    assert not [w for w in recwarn if issubclass(w.category, ConvergenceWarning)]


@WARNS
@pytest.mark.parametrize("temperature", ["auto", "local"])
def test_attributes_are_of_all_documents(X, temperature):
    lda = make(temperature=temperature, n_components=5)
    topics = lda.fit_transform(X)
    assert topics.shape == (120, 5)
    assert_allclose(topics, lda.transform(X), rtol=1e-9)
    assert lda.bound_ == pytest.approx(lda.perplexity(X), rel=1e-12)
    if temperature == "local":
        assert lda.document_temperatures_.shape == (120,)
        assert_allclose(lda.document_temperatures_, lda.document_temperatures(X), rtol=1e-9)
    assert make(temperature=temperature, n_components=5).fit(X).bound_ == lda.bound_


@WARNS
@pytest.mark.parametrize("kind", ["fractions", "one token", "too many"])
def test_where_tokens_cannot_be_split_the_bound_is_the_score(X, kind, monkeypatch):
    if kind == "fractions":
        X = X * 0.3
    elif kind == "one token":
        X = sparse.csr_matrix(np.eye(50)[np.random.RandomState(0).randint(50, size=120)])
    else:
        monkeypatch.setattr("annealvi.lda.hooks.MOST_TOKENS", 10)
    lda = make(max_iter=4, dtype="float64").fit(X)
    _, held_out = parts(lda, X)
    bound = lda.score(held_out)
    assert lda.validation_score_ == pytest.approx(bound / held_out.sum(), rel=1e-10)
    assert completion.MOST_TOKENS >= 1e9  # users may split more by themselves


@cases(("n_samples", "fraction"), (1, 0.5), (2, 0.6), (3, 0.9), (10, 0.95), (10, 1e-12))
def test_too_few_documents(X, n_samples, fraction):
    with pytest.raises(ValueError, match=rf"at least one training doc.* n_samples={n_samples}: "):
        make(validation_fraction=fraction).fit(X[:n_samples])


def test_held_out_and_training_documents_without_words(X):
    lda, numbers = make(max_iter=1), sparse.csr_matrix(np.arange(1.0, 121)[:, None])
    refused(
        r"held-out documents must contain words. Got n_samples=120, and 30 held-out",
        lda.fit,
        sparse.csr_matrix(X.shape),
    )
    Z = X.toarray()
    Z[parts(lda, numbers)[0].toarray().ravel().astype(int) - 1] = 0
    refused("Got 90 training documents with only zeros", lda.fit, Z)
    assert not hasattr(lda, "components_")


def test_a_callback_may_end_the_fit_within_a_pass(X):
    """What was done since the last pass is scored, and a candidate."""

    def callback(estimator, monitor):
        if monitor.passes > 2.4:
            raise StopIteration

    lda = make(callback=callback, learning_method="online", batch_size=20, temperature=1).fit(X)
    assert_allclose(lda.history_["pass"], [1, 2, 220 / 90], rtol=0.1)
    assert np.isfinite(lda.history_["validation"]).all()
    assert lda.validation_score_ == lda.history_["validation"].max()


@pytest.fixture(scope="module")
def plenty():
    """Many words for each entry of the topics, in more documents than a minibatch."""
    return make_topic_corpus(600, 80, 5, document_length=40, random_state=1).data


def test_the_share_of_words_that_moved():
    before, after = np.random.RandomState(0).gamma(1.0, size=(2, 3000, 7))  # in several blocks
    assert moved_share(before, before) == 0
    expected = np.abs(after - before).sum() / (2 * max(before.sum(), after.sum()))
    assert moved_share(before, after) == pytest.approx(expected, rel=1e-12)


@pytest.mark.slow
def test_where_data_are_plenty(plenty):
    n_words = np.count_nonzero(plenty.getnnz(axis=0))
    assert words_per_entry(plenty, 5) == pytest.approx(plenty.sum() / (5 * n_words))
    lda = TemperedLDA(5, random_state=0).fit(plenty)
    assert settings_of(lda, plenty).finish_iter == 12
    change = lda.history_["topic_change"]
    per_pass = -(-600 // lda.settings_["batch_size"])
    n_online = lda.settings_["max_iter"] - (-10 // per_pass)  # 10 steps or more after the merge
    assert np.isnan(change[:n_online]).all() and np.isfinite(change[n_online:]).all()
    assert lda.n_iter_ == n_online + np.isfinite(change).sum()
    assert lda.temperature_path_[-1] == 1
    # a word of the vocabulary that no document has makes no difference
    wide = np.hstack([plenty.toarray(), np.zeros((600, 80))])
    assert settings_of(lda, sparse.csr_matrix(wide)).finish_iter == 12


@cases(
    "parameters",
    dict(max_iter=0),
    dict(temperature="variational"),
    *slow_values(
        dict(n_components=500),  # few words for each entry
        dict(learning_method="batch", max_iter=None),
        dict(validation_fraction=0.2, n_init=1),
        dict(temperature=1.0),
        dict(preset="sklearn"),
    ),
)
def test_nowhere_else(plenty, parameters):
    lda = TemperedLDA(**dict(n_components=5) | parameters, random_state=0).fit(plenty)
    assert settings_of(lda, plenty).finish_iter == 0
    assert "topic_change" not in lda.history_


def test_the_steps_go_beyond_the_optimum_and_the_last_does_not(plenty, finish):
    """The same topics as of single batch steps, taken 1.9 times as far by hand."""
    options = dict(random_state=0, dtype="float64", n_init=1, mean_change_tol=1e-4)
    options["estimate"] = "variational"  # the same at every temperature
    finish(0)
    start = TemperedLDA(5, max_iter=4, **options).fit(plenty)
    finish(3)
    finished = TemperedLDA(5, max_iter=4, **options).fit(plenty)
    topics = start.components_
    for factor in (1.9, 1.9, 1.0):
        batch = dict(init=topics, temperature=1, learning_method="batch", max_iter=1)
        optimum = TemperedLDA(5, **batch, **options).fit(plenty).components_
        floor = np.min(start.topic_word_prior_)
        topics = np.maximum(topics + factor * (optimum - topics), floor)
    assert_allclose(finished.components_, topics, rtol=1e-6)
    assert finished.n_iter_ == 4 + 3


def test_they_raise_the_bound_and_the_held_out_likelihood(plenty, finish):
    train, held_out = plenty[:400], plenty[400:]
    lda = TemperedLDA(5, max_iter=3, n_init=1, random_state=0)
    finish(0)
    short = clone(lda).fit(train)
    finish(15)
    finished = clone(lda).fit(train)
    assert finished.bound_ < short.bound_
    assert document_completion(finished, held_out) > document_completion(short, held_out)


def test_they_end_once_the_topics_stay_as_they_are(plenty, finish):
    finish(500)
    lda = TemperedLDA(5, max_iter=2, n_init=1, random_state=0).fit(plenty)
    change = lda.history_["topic_change"][2:]
    assert len(change) < 400
    assert change[-1] < 1e-3 and np.all(change[:-1] >= 1e-3)
    assert lda.n_iter_ == 2 + len(change)


@pytest.mark.parametrize("evaluate_every", [-1, 1])
@WARNS
def test_bound_is_of_all_documents_of_which_some_were_held_out(X, evaluate_every):
    lda = TemperedLDA(
        3,
        validation_fraction=0.3,
        evaluate_every=evaluate_every,
        max_iter=4,
        n_init=1,
        dtype="float64",
        random_state=0,
    ).fit(X)
    assert lda.bound_ == pytest.approx(lda.perplexity(X), rel=1e-12)
