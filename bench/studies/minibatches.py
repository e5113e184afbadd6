"""How large may minibatches be where documents are many?

    python -m bench.studies.minibatches [--documents 543000] [--topics 100 500] [--seeds 2]

Fits of arxiv_big, all but its last 2,000 documents, with minibatches of 1,024 to 65,536, and with
the largest step size of the default and with 0.2 for all.  Held out is the likelihood per word of
the 2,000 documents by document completion.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from annealvi import TemperedLDA
from annealvi.datasets import load_corpus
from annealvi.lda import defaults
from annealvi.metrics import document_completion
from bench import parser
from bench.markdown import spread, table

SIZES, PASSES, N_HELD_OUT = (1024, 4096, 16_384, 65_536), (1, 2, 4), 2000
RULE = defaults.largest_step


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--documents", type=int, default=543_000)
    options.add_argument("--topics", type=int, nargs="+", default=[100, 500])
    options.add_argument("--seeds", type=int, default=2)
    arguments = options.parse_args()
    X = load_corpus("arxiv_big").data.astype(np.float32)[: arguments.documents]
    X, held_out = X[:-N_HELD_OUT], X[-N_HELD_OUT:]
    rows: list[Any] = []
    for n_topics in arguments.topics:
        for n_passes in PASSES:
            for size in SIZES:
                for capped in (False, True)[: 1 + (RULE(size) > RULE(1))]:
                    defaults.largest_step = (lambda size: 0.2) if capped else RULE
                    scores, seconds = [], []
                    for seed in range(arguments.seeds):
                        lda = TemperedLDA(
                            n_topics,
                            max_iter=n_passes,
                            finish_iter=0,
                            batch_size=size,
                            random_state=seed,
                        ).fit(X)
                        scores.append(document_completion(lda, held_out))
                        seconds.append(lda.history_["seconds"][-1])
                    largest = 0.2 if capped else RULE(size)
                    steps = n_passes * -(-X.shape[0] // size)
                    row = [str(n_topics), str(n_passes), f"{size:,}", str(steps), f"{largest:.1f}"]
                    rows.append([*row, spread(scores, 4), f"{np.mean(seconds):.1f}"])
                    print(*rows[-1], flush=True)
    head = ("K", "passes", "documents a minibatch", "steps", "largest step", "held out", "s")
    print(table(head, rows))


if __name__ == "__main__":
    main()
