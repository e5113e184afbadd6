"""The study of annealed autoencoders runs, in small, and keeps the best setting that it tried."""

import json

import numpy as np
import pytest

pytest.importorskip("torch")

from bench.studies import annealed_autoencoders as study
from tests.project.test_examples_layers import rows

pytestmark = pytest.mark.deep

SIZES = dict(components=2, width=4, transitions=1, steps=2, search_steps=1, draws=2)
SMALL = [f"--{name.replace('_', '-')}={value}" for name, value in SIZES.items()]


def test_the_best_setting_of_the_search_is_fitted(tmp_path, monkeypatch, capsys):
    bits = (np.random.RandomState(0).random_sample((60, 9)) < 0.3).astype(np.float32)
    monkeypatch.setattr(study, "load", lambda name: study.Images(bits[:50], bits[50:]))
    path = tmp_path / "runs.json"
    arguments = [*SMALL, "--results", str(path)]
    study.main(arguments)
    first, runs = capsys.readouterr().out, json.loads(path.read_text())
    finals = [run for run in runs if "log_p" in run]
    assert [run["name"] for run in finals] == ["T = 0", "T = 1, a = 0", "T = 1, a = 0.2"]
    for run in finals:
        tried = [one for one in runs if "validation" in one and one["name"] == run["name"]]
        assert len(tried) == 4
        best = max(tried, key=lambda one: one["validation"])
        assert all(run[name] == best[name] for name in study.NAMES)
    assert len(rows(first)) == 12 + 1 + 3  # both tables, and the head of the second
    study.main(arguments)
    assert capsys.readouterr().out == first and json.loads(path.read_text()) == runs
    study.main([*SMALL, "--search-steps", "0"])
    assert len(rows(capsys.readouterr().out)) == 3


def test_images_become_bits(monkeypatch):
    class Grey:
        data = np.array([[0.0, 0.5], [0.51, 1.0]] * 3)

    monkeypatch.setattr(study, "load_images", lambda name: Grey)
    images = study.load("any")
    assert len(images.train) == 5 and len(images.test) == 1
    assert images.train[:2].tolist() == [[0, 0], [1, 1]] and images.test.tolist() == [[1, 1]]
