"""What a fit of very many documents would take on many machines, from a model of its cost.

    python bench/scale_plan.py [--documents 1e9] [--words 1e6] [--topics 1e4] [--workers 10 100]

Nothing of this size was run.  The model has the assumptions that it prints, each of which is an
option.  The time of a token is interpolated, in logarithms, between the times measured on one core
(docs/benchmarks.md, "Tokens"), and extrapolated beyond them.

A step works on one shard of each worker.  Topics are spread over the workers by words, so that a
worker gets the rows of its shard's words from the others, and sends their statistics back.  Only
the sums of the topics over all words are global.  "Dense" sends all topics of a word, "sparse"
those that hold nearly all of its mass.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np

#: Microseconds of a pair of document and word on one core, of a whole fit, by the number of topics.
TOKEN = {100: 0.188, 500: 0.553, 1000: 0.909, 2500: 1.997, 5000: 3.61}
#: Bytes of a number of the topics, of a sum of statistics, and of the name of a topic on the wire.
WEIGHT, STATISTIC, NAME = 4, 8, 4


def token_seconds(n_topics: float) -> float:
    """Seconds of a pair of document and word, from the measured ones."""
    K, times = np.log(list(TOKEN)), np.log(list(TOKEN.values()))
    wanted = np.log(n_topics)
    if wanted > K[-1]:
        slope = (times[-1] - times[-3]) / (K[-1] - K[-3])
        return float(1e-6 * np.exp(times[-1] + slope * (wanted - K[-1])))
    return float(1e-6 * np.exp(np.interp(wanted, K, times)))


def distinct_words(n_tokens: float, n_words: float) -> float:
    """Expected number of different words among tokens whose frequencies follow Zipf's law."""
    ranks = np.arange(1, int(n_words) + 1)
    share = 1 / ranks / np.sum(1 / ranks)
    return float(np.sum(-np.expm1(n_tokens * np.log1p(-share))))


def plan(options: argparse.Namespace, n_workers: int) -> dict[str, Any]:
    """The times of a pass on so many workers."""
    pairs = options.shard * options.distinct
    words = distinct_words(options.shard * options.tokens, options.words)
    compute = pairs * token_seconds(options.topics) / options.cores / options.efficiency
    down, up = (words * options.topics * size for size in (WEIGHT, STATISTIC))
    sparse = words * options.kept * (WEIGHT + STATISTIC + 2 * NAME)
    speed = options.gigabits * 1e9 / 8
    n_steps = options.documents / (n_workers * options.shard)
    overhead = options.overhead + n_workers * options.scheduling
    return {
        "workers": f"{n_workers:,}",
        "steps a pass": f"{n_steps:,.0f}",
        "topics a worker": f"{options.words * options.topics * WEIGHT / n_workers / 1e9:.2f} GB",
        "compute a step": f"{compute:.1f} s",
        "dense a step": f"{(down + up) / 1e9:.1f} GB",
        "sparse a step": f"{sparse / 1e9:.2f} GB",
        "dense pass": hours(n_steps * (compute + (down + up) / speed + overhead)),
        "sparse pass": hours(n_steps * (compute + sparse / speed + overhead)),
    }


def hours(seconds: float) -> str:
    """A time in words."""
    return f"{seconds / 3600:.1f} h" if seconds >= 3600 else f"{seconds / 60:.1f} min"


def parser() -> argparse.ArgumentParser:
    """The options: the size of the fit, and the assumptions."""
    found = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    found.add_argument("--workers", type=int, nargs="+", default=[10, 100, 1000])
    assumptions = {
        "documents": (1e9, "documents"),
        "words": (1e6, "different words of the corpus"),
        "topics": (1e4, "topics"),
        "tokens": (150, "words of a document"),
        "distinct": (100, "different words of a document"),
        "shard": (1e4, "documents of a worker in a step"),
        "cores": (16, "cores of a worker"),
        "efficiency": (0.85, "of these cores in the kernels (1.7 measured on 2)"),
        "gigabits": (10, "gigabits a second from and to a worker"),
        "kept": (100, "topics that hold nearly all of a word's mass (41 at T = 1, 121 at T = 1.5)"),
        "overhead": (0.05, "seconds of a step for starting and ending it"),
        "scheduling": (0.001, "seconds of the scheduler for each worker's task"),
    }
    for name, (value, meaning) in assumptions.items():
        found.add_argument(f"--{name}", type=float, default=float(value), help=meaning)
    return found


def main(argv: list[str] | None = None) -> None:
    found = parser()
    options = found.parse_args(argv)
    if min(value for name, value in vars(options).items() if name != "workers") <= 0:
        found.error("all numbers must be positive")
    print("Assumptions:")
    for action in found._actions:
        if action.type is float:
            print(f"  {getattr(options, action.dest):>13,.6g}  {action.help}")
    print(f"  {1e6 * token_seconds(options.topics):>13.2f}  microseconds of a token on a core")
    words = distinct_words(options.shard * options.tokens, options.words)
    print(f"  {words:>13,.0f}  different words of a shard, by Zipf's law")
    core_hours = options.documents * options.distinct * token_seconds(options.topics) / 3600
    print(f"  {core_hours:>13,.0f}  core-hours of a pass\n")
    rows = [plan(options, n_workers) for n_workers in options.workers]
    print("| " + " | ".join(rows[0]) + " |")
    print("|" + "---|" * len(rows[0]))
    for row in rows:
        print("| " + " | ".join(row.values()) + " |")


if __name__ == "__main__":
    main()
