"""Does annealing reach better optima?  Three seeds are compared by ELBO and held-out likelihood.

    python -m bench.studies.optima [--seeds 3] [--passes 4] [--sparse]

K = 100, alpha = 0.1, eta = 0.01 (with --sparse both are 1/K = 0.01), tau = 64, kappa = 0.7,
minibatches of 100, 4 passes.  The corpora are the first 30,000 abstracts of ``arxiv_100k`` (rows
30,000 to 33,000 are held out), and ``debian_desc`` without its last 1,000 descriptions, which are
held out.  All methods start from the same random draws, use the same minibatches and make the same
local steps.  The script prints a line for each fit, and at the end the table of
docs/record/evidence.md.
"""

from __future__ import annotations

import os
import time

import numpy as np

from annealvi import Annealed, TemperedLDA
from annealvi.datasets import load_corpus
from annealvi.metrics import document_completion
from bench import parser
from bench.markdown import spread, table

SETTINGS = dict(
    n_components=100,
    doc_topic_prior=0.1,
    topic_word_prior=0.01,
    learning_method="online",
    learning_offset=64,
    batch_size=100,
    max_iter=4,
    preset="sklearn",  # mean-field inference from random starts
)
METHODS = {
    "SVI (T = 1)": 1,
    "annealed": "annealed",
    "annealed, linear over 1 pass": Annealed(shape="linear", passes=1),
    "annealed, exponential from 2.5 over 1 pass": Annealed(2.5, shape="exponential", passes=1),
    "annealed, posterior form": Annealed(form="posterior"),
}


def problems():
    """Yield the name, the training documents and the held-out documents of each corpus."""
    arxiv = load_corpus("arxiv_100k").data
    debian = load_corpus("debian_desc").data
    yield "arxiv_100k", arxiv[:30_000], arxiv[30_000:33_000]
    yield "debian_desc", debian[:-1000], debian[-1000:]


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--seeds", type=int, default=3)
    options.add_argument("--sparse", action="store_true", help="alpha = eta = 1/K")
    options.add_argument("--passes", type=int, default=SETTINGS["max_iter"])
    arguments = options.parse_args()
    settings = SETTINGS | dict(max_iter=arguments.passes)
    if arguments.sparse:
        settings |= dict(doc_topic_prior=None, topic_word_prior=None)
    scores = ("ELBO per word, T = 1", "against SVI", "held out per word", "against SVI")
    rows = []
    for corpus, X, held_out in problems():
        baseline: tuple[float, float] | None = None
        for method, temperature in METHODS.items():
            if getattr(temperature, "passes", None) and temperature.passes >= arguments.passes:
                continue  # because no pass would have T = 1
            elbo = []
            score = []
            seconds = []
            for seed in range(arguments.seeds):
                lda = TemperedLDA(
                    **settings, temperature=temperature, random_state=seed, n_jobs=os.cpu_count()
                )
                start = time.perf_counter()
                lda.fit(X)
                total = time.perf_counter() - start
                elbo.append(-np.log(lda.bound_))
                score.append(document_completion(lda, held_out))
                seconds.append(lda.history_["seconds"][-1])
                print(
                    f"{corpus}, {method}, seed {seed}: {elbo[-1]:.4f} {score[-1]:.4f} "
                    f"{seconds[-1]:.1f} s in steps, {total:.1f} s in total",
                    flush=True,
                )
            if baseline is None:
                baseline = (np.mean(elbo), np.mean(score))
            gains = np.mean(elbo) - baseline[0], np.mean(score) - baseline[1]
            rows.append(
                [
                    *(corpus, method),
                    *(spread(elbo), f"{gains[0]:+.3f}"),
                    *(spread(score), f"{gains[1]:+.3f}"),
                    f"{np.mean(seconds):.1f}",
                ]
            )
    print(table(["corpus", "method", *scores, "seconds"], rows))


if __name__ == "__main__":
    main()
