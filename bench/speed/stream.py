"""Measure one online pass over half a million abstracts with partial_fit.

    python -m bench.speed.stream [--every 100000] [--held-out 2000] [--jobs 1] [--plain]

The fit has K = 100, alpha = 0.1, eta = 0.01, minibatches of 256, tau = 64 and float64.  The
temperature falls over the first fifth of the documents; with --plain it is always 1.  The last
documents are held out.  They are scored by document completion after every --every documents.  Each
time the script prints the documents per second of partial_fit, the score per word, and the peak
memory.  The last line contains the same numbers as JSON.
"""

from __future__ import annotations

import json
import sys
import time

from annealvi import Annealed
from annealvi.metrics import document_completion
from bench import parser
from bench.adapters import annealvi_lda
from bench.problems import STREAM_PROBLEM
from bench.speed.memory import resident

#: Number of documents in each call of partial_fit.
PORTION = 2_560
#: The share of the documents over which T falls.
COOLING = 0.2


def stream(every: int, n_held_out: int, n_jobs: int, plain: bool) -> list[dict[str, float]]:
    """Measure speed, score and peak memory after every `every` documents."""
    X = STREAM_PROBLEM.load()
    held_out = X[-n_held_out:]
    X = X[:-n_held_out]
    cooling = 1 if plain else Annealed(passes=COOLING)
    lda = annealvi_lda.estimator(STREAM_PROBLEM, X, n_jobs, temperature=cooling, learning_offset=64)
    records = []
    for first in range(0, X.shape[0], every):
        last = min(first + every, X.shape[0])
        wall = time.perf_counter()
        cpu = time.process_time()
        for begin in range(first, last, PORTION):
            lda.partial_fit(X[begin : min(begin + PORTION, last)])
        wall = time.perf_counter() - wall
        cpu = time.process_time() - cpu
        record = {
            "documents": last,
            "documents_per_second": (last - first) / wall,
            "documents_per_cpu_second": (last - first) / cpu,
            "held_out": float(document_completion(lda, held_out)),
            "peak_megabytes": resident("VmHWM"),
        }
        records.append(record)
        print(
            f"{last:>8,} documents: {record['documents_per_second']:>8,.0f} per second, "
            f"{record['documents_per_cpu_second']:>8,.0f} per CPU second, held out "
            f"{record['held_out']:.3f}, peak {record['peak_megabytes']:,.0f} MB",
            file=sys.stderr,
            flush=True,
        )
    return records


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--every", type=int, default=100_000)
    options.add_argument("--held-out", type=int, default=2_000)
    options.add_argument("--jobs", type=int, default=1)
    options.add_argument("--plain", action="store_true", help="T = 1 throughout")
    arguments = options.parse_args()
    try:
        records = stream(arguments.every, arguments.held_out, arguments.jobs, arguments.plain)
    except FileNotFoundError as error:
        raise SystemExit(str(error)) from None
    print(json.dumps(records))


if __name__ == "__main__":
    main()
