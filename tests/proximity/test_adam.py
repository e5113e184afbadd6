"""Adam, against its own lines and a quadratic."""

import numpy as np
from numpy.testing import assert_allclose

from annealvi.proximity import Adam


def test_adam():
    """Against the paper's own lines, and a quadratic's optimum."""
    adam, m, v = Adam(0.1), 0.0, 0.0
    for t, g in enumerate(np.random.RandomState(0).normal(0, 2, (20, 3)), start=1):
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g**2
        expected = 0.1 * (m / (1 - 0.9**t)) / (np.sqrt(v / (1 - 0.999**t)) + 1e-8)
        assert_allclose(adam(g), expected, rtol=1e-10)
    x, adam = np.array([4.0]), Adam(0.05)
    for _ in range(2000):
        x = x - adam(2 * (x - 1))
    assert_allclose(x, 1, atol=1e-6)
