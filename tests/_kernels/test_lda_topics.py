"""The kernels over the vocabulary: statistics that wait for the step, and the step's sums."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal, assert_equal
from scipy import sparse

from annealvi._kernels import lda_topics
from annealvi.model import Batch, Tempering
from annealvi.models.lda.model import move_rows
from tests.models.lda.pair import LDA, LocalOptions

DTYPES = (np.float32, np.float64)
V = 700  # eleven blocks of the vocabulary, the last not full


def corpus(n_documents=30, n_words=40, seed=0):
    rng = np.random.RandomState(seed)
    X = np.zeros((n_documents, V))
    for row in X:
        row[rng.choice(V - 50, n_words, replace=False)] = rng.randint(1, 5, n_words)
    return sparse.csr_matrix(X)


def make(n_topics, dtype, *, eta=0.1, exact=False, n_threads=1):
    model = LDA(
        n_topics, V, alpha=0.02, eta=eta, dtype=dtype, options=LocalOptions(20, 0.0, exact=exact)
    )
    model.engine.n_threads = n_threads
    model.assign(np.random.RandomState(1).gamma(0.05, 60.0, (n_topics, V)) + 0.1)
    model.rng = np.random.RandomState(2)
    return model


def steps(model, X, rho, tempering, *, wait, seen):
    """lambda and its sums after three steps of portions of X; `seen` collects what was read."""
    for first in (0, 10, 20):
        rows = slice(first, first + 10)
        b = tempering.inverse if np.ndim(tempering.inverse) == 0 else tempering.inverse[rows]
        of_rows = tempering._replace(inverse=b)
        statistics = model.local_step(Batch(X, rows), of_rows).statistics
        if not wait:
            seen.append(statistics.values[: statistics.n_rows[0]].copy())
        words = statistics.words()
        model.global_step(statistics, rho, 3.0, of_rows)
        if wait:  # after the step they are what they were
            seen.append(statistics.values[: statistics.n_rows[0]].copy())
        assert_array_equal(words, np.unique(X[rows].indices))
    sums = model.sums.copy()
    return model.lam, model.decay, sums, model.components


CASES = {
    "lazily": {"n_words": 8},
    "all rows": {"n_words": 300},
    "from nothing": {"rho": 1.0},
    "beyond": {"rho": 1.9},  # with a floor
    "hot": {"b": 0.4},
    "posterior": {"b": 0.5, "form": "posterior", "rho": 0.1},
    "a temperature each": {"each": True},
    "scikit-learn's": {"exact": True},
    "a prior for each": {"eta": np.linspace(0.1, 0.4, V)},
}


@pytest.mark.thinned
@pytest.mark.parametrize("n_topics", [5, 90])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("case", CASES)
def test_statistics_that_wait_are_stepped_to_the_same_bits(case, dtype, n_topics, monkeypatch):
    calls, kernel = [], lda_topics.step_topics
    counting = lambda *given: (calls.append(given[7] is not None), kernel(*given))  # noqa: E731
    monkeypatch.setattr(lda_topics, "step_topics", counting)
    given = {"n_words": 40, "rho": 0.3, "b": 1.0, "form": "likelihood"} | CASES[case]
    X = corpus(n_words=given["n_words"]).astype(dtype)
    b = np.linspace(0.3, 1.0, X.shape[0]).astype(dtype) if given.get("each") else given["b"]
    tempering, results = Tempering(b, given["form"]), []
    for wait, n_threads in ((False, 1), (True, 1), (False, 2), (True, 2)):
        options = dict(eta=given.get("eta", 0.1), exact=given.get("exact", False))
        model = make(n_topics, dtype, n_threads=n_threads, **options)
        seen = []
        lam, decay, sums, components = steps(
            model, X, given["rho"], tempering, wait=wait, seen=seen
        )
        results.append([components, sums, lam[:, :n_topics], decay, *seen])
    assert_equal(results[1:], results[:1] * 3)
    assert sum(calls) == 2 * 3  # one for each step whose statistics wait
    if case in ("lazily", "from nothing"):  # numbers of all topics, or of those that are left
        n_active = model.engine.n_active[:10]
        assert np.any(n_active < model.width) == (n_topics > 64)


@pytest.mark.parametrize("dtype", DTYPES)
def test_rows_move_towards_the_prior_but_not_below_the_floor(dtype):
    model = make(5, dtype, eta=np.linspace(0.1, 0.4, V))
    before, lam, decay = model.components.T.astype(np.float64), model.lam, model.decay
    words = np.array([0, 3, 64, V - 1])
    options = dict(n_threads=2, floor=0.3, whole=True)
    sums = move_rows(words, lam, model.prior()[0], decay, 0.25, **options)
    eta = np.linspace(0.1, 0.4, V).astype(dtype).astype(np.float64)[:, None]
    expected = before.copy()
    expected[words] = np.maximum(eta + 0.25 * (before - eta), np.float64(dtype(0.3)))[words]
    assert_allclose(lam[:, :5], expected, rtol=4 * np.finfo(dtype).eps)
    assert_allclose(sums, lam[words, :5].sum(axis=0, dtype=np.float64), rtol=1e-13)
    assert_array_equal(decay[words], 0.25)
    assert np.all(np.delete(decay, words) == 1)
