"""TemperedLDA with documents held out of the fit: when it stops and what it keeps."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV
from sklearn.utils import check_random_state

from annealvi import Annealed, TemperedLDA, Variational
from annealvi.datasets import make_topic_corpus
from annealvi.lda import fit as lda_fit
from annealvi.lda.estimator import generators
from annealvi.lda.hooks import LEAST_GAIN, hold_out
from annealvi.lda.settings import passes
from annealvi.metrics import document_completion
from annealvi.metrics import held_out as completion

WARNS = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


@pytest.fixture(scope="module")
def X():
    rng = np.random.RandomState(0)
    topics = rng.dirichlet(np.full(50, 0.1), 3)
    theta = rng.dirichlet(np.full(3, 0.3), 120)
    counts = [rng.multinomial(20, p) for p in theta @ topics]
    return sparse.csr_matrix(np.array(counts, dtype=float))


def make(**parameters):
    settings = {"n_components": 3, "random_state": 0, "validation_fraction": 0.25}
    return TemperedLDA(**(settings | parameters))


def parts(lda, X):
    """What a fit has held out, and its rows."""
    rng = generators(check_random_state(lda.random_state), lda.n_init)[1]
    return hold_out(X, lda.validation_fraction, rng)


def test_the_share_that_is_held_out(X):
    for fraction, size in ((0.25, 30), (0.1, 12), (0.001, 1), (0.7, 84), (0.991, 119)):
        training, held_out = parts(make(validation_fraction=fraction), X)
        assert (training.shape[0], held_out.X.shape[0]) == (120 - size, size)
        rows = [tuple(row) for row in np.vstack([training.toarray(), held_out.X.toarray()])]
        assert sorted(rows) == sorted(tuple(row) for row in X.toarray())
    # both in the order they were in
    numbers = sparse.csr_matrix(np.arange(1.0, 31)[:, None])
    training, held_out = hold_out(numbers, 0.3, np.random.RandomState(0))
    assert np.all(np.diff(training.toarray().ravel()) > 0)
    assert np.all(np.diff(held_out.X.toarray().ravel()) > 0)
    assert held_out.X.shape[0] == 9


@WARNS
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("method", ["batch", "online"])
def test_the_fit_is_that_of_the_other_documents(X, method, dtype):
    """Bit for bit, up to where it stops: what is scored and drawn changes nothing."""
    X = X.astype(dtype)
    seen = []

    def callback(estimator, monitor):
        seen.append(estimator.components_.copy())

    settings = dict(learning_method=method, max_iter=6, temperature="annealed", batch_size=20)
    settings["dtype"] = dtype
    make(callback=callback, **settings).fit(X)
    alone, seen = seen, []
    training, _ = parts(make(), X)
    make(callback=callback, **settings).set_params(validation_fraction=None).fit(training)
    assert_array_equal(seen, alone)
    assert seen[0].dtype == dtype


@WARNS
@pytest.mark.parametrize("n_jobs", [1, 3])
def test_results_repeat(X, n_jobs):
    one = make(n_jobs=n_jobs).fit(X)
    for other in (make().fit(X), make(n_jobs=2).fit(X.toarray()), one.set_params(n_jobs=1).fit(X)):
        assert_array_equal(other.components_, one.components_)
        assert other.bound_ == one.bound_ and other.validation_score_ == one.validation_score_
        assert_array_equal(other.history_["validation"], one.history_["validation"])
    assert make(random_state=1).fit(X).validation_score_ != one.validation_score_


@WARNS
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_the_score_is_document_completion(X, dtype):
    X = X.astype(dtype)
    lda = make(max_iter=3, dtype=dtype).fit(X)
    _, held_out = parts(lda, X)
    # the split of tokens is drawn after that of documents
    rng = generators(check_random_state(lda.random_state), lda.n_init)[1]
    rng.permutation(X.shape[0])
    expected = document_completion(lda, held_out.X, random_state=rng)
    assert lda.validation_score_ == pytest.approx(
        expected, rel=1e-12 if dtype is np.float64 else 1e-6
    )
    assert lda.validation_score_ == lda.history_["validation"].max()


def test_early_stopping(X):
    for patience in (1, 3, 5):
        lda = make(patience=patience).fit(X)
        scores, usual = lda.history_["validation"], passes(90)
        assert usual + patience <= len(scores) < lda_fit.PROLONGED * usual
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
        _, held_out = parts(lda, X)
        score = held_out.score(lda._state)
        assert score == pytest.approx(lda.validation_score_, rel=1e-12)
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


def test_warnings(X, recwarn):
    """Only where the budget ended a fit that was still improving."""
    make().fit(X)  # validation ended it
    make(validation_fraction=None).fit(X)  # no test
    make(validation_fraction=None, max_iter=2).fit(X)
    make(temperature=Variational.as_printed(), max_iter=2, patience=1).fit(X)  # T never settles
    assert not [w for w in recwarn if issubclass(w.category, ConvergenceWarning)]
    for method in ("fit", "fit_transform"):
        with pytest.warns(
            ConvergenceWarning, match=r"max_iter=2 passes\. Increase max_iter\.$"
        ) as w:
            getattr(make(max_iter=2, temperature=1), method)(X)
        assert len(w) == 1 and w[0].filename == __file__
    # patience is not exhausted, but nothing was gained any more
    lda = make(patience=10**6, max_iter=300)
    lda.fit(X)
    assert len(lda.history_["validation"]) == 300
    assert not [w for w in recwarn if issubclass(w.category, ConvergenceWarning)]


@WARNS
def test_perplexity_may_end_the_fit_too(X):
    lda = make(temperature=1, evaluate_every=2, perp_tol=1e9).fit(X)
    assert np.flatnonzero(np.isfinite(lda.history_["perplexity"])).tolist() == [1, 3]
    assert len(lda.history_["validation"]) == 4
    training, _ = parts(lda, X)
    other = make(temperature=1, evaluate_every=2, perp_tol=1e9, validation_fraction=None)
    other.fit(training)
    assert_allclose(other.history_["perplexity"], lda.history_["perplexity"], rtol=1e-12)
    assert not np.any(np.isfinite(make(max_iter=2).fit(X).history_.get("perplexity", [np.nan])))


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
    assert held_out.halves is None
    bound = lda.score(held_out.X) - lda._state.model.topics.bound()
    assert lda.validation_score_ == pytest.approx(bound / held_out.X.sum(), rel=1e-10)
    assert completion.MOST_TOKENS >= 1e9  # users may split more by themselves


@pytest.mark.parametrize(
    ("n_samples", "fraction"), [(1, 0.5), (2, 0.6), (3, 0.9), (10, 0.95), (10, 1e-12)]
)
def test_too_few_documents(X, n_samples, fraction):
    with pytest.raises(ValueError, match=rf"at least one document .* n_samples={n_samples}, "):
        make(validation_fraction=fraction).fit(X[:n_samples])


def test_held_out_documents_without_words(X):
    lda = make(max_iter=1)
    with pytest.raises(ValueError, match=r"held-out documents must have words. Got 30"):
        lda.fit(sparse.csr_matrix(X.shape))
    assert not hasattr(lda, "components_")


@WARNS
def test_some_documents_without_words(X):
    rows = sparse.vstack([X, sparse.csr_matrix((60, 50))]).tocsr()
    lda = make(n_init=2).fit(rows)
    assert np.isfinite(lda.validation_score_)


def test_a_callback_may_end_the_fit_within_a_pass(X):
    """What was done since the last pass is scored, and a candidate."""

    def callback(estimator, monitor):
        if monitor.passes > 2.4:
            raise StopIteration

    lda = make(callback=callback, learning_method="online", batch_size=20, temperature=1).fit(X)
    assert_allclose(lda.history_["pass"], [1, 2, 220 / 90], rtol=0.1)
    assert np.isfinite(lda.history_["validation"]).all()
    assert lda.validation_score_ == lda.history_["validation"].max()


def test_an_interrupted_fit_goes_on_where_it_was(X):
    def callback(estimator, monitor):
        if monitor.step == 9:
            raise KeyboardInterrupt

    lda = make(callback=callback, learning_method="online", batch_size=20)
    with pytest.raises(KeyboardInterrupt):
        lda.fit(X)
    assert lda.n_batch_iter_ == 10 and not hasattr(lda, "validation_score_")
    lda.set_params(callback=None).partial_fit(X)


@WARNS
def test_no_passes(X):
    lda = make(max_iter=0).fit(X)
    assert np.isfinite(lda.validation_score_) and lda.n_iter_ == 0


def test_verbose(X, capsys):
    lda = make(verbose=1).fit(X)
    lines = capsys.readouterr().out.splitlines()
    scores = lda.history_["validation"]
    assert lines[0] == f"iteration: 1 of max_iter: {5 * passes(90)}, validation: {scores[0]:.4f}"
    assert len(lines) == len(scores)


@WARNS
def test_clones_copies_streams_and_searches(X):
    lda = make(patience=2).fit(X)
    assert clone(lda).get_params() == lda.get_params()
    copied = pickle.loads(pickle.dumps(lda))
    assert copied.validation_score_ == lda.validation_score_
    assert_array_equal(copied.transform(X), lda.transform(X))
    assert_array_equal(copied.partial_fit(X).components_, lda.partial_fit(X).components_)
    assert not hasattr(lda, "validation_score_")
    search = GridSearchCV(make(max_iter=5), {"validation_fraction": [None, 0.2]}, cv=2).fit(X)
    assert search.best_params_["validation_fraction"] in (None, 0.2)


def test_more_topics_than_there_are_overfit_less():
    """On documents that nobody has seen, the topics kept are no worse than the last."""
    corpus = make_topic_corpus(n_topics=5, n_documents=400, random_state=0)
    train, test = corpus.data[:300], corpus.data[300:]
    settings = dict(n_components=40, topic_word_prior=0.01, random_state=0, temperature=1)
    long = TemperedLDA(max_iter=60, **settings).fit(train)
    early = TemperedLDA(max_iter=60, validation_fraction=0.2, **settings).fit(train)
    assert early.n_batch_iter_ < long.n_batch_iter_
    assert document_completion(early, test) > document_completion(long, test)
