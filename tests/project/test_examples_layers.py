"""The examples of deep posteriors run, in small, and show what they say."""

import math

import pytest

torch = pytest.importorskip("torch")

pytestmark = pytest.mark.deep


def rows(table):
    """Cells of the rows of a Markdown table, without its head."""
    lines = [line for line in table.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[1:]]


@pytest.mark.parametrize(("energy", "modes"), [("d", 4), ("c", None)])
def test_annealed_layers(load, energy, modes, tmp_path, monkeypatch, capsys):
    output = tmp_path / "layers.png"
    module = load("annealed_layers")
    monkeypatch.setattr(module, "DRAWS", 500)
    monkeypatch.setattr(module, "EVALUATION", dict(n_draws=20, n_reverse=20))
    small = ["--steps", "5", "--transitions", "3", "--runs", "2", "--output", str(output)]
    module.main(["--energy", energy, *small])
    assert output.stat().st_size > 10_000
    table = rows(capsys.readouterr().out)
    assert [row[0] for row in table] == ["ELBO", "AVO"]
    for _, kl, found, steps in table:
        assert float(kl.split(" ± ")[0]) < 0
        assert steps == "5"
        if modes is None:
            assert found == "-"
        else:
            assert all(0 <= int(n) <= modes for n in found.split(", "))
    with pytest.raises(SystemExit, match="2"):
        module.main(["--steps", "0"])
    assert "--steps and --runs must be at least 1" in capsys.readouterr().err
    with pytest.raises(SystemExit, match="2"):
        module.main(["--annealing", "1.5"])
    assert "--annealing must be between 0 and 1" in capsys.readouterr().err
    module.main(["--energy", energy, "--annealing", "1", *small])
    assert rows(capsys.readouterr().out) != table  # beta makes another fit


def test_beta_annealing(load, tmp_path, monkeypatch, capsys):
    output = tmp_path / "beta.png"
    module = load("beta_annealing")
    monkeypatch.setattr(module, "DRAWS", 500)
    monkeypatch.setattr(module, "EVALUATION", dict(n_draws=20, n_reverse=20))
    small = ["--steps", "5", "--runs", "2", "--output", str(output)]
    module.main(["--energies", "d", "--fractions", "0", "--transition", "flow", *small])
    for row in rows(capsys.readouterr().out):  # a flow has a density: the bounds are one
        assert float(row[4]) == float(row[3].split(" ± ")[0])
    module.main(["--energies", "cd", "--fractions", "0", "0.5", *small])
    assert output.stat().st_size > 10_000
    table = rows(capsys.readouterr().out)
    assert [row[1:3] for row in table] == [["0", "ELBO"], ["0", "AVO"],
                                           ["0.5", "ELBO"], ["0.5", "AVO"]] * 2  # fmt: skip
    for row in table:
        assert float(row[4]) <= float(row[3].split(" ± ")[0])
        assert row[5].endswith("of 4" if row[0].startswith("(d)") else "-")
    for wrong, message in (
        (["--energies", "dx"], "--energies must be letters of abcdef"),
        (["--fractions", "1.5"], "--fractions must lie in"),
        (["--runs", "0"], "--steps and --runs must be at least 1"),
    ):
        with pytest.raises(SystemExit, match="2"):
            module.main(wrong)
        assert message in capsys.readouterr().err


def test_noise_process(load, tmp_path, monkeypatch, capsys):
    output = tmp_path / "noise.png"
    module = load("noise_process")
    for name, few in (("DRAWS", 20), ("TEST", 50), ("POSTERIORS", 20), ("CELLS", 61)):
        monkeypatch.setattr(module, name, few)
    small = ["--batch", "8", "--transitions", "2", "--output", str(output)]
    module.main(["--steps", "5", "--seeds", "2", *small])
    assert output.stat().st_size > 10_000
    table = rows(capsys.readouterr().out)
    assert [row[0] for row in table] == ["IW, q = p", "VAE", "HVI", "HVI, AVO"]
    assert table[0][-1] == "-"  # without q there is no gap
    for row in table:
        assert all(" ± " in cell for cell in row[1:] if cell != "-")
        assert float(row[2].split(" ± ")[0]) > 0
    with pytest.raises(SystemExit, match="2"):
        module.main(["--seeds", "0"])
    assert "--seeds must be at least 1" in capsys.readouterr().err


def test_what_the_noise_process_measures(load):
    """A linear model has Gaussian posteriors and a density in closed form."""
    module = load("noise_process")
    model = module.Model(None)
    matrix = torch.tensor([[1.0, 0.5], [0.0, 0.8]])
    model.decoder = torch.nn.Linear(2, 2, bias=False)
    with torch.no_grad():
        model.decoder.weight.copy_(matrix)
        model.log_sigma.fill_(-1.0)
    x = torch.randn(20, 2)
    covariance = matrix @ matrix.T + math.exp(-2.0) * torch.eye(2)
    exact = torch.distributions.MultivariateNormal(torch.zeros(2), covariance).log_prob(x)
    log_p, posterior = model.on_grid(x)
    torch.testing.assert_close(log_p, exact, atol=1e-3, rtol=0)
    assert module.not_gaussian(posterior).abs().max() < 1e-3
    halves = torch.zeros(1, module.CELLS**2)
    halves[0, [0, -1]] = 0.5  # two points: far from a Gaussian
    assert module.not_gaussian(0.5 * halves + 0.5 * posterior[:1]) > 0.5
