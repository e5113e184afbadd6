"""LDA under rules that give each document a temperature of its own."""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from annealvi.model import Batch, Tempering
from annealvi.models.lda.engine import Engine
from annealvi.temperature.local import DocumentRule
from tests.marks import cases
from tests.models.lda.naive import DTYPES, EVEN, fits, lengths, log_c_of, make, naive_log_c
from tests.models.lda.streams import dense


def uniform(size):
    return np.full(size, -math.log(size))


def naive_rule_step(X, b, topics, alpha, n_iterations, rule):
    """Documents and their temperatures in turn, then the documents once more."""
    gamma, n_words = 1.0, X.sum(axis=1)
    for _ in range(rule.rounds):
        gamma, _, energies, _ = fits(X, gamma, b, topics, alpha, n_iterations)
        b = rule(energies, n_words, naive_log_c(gamma, topics, n_words, rule.inverses))
    gamma, statistics, *_ = fits(X, gamma, b, topics, alpha, n_iterations)
    return gamma, b, statistics


@pytest.mark.slow
@cases("rounds, level, corpus", (1, None, False), (2, 0.4, False), (2, None, True), (6, 0.4, True))
@pytest.mark.parametrize("dtype", DTYPES)
def test_a_step_under_a_rule(counts, dtype, corpus, level, rounds):
    corpus = 2.0 * (1 - EVEN) if corpus else None
    rule = DocumentRule(EVEN, uniform(20), rounds, corpus=corpus, level=level)
    model = make(5, dtype, n_iterations=7)
    X = counts.astype(dtype)
    local = model.local_step(Batch(X, slice(0, 60)), Tempering(0.4, rule=rule), moments=True)
    lam = model.components.astype(float)
    _, b, statistics = naive_rule_step(counts.toarray(), 0.4, lam, 0.1, 7, rule)
    rtol = 1e-8 if dtype is np.float64 else 5e-3
    assert_allclose(local.inverse, b, rtol=rtol)
    assert_allclose(dense(local.statistics, 5).T, statistics, rtol=10 * rtol, atol=rtol / 10)
    assert 0 < local.inverse.min() < 0.9 * local.inverse.max() <= 0.9
    # what the topics get is what those temperatures say
    total = local.inverse @ lengths(counts)
    assert dense(local.statistics, 5).sum() == pytest.approx(total, rel=1e-5)
    assert local.n_units == counts.sum()


@pytest.mark.slow
def test_log_c_of_a_batch_under_a_rule(counts):
    rule = DocumentRule(EVEN, uniform(20), 2)
    model = make(5, n_iterations=7)
    model.normalise_at(EVEN)
    local = model.local_step(Batch(counts, slice(0, 60)), Tempering(0.4, rule=rule), moments=True)
    gamma, _, _ = naive_rule_step(counts.toarray(), 0.4, model.components, 0.1, 7, rule)
    expected = naive_log_c(gamma, model.components, lengths(counts), EVEN).sum(axis=0)
    assert_allclose(local.log_partition, expected, rtol=1e-9, atol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", DTYPES)
def test_inference_under_a_rule(counts, dtype):
    rule = DocumentRule(EVEN, uniform(20), 3)
    model = make(5, dtype, n_iterations=7)
    gamma = model.infer(counts.astype(dtype), Tempering(1.0, rule=rule))
    lam = model.components.astype(float)
    expected, b, _ = naive_rule_step(counts.toarray(), 1.0, lam, 0.1, 7, rule)
    rtol = 1e-8 if dtype is np.float64 else 5e-3
    assert_allclose(gamma, expected, rtol=rtol)
    words = lengths(counts)
    assert_allclose(gamma.sum(axis=1), 0.5 + b * words, rtol=rtol)
    assert_allclose(gamma[words == 0], 0.1, rtol=1e-6)


def test_documents_without_words(counts):
    empty = sparse.csr_matrix((8, 41))
    rule = DocumentRule(EVEN, uniform(20), 2, level=0.3)
    model = make(5)
    model.normalise_at(EVEN)
    for tempering in (Tempering(0.5), Tempering(0.5, rule=rule)):
        local = model.local_step(Batch(empty, slice(0, 8)), tempering, moments=True)
        assert local.n_units == 0
        assert_array_equal(local.log_partition, 0.0)
        assert len(local.statistics.words()) == 0
        if tempering.rule is None:
            assert local.energy == pytest.approx(0.0, abs=1e-12)
        else:
            assert_allclose(local.inverse, 0.3)
    gamma = model.infer(empty, Tempering(1.0, rule=rule))
    assert_allclose(gamma, 0.1)
    assert_array_equal(model.energies(empty, gamma), 0.0)
    assert log_c_of(model, empty[:0], gamma[:0], EVEN).shape == (0, 20)


@pytest.mark.parametrize("ends", [(7, 50, 60), range(1, 61)], ids=["three", "sixty"])
def test_documents_in_blocks(counts, monkeypatch, ends):
    """How documents are cut into blocks changes nothing but the order of sums."""
    found, batch, rule = [], Batch(counts, slice(0, 60)), DocumentRule(EVEN, uniform(20), 4)
    for these in ([60], ends):
        monkeypatch.setattr(Engine, "blocks", lambda *_, e=these: [*map(slice, [0, *e], e)])
        model = make(5, n_iterations=20)
        model.normalise_at(EVEN)
        one = model.local_step(batch, Tempering(0.5), moments=True)
        energy, log_c = one.energy, one.log_partition
        ruled = model.local_step(batch, Tempering(0.5, rule=rule), moments=True)
        gamma = model.infer(counts, Tempering(1.0, rule=rule))
        found.append([energy, log_c, gamma, ruled.inverse, dense(ruled.statistics, 5).copy()])
    for whole, parts in zip(*found, strict=True):
        assert_allclose(parts, whole, rtol=1e-9, atol=1e-12)


def test_blocks_keep_the_level_each(counts, monkeypatch):
    monkeypatch.setattr(Engine, "blocks", lambda *_: [slice(0, 25), slice(25, 60)])
    rule = DocumentRule(EVEN, uniform(20), 2, level=0.2)
    batch = Batch(counts, slice(0, 60))
    inverse = make(5).local_step(batch, Tempering(0.2, rule=rule), moments=True).inverse
    written = lengths(counts) > 0
    assert not written.all()
    for rows in (slice(0, 25), slice(25, 60)):
        assert np.exp(np.mean(np.log(inverse[rows][written[rows]]))) == pytest.approx(0.2, rel=1e-3)


def test_temperatures_of_documents_do_not_depend_on_their_neighbours(counts):
    """Without a level to keep, each document is fitted as often as it takes itself."""
    rule = DocumentRule(EVEN, uniform(20), 4)
    model = make(5)
    together = model.infer(counts, Tempering(1.0, rule=rule))
    for d in range(60):
        alone = model.infer(counts[d], Tempering(1.0, rule=rule))
        assert_allclose(alone[0], together[d], rtol=1e-9)


def test_blocks_have_few_entries(counts, monkeypatch):
    """Documents that are long are taken a few at a time, each once, and their bits stay."""
    whole = make(5)
    expected = whole.infer(counts, Tempering(1.0))
    monkeypatch.setattr("annealvi.models.lda.engine.BLOCK_ENTRIES", 40)
    blocks = [*whole.engine.blocks(whole, slice(3, 60), counts.indptr, 40)]
    assert [row for rows in blocks for row in range(rows.start, rows.stop)] == [*range(3, 60)]
    assert len(blocks) > 5
    assert all(counts[rows].nnz <= 40 or rows.stop == rows.start + 1 for rows in blocks)
    assert_allclose(whole.infer(counts, Tempering(1.0)), expected, rtol=0)
