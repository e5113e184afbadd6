"""Functions for the examples of deep models: stored runs, methods, curves and densities."""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from matplotlib.colors import PowerNorm
from numpy.typing import NDArray
from torch import Tensor

from annealvi import Annealed
from annealvi.deep import ProximityPenalty
from annealvi.deep.energies import Energy
from annealvi.inference import Monitor

Run = dict[str, Any]

# ------------------------------------------------------------------ runs in a file


class Runs:
    """Results of fits as JSON can hold them, in a file if there is a path.

    Each is a dict that begins with its key: what was fitted, from which seed, for how long.
    """

    def __init__(self, path: Path | None) -> None:
        self.path = path
        exists = path is not None and path.exists()
        self.all: list[Run] = json.loads(path.read_text()) if exists else []

    def __contains__(self, key: Run) -> bool:
        return bool(self.matching(key))

    def add(self, run: Run) -> None:
        """Append a run, and write the file."""
        self.all.append(run)
        if self.path is not None:
            self.path.write_text(json.dumps(self.all))

    def matching(self, key: Run) -> list[Run]:
        """The runs whose values agree with those of the key."""
        return [run for run in self.all if key.items() <= run.items()]


def grouped(runs: Iterable[Run], name: Callable[[Run], str]) -> dict[str, list[Run]]:
    """The runs of each name, in the order in which names come first."""
    groups: dict[str, list[Run]] = {}
    for run in runs:
        groups.setdefault(name(run), []).append(run)
    return groups


def parser(description: str, iterations: int, output: str) -> argparse.ArgumentParser:
    """Return a parser with the options of all scripts that keep runs."""
    options = argparse.ArgumentParser(description=description)
    options.add_argument("--seeds", type=int, default=1, help="fits of each method")
    options.add_argument("--iterations", type=int, default=iterations, help="steps of a fit")
    options.add_argument("--output", default=output, help="file of the figure")
    options.add_argument("--results", type=Path, help="JSON file that keeps the runs")
    return options


def parse(
    parser: argparse.ArgumentParser, argv: Sequence[str] | None, **full: int
) -> argparse.Namespace:
    """Parse the arguments; with --full, `full` has the defaults."""
    if parser.parse_known_args(argv)[0].full:
        parser.set_defaults(**full)
    return parser.parse_args(argv)


def with_average(parser: argparse.ArgumentParser) -> None:
    """Add the option that says what a penalty averages: its statistic, or the parameters."""
    averages = ["parameters", "statistic"]
    parser.add_argument("--average", default="parameters", choices=averages, help="of the penalty")


# ------------------------------------------------------------- methods of a comparison

#: From a label of k0 to k0 (None: |ELBO| of the first minibatch) and gamma.
Magnitudes = dict[str, tuple[float | None, float]]
PLAIN = "VI"
ANNEALED = "annealing"


def method_names(magnitudes: Magnitudes, statistics: Iterable[str]) -> list[str]:
    """Plain inference, then annealing and each penalty at each magnitude."""
    return [PLAIN] + [f"{name}, {k}" for k in magnitudes for name in (ANNEALED, *statistics)]


def method_options(
    method: str,
    magnitudes: Magnitudes,
    statistics: dict[str, str],
    first_elbo: float,
    average: str,
) -> Run:
    """Return the parameters `temperature` or `proximity` of a method.

    Annealing needs k0 before the fit: `first_elbo` is the ELBO of the first minibatch.
    The penalties compute it themselves.
    """
    name, _, k = method.rpartition(", ")
    if not name:
        return {}
    k0, gamma = magnitudes[k]
    if name != ANNEALED:
        options = dict(magnitude=k0, gamma=gamma, average=average)
        return {"proximity": ProximityPenalty(statistics[name], **options)}
    first = max(1.0, abs(first_elbo) if k0 is None else k0)
    length = min(1.0, math.log(first) / -math.log(gamma)) or None
    return {"temperature": Annealed(first, length, shape="exponential")}


def of_method(runs: Iterable[Run], name: str, k: str) -> list[Run]:
    """The runs of a method at one magnitude; plain inference has none."""
    method = name if name == PLAIN else f"{name}, {k}"
    return [run for run in runs if run["method"] == method]


# --------------------------------------------------------------------------- curves


def watcher(
    iterations: int, points: int, measure: Callable[[Any], dict[str, float]]
) -> Callable[[Any, Monitor], None]:
    """Return a callback that measures the estimator about `points` times along a fit."""
    every = max(1, iterations // points)

    def watch(estimator: Any, monitor: Monitor) -> None:
        if monitor.step % every == 0:
            monitor.record(**measure(estimator))

    return watch


def recorded(history: dict[str, NDArray], *names: str) -> list[list[float]]:
    """These columns of a history, at the steps where the last of them was measured."""
    at = ~np.isnan(history[names[-1]])
    return [history[name][at].tolist() for name in names]


def legend_below(figure: Any, axes: Iterable[Any], ncols: int) -> None:
    """Draw one legend for several axes, in which each label stands once."""
    drawn = [ax.get_legend_handles_labels() for ax in axes]
    lines = {label: line for each in drawn for line, label in zip(*each, strict=True)}
    figure.legend(lines.values(), lines.keys(), loc="outside lower center", ncols=ncols)


# ------------------------------------------------------------ densities in the plane

BINS = 72


def grid(energy: Energy) -> Tensor:
    """Centres of the cells of a square around the energy, of shape (BINS, BINS, 2)."""
    edges = torch.linspace(-energy.extent, energy.extent, BINS + 1)
    centres = (edges[1:] + edges[:-1]) / 2
    return torch.stack(torch.meshgrid(centres, centres, indexing="ij"), dim=-1)


def cell(energy: Energy) -> float:
    """The area of a cell of the grid."""
    return (2 * energy.extent / BINS) ** 2


def histogram(draws: NDArray, energy: Energy) -> NDArray:
    """The density of draws in the cells of the grid."""
    span = (-energy.extent, energy.extent)
    counts, _, _ = np.histogram2d(*draws.T, bins=BINS, range=(span, span))
    return counts / len(draws) / cell(energy)


def show(ax: Any, density: NDArray, energy: Energy, largest: float) -> None:
    """Draw a density on the grid; a square-root colour scale lets small modes show."""
    span = (-energy.extent, energy.extent) * 2
    norm = PowerNorm(0.5, 0, largest)
    ax.imshow(density.T, origin="lower", extent=span, norm=norm, cmap="Purples")
    ax.set(xticks=[], yticks=[])
