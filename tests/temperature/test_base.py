"""The base class of temperatures."""

import pytest

from annealvi.temperature import Temperature


def test_the_base_class_leaves_the_temperature_open():
    with pytest.raises(NotImplementedError):
        Temperature().inverse(0)
