"""The vectorised special functions against mpmath.

What an error may be: of exp and exp(b psi) relative, for they multiply; of log, psi and
log Gamma absolute, for they are exponents, or terms of sums as large as themselves, and
their zeros are nowhere special there.  With u the unit roundoff it is at most

    max(floor, 4 u |v|),    floor = 1e-13 in float64 and 1e-6 in float32,

v being the result itself where the error is absolute, and the exponent (x of exp(x),
psi(x) of exp(b psi(x)), b <= 1) where it is relative: an exponent is known to u |v| and an
error of the exponent is a relative error of the exponential.
"""

import functools

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from scipy import special as scipy_special

from annealvi._kernels import special
from tests.marks import slow_values

DTYPES = (np.float32, np.float64)
EXACT = {"log": mpmath.log, "digamma": mpmath.digamma, "lgamma": mpmath.loggamma}
SCIPY = {"log": np.log, "digamma": scipy_special.psi, "lgamma": scipy_special.gammaln}


@functools.cache
def arguments(dtype):
    """Every magnitude, subnormal to largest; dense where functions turn or change formula."""
    rng = np.random.RandomState(0)
    limits = np.finfo(dtype)
    as_integers = np.int64 if dtype is np.float64 else np.int32
    ends = np.array([limits.smallest_subnormal, limits.max], dtype=dtype).view(as_integers)
    anywhere = rng.randint(ends[0], ends[1], 1500, dtype=as_integers).view(dtype)
    stretches = [(1e-4, 1e4), (0.002, 0.3), (0.9, 3), (5.9, 6.1), (1, 200)]
    dense = [np.exp(rng.uniform(*np.log(ends), 400)) for ends in stretches]
    special_points = [*ends.view(dtype), limits.tiny, 0.5, 1, 1.4616321449683622, 2, 6, 1e4, 1e8]
    points, ends = (1, 2, 6, limits.tiny, 1e4, 1e8), (0, 9e9)
    neighbours = [np.nextafter(dtype(p), dtype(to)) for p in points for to in ends]
    return np.concatenate([anywhere, *dense, special_points, neighbours]).astype(dtype)


@functools.cache
def exact(name, dtype):
    """The function at these arguments."""
    with mpmath.workprec(100):
        return [EXACT[name](mpmath.mpf(float(x))) for x in arguments(dtype)]


def unit_roundoff(dtype):
    return float(np.finfo(dtype).eps) / 2


def allowed(dtype, value):
    return max(1e-13 if dtype is np.float64 else 1e-6, 4 * unit_roundoff(dtype) * abs(value))


def worst(errors):
    """The largest of (error over what is allowed, argument)."""
    return max(errors, key=lambda error: error[0])


@pytest.mark.thinned
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", EXACT)
def test_error_is_absolute_or_of_a_few_roundings(name, dtype):
    x = arguments(dtype)
    actual = getattr(special, name)(x)
    assert actual.dtype == dtype
    largest = float(np.finfo(dtype).max)
    errors = []
    for at, value, expected in zip(x, actual, exact(name, dtype), strict=True):
        if abs(expected) > largest:
            assert np.isinf(value) and np.sign(value) == mpmath.sign(expected)
        else:
            with mpmath.workprec(100):
                error = abs(mpmath.mpf(float(value)) - expected)
                errors.append((float(error / allowed(dtype, expected)), at))
    assert len(errors) > 3000
    assert worst(errors)[0] <= 1, worst(errors)


def check_exponentials(dtype, actual, exponents, sizes, border=0.0):
    """Errors of exponentials, and how many are out of range and within; at the border both may."""
    errors, outside = [], 0
    with mpmath.workprec(100):
        low, high = (mpmath.log(float(end)) for end in (np.finfo(dtype).tiny, np.finfo(dtype).max))
        for value, exponent, size in zip(actual, exponents, sizes, strict=True):
            if exponent < low * (1 + border) or exponent > high:
                outside += 1
                assert value == (0 if exponent < 0 else np.inf)
            elif exponent >= low * (1 - border):
                error = abs(mpmath.mpf(float(value)) / mpmath.exp(exponent) - 1)
                errors.append((float(error / allowed(dtype, size)), float(exponent)))
    assert worst(errors)[0] <= 1, worst(errors)
    return outside, len(errors)


@pytest.mark.thinned
@pytest.mark.parametrize("b", [1.0, 0.75, *slow_values(0.97, 0.01)])
@pytest.mark.parametrize("dtype", DTYPES)
def test_exp_digamma(dtype, b):
    with mpmath.workprec(100):
        psis = exact("digamma", dtype)
        scaled = [mpmath.mpf(float(dtype(b))) * psi for psi in psis]
    actual, border = special.exp_digamma(arguments(dtype), b), 4 * unit_roundoff(dtype)
    outside, within = check_exponentials(dtype, actual, scaled, psis, border)
    assert outside > 500 and within > 2000


@functools.cache
def exponents(dtype):
    """The range whose exponentials are normal, its very ends included, and beyond."""
    with mpmath.workprec(100):
        limits = np.finfo(dtype)
        ends = [mpmath.log(mpmath.mpf(float(p))) for p in (limits.tiny, limits.max)]
    low, high = (dtype(float(end)) for end in ends)
    near = [low, high]
    for _ in range(3):
        near += [np.nextafter(near[-2], dtype(-np.inf)), np.nextafter(near[-1], dtype(-np.inf))]
    near += [np.nextafter(x, dtype(np.inf)) for x in near]
    x = np.random.RandomState(0).uniform(low * 1.1, high * 1.1, 3000)
    return np.concatenate([x, x / 1e3, np.array(near), [0, 1e-30, -1e-30]]).astype(dtype)


@pytest.mark.thinned
@pytest.mark.parametrize("dtype", DTYPES)
def test_exp(dtype):
    x = exponents(dtype)
    exact_ones = [mpmath.mpf(float(at)) for at in x]
    assert check_exponentials(dtype, special.exp(x), exact_ones, exact_ones)[0] > 100


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", SCIPY)
def test_limits_are_those_of_scipy(name, dtype):
    x = np.array([0, np.inf, np.nan, np.finfo(dtype).max], dtype=dtype)
    with np.errstate(divide="ignore", over="ignore"):
        expected = SCIPY[name](x)
    actual = getattr(special, name)(x)
    assert_array_equal(np.isfinite(actual), np.isfinite(expected))
    assert_array_equal(actual[~np.isfinite(expected)], expected[~np.isfinite(expected)])
    assert np.isnan(getattr(special, name)(np.array([-1.5], dtype=dtype)))[0]


@pytest.mark.parametrize("dtype", DTYPES)
def test_limits_of_exponentials(dtype):
    x = np.array([0, np.inf, np.nan, -1.5], dtype=dtype)
    for b in (1.0, 0.5):
        assert_array_equal(special.exp_digamma(x, b), [0, np.inf, np.nan, np.nan])
    x = np.array([-np.inf, np.inf, np.nan, 0, -1000, 1000], dtype=dtype)
    assert_array_equal(special.exp(x), [0, np.inf, np.nan, 1, 0, np.inf])
    assert_array_equal(special.log(np.array([1], dtype=dtype)), [0])


@given(
    st.sampled_from(["log", "digamma", "lgamma", "exp_digamma"]),
    st.lists(st.floats(1e-200, 1e200), min_size=0, max_size=40),
    st.sampled_from(DTYPES),
)
def test_an_element_does_not_depend_on_its_neighbours(name, values, dtype):
    function = getattr(special, name)
    with np.errstate(over="ignore"):
        x = np.array(values).astype(dtype)
    assert_array_equal(function(x), [function(x[i : i + 1])[0] for i in range(len(x))])


def test_log1p():
    x = np.concatenate(
        [10.0 ** np.arange(-300, 300, 7), -(10.0 ** -np.arange(1, 300, 7.0)), [0, 3]]
    )
    np.testing.assert_allclose(special.log1p(x), np.log1p(x), rtol=4e-16)
    assert_array_equal(special.log1p([-1.0, np.nan]), [-np.inf, np.nan])


def test_entropy():
    x = np.concatenate([[0, 1, 1e-310], np.random.RandomState(0).uniform(0, 2, 200)])
    np.testing.assert_allclose(special.entr(x), scipy_special.entr(x), rtol=1e-15, atol=1e-300)


def test_powers():
    x = np.exp(np.random.RandomState(0).uniform(-20, 20, 200))
    for exponent in (-0.7, 0.0, 1.0, 3):
        np.testing.assert_allclose(special.power(x, exponent), x**exponent, rtol=2e-14)
    assert isinstance(special.power(2.0, 3), float)


@pytest.mark.parametrize("axis", [0, 1])
def test_sums_of_exponentials(axis):
    x = np.random.RandomState(0).uniform(-900, 900, (9, 7))
    x[:, 3], x[2, 1], x[4] = -np.inf, np.inf, np.nan
    expected = scipy_special.logsumexp(x, axis=axis)
    np.testing.assert_allclose(special.log_sum_exp(x, axis=axis), expected, rtol=1e-14)
    kept = special.log_sum_exp(x, axis=axis, keepdims=True)
    np.testing.assert_allclose(kept, scipy_special.logsumexp(x, axis=axis, keepdims=True))
    x = x[:2, :3]
    np.testing.assert_allclose(special.softmax(x), scipy_special.softmax(x, axis=1), rtol=1e-14)


def test_integers_scalars_and_strides():
    assert special.log(8) == special.log(np.float64(8.0)) == special.log(np.array([8]))[0]
    assert np.ndim(special.exp(1.0)) == 0
    x = np.random.RandomState(0).uniform(1, 2, (6, 8))
    assert_array_equal(special.log(x[::2, ::-3]), special.log(x)[::2, ::-3])
