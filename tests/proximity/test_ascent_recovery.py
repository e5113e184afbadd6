"""Figure 1 of Altosaar et al. (2018): who comes back from a ring of radius 95 to the truth.

A hundred starts, a third of them for each of three data seeds.  All of `starts x seeds` are in
docs/record/proximity.md, by ``python examples/proximity_ring.py --full``.
"""

import numpy as np
import pytest

from annealvi.proximity import BernoulliFactorModel, ProximityAscent
from tests.proximity.ring import STARTS, make_data, ring, share_near

pytestmark = [pytest.mark.statistical, pytest.mark.slow]


@pytest.fixture(scope="module")
def model():
    """Every seed's data in turn around the ring."""
    return BernoulliFactorModel(np.tile(make_data(), (STARTS, 1, 1)))


# Measured with all 300 starts: see the module's docstring.
def test_plain_inference_stays_where_it_is(model):
    for options in (dict(), dict(optimizer="gradient", learning_rate=1e-3)):
        ascent = ProximityAscent(magnitude=0, n_steps=4000, n_records=1, **options)
        assert share_near(ascent.ascend(model, ring()[:, :, None]).means[:, :, 0]) < 0.1


@pytest.mark.parametrize("method", ["fast", "annealing"])
def test_proximity_and_annealing_come_back(model, method):
    ascent = ProximityAscent("entropy", method=method, gamma=1e-10, n_steps=10_000)
    assert share_near(ascent.ascend(model, ring()[:, :, None]).means[:, :, 0]) >= 0.95
