"""The examples of deep posteriors run, in small, and show what they say."""

import pytest

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


def test_beta_annealing(load, tmp_path, monkeypatch, capsys):
    output = tmp_path / "beta.png"
    module = load("beta_annealing")
    monkeypatch.setattr(module, "DRAWS", 500)
    monkeypatch.setattr(module, "EVALUATION", dict(n_draws=20, n_reverse=20))
    small = ["--steps", "5", "--runs", "2", "--output", str(output)]
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
