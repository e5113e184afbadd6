"""What is fitted: the configurations of every library, and ours.

Each library has a function that fits once and yields one or several results: for example after
some of the passes, or the last sample and an average over samples.  Seconds are CPU seconds of the
process in passes; parsing is not counted.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from annealvi import TemperedLDA
from bench.adapters import RIVALS, SCIKIT_LEARN, Library, mean_topics
from bench.problems import Problem
from bench.studies.study.store import Cell

LIBRARIES = {library.name: library for library in (SCIKIT_LEARN, *RIVALS)}
#: Gibbs sweeps; topics are averaged after the burn-in, at this interval.
SWEEPS, BURN_IN, INTERVAL = 200, 100, 10
TOPICA_SWEEPS = 1000
ARTM_PASSES = 20
#: Passes of online steps, from which validation chooses; gensim is slow and has fewer.
PASSES, GENSIM_PASSES = (1, 2, 3, 4, 10), 4
BATCH = 256
STAND_IN, ONE_PASS = "scikit-learn, stand-in", "scikit-learn, one pass"


def after(configuration: Configuration, passes: int) -> str:
    """The name of a configuration after some passes."""
    return f"{configuration.name}, {passes} passes"


def configuration_of(name: str) -> str:
    return name.removesuffix(" passes").rsplit(", ", 1)[0]


def passes_of(name: str) -> int:
    return int(name.removesuffix(" passes").rsplit(", ", 1)[1])


class Fitted(NamedTuple):
    method: str
    configuration: str
    passes: int
    seconds: float
    topics: NDArray[np.floating]


@dataclass(frozen=True)
class Configuration:
    """One setting of a library."""

    name: str
    alpha: Callable[[int], float]
    eta: Callable[[int], float]
    smooth: bool = True
    up_to: int = sys.maxsize  # the largest K that it is tried at

    def problem(self, cell: Cell, X: sparse.csr_matrix) -> Problem:
        k = cell.n_topics
        return Problem(cell.corpus, X.shape[0], k, self.alpha(k), self.eta(k), BATCH)


def fixed(alpha: float, eta: float, up_to: int = sys.maxsize) -> Configuration:
    name = f"alpha={alpha:g} eta={eta:g}"
    return Configuration(name, lambda _: alpha, lambda _: eta, up_to=up_to)


# With more topics each has fewer words, which a smaller eta suits: at K = 500, .25 was behind by
# .04 to .07 on both corpora where it was tried.
GIBBS = [fixed(0.1, 0.1), fixed(0.1, 0.01), fixed(0.1, 0.25, up_to=100)]
DEFAULTS = Configuration("defaults", lambda _: 0.0, lambda _: 0.0)  # which the adapter keeps
ARTM = [
    Configuration("PLSA", lambda _: 0.1, lambda _: 0.1, smooth=False),
    fixed(0.1, 0.01, up_to=100),  # won 1 of 14 smaller cells, by .002
    fixed(0.1, 0.1),
]
ONLINE = [
    Configuration("alpha=eta=1 over K", lambda k: 1 / k, lambda k: 1 / k),
    Configuration("alpha=min(.1;3 over K) eta=0.1", lambda k: min(0.1, 3 / k), lambda _: 0.1),
    fixed(0.1, 0.01),
]

#: Ours: names and parameters of TemperedLDA.
OURS: dict[str, dict[str, Any]] = {
    "annealvi": {},
    "annealvi, one start": {"n_init": 1},
}


def _seconds(work: Callable[[], Any]) -> float:
    began = time.process_time()
    work()
    return time.process_time() - began


class Task(NamedTuple):
    """One fit of a rival."""

    adapter: Any
    configuration: Configuration
    cell: Cell
    X: sparse.csr_matrix
    seed: int
    passes: int = 0  # where another method has chosen them

    def start(self, **options: Any) -> Any:
        """Prepare the fit, by the adapter of the library."""
        problem = self.configuration.problem(self.cell, self.X)
        return self.adapter.start(problem, self.X, seed=self.seed, **options)


def tomotopy(task: Task) -> Iterator[Fitted]:
    """The last sample, and the mean of every tenth of the last hundred."""
    fit = task.start()
    seconds, total, n_samples = 0.0, np.zeros((task.cell.n_topics, task.X.shape[1])), 0
    for done in range(INTERVAL, SWEEPS + 1, INTERVAL):
        seconds += _seconds(partial(fit.one_pass, INTERVAL))
        if done > BURN_IN:
            last = fit.topics()
            total += last
            n_samples += 1
    name = task.configuration.name
    yield Fitted("tomotopy, last sample", name, SWEEPS, seconds, last)
    yield Fitted("tomotopy, averaged", name, SWEEPS, seconds, total / n_samples)


def topica(task: Task) -> Iterator[Fitted]:
    fit = task.start()
    seconds = _seconds(partial(fit.one_pass, TOPICA_SWEEPS))
    yield Fitted("topica", task.configuration.name, TOPICA_SWEEPS, seconds, fit.topics())


def bigartm(task: Task) -> Iterator[Fitted]:
    fit = task.start(smooth=task.configuration.smooth)
    seconds = _seconds(lambda: [fit() for _ in range(ARTM_PASSES)])
    yield Fitted("BigARTM", task.configuration.name, ARTM_PASSES, seconds, fit.topics())


def stand_in(task: Task) -> Iterator[Fitted]:
    """The same numbers as scikit-learn in less time; the seconds are not scikit-learn's."""
    fit, seconds = task.start(same_trajectory=True, prepared=False), 0.0
    for passes in range(1, max(PASSES) + 1):
        seconds += _seconds(fit)
        if passes in PASSES:
            name = after(task.configuration, passes)
            yield Fitted(STAND_IN, name, passes, seconds, fit.topics())


def scikit_learn(task: Task) -> Iterator[Fitted]:
    fit = task.start(prepared=False)
    seconds = _seconds(lambda: [fit() for _ in range(task.passes)])
    name = after(task.configuration, task.passes)
    yield Fitted("scikit-learn", name, task.passes, seconds, fit.topics())


def scikit_learn_once(task: Task) -> Iterator[Fitted]:
    """One pass, for its seconds, where all passes from every seed would take too long."""
    name = after(task.configuration, task.passes)  # the fit that this one stands for
    for fitted in scikit_learn(task._replace(passes=1)):
        yield fitted._replace(method=ONE_PASS, configuration=name)


def gensim(task: Task) -> Iterator[Fitted]:
    fit = task.start(passes=task.passes, prepared=False)
    name = after(task.configuration, task.passes)
    yield Fitted("gensim", name, task.passes, _seconds(fit), fit.topics())


@dataclass(frozen=True)
class Family:
    """The fits of one library."""

    rival: Library | None  # None: our own stand-in
    fit: Callable[[Task], Iterator[Fitted]]
    configurations: list[Configuration]
    methods: list[str] = field(default_factory=list)  # a configuration is chosen for each
    follows: str | None = None  # the method whose configuration and passes it takes
    most_passes: int = sys.maxsize


FAMILIES = {
    "BigARTM": Family(LIBRARIES["BigARTM"], bigartm, ARTM, ["BigARTM"]),
    "tomotopy": Family(
        LIBRARIES["tomotopy"], tomotopy, GIBBS, ["tomotopy, last sample", "tomotopy, averaged"]
    ),
    "topica": Family(LIBRARIES["topica"], topica, [DEFAULTS], ["topica"]),
    "stand-in": Family(None, stand_in, ONLINE, [STAND_IN]),
    "scikit-learn": Family(SCIKIT_LEARN, scikit_learn, ONLINE, ["scikit-learn"], STAND_IN),
    ONE_PASS: Family(SCIKIT_LEARN, scikit_learn_once, ONLINE, [ONE_PASS], STAND_IN),
    "gensim": Family(LIBRARIES["gensim"], gensim, ONLINE, ["gensim"], STAND_IN, GENSIM_PASSES),
}


def ours(
    name: str, options: dict[str, Any], cell: Cell, X: sparse.csr_matrix, seed: int
) -> tuple[Fitted, float]:
    """Our fit, and its ELBO per training word at T = 1."""
    lda = TemperedLDA(cell.n_topics, random_state=seed, **options)
    seconds = _seconds(lambda: lda.fit(X))
    elbo = lda.score(X) / X.sum()
    return Fitted(name, "defaults", lda.n_iter_, seconds, mean_topics(lda.components_)), float(elbo)
