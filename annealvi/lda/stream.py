"""One more portion of a stream of documents, for `partial_fit`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils import check_random_state

from annealvi.checks import HEADROOM, check_counts
from annealvi.inference import Monitor
from annealvi.lda.defaults import Settings, check_steps
from annealvi.lda.dtypes import fit_dtype, in_dtype
from annealvi.lda.state import LDAState


def begin_stream(
    owner: str,
    parameters: Mapping[str, Any],
    X: sparse.csr_matrix,
    settings: Settings,
    n_threads: int,
) -> tuple[LDAState, sparse.csr_matrix]:
    """Return the state before the first portion of a stream, and the portion in its dtype."""
    shown = X.dtype
    X = in_dtype(X, fit_dtype(parameters, X, float(parameters["total_samples"])))
    rng = check_random_state(parameters["random_state"])
    n_topics = int(parameters["n_components"])
    state = LDAState.begin(owner, X, n_topics, settings, rng, n_threads)
    return state.shown_as(shown), X


def prepare_portion(
    state: LDAState,
    X: sparse.csr_matrix,
    settings: Settings,
    population: float,
    n_threads: int,
) -> None:
    """Check one more portion of a stream, and update the settings and the temperature."""
    check_counts(X, population, "total_samples")
    if X.shape[0] > min(population, 1.0) * (np.finfo(np.float64).max / HEADROOM):
        raise ValueError(
            "The 'total_samples' parameter must not be so small that passes overflow. "
            f"Got {population!r}, of which X has {X.shape[0]}."
        )
    state.check_priors()
    state.model.topics.notice_writes()
    state.model.set_corpus(X, population)
    batch_size, wanted, planned = int(settings.batch_size), None, state.temperature
    if settings is not state.streamed_with:  # if it is, the temperature is the same, too
        wanted = settings.wanted_temperature(state.owner)
        if state.planned_for is None or wanted != state.planned_for:
            planned = state.plan(wanted, None, population / batch_size)
    n_steps = -(-X.shape[0] // batch_size)
    check_steps(settings, planned, settings.step_size(None), state.monitor.step, n_steps)
    if wanted is not None and planned is not state.temperature:
        state.follow(wanted, planned)
    state.streamed_with = settings
    state.resume(settings, n_threads)


def fit_portion(
    state: LDAState,
    X: sparse.csr_matrix,
    settings: Settings,
    population: float,
    callback: Callable[[Monitor], None] | None,
    commit: Callable[[], None],
) -> None:
    """Fit one more portion of a stream, after :func:`prepare_portion`.

    After an error before the end of its first step the results of `fit` are still there.
    """

    def on_step() -> None:
        commit()
        state.after_step(callback)

    results, version = state.results, state.model.topics.version
    state.forget_results()
    try:
        state.make_passes(
            X,
            batch_size=int(settings.batch_size),
            n_passes=1,
            population=population,
            step_size=settings.step_size(None),
            on_step=on_step,
            keep_buffers=True,
        )
    except BaseException:
        if state.model.topics.version == version:  # no step has moved the topics
            state.results = results
        raise
