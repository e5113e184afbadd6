"""Compare two threads with one, for fits and streams; and measure tokens per second of one core.

    python -m bench.speed.threads [--rounds 5] [--corpora bbc_news debian_desc]
        [--topics 20 100 500]
    python -m bench.speed.threads tokens [--topics 100 1000 5000] [--documents 3000]

Training documents are those of bench/studies/splits.py, in float64.  The first command needs a
machine that does no other work.  It measures three tasks with one thread and with two threads,
alternately: a fit with one run, in which threads share the work of a step; a default fit, whose
runs are computed in parallel; and a stream in portions of 2,560 documents with partial_fit.  It
prints the elapsed seconds, the median over rounds of how many times as fast two threads are, and
the CPU seconds of two threads divided by those of one thread.

The second command fits the first documents of arxiv_100k with one thread and one run, for each K.
A token is one occurrence of a word.  Tokens per second are the tokens of all documents times the
number of passes, divided by the CPU seconds of the fit.  These include the choice of first topics
and the final evaluation.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable
from statistics import median
from typing import NamedTuple

from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from annealvi import TemperedLDA
from bench import parser
from bench.markdown import table
from bench.speed.pairs import ratio
from bench.speed.stream import PORTION
from bench.studies import splits

CORPORA = ("bbc_news", "debian_desc")
SIZES = (20, 100, 500)
#: The corpus, the numbers of topics and the number of documents for tokens per second.
LARGE_CORPUS = "arxiv_100k"
LARGE_SIZES = (100, 1_000, 5_000)
N_DOCUMENTS = 3_000
ONE = 1
TWO = 2


class Times(NamedTuple):
    """The elapsed and the CPU seconds of one measurement."""

    wall: float
    cpu: float


def fit(X: sparse.csr_matrix, n_topics: int, n_threads: int) -> TemperedLDA:
    return TemperedLDA(n_topics, n_init=1, random_state=0, n_jobs=n_threads).fit(X)


def default(X: sparse.csr_matrix, n_topics: int, n_threads: int) -> TemperedLDA:
    return TemperedLDA(n_topics, random_state=0, n_jobs=n_threads).fit(X)


def stream(X: sparse.csr_matrix, n_topics: int, n_threads: int) -> TemperedLDA:
    n_documents = X.shape[0]
    lda = TemperedLDA(n_topics, random_state=0, n_jobs=n_threads, total_samples=n_documents)
    for start in range(0, n_documents, PORTION):
        lda.partial_fit(X[start : start + PORTION])
    return lda


WORK = {"one start": fit, "default": default, "stream": stream}


def timed(work: Callable[..., TemperedLDA], *args: object) -> tuple[Times, TemperedLDA]:
    wall = time.perf_counter()
    cpu = time.process_time()
    lda = work(*args)
    return Times(time.perf_counter() - wall, time.process_time() - cpu), lda


def compare(
    work: Callable[..., TemperedLDA], X: sparse.csr_matrix, n_topics: int, rounds: int
) -> dict[int, list[Times]]:
    """Measure times with one thread and with two, alternately; which one is first changes."""
    times: dict[int, list[Times]] = {ONE: [], TWO: []}
    work(X[:PORTION], n_topics, TWO)  # not timed: modules are imported and threads are started
    for index in range(rounds):
        for n_threads in (ONE, TWO) if index % 2 == 0 else (TWO, ONE):
            times[n_threads].append(timed(work, X, n_topics, n_threads)[0])
    return times


def row(corpus: str, n_topics: int, name: str, times: dict[int, list[Times]]) -> list[str]:
    wall, cpu = (
        {n: [getattr(each, kind) for each in of] for n, of in times.items()}
        for kind in ("wall", "cpu")
    )
    return [
        f"{corpus}, {n_topics}",
        name,
        *(f"{median(wall[n]):.3f}" for n in (ONE, TWO)),
        f"{ratio(wall[ONE], wall[TWO]):.2f}",
        f"{ratio(cpu[TWO], cpu[ONE]):.2f}",
    ]


def print_threads(corpora: list[str], sizes: list[int], rounds: int) -> None:
    rows = []
    for corpus in corpora:
        X = splits.load(corpus).train
        for n_topics in sizes:
            for name, work in WORK.items():
                rows.append(row(corpus, n_topics, name, compare(work, X, n_topics, rounds)))
                print(*rows[-1], file=sys.stderr, flush=True)
    header = ["corpus, K", "", "wall s, one thread", "two", "times as fast", "CPU s, two over one"]
    print(table(header, rows))


def print_tokens(sizes: list[int], n_documents: int) -> None:
    X = splits.load(LARGE_CORPUS).train[:n_documents]
    rows = []
    fit(X[:100], 2, ONE)  # not timed: modules are imported
    for n_topics in sizes:
        times, lda = timed(fit, X, n_topics, ONE)
        tokens = X.sum() * lda.n_iter_
        rows.append(
            [
                f"{n_topics:,}",
                f"{times.cpu:.2f}",
                f"{lda.n_iter_}",
                f"{tokens / times.cpu:,.0f}",
                f"{1e6 * times.cpu / tokens:.3f}",
            ]
        )
        print(*rows[-1], file=sys.stderr, flush=True)
    print(
        f"{LARGE_CORPUS}: {X.shape[0]:,} documents, {X.sum():,.0f} tokens in {X.nnz:,} entries.\n"
    )
    print(table(["K", "CPU s", "passes", "tokens a second", "us a token"], rows))


def main() -> None:
    options = parser(__doc__)
    options.add_argument("what", nargs="?", choices=["threads", "tokens"], default="threads")
    options.add_argument("--corpora", nargs="+", default=CORPORA, choices=list(splits.CORPORA))
    options.add_argument("--topics", nargs="+", type=int)
    options.add_argument("--rounds", type=int, default=5)
    options.add_argument("--documents", type=int, default=N_DOCUMENTS)
    arguments = options.parse_args()
    if arguments.rounds < 1:
        options.error("--rounds must be at least 1")
    try:
        with warnings.catch_warnings(), threadpool_limits(1, user_api="blas"):
            warnings.simplefilter("ignore", ConvergenceWarning)
            if arguments.what == "threads":
                print_threads(arguments.corpora, arguments.topics or SIZES, arguments.rounds)
            else:
                print_tokens(arguments.topics or LARGE_SIZES, arguments.documents)
    except FileNotFoundError as error:
        raise SystemExit(str(error)) from None


if __name__ == "__main__":
    main()
