"""Make one default fit of a library, in the process that default_rivals.py starts.

    python -m bench.speed.one_fit LIBRARY CORPUS K SEED [--topics FOLDER]

LIBRARY is annealvi, scikit-learn or tomotopy.  The training documents of bench/studies/splits.py
are fitted in float64 on one thread.  A small fit comes first, so that modules that are imported on
demand are not counted.  The last line of the output is JSON.  It contains the CPU seconds of the
fit, the increase of its peak memory in megabytes, and the CPU seconds at each time when topics are
read.  With --topics these topics are written to FOLDER/0.npy, FOLDER/1.npy and so on.  This is not
timed, and no memory is then measured.  The topics of annealvi are read only at the end of its fit.
This works only on Linux.
"""

from __future__ import annotations

import json
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.decomposition import LatentDirichletAllocation
from threadpoolctl import threadpool_limits

from annealvi import TemperedLDA
from bench import parser
from bench.adapters import RIVALS, mean_topics
from bench.problems import Problem
from bench.speed.memory import forget_peak, resident
from bench.studies import splits

#: The number of sweeps of tomotopy, and of sweeps between two readings of its topics.
SWEEPS = 200
INTERVAL = 25
#: The default priors of tomotopy.
ALPHA = 0.1
ETA = 0.01
#: Number of documents of the small fit that comes first.
WARM_UP = 100


class Clock:
    """The CPU seconds of a fit, without the time in which its topics are read."""

    def __init__(self, folder: Path | None) -> None:
        self.folder = folder
        self.seconds: list[float] = []
        self._looking = 0.0
        self._began = time.process_time()

    def spent(self) -> float:
        return time.process_time() - self._began - self._looking

    def look(self, topics: Callable[[], NDArray]) -> None:
        """Record the seconds so far, and the topics that a function returns."""
        self.seconds.append(self.spent())
        began = time.process_time()
        if self.folder is not None:
            path = self.folder / f"{len(self.seconds) - 1}.npy"
            np.save(path, topics().astype(np.float32))
        self._looking += time.process_time() - began


class Watched(LatentDirichletAllocation):
    """The estimator of scikit-learn, whose topics are read after each batch pass."""

    clock: Clock

    def _em_step(self, *args: Any, **options: Any) -> Any:
        result = super()._em_step(*args, **options)
        self.clock.look(lambda: mean_topics(self.components_))
        return result


def ours(X: sparse.csr_matrix, n_topics: int, seed: int) -> Callable[[Clock], None]:
    TemperedLDA(2, max_iter=2, random_state=0).fit(X[:WARM_UP])
    lda = TemperedLDA(n_topics, random_state=seed)

    def fit(clock: Clock) -> None:
        lda.fit(X)
        clock.look(lambda: mean_topics(lda.components_))

    return fit


def scikit_learn(X: sparse.csr_matrix, n_topics: int, seed: int) -> Callable[[Clock], None]:
    LatentDirichletAllocation(2, max_iter=2, random_state=0).fit(X[:WARM_UP])
    lda = Watched(n_topics, random_state=seed)

    def fit(clock: Clock) -> None:
        lda.clock = clock
        lda.fit(X)

    return fit


def tomotopy(X: sparse.csr_matrix, n_topics: int, seed: int) -> Callable[[Clock], None]:
    """Make Gibbs sweeps; the documents are added to the library before, which is not timed."""
    library = next(library for library in RIVALS if library.name == "tomotopy")
    problem = Problem("", X.shape[0], n_topics, alpha=ALPHA, eta=ETA)
    model = library.adapter().start(problem, X, seed=seed)

    def fit(clock: Clock) -> None:
        for _ in range(0, SWEEPS, INTERVAL):
            model.one_pass(INTERVAL)
            clock.look(model.topics)

    return fit


PREPARE = {"annealvi": ours, "scikit-learn": scikit_learn, "tomotopy": tomotopy}


def measure(
    library: str, X: sparse.csr_matrix, n_topics: int, seed: int, folder: Path | None
) -> dict[str, Any]:
    """Measure the seconds, the peak memory, and the seconds at each reading of topics."""
    with warnings.catch_warnings(), threadpool_limits(1):
        warnings.simplefilter("ignore")  # warnings that a fit has not converged
        fit = PREPARE[library](X, n_topics, seed)
        forget_peak()
        before = resident("VmRSS")
        clock = Clock(folder)
        fit(clock)
        seconds = clock.spent()
        peak = resident("VmHWM") - before if folder is None else None
    return {"seconds": seconds, "megabytes": peak, "looks": clock.seconds}


def main() -> None:
    options = parser(__doc__)
    options.add_argument("name", choices=list(PREPARE))
    options.add_argument("corpus")
    options.add_argument("n_topics", type=int)
    options.add_argument("seed", type=int)
    options.add_argument("--topics", type=Path)
    arguments = options.parse_args()
    X = splits.load(arguments.corpus).train
    print(
        json.dumps(measure(arguments.name, X, arguments.n_topics, arguments.seed, arguments.topics))
    )


if __name__ == "__main__":
    main()
