"""LDA under rules that give each document a temperature of its own."""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from annealvi.model import Batch, Tempering
from annealvi.models.lda.documents import Documents
from annealvi.temperature.local import DocumentRule
from tests.asserts import same_for_any_threads
from tests.marks import cases
from tests.models.lda.naive import (
    DTYPES,
    EVEN,
    GRIDS,
    dense,
    lengths,
    log_c_of,
    make,
    naive_fit,
    naive_log_c,
)


def uniform(size):
    return np.full(size, -math.log(size))


def naive_rule_step(X, b, topics, alpha, n_iterations, rule):
    """Documents and their temperatures in turn, then the documents once more."""
    n = len(X)
    gamma = np.ones((n, len(topics)))
    b = np.full(n, float(b))
    n_words = X.sum(axis=1)

    def fit():
        fits = [naive_fit(X[d], gamma[d], b[d], topics, alpha, n_iterations) for d in range(n)]
        gamma[:] = [one[0] for one in fits]
        return [one[1] for one in fits], np.array([one[2] for one in fits])

    for _ in range(rule.rounds):
        _, energy = fit()
        b = rule(energy, n_words, naive_log_c(gamma, topics, n_words, rule.inverses))
    phis, _ = fit()
    return gamma, b, sum(b[d] * phis[d] * X[d] for d in range(n))


@pytest.mark.slow
@cases("rounds, level, corpus", (1, None, False), (2, 0.4, False), (2, None, True), (6, 0.4, True))
@pytest.mark.parametrize("dtype", DTYPES)
def test_a_step_under_a_rule(counts, dtype, corpus, level, rounds):
    corpus = 2.0 * (1 - EVEN) if corpus else None
    rule = DocumentRule(EVEN, uniform(20), rounds, corpus=corpus, level=level)
    model = make(5, dtype, n_iterations=7)
    X = counts.astype(dtype)
    local = model.local_step(Batch(X, slice(0, 60)), Tempering(0.4, rule=rule), moments=True)
    lam = model.topics.components.astype(float)
    _, b, statistics = naive_rule_step(counts.toarray(), 0.4, lam, 0.1, 7, rule)
    rtol = 1e-8 if dtype is np.float64 else 5e-3
    assert_allclose(local.inverse, b, rtol=rtol)
    assert_allclose(dense(local, 5).T, statistics, rtol=10 * rtol, atol=rtol / 10)
    assert 0 < local.inverse.min() < 0.9 * local.inverse.max() <= 0.9
    # what the topics get is what those temperatures say
    assert dense(local, 5).sum() == pytest.approx(local.inverse @ lengths(counts), rel=1e-5)
    assert local.n_units == counts.sum()


@pytest.mark.slow
def test_log_c_of_a_batch_under_a_rule(counts):
    rule = DocumentRule(EVEN, uniform(20), 2)
    model = make(5, n_iterations=7)
    model.normalise_at(EVEN)
    local = model.local_step(Batch(counts, slice(0, 60)), Tempering(0.4, rule=rule), moments=True)
    gamma, _, _ = naive_rule_step(counts.toarray(), 0.4, model.topics.components, 0.1, 7, rule)
    expected = naive_log_c(gamma, model.topics.components, lengths(counts), EVEN).sum(axis=0)
    assert_allclose(local.log_partition, expected, rtol=1e-9, atol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", DTYPES)
def test_inference_under_a_rule(counts, dtype):
    rule = DocumentRule(EVEN, uniform(20), 3)
    model = make(5, dtype, n_iterations=7)
    gamma = model.documents.infer(counts.astype(dtype), Tempering(1.0, rule=rule))
    lam = model.topics.components.astype(float)
    expected, b, _ = naive_rule_step(counts.toarray(), 1.0, lam, 0.1, 7, rule)
    rtol = 1e-8 if dtype is np.float64 else 5e-3
    assert_allclose(gamma, expected, rtol=rtol)
    words = lengths(counts)
    assert_allclose(gamma.sum(axis=1), 0.5 + b * words, rtol=rtol)
    assert_allclose(gamma[words == 0], 0.1, rtol=1e-6)


@cases("tempering, dtype", ("one", np.float32), ("rule", np.float64), ("corpus", np.float32))
def test_any_number_of_threads_gives_the_same_bits(dtype, tempering):
    X = sparse.random(150, 233, 0.1, "csr", random_state=3, dtype=np.float64)
    X.data = np.ceil(X.data * 4).astype(dtype)
    rule = {"rule": dict(level=0.5), "corpus": dict(corpus=2 * (1 - EVEN))}.get(tempering)
    rule = None if rule is None else DocumentRule(EVEN, uniform(20), 2, **rule)

    def compute(n_threads):
        model = make(13, dtype, n_iterations=10, n_threads=n_threads, V=233)
        model.normalise_at(GRIDS["exponential"] if rule is None else EVEN)
        found, asked = [], Tempering(0.6, rule=rule)
        for _ in range(2):
            local = model.local_step(Batch(X, slice(0, 150)), asked, moments=True)
            model.global_step(local.statistics, 0.5, 1.0, asked)
            found += [model.topics.components.copy(), local.log_partition]
            found += [local.energy if rule is None else local.inverse]
        gamma = model.documents.infer(X, Tempering(1.0, rule=rule), n_threads=n_threads)
        found += [gamma, model.documents.energies(X, gamma, n_threads=n_threads)]
        return [*found, log_c_of(model, X, gamma, EVEN, n_threads=n_threads)]

    same_for_any_threads(compute, 2, 3)


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
    gamma = model.documents.infer(empty, Tempering(1.0, rule=rule))
    assert_allclose(gamma, 0.1)
    assert_array_equal(model.documents.energies(empty, gamma), 0.0)
    assert log_c_of(model, empty[:0], gamma[:0], EVEN).shape == (0, 20)


BLOCKS = [[60], [7, 43, 10], [1] * 60]


@pytest.mark.parametrize("sizes", BLOCKS[1:], ids=["three", "sixty"])
def test_documents_in_blocks(counts, monkeypatch, sizes):
    """How documents are cut into blocks changes nothing but the order of sums."""
    found = []
    for these in (BLOCKS[0], sizes):
        ends = np.cumsum(these)

        def blocks(self, rows, *limits, these=these, ends=ends):
            assert rows == slice(0, 60)
            return [slice(end - n, end) for n, end in zip(these, ends, strict=True)]

        monkeypatch.setattr(Documents, "blocks", blocks)
        model = make(5, n_iterations=20)
        model.normalise_at(EVEN)
        rule = DocumentRule(EVEN, uniform(20), 4)
        one = model.local_step(Batch(counts, slice(0, 60)), Tempering(0.5), moments=True)
        energy, log_c = one.energy, one.log_partition
        batch = Batch(counts, slice(0, 60))
        ruled = model.local_step(batch, Tempering(0.5, rule=rule), moments=True)
        gamma = model.documents.infer(counts, Tempering(1.0, rule=rule))
        found.append([energy, log_c, gamma, ruled.inverse, dense(ruled, 5).copy()])
    for whole, parts in zip(*found, strict=True):
        assert_allclose(parts, whole, rtol=1e-9, atol=1e-12)


def test_blocks_keep_the_level_each(counts, monkeypatch):
    monkeypatch.setattr(Documents, "blocks", lambda *_: [slice(0, 25), slice(25, 60)])
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
    together = model.documents.infer(counts, Tempering(1.0, rule=rule))
    for d in range(60):
        alone = model.documents.infer(counts[d], Tempering(1.0, rule=rule))
        assert_allclose(alone[0], together[d], rtol=1e-9)


def test_blocks_have_few_entries(counts, monkeypatch):
    """Documents that are long are taken a few at a time, each once, and their bits stay."""
    whole = make(5)
    expected = whole.documents.infer(counts, Tempering(1.0))
    monkeypatch.setattr("annealvi.models.lda.documents.BLOCK_ENTRIES", 40)
    blocks = [*whole.documents.blocks(slice(3, 60), counts.indptr, 40)]
    assert [row for rows in blocks for row in range(rows.start, rows.stop)] == [*range(3, 60)]
    entries = [counts[rows].nnz for rows in blocks]
    assert len(blocks) > 5 and all(
        n <= 40 or b.stop == b.start + 1 for n, b in zip(entries, blocks, strict=True)
    )
    assert_allclose(whole.documents.infer(counts, Tempering(1.0)), expected, rtol=0)
