"""How large may minibatches be where documents are many?

    python -m bench.studies.minibatches [--documents 543000] [--topics 100 500] [--seeds 2]
        [--steps 30 16 8]

Fits of arxiv_big, all but its last 2,000 documents, with minibatches of 1,024 to 65,536, and with
the largest step size of the default and with 0.2 for all.  With --steps: the default fit, finishing
passes included, with so many minibatches in a pass.  Held out is the likelihood per word of the
2,000 documents by document completion.
"""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np

from annealvi import TemperedLDA
from annealvi.datasets import load_corpus
from annealvi.lda import defaults
from annealvi.metrics import document_completion
from bench import parser
from bench.markdown import spread

SIZES, PASSES, SHARD, N_HELD_OUT = (1024, 4096, 16_384, 65_536), (1, 2, 4), 4096, 2000
RULE = defaults.largest_step


def by_size(X: Any, held_out: Any, n_topics: int, seeds: int) -> None:
    """Rows of minibatches and numbers of passes."""
    for n_passes, size in product(PASSES, SIZES):
        for capped in (False, True)[: 1 + (RULE(size) > RULE(1))]:
            defaults.largest_step = (lambda size: 0.2) if capped else RULE
            given = dict(max_iter=n_passes, finish_iter=0, batch_size=size)
            scores, seconds = fits(X, held_out, n_topics, seeds, given)
            steps = n_passes * -(-X.shape[0] // size)
            largest = f"{defaults.largest_step(size):.1f}"
            show(n_topics, n_passes, f"{size:,}", steps, largest, scores, seconds)


def by_steps(X: Any, held_out: Any, n_topics: int, seeds: int, steps: list[int]) -> None:
    """Rows of numbers of minibatches in a pass."""
    for number in steps:
        size = min(SIZES[-1], X.shape[0] // number)
        given = dict(batch_size=size, shard_size=min(size, SHARD))
        scores, seconds = fits(X, held_out, n_topics, seeds, given)
        show(n_topics, f"{X.shape[0]:,}", number, f"{size:,}", scores, seconds)


def show(*row: Any) -> None:
    """Print a row at once."""
    print(f"| {' | '.join(map(str, row))} |", flush=True)


def fits(
    X: Any, held_out: Any, n_topics: int, seeds: int, given: dict[str, Any]
) -> tuple[str, str]:
    """Held-out likelihood and seconds of fits from some seeds."""
    scores, seconds = [], []
    for seed in range(seeds):
        lda = TemperedLDA(n_topics, random_state=seed, **given).fit(X)
        scores.append(document_completion(lda, held_out))
        seconds.append(lda.history_["seconds"][-1])
    return spread(scores, 4), f"{np.mean(seconds):.1f}"


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--documents", type=int, default=543_000)
    options.add_argument("--topics", type=int, nargs="+", default=[100, 500])
    options.add_argument("--seeds", type=int, default=2)
    options.add_argument("--steps", type=int, nargs="+")
    arguments = options.parse_args()
    X = load_corpus("arxiv_big").data.astype(np.float32)
    held_out, X = X[-N_HELD_OUT:], X[: min(arguments.documents, X.shape[0] - N_HELD_OUT)]
    for n_topics in arguments.topics:
        if arguments.steps:
            by_steps(X, held_out, n_topics, arguments.seeds, arguments.steps)
        else:
            by_size(X, held_out, n_topics, arguments.seeds)


if __name__ == "__main__":
    main()
