"""`partial_fit` of many small portions: buffers are kept, and results do not depend on that."""

import copy
import pickle
import weakref

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from annealvi import Annealed, LocalVariational, TemperedLDA, Variational
from tests.callbacks import stop_at
from tests.marks import cases
from tests.models.lda.streams import stream

X = stream(90, seed=1)
#: Portions of different sizes, the largest not first.
PORTIONS = [X[a:b] for a, b in ((0, 7), (7, 8), (8, 40), (40, 43), (43, 90))]
CASES = {
    "default": {},
    "scikit-learn": {"preset": "sklearn", "learning_method": "online"},
    "two minibatches a portion": {"batch_size": 20},
    "posterior": {"temperature": Annealed(3, passes=2, form="posterior"), "learning_offset": 50},
    "learned": {"temperature": Variational()},
    "a temperature each": {"temperature": LocalVariational()},
    "learned priors": {"doc_topic_prior": "learn"},
}


def lda(**options):
    options = {"total_samples": 90, "random_state": 0} | options
    return TemperedLDA(4, **options)


def buffers(model):
    """The engine with the buffers of the last call."""
    return vars(model).get("_engine")


@pytest.mark.thinned
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("case", CASES)
def test_the_same_bits_with_kept_and_with_released_buffers(case, dtype):
    kept, released = lda(**CASES[case]), lda(**CASES[case])
    for number, portion in enumerate(PORTIONS):
        n_jobs = 1 + number % 2
        for model in (kept, released):
            model.set_params(n_jobs=n_jobs).partial_fit(portion.astype(dtype))
        released.release_buffers()
        assert buffers(kept) is not None
        assert_array_equal(kept.components_, released.components_)
    assert_array_equal(kept.transform(X), released.transform(X))


@cases(
    "let_go",
    TemperedLDA.release_buffers,
    lambda model: model.fit(X),
    lambda model: setattr(model, "components_", np.ones((3, X.shape[1]))),
    ids=["release_buffers", "fit", "components_"],
)
def test_memory_is_given_back(let_go):
    model = lda(max_iter=1).partial_fit(X)
    values = weakref.ref(buffers(model)._statistics.values.base)
    assert values() is not None
    let_go(model)
    assert values() is None
    assert buffers(model) is None


def test_a_portion_without_words_is_told():
    model = lda().partial_fit(X[:7])
    with pytest.warns(UserWarning, match="has a counted word. Nothing is learned from them"):
        model.partial_fit(0 * X[:7])


def test_release_buffers_of_an_unfitted_estimator():
    model = lda()
    model.release_buffers()
    assert not hasattr(model, "components_")


def test_pickles_and_copies_are_without_buffers_and_go_on_to_the_same_bits():
    model = lda().partial_fit(PORTIONS[0])
    with_buffers = pickle.dumps(model)
    copies = [pickle.loads(with_buffers), copy.deepcopy(model), copy.copy(model)]
    assert all(buffers(copied) is None for copied in copies)
    model.release_buffers()
    assert len(pickle.dumps(model)) == len(with_buffers)
    model.partial_fit(PORTIONS[2])
    for copied in copies:
        assert_array_equal(copied.partial_fit(PORTIONS[2]).components_, model.components_)


@pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError, StopIteration])
def test_after_an_error_in_a_portion_the_stream_goes_on(error):
    interrupted, plain = (lda(batch_size=20, callback=c) for c in (stop_at(3, error), None))
    interrupted.partial_fit(PORTIONS[2])  # 2 steps
    if error is StopIteration:
        interrupted.partial_fit(PORTIONS[4])
    else:
        with pytest.raises(error):
            interrupted.partial_fit(PORTIONS[4])
        assert buffers(interrupted) is None
    assert interrupted.n_batch_iter_ == 4
    plain.partial_fit(PORTIONS[2]).partial_fit(PORTIONS[4][:20])
    # a step of fewer documents than a minibatch is scaled by their number
    assert_array_equal(interrupted.components_, plain.components_)
    for model in (interrupted, plain):
        model.set_params(callback=None).partial_fit(PORTIONS[0])
    assert_array_equal(interrupted.components_, plain.components_)


def test_topics_can_be_assigned_between_portions_and_in_a_callback():
    """In a callback they replace those of the running fit, whose number of topics stays."""

    def callback(model, monitor):
        if monitor.step == 2:
            model.components_ = fresh
            with pytest.raises(ValueError, match="components_"):
                model.components_ = fresh[:2]

    fresh = np.random.RandomState(0).gamma(1.0, 1.0, (4, X.shape[1])) + 0.1
    model = lda().partial_fit(X)
    model.components_ = fresh[:3]
    assert model.partial_fit(X[:5]).components_.shape == (3, X.shape[1])
    model = lda(callback=callback).partial_fit(X[:5]).partial_fit(X[5:9])
    assert_array_equal(model.components_, fresh.astype(model.dtype_))


def test_a_callback_may_fit_one_more_portion():
    def callback(model, monitor):
        if monitor.step == 1:
            model.partial_fit(X[:10])

    model = lda(callback=callback).partial_fit(X[10:20]).partial_fit(X[20:])
    plain = lda().partial_fit(X[10:20]).partial_fit(X[:10]).partial_fit(X[20:])
    assert_array_equal(model.components_, plain.components_)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_documents_that_change_in_place_between_portions(dtype):
    """A matrix that is used again: what is known of its words must not outlast a call."""

    def stream(portion):
        given = portion(X[:20].astype(dtype))
        model = lda(dtype=np.dtype(dtype).name)
        for _ in range(3):  # the index of a block is kept when it is seen again
            model.partial_fit(given())
        other = X[:20, ::-1].tocsr().astype(dtype)
        matrix = given()
        matrix.data, matrix.indices, matrix.indptr = other.data, other.indices, other.indptr
        matrix.sort_indices()
        return model.partial_fit(matrix).components_

    assert_array_equal(stream(lambda Z: lambda: Z), stream(lambda Z: Z.copy))


def test_a_temperature_that_changes_in_place_is_noticed():
    temperature = Annealed(2.0, passes=1e9)
    model = lda(temperature=temperature).partial_fit(PORTIONS[0])
    temperature.start = 3.0
    model.partial_fit(PORTIONS[1])
    assert model.temperature_path_ == pytest.approx([2, 3], rel=1e-6)


def test_parameters_that_change_between_portions_are_used():
    model = lda().partial_fit(PORTIONS[0])
    model.set_params(temperature=2.0).partial_fit(PORTIONS[1])
    model.temperature = 1
    model.partial_fit(PORTIONS[2])
    assert_array_equal(model.temperature_path_, [1, 2, 1])
