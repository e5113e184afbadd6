"""What learned temperatures ask of LDA: log C and energies at the current q, local rules."""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.special import entr, logsumexp, psi

from annealvi import TemperedLDA, Variational
from annealvi.datasets import make_topic_corpus
from annealvi.model import Batch, LocallyNormalised, Tempering
from annealvi.models.lda import LDA, LocalOptions
from annealvi.models.lda.log_partition import DocumentPartition
from annealvi.partition import LogPartition, log_partition
from annealvi.temperature.local import DocumentRule

DTYPES = (np.float32, np.float64)
EVEN = np.arange(1, 21) / 20
GRIDS = {
    "even": EVEN,
    "exponential": np.geomspace(1, 0.1, 30),
    "a few": np.array([1.0, 0.83, 0.31, 0.02]),
}


def e_log(parameters):
    parameters = np.asarray(parameters, dtype=np.float64)
    return psi(parameters) - psi(parameters.sum(axis=-1, keepdims=True))


def naive_log_c(gamma, topics, n_words, inverses):
    """N_d log sum_k exp(b E log theta_dk) sum_v exp(b E log beta_kv), term by term."""
    e_log_theta, e_log_beta = e_log(gamma), e_log(topics)
    found = np.zeros((len(gamma), len(inverses)))
    for d, n in enumerate(n_words):
        for m, b in enumerate(inverses):
            terms = b * (e_log_theta[d][:, None] + e_log_beta)
            found[d, m] = n * logsumexp(terms)
    return found


def naive_fit(counts, gamma, b, topics, alpha, n_iterations):
    """gamma of a document after so many iterations, its phi and its energy."""
    e_log_beta = e_log(topics)

    def responsibilities(gamma):
        scores = e_log(gamma)[:, None] + e_log_beta
        weights = np.exp(b * scores)
        return weights / weights.sum(axis=0), scores

    for _ in range(n_iterations):
        gamma = alpha + b * responsibilities(gamma)[0] @ counts
    phi, scores = responsibilities(gamma)
    return gamma, phi, float(np.sum(counts * phi * scores))


def make(n_topics=5, dtype=np.float64, *, alpha=0.1, n_iterations=200, n_threads=1, V=41, **kwargs):
    options = LocalOptions(n_iterations, 0.0, kwargs.get("start", "constant"))
    model = LDA(
        n_topics, V, alpha=alpha, eta=0.05, dtype=dtype, options=options, n_threads=n_threads
    )
    rng = np.random.RandomState(1)
    model.rng = rng
    model.set_topics(rng.gamma(0.3, 1.0, (n_topics, V)) + 0.02)
    return model


def dense(local, n_topics):
    statistics = local.statistics
    return np.where(statistics.seen[:, None], statistics.values, 0)[:, :n_topics]


def lengths(X):
    return X.toarray().sum(axis=1)


# ------------------------------------------------------------------ log C


def test_lda_is_normalised_from_batches():
    assert isinstance(make(), LocallyNormalised)


@pytest.mark.parametrize("grid", GRIDS)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n_topics", [1, 5, 17])
def test_log_c_of_documents(counts, n_topics, dtype, grid, instruction_set):
    model = make(n_topics, dtype)
    gamma = np.random.RandomState(0).gamma(0.5, 2.0, (60, n_topics)).astype(dtype) + dtype(0.05)
    found = model.document_log_partition(counts.astype(dtype), gamma, GRIDS[grid])
    expected = naive_log_c(gamma, model.topics, lengths(counts), GRIDS[grid])
    # on other grids than even ones sums are interpolated
    error = np.abs(found - expected) / np.maximum(1, lengths(counts))[:, None]
    assert error.max() < (1e-11 if grid == "even" else 1e-5)
    assert found.dtype == np.float64
    assert_array_equal(found[[3, 11]], 0.0)  # documents without words


@pytest.mark.parametrize("grid", GRIDS)
def test_log_c_of_sparse_topics(grid):
    """At eta = 1/500 E log beta reaches -500: what exp(b E log beta) keeps must be right."""
    model = LDA(6, 300, alpha=1 / 500, eta=1 / 500)
    topics = np.full((6, 300), 1 / 500)
    topics[np.arange(300) % 6, np.arange(300)] = 40.0
    model.set_topics(topics)
    gamma = np.array([[1 / 500] * 5 + [30.0], [5.0] * 6])
    X = sparse.csr_matrix(np.ones((2, 300)))
    found = model.document_log_partition(X, gamma, GRIDS[grid])
    expected = naive_log_c(gamma, topics, [300, 300], GRIDS[grid])
    assert_allclose(found, expected, rtol=2e-6, atol=1e-4)


def test_the_partition_is_that_of_one_word_times_words(counts):
    model = make(4)
    gamma = np.random.RandomState(0).rand(3, 4) + 0.1
    partition = DocumentPartition(EVEN)
    partition.refresh(model)
    one = partition(gamma, np.ones(3), 1)
    assert_allclose(partition(gamma, np.array([2.5, 0.0, 7.0]), 1), one * [[2.5], [0], [7]])


def test_the_slope_of_log_c_is_the_energy_of_what_it_normalises():
    """At b = 1 words and topics drawn as q has them have just this energy."""
    model = make(4)
    gamma = np.random.RandomState(0).rand(5, 4) * 3 + 0.1
    n_words = np.array([1.0, 7.0, 30.0, 2.0, 100.0])
    X = sparse.csr_matrix(np.repeat(n_words[:, None] / 41, 41, axis=1))
    h = 1e-4
    points = 1 + h * np.arange(-2, 3)
    log_c = model.document_log_partition(X, gamma, points)
    slope = (log_c[:, 0] - 8 * log_c[:, 1] + 8 * log_c[:, 3] - log_c[:, 4]) / (12 * h)
    e_log_beta = e_log(model.topics)
    for d in range(5):
        scores = e_log(gamma[d])[:, None] + e_log_beta
        p = np.exp(scores - logsumexp(scores))  # of topic and word
        assert slope[d] == pytest.approx(n_words[d] * np.sum(p * scores), rel=1e-8)


# ------------------------------------------------------------------ energies


@pytest.mark.parametrize("b", [1.0, 0.3])
@pytest.mark.parametrize("dtype", DTYPES)
def test_energies_of_documents(counts, dtype, b, instruction_set):
    model = make(5, dtype)
    gamma = (np.random.RandomState(0).gamma(0.5, 2.0, (60, 5)) + 0.05).astype(dtype)
    found = model.document_energies(counts.astype(dtype), gamma, Tempering(b))
    expected = [
        naive_fit(row, g.astype(np.float64), b, model.topics, 0.1, 0)[2]
        for row, g in zip(counts.toarray(), gamma, strict=True)
    ]
    rtol = 1e-10 if dtype is np.float64 else 2e-4
    assert_allclose(found, expected, rtol=rtol, atol=rtol)
    assert_array_equal(found[[3, 11]], 0.0)


@pytest.mark.parametrize("form", ["likelihood", "posterior"])
@pytest.mark.parametrize(("start", "b"), [("warm", 1.0), ("constant", 0.1)])
@pytest.mark.parametrize("dtype", DTYPES)
def test_a_batch_brings_its_energy_and_log_c(counts, start, dtype, b, form, instruction_set):
    """Without documents' energies one by one: from gamma and the statistics."""
    alpha = np.linspace(0.05, 0.4, 5)
    model = make(5, dtype, alpha=alpha, start=start, n_iterations=60)
    model.start_documents(60)
    model.normalise_at(GRIDS["exponential"])
    X = counts.astype(dtype)
    local = model.local_step(Batch(X, slice(2, 50)), Tempering(b, form), moments=True)
    if form == "posterior":
        alpha = b * alpha + 1 - b
    energy, log_c = 0.0, np.zeros(30)
    for row in counts.toarray()[2:50]:
        gamma, _, one = naive_fit(row, np.ones(5), b, model.topics, alpha, 60)
        energy += one
        log_c += naive_log_c(gamma[None], model.topics, [row.sum()], GRIDS["exponential"])[0]
    rtol = 1e-5 if dtype is np.float64 else 1e-4
    assert local.energy == pytest.approx(energy, rel=rtol)
    assert_allclose(local.log_partition, log_c, rtol=rtol, atol=rtol * counts.sum())
    assert local.n_units == counts[2:50].sum()
    assert local.unit == "word"
    assert local.inverse is None
    if dtype is np.float64:  # the sum of what it is without log C
        plain = make(5, alpha=np.linspace(0.05, 0.4, 5))
        other = plain.local_step(Batch(X, slice(2, 50)), Tempering(b, form), moments=True)
        assert local.energy == pytest.approx(np.sum(other.energy), rel=1e-5)
        assert other.log_partition is None


def test_energy_of_a_batch_under_random_starts(counts):
    model = make(5, start="random")
    model.normalise_at(EVEN)
    local = model.local_step(Batch(counts, slice(0, 60)), Tempering(0.5), moments=True)
    energy = sum(
        naive_fit(row, np.ones(5), 0.5, model.topics, 0.1, 200)[2] for row in counts.toarray()
    )
    assert local.energy == pytest.approx(energy, rel=1e-5)


def test_steps_that_ask_for_no_moments_bring_none(counts):
    model = make()
    model.normalise_at(EVEN)
    local = model.local_step(Batch(counts, slice(0, 60)), Tempering(0.5))
    assert local.energy is None and local.log_partition is None
    assert_array_equal(
        dense(local, 5),
        dense(model.local_step(Batch(counts, slice(0, 60)), Tempering(0.5), moments=True), 5),
    )


def test_log_c_follows_the_topics(counts):
    """A full step renews the topics' sums at once, small ones by the time they add up to it."""
    for rho in (1.0, 0.125):
        model = make()
        model.normalise_at(EVEN)
        batch = Batch(counts, slice(0, 60))
        for _ in range(9):
            local = model.local_step(batch, Tempering(0.7), moments=True)
            model.global_step(local.statistics, rho, 1.0, Tempering(0.7))
        topics = model.topics.copy()
        local = model.local_step(batch, Tempering(0.7), moments=True)
        gammas = [naive_fit(row, np.ones(5), 0.7, topics, 0.1, 200)[0] for row in counts.toarray()]
        expected = naive_log_c(gammas, topics, lengths(counts), EVEN).sum(axis=0)
        rtol = 1e-9 if rho == 1 else 0.02
        assert_allclose(local.log_partition, expected, rtol=rtol, atol=rtol * counts.sum())
    model.set_topics(np.random.RandomState(5).rand(5, 41) + 0.1)
    local = model.local_step(batch, Tempering(0.7), moments=True)
    gammas = [
        naive_fit(row, np.ones(5), 0.7, model.topics, 0.1, 200)[0] for row in counts.toarray()
    ]
    expected = naive_log_c(gammas, model.topics, lengths(counts), EVEN).sum(axis=0)
    assert_allclose(local.log_partition, expected, rtol=1e-9, atol=1e-6)


# ------------------------------------------------------------------ documents' temperatures


class Counting(DocumentRule):
    """A rule that remembers how often it was asked."""

    calls = 0

    def __call__(self, *args):
        self.calls += 1
        return super().__call__(*args)


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
        log_c = naive_log_c(gamma, topics, n_words, rule.inverses)
        b = rule(energy, n_words, log_c)
    phis, _ = fit()
    statistics = sum(b[d] * phis[d] * X[d] for d in range(n))
    return gamma, b, statistics


@pytest.mark.parametrize(
    ("rounds", "level", "corpus"),
    [(1, None, False), (2, 0.4, False), (2, None, True), (6, 0.4, True)],
)
@pytest.mark.parametrize("dtype", DTYPES)
def test_a_step_under_a_rule(counts, dtype, corpus, level, rounds, instruction_set):
    corpus = 2.0 * (1 - EVEN) if corpus else None
    rule = DocumentRule(EVEN, uniform(20), rounds, corpus=corpus, level=level)
    model = make(5, dtype, n_iterations=7)
    X = counts.astype(dtype)
    local = model.local_step(Batch(X, slice(0, 60)), Tempering(0.4, rule=rule), moments=True)
    _, b, statistics = naive_rule_step(
        counts.toarray(), 0.4, model.topics.astype(float), 0.1, 7, rule
    )
    rtol = 1e-8 if dtype is np.float64 else 5e-3
    assert_allclose(local.inverse, b, rtol=rtol)
    assert_allclose(dense(local, 5).T, statistics, rtol=10 * rtol, atol=rtol / 10)
    assert 0 < local.inverse.min() < 0.9 * local.inverse.max() <= 0.9
    # what the topics get is what those temperatures say
    assert dense(local, 5).sum() == pytest.approx(local.inverse @ lengths(counts), rel=1e-5)
    assert local.n_units == counts.sum()


def test_statistics_are_those_of_the_temperatures_found(counts):
    rule = DocumentRule(EVEN, uniform(20), 2)
    model = make(5)
    local = model.local_step(Batch(counts, slice(0, 60)), Tempering(0.3, rule=rule), moments=True)
    statistics = dense(local, 5).copy()
    inverse = local.inverse.copy()
    again = model.local_step(Batch(counts, slice(0, 60)), Tempering(inverse))
    assert_allclose(statistics, dense(again, 5), rtol=1e-6, atol=1e-9)  # both converged


@pytest.mark.parametrize("rounds", [1, 2, 5])
def test_rounds_are_respected(counts, rounds):
    rule = Counting(EVEN, uniform(20), rounds, level=0.5)
    model = make(5, n_iterations=3)
    model.local_step(Batch(counts, slice(0, 60)), Tempering(0.1, rule=rule), moments=True)
    assert rule.calls == rounds
    model.infer(counts, Tempering(1.0, rule=rule))
    assert rule.calls == 2 * rounds


def test_log_c_of_a_batch_under_a_rule(counts):
    rule = DocumentRule(EVEN, uniform(20), 2)
    model = make(5, n_iterations=7)
    model.normalise_at(EVEN)
    local = model.local_step(Batch(counts, slice(0, 60)), Tempering(0.4, rule=rule), moments=True)
    gamma, _, _ = naive_rule_step(counts.toarray(), 0.4, model.topics, 0.1, 7, rule)
    expected = naive_log_c(gamma, model.topics, lengths(counts), EVEN).sum(axis=0)
    assert_allclose(local.log_partition, expected, rtol=1e-9, atol=1e-6)


@pytest.mark.parametrize("dtype", DTYPES)
def test_inference_under_a_rule(counts, dtype):
    rule = DocumentRule(EVEN, uniform(20), 3)
    model = make(5, dtype, n_iterations=7)
    gamma = model.infer(counts.astype(dtype), Tempering(1.0, rule=rule))
    expected, b, _ = naive_rule_step(
        counts.toarray(), 1.0, model.topics.astype(float), 0.1, 7, rule
    )
    rtol = 1e-8 if dtype is np.float64 else 5e-3
    assert_allclose(gamma, expected, rtol=rtol)
    words = lengths(counts)
    assert_allclose(gamma.sum(axis=1), 0.5 + b * words, rtol=rtol)
    assert_allclose(gamma[words == 0], 0.1, rtol=1e-6)


@pytest.mark.parametrize(
    ("tempering", "dtype"), [("one", np.float32), ("rule", np.float64), ("corpus", np.float32)]
)
def test_any_number_of_threads_gives_the_same_bits(dtype, tempering, instruction_set):
    X = sparse.random(150, 233, 0.1, "csr", random_state=3, dtype=np.float64)
    X.data = np.ceil(X.data * 4)
    X = X.astype(dtype)
    rules = {
        "one": None,
        "rule": DocumentRule(EVEN, uniform(20), 2, level=0.5),
        "corpus": DocumentRule(EVEN, uniform(20), 2, corpus=2 * (1 - EVEN)),
    }
    results = []
    for n_threads in (1, 2, 3):
        model = make(13, dtype, n_iterations=10, n_threads=n_threads, V=233)
        model.normalise_at(EVEN if rules[tempering] else GRIDS["exponential"])
        found = []
        for _ in range(2):
            asked = Tempering(0.6, rule=rules[tempering])
            local = model.local_step(Batch(X, slice(0, 150)), asked, moments=True)
            model.global_step(local.statistics, 0.5, 1.0, asked)
            found += [model.topics.copy(), local.log_partition]
            found += [local.energy] if rules[tempering] is None else [local.inverse]
        gamma = model.infer(X, Tempering(1.0, rule=rules[tempering]), n_threads=n_threads)
        found += [gamma, model.document_energies(X, gamma, n_threads=n_threads)]
        found += [model.document_log_partition(X, gamma, EVEN, n_threads=n_threads)]
        results.append(found)
    for other in results[1:]:
        for one, two in zip(results[0], other, strict=True):
            assert_array_equal(one, two)


def test_float32_follows_float64(counts):
    rule = DocumentRule(EVEN, uniform(20), 2, level=0.5)
    found = {}
    for dtype in DTYPES:
        model = make(5, dtype, n_iterations=20)
        model.normalise_at(EVEN)
        X = counts.astype(dtype)
        one = model.local_step(Batch(X, slice(0, 60)), Tempering(0.5), moments=True)
        ruled = model.local_step(Batch(X, slice(0, 60)), Tempering(0.5, rule=rule), moments=True)
        found[dtype] = one.energy, one.log_partition, ruled.inverse, ruled.log_partition
    for single, double in zip(*found.values(), strict=True):
        assert_allclose(single, double, rtol=1e-3, atol=0.01)


def test_log_partition_at_the_current_q(counts):
    """annealvi.partition's "posterior", of the model and of a fitted estimator."""
    inverses = 1 / np.geomspace(1, 10, 30)
    model = make(5)
    gamma = model.infer(counts)
    expected = naive_log_c(gamma, model.topics, lengths(counts), inverses).sum(axis=0)
    found = log_partition(model, inverses, "posterior", data=counts)
    assert_allclose(found.values, expected - expected[0], rtol=1e-5, atol=1e-2)
    assert found.values[0] == 0
    lda = TemperedLDA(5, doc_topic_prior=0.1, random_state=0, preset="sklearn").fit(counts)
    of_fit = log_partition(lda, inverses, "posterior", data=counts.toarray()).values
    model = lda._model
    expected = naive_log_c(model.infer(counts), model.topics, lengths(counts), inverses).sum(axis=0)
    assert_allclose(of_fit, expected - expected[0], rtol=1e-5, atol=1e-2)
    with pytest.raises(ValueError, match=r"one that TemperedLDA offers: 'posterior'\. Got"):
        log_partition(lda, inverses, "exact")


def test_documents_without_words(counts):
    empty = sparse.csr_matrix((8, 41))
    rule = DocumentRule(EVEN, uniform(20), 2, level=0.3)
    model = make(5)
    model.normalise_at(EVEN)
    for tempering in (Tempering(0.5), Tempering(0.5, rule=rule)):
        local = model.local_step(Batch(empty, slice(0, 8)), tempering, moments=True)
        assert local.n_units == 0
        assert_array_equal(local.log_partition, 0.0)
        assert not local.statistics.seen.any()
        if tempering.rule is None:
            assert local.energy == pytest.approx(0.0, abs=1e-12)
        else:
            assert_allclose(local.inverse, 0.3)
    gamma = model.infer(empty, Tempering(1.0, rule=rule))
    assert_allclose(gamma, 0.1)
    assert_array_equal(model.document_energies(empty, gamma), 0.0)
    assert model.document_log_partition(empty[:0], gamma[:0], EVEN).shape == (0, 20)


BLOCKS = [[60], [7, 43, 10], [1] * 60]


@pytest.mark.parametrize("sizes", BLOCKS[1:], ids=["three", "sixty"])
def test_documents_in_blocks(counts, monkeypatch, sizes):
    """How documents are cut into blocks changes nothing but the order of sums."""
    found = []
    for these in (BLOCKS[0], sizes):
        ends = np.cumsum(these)

        def blocks(self, rows, these=these, ends=ends):
            assert rows == slice(0, 60)
            return [slice(end - n, end) for n, end in zip(these, ends, strict=True)]

        monkeypatch.setattr(LDA, "_blocks", blocks)
        model = make(5, n_iterations=20)
        model.normalise_at(EVEN)
        rule = DocumentRule(EVEN, uniform(20), 4)
        one = model.local_step(Batch(counts, slice(0, 60)), Tempering(0.5), moments=True)
        energy, log_c = one.energy, one.log_partition
        ruled = model.local_step(
            Batch(counts, slice(0, 60)), Tempering(0.5, rule=rule), moments=True
        )
        gamma = model.infer(counts, Tempering(1.0, rule=rule))
        found.append([energy, log_c, gamma, ruled.inverse, dense(ruled, 5).copy()])
    for whole, parts in zip(*found, strict=True):
        assert_allclose(parts, whole, rtol=1e-9, atol=1e-12)


def test_blocks_keep_the_level_each(counts, monkeypatch):
    monkeypatch.setattr(LDA, "_blocks", lambda self, rows: [slice(0, 25), slice(25, 60)])
    rule = DocumentRule(EVEN, uniform(20), 2, level=0.2)
    batch = Batch(counts, slice(0, 60))
    inverse = make(5).local_step(batch, Tempering(0.2, rule=rule), moments=True).inverse
    written = lengths(counts) > 0
    assert not written.all()
    for rows in (slice(0, 25), slice(25, 60)):
        block = inverse[rows][written[rows]]
        assert np.exp(np.mean(np.log(block))) == pytest.approx(0.2, rel=1e-3)


def test_temperatures_of_documents_do_not_depend_on_their_neighbours(counts):
    """Without a level to keep, each document is fitted as often as it takes itself."""
    rule = DocumentRule(EVEN, uniform(20), 4)
    model = make(5)
    together = model.infer(counts, Tempering(1.0, rule=rule))
    for d in range(60):
        alone = model.infer(counts[d], Tempering(1.0, rule=rule))
        assert_allclose(alone[0], together[d], rtol=1e-9)


# ------------------------------------------------------------------ VT Eq. 5


def tempered_elbo(model, planned, X, gamma):
    """VT Eq. 5 at a given gamma, with the best phi: log C does not depend on q."""
    r, b = planned.posterior_, 1 / planned.temperatures_
    log_c = planned._current_log_c()
    bound = model.elbo(X, gamma, Tempering(float(r @ b)))
    return bound - r @ (log_c - log_c[0]) + entr(r).sum() - math.log(len(r))


def ascent_problem(seed):
    rng = np.random.RandomState(seed)
    n_topics, V = rng.randint(2, 8), rng.randint(20, 80)
    length = int(rng.choice([3, 15, 60]))
    X = make_topic_corpus(60, V, n_topics, document_length=length, random_state=seed).data
    grid = np.geomspace(1, 10, rng.choice([2, 5, 50, 200]))
    kind = rng.randint(3)
    # log C of something that T comes to rest with inside of the grid
    known = X.sum() * rng.choice([0.7, 1.0, 1.5, 2, 3]) * np.log(grid)
    partition = ["prior", known, LogPartition(1 / grid, known)][kind]
    temperature = Variational(
        grid=grid,
        partition=partition,
        damping=1.0,
        monotone=False,
        start=1 / np.mean(1 / grid),
        final_fraction=0,
    )
    return X, TemperedLDA(
        n_topics,
        doc_topic_prior=rng.choice([0.02, 0.1, 1]),
        topic_word_prior=rng.choice([0.02, 0.1, 1]),
        temperature=temperature,
        document_init="warm",
        mean_change_tol=0,
        max_doc_update_iter=100,
        max_iter=30,
        preset="sklearn",
        random_state=seed,
    )


@pytest.mark.filterwarnings("ignore:The learned temperature did not cool")
@pytest.mark.parametrize("seed", range(20))
def test_undamped_steps_ascend_the_tempered_elbo(seed):
    """Where log C does not depend on q, no step lowers Eq. 5, that of q(y) included."""
    X, lda = ascent_problem(seed)
    bounds = []

    def callback(estimator, monitor):
        model = estimator._model
        bounds.append(tempered_elbo(model, estimator._temperature, X, model.document_topics))

    lda.set_params(callback=callback).fit(X)
    assert np.min(np.diff(bounds) / np.abs(bounds[1:])) >= -1e-9
    assert bounds[-1] > bounds[0]
    assert len(np.unique(lda.temperature_path_)) > 1
    assert lda.temperature_posterior_path_.shape == (30, len(lda.temperature_posterior_))


@pytest.mark.filterwarnings("ignore:The learned temperature did not cool")
@pytest.mark.filterwarnings("ignore:The training perplexity had not converged")
@pytest.mark.parametrize("seed", range(20))
def test_the_history_of_the_tempered_elbo_never_falls(seed):
    X, lda = ascent_problem(seed)
    lda.set_params(evaluate_every=1, perp_tol=0).fit(X)
    bounds = lda.history_["tempered_elbo"]
    assert np.all(np.isfinite(bounds))
    assert np.min(np.diff(bounds) / np.abs(bounds[1:])) >= -1e-9
