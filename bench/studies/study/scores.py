"""Scores of topics.  Each score is computed once and stored with the topics."""

from __future__ import annotations

from functools import lru_cache
from itertools import combinations
from typing import Any

import numpy as np

from annealvi import metrics
from bench.studies import fold_in, splits
from bench.studies.study.store import Run, Store

#: Number of validation documents on which the fold-in is chosen.
CHOOSERS = 500


@lru_cache(maxsize=1)
def documents(corpus: str) -> splits.Split:
    return splits.load(corpus)


def validation(store: Store, run: Run, settings: fold_in.FoldIn | None = None) -> float:
    """The validation score of a run; its settings are chosen here if `settings` is None."""
    scores = store.scores(run)
    if "validation" not in scores:
        topics = store.topics(run).astype(np.float64)
        X = documents(run.cell.corpus).validation
        chosen = settings or fold_in.choose(topics, X[:CHOOSERS])
        scores |= {"fold_in": list(chosen), "validation": chosen.score(topics, X)}
        store.save_scores(run, scores)
    return scores["validation"]


def settings_of(store: Store, run: Run) -> fold_in.FoldIn:
    """The settings with which a run was scored."""
    return fold_in.FoldIn(*store.scores(run)["fold_in"])


def best(store: Store, method: str, runs: list[Run]) -> Run:
    """The run at seed 0 whose configuration has the best validation score."""
    firsts = [run for run in runs if run.method == method and run.seed == 0]
    return max(firsts, key=lambda run: validation(store, run))


def complete(store: Store, run: Run, settings: fold_in.FoldIn, again: bool = False) -> None:
    """Compute all scores of a run except stability; `again` repeats coherence and diversity."""
    validation(store, run, settings)
    scores = store.scores(run)
    if "test" in scores and "npmi" in scores and not again:
        return
    train, _, test = documents(run.cell.corpus)
    topics = store.topics(run).astype(np.float64)
    if "test" not in scores:
        scores["test"] = settings.score(topics, test)
    coherence = metrics.topic_coherence(topics, train, measure="npmi", n_words=10)
    scores["npmi"] = float(np.mean(coherence))
    scores["diversity"] = float(metrics.topic_diversity(topics, n_words=25))
    store.save_scores(run, scores)


def stability(store: Store, runs: list[Run], again: bool = False) -> float:
    """The mean of topic_stability over pairs of seeds, or NaN if there is only one seed."""
    first = store.scores(runs[0])
    known: dict[str, Any] = {} if again else first.setdefault("stability", {})
    values = []
    for a, b in combinations(sorted(runs), 2):
        key = f"{a.seed}-{b.seed}"
        if key not in known:
            known[key] = float(metrics.topic_stability(store.topics(a), store.topics(b)))
        values.append(known[key])
    store.save_scores(runs[0], first | {"stability": known})
    return float(np.mean(values)) if values else float("nan")
