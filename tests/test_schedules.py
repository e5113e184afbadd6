"""How numbers fall or rise: their way, and what they cannot start from."""

import math
import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose

from annealvi.schedules import Exponential, Linear, Relaxing
from tests.asserts import refused
from tests.marks import cases


@cases(
    "schedule, expected",
    (Linear(4.0, 1.0), [4.0, 2.5, 1.0]),
    (Linear(0.01, 1.0), [0.01, 0.505, 1.0]),
    (Exponential(4.0, 1 / 16), [4.0, 1.0, 0.25]),
    (Exponential(0.01, 100), [0.01, 0.1, 1.0]),  # rises
    (Relaxing(10.0), [10.0, 10 ** math.exp(-2), 10 ** math.exp(-4)]),
)
def test_ways(schedule, expected):
    assert_allclose([schedule(done) for done in (0.0, 0.5, 1.0)], expected, rtol=1e-12)
    assert pickle.loads(pickle.dumps(schedule)) == schedule


@pytest.mark.parametrize("value", [0, -1.0, math.nan, math.inf, "slow", None])
def test_powers_are_real(value):
    for schedule, name in ((lambda v: Exponential(1.0, v), "decay"), (Relaxing, "first")):
        words = rf"'{name}' parameter of \w+ must be .* \(0.0, inf\)\. Got {value!r} instead"
        refused(words, schedule, value)
    assert Exponential(-3.0, np.float32(0.25))(0.5) == -1.5


@pytest.mark.parametrize("value", [math.nan, math.inf, "slow", None, [1.0], 10**400])
def test_ends_are_finite_numbers(value):
    refused("'first' .* must be a float in the range", Linear, value, 1.0)
    refused("'last' .* must be a float in the range", Linear, 1.0, value)
    refused("'first' .* must be a float in the range", Exponential, value, 0.5)
    refused("'first' parameter of Relaxing", Relaxing, 10**400)
