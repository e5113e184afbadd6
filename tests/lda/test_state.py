"""The state of a fit, and several threads at one estimator (docs/look_up/threads.md)."""

import copy
import pickle
from types import NoneType

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy import sparse

from annealvi import LocalVariational, TemperedLDA, Variational
from annealvi.lda.state import LDAState
from annealvi.models.lda import CPUEngine
from tests.asserts import refused
from tests.marks import cases
from tests.models.lda.streams import K, stream
from tests.side_by_side import at_once, beside

PLAIN = (NoneType, bool, int, float, str, np.generic, np.dtype, np.random.RandomState)


def odd_parts(value, way="state", seen=None):
    """What is neither a plain value nor an object of ours made of these."""
    seen = set() if seen is None else seen
    if isinstance(value, PLAIN) or id(value) in seen:
        return []
    seen.add(id(value))
    if isinstance(value, np.ndarray):
        return [way] if value.dtype.kind == "O" else []
    if sparse.issparse(value):
        return []
    if isinstance(value, dict):
        parts = value.items()
    elif isinstance(value, (list, tuple)):
        parts = enumerate(value)
    elif type(value).__module__.startswith("annealvi.") and not isinstance(value, TemperedLDA):
        parts = value.__getstate__().items()
    else:
        return [f"{way}: {type(value).__name__}"]
    return [odd for name, part in parts for odd in odd_parts(part, f"{way}.{name}", seen)]


@pytest.mark.filterwarnings("ignore:The learned temperature did not cool")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@cases(
    "parameters",
    {},
    {"temperature": Variational(), "doc_topic_prior": "learn"},
    {"temperature": LocalVariational(normaliser="corpus")},
    {"validation_fraction": 0.2, "n_init": 2},
    {"preset": "sklearn", "init": "random"},
)
def test_a_state_is_made_of_plain_values(counts, parameters):
    lda = TemperedLDA(3, max_iter=2, random_state=0, callback=lambda *args: None, **parameters)
    lda.fit(counts)
    assert odd_parts(lda.__getstate__()["_state"]) == []
    lda.partial_fit(counts)
    assert odd_parts(lda.__getstate__()["_state"]) == []


def test_what_is_looked_for_is_found():
    assert odd_parts({"a": [lambda: 1], "b": TemperedLDA()}) == [
        "state.a.0: function",
        "state.b: TemperedLDA",
    ]


def test_an_estimator_has_parameters_and_a_state(counts):
    lda = TemperedLDA(3, max_iter=2, random_state=0)
    parameters = set(lda.get_params())
    lda.fit(counts)
    assert set(vars(lda)) - parameters == {"_state", "n_features_in_"}


@cases(
    ("name", "value", "message"),
    ("components_", np.ones((4, 41)), "must be an array of numbers of shape \\(3, 41\\)"),
    ("doc_topic_prior_", -1.0, "'doc_topic_prior_' parameter of TemperedLDA must be positive"),
)
def test_a_wrong_assignment_in_a_callback_is_the_users_error(counts, name, value, message):
    """It is raised at once, and the fit is left as it was at that step."""

    def callback(estimator, monitor):
        if monitor.step == 2:
            setattr(estimator, name, value)

    lda = TemperedLDA(3, batch_size=20, random_state=0, callback=callback)
    refused(message, lda.fit, counts)
    assert lda.n_batch_iter_ == 3 and lda.components_.shape == (3, 41)


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
    "pickle": lambda lda: LDAState.of(
        pickle.loads(pickle.dumps(lda.__getstate__()["_state"]))
    ).perplexity(CPUEngine(), Z * 1.0),
    "deepcopy": lambda lda: copy.deepcopy(lda).score(Z),
    "copy": lambda lda: copy.copy(lda).perplexity(Z),
    "components_ of a copy": lambda lda: copy.copy(lda).components_.copy(),
}


@pytest.mark.slow
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
    readers = [lambda read=read: digest(read(again)) for read in READERS.values()]
    _, found = beside(lambda: portions(again, n_portions), *readers)
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


def test_a_callback_may_read_in_other_threads_and_write_in_its_own():
    def callback(lda, monitor):
        own = lda.transform(Z)
        for other in at_once(*[lambda: lda.transform(Z)] * 2):
            assert_array_equal(other, own)
        lda.components_ = lda.components_ * 1.5
        lda.topic_word_prior_ = 0.2
        kept.append((lda.components_, lda.components_.copy()))

    kept = []
    lda = estimator(batch_size=20, max_iter=1, n_init=1, temperature=1, callback=callback)
    lda.fit(X).partial_fit(X)
    assert len(kept) == 6
    assert lda.topic_word_prior_ == 0.2
    for array, before in kept[:-1]:  # no step writes to an array that the user has
        assert_array_equal(array, before)
