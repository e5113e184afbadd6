"""Results of a method in a cell: its chosen configuration, over seeds."""

from __future__ import annotations

import re
from statistics import mean
from typing import NamedTuple

from bench.studies.study import scores
from bench.studies.study.fits import chosen
from bench.studies.study.methods import ONE_PASS, STAND_IN
from bench.studies.study.store import Cell, Run, Store


class Result(NamedTuple):
    """A method in a cell: lists have one value per seed."""

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


def result(store: Store, cell: Cell, method: str, again: bool = False) -> Result | None:
    """Score a method in a cell if it was fitted there; the fold-in is that of seed 0."""
    found = chosen(store, cell, method)
    if not found:
        return None
    settings = scores.settings_of(store, found[0])
    for run in found:
        scores.complete(store, run, settings, again)
    stability = scores.stability(store, found, again)
    records = [store.record(run) | store.scores(run) for run in found]

    def each(key: str) -> list[float]:
        return [record[key] for record in records if key in record]

    return Result(
        cell,
        method,
        re.sub(r", \d+ passes$", "", found[0].configuration).replace(" over ", "/"),
        records[0]["passes"],
        (settings.alpha, settings.noise),
        [run.seed for run in found],
        *(each(key) for key in ("seconds", "validation", "test", "npmi", "diversity")),
        stability=stability,
        elbo=each("elbo"),
    )


def methods_of(store: Store, cell: Cell) -> list[str]:
    """The methods to score in a cell; one pass of scikit-learn is only for its seconds."""
    return sorted({run.method for run in store.runs(cell)} - {ONE_PASS})


def score(store: Store, cell: Cell, again: bool = False) -> dict[str, Result]:
    """Score all that was fitted in a cell; scikit-learn by its stand-in if that has more seeds."""
    found = {}
    for method in methods_of(store, cell):
        scored = result(store, cell, method, again)
        if scored is not None:
            found[method] = scored
    stand_in = found.pop(STAND_IN, None)
    theirs = found.get("scikit-learn")
    if stand_in is not None and (theirs is None or len(theirs.seeds) < len(stand_in.seeds)):
        found["scikit-learn"] = stand_in._replace(
            method="scikit-learn",
            seconds=_scaled(store, cell, stand_in.passes),
            stand_in=True,
        )
    return found


def _scaled(store: Store, cell: Cell, passes: int) -> list[float]:
    """Seconds of some passes of scikit-learn itself, scaled from the passes that were timed."""
    runs: list[Run] = [run for run in store.runs(cell) if run.method in ("scikit-learn", ONE_PASS)]
    measured = [store.record(run) for run in runs]
    most = max((record["passes"] for record in measured), default=0)
    return [
        record["seconds"] / record["passes"] * passes
        for record in measured
        if record["passes"] == most
    ]


def append(store: Store, cell: Cell, methods: list[str]) -> None:
    """Print a line for each method, and add it to summary.txt in the folder of the store."""
    with (store.folder / "summary.txt").open("a", encoding="utf-8") as file:
        for method in methods:
            if method != ONE_PASS:
                line = str(result(store, cell, method))
                print(line, flush=True)
                file.write(line + "\n")
