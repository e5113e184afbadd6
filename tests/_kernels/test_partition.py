"""Sums of powers over grids against plain NumPy."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats
from scipy.special import gammainc, gammaln, logsumexp

from annealvi._kernels import partition
from annealvi._kernels.layout import padded_rows
from annealvi.models.lda_prior import LDAPrior
from annealvi.partition import even_grid, exponential_grid
from annealvi.partition.estimate import Draws, PowerGrid
from tests.asserts import same_bits
from tests.marks import cases

GRIDS = {
    "even": 1 / even_grid(10, 100),
    "even, upwards": 1 / even_grid(10, 100)[::-1],
    "even, from no multiple of its step": np.linspace(1, 0.137, 50),
    "even, of more points than a panel": 1 / even_grid(50, 700),
    "exponential": 1 / exponential_grid(10, 100),
    "exponential, wide": 1 / exponential_grid(1000, 30),
    "narrow": 1 / exponential_grid(1.001, 5),
    "in no order": np.array([0.9, 0.2, 1.0, 0.35]),
    "one point": np.array([0.4]),
    "two points": np.array([1.0, 0.3]),
}
grids = pytest.mark.parametrize("b", GRIDS.values(), ids=GRIDS)
#: Below, at and above whole vectors and groups of them.
SIZES = (1, 2, 7, 8, 9, 31, 32, 33, 63, 64, 65, 200)


def logs_of(n_rows, size, seed=0):
    """Logarithms from 0 to where powers underflow, some of -infinity; each row has a 0."""
    rng = np.random.RandomState(seed)
    logs = -rng.exponential(10.0 ** rng.randint(-2, 4, (n_rows, size)))
    logs[rng.random_sample(logs.shape) < 0.1] = -np.inf
    logs[:, 0] = 0
    return logs


def naive(logs, b, weights=None):
    """sum_i w_i exp(b l_i), one b after the other."""
    weights = np.ones((len(b), logs.shape[1])) if weights is None else weights
    return np.stack([np.exp(x * logs) @ w for x, w in zip(b, weights, strict=True)], axis=1)


@grids
def test_row_sums(b):
    grid = PowerGrid(b)
    for size in SIZES:
        logs = logs_of(3, size, seed=size)
        sums = grid.row_sums(padded_rows(logs, np.float64, -np.inf))
        assert sums.shape == (3, grid.n_points)
        assert_allclose(sums, naive(logs, grid.points), rtol=1e-12)
        assert_allclose(grid.at_inverses(sums), naive(logs, b), rtol=1e-12)
        assert_allclose(grid.log_at_inverses(sums), np.log(naive(logs, b)), atol=1e-12)


@grids
def test_weighted_row_sums(b):
    """Weights that are sums of powers themselves, as those of topics are."""
    grid = PowerGrid(b)
    for size in SIZES:
        logs, other = logs_of(2, size, seed=size), logs_of(4, size, seed=1)
        weights, expected = (np.exp(x[:, None, None] * other).sum(1) for x in (grid.points, b))
        padded = padded_rows(weights, np.float64)
        sums = grid.row_sums(padded_rows(logs, np.float64, -np.inf), padded)
        assert_allclose(grid.at_inverses(sums), naive(logs, b, expected), rtol=1e-12)


@pytest.mark.parametrize("n_rows", [1, 5, 1023, 1024, 1025, 2100])
@pytest.mark.parametrize("size", [1, 8, 19])
def test_column_sums(n_rows, size):
    grid = PowerGrid(1 / exponential_grid(10, 7))
    logs = logs_of(size, n_rows).T
    sums = grid.column_sums(padded_rows(logs, np.float64, -np.inf))
    assert_allclose(sums[:, :size], naive(logs.T, grid.points).T, rtol=1e-12)
    assert_array_equal(sums[:, size:], 0)


@pytest.mark.slow
@given(
    st.lists(
        st.one_of(st.just(-np.inf), st.just(0.0), st.floats(-2e4, 0), st.floats(-1e-3, 0)),
        max_size=70,
    ),
    st.floats(1.0001, 200),
    st.integers(2, 40),
    st.booleans(),
)
def test_any_numbers_and_grids(values, t_max, size, even):
    b = 1 / (even_grid if even else exponential_grid)(t_max, size)
    grid, logs = PowerGrid(b), np.array([[0.0, *values]])
    sums = grid.row_sums(padded_rows(logs, np.float64, -np.inf))
    assert_allclose(grid.at_inverses(sums), naive(logs, b), rtol=1e-12)


@grids
def test_the_same_bits(b):
    grid = PowerGrid(b)
    for size in (*SIZES, 2500):
        logs = logs_of(37 if size == 2500 else 3, size)
        rows, columns = (padded_rows(x, np.float64, -np.inf) for x in (logs, logs.T))
        weights = padded_rows(np.ones((grid.n_points, size)), np.float64)
        same_bits(lambda n, rows=rows: grid.row_sums(rows, n_threads=n), 1, 3)
        same_bits(lambda n, of=(rows, weights): grid.row_sums(*of, n_threads=n), 1, 3)
        same_bits(lambda n, columns=columns: grid.column_sums(columns, n_threads=n), 1, 3)
    for some in (slice(3, 4), slice(30, 37), slice(0, 0)):  # nor of neighbours
        assert_array_equal(grid.row_sums(rows[some]), grid.row_sums(rows)[some])


@pytest.mark.thinned
@pytest.mark.parametrize("t_max", [1.001, 1.01, 1.2, 1.5, 3.4, 5, 10, 100])
@pytest.mark.parametrize("size", [2, 100, 10**4, 10**6])
def test_interpolated_sums_are_as_accurate_as_they_say(t_max, size):
    """Of even probabilities, all of them small where there are many, and of Dirichlet ones."""
    b, rng = 1 / exponential_grid(t_max, 9), np.random.RandomState(0)
    rows, expected = np.full((1, 8), -np.inf), [np.exp((1 - b) * np.log(size))]
    rows[0, 0] = -np.log(size)
    factors = [size]
    for prior in (0.01, 1.0, 100.0) if size < 10**6 else (0.01,):
        logs = np.log(rng.standard_gamma(prior + 1, size)) + np.log(rng.random_sample(size)) / prior
        rows = [*rows, logs - logsumexp(logs)]
        expected.append(naive(rows[-1][None], b)[0])
        factors.append(1)
    grid = PowerGrid(b)
    for row, factor, sums in zip(rows, factors, expected, strict=True):
        found = grid.row_sums(padded_rows(np.atleast_2d(row), np.float64, -np.inf))
        assert_allclose(factor * grid.at_inverses(found)[0], sums, rtol=1e-12)


def generators(seed):
    return np.random.default_rng(seed).integers(1, 2**63, size=(4, 8), dtype=np.uint64)


def log_gamma_cdf(x, a):
    """The distribution function, in logarithms where the variates underflow."""
    low = np.exp(a * np.minimum(x, 0) - gammaln(a + 1))
    return np.where(x < -25, low, gammainc(a, np.exp(np.maximum(x, -25))))


@pytest.mark.parametrize("a", [0.002, 0.05, 0.3, 0.5, 0.9, 1.0, 7.0, 1e5])
def test_log_gamma_draws(a):
    x = np.full(60_000, np.nan)
    partition.log_gamma_draws(generators(1), np.array([a]), x)
    assert stats.kstest(x, lambda x: log_gamma_cdf(x, a)).pvalue > 1e-3
    neighbours = stats.rankdata(x).reshape(-1, 2)  # of pairs of neighbours
    assert abs(stats.pearsonr(*neighbours.T).statistic) < 4 / np.sqrt(30_000)


def test_log_gamma_draws_of_different_shapes():
    a = np.exp(np.random.RandomState(0).uniform(-6, 6, 60_000))
    x = np.full(len(a), np.nan)
    partition.log_gamma_draws(generators(1), a, x)
    u = log_gamma_cdf(x, a)
    assert stats.kstest(u, "uniform").pvalue > 1e-3
    for part in (a < 0.05, (a > 0.5) & (a < 2), a > 50):
        assert stats.kstest(u[part], "uniform").pvalue > 1e-3
    assert abs(stats.spearmanr(u[:-1], u[1:]).statistic) < 4 / np.sqrt(60_000)


@pytest.mark.parametrize("n", [0, 1, 7, 8, 9, 50])
def test_log_gamma_draws_are_finite_and_end_where_they_should(n):
    edges = np.array([5e-324, 1e-308, 1e-290, 1.0, 1e15, 1e17, 1e300, 1.7e308])
    for shapes in (*edges[:, None], np.resize(edges, n)):
        x = np.full(n + 16, 7.0)
        partition.log_gamma_draws(generators(2), np.resize(shapes, max(1, len(shapes))), x[:n])
        assert np.all(np.isfinite(x))
        assert_array_equal(x[n:], 7)
        large = np.resize(shapes, n) > 1e10
        assert_allclose(x[:n][large], np.log(np.resize(shapes, n)[large]), atol=1e-4)


def draw_written_out(states, prior, b, lengths, shares, n_theta):
    """log of the estimate of C (Mandt et al. 2016, Eq. 18), and the mean of log S."""
    K, V, G = prior.n_components, prior.n_features, shares.shape[1]
    alpha, eta = np.broadcast_to(prior.doc_topic_prior, K), np.atleast_2d(prior.topic_word_prior)
    estimates, means = [], []
    for state in states:

        def draw(shapes, n, state=state):
            x = np.empty(n)
            partition.log_gamma_draws(state, shapes, x)
            return x

        def draw_topics(draw=draw):
            return np.stack([draw(eta[min(k, len(eta) - 1)], V) for k in range(K)])

        def draw_theta(n, draw=draw):
            return np.stack([draw(alpha[k : k + 1], n) for k in range(K)], axis=1)

        if prior.form == "explicit":
            topics = draw_topics()
            theta = np.stack([draw_theta(n_theta) for _ in range(G)])
        else:
            theta = draw_theta(G * n_theta).reshape(G, n_theta, K)
            topics = draw_topics()
        theta = theta - logsumexp(theta, axis=2, keepdims=True)
        topics = topics - logsumexp(topics, axis=1, keepdims=True)
        if prior.form == "explicit":
            sums = logsumexp(b[:, None, None] * topics, axis=2)
            logs = logsumexp(b[:, None] * theta[..., None, :] + sums, axis=-1)
        else:
            words = logsumexp(theta[..., None] + topics, axis=2)
            logs = logsumexp(b[:, None] * words[..., None, :], axis=-1)
        of_lengths = logsumexp(lengths[:, None, None, None] * logs, axis=2) - np.log(n_theta)
        estimates.append(np.einsum("lg,lgm->m", shares, of_lengths))
        means.append(logs.mean(axis=(0, 1)))
    return np.array(estimates), np.array(means)


RANDOM = np.random.RandomState(3)
#: K, V, alpha, eta, the number of theta, and the number of documents of each length in each group.
DRAWS = {
    "small": (5, 30, 0.1, 0.05, 13, [[3, 0], [1, 2]]),
    "of whole vectors": (16, 64, 0.1, 0.05, 16, [[3, 0], [1, 2]]),
    "sparse": (2, 60, 0.1, 0.002, 5, [[3]]),
    "one of each": (1, 1, 0.5, 0.5, 1, [[1]]),
    "large": (3, 70, 20.0, 300.0, 9, [[2, 1, 1]]),
    "of each word": (3, 21, [0.2, 3.0, 0.7], RANDOM.uniform(0.01, 3, 21), 20, [[1, 4]] * 9),
    "of each topic and word": (21, 9, 0.4, RANDOM.uniform(0.01, 9, (21, 9)), 5, [[1], [0], [5]]),
    "of several products": (9, 40_000, 0.5, 0.02, 3, [[7]]),
}
FROM_1 = {
    "even": 1 / even_grid(10, 100),
    "exponential": 1 / exponential_grid(10, 40),
    "of panels": 1 / even_grid(50, 700),
    "one point": np.ones(1),
    "two points": np.array([1.0, 0.02]),  # where words that underflow are heard
}


def prior_of(case, form):
    K, V, alpha, eta, n_theta, shares = DRAWS[case]
    prior = LDAPrior(K, V, [1], doc_topic_prior=alpha, topic_word_prior=eta, form=form)
    return prior, n_theta, np.array(shares, dtype=float)


@pytest.mark.thinned
@pytest.mark.parametrize("form", ["explicit", "collapsed"])
@cases(
    "case, kind",
    *((case, "exponential") for case in DRAWS if case != "of several products"),
    *(("small", kind) for kind in FROM_1 if kind != "exponential"),
    ("of several products", "two points"),
    ("sparse", "two points"),
)
def test_draws_written_out(form, case, kind):
    (prior, n_theta, shares), b = prior_of(case, form), FROM_1[kind]
    lengths = np.random.RandomState(0).randint(1, 40, len(shares))
    draws = Draws(3, n_theta, np.random.SeedSequence(5))
    found = prior._draw(PowerGrid(b), draws, lengths, shares)
    seeds = np.random.SeedSequence(5).spawn(3)
    states = [seed.generate_state(32, np.uint64).reshape(4, 8) for seed in seeds]
    expected = draw_written_out(states, prior, b, lengths, shares, n_theta)
    for ours, theirs in zip(found, expected, strict=True):
        assert_allclose(ours, theirs, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("form", ["explicit", "collapsed"])
@pytest.mark.parametrize("case", ["small", "of each word"])
@pytest.mark.parametrize("make", [even_grid, exponential_grid])
def test_draws_have_the_same_bits(make, form, case):
    prior, n_theta, shares = prior_of(case, form)
    grid, lengths = PowerGrid(1 / make(10, 9)), np.arange(1, len(shares) + 1)

    def drawn(n_threads):
        draws = Draws(20, n_theta, np.random.SeedSequence(1), n_threads)
        return prior._draw(grid, draws, lengths, shares)

    same_bits(drawn)
