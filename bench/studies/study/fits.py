"""The fits for one corpus and K, each in a separate process; existing fits are not repeated."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Collection
from typing import Any

from bench.studies.study import methods, scores
from bench.studies.study.methods import FAMILIES, OURS, Configuration, Task
from bench.studies.study.scores import documents
from bench.studies.study.store import Cell, Run, Store

Pairs = Collection[tuple[str, str]]


def apart(work: Callable[..., None], *args: Any) -> None:
    """Call a function in a forked process, so that libraries do not affect each other."""
    process = multiprocessing.get_context("fork").Process(target=work, args=args)
    process.start()
    process.join()
    if process.exitcode:
        raise RuntimeError(f"{work.__name__}{args[1:]} ended with {process.exitcode}.")


def runs(store: Store, cell: Cell, method: str) -> list[Run]:
    return [run for run in store.runs(cell) if run.method == method]


def chosen(store: Store, cell: Cell, method: str) -> list[Run]:
    """All seeds of a method, with the configuration that is best on validation data at seed 0."""
    candidates = runs(store, cell, method)
    if not any(run.seed == 0 for run in candidates):
        return []
    best = scores.best(store, method, candidates)
    return [run for run in candidates if run.configuration == best.configuration]


def fit(store: Store, cell: Cell, name: str, seeds: list[int]) -> list[str]:
    """Make the missing fits of a library or of annealvi; return the names of its methods."""
    documents(cell.corpus)  # to read the documents once, before the forks
    if name in OURS:
        for seed in seeds:
            if not store.has(Run(cell, name, "defaults", seed)):
                apart(_fit_ours, store, cell, name, seed)
        return [name]
    family = FAMILIES[name]
    everything = {
        (method, one)
        for configuration in family.configurations
        if cell.n_topics <= configuration.most_topics
        for method in family.methods
        for one in configuration.names()
    }
    _fit_missing(store, cell, name, 0, everything)
    pairs = {(m, chosen(store, cell, m)[0].configuration) for m in family.methods}
    for seed in seeds:
        _fit_missing(store, cell, name, seed, pairs)
    return family.methods


def _fit_missing(store: Store, cell: Cell, name: str, seed: int, pairs: Pairs) -> None:
    for configuration in FAMILIES[name].configurations:
        names = configuration.names()
        missing = {
            pair for pair in pairs if pair[1] in names and not store.has(Run(cell, *pair, seed))
        }
        if missing:
            apart(_fit_rival, store, cell, name, configuration, seed, missing)


def _fit_rival(
    store: Store, cell: Cell, name: str, configuration: Configuration, seed: int, pairs: Pairs
) -> None:
    family = FAMILIES[name]
    task = Task(family.rival.adapter(), configuration, cell, documents(cell.corpus).train, seed)
    left = set(pairs)
    for fitted in family.fit(task):
        run = Run(cell, fitted.method, fitted.configuration, seed)
        pair = (run.method, run.configuration)
        if pair in left:
            record = {
                "library": family.rival.name,
                "version": family.rival.version(),
                "passes": fitted.passes,
                "seconds": fitted.seconds,
            }
            store.save(run, fitted.topics, record)
            left.remove(pair)
        if not left:
            break


def _fit_ours(store: Store, cell: Cell, name: str, seed: int) -> None:
    fitted, elbo = methods.ours(name, OURS[name], cell, documents(cell.corpus).train, seed)
    record = {
        "library": "annealvi",
        "version": None,
        "passes": fitted.passes,
        "seconds": fitted.seconds,
        "elbo": elbo,
    }
    store.save(Run(cell, name, fitted.configuration, seed), fitted.topics, record)
