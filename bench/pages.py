"""Count the words of the pages, and habits of writing that are always wrong.

    python -m bench.structure --pages [FOLDER]

Code blocks, comments and pictures are not counted.  Tables of user pages are counted, but tables of
README and of the record are not.  Habits are searched for in pages, docstrings and messages.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from bench.markdown import table

RECORD = "record"
MAINTAINERS = "maintainers"
CODE = re.compile(r"^( *)(```|~~~).*?^\1\2 *$|<!--.*?-->", re.S | re.M)
INLINE = re.compile(r"`[^`\n]+`|\$[^$\n]+\$")
PICTURE = re.compile(r"!\[[^\]]*\]\([^)]*\)")
TABLE = re.compile(r"^ *\|.*\n?", re.M)
SPEAKERS = "page|table|column|note|report|error|warning|summary|picture|measure|file|docstring"
HABITS = {
    "things that speak": rf"\b(?:{SPEAKERS})s? (?:also )?(?:says?|tells?|knows?|wants?)\b",
    "intervals that contain it": r"\b[Ii]ntervals?( here)?( that)? contain( that\b| the fit)",
    "a start for a run": r"\b(\d+|[Ss]everal|[Mm]erged|[Ss]hort|all|best of \w+) starts\b",
    "decimals without a zero": r"(?<![\w.\d/*'\"-])[-+±−]?\.\d+\b(?!\.)",
    "bits as an object": r"\b(?:[Ss]ame|other|no|last|its|change) bits?\b(?! (?:for|operating))",
    "the short answer": r"[Tt]he short answer",
    "but for": r"\bbut for\b",
    "calques": r"\b(anew|will do too|names of tweets|entities of HTML|tables? of pandas"
    r"|whole counts|for good)\b",
}
TARGETS = {"README": 600, "user pages": 36_000, RECORD: 9_600, MAINTAINERS: 4_500, "CHANGELOG": 600}


def prose(text: str, *, tables: bool) -> str:
    """Return the text of a page without code, comments and pictures."""
    text = PICTURE.sub("", CODE.sub("", text))
    return text if tables else TABLE.sub("", text)


def n_words(text: str) -> int:
    """Count the words of a text, which must contain a letter or a digit."""
    return sum(any(letter.isalnum() for letter in word) for word in text.split())


def pages(folder: Path) -> Iterator[tuple[str, Path]]:
    """Yield each page with its kind; pages that are in no folder of docs/ are user pages."""
    yield "README", folder / "README.md"
    yield "CHANGELOG", folder / "CHANGELOG.md"
    yield "user pages", folder / "SECURITY.md"
    yield MAINTAINERS, folder / "CONTRIBUTING.md"
    for path in sorted((folder / "docs").rglob("*.md")):
        folder_name = path.relative_to(folder / "docs").parts[0]
        yield folder_name if folder_name in (RECORD, MAINTAINERS) else "user pages", path


def strings(path: Path) -> str:
    """Return the docstrings and messages of a module, without examples."""
    tree = ast.parse(path.read_text("utf-8"))
    constants = [n.value for n in ast.walk(tree) if isinstance(n, ast.Constant)]
    text = "\n".join(one for one in constants if isinstance(one, str) and " " in one)
    return re.sub(r"^ *(?:>>>|\.\.\.).*$", "", text.replace("``", "`"), flags=re.M)


def habits(folder: Path) -> Iterator[tuple[str, Path, str]]:
    """Yield each place where a habit occurs: its name, the file and the words."""
    texts = [(path, prose(path.read_text("utf-8"), tables=True)) for _, path in pages(folder)]
    texts += [(path, strings(path)) for path in sorted((folder / "annealvi").rglob("*.py"))]
    for path, text in texts:
        for habit, pattern in HABITS.items():
            for match in re.finditer(pattern, " ".join(INLINE.sub("", text).split())):
                yield habit, path, match[0]


def report(folder: Path, *, places: bool = False) -> str:
    """Return the table of counts and limits as Markdown."""
    words = dict.fromkeys(TARGETS, 0)
    for kind, path in pages(folder):
        tables = kind not in ("README", RECORD)
        words[kind] += n_words(prose(path.read_text("utf-8"), tables=tables))
    rows: list[tuple[str, int, str]] = [
        (f"words of {kind}", words[kind], f"{limit:,}") for kind, limit in TARGETS.items()
    ]
    places_of_habits = list(habits(folder))
    rows += [(habit, sum(one[0] == habit for one in places_of_habits), "") for habit in HABITS]
    rows.append(("habits together", len(places_of_habits), "under 20"))
    lines = [table(["", "found", "target"], rows)]
    if places:
        lines += [
            f"{path.relative_to(folder)}: {habit}: {text}" for habit, path, text in places_of_habits
        ]
    return "\n".join(lines)
