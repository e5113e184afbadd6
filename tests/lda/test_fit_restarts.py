"""TemperedLDA from several starts: the best is kept, whoever runs them and wherever."""

import pickle
import signal
import threading
import time

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from annealvi import Annealed, TemperedLDA
from annealvi.models.lda import LDA
from tests.marks import slow_values


@pytest.fixture
def X(counts):
    return counts


def make(**parameters):
    return TemperedLDA(**{"n_components": 4, "max_iter": 4, "random_state": 0} | parameters)


def same(one, other, seconds=False):
    """Whether two fitted estimators hold the same numbers."""
    assert_array_equal(one.components_, other.components_)
    assert_array_equal(one.temperature_path_, other.temperature_path_)
    assert one.bound_ == other.bound_
    assert (one.n_iter_, one.n_batch_iter_) == (other.n_iter_, other.n_batch_iter_)
    assert one.history_.keys() == other.history_.keys()
    for name in one.history_.keys() - {"seconds"}:
        assert_array_equal(one.history_[name], other.history_[name])


SETTINGS = {
    "default": {},
    "batch": {"learning_method": "batch"},
    "sklearn": {"preset": "sklearn"},
    "variational": {"temperature": "variational", "max_iter": 8},
    "local": {"temperature": "local", "max_iter": 8},
    "warm": {"document_init": "warm", "evaluate_every": 2, "perp_tol": 1e9},
    "held out": {"validation_fraction": 0.2},
}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.filterwarnings("ignore:The learned temperature did not cool")
@pytest.mark.parametrize("dtype", [np.float64, *slow_values(np.float32)])
@pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS)
def test_bit_identical_for_any_n_jobs(X, settings, dtype):
    X, settings = X.astype(dtype), settings | {"dtype": dtype}
    one = make(n_init=3, **settings)
    topics = one.fit_transform(X)
    assert topics.dtype == dtype and one.init_scores_.shape == (3,)
    for n_jobs in (16, -1):
        other = make(n_init=3, n_jobs=n_jobs, **settings)
        assert_array_equal(other.fit_transform(X), topics)
        same(other, one)
        assert_array_equal(other.init_scores_, one.init_scores_)
        assert other.n_jobs == n_jobs
        if settings.get("temperature") == "local":
            assert_array_equal(other.document_temperatures_, one.document_temperatures_)
    same(make(n_init=3, **settings).fit(X.toarray()), one)
    # what goes on from here does so alike
    same(*(lda.partial_fit(X).fit(X) for lda in (one, other)))


def test_one_start_is_the_first_of_several(X):
    """And further starts do not change those before them."""
    scores = make(n_init=5).fit(X).init_scores_
    assert len(set(scores)) == 5
    for n_init in (1, 2, 4):
        lda = make(n_init=n_init).fit(X)
        assert_array_equal(lda.init_scores_, scores[:n_init])
        assert lda.bound_ == scores[:n_init].min()
    assert make().fit(X).bound_ == scores[0]
    different = make(n_init=5, random_state=1).fit(X).init_scores_
    assert not set(different) & set(scores)


def test_the_best_is_kept(X):
    for seed in range(5):
        lda = make(n_init=4, random_state=seed).fit(X)
        assert lda.bound_ == lda.init_scores_.min()
        assert lda.bound_ == pytest.approx(lda.perplexity(X), rel=1e-12)
        several = make(n_init=4, random_state=seed, validation_fraction=0.3, max_iter=None).fit(X)
        assert several.validation_score_ == several.init_scores_.max()


def test_equal_starts_keep_the_first(X):
    settings = dict(init=np.ones((4, 41)) + np.eye(4, 41), learning_method="batch")
    lda = make(n_init=3, n_jobs=2, **settings).fit(X)
    assert len(set(lda.init_scores_)) == 1
    assert lda.random_state_.random_sample() == np.random.RandomState(0).random_sample()


@pytest.mark.parametrize("generator", ["RandomState", "global", "PCG64"])
def test_a_generator_is_advanced_as_by_one_start(X, generator):
    def rng():
        if generator == "global":
            np.random.seed(3)
            return None
        return np.random.RandomState(
            3 if generator == "RandomState" else np.random.MT19937(np.random.SeedSequence(3))
        )

    def rest(rng):
        return np.random.random_sample() if rng is None else rng.random_sample()

    drawn, ldas = [], []
    for n_init, n_jobs in ((1, 1), (3, 1), (3, 2)):
        one = rng()
        ldas.append(make(n_init=n_init, n_jobs=n_jobs, random_state=one).fit(X))
        drawn.append(rest(one))
    assert len(set(drawn)) == 1
    same(ldas[1], ldas[2])


def test_a_callback_is_handed_each_start_in_turn(X):
    seen, ids = [], set()

    def callback(estimator, monitor):
        ids.add((id(estimator), threading.get_ident()))
        seen.append((monitor.step, estimator.n_batch_iter_, estimator.components_.sum()))
        assert estimator.transform(X[:2]).shape == (2, 4)
        monitor.record(mark=7)

    settings = dict(learning_method="batch", n_init=3)
    lda = make(callback=callback, n_jobs=2, **settings)
    assert lda.fit(X).history_["mark"].tolist() == [7] * 4
    assert ids == {(id(lda), threading.get_ident())}
    assert [step for step, *_ in seen] == [1, 2, 3, 4] * 3
    assert [after for _, after, _ in seen] == [2, 3, 4, 5] * 3
    plain = make(**settings).fit(X)
    assert_array_equal(lda.components_, plain.components_)
    assert lda.bound_ == plain.bound_


def test_a_callback_ends_the_fit_and_all_further_starts(X):
    starts = []

    def callback(estimator, monitor):
        if monitor.step == 1:
            starts.append(monitor)
        if len(starts) == 2 and monitor.step == 3:
            raise StopIteration

    lda = make(callback=callback, learning_method="batch", n_init=5).fit(X)
    assert len(starts) == 2 and lda.init_scores_.shape == (2,)
    assert lda.bound_ == lda.init_scores_.min()
    assert lda._state.monitor in starts


class Interrupt:
    """Interrupts a start at its second step."""

    def __init__(self, start, error=KeyboardInterrupt):
        self.start = start
        self.seen = 0
        self.error = error

    def __call__(self, estimator, monitor):
        self.seen += monitor.step == 1
        if self.seen == self.start and monitor.step == 2:
            raise self.error


@pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError])
def test_an_interrupted_fit_leaves_what_it_has(X, error):
    settings = dict(learning_method="batch", n_init=4)
    scores = make(**settings).fit(X).init_scores_
    for start in (1, 2, 4):
        lda = make(callback=Interrupt(start, error), **settings)
        with pytest.raises(error):
            lda.fit(X)
        if start == 1:
            assert lda.history_["step"].tolist()[-1] == 2
        else:
            assert lda.perplexity(X) == pytest.approx(scores[: start - 1].min(), rel=1e-12)
        lda.set_params(callback=None).partial_fit(X)


@pytest.mark.skipif(not hasattr(signal, "pthread_kill"), reason="signals go to processes here")
@pytest.mark.parametrize("before", [False, True])
def test_an_interrupt_ends_starts_side_by_side(X, before, monkeypatch, request):
    """None goes on in a thread of its own, and the estimator has the best that ended."""
    begun, signals = [], []
    local_step = LDA.local_step
    finished = make(learning_method="batch", n_init=2).fit(X) if before else None

    def step(self, *args, **kwargs):
        if self not in begun:
            begun.append(self)
        if len(begun) == (3 if before else 2) and not signals:
            signals.append(signal.SIGINT)
            signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
        return local_step(self, *args, **kwargs)

    monkeypatch.setattr(LDA, "local_step", step)
    # a process that was started in the background ignores interrupts
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    request.addfinalizer(lambda: signal.signal(signal.SIGINT, handler))
    others = threading.active_count()
    # passes enough that starts are under way for long
    lda = make(learning_method="batch", n_init=8, n_jobs=2, max_iter=4 if before else 10**4)
    with pytest.raises(KeyboardInterrupt):
        lda.fit(X)
    steps = lda._state.monitor.step
    deadline = time.monotonic() + 20
    while threading.active_count() > others and time.monotonic() < deadline:
        time.sleep(0.01)  # threads have no work any more, but may be on their way out
    assert threading.active_count() == others
    monkeypatch.undo()
    assert lda.components_.shape == (4, 41) and lda._state.monitor.step == steps
    assert len(begun) < 8
    if before:
        assert lda.perplexity(X) <= max(finished.init_scores_) * (1 + 1e-12)
    lda.partial_fit(X).transform(X)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_a_failed_fit_changes_nothing(X, n_jobs):
    lda = make(n_init=3, n_jobs=n_jobs).fit(X)
    before = lda.components_.copy()
    lda.set_params(doc_topic_prior=[1.0, 2.0])
    with pytest.raises(ValueError, match="doc_topic_prior"):
        lda.fit(X)
    with pytest.raises(ValueError, match="at most the 4 passes"):
        lda.set_params(doc_topic_prior=None, temperature=Annealed(passes=50)).fit(X)
    assert_array_equal(lda.components_, before)
    assert lda.init_scores_.shape == (3,)


def test_verbose_says_which_start(X, capsys):
    make(n_init=2, verbose=1, max_iter=2).fit(X)
    lines = capsys.readouterr().out.splitlines()
    expected = [f"start {s}, iteration: {i} of max_iter: 2" for s in (1, 2) for i in (1, 2)]
    assert lines == expected
    make(n_init=2, n_jobs=2, verbose=1, max_iter=2).fit(X)
    assert sorted(capsys.readouterr().out.splitlines()) == expected
    make(verbose=1, max_iter=1).fit(X)
    assert capsys.readouterr().out == "iteration: 1 of max_iter: 1\n"


def test_one_warning_for_the_start_that_was_kept(X):
    settings = dict(n_init=3, temperature=1, evaluate_every=1, perp_tol=1e-9)
    for n_jobs in (1, 2):
        for method in ("fit", "fit_transform"):
            with pytest.warns(ConvergenceWarning, match="had not converged") as caught:
                getattr(make(n_jobs=n_jobs, **settings), method)(X)
            assert len(caught) == 1 and caught[0].filename == __file__


def test_clones_and_copies(X):
    lda = make(n_init=2, n_jobs=2).fit(X)
    assert clone(lda).get_params() == lda.get_params()
    copied = pickle.loads(pickle.dumps(lda))
    assert_array_equal(copied.transform(X), lda.transform(X))
    same(copied, lda)
    assert_array_equal(copied.partial_fit(X).components_, lda.partial_fit(X).components_)
    assert not hasattr(lda, "init_scores_") and not hasattr(lda, "bound_")


def test_starts_are_ignored_in_a_stream(X):
    many = make(n_init=3, n_jobs=2, validation_fraction=0.2, patience=1)
    one = make()
    for _ in range(2):
        assert_array_equal(many.partial_fit(X).components_, one.partial_fit(X).components_)
    assert not hasattr(many, "validation_score_")
