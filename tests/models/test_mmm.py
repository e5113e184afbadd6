"""The multinomial mixture against plain EM, and log C(T) against enumeration."""

from itertools import product

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse
from scipy.special import logsumexp

import annealvi.models.mmm as models_mmm
from annealvi import Fixed, TemperedMultinomialMixture
from annealvi.model import Batch, Tempering
from annealvi.models.mmm import MMM, ComponentCounts, merged
from tests.mixtures.fits import COUNTS, mmm


def plain_em(X, words, a, eta, n_iter, b=1.0, of_priors=1.0):
    """log w, log beta and the objective after each iteration."""
    log_w = np.full(len(words), -np.log(len(words)))
    lam = words + eta
    log_beta = np.log(lam / lam.sum(axis=1, keepdims=True))
    objectives = []
    for _ in range(n_iter):
        joint = b * (log_w + X @ log_beta.T)
        phi = np.exp(joint - logsumexp(joint, axis=1, keepdims=True))
        alpha = of_priors * a + b * phi.sum(axis=0)
        lam = of_priors * eta + b * phi.T @ X
        log_w = np.log(alpha / alpha.sum())
        log_beta = np.log(lam / lam.sum(axis=1, keepdims=True))
        entropy = -np.sum(phi * np.log(np.maximum(phi, 1e-300)))
        prior = a * log_w.sum() + eta * log_beta.sum()
        energy = np.sum(phi * (log_w + X @ log_beta.T))
        objectives.append((energy + entropy + prior, b * energy + entropy + of_priors * prior))
    return log_w, log_beta, np.array(objectives).T


@pytest.mark.oracle
@pytest.mark.parametrize("form", ["likelihood", "posterior"])
@pytest.mark.parametrize("T", [1.0, 2.5])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_fit_is_plain_em(T, form, dtype):
    init, b = COUNTS[::30] + 0.5, 1 / T
    share = init / init.sum(axis=1, keepdims=True)
    options = dict(weight_concentration_prior=0.7, word_prior=0.3, max_iter=9)
    one = mmm(init=init, temperature=Fixed(T, form=form), **options)
    one.fit(sparse.csr_matrix(COUNTS.astype(dtype)))
    of_priors = b if form == "posterior" else 1.0
    words = share * COUNTS.sum() / 3
    log_w, log_beta, (elbo, annealed) = plain_em(COUNTS, words, 0.7, 0.3, 9, b, of_priors)
    assert_allclose(one.weights_, np.exp(log_w), rtol=1e-10)
    found = one.components_ / one.components_.sum(axis=1, keepdims=True)
    assert_allclose(found, np.exp(log_beta), rtol=1e-10)
    assert_allclose(one.history_["elbo"], elbo, rtol=1e-10)
    assert_allclose(one.history_["annealed_elbo"], annealed, rtol=1e-10)
    assert_allclose(one.score_samples(COUNTS), logsumexp(log_w + COUNTS @ log_beta.T, axis=1))


def test_scores_and_bic():
    one = mmm().fit(COUNTS)
    beta = one.components_ / one.components_.sum(axis=1, keepdims=True)
    joint = np.log(one.weights_) + COUNTS @ np.log(beta).T
    log_likelihood = logsumexp(joint, axis=1)
    assert_allclose(one.predict_proba(COUNTS), np.exp(joint - log_likelihood[:, None]), atol=1e-15)
    expected = (2 + 3 * 11) * np.log(90) - 2 * log_likelihood.sum()
    assert_allclose(one.bic(COUNTS), expected)
    assert np.argmin([mmm(n_components=K).fit(COUNTS).bic(COUNTS) for K in (1, 2, 3, 5)]) == 2


def test_log_partition_counts_all_documents_of_the_lengths():
    X = sparse.csr_matrix([[2.0, 0, 1], [0, 1, 0], [1, 1, 1]])
    model = MMM(2, 3)
    model.start(X, words=np.array([[3.0, 1, 0], [0, 1, 5]]), documents=np.array([1.0, 3]))
    b = np.array([1.0, 0.7, 0.2])
    for at, inverse in enumerate(b):
        total = 0.0
        for n in (3, 1, 3):
            terms = [
                inverse * (model.log_weights[k] + model.log_words[list(words), k].sum())
                for k in range(2)
                for words in product(range(3), repeat=n)
            ]
            total += logsumexp(terms)
        assert_allclose(model.log_partition(b)[at], total, rtol=1e-12, atol=1e-12)


def test_a_step_may_be_damped():
    X = sparse.csr_matrix(COUNTS.astype(float))
    model = MMM(3, 12)
    model.start(X, words=COUNTS[::30].astype(float))
    before, tempering = model.lam, Tempering(0.5)
    step = model.local_step(Batch(X, slice(0, 90)), tempering)
    model.global_step(step.statistics, 0.25, 1.0, tempering)
    assert_allclose(model.lam, 0.75 * before + 0.25 * (0.1 + 0.5 * model.last.words))


def test_merging_finds_the_same_components_in_all_fits():
    words, documents = np.array([[9.0, 1, 0, 0], [0, 0, 5, 5]]), np.array([3.0, 4.0])
    found = merged(
        [ComponentCounts(documents, words.T), ComponentCounts(documents[::-1], words[::-1].T)], 2
    )
    order = np.argsort(found["documents"])
    assert_allclose(found["words"][order], words)
    assert_allclose(found["documents"][order], documents)


def test_blocks_change_a_fit_by_roundings_only(monkeypatch):
    whole = mmm().fit(COUNTS)
    monkeypatch.setattr(models_mmm, "BLOCK", 17)
    blocks = mmm().fit(COUNTS)
    assert_allclose(blocks.components_, whole.components_, rtol=1e-9)
    assert_allclose(blocks.history_["annealed_elbo"], whole.history_["annealed_elbo"], rtol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("init", ["merged", "kmeans++"])
def test_threads_and_dtypes_change_no_bit(init):
    X = sparse.csr_matrix(np.random.RandomState(0).poisson(0.3, (600, 300)))
    found = {
        TemperedMultinomialMixture(20, init=init, max_iter=5, tol=0, n_jobs=n, random_state=0)
        .fit(X.astype(dtype))
        .components_.tobytes()
        for n in (1, 2, 5)
        for dtype in (np.float32, np.float64, int)
    }
    assert len(found) == 1
