"""Topics that hardly differ part below the critical temperature, and merge above it."""

import numpy as np
import pytest
from scipy import sparse

from annealvi import Annealed, TemperedLDA
from annealvi.model import Batch, Tempering
from annealvi.models.lda import starts
from annealvi.models.lda.starts import critical_temperature
from tests.asserts import refused
from tests.marks import cases
from tests.models.lda.pair import LDA, LocalOptions

pytestmark = pytest.mark.statistical


def corpus(seed, n_topics, n_words, n_documents=400, n_features=80):
    rng = np.random.RandomState(seed)
    beta = rng.dirichlet(np.full(n_features, 0.3), n_topics)
    theta = rng.dirichlet(np.full(n_topics, 0.3), n_documents)
    counts = [rng.multinomial(n_words, row @ beta) for row in theta]
    return sparse.csr_matrix(np.array(counts, dtype=float))


def growth(X, n_topics, alpha, temperature):
    """By how much the differences between nearly equal topics grow in a step."""
    rng = np.random.RandomState(0)
    n_documents, n_features = X.shape
    options = LocalOptions(2000, 1e-13)
    model = LDA(n_topics, n_features, alpha=alpha, eta=1e-3, estimate="map", options=options)
    words = np.asarray(X.sum(axis=0)).ravel() / n_topics
    noise = 1 + 1e-3 * rng.standard_normal((n_topics, n_features))
    model.rng = rng
    model.assign(np.maximum(words, 1e-3) * noise)
    tempering = Tempering(1 / temperature)
    spread = []
    for _ in range(60):
        step = model.local_step(Batch(X, slice(0, n_documents)), tempering)
        model.global_step(step.statistics, 1.0, 1.0, tempering)
        topics = np.array(model.components)
        topics /= topics.sum(axis=1, keepdims=True)
        spread.append(np.linalg.norm(topics - topics.mean(axis=0)))
    return (spread[-1] / spread[-21]) ** (1 / 20)


@pytest.mark.slow
@cases(
    "seed, n_topics, n_words, alpha",
    (0, 5, 60, 0.2),
    (2, 3, 30, 0.3),
    pytest.param(1, 10, 100, 0.1, marks=pytest.mark.slow),
    pytest.param(3, 8, 40, 0.1, marks=pytest.mark.slow),
)
def test_topics_part_below_it(monkeypatch, seed, n_topics, n_words, alpha):
    X = corpus(seed, n_topics, n_words)
    monkeypatch.setattr("annealvi.models.lda.starts.RANK", 1)  # the largest change there is
    critical = critical_temperature(X, n_topics, alpha)
    assert growth(X, n_topics, alpha, 0.97 * critical) > 1.01
    assert growth(X, n_topics, alpha, 1.03 * critical) < 0.99


@pytest.mark.slow
def test_the_posterior_form_has_one_of_its_own():
    """Its documents have a prior of b alpha + 1 - b, which keeps them from choosing topics."""
    X = corpus(0, 5, 60)
    critical = critical_temperature(X, 100, 0.03, "posterior")
    assert critical < 2 < critical_temperature(X, 100, 0.03)
    temperature = Annealed("auto", length=1.0, form="posterior")
    lda = TemperedLDA(100, random_state=0, temperature=temperature, max_iter=5)
    assert lda.fit(X).temperature_path_[0] == pytest.approx(1.2 * critical)


def test_it_grows_with_topics_and_falls_with_the_length_of_documents():
    X = corpus(0, 10, 100)
    by_topics = [critical_temperature(X, k, 0.1) for k in (2, 10, 50, 200)]
    assert by_topics == sorted(by_topics) and by_topics[-1] > by_topics[0]
    assert critical_temperature(corpus(0, 10, 10), 10, 0.1) > critical_temperature(X, 10, 0.1)


@cases(
    "X",
    sparse.csr_matrix((5, 4)),
    sparse.csr_matrix(np.ones((1, 3))),
    sparse.csr_matrix(np.ones((50, 1))),
    sparse.csr_matrix(np.eye(3)),
    sparse.csr_matrix(np.ones((50, 30))),
    ids=["empty", "one document", "one word", "three documents", "all the same"],
)
def test_corpora_that_say_little(X):
    assert 1 <= critical_temperature(X, 3, 0.1) < 10
    X = X if X.nnz else X + sparse.csr_matrix(([1.0], ([0], [0])), shape=X.shape)
    assert TemperedLDA(3, random_state=0).fit(X).temperature_path_[0] >= 1


def test_one_topic_has_none():
    assert critical_temperature(corpus(0, 3, 30), 1, 1.0) == 1


def test_the_fit_starts_above_it():
    X = corpus(0, 5, 60)
    lda = TemperedLDA(5, random_state=0, batch_size=100, max_iter=3).fit(X)
    assert lda.temperature_path_[0] == pytest.approx(1.2 * critical_temperature(X, 5, 0.2))
    assert lda.temperature_path_[-1] == 1


def test_auto_needs_a_model_that_knows():
    for start in ("auto", "hot"):
        refused("'start' parameter of Annealed must be", Annealed(start).plan, 10, 1)


@pytest.mark.parametrize("noise", [1e-12, -1e-12])
def test_roundings_of_lapack_change_nothing(monkeypatch, noise):
    X = corpus(0, 5, 60)
    before = critical_temperature(X, 5, 0.2)
    svd = starts.randomized_svd

    def of_another_processor(*args, **options):
        u, values, v = svd(*args, **options)
        return u, values * (1 + noise), v

    monkeypatch.setattr(starts, "randomized_svd", of_another_processor)
    assert critical_temperature(X, 5, 0.2) == before


def test_limits_of_the_critical_temperature():
    """Counts that overflow have no differences; no temperature is above the largest."""
    X = corpus(0, 3, 30)
    with np.errstate(over="ignore"):
        assert critical_temperature(X * 1e307, 5, 0.1) == 1.0
    different = sparse.csr_matrix(np.kron(np.eye(8), np.full((3, 1), 2.0)))
    assert critical_temperature(different, 5, 1e-5) == starts.MAX_CRITICAL


def test_a_stream_that_begins_with_few_documents_has_the_default():
    X = corpus(0, 3, 30)
    few, many = (
        TemperedLDA(
            5, temperature=Annealed("auto", passes=1), total_samples=400, random_state=0
        ).partial_fit(Z)
        for Z in (X[:9], X[:200])
    )
    assert few.temperature_path_[0] == pytest.approx(3.0 + 0.2 * starts.DEFAULT_CRITICAL)
    assert many.temperature_path_[0] != pytest.approx(3.0 + 0.2 * starts.DEFAULT_CRITICAL)
