"""The kernels of the factorial mixture against a few lines of NumPy."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import entr, expit

from annealvi._kernels import fmm
from tests.proximity.bisection import bisected, divergence

DTYPES = (np.float32, np.float64)
COMPONENTS = (1, 2, 3, 8, 17, 40)
#: Below, at and above a block, and several blocks with a part of one.
SAMPLES = (1, fmm.BLOCK - 1, fmm.BLOCK, fmm.BLOCK + 1, 2 * fmm.BLOCK + 45)


def padded(n_samples):
    return -(-n_samples // fmm.BLOCK) * fmm.BLOCK


def make(n_components, n_samples, dtype, seed=0):
    """Projection, coupling, offset, scale and nu; what lies in the padding makes no difference."""
    rng = np.random.RandomState(seed)
    width = padded(n_samples)
    coupling = rng.normal(0, 1.5 / np.sqrt(n_components), (n_components, n_components))
    coupling += coupling.T
    np.fill_diagonal(coupling, 0)
    arrays = (
        rng.normal(0, 2, (n_components, width)),
        coupling,
        rng.normal(0, 1, n_components),
        rng.random_sample((n_components, width)),
    )
    projection, coupling, offset, nu = (array.astype(dtype) for array in arrays)
    return projection, coupling, offset, 0.75, nu


def naive_sweep(projection, coupling, offset, scale, b, nu):
    """One Gauss-Seidel sweep in float64; b is broadcast to nu."""
    projection, coupling, offset, b, nu = (
        np.array(array, dtype=np.float64) for array in (projection, coupling, offset, b, nu)
    )
    b = np.broadcast_to(b, nu.shape)
    for k in range(len(nu)):
        others = np.arange(len(nu)) != k
        field = coupling[k, others] @ nu[others]
        nu[k] = expit(b[k] * (offset[k] + scale * projection[k] - field))
    return nu


def naive_energy(projection, coupling, offset, scale, nu):
    projection, coupling, offset, nu = (
        array.astype(np.float64) for array in (projection, coupling, offset, nu)
    )
    energy = np.zeros(nu.shape[1])
    for k in range(len(nu)):
        energy += nu[k] * (offset[k] + scale * projection[k])
        for j in range(k):
            energy -= nu[k] * nu[j] * coupling[k, j]
    return energy


def inverse_temperatures(kind, shape, dtype):
    """b as one number, one a datum, a component or an element; or in rows that lie apart."""
    K, width = shape
    shapes = {"one": (1, 1), "datum": (1, width), "component": (K, 1), "element": (K, width)}
    b = np.random.RandomState(1).uniform(0.1, 1, shapes.get(kind, (2 * K, width))).astype(dtype)
    return b[::2] if kind == "apart" else b


@pytest.mark.parametrize("kind", ["one", "datum", "component", "element", "apart"])
@pytest.mark.parametrize("n_components", COMPONENTS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_sweep(dtype, n_components, kind):
    for n_samples in SAMPLES:
        *problem, nu = make(n_components, n_samples, dtype, seed=n_samples)
        b = inverse_temperatures(kind, nu.shape, dtype)
        expected = naive_sweep(*problem, b, nu)[:, :n_samples]
        fmm.sweep(*problem, b, 1, nu)
        rtol, atol = (1e-12, 1e-15) if dtype is np.float64 else (3e-5, 1e-7)
        assert_allclose(nu[:, :n_samples], expected, rtol=rtol, atol=atol)


@pytest.mark.parametrize("dtype", DTYPES)
def test_small_probabilities_keep_their_digits(dtype):
    """1 - expit(-x) would lose them: nu is relatively exact to the edge of the range."""
    edge = 700 if dtype is np.float64 else 85
    width = 2 * fmm.BLOCK
    projection = np.linspace(-edge, edge, width, dtype=dtype)[None]
    nu = np.zeros((1, width), dtype=dtype)
    zero = np.zeros((1, 1), dtype=dtype)
    fmm.sweep(projection, zero, zero[0], 1.0, zero + 1, 1, nu)
    rtol = 1e-14 if dtype is np.float64 else 1e-6
    assert_allclose(nu, expit(projection.astype(np.float64)), rtol=rtol)


@pytest.mark.parametrize("dtype", DTYPES)
def test_saturating_logits(dtype):
    huge = np.finfo(dtype).max
    levels = np.array([huge, 1e30, 1e5, 800, 100, 0, -100, -800, -1e5, -1e30, -huge], dtype=dtype)
    K, width = 3, fmm.BLOCK
    projection = np.zeros((K, width), dtype=dtype)
    for k in range(K):
        projection[k, : len(levels)] = np.roll(levels, k)
    coupling = 1e4 * (1 - np.eye(K)).astype(dtype)
    nu = np.full((K, width), 0.5, dtype=dtype)
    problem = (projection, coupling, np.zeros(K, dtype=dtype), 1.0)
    expected = naive_sweep(*problem, 1.0, nu)
    fmm.sweep(*problem, np.ones((1, 1), dtype=dtype), 1, nu)
    assert np.all(np.isfinite(nu))
    assert nu.min() > 0  # as small as can be, never 0
    assert nu.max() == 1
    assert_allclose(nu, expected, rtol=1e-6, atol=2 * np.finfo(dtype).tiny)
    entropy = np.full(width, np.nan)
    fmm.entropy(nu, 1, entropy)
    assert_allclose(entropy, (entr(expected) + entr(1 - expected)).sum(axis=0), atol=1e-6)


def naive_held_sweep(projection, coupling, offset, scale, b, centre, lower, upper, nu):
    """Proximity's coordinate updates by bisection of each element's T; gives nu and 1/T.

    T = 1 where KL(a) is at most its average, the KL at the limit on that side; 1/b where it
    exceeds that even then.
    """
    arrays = (projection, coupling, offset, centre, lower, upper, nu)
    projection, coupling, offset, centre, lower, upper, nu = (np.array(x, float) for x in arrays)
    inverse = np.empty_like(nu)
    for k in range(len(nu)):
        others = np.arange(len(nu)) != k
        a = offset[k] + scale * projection[k] - coupling[k, others] @ nu[others]
        far, c = a - centre[k], centre[k]
        T = bisected(a, c, divergence(np.where(far > 0, upper[k], lower[k]), c), 1 / b)
        inverse[k] = 1 / T
        nu[k] = expit(c + far / T)
    return nu, inverse


@pytest.mark.parametrize("centred", [False, True], ids=["entropy", "kl"])
@pytest.mark.parametrize("n_components", COMPONENTS[::2])
@pytest.mark.parametrize("dtype", DTYPES)
def test_held_sweep(dtype, n_components, centred):
    for n_samples in SAMPLES[-2:]:
        *problem, nu = make(n_components, n_samples, dtype, seed=n_samples)
        rng = np.random.RandomState(2)
        centre = (rng.normal(0, 0.5, n_components) * centred).astype(dtype)
        wide = np.abs(rng.normal(0, 1.0, (2, *nu.shape))).astype(dtype)
        limits = centre[:, None] - wide[0], centre[:, None] + wide[1]
        expected = naive_held_sweep(*problem, 0.3, centre, *limits, nu)
        inverse = np.full_like(nu, np.nan)
        fmm.held_sweep(*problem, 0.3, centre, *limits, 1, nu, inverse)
        used = slice(0, n_samples)
        rtol, atol = (1e-9, 1e-12) if dtype is np.float64 else (2e-4, 1e-6)
        assert_allclose(nu[:, used], expected[0][:, used], rtol=rtol, atol=atol)
        # a ratio of differences: of logits near their centre few digits are left
        atol = 1e-7 if dtype is np.float64 else 0.02
        assert_allclose(inverse[:, used], expected[1][:, used], rtol=rtol, atol=atol)
    kinds = [np.mean(test) for test in (inverse == 1, np.isclose(inverse, 0.3, rtol=1e-5))]
    assert min(*kinds, 1 - sum(kinds)) > 0.02, kinds


@pytest.mark.parametrize("n_components", COMPONENTS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_energy(dtype, n_components):
    for n_samples in SAMPLES:
        *problem, nu = make(n_components, n_samples, dtype, seed=n_samples)
        energy = np.full(nu.shape[1], np.nan)
        fmm.energy(*problem, nu, 1, energy)
        tolerance = 1e-13 if dtype is np.float64 else 1e-5
        expected = naive_energy(*problem, nu)
        assert_allclose(energy, expected, rtol=tolerance, atol=tolerance * n_components)


@pytest.mark.parametrize("n_components", COMPONENTS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_entropy(dtype, n_components):
    """Certain factors (nu of 0 or 1) have none; nu next to 0 and 1 has a little."""
    tiny, eps = np.finfo(dtype).tiny, np.finfo(dtype).eps
    special = np.array([0, 1, tiny, eps, 1 - eps, 0.5, 1e-10, 0.3], dtype=dtype)
    for n_samples in SAMPLES:
        nu = make(n_components, n_samples, dtype)[-1]
        for k in range(n_components):
            nu[k, : len(special)] = np.roll(special, k)
        entropy = np.full(nu.shape[1], np.nan)
        fmm.entropy(nu, 1, entropy)
        exact = nu.astype(np.float64)
        expected = (entr(exact) + entr(1 - exact)).sum(axis=0)
        assert_allclose(entropy, expected, rtol=4 * eps, atol=n_components * eps)
        assert_array_equal(entropy[np.all((nu == 0) | (nu == 1), axis=0)], 0)
