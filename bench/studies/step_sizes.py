"""Annealed against plain SVI over step sizes and minibatches, on the bundled abstracts.

    python -m bench.studies.step_sizes [--seeds 4]

K = 30, alpha = .1, eta = .01, 2,700 abstracts, 300 held out.  The step sizes include those of
``annealvi demo``; they show where annealing gains and where it loses.  Printed is the table of
docs/evidence.md: held-out log-likelihood and T = 1 ELBO per word of both methods, means over seeds.
"""

from __future__ import annotations

import os

import numpy as np
from sklearn.model_selection import train_test_split

from annealvi import TemperedLDA
from annealvi.datasets import load_arxiv_abstracts
from annealvi.metrics import document_completion
from bench import parser

#: Learning method, offset, decay, minibatch, passes.
SETTINGS = [
    ("online", 10, 0.7, 128, 10),
    ("online", 10, 0.7, 32, 10),
    ("online", 10, 0.5, 100, 20),
    ("online", 64, 0.7, 100, 10),
    ("online", 64, 0.7, 32, 10),
    ("online", 64, 0.7, 32, 20),
    ("online", 64, 0.5, 100, 10),
    ("online", 256, 0.7, 32, 10),
    ("online", 1024, 0.7, 32, 20),
    ("batch", 10, 0.7, 2700, 20),
    ("batch", 10, 0.7, 2700, 50),
]


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--seeds", type=int, default=4)
    n_seeds = options.parse_args().seeds
    train, held_out = train_test_split(load_arxiv_abstracts().data, test_size=300, random_state=0)
    print(
        "| steps | τ | κ | minibatch | passes | SVI: held out / ELBO per word "
        "| annealed: held out / ELBO per word | gain: held out / ELBO |\n"
        "|---|---|---|---|---|---|---|---|"
    )
    for method, offset, decay, batch_size, passes in SETTINGS:
        reached = {}
        for temperature in (1, "annealed"):
            fits = [
                TemperedLDA(
                    30,
                    doc_topic_prior=0.1,
                    topic_word_prior=0.01,
                    learning_method=method,
                    learning_offset=offset,
                    learning_decay=decay,
                    batch_size=batch_size,
                    max_iter=passes,
                    temperature=temperature,
                    document_init="constant",
                    preset="sklearn",  # the mean field, from random starts
                    random_state=seed,
                    n_jobs=os.cpu_count(),
                ).fit(train)
                for seed in range(n_seeds)
            ]
            reached[temperature] = np.mean(
                [(document_completion(lda, held_out), -np.log(lda.bound_)) for lda in fits], axis=0
            )
        plain, annealed = reached[1], reached["annealed"]
        gain = annealed - plain
        step_sizes = f"{offset} | {decay} | {batch_size}" if method == "online" else "– | – | all"
        print(
            f"| {method} | {step_sizes} | {passes} | {plain[0]:.3f} / {plain[1]:.3f} "
            f"| {annealed[0]:.3f} / {annealed[1]:.3f} | {gain[0]:+.3f} / {gain[1]:+.3f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
