"""Several starts that become one fit: their topics are put together and merged."""

from itertools import combinations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import ConvergenceWarning

from annealvi import Annealed, Fixed, TemperedLDA
from annealvi.datasets import load_arxiv_abstracts, make_topic_corpus
from annealvi.lda.fit import Fit, MergedFit
from annealvi.lda.settings import FINISH
from annealvi.metrics import topic_stability
from annealvi.models.lda.merging import Largest, merged_topics, support
from tests.lda.resumed import bits, corpus
from tests.marks import cases

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


@pytest.fixture
def X():
    return corpus()


def merged(**parameters):
    settings = {"n_components": 4, "n_init": 3, "batch_size": 16, "random_state": 0}
    return TemperedLDA(**settings | parameters)


def stages(lda, X, act=None):
    """The number of the start at each step, None once they are merged; `act` is called with it."""
    seen = []

    def callback(estimator, monitor):
        runs = vars(estimator)["_runs"]
        run = runs.under_way
        seen.append(None if isinstance(run, MergedFit) else run.number)
        if act is not None:
            act(estimator, seen[-1])

    lda.set_params(callback=callback)
    try:
        lda.fit(X)
    finally:
        lda.set_params(callback=None)
    return seen


def test_what_a_fit_does(X, finish):
    """Passes of each start; then some over the minibatches, at least 10 steps, and the finish."""
    finish(2)
    seen = stages(merged(), X)
    of_start = 5 * 5  # minibatches, passes: at least 25 steps
    assert [seen.count(number) for number in (0, 1, 2, None)] == [of_start] * 3 + [2 * 5 + 2]
    assert seen == sorted(seen, key=lambda number: 3 if number is None else number)


def test_settings_and_results(X, finish):
    finish(2)
    lda = merged().fit(X)
    assert lda.settings_["merged"] and lda.settings_["max_iter"] == 5
    assert lda.n_iter_ == 5 + 2 + 2
    assert lda.bound_ == pytest.approx(lda.perplexity(X), rel=1e-6)
    with pytest.raises(AttributeError, match="exists only after a `fit` whose runs are not merged"):
        assert lda.init_scores_
    parameters = {name: value for name, value in lda.settings_.items() if name != "merged"}
    again = TemperedLDA(n_components=4, random_state=0, **parameters).fit(X)
    assert bits(again, X) == bits(lda, X)


def test_the_first_start_goes_on_with_the_mean_of_the_counts(X, finish):
    """One topic has nothing to be merged with but its likes: it has the counts of all words."""
    finish(0)
    lda = merged(n_components=1, dtype="float64").fit(X)
    counts = lda.components_[0] - lda.topic_word_prior_
    assert counts.sum() == pytest.approx(X.sum(), rel=0.01)
    assert_allclose(counts, np.asarray(X.sum(axis=0)).ravel(), rtol=0.1, atol=1.0)
    assert lda.topic_support_ == pytest.approx(1, abs=1e-3)


BEST = {
    "topics of unlike priors": {"doc_topic_prior": [0.1, 0.2, 0.3, 0.4]},
    "priors of topics": {"topic_word_prior": np.repeat([[0.1], [0.2]], 2, axis=0) * np.ones(60)},
    "learned priors": {"doc_topic_prior": "learn"},
    "learned temperature": {"temperature": "variational"},
    "hot": {"temperature": 2.0},
    "scikit-learn": {"preset": "sklearn"},
    "given topics": {"init": np.random.default_rng(0).gamma(1.0, size=(4, 60))},
}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:The learned temperature did not cool")
@pytest.mark.parametrize("name", BEST)
def test_where_starts_are_not_merged_the_best_is_kept(X, name):
    parameters = BEST[name]
    found = merged(**parameters).fit(X)
    assert not found.settings_["merged"]
    assert found.bound_ in found.init_scores_ and len(found.init_scores_) == 3
    if name in ("topics of unlike priors", "learned temperature"):
        # the best by the ELBO, of which the bound leaves out the part of the topics
        assert found.bound_ < 1.001 * min(found.init_scores_)
    else:
        assert found.bound_ == min(found.init_scores_)
    with pytest.raises(AttributeError, match="merges runs, with n_init of 2 or more"):
        assert found.topic_support_
    # and one start is made where their number is left open
    lda = merged(**parameters | {"n_init": "auto"}).fit(X)
    one = merged(**parameters | {"n_init": 1}).fit(X)
    assert lda.settings_["n_init"] == 1 and lda.init_scores_.shape == (1,)
    assert_array_equal(lda.components_, one.components_)


@pytest.mark.slow
@cases(
    "parameters, n_init",
    *(({}, 8), ({"n_components": 80}, 5), ({"learning_method": "batch"}, 4)),
    ({"temperature": Annealed(2.0, passes=30)}, 3),
    *(({"max_iter": n}, n_init) for n, n_init in ((1, 8), (10, 8), (20, 5), (30, 3), (60, 2))),
)
def test_what_is_given_is_never_cut(X, parameters, n_init):
    """As many runs as make three times the usual passes, of 37, and two at least."""
    lda = merged(n_init="auto", **parameters).fit(X)
    assert lda.settings_["merged"] and lda.settings_["n_init"] == n_init
    if max_iter := parameters.get("max_iter"):
        one = merged(n_init=1, max_iter=max_iter).fit(X)
        assert one.settings_["max_iter"] == lda.settings_["max_iter"] == max_iter
        assert lda.topic_support_.shape == (4,) and not one.settings_["merged"]
    assert merged(n_init=9).fit(X).settings_["max_iter"] == 5


@pytest.mark.thinned
@pytest.mark.parametrize("stage", [0, 1, None])
@pytest.mark.parametrize("error", [StopIteration, KeyboardInterrupt, ZeroDivisionError])
def test_a_fit_that_is_stopped_leaves_what_there_is(X, stage, error, finish):
    def act(estimator, now):
        assert estimator.components_.shape == (4, 60)
        assert estimator.transform(X[:3]).shape == (3, 4)
        if now == stage:
            raise error

    finish(3)
    lda = merged()
    if error is StopIteration:
        stages(lda, X, act)
        assert hasattr(lda, "topic_support_") == (stage != 0)  # of the starts that have ended
        assert lda.bound_ == pytest.approx(lda.perplexity(X), rel=1e-6)
    else:
        with pytest.raises(error):
            stages(lda, X, act)
    assert lda.components_.shape == (4, 60)
    lda.partial_fit(X)


PRIORS = {
    "topic_word_prior_": np.random.default_rng(0).uniform(0.1, 0.5, (4, 60)),
    "doc_topic_prior_": np.array([0.01, 0.1, 0.5, 5.0]),
}


@pytest.mark.parametrize(("name", "prior"), PRIORS.items(), ids=PRIORS)
def test_priors_that_a_callback_assigns_to_single_topics_are_kept(X, name, prior, finish):
    """Topics of other priors are not merged: the first start goes on with its own."""

    def assign(estimator, stage):
        if stage == 0:
            setattr(estimator, name, prior)

    finish(0)
    lda = merged()
    stages(lda, X, assign)
    assert_array_equal(getattr(lda, name), prior)
    assert not hasattr(lda, "topic_support_")


@pytest.mark.parametrize("n_jobs", [1, 2, 8])
def test_what_follows_the_merge_has_all_threads(X, n_jobs, monkeypatch):
    seen, passes = [], Fit.run

    def watched(fit):
        seen.append((isinstance(fit, MergedFit), fit.engine.n_threads))
        passes(fit)

    monkeypatch.setattr(Fit, "run", watched)
    merged(n_jobs=n_jobs).fit(X)
    assert set(seen) == {(False, max(1, n_jobs // 3)), (True, n_jobs)}


@pytest.mark.parametrize("temperature", [1.0, Fixed(1.0), Annealed(3.0), Annealed(3.0, passes=7)])
def test_other_ways_to_t_1(X, temperature):
    lda = merged(temperature=temperature).fit(X)
    assert lda.settings_["merged"]
    assert lda.settings_["max_iter"] == getattr(temperature, "passes", None) or 5
    assert_array_equal(lda.temperature_path_[-5:], 1)


@pytest.mark.slow
def test_validation_ends_the_finishing_passes(X):
    settings = {"validation_fraction": 0.2, "n_components": 40}
    lda = merged(**settings).fit(X)
    scores = lda.history_["validation"]
    scores = scores[np.isfinite(scores)]  # of the merged topics alone
    assert lda.settings_["merged"] and 4 <= len(scores) < 2 + FINISH
    assert lda.validation_score_ == scores.max()
    for others in ({"learning_method": "batch"}, {"temperature": 1}):
        lda = merged(**settings, **others).fit(X)
        assert np.isfinite(lda.history_["validation"]).sum() > 2
    lda = merged(**settings).fit(X)
    assert lda.n_iter_ == lda.settings_["max_iter"] + np.argmax(scores) + 1


def test_evaluations(X, finish):
    """They change nothing, and end no more than a start or the finish."""
    finish(2)
    settings = {"n_components": 8}
    lda = merged(evaluate_every=1, perp_tol=0.0, **settings).fit(X)
    plain = merged(**settings).fit(X)
    assert_allclose(lda.components_, plain.components_, rtol=1e-3)
    assert np.count_nonzero(np.isfinite(lda.history_["perplexity"])) == lda.n_iter_


def test_what_is_printed(X, capsys, finish):
    finish(1)
    merged(n_init=2, verbose=2).fit(X)
    lines = capsys.readouterr().out.splitlines()
    assert lines[:5] == [f"run 1, iteration: {n} of max_iter: 5" for n in range(1, 6)]
    assert lines[9:] == [
        "run 2, iteration: 5 of max_iter: 5",
        "merged, iteration: 1 of 2",
        "merged, iteration: 2 of 2",
        "iteration: 1 of at most 1 batch passes at the end",
    ]
    merged(n_init=2, verbose=1).fit(X)
    lines = capsys.readouterr().out.splitlines()
    assert lines[:-1] == [f"iteration: {n} of max_iter: 5" for n in range(1, 6)]
    assert lines[-1] == "iteration: 1 of at most 1 batch passes at the end"


def test_a_default_fit_warns_of_nothing(X, recwarn, finish):
    finish(2)  # which is too few for the topics to converge
    merged(n_components=8).fit(X)
    assert not recwarn.list
    with pytest.warns(ConvergenceWarning, match="Use n_init=1 with a larger max_iter, or"):
        merged(evaluate_every=1, perp_tol=0.0).fit(X)


def test_support_by_its_definition():
    rng = np.random.default_rng(0)
    topics, *starts = rng.gamma(0.05, size=(4, 6, 300))
    starts[1][[3, 0]] = topics[[0, 5]] * [[2.0], [0.1]]  # in another order, of other sizes

    def largest(row):
        kept = np.zeros(300)
        some = np.argsort(row)[-50:]
        kept[some] = row[some]
        return kept / np.linalg.norm(kept)

    def cosine(topic, start):
        return max(largest(topic) @ largest(other) for other in start)

    expected = [np.mean([cosine(topic, start) for start in starts]) for topic in topics]
    assert_allclose(support(topics, [Largest.of(start) for start in starts]), expected)
    assert min(expected[0], expected[5]) > 1 / 3 > max(expected[1:5])


def test_topics_that_are_assigned_have_no_support(X):
    lda = merged().fit(X)
    assert lda.topic_support_.shape == (4,)
    assert np.all((lda.topic_support_ > 0) & (lda.topic_support_ <= 1))
    lda.components_ = lda.components_[::-1].copy()
    with pytest.raises(AttributeError):
        assert lda.topic_support_


@pytest.mark.parametrize("prior", [0.1, 50.0])
def test_the_prior_of_words_is_no_part_of_support(X, prior, finish):
    finish(0)
    lda = merged(topic_word_prior=prior, n_components=3).fit(100 * X)
    assert lda.topic_support_.mean() > 0.5


def test_small_counts_are_merged_by_their_words():
    """Not in the order of their numbers, because all seem to be empty."""
    one = np.kron(np.eye(4), np.full(10, 1e-5))
    assert_allclose(merged_topics([one, one[::-1].copy()], 4), one, atol=1e-12)


@pytest.mark.slow
@pytest.mark.statistical
def test_planted_topics_have_more_support_than_spurious_ones():
    """15 topics are planted, 30 are fitted: the planted ones are found by most starts."""
    made = make_topic_corpus(1500, 500, 15, document_length=60, random_state=0)
    planted = made.topics / np.linalg.norm(made.topics, axis=1, keepdims=True)
    lda = TemperedLDA(30, random_state=0).fit(made.data)
    found = lda.components_ / np.linalg.norm(lda.components_, axis=1, keepdims=True)
    real = (found @ planted.T).max(axis=1) > 0.9
    assert 10 <= real.sum() <= 20
    assert lda.topic_support_[real].mean() > lda.topic_support_[~real].mean() + 0.3


@pytest.mark.slow
@pytest.mark.statistical
def test_merged_runs_find_a_better_optimum_where_data_are_plenty():
    """Lower bounds, and topics that differ less between seeds."""
    X = load_arxiv_abstracts().data
    ours, single = (
        [TemperedLDA(20, n_init=n, random_state=s).fit(X) for s in range(4)] for n in (8, 1)
    )
    assert np.mean([lda.bound_ for lda in ours]) < np.mean([lda.bound_ for lda in single])

    def stability(fits):
        pairs = combinations([lda.components_ for lda in fits], 2)
        return np.mean([topic_stability(*pair) for pair in pairs])

    assert stability(ours) > stability(single) + 0.02
