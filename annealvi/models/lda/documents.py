"""Inference of documents at given topics: gamma and phi, the bound, energies and log C(T)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Self

import numpy as np
from numpy.random import RandomState
from numpy.typing import ArrayLike, NDArray

from annealvi.model import UNTEMPERED, LocalRule, Tempering
from annealvi.models.dirichlet import negative_kl
from annealvi.models.lda import inverses
from annealvi.models.lda.block import (
    Call,
    Local,
    LocalOptions,
    Workspace,
    lengths,
    run_kernels,
)
from annealvi.models.lda.log_partition import DocumentPartition
from annealvi.models.lda.starts import gamma_draws
from annealvi.models.lda.topics import Topics, TopicWeights
from annealvi.threads import shallow

#: Bytes of unnormalised exp(E log theta) of a block: about the level 2 cache, because statistics
#: read them word by word.  A block has so many documents nevertheless, if these take no more than
#: LARGEST_BLOCK bytes: the statistics of each block are added to those of all.
BLOCK_BYTES, BLOCK_DOCUMENTS, LARGEST_BLOCK = 1 << 20, 4096, 1 << 23
#: Weights of topics are kept for later calls if they take at most so many bytes.
SHARED_BYTES = 1 << 25


class Documents:
    """Inference of the documents' topic proportions theta, for given topics.

    Of the documents only gamma is kept, and only with ``start="warm"``.
    """

    def __init__(self, topics: Topics, alpha: ArrayLike, options: LocalOptions) -> None:
        self.topics = topics
        self.set_alpha(alpha)
        self.options = options
        self.gamma: NDArray | None = None

    def copy(self, topics: Topics) -> Self:
        """Return the same inference at a copy of the topics."""
        copied = shallow(self)
        copied.topics, copied.gamma = topics, None
        return copied

    def set_alpha(self, alpha: ArrayLike) -> None:
        """Use another prior from the next call on."""
        self.alpha: NDArray[np.float64] = np.broadcast_to(
            np.array(alpha, dtype=np.float64), (self.topics.n_topics,)
        )

    def effective_alpha(self, tempering: Tempering) -> NDArray[np.float64]:
        """alpha or, under the posterior form, (alpha + T - 1) / T."""
        if tempering.form == "likelihood":
            return self.alpha
        b = tempering.mean
        return b * self.alpha + (1.0 - b)

    # ---------------------------------------------------------- after training

    def infer(
        self, X: Any, tempering: Tempering = UNTEMPERED, *, n_threads: int | None = None
    ) -> NDArray:
        """Infer gamma of documents, each started from ones."""
        gamma = np.ones((X.shape[0], self.topics.n_topics), dtype=self.topics.dtype)
        self.fit(X, gamma, tempering, n_threads, exact=self.options.start == "random")
        return gamma

    def energies(
        self,
        X: Any,
        gamma: NDArray,
        tempering: Tempering = UNTEMPERED,
        *,
        n_threads: int | None = None,
    ) -> NDArray[np.float64]:
        """Energies L_d = +E_q[log p(w_d, z_d | theta_d, beta)] at a given gamma, for its phi."""
        gamma = np.array(gamma, dtype=self.topics.dtype, order="C")
        energy = np.zeros(X.shape[0])
        self.fit(X, gamma, tempering, n_threads, exact=False, max_iter=0, energy=energy)
        return energy

    def log_partition(
        self,
        X: Any,
        gamma: NDArray,
        inverse: NDArray[np.float64],
        *,
        n_threads: int | None = None,
    ) -> NDArray[np.float64]:
        """log C_d(b) of documents at a given gamma."""
        blocks = self._log_partition_blocks(X, gamma, inverse, n_threads)
        return np.concatenate([np.empty((0, len(inverse))), *blocks])

    def posterior_log_partition(
        self,
        inverse: NDArray[np.float64],
        data: Any,
        gamma: NDArray | None = None,
        *,
        n_threads: int | None = None,
    ) -> NDArray[np.float64]:
        """log C(b) of all documents together at the current q."""
        if gamma is None:
            gamma = self.infer(data, n_threads=n_threads)
        total = np.zeros(len(inverse))
        for log_c in self._log_partition_blocks(data, gamma, inverse, n_threads):
            total += log_c.sum(axis=0)
        return total

    def _log_partition_blocks(
        self, X: Any, gamma: NDArray, inverse: NDArray[np.float64], n_threads: int | None
    ) -> Iterator[NDArray[np.float64]]:
        """log C_d(b) of documents, block by block."""
        partition = DocumentPartition(inverse)
        partition.refresh(self.topics)
        for rows in self.blocks(slice(0, X.shape[0])):
            yield partition(gamma[rows], lengths(X, rows), self._threads(n_threads))

    def bound(
        self,
        X: Any,
        gamma: NDArray,
        tempering: Tempering = UNTEMPERED,
        *,
        n_threads: int | None = None,
    ) -> NDArray[np.float64]:
        """Each document's part of the annealed ELBO at a given gamma and its best phi."""
        gamma = np.array(gamma, dtype=self.topics.dtype, order="C")
        bound = np.zeros(X.shape[0])
        self.fit(X, gamma, tempering, n_threads, exact=False, max_iter=0, bound=bound)
        bound += negative_kl(self.effective_alpha(tempering), gamma, self._threads(n_threads))
        return bound

    def inferred_bound(
        self,
        X: Any,
        tempering: Tempering = UNTEMPERED,
        at: Tempering = UNTEMPERED,
        *,
        n_threads: int | None = None,
        gamma: NDArray | None = None,
    ) -> float:
        """The sum of :meth:`bound` over documents whose gamma is inferred, block by block."""
        total = 0.0
        exact = self.options.start == "random"
        # a fit ends with the normalisers of phi that its bound needs, if there is no eps
        same = tempering.form == at.form and np.array_equal(tempering.inverse, at.inverse)
        at_once = not exact and tempering.rule is None and same
        blocks = self.blocks(slice(0, X.shape[0]))
        most = max((rows.stop - rows.start for rows in blocks), default=0)
        room = np.empty((most, self.topics.n_topics), dtype=self.topics.dtype)
        for rows in blocks:
            some, own = X[rows], inverses.of_rows(at, rows)
            if at_once:
                fitted = room[: some.shape[0]]
                fitted[:] = 1
                part = np.empty(len(fitted))
                self.fit(some, fitted, own, n_threads, exact=False, bound=part)
                part += negative_kl(self.effective_alpha(at), fitted, self._threads(n_threads))
            else:
                fitted = self.infer(some, inverses.of_rows(tempering, rows), n_threads=n_threads)
                part = self.bound(some, fitted, own, n_threads=n_threads)
            total += float(np.sum(part))
            if gamma is not None:
                gamma[rows] = fitted
        return total

    def fit(
        self,
        X: Any,
        gamma: NDArray,
        tempering: Tempering,
        n_threads: int | None,
        *,
        exact: bool,
        max_iter: int | None = None,
        bound: NDArray[np.float64] | None = None,
        energy: NDArray[np.float64] | None = None,
        sparsity: float = 0.0,
    ) -> None:
        """Fit gamma of documents in place, block by block, outside of training."""
        if max_iter is None:
            max_iter = self.options.inference_iter
        if X.shape[0] == 0:
            return
        self.topics.notice_writes()
        inverse = inverses.of_documents(tempering, X.shape[0], self.topics.dtype)
        rule = tempering.rule
        want_logs = energy is not None or rule is not None or bool(np.any(inverse != inverse[0]))
        weights = self._shared_weights(float(inverse[0]), exact, want_logs)
        work = Workspace(*self._shape, self._threads(n_threads))
        alpha = self.effective_alpha(tempering)
        call = Call(X, weights, work, float(inverse[0]), alpha, exact, sparsity)
        if rule is not None:
            partition = DocumentPartition(rule.inverses)
            partition.refresh(self.topics)
        for rows in self.blocks(slice(0, X.shape[0])):
            if rule is not None:
                self.heat(call, rows, gamma[rows], inverse[rows], rule, partition)
            wanted = Local(
                log_normalizer=None if bound is None else bound[rows],
                energy=None if energy is None else energy[rows],
            )
            self.fit_block(call, rows, gamma[rows], inverse[rows], wanted, max_iter)

    def _shared_weights(self, b: float, exact: bool, want_logs: bool) -> TopicWeights:
        """Weights that calls at the same temperature share, in all threads, unless large."""
        n_features, width, dtype = self._shape
        if want_logs or n_features * width * dtype.itemsize > SHARED_BYTES:
            return TopicWeights(n_features, width, dtype, bounded=True)
        with self.topics.lock:
            _ = self.topics.sums  # computing these may change the topics' version
            shared, key = self.topics.weights, (b, exact)
        weights = shared.get(key)
        if weights is None:
            for other in list(shared):
                if other[0] != b:  # at most the weights of transform and those of score
                    shared.pop(other, None)
            weights = shared.setdefault(key, TopicWeights(*self._shape))
        return weights

    # ------------------------------------- block by block, in training and after

    def blocks(self, rows: slice) -> list[slice]:
        """Split rows into blocks, the same for any n_threads; see BLOCK_BYTES."""
        row = self.topics.width * self.topics.dtype.itemsize
        size = max(64, min(max(BLOCK_BYTES // row, BLOCK_DOCUMENTS), LARGEST_BLOCK // row))
        return [
            slice(start, min(start + size, rows.stop))
            for start in range(rows.start, rows.stop, size)
        ]

    def start(self, rows: slice, rng: RandomState | None) -> NDArray:
        """gamma at the start of a training step."""
        shape, dtype = (rows.stop - rows.start, self.topics.n_topics), self.topics.dtype
        if self.options.start == "random":
            if rng is None:
                raise ValueError(
                    "Documents that start at random need a generator, and this fit has none: "
                    "assign `random_state_`."
                )
            return gamma_draws(rng, shape).astype(dtype, copy=False)
        if self.gamma is not None:
            return self.gamma[rows]
        return np.ones(shape, dtype=dtype)

    def fit_block(
        self,
        call: Call,
        rows: slice,
        gamma: NDArray,
        inverse: NDArray,
        wanted: Local,
        max_iter: int | None = None,
    ) -> None:
        """Fit gamma of a block of documents in place, and write the other wanted outputs."""
        topics = self.topics
        index = call.work.indices.of_block(call.X, rows)
        mixed = bool(np.any(inverse != call.b0))

        def refresh() -> None:
            with topics.lock:
                call.weights.refresh(
                    index.words,
                    topics.rows(),
                    topics.sums,
                    topics.estimate,
                    call.b0,
                    call.exact,
                    call.work.n_threads,
                    mixed or wanted.energy is not None,
                )

        run_kernels(
            call.X,
            rows,
            gamma,
            inverse,
            call.b0,
            call.alpha,
            index,
            call.weights,
            call.work,
            wanted,
            self.options,
            exact=call.exact,
            mixed=mixed,
            refresh=refresh,
            sparsity=call.sparsity,
            relaxation=call.relaxation,
            max_iter=max_iter,
        )

    def heat(
        self,
        call: Call,
        rows: slice,
        gamma: NDArray,
        inverse: NDArray,
        rule: LocalRule,
        partition: DocumentPartition,
    ) -> None:
        """Fit documents and their temperatures in turn, in place.

        All documents get the same number of rounds, so results do not depend on the batch.
        """
        energy, n_words = np.zeros(len(gamma)), lengths(call.X, rows)
        for _ in range(rule.rounds):
            self.fit_block(call, rows, gamma, inverse, Local(energy=energy))
            log_c = partition(gamma, n_words, call.work.n_threads)
            inverse[:] = inverses.held(rule(energy, n_words, log_c), inverse.dtype)

    # ----------------------------------------------------------------- details

    @property
    def _shape(self) -> tuple[int, int, np.dtype]:
        return self.topics.n_features, self.topics.width, self.topics.dtype

    def _threads(self, n_threads: int | None) -> int:
        return self.topics.n_threads if n_threads is None else n_threads

    def release_buffers(self) -> None:
        """Release what only training needs."""
        self.gamma = None

    def __getstate__(self) -> dict[str, Any]:
        return vars(self) | {"gamma": None}
