"""Temperatures of deep models of data follow a plan."""

from __future__ import annotations

import numpy as np
import pytest

from annealvi import Annealed, LocalVariational, Variational
from annealvi.deep.estimators.data import plan_temperature


def test_temperatures_follow_a_plan():
    paper = Annealed(100.0, length=0.5, shape="exponential")
    planned = plan_temperature(paper, 8, 2, "SigmoidBeliefNetwork")
    found = [1 / planned.inverse(step) for step in range(8)]
    np.testing.assert_allclose(found, np.maximum(1, 100 * 1e-4 ** (np.arange(8) / 8)))
    for learned in (Variational(), LocalVariational()):
        with pytest.raises(ValueError, match=r"'temperature' parameter of SBN .* Got \w*Vari"):
            plan_temperature(learned, 8, 2, "SBN")
