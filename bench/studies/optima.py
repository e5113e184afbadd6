"""Does annealing reach better optima?  T = 1 ELBO and held-out likelihood, three seeds.

    python -m bench.studies.optima [--seeds 3] [--passes 4] [--sparse]

K = 100, alpha = .1, eta = .01 (with --sparse both 1/K = .01), tau = 64, kappa = .7,
minibatches of 100, 4 passes, on the first 30,000 abstracts of ``arxiv_100k`` (held
out: rows 30,000 to 33,000) and on
``debian_desc`` without its last 1,000 descriptions, which are held out.  Every method
starts from the same draws, sees the same minibatches and makes the same local steps.
"""

from __future__ import annotations

import argparse
import os
import time

import numpy as np

from annealvi import Annealed, TemperedLDA
from annealvi.datasets import load_corpus
from annealvi.metrics import document_completion

SETTINGS = dict(
    n_components=100,
    doc_topic_prior=0.1,
    topic_word_prior=0.01,
    learning_method="online",
    learning_offset=64,
    learning_decay=0.7,
    batch_size=100,
    max_iter=4,
    document_init="constant",
    preset="sklearn",  # the mean field, from random starts
)
METHODS = {
    "SVI (T = 1)": 1,
    "annealed": "annealed",
    "annealed, linear over 1 pass": Annealed(shape="linear", passes=1),
    "annealed, exponential from 2.5 over 1 pass": Annealed(2.5, shape="exponential", passes=1),
    "annealed, posterior form": Annealed(form="posterior"),
}


def problems():
    arxiv = load_corpus("arxiv_100k").data
    debian = load_corpus("debian_desc").data
    yield "arxiv_100k", arxiv[:30_000], arxiv[30_000:33_000]
    yield "debian_desc", debian[:-1000], debian[-1000:]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--sparse", action="store_true", help="alpha = eta = 1/K")
    parser.add_argument("--passes", type=int, default=SETTINGS["max_iter"])
    arguments = parser.parse_args()
    settings = SETTINGS | dict(max_iter=arguments.passes)
    if arguments.sparse:
        settings |= dict(doc_topic_prior=None, topic_word_prior=None)
    lines = [
        "| corpus | method | ELBO a word, T = 1 | against SVI "
        "| held out a word | against SVI | seconds |",
        "|---|---|---|---|---|---|---|",
    ]
    for corpus, X, held_out in problems():
        baseline: tuple[float, float] | None = None
        for method, temperature in METHODS.items():
            if getattr(temperature, "passes", None) and temperature.passes >= arguments.passes:
                continue  # nothing would be left at T = 1
            elbo, score, seconds = [], [], []
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
                    f"{seconds[-1]:.1f} s in steps, {total:.1f} s in all",
                    flush=True,
                )
            if baseline is None:
                baseline = (np.mean(elbo), np.mean(score))
            lines.append(
                f"| {corpus} | {method} | {np.mean(elbo):.3f} ± {np.std(elbo, ddof=1):.3f} "
                f"| {np.mean(elbo) - baseline[0]:+.3f} "
                f"| {np.mean(score):.3f} ± {np.std(score, ddof=1):.3f} "
                f"| {np.mean(score) - baseline[1]:+.3f} | {np.mean(seconds):.1f} |"
            )
    print("\n".join(lines))


if __name__ == "__main__":
    main()
