"""Several threads at one TemperedLDA: readers see whole steps, and writers wait for one another.

docs/threads.md has the policy.
"""

import copy
import pickle
import threading
import time

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from annealvi import TemperedLDA, Variational
from tests.models.lda.streams import K, V, stream
from tests.side_by_side import PATIENCE, at_once, beside

X, Z = stream(60), stream(6, seed=1)
#: Few words a step, so that rows wait for their steps; and all of them.
SMALL, LARGE = dict(batch_size=4), dict(batch_size=40)


def estimator(**parameters):
    """A stream in float64, so that its state takes X as it is."""
    defaults = dict(random_state=0, total_samples=600, dtype="float64")
    return TemperedLDA(K, **(defaults | parameters))


def portions(lda, n=12):
    for _ in range(n):
        lda.partial_fit(X)
    return lda


def digest(answer):
    return answer.tobytes() if isinstance(answer, np.ndarray) else repr(answer)


READERS = {
    "transform": lambda lda: lda.transform(Z),
    "score": lambda lda: lda.score(Z),
    "perplexity": lambda lda: lda.perplexity(Z),
    "components_": lambda lda: lda.components_.copy(),
    "exp_dirichlet_component_": lambda lda: lda.exp_dirichlet_component_,
    "top_words": lambda lda: lda.top_words(3),
    "document_temperatures": lambda lda: lda.document_temperatures(Z),
    "learned": lambda lda: lda.transform(Z, temperature="learned"),
    "pickle": lambda lda: pickle.loads(pickle.dumps(lda.__getstate__()["_state"])).perplexity(
        Z * 1.0
    ),
    "deepcopy": lambda lda: copy.deepcopy(lda).score(Z),
    "copy": lambda lda: copy.copy(lda).perplexity(Z),
    "components_ of a copy": lambda lda: copy.copy(lda).components_.copy(),
}


@pytest.mark.parametrize("sizes", [SMALL, LARGE], ids=["few words", "all words"])
def test_readers_see_whole_steps(sizes):
    lda = estimator(temperature=Variational(t_max=4), **sizes)
    states = {name: set() for name in READERS}

    def note(lda, monitor):
        for name, read in READERS.items():
            states[name].add(digest(read(lda)))

    lda.set_params(callback=note).partial_fit(X[:4])
    again = copy.deepcopy(lda).set_params(callback=None)
    note(again, None)
    n_portions = 1 if sizes is SMALL else 6
    portions(lda, n_portions)
    _, found = beside(
        lambda: portions(again, n_portions),
        *[lambda read=read: digest(read(again)) for read in READERS.values()],
    )
    assert_array_equal(again.components_, lda.components_)
    for (name, seen), answers in zip(states.items(), found, strict=True):
        assert set(answers) <= seen, name


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_writers_take_turns(n_jobs):
    expected = portions(estimator(batch_size=20), 20)
    lda = estimator(batch_size=20, n_jobs=n_jobs)
    at_once(*[lambda: portions(lda, 5)] * 4)
    assert lda.n_batch_iter_ == expected.n_batch_iter_ == 61
    assert_array_equal(lda.components_, expected.components_)
    assert_array_equal(lda.temperature_path_, expected.temperature_path_)


def test_fits_of_one_estimator_take_turns():
    expected = estimator(max_iter=3, n_init=2).fit(X)
    lda = estimator(max_iter=3, n_init=2, n_jobs=2)
    thetas = at_once(*[lambda: lda.fit_transform(X)] * 3)
    assert_array_equal(lda.components_, expected.components_)
    for theta in thetas:
        assert_array_equal(theta, thetas[0])


ATTRIBUTES = ["n_batch_iter_", "n_iter_", "settings_", "history_", "n_features_in_"]
ATTRIBUTES += ["temperature_", "temperature_path_", "temperature_posterior_"]
ATTRIBUTES += ["temperature_posterior_path_", "doc_topic_prior_", "topic_word_prior_"]
RESULTS = ["bound_", "init_scores_"]


@pytest.mark.filterwarnings("ignore:The learned temperature did not cool")
def test_attributes_are_there_while_another_thread_fits():
    lda = estimator(temperature="variational", batch_size=10, max_iter=1).fit(X)

    def fits():
        for _ in range(4):
            lda.fit(X)

    def look(names):
        for name in names:
            getattr(lda, name)

    beside(fits, *[lambda: look(ATTRIBUTES + RESULTS)] * 2)
    beside(lambda: portions(lda, 6), *[lambda: look(ATTRIBUTES)] * 2)


def test_a_reader_beside_fits_to_other_vocabularies():
    narrow = X[:, : V // 2]
    lda = estimator(max_iter=1)
    answers = {lda.fit(data).transform(Z[:, : data.shape[1]]).tobytes() for data in (X, narrow)}

    def fits():
        for _ in range(6):
            lda.fit(X).fit(narrow)

    def read(n_features):
        try:
            return lda.transform(Z[:, :n_features]).tobytes()
        except ValueError as error:
            assert "features" in str(error)  # scikit-learn's words
            return None

    _, found = beside(fits, lambda: read(V), lambda: read(V // 2))
    assert set(found[0] + found[1]) <= answers | {None}
    assert any(answer is not None for answer in found[1])


def test_a_callback_may_read_in_other_threads_and_write_in_its_own():
    def callback(lda, monitor):
        own = lda.transform(Z)
        for other in at_once(*[lambda: lda.transform(Z)] * 2):
            assert_array_equal(other, own)
        lda.components_ = lda.components_ * 1.5
        lda.topic_word_prior_ = 0.2
        kept.append((lda.components_, lda.components_.copy()))

    kept = []
    lda = estimator(batch_size=20, max_iter=1, callback=callback).fit(X).partial_fit(X)
    assert len(kept) == 6
    assert lda.topic_word_prior_ == 0.2
    for array, before in kept[:-1]:  # no step writes to an array that the user has
        assert_array_equal(array, before)


def test_a_copy_goes_on_for_itself():
    lda = estimator(batch_size=20).partial_fit(X)
    expected = copy.deepcopy(lda)
    before = lda.components_.copy()
    for other in (copy.copy(lda), copy.deepcopy(lda)):
        other.partial_fit(X)
        other.components_ = np.ones((K, V))
        other.score(Z)
        assert_array_equal(lda.components_, before)
    assert_array_equal(lda.partial_fit(X).components_, expected.partial_fit(X).components_)


def test_an_assignment_waits_for_the_portion():
    lda = estimator(batch_size=5).partial_fit(X)
    begun = threading.Event()
    steps = []

    def callback(lda, monitor):
        begun.set()
        time.sleep(0.001)
        steps.append(lda.doc_topic_prior_)

    lda.callback = callback

    def assign():
        assert begun.wait(PATIENCE)
        lda.doc_topic_prior_ = 0.7
        lda.components_ = np.ones((K, V))

    at_once(lambda: lda.partial_fit(X), assign)
    assert len(steps) == 12 and 0.7 not in steps
    assert lda.doc_topic_prior_ == 0.7
    assert_array_equal(lda.components_, np.ones((K, V)))


@pytest.mark.slow
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_everything_at_once_for_a_while(n_jobs):
    lda = estimator(batch_size=7, max_iter=2, n_jobs=n_jobs).fit(X)
    until = time.monotonic() + 10

    def repeat(*actions):
        def run():
            while time.monotonic() < until:
                for action in actions:
                    action()

        return run

    def assign():
        lda.components_ = lda.components_ + 1e-3
        lda.doc_topic_prior_ = 0.2

    at_once(
        repeat(lambda: lda.partial_fit(X), lambda: lda.fit(X)),
        repeat(lambda: lda.partial_fit(Z)),
        repeat(assign),
        repeat(*[lambda read=READERS[n]: read(lda) for n in READERS if n != "learned"]),
        repeat(*[lambda read=READERS[n]: read(lda) for n in ("transform", "score")]),
    )
    assert np.all(np.isfinite(lda.components_))
    assert np.isfinite(lda.score(Z))
