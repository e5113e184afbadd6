"""The comparison of fits with and without cooling."""

import sys

import pytest

from annealvi.cli import temperatures


@pytest.mark.slow
def test_temperatures(call):
    done = call("demo", "--temperatures", "--seeds", "2")
    assert done.status == 0, done.err
    assert (done.place / "annealvi_demo.png").stat().st_size > 20_000
    names = [*temperatures.METHODS, "scikit-learn"]
    rows = {
        line[:26].strip(): [float(x) for x in line[26:].replace("±", " ").split()]
        for line in done.out.splitlines()
        if line[:26].strip() in names
    }
    default, uncooled, plain, rival = (rows[name] for name in names)
    # held-out mean, sd, coherence mean, sd, stability, seconds mean, sd
    assert default[0] > uncooled[0] > plain[0]
    assert default[2] > plain[2] and default[4] > plain[4]
    # the same work with the same numbers, from one seed: held-out, coherence, seconds
    assert rival[0] == pytest.approx(plain[0], abs=0.1)
    topics = done.out.split("largest first:")[1].split("Figure:")[0].strip().splitlines()
    assert len(topics) == 30
    assert all(len(topic.split()) == 9 for topic in topics)


@pytest.mark.parametrize("missing", ["matplotlib", "tqdm"])
def test_without_the_extra(missing, monkeypatch, refused):
    monkeypatch.setitem(sys.modules, missing, None)
    error = refused("demo", "--temperatures")
    assert f"needs {missing}" in error
    assert "annealvi[demo]" in error


def test_bad_arguments(refused):
    words = "--seeds: must be a whole number, at least 1, got '0'"
    assert words in refused("demo", "--temperatures", "--seeds", "0")


@pytest.mark.parametrize(
    ("name", "words"), [("nowhere/x.png", "nowhere"), ("x.xyz", ".png"), ("x", ".png")]
)
def test_a_figure_that_cannot_be_written(refused, name, words):
    """It is found out before anything is fitted."""
    assert words in refused("demo", "--temperatures", "--output", name)
