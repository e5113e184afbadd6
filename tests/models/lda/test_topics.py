"""Steps of the topics: rows without statistics make up for them later, and nobody can tell."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import polygamma, psi

from annealvi._kernels import lda_topics as kernels
from annealvi.model import UNTEMPERED, Tempering
from annealvi.models.lda.cpu import Statistics, exp_e_log
from tests.marks import cases
from tests.models.lda.pair import LDA
from tests.models.lda.streams import K, V, dense, put

PRIORS = {
    "number": lambda rng: rng.uniform(0.01, 2),
    "words": lambda rng: rng.uniform(0.01, 2, V),
    "topics": lambda rng: rng.uniform(0.01, 2, (K, V)),
}
TOLERANCE = {np.float64: 1e-10, np.float32: 1e-5}
SEEN = {"none": 0, "few": 4, "many": 100, "nearly all": 110, "all": V}  # 105: every row moves


def make(dtype=np.float64, eta=0.3, seed=0):
    model = LDA(K, V, alpha=0.2, eta=eta, dtype=dtype)
    model.initialize(np.random.RandomState(seed))
    return model


def statistics_of(words, rng, model):
    """Random statistics of some words, as the model takes them and as a (K, V) array."""
    statistics = Statistics(V, model.width, model.dtype)
    statistics.values[:] = np.nan  # rows not in use hold whatever was there
    rows = rng.gamma(0.5, 3.0, (len(words), K))
    for some in rng.permutation(2):  # words have rows in any order
        put(statistics, words[some::2], rows[some::2])
    return statistics, dense(statistics, K).T.astype(np.float64)


def some_words(n, rng):
    return np.sort(rng.choice(V, n, replace=False))


class Plain:
    """lambda <- (1 - rho) lambda + rho (eta + scale S), all rows at every step.

    `error` bounds how far the kernels' lambda may be from this one.  They compute
    eta + (1 - rho) (lambda - eta) + rho scale S with at most eight roundings, and four more are
    made here.  None is of a number larger than the new lambda + eta.  So each step adds at most
    12 u (lambda + eta), where u = eps / 2, and multiplies earlier errors by 1 - rho.  Relative to
    lambda this is much where a prior far above lambda has been set.
    """

    def __init__(self, model):
        self.eps, self.eta = np.finfo(model.dtype).eps, np.asarray(model.eta)
        self.start(model.components)

    def start(self, lam):
        self.lam = lam.astype(np.float64)
        self.error = np.zeros_like(self.lam)

    def step(self, S, rho, scale, tempering):
        T = 1 / tempering.inverse if tempering.form == "posterior" else 1.0
        eta = self.eta if self.eta.ndim != 1 else self.eta[None, :]
        self.lam = (1 - rho * T) * self.lam + rho * T * (eta / T + scale * S)
        self.error = (1 - rho * T) * self.error + 6 * self.eps * (self.lam + eta)


def step_both(model, plain, n_seen, rho, rng, tempering=UNTEMPERED):
    statistics, S = statistics_of(some_words(n_seen, rng), rng, model)
    model.global_step(statistics, rho, 3.0, tempering)
    plain.step(S, rho, 3.0, tempering)


def assert_same_topics(model, plain):
    lam, sums = model.components.astype(np.float64), plain.lam.sum(axis=1)
    assert np.all(np.abs(lam - plain.lam) <= plain.error)
    assert np.all(np.abs(model.sums - sums) <= plain.error.sum(axis=1) + 1e-12 * sums)
    expected = np.exp(psi(plain.lam) - psi(sums[:, None]))
    slack = 1 + np.abs(np.log(np.maximum(expected, 1e-300))).max()  # of the exponents
    rtol = 30 * TOLERANCE[model.dtype.type] * slack
    rtol = rtol + np.expm1(polygamma(1, plain.lam) * plain.error)
    assert np.all(np.abs(exp_e_log(model) - expected) <= 1e-25 + rtol * expected)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("eta", PRIORS)
@given(
    st.lists(
        st.one_of(
            st.tuples(st.sampled_from(sorted(SEEN)), st.sampled_from([1e-4, 0.1, 0.7, 0.9999])),
            st.sampled_from(["full step", "topics", "priors", "settle", "look", "one topic sum"]),
        ),
        max_size=12,
    ),
    st.integers(0, 2**31 - 1),
)
def test_any_sequence_of_steps(dtype, eta, sequence, seed):
    rng = np.random.RandomState(seed)
    model = make(dtype, np.asarray(PRIORS[eta](rng), dtype=dtype), seed)
    plain = Plain(model)
    for what in sequence:
        if what == "full step":
            step_both(model, plain, 7, 1.0, rng)
        elif what == "topics":
            lam = (rng.gamma(1.0, 2.0, (K, V)) + 0.125).astype(dtype)
            plain.start(lam)
            model.assign(lam)
        elif what == "priors":
            plain.eta = PRIORS[rng.choice(list(PRIORS))](rng)
            plain.eta = np.asarray(plain.eta, dtype=dtype).astype(np.float64)
            model.set_priors(0.2, plain.eta)
        elif what == "settle":
            model.catch_up()
        elif what == "look":
            assert_same_topics(model, plain)
        elif what == "one topic sum":
            model.bound()
        else:
            step_both(model, plain, SEEN[what[0]], what[1], rng)
    assert_same_topics(model, plain)


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("rho", [1e-9, 1e-4, 0.3])
def test_a_prior_far_above_the_topics(dtype, rho):
    """lambda - eta then has the rounding errors of eta, and a short step leaves lambda small."""
    rng = np.random.RandomState(0)
    model = make(dtype, dtype(0.01))
    plain = Plain(model)
    step_both(model, plain, 0, 1.0, rng)
    plain.eta = np.asarray(dtype(300.0), dtype=np.float64)
    model.set_priors(0.2, plain.eta)
    for n_seen in (4, V, 4):
        step_both(model, plain, n_seen, rho, rng)
        assert_same_topics(model, plain)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", TOLERANCE)
@cases(
    "n_steps, rho",
    (3000, lambda t: (10 + t) ** -0.7),
    (400, lambda t: 0.999),  # 1e-1200: what is left of rows not seen underflows
    (40, lambda t: 1 - 2.0**-52),
    (2000, lambda t: 1e-9),
)
def test_very_many_steps(dtype, n_steps, rho):
    """Some words are never seen, some early, and the topics' sums do not drift."""
    rng = np.random.RandomState(0)
    model = make(dtype, PRIORS["topics"](rng).astype(dtype))
    model.assign(rng.gamma(1.0, 1e4, (K, V)) + 1.0)
    plain = Plain(model)
    for step in range(n_steps):
        words = np.unique(rng.randint(V // 2, size=5)) if step > 5 else np.arange(90, 93)
        statistics, S = statistics_of(words, rng, model)
        model.global_step(statistics, rho(step), 3.0, Tempering())
        plain.step(S, rho(step), 3.0, Tempering())
        if step % 512 == 77:
            assert_allclose(model.components, plain.lam, rtol=TOLERANCE[dtype])
    assert_same_topics(model, plain)
    assert_allclose(model.components, plain.lam, rtol=TOLERANCE[dtype])
    rtol = 1e-10 if dtype is np.float64 else 1e-6
    sums = model.components.sum(axis=1, dtype=np.float64)
    assert_allclose(model.sums, sums, rtol=rtol)


def test_rows_that_have_not_moved_are_few_only_where_many_words_are_seen():
    """That steps with few words leave the other rows alone is what all of this is about."""
    rng = np.random.RandomState(0)
    model = make()
    before = model.components.copy()
    step_both(model, Plain(model), 4, 0.1, rng)
    assert np.sum(np.any(before != model.lam[:, :K].T, axis=0)) == 4
    step_both(model, Plain(model), 110, 0.1, rng)
    assert np.all(np.any(before != model.lam[:, :K].T, axis=0))


@pytest.mark.parametrize("rho", [0.1, 0.5])
@pytest.mark.parametrize("n_seen", [4, V])
def test_steps_of_the_posterior_form(n_seen, rho):
    rng = np.random.RandomState(0)
    model = make()
    plain = Plain(model)
    for _ in range(2):  # which some rows miss
        step_both(model, plain, 4, 0.3, rng, Tempering(0.5))
    for T in (1.9, 1.0, 1.3):
        step_both(model, plain, n_seen, rho, rng, Tempering(1 / T, "posterior"))
    for _ in range(3):
        step_both(model, plain, 4, rho, rng)
    assert_same_topics(model, plain)


@pytest.mark.parametrize("after", [True, False], ids=["after", "before"])
@pytest.mark.parametrize("rho", [1.0, 0.3])
@pytest.mark.parametrize("seen", ["few", "all"])
def test_an_interrupt_in_a_step_leaves_a_whole_model(monkeypatch, seen, rho, after):
    """As it was, or with the step made, with its statistics or without."""
    rng = np.random.RandomState(1)
    model = make()
    first, _ = statistics_of(some_words(4, rng), rng, model)
    model.global_step(first, 0.2, 2.0, UNTEMPERED)
    before = model.components.copy()
    statistics, S = statistics_of(some_words(SEEN[seen], rng), rng, model)
    step_topics = kernels.step_topics

    def interrupted(*arguments):
        if after:
            step_topics(*arguments)
        raise KeyboardInterrupt

    model.catch_up()
    with monkeypatch.context() as context:
        context.setattr(kernels, "step_topics", interrupted)
        with pytest.raises(KeyboardInterrupt):
            model.global_step(statistics, rho, 2.0, UNTEMPERED)
    whole = (1 - rho) * before + rho * (0.3 + 2.0 * S)
    empty = (1 - rho) * before + rho * 0.3
    outcomes = [whole] if after else [before, empty] if rho < 1 else [before]
    assert any(np.allclose(model.components, outcome, rtol=1e-10) for outcome in outcomes)
    assert_allclose(model.sums, model.components.sum(axis=1), rtol=1e-10)


def test_some_rows_are_those_of_all():
    """With the steps they have missed, and without a change of the topics."""
    rng, model = np.random.RandomState(6), make()
    for _ in range(4):
        statistics, _ = statistics_of(some_words(3, rng), rng, model)
        model.global_step(statistics, 0.3, 2.0, UNTEMPERED)
    assert model.now != 1
    stored, words = model.lam.copy(), np.array([3, 0, V - 1])
    assert_array_equal(model.rows_of(words), model.components[:, words].T)
    assert_array_equal(model.lam, stored)
    model.catch_up()
    assert_array_equal(model.rows_of(words), model.components[:, words].T)
