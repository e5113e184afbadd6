"""Several starts that become one fit: each is crossed with the best so far."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from annealvi import Annealed, Fixed, TemperedLDA
from annealvi.datasets import load_arxiv_abstracts
from tests.lda.resumed import bits, corpus


@pytest.fixture
def X():
    return corpus()


def crossed(**parameters):
    settings = {"n_components": 4, "n_init": 3, "batch_size": 16, "random_state": 0}
    return TemperedLDA(**settings | parameters)


def stages(lda, X, act=None):
    """The stage of the fit at each step; `act` is called with the estimator and the stage."""
    seen = []

    def callback(estimator, monitor):
        starts = vars(estimator)["_starts"]
        under_way = starts.under_way or starts.best
        seen.append((len(starts.scores), under_way.stage))
        if act is not None:
            act(estimator, under_way.stage)

    lda.set_params(callback=callback)
    try:
        lda.fit(X)
    finally:
        lda.set_params(callback=None)
    return seen


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_bit_identical_for_any_n_jobs_and_with_a_callback(X, dtype):
    X = X.astype(dtype)
    one = bits(crossed().fit(X), X)
    assert one == bits(crossed(n_jobs=3).fit(X.toarray()), X)
    assert one == bits(crossed(callback=lambda estimator, monitor: None).fit(X), X)


def test_what_a_fit_does(X):
    """Passes of a start, with the topics of two, of those merged from them; a finish at the end."""
    seen = stages(crossed(finish_iter=2), X)
    runs = [(number, stage, seen.count((number, stage))) for number, stage in dict.fromkeys(seen)]
    of_start = 5 * 4  # minibatches, passes
    later = [("start", of_start), ("double", 3), ("child", 5)]
    assert runs == [
        (0, "start", of_start + 5),
        *((number, *one) for number in (1, 2) for one in later),
        (3, "finish", 2),
    ]


def test_settings_and_scores(X):
    lda = crossed(finish_iter=0).fit(X)
    assert lda.settings_["combine"] == "cross" and lda.settings_["max_iter"] == 4
    assert lda.init_scores_.shape == (3,) and lda.bound_ == lda.init_scores_.min()
    assert lda.components_.shape == (4, 60)
    assert lda.n_iter_ == 4 + 3 + 5 or np.argmin(lda.init_scores_) == 0
    assert bits(TemperedLDA(n_components=4, random_state=0, **lda.settings_).fit(X), X) == bits(
        lda, X
    )


BEST = {
    "asked for": {"combine": "best"},
    "topics of unlike priors": {"doc_topic_prior": [0.1, 0.2, 0.3, 0.4]},
    "priors of topics": {"topic_word_prior": np.full((4, 60), 0.1)},
    "learned priors": {"doc_topic_prior": "learn"},
    "learned temperature": {"temperature": "variational"},
    "hot": {"temperature": 2.0},
    "validation": {"validation_fraction": 0.2},
    "scikit-learn": {"preset": "sklearn"},
    "warm": {"document_init": "warm"},
    "scarce": {"n_components": 80},
}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.filterwarnings("ignore:The learned temperature did not cool")
@pytest.mark.parametrize("parameters", BEST.values(), ids=BEST)
def test_where_starts_are_not_crossed_the_best_is_kept(X, parameters):
    X = X.minimum(1)  # 80 topics then have .4 words for each of their entries
    found = crossed(**parameters).fit(X)
    assert found.settings_["combine"] == "best"
    expected = crossed(**parameters | {"combine": "best"}).fit(X)
    assert_array_equal(found.components_, expected.components_)


def test_one_start_is_not_crossed(X):
    one = {"n_init": 1}
    assert bits(crossed(**one).fit(X), X) == bits(crossed(**one, combine="best").fit(X), X)


@pytest.mark.parametrize("stage", ["start", "double", "child", "finish"])
@pytest.mark.parametrize("error", [StopIteration, KeyboardInterrupt, ZeroDivisionError])
def test_a_fit_that_is_stopped_leaves_k_topics(X, stage, error):
    def act(estimator, now):
        assert estimator.components_.shape == (4, 60)
        assert estimator.transform(X[:3]).shape == (3, 4)
        if now == stage and len(vars(estimator)["_starts"].scores):
            raise error

    lda = crossed(finish_iter=3)
    if error is StopIteration:
        lda.set_params(callback=None)
        stages(lda, X, act)
        assert lda.bound_ == pytest.approx(lda.perplexity(X), rel=1e-6)
    else:
        with pytest.raises(error):
            stages(lda, X, act)
    assert lda.components_.shape == (4, 60)
    lda.partial_fit(X)


def test_priors_that_a_callback_assigns_to_single_topics_end_the_crossings(X):
    def assign(estimator, stage):
        estimator.topic_word_prior_ = np.full((4, 60), 0.2)

    seen = stages(crossed(finish_iter=0), X, assign)
    assert {stage for _, stage in seen} == {"start"}


@pytest.mark.parametrize("temperature", [1.0, Fixed(1.0), Annealed(3.0), Annealed(3.0, passes=7)])
def test_other_ways_to_t_1(X, temperature):
    lda = crossed(temperature=temperature).fit(X)
    assert lda.settings_["combine"] == "cross"
    assert lda.settings_["max_iter"] == getattr(temperature, "passes", None) or 4
    assert_array_equal(lda.temperature_path_[-8:], 1)


def test_evaluations_are_of_k_topics(X):
    """None is made while topics of two fits are fitted together, which it could end."""
    settings = {"n_components": 8, "finish_iter": 2}
    lda = crossed(evaluate_every=1, perp_tol=0.0, **settings).fit(X)
    plain = crossed(**settings).fit(X)
    assert_allclose(lda.components_, plain.components_, rtol=1e-3)
    assert np.argmin(lda.init_scores_) > 0
    assert np.count_nonzero(np.isfinite(lda.history_["perplexity"])) == lda.n_iter_ - 3


def test_what_is_printed(X, capsys):
    crossed(n_init=2, finish_iter=1, verbose=1).fit(X)
    lines = capsys.readouterr().out.splitlines()
    assert lines[4:6] == [f"start 1, over all documents, iteration: {n}" for n in (1, 2)]
    assert lines[13:15] == ["start 2, crossed, iteration: 1", "start 2, crossed, iteration: 2"]
    assert lines[16] == "start 2, merged, iteration: 1"
    assert lines[-1].endswith("iteration: 1 of finish_iter: 1")


@pytest.mark.slow
@pytest.mark.statistical
def test_crossed_starts_reach_lower_bounds_than_the_best_of_as_many():
    X = load_arxiv_abstracts().data
    for seed in range(3):
        one, other = (
            TemperedLDA(20, n_init=4, combine=combine, random_state=seed).fit(X)
            for combine in ("cross", "best")
        )
        assert one.bound_ < other.bound_
