"""The examples of autoencoders run, in small, and show what they say."""

from __future__ import annotations

import numpy as np
import pytest

pytestmark = pytest.mark.deep


def rows(said):
    """Cells of the last Markdown table in a text, by their first."""
    lines = [line.strip("| ").split(" | ") for line in said.splitlines() if line.startswith("| ")]
    return {line[0]: line[1:] for line in lines}


@pytest.fixture(autouse=True)
def digits(tmp_path, monkeypatch):
    """Images of 5 x 5 pixels where the examples look for digits."""
    rng = np.random.RandomState(0)
    shades = rng.randint(0, 256, (80, 5, 5), dtype=np.uint8)
    bits = rng.random_sample((60, 25)) < shades[:60].reshape(60, -1) / 255
    np.savez(tmp_path / "mnist.npz", X=shades[:60], X_test=shades[60:])
    np.savez(tmp_path / "mnist_static_bin.npz", X=np.packbits(bits, axis=1))
    monkeypatch.setenv("ANNEALVI_DATA", str(tmp_path))
    return tmp_path


def test_dead_relus(load, digits, monkeypatch, capsys):
    output, kept = digits / "dead.png", digits / "runs.json"
    arguments = ["--iterations", "30", "--output", str(output), "--results", str(kept)]
    module = load("dead_relus")
    module.main(["--seeds", "2", "--magnitude", "0.5", *arguments])
    assert output.stat().st_size > 10_000
    table = rows(capsys.readouterr().out)
    assert list(table)[1:] == ["VI", "PVI, orthogonal, k = 0.5"]
    for method in list(table)[1:]:
        assert table[method][0] == "2"
        elbo, log_p = (float(cell.split(" ± ")[0]) for cell in table[method][1:3])
        assert 5 < log_p < elbo < 25

    def again(*arguments):
        raise AssertionError("runs that are kept are not redone")

    with monkeypatch.context() as patch:
        patch.setattr(module, "run", again)
        module.main(["--seeds", "2", "--magnitude", "0.5", *arguments])
    capsys.readouterr()
    shorter = ["--iterations", "20", "--output", str(output), "--results", str(kept)]
    module.main(["--magnitude", "0.5", *shorter])
    table = rows(capsys.readouterr().out)
    assert [table[method][0] for method in list(table)[1:]] == ["1", "1"]  # not those of 30
    monkeypatch.setattr(module, "MAGNITUDES", [1e6, 1e-3])
    module.main(["--choose", "--iterations", "300", "--output", str(output)])
    assert list(rows(capsys.readouterr().out))[-2:] == ["VI", "PVI, orthogonal, k = 0.001"]
    (digits / "mnist.npz").unlink()
    with pytest.raises(SystemExit, match=r"no image file 'mnist'.* ANNEALVI_DATA"):
        module.main(arguments)
    with pytest.raises(SystemExit, match="2"):
        module.main(["--magnitude", "0"])
    assert "--magnitude positive" in capsys.readouterr().err


def test_calibrated_autoencoder(load, digits, capsys):
    output = digits / "calibrated.png"
    arguments = ["--iterations", "20", "--output", str(output)]
    module = load("calibrated_autoencoder")
    module.main(["--transitions", "2", "--draws", "20", *arguments])
    assert output.stat().st_size > 10_000
    table = rows(capsys.readouterr().out)
    assert list(table)[1:] == ["T = 0", "T = 2, a = 0", "T = 2, a = 0.2", "T = 2, a = 0.5"]
    for name in list(table)[1:]:
        train, test, log_p, generalisation, variational = map(float, table[name][1:6])
        assert log_p < test and variational > 0
        assert generalisation == pytest.approx(test - train, abs=0.011)
    kept = ["--transitions", "2", "--draws", "5", "--results", str(digits / "runs.json")]
    for iterations in ("10", "20"):
        module.main([*kept, "--output", str(output), "--iterations", iterations])
    table = rows(capsys.readouterr().out)
    assert {table[name][0] for name in list(table)[1:]} == {"1"}  # not those of 10 too
    (digits / "mnist_static_bin.npz").unlink()
    with pytest.raises(SystemExit, match=r"no image file 'mnist_static_bin'.* ANNEALVI_DATA"):
        module.main(arguments)
    with pytest.raises(SystemExit, match="2"):
        module.main(["--transitions", "-1"])
    assert "must be at least 1" in capsys.readouterr().err
