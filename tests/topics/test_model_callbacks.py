"""Callbacks of a model of texts: they see each step of the fit of its topics."""

import numpy as np
import pytest

from annealvi import TemperedLDA, TopicModel
from annealvi.topics import choose_n_topics
from tests import callbacks
from tests.topics.corpus import make_texts

TEXTS = make_texts(60)


def model(**parameters):
    lda = TemperedLDA(max_iter=3, n_init=1, temperature=1, batch_size=20)
    return TopicModel(2, lda=lda, random_state=0).set_params(**parameters)


class Log(callbacks.Log):
    def on_fit_task_begin(self, estimator, context, *, X=None, y=None):
        assert isinstance(estimator, TopicModel) and X == TEXTS and len(y) == len(X)
        super().on_fit_task_begin(estimator, context)


@pytest.mark.parametrize("method", ["fit", "fit_transform"])
def test_scikit_learns_callbacks_see_the_steps_of_the_topics(callback, method):
    log, plain = Log(), model().fit(TEXTS)
    fitted = model().set_callbacks(log)
    getattr(fitted, method)(iter(TEXTS))
    assert log.events == ["setup", "fit", *["step"] * 9, "teardown"]
    scores = [score for *_, score in log.offered]  # after each pass, and at the end
    assert len(scores) == 4 and len(set(scores)) == 3
    assert scores[-1] == fitted.score(TEXTS) == plain.score(TEXTS)
    assert np.array_equal(fitted.components_, plain.components_)
    for _, offered, score in log.offered:  # they stay as they were, and look as after a fit
        assert offered.score(TEXTS) == score and offered.lda_.callback is None
    assert fitted.lda_.callback is None
    assert vars(fitted).keys() - vars(plain).keys() == {"_skl_callbacks"}


def test_the_callbacks_of_the_topics_stay(callback):
    seen, log = [], Log()
    own = [lambda lda, monitor: seen.append(monitor.step)]
    fitted = model(lda__callback=own).set_callbacks(log).fit(TEXTS)
    assert seen == [*range(1, 10)] and len(log.offered) == 4
    assert fitted.lda_.callback is own


def test_an_error_ends_the_callbacks_and_keeps_the_steps(callback):
    log = Log(fail_at=4)
    fitted = model().set_callbacks(log)
    with pytest.raises(ZeroDivisionError):
        fitted.fit(TEXTS)
    assert log.events[-1] == "teardown" and len(fitted.lda_.temperature_path_) == 5
    assert fitted.lda_.callback is None


def test_callbacks_of_the_lda_see_its_fit_and_not_those_that_compare_numbers(callback):
    class Counts(Log):
        def on_fit_task_begin(self, estimator, context):
            self.events.append((type(estimator).__name__, context.task_name))

    log = Counts()
    lda = TemperedLDA(max_iter=2, n_init=1, temperature=1).set_callbacks(log)
    TopicModel("auto", lda=lda, random_state=0).fit(TEXTS)
    assert log.events.count(("TemperedLDA", "fit")) == log.events.count("setup") == 1
    choose_n_topics(TEXTS, [2, 3], n_runs=1, model=TopicModel(lda=lda))
    assert log.events.count("setup") == 1
