"""Local temperatures: the rule that gives each document its own, and models that have none."""

import math
from itertools import pairwise

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.integrate import quad
from scipy.special import softmax, xlog1py, xlogy

from annealvi import LocalVariational
from annealvi.model import UNTEMPERED
from annealvi.temperature.local import DocumentRule
from tests.asserts import refused
from tests.temperature.stubs import Gauss, Words, show


@pytest.mark.parametrize("model", [None, object(), Gauss()])
def test_a_model_without_local_temperatures(model):
    message = "model in which each document can have its own temperature, .* Use 'annealed' or"
    refused(message, LocalVariational().plan, 10, model=model)


def problem(seed=0, n=7, size=10):
    rng = np.random.RandomState(seed)
    n_units = rng.randint(0, 60, n).astype(float)
    n_units[0] = 0
    inverses = np.arange(1, size + 1) / size
    log_c = n_units[:, None] * (2 + rng.rand(n))[:, None] * (1 - inverses)
    return -n_units * (2 + rng.rand(n)), n_units, inverses, log_c, np.log(rng.rand(size) + 0.1)


def naive_inverse(energy, inverses, log_c, log_prior):
    logs = [log_prior[m] + b * energy - log_c[m] for m, b in enumerate(inverses)]
    weights = [math.exp(log - (energy - log_c[-1])) for log in logs]
    return sum(w * b for w, b in zip(weights, inverses, strict=True)) / sum(weights)


@pytest.mark.parametrize("seed", range(5))
def test_the_rule_of_documents(seed):
    energy, n_units, inverses, log_c, log_prior = problem(seed)
    rule = DocumentRule(inverses, log_prior, 3)
    assert rule.rounds == 3
    both = zip(energy, log_c, strict=True)
    expected = [naive_inverse(e, inverses, c, log_prior) for e, c in both]
    found = rule(energy.copy(), n_units, log_c.copy())
    assert_allclose(found, expected, rtol=1e-12)
    # a document without words knows nothing but the prior
    assert found[0] == pytest.approx(softmax(log_prior) @ inverses)
    # each document for itself
    assert_allclose(rule(energy[3:5], n_units[3:5], log_c[3:5]), found[3:5], rtol=1e-14)
    # log C of so many words of the corpus
    corpus = 2.4 * (1 - inverses) ** 1.1
    both = zip(energy, n_units, strict=True)
    expected = [naive_inverse(e, inverses, n * corpus, log_prior) for e, n in both]
    rule = DocumentRule(inverses, log_prior, 3, corpus=corpus)
    assert_allclose(rule(energy, n_units, log_c), expected, rtol=1e-12)


@pytest.mark.parametrize("level", [0.05, 0.3, 0.9])
def test_documents_are_scaled_to_a_level_and_clipped(level):
    energy, n_units, inverses, log_c, log_prior = problem(1, n=40)
    free = DocumentRule(inverses, log_prior, 1)(energy, n_units, log_c)
    scaled = DocumentRule(inverses, log_prior, 1, level=level)(energy, n_units, log_c)
    counted = free[n_units > 0]  # the others have nothing to say
    assert len(counted) < 40
    mean = math.exp(sum(math.log(b) for b in counted) / len(counted))
    assert_allclose(scaled, [min(1, max(0.02, b * level / mean)) for b in free], rtol=1e-12)
    high = DocumentRule(inverses, log_prior, 1, level=level, floor=0.2)(energy, n_units, log_c)
    assert high.min() >= 0.2 and scaled.max() <= 1
    if level == 0.3:
        assert np.exp(np.mean(np.log(scaled[n_units > 0]))) == pytest.approx(level, rel=0.02)


def mean_of_b(log_q, a, c):
    """The mean of b under exp(log_q(b)) Beta(b | a, c), by SciPy's adaptive quadrature."""
    b = np.linspace(0, 1, 20_001)[1:-1]
    log_density = log_q(b) + (a - 1) * np.log(b) + (c - 1) * np.log1p(-b)
    top = log_density.max()
    kept = b[log_density > top - 60]
    ends = np.linspace(kept[0], kept[-1], 9)
    ends[0] = 0 if ends[0] == b[0] else ends[0]
    ends[-1] = 1 if ends[-1] == b[-1] else ends[-1]
    moments = np.zeros(2)
    for begin, end in pairwise(ends):
        # SciPy integrates the singular factors of the prior at 0 and 1
        power_at_0 = (a - 1) * (begin == 0)
        power_at_1 = (c - 1) * (end == 1)

        def density(b, power_at_0=power_at_0, power_at_1=power_at_1):
            rest = xlogy(a - 1 - power_at_0, b) + xlog1py(c - 1 - power_at_1, -b)
            return math.exp(log_q(np.array([b]))[0] + rest - top)

        options = dict(epsabs=0, epsrel=1e-11, limit=400)
        if power_at_0 or power_at_1:
            options |= dict(weight="alg", wvar=(power_at_0, power_at_1))
        moments += [
            quad(lambda b, power=power, q=density: b**power * q(b), begin, end, **options)[0]
            for power in (0, 1)
        ]
    return moments[1] / moments[0]


@pytest.mark.filterwarnings("ignore:The occurrence of roundoff error")
@pytest.mark.parametrize("prior", [(0.2, 1), (0.5, 0.5), (1, 1), (2, 1.5), (20, 5)])
def test_continuous_temperatures_are_an_integral(prior):
    """For documents of up to 10,000 words that the model explains well and badly."""
    a, c = prior
    temperature = LocalVariational(continuous=True, prior=prior, undamped=True)
    rule = temperature.plan(10, model=Words()).tempering(0).rule
    words = np.array([0.5, 0.2, 0.1, 0.1, 0.05, 0.03, 0.015, 0.005])

    def log_c(n_words, b):
        return n_words * np.log(np.sum(words[:, None] ** b, axis=0))

    for n_words in (0, 3, 30, 100, 1000, 10_000):
        for surprise in (0.5, 1.5, 2.5, 4, 8):  # minus the energy of a word
            energy = -surprise * n_words
            mean = mean_of_b(lambda b, n=n_words, e=energy: b * e - log_c(n, b), a, c)
            found = rule(np.array([energy]), np.ones(1), log_c(n_words, rule.inverses)[None])
            assert_allclose(found, mean, rtol=0, atol=1e-8)
            if n_words == 0:
                assert mean == pytest.approx(a / (a + c))


@pytest.mark.parametrize("prior", [[3, 1], [1e-6, 1e-6], [1e4, 1], [1e4, 1e-6]])
def test_an_empty_document_has_the_mean_of_the_prior(prior):
    """With the least grid, and with priors at the limits."""
    temperature = LocalVariational(2, continuous=True, prior=prior, undamped=True)
    rule = temperature.plan(10, model=Words()).tempering(0).rule
    b = rule(np.zeros(1), np.zeros(1), np.zeros((1, len(rule.inverses))))
    assert_allclose(b, prior[0] / sum(prior), rtol=1e-11)


@pytest.mark.parametrize("prior", [[1e-7, 1], [1, 2e4]])
def test_priors_that_are_too_extreme(prior):
    planned = LocalVariational(continuous=True, prior=prior)
    message = r"'prior' .* two numbers in \[1e-06, 10000.0\]"
    refused(message, planned.plan, 10, model=Words())


def test_the_prior_of_documents_temperatures():
    prior = [3, 1, 4, 1, 5]
    rule = LocalVariational(5, prior=prior).plan(10, model=Words()).tempering(0).rule
    assert_allclose(np.exp(rule.log_prior), np.array(prior) / 14)
    assert_allclose(rule.inverses, [0.2, 0.4, 0.6, 0.8, 1])


def test_the_level_relaxes_to_one_and_then_T_is_1():
    planned = LocalVariational(grid=4, start=3.0, damping=0.25, rounds=5).plan(8, model=Words())
    levels = []
    for step in range(6):
        tempering = planned.tempering(step)
        assert tempering.form == "likelihood"
        assert tempering.rule.level == tempering.inverse == planned.inverse(step)
        assert tempering.rule.rounds == 5
        levels.append(tempering.inverse)
        show(planned, None, np.zeros(4))
    assert_allclose(np.log(levels), -np.log(3.0) * 0.75 ** np.arange(6), rtol=1e-12)
    assert planned.settled(6) and not planned.settled(5)
    for step in (6, 7, 100):
        assert planned.tempering(step) == UNTEMPERED and planned.inverse(step) == 1
    assert planned.learned().rule.level is None  # to predict, each document for itself
    fresh = LocalVariational(grid=4).plan(8, model=Words())
    assert fresh.learned() == UNTEMPERED  # which has learned nothing


def test_undamped_documents_are_not_scaled():
    planned = LocalVariational(grid=4, undamped=True).plan(8, model=Words())
    for step in range(4):
        assert planned.tempering(step).rule.level is None
        show(planned, None, np.zeros(4))


def test_the_corpus_is_an_average_of_minibatches():
    planned = LocalVariational(grid=3, normaliser="corpus", energy_average=0.2)
    planned = planned.plan(100, model=Words())
    assert planned.tempering(0).rule.corpus is None  # nothing seen: the document's own
    first, second = np.array([30.0, 10.0, 0.0]), np.array([12.0, 5.0, 0.0])
    show(planned, None, first, n_units=10.0, scale=4.0)
    assert_allclose(planned.tempering(1).rule.corpus, first / 10)
    show(planned, None, second, n_units=5.0, scale=8.0)
    expected = (0.8 * 40 * first / 10 + 0.2 * 40 * second / 5) / 40
    assert_allclose(planned.tempering(2).rule.corpus, expected, rtol=1e-12)
    assert_allclose(planned.learned().rule.corpus, expected, rtol=1e-12)
    show(planned, None, second, n_units=5.0, scale=1.0)  # all data
    assert_allclose(planned.tempering(3).rule.corpus, second / 5, rtol=1e-12)


def test_a_batch_without_words_leaves_the_corpus_alone():
    planned = LocalVariational(grid=3, normaliser="corpus").plan(100, model=Words())
    show(planned, None, np.zeros(3), n_units=0.0, scale=4.0)
    assert planned.tempering(1).rule.corpus is None
    show(planned, None, np.ones(3), n_units=5.0, scale=1.0)
    assert_allclose(planned.tempering(2).rule.corpus, 0.2)
    document = LocalVariational(grid=3).plan(100, model=Words())
    show(document, None, np.ones(3), n_units=5.0, scale=4.0)
    assert document.tempering(1).rule.corpus is None
