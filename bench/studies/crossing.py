"""Several starts: crossed, or the best of them kept.  What each gains, and what it costs.

    python -m bench.studies.crossing [--corpora bbc_news ...] [--topics 20 100] [--seeds 3]

Fits are made on the training documents of splits.py.  Printed are means over seeds: `bound_`, the
held-out log-likelihood of the validation documents in nats per word and its standard deviation, the
stability between seeds, NPMI, diversity, and the CPU seconds of one thread.  The fold-in is chosen
on the fits of one start.
"""

from __future__ import annotations

import time
from itertools import combinations

import numpy as np

from annealvi import TemperedLDA, metrics
from bench import parser
from bench.markdown import table
from bench.studies import fold_in, splits

CORPORA = ("bbc_news", "20ng_etm", "reuters21578", "debian_desc")
#: Parameters of each row.
METHODS = {"one start": {"n_init": 1}}
METHODS |= {f"best of {n}": {"n_init": n, "combine": "best"} for n in (3, 5)}
METHODS |= {f"{n} crossed": {"n_init": n} for n in (2, 3, 5)}
HEADINGS = ["", "bound", "held out", "sd", "stability", "NPMI", "diversity", "CPU s"]


def row(
    corpus: splits.Split, n_topics: int, seeds: range, chosen: list[fold_in.FoldIn], **parameters
) -> list[str]:
    """The figures of one method."""
    topics, bounds, seconds, held_out, npmi, diversity = [], [], [], [], [], []
    for seed in seeds:
        began = time.process_time()
        lda = TemperedLDA(n_topics, random_state=seed, **parameters).fit(corpus.train)
        seconds.append(time.process_time() - began)
        bounds.append(lda.bound_)
        found = lda.components_ / lda.components_.sum(axis=1, keepdims=True)
        if not chosen:
            chosen.append(fold_in.choose(found, corpus.validation[:500]))
        held_out.append(chosen[0].score(found, corpus.validation))
        npmi.append(np.mean(metrics.topic_coherence(found, corpus.train, measure="npmi")))
        diversity.append(metrics.topic_diversity(found, n_words=25))
        topics.append(found)
    pairs = [metrics.topic_stability(*pair) for pair in combinations(topics, 2)]
    means = [f"{np.mean(values):.3f}" for values in (npmi, diversity)]
    return [
        f"{np.mean(bounds):.1f}",
        f"{np.mean(held_out):.4f}",
        f"{np.std(held_out):.4f}",
        f"{np.mean(pairs):.3f}" if pairs else "",
        *means,
        f"{np.mean(seconds):.2f}",
    ]


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--corpora", nargs="+", default=CORPORA, choices=list(splits.CORPORA))
    options.add_argument("--topics", nargs="+", type=int, default=[20, 100])
    options.add_argument("--seeds", type=int, default=3)
    given = options.parse_args()
    for name in given.corpora:
        corpus = splits.load(name)
        for n_topics in given.topics:
            chosen: list[fold_in.FoldIn] = []
            rows = [
                [method, *row(corpus, n_topics, range(given.seeds), chosen, **parameters)]
                for method, parameters in METHODS.items()
            ]
            print(f"\n{name}, K = {n_topics}\n\n{table(HEADINGS, rows)}", flush=True)


if __name__ == "__main__":
    main()
