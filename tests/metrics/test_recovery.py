"""Recovery of known components."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from annealvi.metrics import component_recovery


def test_components_are_matched_one_to_one():
    truth = np.eye(3, 5)
    found = np.array([[0, 0, 3.0, 0, 0], [2, 0.1, 0, 0, 0], [1.9, 0.1, 0, 0, 0], [0, -1, 0, 0, 0]])
    n_found, cosines = component_recovery(found, truth)
    assert n_found == 2
    assert_allclose(cosines, [2 / np.hypot(2, 0.1), 0.1 / np.hypot(1.9, 0.1), 1])
    assert component_recovery(found, truth, threshold=0.9999)[0] == 1
    n_found, cosines = component_recovery(truth[:1], truth)  # fewer than there are
    assert n_found == 1
    assert_allclose(cosines, [1, 0, 0])
    assert component_recovery(np.zeros((3, 5)), truth)[0] == 0
    with pytest.raises(ValueError, match=r"same number of features. Got 4 and 5"):
        component_recovery(np.ones((3, 4)), truth)
    with pytest.raises(ValueError, match="components contains NaN"):
        component_recovery(np.full((3, 5), np.nan), truth)
