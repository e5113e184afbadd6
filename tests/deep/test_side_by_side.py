"""The runner of a whole sweep of autoencoders."""

import json

import numpy as np
import pytest

from bench.studies import annealed_autoencoders

pytestmark = pytest.mark.deep


def test_a_sweep_side_by_side(tmp_path, monkeypatch):
    images = np.random.RandomState(0).randint(0, 256, (60, 2), dtype=np.uint8)
    np.savez(tmp_path / "dots.npz", X=images, X_test=images[:9])
    monkeypatch.setenv("ANNEALVI_DATA", str(tmp_path))
    sizes = "--data dots --width 6 --components 2 --transitions 2 --steps 12 --draws 20 --seeds 2"
    found = []
    for free in ([], ["--start-free"]):
        path = tmp_path / f"runs{len(free)}.json"
        options = [*sizes.split(), "--together", "--rates", "1e-2", "--results", str(path)]
        annealed_autoencoders.main(options + free)
        found.append(json.loads(path.read_text()))
    names = ["T = 0", *(f"T = 2, a = {a}" for a in ("0", "0.2", "0.5"))]
    for runs in found:
        assert [run["name"] for run in runs] == 2 * names
        for run in runs:
            assert run["test"] < run["log_p"] < 0 and 1 <= run["best_step"] <= 12
    # J_0 moves annealed steps, and no others
    changed = [one["train"] != other["train"] for one, other in zip(*found, strict=True)]
    assert not any(changed[i] for i in (0, 1, 4, 5))
    assert changed[3] and changed[7]
