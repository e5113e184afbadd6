"""Proximity temperatures: their plan, their limits, their errors; fits are tested elsewhere."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import expit, logit

from annealvi import Proximity
from annealvi.model import UNTEMPERED, BinaryFactors, LocalStep
from annealvi.models.gmm import GMM
from tests.asserts import refused
from tests.marks import cases
from tests.proximity.bisection import divergence

PI = np.array([0.5, 0.2, 0.7])


class Factors:
    """A model of binary factors that are set by hand."""

    n_samples = 4

    def __init__(self):
        self.nu = np.broadcast_to(PI[:, None], (3, 4)).copy()

    def factors(self):
        return self.nu

    def prior_logit(self):
        return np.log(PI / (1 - PI))

    def energy(self):
        return -80.0


def planned(n_steps=100, **parameters):
    model = Factors()
    return Proximity(**parameters).plan(n_steps, model=model), model


@cases(
    "shape, expected", ("exponential", lambda s: 20 * 1e-4**s), ("linear", lambda s: 20 * (1 - s))
)
def test_magnitudes(shape, expected):
    """k0 is the energy of a datum, k falls over half of the fit, then T = 1 exactly."""
    temperature, _ = planned(shape=shape)
    k = [1 / temperature.inverse(t) - 1 for t in range(100)]
    assert_allclose(k[:50], [expected(t / 50) for t in range(50)], rtol=1e-9)
    assert k[50:] == [0.0] * 50
    assert [temperature.settled(t) for t in (49, 50)] == [False, True]
    assert temperature.tempering(50) == UNTEMPERED


@cases("length, n_steps, L", (1.0, 100, 99), (0.25, 100, 25), (0.5, 1, 0), (0.001, 100, 1))
def test_length(length, n_steps, L):
    temperature, _ = planned(n_steps, length=length, magnitude=3.0)
    assert temperature.n_proximity_steps_ == L
    assert temperature.settled(L) and (L == 0 or not temperature.settled(L - 1))


def test_a_stream_is_not_held():
    assert planned(None)[0].tempering(0) == UNTEMPERED


@pytest.mark.parametrize("decay", [0.5, 0.9999, 1.0])
@pytest.mark.parametrize("statistic", ["entropy", "kl"])
def test_limits_follow_the_average(statistic, decay):
    """The average begins with the start and takes each step in; the globals are not tempered."""
    temperature, model = planned(statistic=statistic, decay=decay, magnitude=9.0, gamma=1.0)
    assert isinstance(model, BinaryFactors)
    rng = np.random.RandomState(0)
    centre = model.prior_logit() if statistic == "kl" else np.zeros(3)
    seen = []
    for step in range(6):
        c = centre[:, None]
        seen.append(divergence(logit(model.nu), c))
        weights = decay ** np.arange(step, -1, -1.0)
        average = np.tensordot(weights / weights.sum(), seen, axes=1)
        tempering = temperature.tempering(step)
        assert tempering[:3] == UNTEMPERED[:3]
        limits = tempering.limits
        assert limits.inverse == pytest.approx(0.1)
        assert_array_equal(limits.centre, centre)
        for side, most in ((limits.lower, expit(-c)), (limits.upper, expit(c))):
            value = divergence(side, c)
            # where no logit has it there is no limit
            expected = np.minimum(average, -np.log(most))
            assert_allclose(value, expected, atol=1e-6)
            assert_array_equal(np.isinf(side), average > expected)
        assert np.all(limits.lower <= centre[:, None]) and np.all(limits.upper >= centre[:, None])
        model.nu = rng.uniform(0.3, 0.6, (3, 4))
        temperature.observe(LocalStep(None), 1.0)


@pytest.mark.parametrize("model", [None, object(), GMM])
def test_models_without_binary_factors_are_refused(model):
    words = r"this model has no binary factors. Use 'annealed'.* TemperedFMM"
    refused(words, Proximity().plan, 10, model=model)
