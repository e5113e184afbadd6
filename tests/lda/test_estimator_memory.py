"""What a fit needs is at most three times the memory of its topics."""

import sys

import pytest

from bench.speed.footprint import measured

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="the peak of memory is read from /proc"),
]


@pytest.mark.parametrize(
    "task",
    ["fit", "fit, batch", "fit, validation_fraction=0.1", "partial_fit, three portions", "pickle"],
)
def test_peak_in_multiples_of_lambda(task):
    assert measured(task, 300_000, 96) < 3
