"""The bits of a fit on workers, of which some die; `bench/chaos.py` does so at random moments."""

import pytest

from bench import chaos

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("n_workers", [1, 3])
def test_any_number_of_workers(n_workers, tmp_path):
    found = chaos.fit("learned", tmp_path, str(tmp_path / "checkpoint"), n_workers, death={})
    assert found == chaos.expected("learned")


@pytest.mark.parametrize("event", chaos.EVENTS)
def test_whatever_dies(event, tmp_path):
    chaos.partitions(tmp_path)
    plan = chaos.Plan("annealed", event, step=20, seconds=0.02, n_workers=(2, 3))
    assert chaos.run(plan, tmp_path, tmp_path / "checkpoint", 300.0) == chaos.expected("annealed")
