"""scikit-learn's callbacks, which see the starts and steps of a fit as tasks."""

import numpy as np
import pytest
from sklearn.base import clone

from annealvi import TemperedFMM, TemperedGaussianMixture, TemperedLDA
from tests import callbacks
from tests.marks import cases

callback = pytest.importorskip("sklearn.callback", reason="scikit-learn has them since 1.9")

RNG = np.random.RandomState(0)
COUNTS = RNG.poisson(1.0, (60, 12))
POINTS = RNG.standard_normal((40, 3))


class Log(callbacks.Log):
    """With the ends of tasks and their numbers."""

    def on_fit_task_begin(self, estimator, context, *, X=None, y=None):
        assert X is not None and len(y) == len(X)
        self.events.append(("begin", context.task_name, context.task_id))

    def on_fit_task_end(self, estimator, context, *, X=None, fitted_estimator=None):
        self.events.append(("end", context.task_name, context.task_id))
        return super().on_fit_task_end(estimator, context, X=X, fitted_estimator=fitted_estimator)


def steps(numbers, last=None):
    """The events of steps, and of one that was opened and never made."""
    numbers = [*numbers] + ([] if last is None else [last])
    return [(what, "step", number) for number in numbers for what in ("begin", "end")]


@cases(
    "estimator, X",
    (TemperedLDA(3, max_iter=2, temperature=2, batch_size=20, random_state=0), COUNTS),
    (TemperedGaussianMixture(2, max_iter=6, tol=0, random_state=0), POINTS),
    (TemperedFMM(2, max_iter=6, tol=0, random_state=0), POINTS),
    ids=["lda", "gmm", "fmm"],
)
def test_steps_are_tasks_of_the_fit_and_change_no_result(estimator, X):
    log = Log()
    fitted = clone(estimator).set_callbacks(log).fit(X)
    fit = [("begin", "fit", 0), *steps(range(6)), ("end", "fit", 0)]
    assert log.events == ["setup", *fit, "teardown"]
    n_scores = 2 if isinstance(estimator, TemperedLDA) else 6  # one after each pass
    assert [name for name, *_ in log.offered] == ["step"] * n_scores + ["fit"]
    plain = clone(estimator).fit(X)
    assert log.offered[-1][2] == fitted.score(X) == plain.score(X)
    assert vars(fitted).keys() - vars(plain).keys() == {"_skl_callbacks"}


def test_starts_are_tasks_between():
    log = Log()
    options = dict(max_iter=2, n_init=2, preset="sklearn", learning_method="online")
    lda = TemperedLDA(3, random_state=0, **options)
    lda.set_callbacks(log).fit(COUNTS)
    one = steps(range(2))
    starts = [[("begin", "run", k), *one, ("end", "run", k)] for k in range(2)]
    fit = [("begin", "fit", 0), *starts[0], *starts[1], ("end", "fit", 0)]
    assert log.events == ["setup", *fit, "teardown"]
    # the estimator has the topics of another start when the next one begins
    assert [name for name, *_ in log.offered] == ["step"] * 4 + ["fit"]


def test_a_callback_stops_the_fit():
    log = Log(stop_at=1)
    lda = TemperedLDA(3, max_iter=5, n_init=2, temperature=2).set_callbacks(log).fit(COUNTS)
    assert lda.n_batch_iter_ == 3 and lda.init_scores_.shape == (1,)
    assert log.events[-3:] == [("end", "run", 0), ("end", "fit", 0), "teardown"]


def test_a_fit_that_converges_ends_its_open_step():
    log = Log()
    n_steps = TemperedGaussianMixture(1, max_iter=50).set_callbacks(log).fit(POINTS).n_iter_
    assert n_steps < 50
    assert log.events[2:-2] == steps(range(n_steps), last=n_steps)


@pytest.mark.parametrize("make", [TemperedLDA, TemperedGaussianMixture])
def test_an_error_ends_the_callbacks_and_keeps_the_steps(make):
    log, X = Log(fail_at=1), COUNTS.astype(float)
    estimator = make(2, max_iter=4).set_callbacks(log)
    with pytest.raises(ZeroDivisionError):
        estimator.fit(X)
    assert log.events.count("setup") == log.events.count("teardown") == 1
    assert len(estimator.temperature_path_) == 2  # as after an error of `callback`
    assert not {"_callback_fit_ctx", "_skl_callbacks_to_teardown"} & vars(estimator).keys()


def test_scikit_learns_monitor_scores_each_pass():
    monitor = callback.ScoringMonitor(scoring={"bound": lambda lda, X, y: lda.score(X)})
    lda = TemperedLDA(3, max_iter=3, n_init=1, random_state=0).set_callbacks(monitor).fit(COUNTS)
    scores = [row["bound"] for row in monitor.get_logs().data if row["task_name"] == "step"]
    assert len(scores) == 3 and scores[-1] == lda.score(COUNTS) and len(set(scores)) == 3


def test_a_stream_tells_scikit_learns_callbacks_nothing():
    log = Log()
    TemperedLDA(2).set_callbacks(log).partial_fit(COUNTS)
    assert log.events == []
