"""docs/papers.md: each part of each paper has a row, and what a row names exists."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).resolve().parents[2]
PAGE = CHECKOUT / "docs" / "papers.md"
HEAD = ["part", "what it is", "where it is here", "does it reproduce?", "command or test"]
#: Behind the commands of studies that have left the repository.
TAG = "evidence-1"
#: The first words of a cell that says whether a part reproduces.
VERDICTS = ("yes", "no", "partly", "not measured", "not here", "a definition", "corrected")


def parts():
    """The rows of each paper's table, by the heading above it."""
    _, _, text = PAGE.read_text(encoding="utf-8").partition("## Every part, paper by paper")
    found, paper = {}, None
    for line in text.splitlines():
        if line.startswith("### "):
            paper = line.removeprefix("### ")
        elif line.startswith("|") and not line.startswith("|---"):
            cells = [cell.strip() for cell in line.strip().strip("|").split(" | ")]
            if cells != HEAD:
                found.setdefault(paper, []).append(cells)
    return found


ROWS = [(paper, *cells) for paper, rows in parts().items() for cells in rows]


@cache
def names_in(path):
    """Names that a module, or a class in it, defines or imports: dotted paths."""

    def of(body):
        for node in body:
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                yield node.name
                if isinstance(node, ast.ClassDef):
                    yield from (f"{node.name}.{name}" for name in of(node.body))
            elif isinstance(node, ast.ImportFrom):
                yield from (alias.asname or alias.name for alias in node.names)
            elif isinstance(node, ast.Assign | ast.AnnAssign):
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                yield from (target.id for target in targets if isinstance(target, ast.Name))

    return set(of(ast.parse((CHECKOUT / path).read_text(encoding="utf-8")).body))


def fault_of_name(name):
    """Why a dotted name of annealvi does not exist, or None; nothing is imported."""
    words = name.split(".")
    for n in range(len(words), 0, -1):
        for path in ("/".join(words[:n]) + ".py", "/".join(words[:n]) + "/__init__.py"):
            if (CHECKOUT / path).is_file():
                wanted = ".".join(words[n:])
                if not wanted or wanted in names_in(path):
                    return None
                return f"{path} has no {wanted}"
    return f"there is no module of {name}"


def fault_of_command(words):
    """Why a command cannot run, or None: its file is missing, or one of its options."""
    is_module = words[1] == "-m"
    script = words[2].replace(".", "/") + ".py" if is_module else words[1]
    if not (CHECKOUT / script).is_file():
        return f"there is no {script}"
    text = (CHECKOUT / script).read_text(encoding="utf-8")
    if script.startswith("examples/"):
        text += "".join(p.read_text(encoding="utf-8") for p in CHECKOUT.glob("examples/_*.py"))
    missing = [word for word in words if word.startswith("--") and f'"{word}"' not in text]
    return f"{script} has no {missing}" if missing else None


def fault(code):
    """Why what stands between backticks does not exist, or None."""
    if code.startswith("python "):
        return fault_of_command(code.split())
    if match := re.fullmatch(r"(tests/[\w/]+\.py)::(\w+)", code):
        if not (CHECKOUT / match[1]).is_file():
            return f"there is no {match[1]}"
        return None if match[2] in names_in(match[1]) else f"{match[1]} has no {match[2]}"
    if re.fullmatch(r"annealvi(\.\w+)+", code):
        return fault_of_name(code)
    if re.fullmatch(r"[\w/]+\.(py|md|h|pyx)", code):
        return None if (CHECKOUT / code).is_file() else f"there is no {code}"
    return "neither a command, a test, a name of annealvi nor a file"


def codes(cell):
    return re.findall(r"`([^`]+)`", cell)


def test_the_papers_are_those_that_are_to_be_cited():
    cited = (CHECKOUT / "CITATION.cff").read_text(encoding="utf-8")
    titles = set(re.findall(r'^    title: "(.*)"$', cited, flags=re.MULTILINE))
    assert {paper.partition(": ")[2] for paper in parts()} == titles
    assert len(titles) == 5
    assert all(len(rows) >= 8 for rows in parts().values())


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row[0].partition(':')[0]}, {row[1]}")
def test_a_part_says_where_it_is_and_whether_it_reproduces(row):
    cells = row[1:]
    assert len(cells) == len(HEAD), cells
    assert all(re.search(r"\w", cell) for cell in cells), cells
    _, _, where, verdict, command = cells
    assert verdict.startswith(VERDICTS), verdict
    if not verdict.startswith("not here"):
        assert codes(where), where
        assert codes(command), command
    at_tag = codes(command)[-1:] == [TAG] and command.startswith("`python -m bench.studies.")
    named = [(code, fault(code)) for code in codes(where) + ([] if at_tag else codes(command))]
    assert not [(code, why) for code, why in named if why]
    if not verdict.startswith(("not here", "a definition", "corrected")):
        # a figure or a table has a page with the numbers
        is_shown = cells[0].startswith(("Fig", "Table"))
        assert not is_shown or re.search(r"\]\(\w+\.md#", verdict), verdict


def test_no_part_has_two_rows():
    names = [(row[0], row[1]) for row in ROWS]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize(
    ("code", "why"),
    [
        ("annealvi.Annealed", None),
        ("annealvi.temperature.variational.Variational.observe", None),
        ("annealvi.deep.ProximityPenalty", None),
        ("annealvi.Unheard", "has no Unheard"),
        ("annealvi.temperature.variational.Variational.unheard", "has no Variational.unheard"),
        ("python examples/toy_factors.py --seeds 20", None),
        ("python examples/learning_curves.py --full", None),
        ("python examples/toy_factors.py --hope 2", "has no"),
        ("python examples/toy.py", "there is no examples/toy.py"),
        ("python -m bench.studies.mixtures --parts factors", None),
        ("python -m bench.studies.hope", "there is no bench/studies/hope.py"),
        ("tests/project/test_docs_papers.py::test_a_fault_is_found", None),
        ("tests/project/test_docs_papers.py::test_no", "has no test_no"),
        ("annealvi/_kernels/lda_document.h", None),
        ("docs/no.md", "there is no"),
        ("hope", "neither"),
    ],
)
def test_a_fault_is_found(code, why):
    assert fault(code) is None if why is None else why in fault(code)
