"""What docs/record/papers.md has as measured stands in what the row names."""

import csv
import json
import re
from itertools import permutations

import pytest

from bench import CHECKOUT

DOCS, STUDIES = CHECKOUT / "docs" / "record", CHECKOUT / "bench" / "studies"
NUMBER = re.compile(r"(?<![\w.])(\d{1,3}(?:,\d{3})+|\d*\.?\d+)(?![\w,]*\d)")
RECORD = re.compile(r"bench/studies/([\w/]+\.(?:csv|json|md))")
LINK = re.compile(r"\]\(([\w./]+\.md)#([^)]*)\)")
#: Verdicts of rows without measurements.
WITHOUT = ("definition", "corrected", "the paper contradicts itself", "not comparable", "–")


def numbers(text):
    """The numbers of a text, without signs and thousands separators, as they are written."""
    return [found.replace(",", "") for found in NUMBER.findall(text)]


def flat(value):
    """The numbers of a JSON value, those in the names among them."""
    if isinstance(value, dict):
        return [n for name, part in value.items() for n in (*numbers(name), *flat(part))]
    if isinstance(value, list):
        return [n for part in value for n in flat(part)]
    return numbers(f"{value:.15f}") if isinstance(value, float) else numbers(str(value))


def record(path):
    """The numbers of a file in bench/studies."""
    text = (STUDIES / path).read_text(encoding="utf-8")
    if path.endswith(".json"):
        return flat(json.loads(text))
    if path.endswith(".csv"):
        return flat(list(csv.reader(text.splitlines())))
    return numbers(text)


def section(page, anchor):
    """The lines under a heading of a page, with those under its own headings."""
    lines = (DOCS / page).read_text(encoding="utf-8").splitlines()
    at = depth = None
    for i, line in enumerate(lines):
        heading = re.match(r"(#+) (.*)", line)
        if heading and at is not None and len(heading[1]) <= depth:
            return "\n".join(lines[at:i])
        if heading:
            name = re.sub(r"[^\w\- ]", "", heading[2].lower()).replace(" ", "-")
            if name == anchor:
                at, depth = i, len(heading[1])
    return "\n".join(lines[at:])


def sources(measured):
    found, texts = [], [measured]
    papers = json.loads((STUDIES / "papers.json").read_text(encoding="utf-8"))
    for part in re.findall(r"`--parts (\w+)", measured):
        found += [n for name, v in papers.items() if name.split(",")[0] == part for n in flat(v)]
    for page, anchor in LINK.findall(measured):
        texts.append(section(page, anchor))
        found += numbers(texts[-1])
    for path in {path for text in texts for path in RECORD.findall(text)}:
        found += record(path)
    return {float(number) for number in found}


def rows():
    text = (DOCS / "papers.md").read_text(encoding="utf-8")
    for line in text[text.index("### Abrol") :].splitlines():
        cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        if len(cells) == 5 and cells[0] not in ("in the paper", "---"):
            yield pytest.param(cells, id=f"{cells[0]}, {cells[1][:40]}")


ROWS = list(rows())


def close(number, value):
    decimals = len(number.partition(".")[2])
    return abs(float(number) - value) <= 0.5001 * 10**-decimals


@pytest.mark.parametrize("cells", ROWS)
def test_no_cell_is_empty_and_each_number_is_in_what_the_row_names(cells):
    assert all(cells)
    measured, verdict = cells[3:]
    if verdict.startswith(WITHOUT):
        return
    given = sources(measured)
    plain = re.sub(r"`[^`]*`|\]\([^)]*\)", " ", measured)
    told = [n for n in numbers(plain) if "." in n and len(n.replace(".", "").lstrip("0")) > 1]
    first = [n for n in told if any(close(n, value) for value in given)]
    pairs = list(permutations(sorted({float(n) for n in first}), 2))
    for n in told:  # a number, or how far or how many times one of the row is from another
        derived = any(close(n, a - b) or (b and close(n, a / b)) for a, b in pairs)
        assert n in first or derived, (n, measured)


def test_one_seed_is_told():
    """Each verdict yes of a row of which one seed decides says so."""
    assert len(ROWS) > 100
    told = [cells for (cells,) in (row.values for row in ROWS) if "one seed" in cells[3]]
    assert len(told) > 5
    for cells in told:
        assert "seed" in cells[4] or not cells[4].startswith("yes"), cells[:2]


def test_each_claim_that_does_not_simply_hold_has_its_settings():
    page = (DOCS / "papers.md").read_text(encoding="utf-8")
    table = page[page.index("## Settings of the papers") :]
    settings = {tuple(re.split(r" ?\| ?", line)[1:3]) for line in table.splitlines() if "|" in line}
    qualified = re.compile(r"\b(no|not|undecided|partly|in part|only)\b")
    rows = {(c[0], c[1]): c[4] for (c,) in (row.values for row in ROWS)}
    claims = {
        claim
        for claim, verdict in rows.items()
        if qualified.search(verdict) and not verdict.startswith(WITHOUT)
    }
    assert len(claims) > 25
    assert not claims - settings
    assert not settings - set(rows) - {("part", "claim"), ("---", "---")}
