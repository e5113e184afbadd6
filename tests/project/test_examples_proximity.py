"""The examples of proximity penalties and their page's snippets run, in small."""

from __future__ import annotations

import json

import numpy as np
import pytest

from annealvi.datasets import make_topic_corpus

pytestmark = pytest.mark.deep


def test_belief_networks(load, tmp_path, monkeypatch, capsys):
    module = load("proximity_belief_network")
    output, results = tmp_path / "figure.png", tmp_path / "runs.json"
    methods = ["VI", "annealing, k0 = ELBO", "PVI, KL, k0 = 10"]
    arguments = ["--iterations", "15", "--output", str(output), "--results", str(results)]
    module.main([*arguments, "--layers", "2", "--methods", *methods])
    assert output.stat().st_size > 10_000
    printed = capsys.readouterr().out
    runs = json.loads(results.read_text())
    assert len(runs) == 2 * len(methods)  # two starts
    good, bad = ([one["elbo"] for one in runs if one["start"] == s] for s in ("good", "bad"))
    assert min(good) > max(bad) + 100
    for one in runs:
        assert one["log_p"] > one["elbo"] and len(one["curve"]) == 15
    assert f"| VI | 1 | {runs[0]['elbo']:.2f} | {runs[0]['log_p']:.2f} |" in printed
    monkeypatch.setattr(module, "run", None)  # what is there is not redone
    module.main([*arguments, "--layers", "2", "--methods", *methods])
    assert capsys.readouterr().out == printed
    monkeypatch.setenv("ANNEALVI_DATA", str(tmp_path))
    with pytest.raises(SystemExit, match=r"There is no .*mnist_static_bin\.npz"):
        module.main(["--data", "mnist_static_bin"])


def test_annealing_begins_at_the_elbo(load):
    module = load("proximity_belief_network")
    sbn = module.network("annealing, k0 = ELBO", "bad", -50.0, max_iter=10)
    assert sbn.temperature.start == 20 * 50 and sbn.initial_weight == -10
    gamma = 1e-10**sbn.temperature.length
    assert 20 * 50 * gamma == pytest.approx(1)  # then T has come to 1
    sbn = module.network("PVI, entropy, k0 = 10", "good", -50.0, max_iter=10)
    assert sbn.proximity.magnitude == 10 and sbn.proximity.gamma == 1e-5
    assert sbn.temperature == 1 and sbn.initial_weight is None


def test_topics(load, tmp_path, monkeypatch, capsys):
    module = load("proximity_poisson_def")
    monkeypatch.setenv("ANNEALVI_DATA", str(tmp_path))
    with pytest.raises(SystemExit, match=r"There is no corpus .*reuters395\.npz"):
        module.main([])
    X = make_topic_corpus(50, 40, 3, random_state=0).data
    words = np.array([f"word{i}" for i in range(40)])
    parts = {name: getattr(X, name) for name in ("data", "indices", "indptr", "shape")}
    np.savez(tmp_path / "reuters395.npz", vocab=words, **parts)
    output, results = tmp_path / "figure.png", tmp_path / "runs.json"
    arguments = ["--iterations", "2", "--output", str(output), "--results", str(results)]
    methods = ["VI", "annealing, k0 = ELBO", "PVI, mean and variance, k0 = 100"]
    module.main([*arguments, "--methods", *methods])
    assert output.stat().st_size > 10_000
    runs = json.loads(results.read_text())
    assert [one["method"] for one in runs] == methods
    printed = capsys.readouterr().out
    assert f"| VI | 1 | {runs[0]['perplexity']:.0f} |" in printed
    assert printed.count("\n  word") == 20  # topics
    plain = float(printed.split("| frequencies |  | ")[1].split()[0])
    assert all(0.8 * plain < one["perplexity"] < 1.2 * plain for one in runs)
