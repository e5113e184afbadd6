"""Compare with scikit-learn a stream in small portions, with one call of partial_fit for each.

    python -m bench.speed.portions [--corpus bbc_news debian_desc] [--topics 20 100 500]
                                   [--portion 256] [--rounds 5] [--parts]

At most 10,000 documents of each corpus are cut into portions of --portion documents, and each
portion is one minibatch.  annealvi makes the same steps as scikit-learn and computes the same
numbers: online steps, alpha = eta = 1/K, float64, one thread.  Both models have been fitted to one
minibatch before.  In each round both fit the stream, one after the other.  Times are CPU seconds of
the process.  For each corpus and K the script prints milliseconds per call, which are medians over
rounds, and how many times as fast annealvi is: the median and the quartiles of the rounds' ratios.

The time of a call in Python is measured in two ways.  The first is a call with a single word, with
the same K and vocabulary, in which compiled functions have almost no work.  In the second, annealvi
fits the stream once more, and every compiled function and the draws of gamma are timed.  The rest
of a call is Python and NumPy: checks, the estimator, the algorithm and buffers.  The second time is
larger, because compiled functions displace Python's code and objects from the caches.  The script
prints medians over calls and, with --parts, the share of each compiled function in all calls.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from statistics import median, quantiles
from typing import Any

import numpy as np
from scipy import sparse
from threadpoolctl import threadpool_limits

from annealvi._kernels import lda, lda_topics
from annealvi.models.lda import engine
from bench import parser
from bench.adapters import annealvi_lda, scikit_learn
from bench.markdown import table
from bench.problems import Problem

CORPORA = ("bbc_news", "debian_desc")
SIZES = (20, 100, 500)
PORTION = 256
#: Number of documents of a corpus in the stream.
N_DOCUMENTS = 10_000
#: The compiled functions that a call uses, and the name for the draws of gamma.
KERNELS = (
    (lda, "digest_of_block"),
    (lda, "index_words"),
    (lda_topics, "refresh_weights"),
    (lda, "fit_documents"),
    (lda_topics, "accumulate_statistics"),
    (lda_topics, "step_topics"),
    (lda_topics, "sum_topics"),
)
DRAWS = "draws of gamma"

Call = Callable[[sparse.csr_matrix], Any]


def cut(X: sparse.csr_matrix, size: int) -> list[sparse.csr_matrix]:
    """Cut documents into the portions of a stream; the last portion may be smaller."""
    return [X[first : first + size] for first in range(0, X.shape[0], size)]


def seconds(call: Call, portions: list[sparse.csr_matrix]) -> float:
    """Measure the CPU seconds of the process for the whole stream."""
    began = time.process_time()
    for portion in portions:
        call(portion)
    return time.process_time() - began


def turns(problem: Problem, rounds: int) -> tuple[list[float], list[float]]:
    """Milliseconds per call of annealvi and of scikit-learn, one number for each round."""
    X = problem.load()
    portions = cut(X, problem.batch_size)
    starts = (
        lambda: annealvi_lda.start_portions(problem, X, same_trajectory=True),
        lambda: scikit_learn.start_portions(problem, X),
    )
    ours: list[float] = []
    theirs: list[float] = []
    for _ in range(rounds):
        for start, times in zip(starts, (ours, theirs), strict=True):
            times.append(1e3 * seconds(start(), portions) / len(portions))
    return ours, theirs


@contextmanager
def _timed(spent: dict[str, float]) -> Iterator[None]:
    """Add the CPU seconds of compiled functions, and of draws of gamma, to `spent`."""

    def timed(name: str, function: Callable) -> Callable:
        def run(*args: Any, **kwargs: Any) -> Any:
            began = time.process_time()
            result = function(*args, **kwargs)
            spent[name] += time.process_time() - began
            return result

        return run

    plain = [(module, name, name) for module, name in KERNELS]
    plain += [(engine, "gamma_draws", DRAWS)]
    before = [(module, name, getattr(module, name)) for module, name, _ in plain]
    try:
        for (module, name, portion), (_, _, function) in zip(plain, before, strict=True):
            setattr(module, name, timed(portion, function))
        yield
    finally:
        for module, name, function in before:
            setattr(module, name, function)


def one_word(problem: Problem, repeats: int = 200) -> float:
    """The median milliseconds of a call with one document of one word."""
    X = problem.load()
    call = annealvi_lda.start_portions(problem, X, same_trajectory=True)
    word = sparse.csr_matrix(([1.0], ([0], [0])), shape=(1, X.shape[1]))
    return median(1e3 * seconds(call, [word]) for _ in range(repeats))


def parts(problem: Problem) -> tuple[float, dict[str, float]]:
    """Measure the parts of the time of annealvi's calls."""
    X = problem.load()
    portions = cut(X, problem.batch_size)
    spent: dict[str, float] = defaultdict(float)
    call = annealvi_lda.start_portions(problem, X, same_trajectory=True)
    totals: dict[str, float] = defaultdict(float)
    rests = []
    with _timed(spent):
        for portion in portions:
            spent.clear()
            total = seconds(call, [portion])
            rests.append(1e3 * (total - sum(spent.values())))
            for name, spent_seconds in (*spent.items(), ("rest", total - sum(spent.values()))):
                totals[name] += spent_seconds
    everything = sum(totals.values())
    return median(rests), {name: total / everything for name, total in totals.items()}


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--corpus", nargs="+", default=CORPORA)
    options.add_argument("--topics", nargs="+", type=int, default=SIZES)
    options.add_argument("--portion", type=int, default=PORTION)
    options.add_argument("--rounds", type=int, default=5)
    options.add_argument("--parts", action="store_true", help="the share of each function")
    arguments = options.parse_args()
    if arguments.rounds < 2:
        options.error("--rounds must be at least 2")
    rows = []
    shares = {}
    for corpus in arguments.corpus:
        for n_topics in arguments.topics:
            problem = Problem(corpus, N_DOCUMENTS, n_topics, batch_size=arguments.portion)
            with threadpool_limits(1, user_api="blas"):
                try:
                    ours, theirs = turns(problem, arguments.rounds)
                except FileNotFoundError as error:
                    raise SystemExit(str(error)) from None
                rest, shares[corpus, n_topics] = parts(problem)
                seconds_of_one_word = one_word(problem)
            low, middle, high = quantiles(np.divide(theirs, ours), n=4, method="inclusive")
            rows.append(
                [
                    f"{corpus}, {n_topics}",
                    f"{median(ours):.3g}",
                    f"{median(theirs):.3g}",
                    f"{middle:.1f}",
                    f"{low:.1f} to {high:.1f}",
                    f"{seconds_of_one_word:.2f}",
                    f"{rest:.2f}",
                ]
            )
    head = ["corpus, K", "annealvi, ms a call", "scikit-learn", "times as fast", "quartiles"]
    print(table([*head, "one word, ms", "Python in a call, ms"], rows))
    if arguments.parts:
        names = list(dict.fromkeys(name for of_problem in shares.values() for name in of_problem))
        body = [
            [f"{corpus}, {K}", *(f"{100 * of_problem.get(name, 0.0):.0f}%" for name in names)]
            for (corpus, K), of_problem in shares.items()
        ]
        print("\n" + table(["corpus, K", *names], body))


if __name__ == "__main__":
    main()
