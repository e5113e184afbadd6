"""The demo as a newcomer runs it."""

import subprocess
import sys

import pytest

from annealvi import cli


def run(*arguments, **kwargs):
    return subprocess.run(
        [sys.executable, "-m", "annealvi", *arguments], capture_output=True, text=True, **kwargs
    )


def test_demo(tmp_path):
    done = run("demo", "--seeds", "2", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "annealvi_demo.png").stat().st_size > 20_000
    rows = {
        line[:28].strip(): line[28:].replace("±", " ").split()
        for line in done.stdout.splitlines()
        if line.startswith(("plain SVI", "annealed", "scikit-learn"))
    }
    plain, annealed, rival = (
        [float(x) for x in rows[name]] for name in ("plain SVI (T = 1)", "annealed", "scikit-learn")
    )
    # held-out mean, sd, ELBO mean, sd, seconds mean, sd
    assert annealed[0] > plain[0]
    assert -9 < plain[2] < -7
    # the same work with the same numbers but for the start of gamma
    assert rival[0] == pytest.approx(plain[0], abs=0.1)
    topics = done.stdout.split("largest first:")[1].split("Figure:")[0].strip().splitlines()
    assert len(topics) == 30
    assert all(len(topic.split()) == 9 for topic in topics)


@pytest.mark.parametrize("missing", ["matplotlib", "tqdm"])
def test_without_the_extra(missing, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, missing, None)
    assert cli.main(["demo"]) == 1
    error = capsys.readouterr().err
    assert f"needs {missing}" in error
    assert "annealvi[demo]" in error


def test_bad_arguments():
    done = run("demo", "--seeds", "0")
    assert done.returncode == 2
    assert "--seeds: must be at least 1, got 0" in done.stderr
    done = run("paint")
    assert done.returncode == 2
    assert "demo" in done.stderr


@pytest.mark.parametrize(
    ("name", "words"), [("nowhere/x.png", "nowhere"), ("x.xyz", ".png"), ("x", ".png")]
)
def test_a_figure_that_cannot_be_written(tmp_path, capsys, name, words):
    """It is found out before anything is fitted."""
    assert cli.main(["demo", "--output", str(tmp_path / name)]) == 1
    captured = capsys.readouterr()
    assert words in captured.err
    assert "abstracts" not in captured.out


def test_version():
    done = run("--version")
    assert done.stdout.startswith("annealvi 0.")
    assert "kernels" in done.stdout
