"""A file of results, for reports on machines that do not have the fits."""

from __future__ import annotations

import json
from collections.abc import Sequence
from math import sqrt
from pathlib import Path
from statistics import mean, stdev
from typing import Any

from bench.studies.study.store import Cell
from bench.studies.study.summary import Result, Results

#: The results that are lists with one number for each seed.
LISTS = ("seconds", "validation", "test", "npmi", "diversity", "elbo")


def write(path: Path, results: Results) -> None:
    """Write the results, with the mean, the standard deviation and the length of each list."""
    kept = [_plain(r) for of_cell in results.values() for _, r in sorted(of_cell.items())]
    lines = ",\n".join(json.dumps(item, ensure_ascii=False) for item in kept)
    path.write_text(f"[\n{lines}\n]\n", encoding="utf-8")


def read(path: Path) -> Results:
    """Read the file that :func:`write` has written; return no results if there is no file."""
    results: Results = {}
    for item in json.loads(path.read_text(encoding="utf-8")) if path.exists() else []:
        cell = Cell(*item.pop("cell"))
        lists = {name: _of_spread(*item.pop(name)) for name in LISTS}
        item["fold_in"] = tuple(item["fold_in"])
        if item["stability"] is None:
            item["stability"] = float("nan")
        result = Result(cell=cell, **item, **lists)
        results.setdefault(cell, {})[result.method] = result
    return results


def _plain(result: Result) -> dict[str, Any]:
    plain = result._asdict()
    for name in LISTS:
        plain[name] = _spread_of(plain[name])
    known = plain["stability"] == plain["stability"]
    return plain | {
        "cell": [result.cell.corpus, result.cell.n_topics],
        "stability": plain["stability"] if known else None,
    }


def _spread_of(values: Sequence[float]) -> tuple[float, float, int]:
    """The mean, the standard deviation and the number of values."""
    if not values:
        return 0.0, 0.0, 0
    sd = stdev(values) if len(values) > 1 else 0.0
    return round(mean(values), 5), round(sd, 5), len(values)


def _of_spread(centre: float, sd: float, number: int) -> list[float]:
    """Make a list of `number` values with this mean and standard deviation."""
    if number < 2:
        return [centre] * number
    apart = sd * sqrt((number - 1) / 2)
    return [centre - apart, *[centre] * (number - 2), centre + apart]
