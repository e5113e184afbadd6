"""A small corpus in several formats, and the command in this process."""

import csv
import json
import random
from types import SimpleNamespace

import pytest

from annealvi.cli import main

TOPICS = {
    "space": ["star", "planet", "orbit", "moon", "comet", "rocket"],
    "food": ["bread", "butter", "cheese", "apple", "honey", "soup"],
    "sea": ["ship", "harbour", "sailor", "wave", "anchor", "island"],
}


@pytest.fixture
def rows():
    draw = random.Random(0)
    rows = []
    for number in range(36):
        kind = list(TOPICS)[number % 3]
        words = draw.choices(TOPICS[kind], k=20)
        year = 2000 + number // 12
        own = dict(id=f"d{number}", title=f"On {words[0]}, {number}", text=" ".join(words))
        rows.append(own | dict(date=f"{year}-05-01", kind=kind))
    return rows


@pytest.fixture
def jsonl(tmp_path, rows):
    path = tmp_path / "papers.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


@pytest.fixture
def table(tmp_path, rows):
    path = tmp_path / "papers.csv"
    with path.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.DictWriter(stream, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return path


@pytest.fixture
def folder(tmp_path, rows):
    """The same as a folder of files, in a folder for each kind."""
    path = tmp_path / "letters"
    for row in rows:
        place = path / row["kind"]
        place.mkdir(parents=True, exist_ok=True)
        (place / f"{row['id']}.txt").write_text(row["text"], encoding="utf-8")
    return path


@pytest.fixture
def call(capsys, tmp_path, monkeypatch):
    """Run the command in an empty folder; returns its status and what it wrote."""
    place = tmp_path / "here"
    place.mkdir()
    monkeypatch.chdir(place)

    def run(*arguments):
        capsys.readouterr()
        try:
            status = main([str(argument) for argument in arguments])
        except SystemExit as stop:
            status = stop.code
        written = capsys.readouterr()
        return SimpleNamespace(status=status, out=written.out, err=written.err, place=place)

    return run


@pytest.fixture
def model(call, jsonl, tmp_path):
    path = tmp_path / "m.safetensors"
    assert call("fit", jsonl, "--n-topics", 3, "--model", path).status == 0
    return path


@pytest.fixture
def refused(call):
    """Run the command on wrong input; returns the one line of its error."""

    def run(*arguments):
        done = call(*arguments)
        assert done.status == 2, (done.out, done.err)
        assert not done.out
        command = arguments[0]
        lines = [line for line in done.err.splitlines() if line.startswith(f"annealvi {command}:")]
        assert len(lines) == 1 and done.err.endswith(lines[0] + "\n")
        assert "Traceback" not in done.err
        assert not list(done.place.iterdir())  # nothing is written half
        return lines[0]

    return run
