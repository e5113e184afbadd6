r"""Inference of documents at given topics: gamma and phi, the bound, energies and log C(T).

**Documents of few topics.**

Near T = 1 the mean field spreads a document over too many topics.  The ``"sparse"`` estimate puts

.. math::
   f(\gamma) = \psi(\gamma) - \kappa / \gamma

in the place of psi(gamma) in the local step:

.. math::
   \phi_{vk} \propto \exp b (f(\gamma_k) + \log \beta_{kv}), \quad
   \gamma_k = \alpha_k + b \sum_v n_v \phi_{vk}

With kappa = 1/2, exp f(gamma) is gamma - 1 + O(1/gamma), the mode of Dir(gamma) for large gamma,
and it stays positive for small gamma, where that mode does not exist.

**What it ascends.**  Put gamma = alpha + b n with n_k = sum_v n_v phi_vk.  The mean field's bound
of a document is then a function of phi alone.  f is the derivative of
h(gamma) = log Gamma(gamma) - kappa log gamma, and the fixed points above are those of

.. math::
   J(\phi) = \sum_{vk} n_v \phi_{vk} (b \log \beta_{kv} - \log \phi_{vk})
       + \sum_k [h(\gamma_k) - h(\alpha_k)] + \mathrm{const},

the bound less kappa sum_k log(gamma_k / alpha_k).  With kappa = 1/2 a topic that a document uses
costs half the logarithm of its words there, plus half that of 1 / alpha.  A parameter costs half a
logarithm under BIC and minimum description length too (Figueiredo and Jain 2002 use that cost to
remove components of a mixture).
h is convex, because h'' = psi'(gamma) + kappa / gamma^2 > 0.  So J is at least

.. math::
   Q(\phi; \gamma) = \sum_{vk} n_v \phi_{vk} (b \log \beta_{kv} - \log \phi_{vk})
       + \sum_k [h(\gamma_k) - h(\alpha_k) + f(\gamma_k) (\alpha_k + b n_k - \gamma_k)],

with equality at gamma = alpha + b n.  An iteration maximises Q over phi at the present gamma.
Therefore no iteration lowers J, and no full step of the topics lowers sum_d J_d plus the topics'
part of the objective, at fixed T and kappa.  :func:`objective` is that sum with the largest Q of
each document.  At kappa = 0 it is F(b) of :mod:`annealvi.models.lda.model`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Self

import numpy as np
from numpy.random import RandomState
from numpy.typing import ArrayLike, NDArray

from annealvi.model import UNTEMPERED, LocalRule, LocalStep, Tempering
from annealvi.models.dirichlet import negative_kl
from annealvi.models.lda import inverses
from annealvi.models.lda.priors import DocumentPartition
from annealvi.models.lda.starts import gamma_draws
from annealvi.models.lda.topics import Statistics, Topics, TopicWeights
from annealvi.models.lda.workspace import (
    Call,
    Local,
    LocalOptions,
    Workspace,
    lengths,
    run_kernels,
)
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


class DocumentStep(LocalStep):
    """A local step whose units are words."""

    unit = "word"

    def __init__(self, statistics: Statistics, n_units: float) -> None:
        self.statistics = statistics
        self.n_units = n_units
        self.log_partition = self.inverse = None
        self.bound: Callable[[], NDArray[np.float64]] | None = None
        self.moved: Callable[[], float | None] | None = None
        self.inverse_used: NDArray | None = None
        self.energy_of_words: float | None = None
        self._energy: NDArray[np.float64] | float | None = None

    @property
    def energy(self) -> NDArray[np.float64] | float | None:  # type: ignore[override]
        added = None if self.moved is None else self.moved()
        if added is None or self._energy is None:
            return self._energy
        return float(np.sum(self._energy)) + added

    @energy.setter
    def energy(self, value: NDArray[np.float64] | float | None) -> None:
        self._energy = value

    @property
    def entropy(self) -> NDArray[np.float64] | None:  # type: ignore[override]
        """Entropy of phi minus KL(theta), for each document; computed when it is read."""
        if self.bound is None or self.inverse_used is None or self._energy is None:
            return None
        return self.bound() - self.inverse_used * self._energy


def energy_of_words(statistics: Statistics, topics: Topics, b: float) -> float:
    """sum_dkv n_dv phi_dvk E log beta_kv of statistics at one b, at the current topics."""
    K, total, lam = topics.n_topics, 0.0, topics.lam
    words = statistics.words()
    for some in np.array_split(words, max(1, 8 * K * len(words) // BLOCK_BYTES)):
        logs = topics.logs(lam[some, :K])
        total += float(np.einsum("vk,vk->", statistics.rows(some, K), logs))
    return total / b


def objective(
    documents: Documents, X: Any, gamma: NDArray | None, tempering: Tempering
) -> NDArray[np.float64]:
    """Each document's part of the objective of training, the largest Q at a gamma."""
    shape, dtype = (X.shape[0], documents.topics.n_topics), documents.topics.dtype
    sparsity, alpha = documents.options.sparsity(tempering), documents.effective_alpha(tempering)
    bound = np.zeros(X.shape[0])
    if gamma is None:
        gamma = np.ones(shape, dtype)
        documents.fit(X, gamma, tempering, None, exact=False, sparsity=sparsity)
    gamma = np.array(gamma, dtype=dtype, order="C")
    documents.fit(
        X, gamma, tempering, None, exact=False, max_iter=0, bound=bound, sparsity=sparsity
    )
    bound += negative_kl(alpha, gamma, documents.topics.n_threads)
    if sparsity > 0:
        gamma = gamma.astype(np.float64)
        bound += sparsity * np.sum((gamma - alpha) / gamma - np.log(gamma / alpha), axis=1)
    return bound
