"""The local step of LDA: gamma and phi of some documents, and the statistics of the topics."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

import numpy as np
from numpy.random import RandomState
from numpy.typing import NDArray

from annealvi.model import Batch, LocalRule, LocalStep, Tempering
from annealvi.models.lda import inverses
from annealvi.models.lda.block import Call, Local, lengths
from annealvi.models.lda.buffers import Buffers
from annealvi.models.lda.document_step import DocumentStep, energy_of_words
from annealvi.models.lda.documents import Documents
from annealvi.models.lda.learned_priors import LearnedPriors
from annealvi.models.lda.log_partition import DocumentPartition
from annealvi.models.lda.topics import Statistics, Topics


class Parts(Protocol):
    """What the local step needs of a model; :class:`annealvi.models.lda.LDA` describes them."""

    topics: Topics
    documents: Documents
    partition: DocumentPartition | None
    learned_priors: LearnedPriors | None
    buffers: Buffers

    @property
    def n_full_steps(self) -> int:
        """Number of steps of the topics with rho = 1."""


def fit_batch(
    model: Parts, batch: Batch, tempering: Tempering, moments: bool, rng: RandomState | None
) -> LocalStep:
    """Fit gamma and phi of a batch of documents; see :meth:`annealvi.models.lda.LDA.local_step`."""
    step = _Step(model, batch, tempering, rng)
    if tempering.rule is not None:
        return step.under_rule(tempering.rule, moments)
    if moments:
        return step.with_moments()
    return step.plain()


class _Step:
    """The buffers of a step, the arguments that its blocks share, and b of each document."""

    def __init__(
        self, model: Parts, batch: Batch, tempering: Tempering, rng: RandomState | None
    ) -> None:
        self.model, self.batch, self.tempering, self.rng = model, batch, tempering, rng
        topics = model.topics
        topics.notice_writes()
        _ = topics.sums  # computing these may change the version
        shape = (topics.n_features, topics.width, topics.dtype)
        self.statistics: Statistics
        weights, work, self.statistics = model.buffers.ready(*shape, topics.n_threads)
        weights.match(topics.version)
        self.statistics.clear()
        n_samples = batch.rows.stop - batch.rows.start
        self.inverse = inverses.of_documents(tempering, n_samples, topics.dtype)
        if model.learned_priors is not None:
            model.learned_priors.begin(tempering)
        documents = model.documents
        alpha, options = documents.effective_alpha(tempering), documents.options
        own = options.start == "random", options.sparsity(tempering), options.relaxation(tempering)
        self.call = Call(batch.data, weights, work, float(self.inverse[0]), alpha, *own)

    def plain(self) -> LocalStep:
        """The step without energies."""
        for rows, _, gamma, b in self._blocks():
            wanted = Local(self.statistics, deferred=rows == self.batch.rows)
            self._fit(rows, gamma, b, wanted)
        return LocalStep(self.statistics)

    def with_moments(self) -> LocalStep:
        """The step with the energies that a learned temperature needs, and log C(T).

        If log C is computed, only the batch's total energy is needed, which is cheaper.  It is
        computed from gamma - alpha = b sum_v n_v phi_v, so documents must be fitted first.
        """
        model, batch, statistics, call = self.model, self.batch, self.statistics, self.call
        inverse, partition = self.inverse, model.partition
        if partition is not None:
            partition.refresh(model.topics)
        uniform = bool(np.all(inverse == inverse[0]))
        of_batch = uniform and partition is not None and model.documents.options.max_iter > 0
        n_words = lengths(batch.data, batch.rows)
        energy = None if of_batch else np.zeros(len(inverse))
        word_energy = np.empty(model.topics.n_features) if uniform else None
        log_partition: Any = 0.0
        from_theta = 0.0
        gammas = []
        for rows, local, gamma, b in self._blocks():
            own = None if energy is None else energy[local]
            self._fit(rows, gamma, b, Local(statistics, energy=own, word_energy=word_energy))
            if partition is not None:
                log_c, theta = partition.of_batch(
                    gamma, call.alpha, n_words[local], model.topics.n_threads
                )
                log_partition, from_theta = log_partition + log_c, from_theta + theta
            gammas.append(gamma)
        of_words = 0.0 if word_energy is None else float(word_energy[statistics.words()].sum())
        step = DocumentStep(statistics, float(n_words.sum()))
        if partition is not None:
            step.log_partition = log_partition
        if energy is None:
            step.energy = from_theta / call.b0 + of_words
            return step
        step.energy = energy
        step.inverse_used = inverse
        step.bound = lambda: model.documents.bound(
            batch.data[batch.rows],
            np.concatenate(gammas),
            Tempering(inverse, self.tempering.form),
        )
        if uniform:
            step.energy_of_words = of_words
            made = model.n_full_steps
            step.moved = lambda: (
                None
                if model.n_full_steps == made
                else energy_of_words(statistics, model.topics, call.b0) - of_words
            )
        return step

    def under_rule(self, rule: LocalRule, moments: bool) -> LocalStep:
        """The step in which a rule gives each document its own temperature."""
        model, call = self.model, self.call
        partition = model.partition
        if partition is None or not np.array_equal(partition.grid.inverses, rule.inverses):
            partition = DocumentPartition(rule.inverses)
        partition.refresh(model.topics)
        n_words = lengths(self.batch.data, self.batch.rows)
        log_partition: Any = 0.0
        for rows, local, gamma, b in self._blocks():
            model.documents.heat(call, rows, gamma, b, rule, partition)
            self._fit(rows, gamma, b, Local(self.statistics))
            if moments:
                log_c, _ = partition.of_batch(
                    gamma, call.alpha, n_words[local], model.topics.n_threads
                )
                log_partition = log_partition + log_c
        step = DocumentStep(self.statistics, float(n_words.sum()))
        step.inverse = self.inverse
        if moments:
            step.log_partition = log_partition
        return step

    def _blocks(self) -> Iterator[tuple[slice, slice, NDArray, NDArray]]:
        """Yield the blocks of the batch: rows, rows in the batch, gamma at its start, and b."""
        documents, begin = self.model.documents, self.batch.rows.start
        for rows in documents.blocks(self.batch.rows):
            local = slice(rows.start - begin, rows.stop - begin)
            yield rows, local, documents.start(rows, self.rng), self.inverse[local]

    def _fit(self, rows: slice, gamma: NDArray, b: NDArray, wanted: Local) -> None:
        self.model.documents.fit_block(self.call, rows, gamma, b, wanted)
        if self.model.learned_priors is not None:
            self.model.learned_priors.add(gamma, self.call.alpha)
