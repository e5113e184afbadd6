"""The examples run, in small."""

import shlex

import numpy as np
import pytest

from annealvi.datasets import make_topic_corpus
from annealvi.model import UNTEMPERED, Batch

SLOW, DEEP = [pytest.mark.slow], [pytest.mark.deep]
FEW = dict(TEST=40, SCORED=20, CELLS=41, BINS=20)
EVALUATION = dict(EVALUATION=dict(n_draws=20, n_reverse=20))
SMALL, BETA = "--seeds 1 --topics 4 --jobs 1", "--energies cd --fractions 0 0.5"
KL = "--methods VI 'PVI, KL, k0 = 10' --average statistic"
#: Of each example: arguments, constants made smaller, rows that it prints, marks.
RUNS = [
    ("toy_factors", "--seeds 1 --samples 300", {}, 0, []),
    ("proximity_ring", "--starts 2 --steps 50", {}, 2, SLOW),
    ("yale_faces", "--iterations 51 --jobs 1", {}, 4, SLOW),
    ("learning_curves", "--passes 1 --topics 5 --jobs 1 --seeds 2", dict(POINTS=4), 5, SLOW),
    ("annealing_lengths", f"{SMALL} --passes 2 --lengths 0.1 0.5", dict(POINTS=4), 5, SLOW),
    ("arxiv_years", "--topics 3 --refits 2", {}, 4, SLOW),
    ("political_blogs", "--topics 3 --refits 2", {}, 10, SLOW),
    ("hot_documents", "--passes 4 --jobs 1 --show 3", {}, 0, SLOW),
    ("annealed_layers", "--energy a --steps 5 --runs 2 --transitions 3", EVALUATION, 2, DEEP),
    ("beta_annealing", f"{BETA} --steps 5 --runs 2", EVALUATION | dict(DRAWS=500), 8, DEEP),
    ("noise_process", "--steps 5 --seeds 2 --batch 8 --transitions 2", FEW, 4, DEEP),
    ("dead_relus", "--iterations 30 --seeds 2 --magnitude 0.5", {}, 2, DEEP),
    ("calibrated_autoencoder", "--iterations 20 --transitions 2 --draws 20", {}, 4, DEEP),
    ("proximity_belief_network", f"{KL} --iterations 15 --layers 2", {}, 2, DEEP),
    ("proximity_logistic_regression", "--iterations 150 --average statistic", {}, 7, DEEP),
    ("proximity_poisson_def", "--iterations 2 --methods VI", {}, 1, DEEP),
]


@pytest.fixture
def data(tmp_path, monkeypatch):
    """Small files where the examples look for faces, digits and counts of words."""
    rng = np.random.RandomState(0)
    faces = (rng.random_sample((2100, 6)) < 0.3) @ rng.random_sample((6, 35)) * 40 + 20
    np.savez(tmp_path / "yaleb_48x42.npz", X=faces.astype(np.uint8).reshape(-1, 7, 5))
    shades = rng.randint(0, 256, (80, 5, 5), dtype=np.uint8)
    bits = rng.random_sample((60, 25)) < shades[:60].reshape(60, -1) / 255
    np.savez(tmp_path / "mnist.npz", X=shades[:60], X_test=shades[60:])
    np.savez(tmp_path / "mnist_static_bin.npz", X=np.packbits(bits, axis=1))
    X = make_topic_corpus(50, 40, 3, random_state=0).data
    parts = {name: getattr(X, name) for name in ("data", "indices", "indptr", "shape")}
    words = np.array([f"word{i}" for i in range(40)])
    np.savez(tmp_path / "reuters395.npz", vocab=words, **parts)
    sides = dict(rating=np.array(["Liberal", "Conservative"] * 25), day=np.arange(1, 51))
    np.savez(tmp_path / "poliblog5k.npz", vocab=words, **parts, **sides)
    monkeypatch.setenv("ANNEALVI_DATA", str(tmp_path))
    return tmp_path


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "arguments", "constants", "n_rows"),
    [pytest.param(*run, marks=marks, id=run[0]) for *run, marks in RUNS],
)
def test_an_example_runs(name, arguments, constants, n_rows, load, data, monkeypatch, capsys):
    """It draws its figure, prints its table, and refuses what it cannot do."""
    module, figure, arguments = load(name), data / "figure.png", shlex.split(arguments)
    for constant, value in constants.items():
        monkeypatch.setattr(module, constant, value)
    module.main([*arguments, "--output", str(figure)])
    assert figure.stat().st_size > 10_000
    table = [line for line in capsys.readouterr().out.splitlines() if line.startswith("|")]
    assert len([row for row in table if "---" not in row]) >= n_rows
    number = next(i for i, word in enumerate(arguments) if word.isdigit())
    with pytest.raises((SystemExit, ValueError)):
        module.main([*arguments[:number], "-1", *arguments[number + 1 :], "--output", str(figure)])


@pytest.mark.slow
@pytest.mark.parametrize(("figure", "optima"), [("vt", [1, 2, 2, 2]), ("dasvi", [1, 1, 2])])
def test_the_surface_of_two_gaussians(load, figure, optima, tmp_path, capsys):
    output = tmp_path / "surface.png"
    arguments = ["--figure", figure, "--resolution", "21", "--output", str(output)]
    plain, annealed = load("gmm_surface").main(arguments)
    assert annealed.lower_bound_ > plain.lower_bound_ + 0.1
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("T = ")]
    assert [int(line.split(": ")[1].split()[0]) for line in lines] == optima


@pytest.mark.slow
def test_a_model_of_ones_own(load, capsys):
    module = load("custom_model")
    found = module.main(n_starts=12)
    assert found["variational tempering"] > found["VI (T = 1)"]
    assert capsys.readouterr().out.count("best optimum found") == 3
    x = np.random.RandomState(0).poisson(np.repeat([3.0, 30.0], 40)).astype(float)
    model = module.PoissonMixture(np.ones(3), shape=1.0, inverse_scale=0.1)
    model.initialize(x, np.random.RandomState(1))
    bounds = []
    for _ in range(30):
        local = model.local_step(Batch(x, slice(0, 80)), UNTEMPERED)
        model.global_step(local.statistics, 1.0, 1.0, UNTEMPERED)
        bounds.append(model.elbo(x))
    assert np.min(np.diff(bounds)) > -1e-9 and bounds[-1] > bounds[0] + 0.1
