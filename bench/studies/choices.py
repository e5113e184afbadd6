"""What the choices in the default are worth, on validation documents.

    python -m bench.studies.choices [--topics 20 100] [--corpora kos ...] [--seeds 2]

Each row changes one thing in the default.  Printed is a line for each cell and, at the end, the
tables of docs/choices.md: differences from the default, means over the corpora of the quality
study (splits.py).  Scores are of validation documents by one evaluator (fold_in.py), whose settings
are those that suit the default in the cell.  "sd" is that of the held-out likelihood over seeds.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray

from annealvi import TemperedLDA
from annealvi.lda import defaults
from annealvi.lda import fit as lda_fit
from annealvi.models.lda import block
from bench import parser
from bench.adapters import mean_topics
from bench.markdown import table
from bench.studies import fold_in, splits
from bench.studies.ablation import averaged, qualities
from bench.studies.study.scores import CHOOSERS

Fit = Callable[[Any, int, int], NDArray[np.float64]]


class Scores(NamedTuple):
    """Of a variant in a cell, means over seeds; `spread` is the sd of `held_out`."""

    held_out: float
    npmi: float
    diversity: float
    stability: float
    seconds: float
    spread: float


def default(X: Any, n_topics: int, seed: int, **parameters: Any) -> NDArray[np.float64]:
    return TemperedLDA(n_topics, random_state=seed, **parameters).fit(X).components_


def _set(parameters: Callable[[int], dict[str, Any]]) -> Fit:
    """The default with parameters that depend on K."""

    def fit(X, n_topics, seed):
        return default(X, n_topics, seed, **parameters(n_topics))

    return fit


def _patched(context: Callable[[], Any], fit: Fit = default) -> Fit:
    """The default with another constant of its own."""

    def within(X, n_topics, seed):
        with context():
            return fit(X, n_topics, seed)

    return within


@contextmanager
def sparsity(amount: float, below: float) -> Iterator[None]:
    with patch.object(block, "SPARSITY", amount), patch.object(block, "SPARSE_BELOW", below):
        yield


@contextmanager
def distance(scarce: float, plenty: float) -> Iterator[None]:
    """F K^0.3, where data are scarce and where they are plenty."""

    def recommended(n_topics: int, n_samples: int, many: bool) -> defaults.Settings:
        spans = (plenty if many else scarce) * n_topics**-0.3
        return defaults.recommended(n_topics, n_samples, many)._replace(memory_spans=spans)

    with patch.dict(defaults.PRESETS, annealvi=recommended):
        yield


@contextmanager
def finish(n_passes: int, factor: float = 1.8, plenty: float = 2.5) -> Iterator[None]:
    steps = partial(lda_fit.OverRelaxed, factor=factor)
    with (
        patch.object(defaults, "FINISH", n_passes),
        patch.object(defaults, "PLENTY", plenty),
        patch.object(lda_fit, "OverRelaxed", steps),
    ):
        yield


def _prior(n_topics: int, first: float) -> dict[str, Any]:
    """A topic for background words: the first one is in every document."""
    prior = np.full(n_topics, defaults.prior(n_topics))
    prior[0] = first
    return {"doc_topic_prior": prior}


def by_size(estimator: TemperedLDA, monitor: Any) -> None:
    """alpha proportional to the topics' sizes from the first step on, its sum as it was."""
    K, V = estimator.components_.shape
    words = estimator.components_.sum(axis=1) - V * np.mean(estimator.topic_word_prior_)
    share = np.maximum(words, 0.0) / np.maximum(words, 0.0).sum()
    estimator.doc_topic_prior_ = K * defaults.prior(K) * (0.1 / K + 0.9 * share)


def apart(estimator: TemperedLDA, monitor: Any, *, amount: float) -> None:
    """While T is above 1.2, move each topic a little away from the mean of all topics."""
    if monitor.temperature <= 1.2:
        return
    topics = estimator.components_
    sizes = topics.sum(axis=1, keepdims=True)
    share = topics / sizes
    moved = topics * (share / share.mean(axis=0)) ** amount
    estimator.components_ = moved * (sizes / moved.sum(axis=1, keepdims=True))


def best_of(n_starts: int) -> Fit:
    return _set(lambda _: {"n_init": n_starts})


def tournament(n_starts: int, share: float) -> Fit:
    """The start with the best bound of 2,000 documents after a share of its steps goes on.

    It is fitted anew, so that `share` of its CPU seconds are counted twice.
    """

    def fit(X, n_topics, seed):
        some = X[:: max(1, X.shape[0] // 2000)]
        batch, n_passes = defaults.minibatch(X.shape[0]), defaults.passes(X.shape[0])
        last = round(share * n_passes * -(-X.shape[0] // batch))

        def stop(estimator, monitor):
            if monitor.step == last:
                raise StopIteration

        found = {}
        for number in range(n_starts):
            start = n_starts * seed + number
            lda = TemperedLDA(n_topics, random_state=start, callback=stop).fit(X)
            found[lda.score(some)] = start
        return default(X, n_topics, found[max(found)])

    return fit


#: Tables of variants: the default first is what all rows are compared with.
VARIANTS: dict[str, dict[str, Fit]] = {
    "Sparse documents": {
        "none (mean field)": _set(lambda _: {"document_estimate": "variational"}),
        "κ = .25": _patched(partial(sparsity, 0.25, 1.5)),
        "κ = 1": _patched(partial(sparsity, 1.0, 1.5)),
        "from T = 1.2": _patched(partial(sparsity, 0.5, 1.2)),
        "from T = 2.5": _patched(partial(sparsity, 0.5, 2.5)),
    },
    "Distance and finish": {
        "no finish": _set(lambda _: {"finish_iter": 0}),
        "5 finishing passes": _patched(partial(finish, 5)),
        "40 finishing passes": _patched(partial(finish, 40)),
        "15 of ordinary size": _patched(partial(finish, 15, factor=1.0)),
        "a finish in every cell": _patched(partial(finish, 15, plenty=0.0)),
        "F = 50 throughout": _patched(partial(distance, 50.0, 50.0)),
        "F = 100 throughout": _patched(partial(distance, 100.0, 100.0)),
    },
    "Diversity": {
        "α by the topics' sizes": _set(lambda _: {"callback": by_size}),
        "a background topic, α = 1": _set(partial(_prior, first=1.0)),
        "a background topic, α = 5": _set(partial(_prior, first=5.0)),
        "pressure .002 a step": _set(lambda _: {"callback": partial(apart, amount=0.002)}),
        "pressure .02 a step": _set(lambda _: {"callback": partial(apart, amount=0.02)}),
    },
    "Starts": {
        "best of three by `bound_`": best_of(3),
        "better of two after .45": tournament(2, 0.45),
        "best of three after .45": tournament(3, 0.45),
        "three short fits averaged": averaged(),
    },
}


def score(fit: Fit, split: splits.Split, n_topics: int, seeds: int, settings: Any) -> Scores:
    topics, seconds = [], []
    for seed in range(seeds):
        began = time.process_time()
        found = fit(split.train, n_topics, seed)
        seconds.append(time.process_time() - began)
        topics.append(mean_topics(np.asarray(found, dtype=np.float64)))
    held_out = [settings.score(t, split.validation) for t in topics]
    return Scores(
        float(np.mean(held_out)),
        *qualities(topics, split.train),
        float(np.mean(seconds)),
        float(np.std(held_out, ddof=1)) if seeds > 1 else np.nan,
    )


def difference(found: Scores, base: Scores) -> list[float]:
    gains = [a - b for a, b in zip(found[:4], base[:4], strict=True)]
    return [*gains, found.seconds / base.seconds, found.spread, base.spread]


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--seeds", type=int, default=2)
    options.add_argument("--topics", type=int, nargs="+", default=[20, 100])
    options.add_argument("--corpora", nargs="+", choices=list(splits.CORPORA))
    options.add_argument("--tables", nargs="+", choices=list(VARIANTS), default=list(VARIANTS))
    arguments = options.parse_args()
    wanted = {name: VARIANTS[name] for name in arguments.tables}
    gains: dict[tuple[str, int], list[list[float]]] = {}
    for corpus in arguments.corpora or splits.CORPORA:
        split = splits.load(corpus)
        for K in arguments.topics:
            first = mean_topics(default(split.train, K, 0))
            settings = fold_in.choose(first, split.validation[:CHOOSERS])
            base = score(default, split, K, arguments.seeds, settings)
            print(corpus, K, "the default", *(f"{x:.4f}" for x in base), flush=True)
            for name, fit in (pair for rows in wanted.values() for pair in rows.items()):
                found = score(fit, split, K, arguments.seeds, settings)
                gains.setdefault((name, K), []).append(difference(found, base))
                print(corpus, K, name, *(f"{x:.4f}" for x in found), flush=True)
    columns = ["", "K", "held out", "NPMI", "diversity", "stability", "CPU", "sd", "default's sd"]
    for heading, rows in wanted.items():
        lines = []
        for name in rows:
            for K in arguments.topics:
                mean = np.mean(gains[name, K], axis=0)
                signed = [f"{mean[0]:+.4f}", *(f"{x:+.3f}" for x in mean[1:4])]
                spreads = [f"{x:.4f}" for x in mean[5:]]
                lines.append([name, str(K), *signed, f"{mean[4]:.2f}", *spreads])
        print(f"\n**{heading}**\n\n{table(columns, lines)}", flush=True)


if __name__ == "__main__":
    main()
