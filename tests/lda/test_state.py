"""The state of a fit: made of what can be written to a file, and all that a fit is."""

import pickle
from types import NoneType

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy import sparse

from annealvi import LocalVariational, TemperedLDA, Variational

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
@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"temperature": Variational(), "doc_topic_prior": "learn"},
        {"temperature": LocalVariational(normaliser="corpus")},
        {"validation_fraction": 0.2, "n_init": 2},
        {"preset": "sklearn", "init": "random"},
    ],
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


def test_a_state_answers_without_an_estimator(counts):
    lda = TemperedLDA(3, max_iter=2, dtype="float64", random_state=0).fit(counts)
    state = pickle.loads(pickle.dumps(vars(lda)["_state"]))
    assert_array_equal(state.model.documents.infer(counts), lda.transform(counts, normalize=False))
    assert state.elbo(counts) == lda.score(counts)
    assert state.perplexity(counts) == lda.perplexity(counts)
    assert_array_equal(state.document_temperatures(counts), lda.document_temperatures(counts))


def test_starts_share_nothing(counts):
    """The best start is kept whole; the estimator's parameters are not touched."""
    lda = TemperedLDA(3, max_iter=2, n_init=3, n_jobs=2, random_state=0).fit(counts)
    assert lda.n_jobs == 2 and len(lda.init_scores_) == 3
    assert lda.bound_ == lda.init_scores_.min()


def test_assigned_topics_leave_copies_alone(counts):
    lda = TemperedLDA(3, max_iter=2, dtype="float64", random_state=0).fit(counts)
    old = vars(lda)["_state"]
    before, view = lda.transform(counts), lda.components_
    lda.components_ = np.array(lda.components_) + 1.0
    assert vars(lda)["_state"] is not old
    assert_array_equal(old.model.topics.components, view)
    theta = old.model.documents.infer(counts)
    assert_array_equal(theta / theta.sum(axis=1)[:, None], before)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("components_", np.ones((4, 41)), "must be an array of numbers of shape \\(3, 41\\)"),
        ("doc_topic_prior_", -1.0, "'doc_topic_prior_' parameter of TemperedLDA must be positive"),
    ],
)
def test_a_wrong_assignment_in_a_callback_is_the_users_error(counts, name, value, message):
    """It is raised at once, and the fit is left as it was at that step."""

    def callback(estimator, monitor):
        if monitor.step == 2:
            setattr(estimator, name, value)

    lda = TemperedLDA(3, batch_size=20, random_state=0, callback=callback)
    with pytest.raises(ValueError, match=message):
        lda.fit(counts)
    assert lda.n_batch_iter_ == 3 and lda.components_.shape == (3, 41)
