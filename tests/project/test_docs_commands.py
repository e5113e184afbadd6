"""The commands of docs/command_line.md run, on small files with the names that the page gives."""

import csv
import gzip
import json
import re
import shlex
import tomllib
from pathlib import Path

import pytest

from annealvi.cli import main
from annealvi.datasets import load_arxiv_abstracts

CHECKOUT = Path(__file__).resolve().parents[2]
PAGE = (CHECKOUT / "docs" / "command_line.md").read_text(encoding="utf-8")
ROWS = 120


def commands(text):
    """The commands of the blocks marked ``sh``, as lists of words."""
    blocks = re.findall(r"```sh\n(.*?)```", text, flags=re.DOTALL)
    lines = "".join(blocks).replace("\\\n", " ").splitlines()
    return [shlex.split(line) for line in lines if line]


@pytest.fixture(scope="module")
def papers():
    """Some of the bundled abstracts, with the columns that the page names."""
    corpus = load_arxiv_abstracts(texts=True)
    columns = {
        "id": corpus.ids,
        "title": corpus.titles,
        "abstract": [text.split("\n", 1)[1] for text in corpus.texts],
        "created": corpus.created,
        "category": corpus.target_names[corpus.target].tolist(),
    }
    rows = zip(*(values[:ROWS] for values in columns.values()), strict=True)
    return [dict(zip(columns, row, strict=True)) for row in rows]


@pytest.fixture
def place(tmp_path, monkeypatch, papers):
    """A folder with the files, where the commands run."""
    monkeypatch.chdir(tmp_path)
    for name, rows in (("papers.csv", papers), ("more.csv", papers[:20])):
        with open(name, "w", encoding="utf-8", newline="") as stream:
            writer = csv.DictWriter(stream, ["id", "title", "abstract"], extrasaction="ignore")
            writer.writeheader()
            writer.writerows(rows)
    with gzip.open("papers.jsonl.gz", "wt", encoding="utf-8") as stream:
        stream.writelines(json.dumps(row) + "\n" for row in papers)
    return tmp_path


def run(words, capsys):
    """Run a command, whose output may go to a file."""
    if ">" in words:
        *words, _, target = words
        out = run(words, capsys)
        Path(target).write_text(out, encoding="utf-8")
        return out
    assert words[0] == "annealvi"
    status = main(words[1:])
    out, err = capsys.readouterr()
    assert status == 0, (words, err)
    return out


def test_the_commands_run(place, capsys):
    assert (
        main(["fit", "papers.csv", "--text", "abstract", "--model", "other.safetensors", "--quiet"])
        == 0
    )
    capsys.readouterr()
    ours = [words for words in commands(PAGE) if words[0] == "annealvi" and "demo" not in words]
    outs = [run(words, capsys) for words in ours]
    assert [words[1] for words in ours] == [*["fit"] * 3, "label", "show", "show", "compare"]
    assert all(out.startswith("topic  share  words") for out in outs[:3])
    assert len(outs[0].splitlines()) == 51
    assert " privacy: " in outs[1] and " robots: " in outs[1]
    assert len((place / "labels.csv").read_text(encoding="utf-8").splitlines()) == 21
    assert "<html" in (place / "topics.html").read_text(encoding="utf-8")
    assert outs[5].startswith("topic 3: ") and "stability" in outs[6]


@pytest.mark.slow
def test_the_demo_runs(place, capsys):
    (demo,) = [words for words in commands(PAGE) if "demo" in words]
    assert "30 topics" in run(demo, capsys)
    assert (place / "annealvi_demo.html").exists()


def test_what_is_installed_is_there():
    with (CHECKOUT / "pyproject.toml").open("rb") as stream:
        extras = tomllib.load(stream)["project"]["optional-dependencies"]
    installed = [words for words in commands(PAGE) if words[0] != "annealvi"]
    assert installed and all(words[:2] == ["pip", "install"] for words in installed)
    named = re.findall(r"pip install '\.\[(\w+)\]'", PAGE)
    assert named and set(named) <= extras.keys()


def test_the_error_is_that_of_the_page(place, capsys):
    (block,) = re.findall(r"```text\n(.*?)```", PAGE, flags=re.DOTALL)
    assert main(["fit", "papers.csv", "--text", "abstrakt"]) == 2
    assert capsys.readouterr().err.endswith(block)  # after what it was doing
