r"""Inference of topic proportions, for given topics: gamma, phi, the bound, energies, log C(T).

**Documents with few topics.**

Near T = 1 mean-field inference uses too many topics for a document.  The ``"sparse"`` estimate
replaces psi(gamma) in the local step by

.. math::
   f(\gamma) = \psi(\gamma) - \kappa / \gamma

so that the updates are

.. math::
   \phi_{vk} \propto \exp b (f(\gamma_k) + \log \beta_{kv}), \quad
   \gamma_k = \alpha_k + b \sum_v n_v \phi_{vk}

With kappa = 1/2, exp f(gamma) is gamma - 1 + O(1/gamma).  For large gamma, exp f(gamma) is thus
proportional to the mode of Dir(gamma).  For small gamma, where no such mode exists, it is positive.

**The objective that these updates increase.**  Put gamma = alpha + b n with n_k = sum_v n_v phi_vk.
The mean-field bound of a document is then a function of phi alone.  f is the derivative of
h(gamma) = log Gamma(gamma) - kappa log gamma, and the updates above have the fixed points of

.. math::
   J(\phi) = \sum_{vk} n_v \phi_{vk} (b \log \beta_{kv} - \log \phi_{vk})
       + \sum_k [h(\gamma_k) - h(\alpha_k)] + \mathrm{const},

which is the bound minus kappa sum_k log(gamma_k / alpha_k).  With kappa = 1/2, each topic k that a
document uses lowers J by about (log n_k - log alpha_k) / 2.  BIC and minimum description length
have a similar cost for each parameter (Figueiredo and Jain 2002 use it to remove components of a
mixture).  h is convex, because h'' = psi'(gamma) + kappa / gamma^2 > 0.  So J is at least

.. math::
   Q(\phi; \gamma) = \sum_{vk} n_v \phi_{vk} (b \log \beta_{kv} - \log \phi_{vk})
       + \sum_k [h(\gamma_k) - h(\alpha_k) + f(\gamma_k) (\alpha_k + b n_k - \gamma_k)],

with equality at gamma = alpha + b n.  An iteration maximises Q over phi at the present gamma.
Therefore, at fixed T and kappa, no iteration lowers J, and no update of the topics with step size 1
lowers the objective, sum_d J_d plus :meth:`Topics.bound`.  :meth:`Documents.objective` returns the
largest Q of each document.  At kappa = 0 the objective is F(b) of :mod:`annealvi.models.lda.model`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Self

import numpy as np
from numpy.random import RandomState
from numpy.typing import ArrayLike, NDArray

from annealvi._kernels import lda as kernels
from annealvi._kernels import special
from annealvi.matrices import lengths
from annealvi.model import UNTEMPERED, LocalRule, Tempering
from annealvi.models.dirichlet import negative_kl
from annealvi.models.lda.device import DeviceWork
from annealvi.models.lda.priors import DocumentPartition
from annealvi.models.lda.starts import gamma_draws
from annealvi.models.lda.topics import Topics, TopicWeights
from annealvi.models.lda.workspace import (
    Call,
    Local,
    LocalOptions,
    Workspace,
    held,
    inverse_of_each,
    of_rows,
)
from annealvi.threads import shallow

#: The unnormalised exp(E log theta) of a block take about BLOCK_BYTES, the size of the level 2
#: cache, because statistics read them word by word.  A block has at least BLOCK_DOCUMENTS documents
#: if these take at most LARGEST_BLOCK bytes, because adding up the blocks takes time.
BLOCK_BYTES, BLOCK_DOCUMENTS, LARGEST_BLOCK = 1 << 20, 4096, 1 << 23
#: Most entries of a block, which takes 20 bytes for each entry.  The limit matters for long
#: documents such as cells, with thousands of entries.  It is higher in training, where the last
#: digits of results depend on blocks, so that it affects only the longest documents.
BLOCK_ENTRIES, TRAINING_ENTRIES = 1 << 20, 1 << 21
#: Weights of words are kept for later calls if they take at most this many bytes.
SHARED_BYTES = 1 << 25


class Documents:
    """Inference of the documents' topic proportions theta, for given topics.

    Nothing is kept between calls, except gamma with ``start="warm"``.
    """

    def __init__(self, topics: Topics, alpha: ArrayLike, options: LocalOptions) -> None:
        self.topics = topics
        self.set_alpha(alpha)
        self.options = options
        self.gamma: NDArray | None = None

    def copy(self, topics: Topics) -> Self:
        """Return an object with the same options for a copy of the topics."""
        copied = shallow(self)
        copied.topics, copied.gamma = topics, None
        return copied

    def set_alpha(self, alpha: ArrayLike) -> None:
        """Set the prior, which the next call uses."""
        given = np.array(alpha, dtype=np.float64)
        self.alpha: NDArray[np.float64] = np.broadcast_to(given, (self.topics.n_topics,))

    def effective_alpha(self, tempering: Tempering) -> NDArray[np.float64]:
        """The prior alpha or, with ``form="posterior"``, (alpha + T - 1) / T."""
        b = tempering.of_priors
        return b * self.alpha + (1.0 - b)

    # ---------------------------------------------------------- after training

    def infer(
        self, X: Any, tempering: Tempering = UNTEMPERED, *, n_threads: int | None = None
    ) -> NDArray:
        """Infer gamma of documents; each gamma starts at ones."""
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
        """The energies L_d = +E_q[log p(w_d, z_d | theta_d, beta)] at gamma and its best phi."""
        gamma = np.array(gamma, dtype=self.topics.dtype, order="C")
        energy = np.zeros(X.shape[0])
        self.fit(X, gamma, tempering, n_threads, exact=False, max_iter=0, energy=energy)
        return energy

    def posterior_log_partition(
        self,
        inverse: NDArray[np.float64],
        data: Any,
        gamma: NDArray | None = None,
        *,
        n_threads: int | None = None,
    ) -> NDArray[np.float64]:
        """log C(b) at the current q, summed over all documents."""
        if gamma is None:
            gamma = self.infer(data, n_threads=n_threads)
        partition, total = DocumentPartition(inverse), np.zeros(len(inverse))
        partition.refresh(self.topics)
        for rows in self.blocks(slice(0, data.shape[0])):
            log_c = partition(gamma[rows], lengths(data, rows), self._threads(n_threads))
            total += log_c.sum(axis=0)
        return total

    def bound(
        self,
        X: Any,
        gamma: NDArray,
        tempering: Tempering = UNTEMPERED,
        *,
        n_threads: int | None = None,
    ) -> NDArray[np.float64]:
        """Each document's part of the annealed ELBO at gamma and its best phi."""
        gamma = np.array(gamma, dtype=self.topics.dtype, order="C")
        bound = np.zeros(X.shape[0])
        self.fit(X, gamma, tempering, n_threads, exact=False, max_iter=0, bound=bound)
        bound += negative_kl(self.effective_alpha(tempering), gamma)
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
        """Infer gamma of documents, block by block, and return the sum of :meth:`bound`."""
        total = 0.0
        exact = self.options.start == "random"
        # without eps, a fit also computes the normalisers of phi that its bound needs
        same = tempering.form == at.form and np.array_equal(tempering.inverse, at.inverse)
        at_once = not exact and tempering.rule is None and same
        blocks = [*self.blocks(slice(0, X.shape[0]), X.indptr, TRAINING_ENTRIES)]
        most = max((rows.stop - rows.start for rows in blocks), default=0)
        room = np.empty((most, self.topics.n_topics), dtype=self.topics.dtype)
        for rows in blocks:
            some, own = X[rows], of_rows(at, rows)
            if at_once:
                fitted = room[: some.shape[0]]
                fitted[:] = 1
                part = np.empty(len(fitted))
                self.fit(some, fitted, own, n_threads, exact=False, bound=part)
                part += negative_kl(self.effective_alpha(at), fitted)
            else:
                fitted = self.infer(some, of_rows(tempering, rows), n_threads=n_threads)
                part = self.bound(some, fitted, own, n_threads=n_threads)
            total += float(np.sum(part))
            if gamma is not None:
                gamma[rows] = fitted
        return total

    def objective(self, X: Any, tempering: Tempering, gamma: NDArray | None = None) -> float:
        """The part of the training objective that documents contribute: the largest Q at gamma."""
        dtype, alpha = self.topics.dtype, self.effective_alpha(tempering)
        options: Any = dict(exact=False, sparsity=self.options.sparsity(tempering))
        bound = np.zeros(X.shape[0])
        if gamma is None:
            gamma = np.ones((X.shape[0], self.topics.n_topics), dtype)
            self.fit(X, gamma, tempering, None, **options)
        gamma = np.array(gamma, dtype=dtype, order="C")
        self.fit(X, gamma, tempering, None, max_iter=0, bound=bound, **options)
        bound += negative_kl(alpha, gamma)
        if options["sparsity"] > 0:
            gamma = gamma.astype(np.float64)
            penalty = np.sum((gamma - alpha) / gamma - special.log(gamma / alpha), axis=1)
            bound += options["sparsity"] * penalty
        return float(np.sum(bound))

    def moments(
        self,
        X: Any,
        tempering: Tempering,
        inverse: NDArray[np.float64],
        gamma: NDArray | None = None,
    ) -> NDArray[np.float64]:
        """The bound, the energy, and log C at each of M b, all at one gamma: 2 + M numbers."""
        if gamma is None:
            gamma = self.infer(X, tempering)
        sums = [self.bound(X, gamma, tempering).sum(), self.energies(X, gamma, tempering).sum()]
        log_c = np.zeros(0)
        if len(inverse):
            log_c = self.posterior_log_partition(inverse, X, gamma)
        return np.concatenate([sums, log_c])

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
        inverse = inverse_of_each(tempering, X.shape[0], self.topics.dtype)
        rule = tempering.rule
        want_logs = energy is not None or rule is not None or bool(np.any(inverse != inverse[0]))
        there, n, b0 = self.topics.on_device, self._threads(n_threads), float(inverse[0])
        work: Any = DeviceWork(there.device, n) if there else Workspace(*self.topics.shape, n)
        weights = self._shared_weights(b0, exact, want_logs) if there is None else None
        alpha = self.effective_alpha(tempering)
        call = Call(X, self.topics, weights, work, b0, alpha, exact, sparsity)
        if rule is not None:
            partition = DocumentPartition(rule.inverses)
            partition.refresh(self.topics)
        most = BLOCK_ENTRIES if rule is None else TRAINING_ENTRIES  # a rule needs whole blocks
        for rows in self.blocks(slice(0, X.shape[0]), X.indptr, most):
            if rule is not None:
                self.heat(call, rows, gamma[rows], inverse[rows], rule, partition)
            wanted = Local(
                log_normalizer=None if bound is None else bound[rows],
                energy=None if energy is None else energy[rows],
            )
            self.fit_block(call, rows, gamma[rows], inverse[rows], wanted, max_iter)

    def _shared_weights(self, b: float, exact: bool, want_logs: bool) -> TopicWeights:
        """The weights of words at a temperature, which all threads share if they are small."""
        topics = self.topics
        n_features, width, dtype = topics.shape
        if want_logs or n_features * width * dtype.itemsize > SHARED_BYTES:
            return TopicWeights(*topics.shape, bounded=True)
        shared, key = topics.weights, (b, exact)
        weights = shared.get(key)
        if weights is None:
            for other in list(shared):
                if other[0] != b:  # at most two are kept: the weights of transform and of score
                    shared.pop(other, None)
            weights = shared.setdefault(key, TopicWeights(*topics.shape))
        return weights

    # ------------------------------------- block by block, in training and after

    def blocks(self, rows: slice, indptr: NDArray | None = None, most: int = 0) -> Iterator[slice]:
        """Split rows into blocks, which do not depend on n_threads; see BLOCK_BYTES.

        If `indptr` is given, a block has at most `most` entries, unless one document has more.
        """
        row = self.topics.width * self.topics.dtype.itemsize
        size = max(64, min(max(BLOCK_BYTES // row, BLOCK_DOCUMENTS), LARGEST_BLOCK // row))
        if self.topics.on_device is not None:
            size = max(1, self.topics.on_device.block_bytes // row)
        for begin in range(rows.start, rows.stop, size):
            start, end = begin, min(begin + size, rows.stop)
            while start < end:
                stop = end
                if indptr is not None and int(indptr[end]) - int(indptr[start]) > most:
                    wanted = indptr.dtype.type(int(indptr[start]) + most)
                    stop = max(start + 1, int(np.searchsorted(indptr, wanted, "right")) - 1)
                yield slice(start, stop)
                start = stop

    def start(self, rows: slice, rng: RandomState | None) -> NDArray:
        """The gamma from which a training step starts."""
        shape, dtype = (rows.stop - rows.start, self.topics.n_topics), self.topics.dtype
        if self.options.start == "random":
            if rng is None:
                raise ValueError(
                    "The topic proportions of documents cannot start at random, because this "
                    "model has no random number generator. Set its attribute 'random_state_'."
                )
            return gamma_draws(rng, shape).astype(dtype, copy=False)
        if self.gamma is not None:
            return self.gamma[rows]
        return np.ones(shape, dtype=dtype)

    def fit_block(
        self,
        call: Call,
        rows: slice,
        gamma: Any,
        inverse: NDArray,
        wanted: Local,
        max_iter: int | None = None,
    ) -> None:
        """Fit gamma of a block of documents in place, and write the other wanted outputs."""
        options, dtype, training = self.options, self.topics.dtype, wanted.statistics is not None
        by_topic, tolerance = options.token_tolerance is None, options.token_tolerance
        tolerance = options.tolerance if tolerance is None else tolerance
        omega, factor = call.relaxation
        rule = kernels.DocumentOptions(
            eps=np.finfo(dtype).eps if call.exact else 0.0,
            sparsity=call.sparsity,
            relaxation=omega,
            tolerance=factor * tolerance,
            by_topic=by_topic,
            max_iter=options.max_iter if max_iter is None else max_iter,
            least_share=options.least_share(dtype, training),
            want_statistics=training,
        )
        call.work.fit_block(call, rows, gamma, inverse, rule, wanted)

    def heat(
        self,
        call: Call,
        rows: slice,
        gamma: NDArray,
        inverse: NDArray,
        rule: LocalRule,
        partition: DocumentPartition,
    ) -> None:
        """Update gamma and the documents' inverse temperatures in turn, and overwrite both arrays.

        All documents get the same number of rounds, so no document's result depends on the others.
        """
        energy, n_words = np.zeros(len(gamma)), lengths(call.X, rows)
        for _ in range(rule.rounds):
            self.fit_block(call, rows, gamma, inverse, Local(energy=energy))
            log_c = partition(gamma, n_words, call.work.n_threads)
            inverse[:] = held(rule(energy, n_words, log_c), inverse.dtype)

    # ----------------------------------------------------------------- details

    def _threads(self, n_threads: int | None) -> int:
        return self.topics.n_threads if n_threads is None else n_threads

    def release_buffers(self) -> None:
        """Release arrays that only training needs."""
        self.gamma = None

    def __getstate__(self) -> dict[str, Any]:
        return vars(self) | {"gamma": None}
