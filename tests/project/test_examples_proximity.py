"""The examples of proximity penalties and their page's snippets run, in small."""

from __future__ import annotations

import json

import numpy as np
import pytest

from annealvi.datasets import make_topic_corpus

pytestmark = pytest.mark.deep
RNG = np.random.RandomState(0)


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


def test_belief_networks_on_mnist(load, tmp_path, monkeypatch, capsys):
    """The grid of gamma, the choice by the validation images, and the paper's settings."""
    module = load("proximity_belief_network")
    X = (np.random.RandomState(0).random_sample((2000, 9)) < 0.3).astype(np.float32)
    images = X[:1000], X[1000:1500], X[1500:]
    monkeypatch.setattr(module, "load", lambda name: images)
    methods = ["VI", "PVI, entropy, gamma = 1e-05", "PVI, entropy, gamma = 1e-30"]
    common = ["--data", "mnist_static_bin", "--iterations", "3", "--draws", "2"]
    output = ["--output", str(tmp_path / "figure.png"), "--results", str(tmp_path / "runs.json")]
    grid = ["--gammas", "1e-5", "1e-30", "--starts", "good", "--methods", *methods]
    module.main([*common, *output, *grid])
    printed = capsys.readouterr().out
    runs = json.loads((tmp_path / "runs.json").read_text())
    assert [one["method"] for one in runs] == methods
    best = max(runs[1:], key=lambda one: one["validation"])
    k = best["method"].rpartition(", ")[2]
    assert f"| PVI, entropy | {k} | {best['elbo']:.2f} | {best['log_p']:.2f} |" in printed
    full = module.arguments_of(["--data", "mnist_static_bin", "--full"])
    assert (full.iterations, full.learning_rate, full.initial_weight) == (4_000_000, 1e-3, -100)
    assert full.draws == 5000 and len(full.magnitudes) == 8
    assert len(full.methods) == 1 + 8 * 4
    with pytest.raises(SystemExit):
        module.main([*common, "--methods", "PVI, KL, k0 = 10"])
    assert "--methods must be among ['VI'," in capsys.readouterr().err


def test_logistic_regression(load, tmp_path, capsys):
    import torch

    module = load("proximity_logistic_regression")
    data = module.Data(0)
    mean, sigma = (torch.tensor(RNG.uniform(low, 0.6, 31)) for low in (-0.6, 0.2))
    q = module.Normal(mean, sigma)
    w = mean + sigma * torch.tensor(RNG.standard_normal((20_000, 31)))
    drawn = torch.nn.functional.logsigmoid(data.y * (w @ data.x.T))
    away = module.log_likelihood(q, data.x, data.y) - drawn.mean(dim=0)
    assert float((away.abs() / drawn.std(dim=0)).max()) < 5 / np.sqrt(len(w))  # the error of draws
    predicted = (data.y_test * (w @ data.x_test.T)).sigmoid().mean(dim=0).log().mean()
    assert module.held_out(q, data) == pytest.approx(float(predicted), abs=0.01)
    module.main(["--iterations", "150", "--output", str(tmp_path / "figure.png")])
    assert (tmp_path / "figure.png").stat().st_size > 10_000
    rows = [line.split(" | ") for line in capsys.readouterr().out.splitlines() if " | " in line]
    cells = {row[0].strip("| "): row[1:] for row in rows}
    assert len(cells) == 1 + 7
    good = {name: float(row[0]) for name, row in cells.items() if name != "method"}
    assert good["VI"] > good["PVI, predictions"] + 10  # 150 steps are too few for the others
    assert all(-700 < elbo < -50 for elbo in good.values())


def test_steps_to_a_value(load):
    steps_to = load("proximity_logistic_regression").steps_to
    assert steps_to([0.0, 5.0, 3.0, 6.0, 7.0], 4.0) == 3
    assert steps_to([5.0, 6.0], 4.0) == 0
    assert steps_to([5.0, 3.0], 4.0) is None


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
    assert printed.count("\n  word") == 2 * 20  # topics of VI and of the best other
    plain = float(printed.split("| frequencies |  | ")[1].split()[0])
    assert all(0.8 * plain < one["perplexity"] < 1.2 * plain for one in runs)
