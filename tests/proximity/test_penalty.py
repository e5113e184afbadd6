"""The distance, the moving average and the magnitudes of proximity penalties."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from annealvi.proximity import MovingAverage, inverse_huber, inverse_huber_derivative
from annealvi.proximity.penalty import MAGNITUDES


def test_distance():
    u = np.array([-3.0, -1.0, -0.5, 0.0, 0.25, 1.0, 2.0])
    assert_array_equal(inverse_huber(u), [5.0, 1.0, 0.5, 0.0, 0.25, 1.0, 2.5])
    assert_array_equal(inverse_huber_derivative(u), [-3.0, -1.0, -1.0, 0.0, 1.0, 1.0, 2.0])
    assert inverse_huber(1e200) == np.inf
    assert np.all(np.isnan([inverse_huber(np.nan), inverse_huber_derivative(np.nan)]))


def test_distance_is_smooth_but_for_its_corner():
    u = np.setdiff1d(np.linspace(-4, 4, 801), [0.0])
    step = 1e-6
    difference = (inverse_huber(u + step) - inverse_huber(u - step)) / (2 * step)
    assert_allclose(inverse_huber_derivative(u), difference, atol=1e-5)


@pytest.mark.parametrize("decay", [0.3, 0.9, 0.9999, 1.0])
def test_debiasing_is_exact(decay):
    """Weights alpha^(t - s), normalised: no trace of the zero that it starts from."""
    values = np.random.RandomState(0).normal(5, 1, (50, 3))
    average = MovingAverage(decay)
    assert average.value is None
    for t in range(1, 51):
        weights = decay ** np.arange(t - 1, -1, -1.0)
        got = average.update(values[t - 1])
        assert_allclose(got, weights @ values[:t] / weights.sum(), rtol=1e-11)
    constant = MovingAverage(decay)
    assert [float(constant.update(0.7)) for _ in range(20)] == [0.7] * 20


def test_the_average_keeps_nothing_of_its_caller():
    values = np.ones(3)
    average = MovingAverage(0.5)
    average.update(values)
    values[:] = 7
    assert_array_equal(average.value, 1)
    first = average.value
    second = average.update(values)
    assert_array_equal(values, 7)
    assert_array_equal(first, 1)  # what was given out stays what it was
    average.update(values)
    assert_array_equal(second, 5)


def test_magnitudes():
    done = np.array([0.0, 0.25, 1.0])
    falls = {name: [make(1e-4)(s) for s in done] for name, make in MAGNITUDES.items()}
    assert_allclose(falls["exponential"], [1, 0.1, 1e-4])
    assert_allclose(falls["linear"], [1, 0.75, 0])


@pytest.mark.parametrize("wrong", ["a", [1.0, [2.0]], None, 1j, {"a": 1}])
def test_what_is_no_number(wrong):
    for function in (inverse_huber, inverse_huber_derivative):
        with pytest.raises(ValueError, match="'u' parameter must be a float or an array of floats"):
            function(wrong)
    with pytest.raises(ValueError, match="'new' parameter must be a float or an array of floats"):
        MovingAverage(0.5).update(wrong)
