"""The store of fits and scores: a folder for each method and configuration, files for each seed."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, order=True)
class Cell:
    """A corpus and a number of topics."""

    corpus: str
    n_topics: int

    def __str__(self) -> str:
        return f"{self.corpus}, {self.n_topics}"


@dataclass(frozen=True, order=True)
class Run:
    """One fit.  Its fields determine the names of its files."""

    cell: Cell
    method: str
    configuration: str
    seed: int


def _slug(text: str) -> str:
    return re.sub(r"[^\w.=]+", "-", text).strip("-")


class Store:
    """Topics, records and scores of fits, in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def path(self, run: Run, suffix: str) -> Path:
        cell = run.cell
        names = (run.method, run.configuration)
        folder = self.folder / cell.corpus / f"K{cell.n_topics}"
        return folder.joinpath(*map(_slug, names), f"seed{run.seed}{suffix}")

    def save(self, run: Run, topics: NDArray[np.floating], record: dict[str, Any]) -> None:
        """Save a fit.  The record is written last, so if it exists, the topics exist too."""
        path = self.path(run, ".npy")
        path.parent.mkdir(parents=True, exist_ok=True)
        np.save(path, topics.astype(np.float32))
        names = {
            "corpus": run.cell.corpus,
            "n_topics": run.cell.n_topics,
            "method": run.method,
            "configuration": run.configuration,
            "seed": run.seed,
        }
        self._write(run, ".json", names | record)

    def has(self, run: Run) -> bool:
        return self.path(run, ".json").exists()

    def topics(self, run: Run) -> NDArray[np.float32]:
        return np.load(self.path(run, ".npy"))

    def record(self, run: Run) -> dict[str, Any]:
        return json.loads(self.path(run, ".json").read_text(encoding="utf-8"))

    def scores(self, run: Run) -> dict[str, Any]:
        """The scores that have been computed so far, or an empty dictionary."""
        path = self.path(run, ".scores.json")
        return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}

    def save_scores(self, run: Run, scores: dict[str, Any]) -> None:
        self._write(run, ".scores.json", scores)

    def runs(self, cell: Cell) -> list[Run]:
        """All stored fits for a corpus and K, in order."""
        stored = []
        for path in (self.folder / cell.corpus / f"K{cell.n_topics}").glob("*/*/seed*.json"):
            if not path.name.endswith(".scores.json"):
                record = json.loads(path.read_text(encoding="utf-8"))
                stored.append(Run(cell, record["method"], record["configuration"], record["seed"]))
        return sorted(stored)

    def _write(self, run: Run, suffix: str, content: dict[str, Any]) -> None:
        path = self.path(run, suffix)
        unfinished = path.with_suffix(".tmp")
        unfinished.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
        unfinished.replace(path)
