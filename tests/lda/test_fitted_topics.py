"""Looking at the topics of a stream changes nothing, and what is assigned to them is honoured."""

import copy
import pickle
from concurrent.futures import ThreadPoolExecutor

import joblib
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from annealvi import TemperedLDA
from annealvi.model import Tempering
from annealvi.models.lda import LDA
from annealvi.temperature import Fixed
from tests.models.lda.streams import K, V, stream

TOLERANCE = {np.float64: 1e-10, np.float32: 1e-5}


def test_a_stream_that_goes_on_under_the_posterior_form():
    X = stream(40)
    expected = estimator(temperature=1).partial_fit(X[:30])
    expected._state.model.topics.catch_up()
    lda = estimator(temperature=1).partial_fit(X[:30])
    for each in (expected, lda):
        each.set_params(temperature=Fixed(2.0, form="posterior")).partial_fit(X[30:])
    assert_allclose(lda.components_, expected.components_, rtol=1e-10)


# -------------------------------------------------------------------- looking

PRESETS = ("sklearn", "annealvi")


def estimator(**parameters):
    defaults = dict(temperature=2.0, batch_size=3, total_samples=400, random_state=0)
    defaults["preset"] = "sklearn"
    return TemperedLDA(K, **(defaults | parameters))


LOOKS = {
    "components_": lambda lda, X: lda.components_,
    "kept components_": lambda lda, X: vars(lda).setdefault("_views", []).append(lda.components_),
    "exp_dirichlet_component_": lambda lda, X: lda.exp_dirichlet_component_,
    "transform": lambda lda, X: lda.transform(X),
    "transform, hot": lambda lda, X: lda.transform(X, temperature=3.0),
    "score": lambda lda, X: lda.score(X),
    "top_words": lambda lda, X: lda.top_words(),
    "document_temperatures": lambda lda, X: lda.document_temperatures(X[:5]),
    "pickle": lambda lda, X: pickle.dumps(lda._state.model),
    "topic_sums": lambda lda, X: lda._state.model.topics.sums,
    "lam": lambda lda, X: lda._state.model.topics.lam,
}


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("method", ["partial_fit", "fit"])
@pytest.mark.parametrize("look", LOOKS)
def test_looking_changes_nothing(look, method, preset):
    X = stream(36)
    held_out = stream(8, 40, seed=1)
    results = []
    for looked_at in (False, True):
        lda = estimator(learning_method="online", max_iter=2, preset=preset)
        if looked_at:
            lda.callback = lambda lda, monitor: LOOKS[look](lda, held_out)
        if method == "fit":
            lda.fit(X)
        else:
            for rows in range(0, 36, 9):
                lda.partial_fit(X[rows : rows + 9])
                if looked_at:
                    LOOKS[look](lda, held_out)
        results.append(
            (lda._state.model.topics._lam.copy(), lda.components_.copy(), lda.score(held_out))
        )
        results[-1] += (lda.transform(held_out),)
    for one, other in zip(*results, strict=True):
        assert_array_equal(one, other)


def by_joblib(mmap_mode):
    def again(lda, folder):
        joblib.dump(lda, folder / "lda.joblib")
        return joblib.load(folder / "lda.joblib", mmap_mode=mmap_mode)

    return again


COPIES = {
    "pickle": lambda lda, folder: pickle.loads(pickle.dumps(lda)),
    "deepcopy": lambda lda, folder: copy.deepcopy(lda),
    "joblib": by_joblib(None),
    "mmap": by_joblib("r"),
}


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("way", COPIES)
@pytest.mark.parametrize("looked_at", [False, True])
@pytest.mark.parametrize("preset", PRESETS)
def test_a_copy_continues_as_the_original(way, looked_at, dtype, preset, tmp_path):
    X = stream(60).astype(dtype)
    lda = estimator(preset=preset).partial_fit(X[:30])
    assert lda._state.model.topics._steps[1] != 1
    again = COPIES[way](lda, tmp_path)
    for each, look in ((lda, False), (again, looked_at)):
        view = each.components_ if look else None
        before = None if view is None else view.copy()
        for rows in (slice(30, 33), slice(33, 60)):
            each.partial_fit(X[rows])
        if look:
            assert_array_equal(view, before)
    assert_array_equal(lda.components_, again.components_)
    assert_array_equal(lda._state.model.topics.sums, again._state.model.topics.sums)
    assert_array_equal(lda.transform(X), again.transform(X))


# --------------------------------------------------------------------- writing


def test_what_was_assigned_is_what_follows():
    """Topics assigned before and after rows have missed steps."""
    X = stream(40)
    rng = np.random.RandomState(3)
    for written_after in (estimator(max_iter=2).fit, estimator().partial_fit):
        lda = written_after(X)
        written = lda.components_ * rng.uniform(0.5, 2, (K, V))
        lda.components_ = written
        fresh = LDA(K, V, alpha=1 / K, eta=1 / K)
        fresh.topics.assign(written)
        assert_allclose(lda.transform(X, normalize=False), fresh.documents.infer(X), rtol=1e-12)
        assert lda.score(X) == pytest.approx(fresh.elbo(X), rel=1e-12)


def test_threads_that_transform_after_an_assignment_of_priors():
    X = stream(40)
    lda = estimator().partial_fit(X[:10])
    expected = copy.deepcopy(lda)
    expected.topic_word_prior_ = lda.topic_word_prior_ = 0.5
    expected.transform(X)
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lda.transform, [X] * 8))
    assert_allclose(lda.components_, expected.components_, rtol=1e-12)


def test_a_bound_at_a_temperature_for_each_document():
    X = stream(40)
    model = estimator().partial_fit(X)._state.model
    inverse = np.linspace(0.2, 1, X.shape[0])
    model.documents.blocks = lambda rows: [
        slice(i, min(i + 8, rows.stop)) for i in range(0, rows.stop, 8)
    ]
    each = Tempering(inverse)
    gamma = np.concatenate(
        [model.documents.infer(X[d], Tempering(b)) for d, b in enumerate(inverse)]
    )
    expected = [model.elbo(X[d], gamma[d : d + 1], Tempering(b)) for d, b in enumerate(inverse)]
    bound = model.documents.inferred_bound(X, each, each)
    assert bound == pytest.approx(np.sum(expected) - X.shape[0] * model.topics.bound(), rel=1e-9)
    assert model.elbo(X, None, each) == pytest.approx(bound + model.topics.bound())


@pytest.mark.parametrize("method", ["fit", "partial_fit"])
def test_a_prior_assigned_in_a_callback_holds_from_the_next_step_on(method):
    """Whether somebody looks at the fit or not."""

    X = stream(30)

    def fitted(looks):
        def callback(lda, monitor):
            if monitor.step == 1:
                lda.doc_topic_prior_ = 2.0
            elif looks:
                lda.transform(X[:2])

        options = dict(max_iter=2, batch_size=10, total_samples=30, callback=callback)
        lda = TemperedLDA(3, random_state=0, **options)
        return getattr(lda, method)(X).components_

    assert_array_equal(fitted(True), fitted(False))
