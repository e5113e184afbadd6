"""What the parameter `temperature` may be, and what each value stands for."""

import math

import numpy as np
import pytest

from annealvi import Annealed, Fixed
from annealvi.temperature import as_temperature


def test_what_a_parameter_stands_for():
    assert as_temperature(2, "X").get_params() == Fixed(2.0).get_params()
    assert as_temperature(np.float32(1), "X").value == 1
    assert as_temperature("annealed", "X").get_params() == Annealed().get_params()
    mine = Annealed(start=7)
    assert as_temperature(mine, "X") is mine


@pytest.mark.parametrize(
    "value", [0.99, 0, -1, math.nan, math.inf, "hot", "fixed", None, [1], 1j, True, Annealed]
)
def test_not_a_temperature(value):
    with pytest.raises(
        ValueError, match=r"The 'temperature' parameter of TemperedLDA must be"
    ) as e:
        as_temperature(value, "TemperedLDA")
    assert "[1.0, inf)" in str(e.value)
    assert "'annealed'" in str(e.value)
    assert repr(value) in str(e.value)
