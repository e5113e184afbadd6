"""Topics of small shares that documents leave out: how far results may differ, and where."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse
from sklearn.decomposition import LatentDirichletAllocation

from annealvi import TemperedLDA
from annealvi.model import Batch, Tempering
from annealvi.models.lda import engine
from tests.marks import cases
from tests.models.lda.pair import LDA, LocalOptions
from tests.models.lda.streams import dense

V = 150


def problem(n_topics, dtype, overlap):
    """Documents of a few topics, whose words other topics want a little."""
    rng = np.random.RandomState(0)
    lam = rng.gamma(0.05, 60.0, (n_topics, V)) + overlap
    beta = lam / lam.sum(axis=1, keepdims=True)
    theta = rng.dirichlet(np.full(n_topics, 2 / n_topics), 40)
    lengths = np.resize([5, 20, 80, 400], 40)
    X = [rng.multinomial(n, p) for n, p in zip(lengths, theta @ beta, strict=True)]
    return sparse.csr_matrix(np.array(X)).astype(dtype), lam.astype(dtype)


def fit(X, lam, options, alpha, *, training):
    """gamma of documents and, in training, their statistics."""
    model = LDA(len(lam), V, alpha=alpha, eta=0.1, dtype=X.dtype, options=options)
    model.assign(lam)
    model.rng = np.random.RandomState(0)
    if not training:
        return model.infer(X), np.zeros((V, len(lam)))
    if options.warm:
        model.start_documents(X.shape[0])
    statistics = model.local_step(Batch(X, slice(0, X.shape[0])), Tempering()).statistics
    gamma = model.gamma
    return np.zeros((X.shape[0], len(lam))) if gamma is None else gamma, dense(statistics, len(lam))


@pytest.mark.parametrize("training", [True, False])
@cases(
    "n_topics, alpha, overlap", (25, 0.1, 0.5), (25, 0.1, 2.0), (100, 0.1, 0.5), (100, 0.15, 2.0)
)
def test_a_topic_left_out_in_float32_holds_less_than_the_least_share(
    n_topics, alpha, overlap, training
):
    X, lam = problem(n_topics, np.float32, overlap)
    share = engine.TRAINING_SHARE if training else engine.SINGLE_SHARE
    for n_iterations in (6, 30):
        options = [LocalOptions(n_iterations, 0.0, warm=True, prune=p) for p in (True, False)]
        both = [fit(X, lam, each, alpha, training=training) for each in options]
        (ours, of_ours), (full, of_full) = both
        out = ours == np.float32(alpha)
        held = np.where(out, full - np.float32(alpha), 0)
        assert np.max(held) < 2 * share  # less when it was left out, of what it holds at the end
        # what they hold goes to others, by the same number of words
        moved = 2 * share * out.sum(axis=1) + 2e-6 * full.sum(axis=1)
        assert np.all(np.abs(ours - full).sum(axis=1) < moved)
        assert np.abs(of_ours - of_full).sum() < moved.sum()
        assert_allclose(ours.sum(axis=1), full.sum(axis=1), rtol=1e-5, atol=share)
    if alpha == 0.1:  # at a larger one, such a topic may come back, so that it stays
        assert np.any(held > 0)  # this test is of something
    if training:
        assert np.abs(of_ours - of_full).max() > 10 * np.finfo(np.float32).eps


def test_float64_keeps_what_float32_leaves_out(monkeypatch):
    X, lam = problem(100, np.float64, 0.5)
    kept = fit(X, lam, LocalOptions(30, 0.0, warm=True, prune=False), 0.1, training=True)
    ours = fit(X, lam, LocalOptions(30, 0.0, warm=True), 0.1, training=True)
    assert_allclose(ours[0], kept[0], rtol=1e-9, atol=1e-6)
    assert_allclose(ours[1], kept[1], rtol=1e-9, atol=1e-6)
    monkeypatch.setattr(engine, "LEAST_SHARE", 1e-2)
    other = fit(X, lam, LocalOptions(30, 0.0, warm=True), 0.1, training=True)
    assert np.abs(other[0] - kept[0]).max() > 1e-4


def test_a_topic_of_a_large_prior_is_kept():
    X, lam = problem(90, np.float32, 0.1)
    alpha = np.full(90, 0.03)
    alpha[[3, 70]] = 2.0
    options = [LocalOptions(200, 0.0, prune=prune) for prune in (True, False)]
    gamma, whole = (fit(X, lam, each, alpha, training=False)[0] for each in options)
    assert_allclose(gamma, whole, rtol=1e-2, atol=1e-2)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("alpha", [0.02, 0.03])
@pytest.mark.parametrize("training", [True, False])
def test_scikit_learns_arithmetic_is_kept(alpha, training, dtype):
    """In which the sum of gamma counts the topics that are left out."""
    X, lam = problem(90, dtype, 0.1)
    rtol, atol = (0, 1e-9) if dtype is np.float64 else (2e-3, 1e-4)
    for n_iterations in (8, 40):
        options = [LocalOptions(n_iterations, 0.0, exact=True, prune=p) for p in (True, False)]
        ours, full = (fit(X, lam, each, alpha, training=training) for each in options)
        for one, other in zip(ours, full, strict=True):
            assert_allclose(one, other, rtol=rtol, atol=atol)
    if training:
        local = LocalOptions(40, 0.0, exact=True)
        model = LDA(90, V, alpha=alpha, eta=0.1, dtype=dtype, options=local)
        model.assign(lam)
        model.rng = np.random.RandomState(0)
        model.local_step(Batch(X, slice(0, 40)), Tempering())
        assert np.any(model.engine.n_active[:40] < 90)


def test_scikit_learn_says_the_same(monkeypatch):
    """Within the error of its psi, beside which what is left out is nothing."""
    X, lam = problem(90, np.float64, 0.1)
    options = {"doc_topic_prior": 0.02, "max_doc_update_iter": 40, "mean_change_tol": 1e-12}
    theirs = LatentDirichletAllocation(90, max_iter=1, random_state=0, **options).fit(X)
    theirs.components_ = lam
    ours = TemperedLDA(90, preset="sklearn", random_state=0, **options)
    ours.components_ = lam
    theirs.exp_dirichlet_component_ = ours.exp_dirichlet_component_
    gamma = ours.transform(X, normalize=False)
    assert np.any(gamma == 0.02)  # topics that were left out
    assert_allclose(gamma, theirs.transform(X, normalize=False), rtol=0, atol=1e-6)
    monkeypatch.setattr(engine, "EXACT_SHARE", 0.0)
    assert_allclose(gamma, ours.transform(X, normalize=False), rtol=0, atol=1e-9)
