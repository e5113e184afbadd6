"""log C(T) and energies of LDA's documents at the current q."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from annealvi import TemperedLDA
from annealvi.model import Batch, Tempering
from annealvi.partition import log_partition
from tests.models.lda.naive import DTYPES, EVEN, GRIDS, fits, lengths, log_c_of, make, naive_log_c
from tests.models.lda.pair import LDA, of
from tests.models.lda.streams import dense


@pytest.mark.slow
@pytest.mark.parametrize("grid", GRIDS)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n_topics", [1, 5, 17])
def test_log_c_of_documents(counts, n_topics, dtype, grid):
    model = make(n_topics, dtype)
    gamma = np.random.RandomState(0).gamma(0.5, 2.0, (60, n_topics)).astype(dtype) + dtype(0.05)
    found = log_c_of(model, counts.astype(dtype), gamma, GRIDS[grid])
    expected = naive_log_c(gamma, model.components, lengths(counts), GRIDS[grid])
    # on other grids than even ones sums are interpolated, which must not show
    assert (np.abs(found - expected) / np.maximum(1, lengths(counts))[:, None]).max() < 1e-11
    assert found.dtype == np.float64
    assert_array_equal(found[[3, 11]], 0.0)  # documents without words


@pytest.mark.parametrize("grid", GRIDS)
def test_log_c_of_sparse_topics(grid):
    """At eta = 1/500 E log beta reaches -500: what exp(b E log beta) keeps must be right."""
    model = LDA(6, 300, alpha=1 / 500, eta=1 / 500)
    topics = np.full((6, 300), 1 / 500)
    topics[np.arange(300) % 6, np.arange(300)] = 40.0
    model.assign(topics)
    gamma = np.array([[1 / 500] * 5 + [30.0], [5.0] * 6])
    found = log_c_of(model, sparse.csr_matrix(np.ones((2, 300))), gamma, GRIDS[grid])
    expected = naive_log_c(gamma, topics, [300, 300], GRIDS[grid])
    assert_allclose(found, expected, rtol=1e-11, atol=1e-8)


@pytest.mark.parametrize("b", [1.0, 0.3])
@pytest.mark.parametrize("dtype", DTYPES)
def test_energies_of_documents(counts, dtype, b):
    model = make(5, dtype)
    gamma = (np.random.RandomState(0).gamma(0.5, 2.0, (60, 5)) + 0.05).astype(dtype)
    found = model.energies(counts.astype(dtype), gamma, Tempering(b))
    begin = gamma.astype(float)
    expected = fits(counts.toarray(), begin, b, model.components, 0.1, 0)[2]
    rtol = 1e-10 if dtype is np.float64 else 2e-4
    assert_allclose(found, expected, rtol=rtol, atol=rtol)
    assert_array_equal(found[[3, 11]], 0.0)


@pytest.mark.slow
@pytest.mark.parametrize("form", ["likelihood", "posterior"])
@pytest.mark.parametrize(("warm", "b"), [(True, 1.0), (False, 0.1)])
@pytest.mark.parametrize("dtype", DTYPES)
def test_a_batch_brings_its_energy_and_log_c(counts, warm, dtype, b, form):
    """Without documents' energies one by one: from gamma and the statistics."""
    alpha = np.linspace(0.05, 0.4, 5)
    model = make(5, dtype, alpha=alpha, warm=warm, n_iterations=60)
    model.start_documents(60)
    model.normalise_at(GRIDS["exponential"])
    X = counts.astype(dtype)
    local = model.local_step(Batch(X, slice(2, 50)), Tempering(b, form), moments=True)
    if form == "posterior":
        alpha = b * alpha + 1 - b
    lam = model.components
    gamma, _, energies, _ = fits(counts.toarray()[2:50], 1.0, b, lam, alpha, 60)
    log_c = naive_log_c(gamma, lam, lengths(counts[2:50]), GRIDS["exponential"]).sum(axis=0)
    rtol = 1e-5 if dtype is np.float64 else 1e-4
    assert local.energy == pytest.approx(energies.sum(), rel=rtol)
    assert_allclose(local.log_partition, log_c, rtol=rtol, atol=rtol * counts.sum())
    assert local.n_units == counts[2:50].sum() and local.unit == "word"
    assert local.inverse is None
    if dtype is np.float64:  # the sum of what it is without log C
        plain = make(5, alpha=np.linspace(0.05, 0.4, 5))
        other = plain.local_step(Batch(X, slice(2, 50)), Tempering(b, form), moments=True)
        assert local.energy == pytest.approx(np.sum(other.energy), rel=1e-5)
        assert other.log_partition is None


def test_energy_of_a_batch_under_random_starts(counts):
    model = make(5, exact=True)
    model.normalise_at(EVEN)
    local = model.local_step(Batch(counts, slice(0, 60)), Tempering(0.5), moments=True)
    lam = model.components
    energies = fits(counts.toarray(), 1.0, 0.5, lam, 0.1, 200)[2]
    assert local.energy == pytest.approx(energies.sum(), rel=1e-5)


def test_steps_that_ask_for_no_moments_bring_none(counts):
    model = make()
    model.normalise_at(EVEN)
    local = model.local_step(Batch(counts, slice(0, 60)), Tempering(0.5))
    assert local.energy is None and local.log_partition is None
    statistics = dense(local.statistics, 5)
    whole = model.local_step(Batch(counts, slice(0, 60)), Tempering(0.5), moments=True)
    assert_array_equal(statistics, dense(whole.statistics, 5))


@pytest.mark.slow
def test_log_c_follows_the_topics(counts):
    """A full step renews the topics' sums at once, small ones by the time they add up to it."""
    batch = Batch(counts, slice(0, 60))

    def compare(model, rtol):
        topics = model.components.copy()
        local = model.local_step(batch, Tempering(0.7), moments=True)
        gammas = fits(counts.toarray(), 1.0, 0.7, topics, 0.1, 200)[0]
        expected = naive_log_c(gammas, topics, lengths(counts), EVEN).sum(axis=0)
        assert_allclose(local.log_partition, expected, rtol=rtol, atol=rtol * counts.sum())

    for rho in (1.0, 0.125):
        model = make()
        model.normalise_at(EVEN)
        for _ in range(9):
            local = model.local_step(batch, Tempering(0.7), moments=True)
            model.global_step(local.statistics, rho, 1.0, Tempering(0.7))
        compare(model, 1e-9 if rho == 1 else 0.02)
    model.assign(np.random.RandomState(5).rand(5, 41) + 0.1)
    compare(model, 1e-9)


def test_log_partition_at_the_current_q(counts):
    """annealvi.partition's "posterior", of a fitted estimator."""
    inverses = 1 / np.geomspace(1, 10, 30)
    lda = TemperedLDA(5, doc_topic_prior=0.1, random_state=0, preset="sklearn").fit(counts)
    of_fit = log_partition(lda, 1 / inverses, "posterior", data=counts.toarray()).values
    model = of(lda)
    gamma, lam = model.infer(counts), model.components
    expected = naive_log_c(gamma, lam, lengths(counts), inverses).sum(axis=0)
    assert_allclose(of_fit, expected - expected[0], rtol=1e-11, atol=1e-8)
    with pytest.raises(ValueError, match=r"one that TemperedLDA offers: 'posterior'\. Got"):
        log_partition(lda, 1 / inverses, "exact")
