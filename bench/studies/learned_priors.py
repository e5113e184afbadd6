"""What learning alpha and eta gains: held-out likelihood, coherence and diversity.

    python -m bench.studies.learned_priors [--corpus kos ...] [--topics 20 ...] [--seeds 2]
        [--estimate variational] [--preset sklearn] [--cold 4]

For each corpus, number of topics and seed, TemperedLDA's defaults are fitted with neither prior
learned, either, and both.  Test documents are a tenth of the corpus, at most 1,000; their topics
are inferred by the estimator itself, with the alpha that it has learned.  Printed is the table of
docs/evidence.md.
"""

from __future__ import annotations

import time
from typing import NamedTuple

import numpy as np
from scipy import sparse

from annealvi import TemperedLDA
from annealvi.datasets import load_corpus
from annealvi.metrics import document_completion
from annealvi.metrics.topics import topic_coherence, topic_diversity
from annealvi.models.lda import learned_priors
from bench import parser
from bench.markdown import spread

#: Documents used from each corpus, test documents included; None means all.
CORPORA = {"bbc_news": None, "kos": None, "20ng_etm": None, "debian_desc": 11_000}
VARIANTS = {
    "default": {},
    "α": dict(doc_topic_prior="learn"),
    "η": dict(topic_word_prior="learn"),
    "both": dict(doc_topic_prior="learn", topic_word_prior="learn"),
}


class Fit(NamedTuple):
    """What one fit reached."""

    held_out: float
    npmi: float
    diversity: float
    alpha: np.ndarray  # least, median and largest
    eta: float
    seconds: float


def load(corpus: str) -> tuple[sparse.csr_matrix, sparse.csr_matrix]:
    """Training and test documents."""
    try:
        X = sparse.csr_matrix(load_corpus(corpus).data)
    except FileNotFoundError as error:
        raise SystemExit(str(error)) from None
    order = np.random.RandomState(0).permutation(X.shape[0])[: CORPORA[corpus]]
    n_test = min(1000, len(order) // 10)
    return X[order[n_test:]], X[order[:n_test]]


def fit(
    train: sparse.csr_matrix, test: sparse.csr_matrix, n_topics: int, seed: int, changes: dict
) -> Fit:
    """One fit and its scores."""
    lda = TemperedLDA(n_topics, random_state=seed, **changes)
    start = time.process_time()
    lda.fit(train)
    seconds = time.process_time() - start
    return Fit(
        document_completion(lda, test),
        float(np.mean(topic_coherence(lda.components_, train))),
        float(topic_diversity(lda.components_)),
        np.quantile(np.atleast_1d(lda.doc_topic_prior_), [0, 0.5, 1]),
        float(lda.topic_word_prior_),
        seconds,
    )


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--corpus", choices=list(CORPORA), action="append", help="default: all")
    options.add_argument("--topics", type=int, action="append", help="default: 20 and 100")
    options.add_argument("--seeds", type=int, default=2)
    options.add_argument(
        "--estimate", choices=("map", "variational"), help="default: that of the preset"
    )
    options.add_argument("--preset", choices=("annealvi", "sklearn"), default="annealvi")
    options.add_argument("--cold", type=float, help="learn priors at this T and below")
    arguments = options.parse_args()
    if arguments.cold is not None:
        learned_priors.COLD = arguments.cold
    common = dict(preset=arguments.preset, topic_estimate=arguments.estimate or "auto")
    print(
        "| corpus, K | learned | held out per word | against default | NPMI | diversity "
        "| α: least, median, largest | η | seconds |\n|---|---|---|---|---|---|---|---|---|"
    )
    for corpus in arguments.corpus or CORPORA:
        train, test = load(corpus)
        for n_topics in arguments.topics or (20, 100):
            default = np.zeros(arguments.seeds)
            for name, changes in VARIANTS.items():
                fits = [
                    fit(train, test, n_topics, seed, common | changes)
                    for seed in range(arguments.seeds)
                ]
                mean = Fit(*(np.mean(values, axis=0) for values in zip(*fits, strict=True)))
                scores = np.array([one.held_out for one in fits])
                if name == "default":
                    default = scores
                alpha = ", ".join(f"{value:.3f}" for value in mean.alpha)
                print(
                    f"| {corpus}, {n_topics} | {name} | {spread(scores, 4)} "
                    f"| {spread(scores - default, 4, '+')} "
                    f"| {mean.npmi:.3f} | {mean.diversity:.3f} "
                    f"| {alpha} | {mean.eta:.4f} | {mean.seconds:.2f} |",
                    flush=True,
                )


if __name__ == "__main__":
    main()
