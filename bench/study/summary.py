"""Scores of whole cells, and one line for each as it is done."""

from __future__ import annotations

from statistics import mean
from typing import NamedTuple

from study import scores
from study.fits import chosen
from study.store import Cell, Run, Store


class Result(NamedTuple):
    """A method in a cell: one value a seed, but for stability."""

    cell: Cell
    method: str
    configuration: str
    passes: int
    seeds: list[int]
    seconds: list[float]
    validation: list[float]
    test: list[float]
    npmi: list[float]
    diversity: list[float]
    stability: float
    elbo: list[float]

    def __str__(self) -> str:
        return (
            f"{self.cell!s:<18} {self.method:<22} {self.configuration:<42} "
            f"seeds {len(self.seeds)} valid {mean(self.validation):.4f} "
            f"test {mean(self.test):.4f} seconds {mean(self.seconds):.2f} "
            f"npmi {mean(self.npmi):.4f} diversity {mean(self.diversity):.3f} "
            f"stability {self.stability:.3f}"
        )


def result(store: Store, cell: Cell, method: str, again: bool = False) -> Result | None:
    """Score a method in a cell, where it was fitted; the fold-in is that of seed 0."""
    found = chosen(store, cell, method)
    if not found:
        return None
    settings = scores.settings_of(store, found[0])
    for run in found:
        scores.complete(store, run, settings, again)
    records = [store.record(run) | store.scores(run) for run in found]
    stability = scores.stability(store, found, again)

    def each(key: str) -> list[float]:
        return [record[key] for record in records if key in record]

    return Result(
        cell,
        method,
        found[0].configuration,
        records[0]["passes"],
        [run.seed for run in found],
        *(each(key) for key in ("seconds", "validation", "test", "npmi", "diversity")),
        stability,
        each("elbo"),
    )


def methods_of(store: Store, cell: Cell) -> list[str]:
    found: dict[str, Run] = {run.method: run for run in store.runs() if run.cell == cell}
    return sorted(found)


def append(store: Store, cell: Cell, methods: list[str]) -> None:
    """A line for each method, printed and added to summary.txt in the store's folder."""
    with (store.folder / "summary.txt").open("a", encoding="utf-8") as file:
        for method in methods:
            line = str(result(store, cell, method))
            print(line, flush=True)
            file.write(line + "\n")


def score(store: Store, cells: list[Cell], again: bool) -> None:
    """Whatever has been fitted in the cells."""
    for cell in cells:
        for method in methods_of(store, cell):
            print(result(store, cell, method, again), flush=True)
