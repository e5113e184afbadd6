"""The demo as a newcomer runs it."""

import subprocess
import sys

import pytest

from annealvi import cli


def run(*arguments, **kwargs):
    return subprocess.run(
        [sys.executable, "-m", "annealvi", *arguments], capture_output=True, text=True, **kwargs
    )


@pytest.mark.slow
def test_demo(tmp_path):
    done = run("demo", "--seeds", "2", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "annealvi_demo.png").stat().st_size > 20_000
    names = [*cli.METHODS, "scikit-learn"]
    rows = {
        line[:26].strip(): [float(x) for x in line[26:].replace("±", " ").split()]
        for line in done.stdout.splitlines()
        if line[:26].strip() in names
    }
    default, uncooled, plain, rival = (rows[name] for name in names)
    # held-out mean, sd, coherence mean, sd, stability, seconds mean, sd
    assert default[0] > uncooled[0] > plain[0]
    assert default[2] > plain[2] and default[4] > plain[4]
    # the same work with the same numbers, from one seed: held-out, coherence, seconds
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


@pytest.mark.parametrize(
    ("arguments", "words"),
    [(["demo", "--seeds", "0"], "--seeds: must be at least 1, got 0"), (["paint"], "demo")],
)
def test_bad_arguments(arguments, words, capsys):
    with pytest.raises(SystemExit, match="2"):
        cli.main(arguments)
    assert words in capsys.readouterr().err


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
