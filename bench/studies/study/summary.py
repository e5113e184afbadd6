"""The results of a method for a corpus and K, with its chosen configuration and all seeds."""

from __future__ import annotations

import re
from statistics import mean
from typing import NamedTuple

from bench.studies.study import scores
from bench.studies.study.fits import chosen
from bench.studies.study.store import Cell, Store


class Result(NamedTuple):
    """The results of a method for a corpus and K; lists have one value for each seed."""

    cell: Cell
    method: str
    configuration: str
    passes: int
    fold_in: tuple[float, float]
    seeds: list[int]
    seconds: list[float]
    validation: list[float]
    test: list[float]
    npmi: list[float]
    diversity: list[float]
    stability: float
    elbo: list[float]
    stand_in: bool = False

    def __str__(self) -> str:
        seconds = f"{mean(self.seconds):.2f}" if self.seconds else "unknown"
        return (
            f"{self.cell!s:<18} {self.method:<22} {self.configuration:<42} "
            f"seeds {len(self.seeds)} valid {mean(self.validation):.4f} "
            f"test {mean(self.test):.4f} seconds {seconds} "
            f"npmi {mean(self.npmi):.4f} diversity {mean(self.diversity):.3f} "
            f"stability {self.stability:.3f}"
        )


#: For each corpus and K ("cell"), the results of the methods that were fitted.
Results = dict[Cell, dict[str, Result]]


def result(store: Store, cell: Cell, method: str, again: bool = False) -> Result | None:
    """Score a method if there are fits, with the settings that were chosen at seed 0."""
    fits = chosen(store, cell, method)
    if not fits:
        return None
    settings = scores.settings_of(store, fits[0])
    for run in fits:
        scores.complete(store, run, settings, again)
    stability = scores.stability(store, fits, again)
    records = [store.record(run) | store.scores(run) for run in fits]

    def each(key: str) -> list[float]:
        return [record[key] for record in records if key in record]

    return Result(
        cell,
        method,
        re.sub(r", \d+ passes$", "", fits[0].configuration).replace(" over ", "/"),
        records[0]["passes"],
        (settings.alpha, settings.noise),
        [run.seed for run in fits],
        *(each(key) for key in ("seconds", "validation", "test", "npmi", "diversity")),
        stability=stability,
        elbo=each("elbo"),
    )


def score(store: Store, cell: Cell, again: bool = False) -> dict[str, Result]:
    """Score all methods that were fitted for a corpus and K."""
    scored = {
        method: result(store, cell, method, again)
        for method in sorted({run.method for run in store.runs(cell)})
    }
    return {method: result for method, result in scored.items() if result is not None}


def append(store: Store, cell: Cell, methods: list[str]) -> None:
    """Print a line for each method, and add it to summary.txt in the folder of the store."""
    with (store.folder / "summary.txt").open("a", encoding="utf-8") as file:
        for method in methods:
            line = str(result(store, cell, method))
            print(line, flush=True)
            file.write(line + "\n")
