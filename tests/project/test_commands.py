"""The commands that the texts name exist, CI runs each test once, and the promises name tests."""

import ast
import csv
import gzip
import itertools
import json
import re
import shlex
import tomllib
from functools import cache
from pathlib import Path

import pytest
from packaging.version import Version

from annealvi.cli import main
from annealvi.datasets import load_arxiv_abstracts
from tests.oldest import lower_bounds

CHECKOUT = Path(__file__).resolve().parents[2]
DOCS = CHECKOUT / "docs"
MAKEFILE = (CHECKOUT / "Makefile").read_text(encoding="utf-8")
TEXTS = {p.relative_to(DOCS).as_posix(): p.read_text(encoding="utf-8") for p in DOCS.rglob("*.md")}
TEXTS |= {n: (CHECKOUT / n).read_text(encoding="utf-8") for n in ("README.md", "CONTRIBUTING.md")}


def recipe(target):
    return re.search(rf"^{target}:.*\n((?:\t.*\n)+)", MAKEFILE, flags=re.MULTILINE)[1]


def test_commands_that_the_texts_name_exist():
    """A study that has left the repository names the last commit that has it."""
    missing = []
    for name, text in TEXTS.items():
        for target in re.findall(r"(?:^|`)make ([\w-]+)", text, flags=re.MULTILINE):
            if not re.search(rf"^{target}:", MAKEFILE, flags=re.MULTILINE):
                missing.append((name, f"make {target}"))
        for module, rest in re.findall(r"python -m (bench\.[\w.]+)(?=((?:.|\n){0,200}))", text):
            is_old = re.search(r"at\scommit\s`?47d6b91", rest)
            place = CHECKOUT / module.replace(".", "/")
            is_there = place.with_suffix(".py").is_file() or (place / "__main__.py").is_file()
            if not is_there and not is_old:
                missing.append((name, module))
        for script in re.findall(r"python (examples/\w+\.py)", text):
            if not (CHECKOUT / script).is_file():
                missing.append((name, script))
    assert not missing


def test_ci_runs_each_test_once():
    """The selections of its commands leave out no combination of markers and share none."""
    commands = re.findall(r"^make (\S+)$", (CHECKOUT / ".ci/run").read_text(), re.MULTILINE)
    assert commands.pop() == "docs"  # the site, which runs no test
    selections = [re.search(r"-m ('.+'|\w+)", recipe(target))[1].strip("'") for target in commands]
    assert len(selections) == 4
    for deep, slow, browser in itertools.product([False, True], repeat=3):
        if browser and (deep or not slow):
            continue  # tests in a browser are slow
        marks = {"deep": deep, "slow": slow, "browser": browser}
        chosen = [eval(selection, marks) for selection in selections]
        assert sum(chosen) == 1, (marks, selections)
    assert "$(MAKE) test-debug" in recipe("test-all")


def test_each_requirement_has_one_lower_bound():
    bounds = lower_bounds(tomllib.loads((CHECKOUT / "pyproject.toml").read_text("utf-8")))
    assert {"numpy", "scipy", "scikit-learn", "Cython", "torch", "pytest"} <= set(bounds)
    assert all(Version(version).release for version in bounds.values())


@cache
def functions_of(path):
    tree = ast.parse((CHECKOUT / path).read_text(encoding="utf-8"))
    defined = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    targets = [one for node in tree.body if isinstance(node, ast.Assign) for one in node.targets]
    return defined | {one.id for one in targets if isinstance(one, ast.Name)}  # of `refusals`


def missing(holder):
    """Why a test or command cannot hold a promise, or None."""
    if match := re.fullmatch(r"make ([\w-]+)", holder):
        has = re.search(rf"^{match[1]}:", MAKEFILE, flags=re.MULTILINE)
        return None if has else f"the Makefile has no {match[1]}"
    if match := re.fullmatch(r"(tests/[\w/]+\.py)::(test_\w+)", holder):
        if not (CHECKOUT / match[1]).is_file():
            return f"there is no file {match[1]}"
        return None if match[2] in functions_of(match[1]) else f"{match[1]} has no {match[2]}"
    return f"{holder} is neither a test nor a command"


def test_each_promise_is_held_by_tests_that_exist():
    held = json.loads((Path(__file__).parent / "promises.json").read_text(encoding="utf-8"))
    page = TEXTS["look_up/promises.md"].partition("## What counts as public")[0]
    assert re.findall(r"^- (.+)$", page, flags=re.MULTILINE) == list(held)
    assert len(held) > 20
    assert all(held.values())
    faults = [(promise, missing(one)) for promise, holders in held.items() for one in holders]
    assert not [fault for fault in faults if fault[1] is not None]


PAGE = TEXTS["do/command_line.md"]
COLUMNS = {"id": "ids", "title": "titles", "abstract": "texts", "created": "created"}


def commands():
    """The commands of the page's blocks marked ``sh``, as lists of words."""
    blocks = re.findall(r"```sh\n(.*?)```", PAGE, flags=re.DOTALL)
    return [shlex.split(line) for line in "".join(blocks).replace("\\\n", " ").splitlines()]


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A folder with the files that the page names, where the commands run."""
    monkeypatch.chdir(tmp_path)
    corpus = load_arxiv_abstracts(texts=True)
    columns = {name: getattr(corpus, field)[:120] for name, field in COLUMNS.items()}
    columns["category"] = corpus.target_names[corpus.target[:120]].tolist()
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    for name, some in (("papers.csv", rows), ("more.csv", rows[:20])):
        with open(name, "w", encoding="utf-8", newline="") as stream:
            writer = csv.DictWriter(stream, ["id", "title", "abstract"], extrasaction="ignore")
            writer.writeheader()
            writer.writerows(some)
    with gzip.open("papers.jsonl.gz", "wt", encoding="utf-8") as stream:
        stream.writelines(json.dumps(row) + "\n" for row in rows)
    return tmp_path


def run(words, capsys):
    """Run a command, whose output may go to a file."""
    words, target = (words[:-2], words[-1]) if ">" in words else (words, None)
    status = main(words[1:])
    out, err = capsys.readouterr()
    assert status == 0, (words, err)
    if target:
        Path(target).write_text(out, encoding="utf-8")
    return out


@pytest.mark.slow
def test_the_commands_run(place, capsys):
    other = "annealvi fit papers.csv --text abstract --model other.safetensors --quiet"
    run(other.split(), capsys)
    ours = [words for words in commands() if words[0] == "annealvi" and "demo" not in words]
    outs = [run(words, capsys) for words in ours]
    named = [words[1] for words in ours]
    assert named[:6] == [*["fit"] * 3, "label", "show", "show"]
    assert named[6:] == ["label-topics", "compare", "paper"]
    assert all(out.startswith("topic  share  ") for out in outs[:3])
    assert len(outs[0].split("* weak topics")[0].splitlines()) == 52 and "probability" in outs[0]
    assert " privacy: " in outs[1] and " robots: " in outs[1]
    assert len((place / "labels.csv").read_text(encoding="utf-8").splitlines()) == 21
    assert "<html" in (place / "topics.html").read_text(encoding="utf-8")
    assert outs[5].startswith("topic 3: ") and "robots: " in outs[6] and "stability" in outs[7]
    assert "black holes &" in (place / "paper" / "topics.tex").read_text(encoding="utf-8")
    (block,) = re.findall(r"```text\n(.*?)```", PAGE, flags=re.DOTALL)
    assert main(["fit", "papers.csv", "--text", "abstrakt"]) == 2
    assert capsys.readouterr().err.endswith(block)  # after what it was doing
