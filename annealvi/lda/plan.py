"""The plan of a fit of TemperedLDA: the data and settings that all its runs share."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.random import RandomState
from scipy.sparse import csr_matrix

from annealvi.checks import check_total
from annealvi.inference import Callbacks
from annealvi.lda.hooks import held_out_halves, hold_out
from annealvi.lda.settings import (
    Settings,
    extent,
    is_open,
    resolve,
    words_per_entry,
)
from annealvi.models.lda.engine import Engine
from annealvi.models.lda.shards import engine_of
from annealvi.models.lda.starts import CorpusOfFit
from annealvi.scale.elsewhere import Elsewhere
from annealvi.temperature import Temperature

#: With validation, a fit makes at most this multiple of the usual number of passes.
PROLONGED = 5


@dataclass(frozen=True)
class LDAPlan:
    """The data and settings that all runs of a fit share."""

    #: All documents passed to `fit`, and the documents that are not held out.
    documents: csr_matrix | Elsewhere
    training: csr_matrix | Elsewhere
    #: The documents that are held out, and the observed and the hidden half of their tokens.
    held_out: csr_matrix | None
    halves: tuple[csr_matrix, csr_matrix] | None
    #: The dtype in which the user gets topics.
    result_dtype: np.dtype
    #: The parameters of the estimator, and the settings computed from them.
    parameters: Mapping[str, Any]
    settings: Settings
    temperature: Temperature
    #: Maximum number of passes, and the number of passes over which T is planned to decrease.
    n_passes: int
    n_planned: int
    #: Whether to store gamma of all documents.
    keep_gamma: bool
    #: Whether the perplexity of documents includes the KL divergence of the topics.
    scores_topics: bool
    #: Number of runs at the same time, and number of threads of all runs together.
    n_workers: int
    n_threads: int
    callbacks: Callbacks
    #: The context of changes to a fit that other threads can see.
    lock: AbstractContextManager
    corpus: CorpusOfFit
    #: The engine of runs that follow one another; parallel runs have their own.
    engine: Engine

    @property
    def batch_size(self) -> int:
        """The number of documents of a step."""
        n_samples = self.training.shape[0]
        if self.settings.learning_method == "batch":
            return n_samples
        return min(int(self.settings.batch_size), n_samples)

    @property
    def steps_per_pass(self) -> int:
        """The number of steps of a pass, of which the last may have fewer documents."""
        return -(-self.training.shape[0] // self.batch_size)

    def new_engine(self, n_threads: int) -> Engine:
        """Return another engine for the fit's documents."""
        return engine_of(
            self.settings.device,
            n_threads,
            int(self.parameters["n_components"]),
            self.training.dtype,
            X=self.training,
            shard_size=self.settings.local_options().shard_size,
            repeated=self.engine.repeated,
        )


def plan_fit(
    parameters: Mapping[str, Any],
    X: csr_matrix | Elsewhere,
    rng: RandomState,
    *,
    keep_gamma: bool,
    in_turn: bool,
    n_threads: int,
    **others: Any,
) -> LDAPlan:
    """Plan a fit: hold out documents that `rng` draws, and compute values of open parameters.

    If `in_turn`, runs are made one after another.  `others` are more fields of the plan.
    """
    training = X
    held_out = None
    halves = None
    fraction = parameters["validation_fraction"]
    if fraction is not None:
        training, held_out = hold_out(X, float(fraction), rng)
        halves = held_out_halves(held_out, rng)
    n_samples = training.shape[0]
    # the statistics of a minibatch, maybe of one document, are scaled to all documents
    words = check_total(extent(training)[0], training.dtype, n_samples, "the number of documents")
    if held_out is not None and not words:  # without validation the fit returns the prior
        raise ValueError(
            f"The training documents in X must contain words. Got {n_samples} training documents "
            "with only zeros."
        )
    n_topics = int(parameters["n_components"])
    density = words_per_entry(training, n_topics)
    settings = resolve(parameters, n_samples, density)
    n_passes = int(settings.max_iter)
    n_planned = n_passes
    if held_out is not None and not settings.merged:
        usual = int(resolve({**parameters, "max_iter": None}, n_samples).max_iter)
        if parameters["max_iter"] is None:  # the score ends the fit
            n_passes = PROLONGED * usual
            n_planned = usual
        elif is_open(parameters["temperature"]):
            # if T decreased over all passes, the fit would never stop early
            n_planned = min(usual, n_passes)
    temperature = settings.wanted_temperature()
    # gamma is kept for the temperatures of documents, which are computed at the end
    local = temperature.per_document and not isinstance(X, Elsewhere)
    engine = engine_of(
        parameters["device"],
        n_threads,
        n_topics,
        training.dtype,
        X=training,
        shard_size=settings.local_options().shard_size,
        repeated=(n_passes + settings.finish_iter) * settings.n_init > 1,
    )
    # an engine with a device computes one run at a time, whatever its device is
    has_device = engine.device is not None
    return LDAPlan(
        documents=X,
        training=training,
        held_out=held_out,
        halves=halves,
        parameters=parameters,
        settings=settings,
        temperature=temperature,
        n_passes=n_passes,
        n_planned=n_planned,
        keep_gamma=keep_gamma or local,
        scores_topics=parameters["preset"] == "sklearn",
        n_workers=1 if in_turn or has_device else min(n_threads, settings.n_init),
        n_threads=n_threads,
        corpus=CorpusOfFit(training, n_samples, float(training.sum(dtype=float))),
        engine=engine,
        **others,
    )
