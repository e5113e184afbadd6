"""What is fitted: every library's configurations, and ours.

A library is a function that fits once and yields (method, configuration, passes, seconds,
topics), several where one fit gives several: passes as they are made, averages over samples.
Seconds are CPU seconds of the process in passes; parsing is not counted.
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
from bench.adapters import RIVALS, SCIKIT_LEARN, Library, annealvi_lda
from bench.problems import Problem
from bench.studies.study.store import Cell

LIBRARIES = {library.name: library for library in (SCIKIT_LEARN, *RIVALS)}
#: Gibbs sweeps, from which of them on and how often topics are averaged.
SWEEPS, BURN_IN, INTERVAL = 200, 100, 10
ARTM_PASSES = 20
#: Passes of online steps, of which validation chooses; gensim takes long and has fewer.
PASSES, GENSIM_PASSES = (1, 2, 3, 4, 10), 4
BATCH = 256
STAND_IN, ONE_PASS = "scikit-learn, stand-in", "scikit-learn, one pass"


def after(configuration: Configuration, passes: int) -> str:
    """The name of a configuration with so many passes."""
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
    """One setting of a library.

    Attributes
    ----------
    alpha, eta : callable
        Of K; the priors.
    smooth : bool
        Whether BigARTM is given them.
    up_to : int
        The largest K that it is tried at.
    """

    name: str
    alpha: Callable[[int], float]
    eta: Callable[[int], float]
    smooth: bool = True
    up_to: int = sys.maxsize

    def problem(self, cell: Cell, X: sparse.csr_matrix) -> Problem:
        k = cell.n_topics
        return Problem(cell.corpus, X.shape[0], k, self.alpha(k), self.eta(k), BATCH)


def fixed(alpha: float, eta: float, up_to: int = sys.maxsize) -> Configuration:
    name = f"alpha={alpha:g} eta={eta:g}"
    return Configuration(name, lambda _: alpha, lambda _: eta, up_to=up_to)


# the more topics, the fewer words each has, and the smaller the eta that suits them: at K = 500
# .25 was behind by .04 to .07 on both corpora where it was tried
GIBBS = [fixed(0.1, 0.1), fixed(0.1, 0.01), fixed(0.1, 0.25, up_to=100)]
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

#: Ours: a name and arguments of TemperedLDA.  "times" is not one of them: it stands for
#: so many times the passes that "annealvi" itself made in the same cell.
OURS: dict[str, dict[str, Any]] = {
    "annealvi": {},
    "annealvi, 2.5 x passes": {"times": 2.5},
}


def _seconds(work: Callable[[], Any]) -> float:
    began = time.process_time()
    work()
    return time.process_time() - began


def tomotopy(
    theirs: Any, configuration: Configuration, cell: Cell, X: sparse.csr_matrix, seed: int
) -> Iterator[Fitted]:
    """The last sample, and the mean of every tenth of the last hundred."""
    fit = theirs.start(configuration.problem(cell, X), X, seed=seed)
    seconds, total, n_samples = 0.0, np.zeros((cell.n_topics, X.shape[1])), 0
    for done in range(INTERVAL, SWEEPS + 1, INTERVAL):
        seconds += _seconds(partial(fit.one_pass, INTERVAL))
        if done > BURN_IN:
            last = fit.topics()
            total += last
            n_samples += 1
    name = configuration.name
    yield Fitted("tomotopy, last sample", name, SWEEPS, seconds, last)
    yield Fitted("tomotopy, averaged", name, SWEEPS, seconds, total / n_samples)


def bigartm(
    theirs: Any, configuration: Configuration, cell: Cell, X: sparse.csr_matrix, seed: int
) -> Iterator[Fitted]:
    problem = configuration.problem(cell, X)
    fit = theirs.start(problem, X, seed=seed, smooth=configuration.smooth)
    seconds = _seconds(lambda: [fit() for _ in range(ARTM_PASSES)])
    yield Fitted("BigARTM", configuration.name, ARTM_PASSES, seconds, fit.topics())


def stand_in(
    theirs: Any, configuration: Configuration, cell: Cell, X: sparse.csr_matrix, seed: int
) -> Iterator[Fitted]:
    """scikit-learn's numbers, sooner; its seconds are not scikit-learn's."""
    problem = configuration.problem(cell, X)
    options = {"same_trajectory": True, "seed": seed, "prepared": False}
    fit, seconds = annealvi_lda.start(problem, X, **options), 0.0
    for passes in range(1, max(PASSES) + 1):
        seconds += _seconds(fit)
        if passes in PASSES:
            name = after(configuration, passes)
            yield Fitted(STAND_IN, name, passes, seconds, fit.topics())


def scikit_learn(
    theirs: Any,
    configuration: Configuration,
    cell: Cell,
    X: sparse.csr_matrix,
    seed: int,
    passes: int,
) -> Iterator[Fitted]:
    problem = configuration.problem(cell, X)
    fit = theirs.start(problem, X, seed=seed, prepared=False)
    seconds = _seconds(lambda: [fit() for _ in range(passes)])
    name = after(configuration, passes)
    yield Fitted("scikit-learn", name, passes, seconds, fit.topics())


def scikit_learn_once(
    theirs: Any,
    configuration: Configuration,
    cell: Cell,
    X: sparse.csr_matrix,
    seed: int,
    passes: int,
) -> Iterator[Fitted]:
    """For the seconds of a pass, where all passes from every seed would take too long."""
    for fitted in scikit_learn(theirs, configuration, cell, X, seed, 1):
        name = after(configuration, passes)  # what it stands for
        yield fitted._replace(method=ONE_PASS, configuration=name)


def gensim(
    theirs: Any,
    configuration: Configuration,
    cell: Cell,
    X: sparse.csr_matrix,
    seed: int,
    passes: int,
) -> Iterator[Fitted]:
    problem = configuration.problem(cell, X)
    fit = theirs.start(problem, X, seed=seed, passes=passes, prepared=False)
    name = after(configuration, passes)
    yield Fitted("gensim", name, passes, _seconds(fit), fit.topics())


@dataclass(frozen=True)
class Family:
    """One library's fits.

    Attributes
    ----------
    rival : Library or None
        None where nothing is to be imported.
    fit : callable
    configurations : list of Configuration
    methods : list of str
        What it yields; each chooses its own configuration.
    follows : str or None
        The method whose configuration and passes it takes over.
    most_passes : int
        Of those, how many at most.
    """

    rival: Library | None
    fit: Callable[..., Iterator[Fitted]]
    configurations: list[Configuration]
    methods: list[str] = field(default_factory=list)
    follows: str | None = None
    most_passes: int = sys.maxsize


FAMILIES = {
    "BigARTM": Family(LIBRARIES["BigARTM"], bigartm, ARTM, ["BigARTM"]),
    "tomotopy": Family(
        LIBRARIES["tomotopy"], tomotopy, GIBBS, ["tomotopy, last sample", "tomotopy, averaged"]
    ),
    "stand-in": Family(None, stand_in, ONLINE, [STAND_IN]),
    "scikit-learn": Family(SCIKIT_LEARN, scikit_learn, ONLINE, ["scikit-learn"], STAND_IN),
    ONE_PASS: Family(SCIKIT_LEARN, scikit_learn_once, ONLINE, [ONE_PASS], STAND_IN),
    "gensim": Family(LIBRARIES["gensim"], gensim, ONLINE, ["gensim"], STAND_IN, GENSIM_PASSES),
}


def ours(
    name: str, options: dict[str, Any], cell: Cell, X: sparse.csr_matrix, seed: int
) -> tuple[Fitted, float]:
    """Our fit, and its ELBO a training word at T = 1."""
    lda = TemperedLDA(cell.n_topics, random_state=seed, **options)
    seconds = _seconds(lambda: lda.fit(X))
    topics = lda.components_ / lda.components_.sum(axis=1, keepdims=True)
    elbo = lda.score(X) / X.sum()
    return Fitted(name, "defaults", lda.n_iter_, seconds, topics), float(elbo)
