"""exp, log, digamma and exp(digamma) against SciPy, on each instruction set."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from scipy import special as scipy_special

from annealvi._kernels import special

DTYPES = (np.float32, np.float64)


def unit_roundoff(dtype):
    return np.finfo(dtype).eps / 2


def arguments(dtype, low, high, n=20_000):
    """Numbers spread evenly in their logarithm, and a dense stretch around psi's root."""
    rng = np.random.RandomState(0)
    x = np.concatenate([np.exp(rng.uniform(np.log(low), np.log(high), n)), rng.uniform(1, 3, n)])
    return x.astype(dtype)


@pytest.mark.parametrize("dtype", DTYPES)
def test_digamma(dtype, instruction_set):
    x = arguments(dtype, 1e-30, 1e30)
    expected = scipy_special.psi(x.astype(np.float64))
    error = np.abs(special.digamma(x) - expected)
    assert np.max(error / np.maximum(1, np.abs(expected))) < 20 * unit_roundoff(dtype)


@pytest.mark.parametrize("b", [1.0, 0.75, 0.25, 0.01])
@pytest.mark.parametrize("dtype", DTYPES)
def test_exp_digamma(dtype, b, instruction_set):
    x = arguments(dtype, 1e-30, 1e30)
    exponent = np.float64(dtype(b)) * scipy_special.psi(x.astype(np.float64))
    expected = np.exp(exponent)
    actual = special.exp_digamma(x, b).astype(np.float64)
    normal = expected > 2 * float(np.finfo(dtype).tiny)
    error = np.abs(actual - expected)[normal] / expected[normal]
    # an error of the exponent is an error of its exponential
    floor = 1e-13 if dtype is np.float64 else 1e-6
    bound = np.maximum(floor, 4 * unit_roundoff(dtype) * np.abs(scipy_special.psi(x[normal])))
    assert np.all(error <= bound)
    assert_array_equal(actual[exponent < np.log(float(np.finfo(dtype).tiny)) - 1], 0)


@pytest.mark.parametrize("dtype", DTYPES)
def test_exp_and_log(dtype, instruction_set):
    lowest, highest = np.log([float(np.finfo(dtype).tiny), float(np.finfo(dtype).max)])
    x = np.random.RandomState(0).uniform(lowest + 0.1, highest - 0.1, 20_000).astype(dtype)
    expected = np.exp(x.astype(np.float64))
    assert np.max(np.abs(special.exp(x) / expected - 1)) < 4 * unit_roundoff(dtype)
    x = arguments(dtype, float(np.finfo(dtype).tiny) / 8, float(np.finfo(dtype).max) / 8)
    expected = np.log(x.astype(np.float64))
    error = np.abs(special.log(x) - expected)
    assert np.max(error / np.maximum(np.abs(expected), 1e-300)) < 5 * unit_roundoff(dtype)


@pytest.mark.parametrize("dtype", DTYPES)
def test_limits_are_those_of_scipy(dtype, instruction_set):
    x = np.array([0, np.inf, np.nan, 1], dtype=dtype)
    assert_array_equal(special.digamma(x)[:3], [-np.inf, np.inf, np.nan])
    assert_array_equal(special.log(x), [-np.inf, np.inf, np.nan, 0])
    for b in (1.0, 0.5):
        assert_array_equal(special.exp_digamma(x, b)[:3], [0, np.inf, np.nan])
    x = np.array([-np.inf, np.inf, np.nan, 0, -1000, 1000], dtype=dtype)
    assert_array_equal(special.exp(x), [0, np.inf, np.nan, 1, 0, np.inf])
    for function in (special.digamma, special.log, special.exp_digamma):
        assert np.isnan(function(np.array([-1.5], dtype=dtype)))[0]


@given(
    st.lists(st.floats(1e-200, 1e200), min_size=0, max_size=40),
    st.floats(0.001, 1),
)
@settings(max_examples=200, deadline=None)
def test_an_element_does_not_depend_on_its_neighbours(values, b):
    x = np.array(values)
    whole = special.exp_digamma(x, b)
    assert_array_equal(whole, [special.exp_digamma(np.array([v]), b)[0] for v in values])
