"""The configurations of every library and of annealvi that are fitted.

Each library has a function that makes one fit and yields one or more results, for example after 10,
30 and 100 passes, or the last sample and an average over samples.  Seconds are CPU seconds of the
process in passes, without parsing.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from annealvi import TemperedLDA
from bench.adapters import BY_NAME, Library, mean_topics
from bench.problems import Problem
from bench.studies.study.store import Cell

#: Numbers of tomotopy's sweeps after which there are results.  Samples of the second half of the
#: sweeps, at this interval, are averaged.
SWEEPS = (200, 2000)
INTERVAL = 10
BATCH = 256

#: The names of tomotopy's methods, for chains of two lengths.
LAST = "tomotopy, last sample"
AVERAGED = "tomotopy, averaged"
LONG_LAST = "tomotopy, last of 2,000"
LONG_AVERAGED = "tomotopy, 2,000 averaged"


class Fitted(NamedTuple):
    method: str
    configuration: str
    passes: int
    seconds: float
    topics: NDArray[np.floating]


@dataclass(frozen=True)
class Configuration:
    """One setting of a library.  A prior is None if the library's default prior is used."""

    name: str
    alpha: Callable[[int], float | None] = lambda _: None
    eta: Callable[[int], float | None] = lambda _: None
    #: The numbers of passes after which there are results; empty if the number is fixed.
    passes: tuple[int, ...] = ()
    #: Options of the adapter.
    options: dict[str, Any] = field(default_factory=dict)
    most_topics: int = 10**6  # the largest K with which the setting is tried

    def problem(self, cell: Cell, X: sparse.csr_matrix) -> Problem:
        k = cell.n_topics
        return Problem(cell.corpus, X.shape[0], k, self.alpha(k), self.eta(k), BATCH)

    def names(self) -> list[str]:
        """The names of the results that one fit yields."""
        return [self.after(passes) for passes in self.passes] or [self.name]

    def after(self, passes: int) -> str:
        return f"{self.name}, {passes} passes"


def with_priors(prefix: str, passes: tuple[int, ...], **options: Any) -> list[Configuration]:
    """Make configurations in which both priors are 1/K, 0.1 or 0.01."""
    priors: list[tuple[str, Callable[[int], float]]] = [
        ("1 over K", lambda k: 1 / k),
        ("0.1", lambda _: 0.1),
        ("0.01", lambda _: 0.01),
    ]
    return [
        Configuration(f"{prefix} alpha=eta={name}", prior, prior, passes, options)
        for name, prior in priors
    ]


def fixed(
    alpha: float,
    eta: float,
    passes: tuple[int, ...] = (),
    most_topics: int = 10**6,
    **options: Any,
) -> Configuration:
    name = f"alpha={alpha:g} eta={eta:g}"
    return Configuration(name, lambda _: alpha, lambda _: eta, passes, options, most_topics)


# With more topics each topic has fewer words, and a smaller eta is better.  At K = 500, eta = 0.25
# was worse by 0.04 to 0.07 nats per word on both corpora on which it was tried.
GIBBS = [fixed(0.1, 0.1), fixed(0.1, 0.01), fixed(0.1, 0.25, most_topics=100)]
ARTM = [
    Configuration("PLSA", passes=(20,), options={"smooth": False}),
    # with eta = 0.01 it was the best in 1 of 14 smaller cases, by 0.002
    fixed(0.1, 0.01, (20,), most_topics=100, smooth=True),
    fixed(0.1, 0.1, (20,), smooth=True),
]
SKLEARN = [
    *with_priors("batch", (10, 30, 100), learning_method="batch"),
    *with_priors("online", (5, 20), learning_method="online"),
]
GENSIM = [
    Configuration(
        f"{name}, {passes} passes", options=options | {"passes": passes, "prepared": False}
    )
    for passes in (5, 20)
    for name, options in {
        "symmetric": {"alpha": "symmetric", "eta": "symmetric"},
        "auto": {"alpha": "auto", "eta": "auto"},
        "alpha=0.1 eta=0.01": {"alpha": 0.1, "eta": 0.01},
    }.items()
]
TOPICA = [
    Configuration("defaults"),
    Configuration("warp", options={"sampler": "warp"}),
    Configuration("cvb0", options={"sampler": "cvb0"}),
    Configuration("OnlineLDA", options={"online": True, "sweeps": 100}),
]

#: The names of annealvi's methods, and the parameters of TemperedLDA.
OURS: dict[str, dict[str, Any]] = {
    "annealvi": {},
    "annealvi, n_init=16": {"n_init": 16},
    "annealvi, one run": {"n_init": 1},
    'annealvi, preset="sklearn"': {"preset": "sklearn"},
}


def _seconds(work: Callable[[], Any]) -> float:
    began = time.process_time()
    work()
    return time.process_time() - began


class Task(NamedTuple):
    """One fit of another library."""

    adapter: Any
    configuration: Configuration
    cell: Cell
    X: sparse.csr_matrix
    seed: int

    def start(self) -> Any:
        """Prepare the fit with the adapter of the library."""
        problem = self.configuration.problem(self.cell, self.X)
        start = getattr(self.adapter, "start_fit", self.adapter.start)
        return start(problem, self.X, seed=self.seed, **self.configuration.options)


def tomotopy(task: Task) -> Iterator[Fitted]:
    """Yield the last sample of chains of two lengths, and the mean over the second half of each."""
    fit = task.start()
    name = task.configuration.name
    seconds = 0.0
    samples: dict[int, NDArray] = {}
    for done in range(INTERVAL, SWEEPS[-1] + 1, INTERVAL):
        seconds += _seconds(lambda: fit.one_pass(INTERVAL))
        for length in SWEEPS:
            if length // 2 < done <= length:
                samples[length] = samples.get(length, 0.0) + fit.topics()
        if done in SWEEPS:
            long = done != SWEEPS[0]
            yield Fitted(LONG_LAST if long else LAST, name, done, seconds, fit.topics())
            mean = samples.pop(done) / (done // 2 // INTERVAL)
            yield Fitted(LONG_AVERAGED if long else AVERAGED, name, done, seconds, mean)


def in_passes(method: str) -> Callable[[Task], Iterator[Fitted]]:
    """Return a function for fits that continue from one number of passes to the next."""

    def fits(task: Task) -> Iterator[Fitted]:
        fit = task.start()
        seconds = 0.0
        done = 0
        for passes in task.configuration.passes:
            for _ in range(passes - done):
                seconds += _seconds(fit)
            done = passes
            name = task.configuration.after(passes)
            yield Fitted(method, name, passes, seconds, fit.topics())

    return fits


def at_once(method: str) -> Callable[[Task], Iterator[Fitted]]:
    """Return a function for fits that are made by one call, with a fixed number of passes."""

    def fits(task: Task) -> Iterator[Fitted]:
        fit = task.start()
        seconds = _seconds(fit)
        yield Fitted(method, task.configuration.name, fit.passes, seconds, fit.topics())

    return fits


@dataclass(frozen=True)
class Family:
    """The fits of one library."""

    rival: Library
    fit: Callable[[Task], Iterator[Fitted]]
    configurations: list[Configuration]
    methods: list[str]  # a configuration is chosen for each method


def _family(
    name: str,
    fit: Callable[[str], Callable[[Task], Iterator[Fitted]]],
    configurations: list[Configuration],
) -> tuple[str, Family]:
    return name, Family(BY_NAME[name], fit(name), configurations, [name])


FAMILIES = dict(
    [
        (
            "tomotopy",
            Family(
                BY_NAME["tomotopy"],
                tomotopy,
                GIBBS,
                [LAST, AVERAGED, LONG_LAST, LONG_AVERAGED],
            ),
        ),
        _family("gensim", at_once, GENSIM),
        _family("pyrmallet", at_once, [Configuration("defaults")]),
        _family("topica", at_once, TOPICA),
        _family("BigARTM", in_passes, ARTM),
        _family("scikit-learn", in_passes, SKLEARN),
    ]
)


def ours(
    name: str, options: dict[str, Any], cell: Cell, X: sparse.csr_matrix, seed: int
) -> tuple[Fitted, float]:
    """Make a fit of annealvi, and compute its ELBO per training word at T = 1."""
    lda = TemperedLDA(cell.n_topics, random_state=seed, **options)
    seconds = _seconds(lambda: lda.fit(X))
    elbo = lda.score(X) / X.sum()
    return Fitted(name, "defaults", lda.n_iter_, seconds, mean_topics(lda.components_)), float(elbo)
