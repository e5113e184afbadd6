"""The examples run, in small, and show what they say."""

import numpy as np
import pytest


def test_a_model_of_ones_own(load, capsys):
    found = load("custom_model").main(n_starts=12)
    assert list(found) == ["VI (T = 1)", "annealed", "variational tempering"]
    assert found["variational tempering"] > found["VI (T = 1)"]
    assert capsys.readouterr().out.count("best optimum found") == 3


def test_the_elbo_of_the_custom_model_never_falls(load):
    module = load("custom_model")
    from annealvi.model import UNTEMPERED, Batch

    x = np.random.RandomState(0).poisson(np.repeat([3.0, 30.0], 40)).astype(float)
    model = module.PoissonMixture(np.ones(3), shape=1.0, inverse_scale=0.1)
    model.initialize(x, np.random.RandomState(1))
    bounds = []
    for _ in range(30):
        local = model.local_step(Batch(x, slice(0, 80)), UNTEMPERED)
        model.global_step(local.statistics, 1.0, 1.0, UNTEMPERED)
        bounds.append(model.elbo(x))
    assert np.min(np.diff(bounds)) > -1e-9
    assert bounds[-1] > bounds[0] + 0.1


@pytest.mark.slow
@pytest.mark.parametrize(("figure", "optima"), [("vt", [1, 2, 2, 2]), ("dasvi", [1, 1, 2])])
def test_the_surface_of_two_gaussians(load, figure, optima, tmp_path, capsys):
    output = tmp_path / "surface.png"
    arguments = ["--figure", figure, "--resolution", "21", "--output", str(output)]
    plain, annealed = load("gmm_surface").main(arguments)
    assert output.stat().st_size > 10_000
    assert annealed.lower_bound_ > plain.lower_bound_ + 0.1
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("T = ")]
    assert [int(line.split(": ")[1].split()[0]) for line in lines] == optima


def test_the_toy(load, tmp_path):
    output = tmp_path / "toy.png"
    load("toy_factors").main(["--seeds", "1", "--samples", "300", "--output", str(output)])
    assert output.stat().st_size > 10_000


@pytest.mark.slow
def test_the_ring_of_starts(load, tmp_path, capsys):
    output = tmp_path / "ring.png"
    arguments = ["--starts", "8", "--steps", "4000", "--output", str(output)]
    module = load("proximity_ring")
    counts = module.main(arguments)
    assert output.stat().st_size > 10_000
    assert len(rows(capsys.readouterr().out)) == 1 + len(counts)
    assert counts["TemperedFMM, Proximity"] == counts["TemperedFMM, annealed"] == [8]
    assert min(counts["PVI, entropy"] + counts["annealing"]) >= 4  # in fewer steps than it takes
    assert counts["VI, Adam"] == [0] == counts["TemperedFMM, plain"]
    with pytest.raises(SystemExit, match="2"):
        module.main(["--starts", "0"])
    assert "must be at least 1" in capsys.readouterr().err


@pytest.mark.slow
def test_faces(load, tmp_path, monkeypatch, capsys):
    rng = np.random.RandomState(0)
    faces = (rng.random_sample((2100, 6)) < 0.3) @ rng.random_sample((6, 35)) * 40 + 20
    images = np.clip(faces + 5 * rng.standard_normal(faces.shape), 0, 255).astype(np.uint8)
    np.savez(tmp_path / "yaleb_48x42.npz", X=images.reshape(-1, 7, 5))
    monkeypatch.setenv("ANNEALVI_DATA", str(tmp_path))
    output = tmp_path / "faces.png"
    arguments = ["--iterations", "51", "--jobs", "1", "--output", str(output)]
    module = load("yale_faces")
    module.main(arguments)
    assert output.stat().st_size > 10_000
    assert capsys.readouterr().out.count("\n| ") == 5
    with pytest.raises(SystemExit, match=r"There is no .*yaleb_96x84.npz.* ANNEALVI_DATA"):
        module.main(["--full", *arguments])


def rows(table):
    """Cells of the rows of a Markdown table, by their first."""
    lines = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()]
    return {line[0]: line[1:] for line in lines if len(line) > 2 and "---" not in line[0]}


@pytest.mark.slow
def test_learning_curves(load, tmp_path, monkeypatch, capsys):
    output = tmp_path / "curves.png"
    arguments = ["--passes", "1", "--topics", "5", "--jobs", "1", "--output", str(output)]
    module = load("learning_curves")
    monkeypatch.setattr(module, "POINTS", 4)
    module.main(["--seeds", "2", *arguments])
    assert output.stat().st_size > 10_000
    table = rows(capsys.readouterr().out)
    assert list(table)[1:] == list(module.METHODS)
    for method in module.METHODS:
        elbo, held_out = (float(cell.split(" ± ")[0]) for cell in table[method][:2])
        assert -np.log(3000) < elbo < held_out < -5
    monkeypatch.setenv("ANNEALVI_DATA", str(tmp_path))
    with pytest.raises(SystemExit, match=r"no corpus 'arxiv_100k'.* ANNEALVI_DATA"):
        module.main(["--full", *arguments])
    with pytest.raises(SystemExit, match="2"):
        module.main(["--seeds", "0"])
    assert "--seeds must be at least 1" in capsys.readouterr().err


@pytest.mark.slow
def test_annealing_lengths(load, tmp_path, monkeypatch, capsys):
    output = tmp_path / "lengths.png"
    arguments = ["--seeds", "1", "--topics", "4", "--jobs", "1", "--output", str(output)]
    module = load("annealing_lengths")
    monkeypatch.setattr(module, "POINTS", 4)
    arguments += ["--lengths", "0.1", "0.5", "--shape", "exponential"]
    module.main(["--passes", "2", *arguments])
    assert output.stat().st_size > 10_000
    table = rows(capsys.readouterr().out)
    names = {"SVI", "linear", "exponential", "tA = 0.1", "tA = 0.5", "T0 = 1.5", "T0 = 5"}
    assert names < set(table)
    # three heads, one SVI, two shapes, two lengths
    assert len(table) == 3 + 1 + 2 + 2 + len(module.STARTS)
    assert table["exponential"] == table["tA = 0.1"] == table["T0 = 2"] != table["linear"]
    with pytest.raises(SystemExit, match="2"):
        module.main(["--passes", "1", "--lengths", "2", *arguments[:-5]])
    assert "--lengths must lie between 0 and the 1 passes" in capsys.readouterr().err
    with pytest.raises(SystemExit, match="2"):
        module.main(["--offset", "8", *arguments])
    assert "--offset must be larger" in capsys.readouterr().err
    monkeypatch.setenv("ANNEALVI_DATA", str(tmp_path))
    with pytest.raises(SystemExit, match=r"no corpus 'arxiv_100k'.* ANNEALVI_DATA"):
        module.main(["--full", *arguments])


@pytest.mark.slow
def test_hot_documents(load, tmp_path, monkeypatch, capsys):
    output = tmp_path / "hot.png"
    arguments = ["--jobs", "1", "--show", "3", "--output", str(output)]
    module = load("hot_documents")
    module.main(["--passes", "4", *arguments])
    assert output.stat().st_size > 10_000
    said = capsys.readouterr().out
    assert said.startswith("150 of 3000 documents are random words: AUC ")
    assert float(said.split("AUC ")[1].split()[0]) > 0.9
    hottest, coolest = (part.splitlines()[1:4] for part in said.split("\nThe ")[1:])
    assert min(float(line.split()[0]) for line in hottest) > 1.3
    assert max(float(line.split()[0]) for line in coolest) < 1.1
    monkeypatch.setenv("ANNEALVI_DATA", str(tmp_path))
    with pytest.raises(SystemExit, match=r"no corpus 'reuters21578'.* ANNEALVI_DATA"):
        module.main(["--full", *arguments])


def test_planted_documents_keep_their_lengths(load):
    from annealvi.datasets import load_arxiv_abstracts

    X = load_arxiv_abstracts().data[:200]
    redrawn, planted = load("hot_documents").plant(X, np.random.RandomState(0))
    assert np.count_nonzero(planted) == 10
    assert np.array_equal(redrawn.sum(axis=1), X.sum(axis=1))
    assert (redrawn[~planted] != X[~planted]).nnz == 0
    assert all((redrawn[[row]] != X[[row]]).nnz > 0 for row in np.flatnonzero(planted))
