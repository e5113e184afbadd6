r"""Engines compute the steps of LDA and the questions about documents, for given data and topics.

An engine has threads and buffers, and nothing that a fit learns: that is the :class:`LDA` which is
passed to each method.  :class:`Engine` computes what is common to all; `cpu.py`, `gpu.py` and
`shards.py` have the three engines.

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
lowers the objective, sum_d J_d plus :meth:`LDA.bound`.  :meth:`Engine.objective` returns the
largest Q of each document.  At kappa = 0 the objective is F(b) of :mod:`annealvi.models.lda.model`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from types import SimpleNamespace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.random import RandomState
from numpy.typing import NDArray

from annealvi._kernels import special
from annealvi.checks import TINY
from annealvi.matrices import lengths
from annealvi.model import UNTEMPERED, Batch, LocalStep, Tempering
from annealvi.models.dirichlet import negative_kl
from annealvi.models.lda.model import LDA, read_only
from annealvi.models.lda.priors import (
    DocumentPartition,
    learned_alpha,
    learned_eta,
    learns_at,
    mean_of_logs,
    prior_sums,
)
from annealvi.models.lda.starts import gamma_draws

#: The unnormalised exp(E log theta) of a block take about BLOCK_BYTES, the size of the level 2
#: cache, because statistics read them word by word.  A block has at least BLOCK_DOCUMENTS documents
#: if these take at most LARGEST_BLOCK bytes, because adding up the blocks takes time.
BLOCK_BYTES = 1 << 20
BLOCK_DOCUMENTS = 4096
LARGEST_BLOCK = 1 << 23
#: Most entries of a block, which takes 20 bytes for each entry.  The limit matters for long
#: documents such as cells, with thousands of entries.  It is higher in training and for the bound,
#: where the last digits of results depend on blocks, so that it affects only the longest documents.
BLOCK_ENTRIES = 1 << 20
TRAINING_ENTRIES = 1 << 21
#: Least value of lambda in the posterior form, because its online steps may lower lambda too far.
POSTERIOR_FLOOR = 1e-10
#: The sparsity kappa at T = 1 if documents are sparse, and the T below which kappa is not 0.
SPARSITY = 0.5
SPARSE_BELOW = 1.5
#: With over-relaxation and T below RELAXED_BELOW, each step of gamma after the first is RELAXATION
#: times as long as the step to the coordinate optimum.  Short steps then mean that gamma is nearer
#: to convergence, so the tolerance is multiplied by RELAXED_TOLERANCE.
RELAXATION = 1.5
RELAXED_TOLERANCE = 2.0
RELAXED_BELOW = 1.2
#: Topics with less than this share of a word may be skipped: in float64, in float32 after training,
#: in float32 in training, and with scikit-learn's arithmetic.  In float64, skipping topics changes
#: gamma by less than 1e-6, or by less than 1e-10 with scikit-learn's arithmetic.
LEAST_SHARE = 1e-9
SINGLE_SHARE = 1e-4
TRAINING_SHARE = 1e-2
EXACT_SHARE = 1e-12


@dataclass(frozen=True)
class EStep:
    """What a temperature and the parameters mean for the local step of some documents.

    The kernels read these attributes; see annealvi_documents in kernels.h.
    """

    tempering: Tempering
    #: The inverse temperature of each document, and that of the weights of words.
    b: NDArray
    b0: float
    #: Prior of the documents' topic proportions, or (alpha + T - 1)/T with ``form="posterior"``.
    alpha: NDArray
    #: Whether to compute scikit-learn's numbers, which include its eps.
    exact: bool
    eps: float
    max_iter: int
    #: See :class:`annealvi.models.lda.model.LocalOptions`.
    tolerance: float
    by_topic: bool
    least_share: float
    #: The kappa of the derivation above, which is 0 for mean-field inference.
    sparsity: float = 0.0
    #: The step length omega of gamma.
    relaxation: float = 1.0
    want_statistics: bool = False

    @classmethod
    def of(
        cls,
        model: LDA,
        tempering: Tempering,
        n_samples: int,
        *,
        training: bool = False,
        exact: bool = False,
        max_iter: int | None = None,
    ) -> Self:
        """The local step in training or, by default, that of inference until convergence.

        If `exact`, scikit-learn's numbers are computed; `max_iter` replaces the user's limit.
        """
        options = model.options
        b = inverse_of_each(tempering, n_samples, model.dtype)
        limit = options.max_iter
        if options.inference_iter is not None and not training:
            limit = options.inference_iter
        tolerance = float(options.tolerance)
        relaxation = 1.0
        # `mean` is that of 1/T, so the condition is T < RELAXED_BELOW
        if training and options.over_relaxed and tempering.mean * RELAXED_BELOW > 1:
            tolerance *= RELAXED_TOLERANCE
            relaxation = RELAXATION
        return cls(
            tempering=tempering,
            b=b,
            b0=float(b[0]),
            alpha=model.effective_alpha(tempering),
            exact=exact,
            eps=float(np.finfo(model.dtype).eps) if exact else 0.0,
            max_iter=int(limit if max_iter is None else max_iter),
            tolerance=tolerance,
            by_topic=options.by_topic,
            least_share=least_share(model, training=training),
            sparsity=sparsity(model, tempering) if training else 0.0,
            relaxation=relaxation,
            want_statistics=training,
        )

    def heating(self, model: LDA) -> Self:
        """The same local step before temperatures of documents are computed from its energies."""
        # as in inference, but with the number of iterations of training
        return replace(
            self,
            max_iter=int(model.options.max_iter),
            least_share=least_share(model, training=False),
            want_statistics=False,
        )


def least_share(model: LDA, *, training: bool) -> float:
    """Return a threshold: topics with less than this share of a word may be skipped."""
    if model.options.exact:
        return EXACT_SHARE
    if model.dtype == np.float64:
        return LEAST_SHARE
    return TRAINING_SHARE if training else SINGLE_SHARE


def sparsity(model: LDA, tempering: Tempering) -> float:
    """Return kappa, which rises linearly from 0 at T = 1.5 to 0.5 at T = 1 if T makes sparse."""
    if not model.options.sparse:
        return 0.0
    T = 1.0 / tempering.mean
    # SPARSITY at T = 1, and 0 from SPARSE_BELOW on
    return SPARSITY * max(0.0, (SPARSE_BELOW - T) / (SPARSE_BELOW - 1.0))


def inverse_of_each(tempering: Tempering, n_samples: int, dtype: np.dtype) -> NDArray:
    """The inverse temperature of each document, in a new array."""
    inverse = np.asarray(tempering.inverse, dtype=float)  # one number, or one for each
    lowest = float(inverse.min())
    if lowest < TINY:
        raise ValueError(
            f"The temperature must be at most {1 / TINY:.3g}. "
            f"Got {1 / lowest if lowest else np.inf:.3g}."
        )
    return representable(np.broadcast_to(inverse, (n_samples,)), dtype)


def representable(inverse: NDArray, dtype: np.dtype) -> NDArray:
    """Convert inverse temperatures to `dtype`, with its smallest normal number as the minimum.

    Even the minimum of float32 is so small that the likelihood has no effect.
    """
    return np.maximum(inverse, np.finfo(dtype).tiny).astype(dtype, order="C")


def of_rows(tempering: Tempering, rows: slice) -> Tempering:
    """The tempering of the documents in `rows`."""
    if np.ndim(tempering.inverse) == 0:
        return tempering
    return tempering._replace(inverse=np.asarray(tempering.inverse)[rows])


class Engine:
    """The door to all engines: the local and the global step, inference, and the bound.

    A subclass computes a block of documents (`fit_block`) and the step of lambda (`step_topics`).
    What it keeps of a model, such as weights of words, belongs to one lambda: it must be dropped if
    ``model.version`` is another object than when it was computed.
    """

    #: The device of the engine, or None for the processor.  An engine with a device of any kind
    #: makes the runs of a fit one after another (see `plan_fit`).
    device: Any = None
    #: Whether documents will be used in several passes.
    repeated = False
    #: Whether training may leave out gamma, which then starts at 1 and is discarded.
    may_discard_gamma: ClassVar[bool] = False
    n_threads: int

    # ------------------------------------------------------ what a subclass defines

    def begin(self, model: LDA) -> Any:
        """Begin a training step; return the statistics, which are empty.

        These are a :class:`annealvi.models.lda.cpu.StepSums` with two methods: ``words()``, the
        words with statistics in ascending order, and ``rows(words, K)``, a copy of the statistics
        of some of them on the host.  If a :class:`ShardEngine` uses the engine, they also have
        ``seen(dense_share)`` and ``put_seen(seen, rows)``.
        """
        raise NotImplementedError

    def for_inference(self, model: LDA, step: EStep, want_logs: bool) -> Engine:
        """Return an engine with buffers of its own, which computes blocks outside of training."""
        raise NotImplementedError

    def fit_block(
        self,
        model: LDA,
        step: EStep,
        X: Any,
        rows: slice,
        gamma: Any,
        b: NDArray,
        *,
        log_normalizer: NDArray | None = None,
        energy: NDArray | None = None,
        statistics: Any = None,
        word_energy: NDArray | None = None,
        deferred: bool = False,
    ) -> None:
        """Fit gamma of a block of documents in place, with the inverse temperatures b.

        With ``step.max_iter = 0``, gamma stays as it is, and the other results are computed at it.
        `gamma` may be None in training if the engine has `may_discard_gamma`.

        These are computed if they are passed:

        * `statistics`: sum_d b_d n_dv phi_dvk of the block is added, with phi at the final gamma;
        * `log_normalizer` of each document: sum_v n_v log sum_k exp b (E log theta_k + E log
          beta_kv), with psi(gamma_k) - kappa / gamma_k for psi(gamma_k) if documents are sparse;
        * `energy` of each document: sum_v n_v E[log theta + log beta];
        * `word_energy` of each word of the block: sum_d n_dv E[log beta] over all documents of the
          step so far, which replaces the earlier value.  It is passed only together with the
          statistics, and only if all documents have the same b.

        If `deferred`, the block is the only block of a step, and its statistics are summed when
        they are needed.
        """
        raise NotImplementedError

    def step_topics(
        self, model: LDA, statistics: Any, rho: float, scale: float, floor: float, b: float
    ) -> None:
        """Set lambda to (1 - rho) lambda + rho (b eta + scale * statistics), at least `floor`.

        Before the change, call ``model.changed()``, which makes a new version; if lambda changes on
        the host, also ``model.copy_if_read_only()`` (lambda may be mapped from a file).  A step of
        all rows needs ``model.catch_up()`` first, because other rows may have pending steps.  Then
        set ``model.sums`` to the sums of lambda over the words; None has them computed later.
        """
        raise NotImplementedError

    def block_size(self, model: LDA) -> int:
        """The number of documents in a block, which does not depend on the number of threads."""
        row = model.width * model.dtype.itemsize  # the bytes of a document
        return max(64, min(max(BLOCK_BYTES // row, BLOCK_DOCUMENTS), LARGEST_BLOCK // row))

    def pull(self, model: LDA) -> None:
        """Copy lambda to the host if only the engine has its last steps."""

    def release(self) -> None:
        """Release the buffers.  The next step makes new ones."""

    def release_large(self) -> None:
        """Release the buffers between two steps if they are large."""

    def forget_documents(self) -> None:
        """Release what belongs to documents, which may change from now on."""

    # ---------------------------------------------------------------- Algorithm 1

    def steps(self, model: LDA) -> Any:
        """Return the two steps for one LDA; see :class:`annealvi.model.Model`."""
        return SimpleNamespace(
            local_step=partial(self.e_step, model), global_step=partial(self.m_step, model)
        )

    def e_step(
        self,
        model: LDA,
        batch: Batch,
        tempering: Tempering,
        moments: bool = False,
        rng: RandomState | None = None,
    ) -> LocalStep:
        """Fit gamma and phi of a batch of documents.

        The energies, from which a temperature is learned, are computed if `moments` is true and no
        :class:`annealvi.model.LocalRule` computes the temperatures.  If log C is also computed and
        all documents have the same T, only the total energy of the batch is computed.  Its terms
        with theta are then computed from gamma without phi (see
        :meth:`DocumentPartition.of_batch`).
        """
        X = batch.data
        n_samples = batch.rows.stop - batch.rows.start
        rule = tempering.rule  # computes the temperature of each document, or None
        statistics = self.begin(model)
        exact = model.options.exact
        step = EStep.of(model, tempering, n_samples, training=True, exact=exact)
        partition = self._partition(model, tempering) if moments or rule is not None else None
        energies = moments and rule is None
        uniform = energies and bool(np.all(step.b == step.b0))  # all documents have the same T
        # whether only the total energy is computed; without iterations gamma has not converged
        of_batch = uniform and partition is not None and step.max_iter > 0
        energy = np.zeros(n_samples) if energies and not of_batch else None
        word_energy = np.empty(model.n_features) if uniform else None
        n_words = lengths(X, batch.rows)
        learns_alpha = "doc_topic_prior" in model.learned and learns_at(tempering)
        reads_gamma = exact or bool(model.learned) or partition is not None
        log_c: Any = 0.0
        of_theta = 0.0  # the terms of theta in b * energy
        for rows in self.blocks(model, batch.rows, X.indptr, TRAINING_ENTRIES):
            local = slice(rows.start - batch.rows.start, rows.stop - batch.rows.start)
            gamma: Any = None  # then it starts at 1, and is discarded
            if reads_gamma or not self.may_discard_gamma:
                gamma = self.start(model, rows, model.rng if rng is None else rng)
            b = step.b[local]
            if rule is not None and partition is not None:
                self.heat(model, step, X, rows, gamma, b, partition)
            self.fit_block(
                model,
                step,
                X,
                rows,
                gamma,
                b,
                energy=None if energy is None else energy[local],
                statistics=statistics,
                word_energy=word_energy,
                # only if no energies are wanted, and the block is the whole batch
                deferred=rule is None and not moments and rows == batch.rows,
            )
            if learns_alpha and model.n_topics > 1:
                sums = prior_sums(gamma, step.alpha)
                if statistics.prior_sums is not None:
                    sums += statistics.prior_sums
                statistics.prior_sums = sums
            if moments and partition is not None:
                block_log_c, block_energy = partition.of_batch(
                    gamma, step.alpha, n_words[local], self.n_threads
                )
                log_c = log_c + block_log_c
                of_theta += block_energy
        local_step = LocalStep(
            statistics,
            energy=energy,
            n_units=float(n_words.sum()),
            inverse=None if rule is None else step.b,
            unit="word",
        )
        if word_energy is not None:
            statistics.of_words = float(word_energy[statistics.words()].sum())
            if of_batch:
                local_step.energy = of_theta / step.b0 + statistics.of_words
            else:
                # after a full step, `m_step` replaces the energy of words in `local_step`
                statistics.local_step = local_step
                statistics.b0 = step.b0
        if moments and partition is not None:
            local_step.log_partition = log_c
        return local_step

    def m_step(
        self, model: LDA, statistics: Any, rho: float, scale: float, tempering: Tempering
    ) -> None:
        """Set lambda to (1 - rho) lambda + rho (eta + scale * statistics), with tempering.

        rho = 1 sets lambda to the optimum for the batch; rho > 1 moves it further, but not below
        the least eta.  With ``form="posterior"``, a rho < 1 becomes min(1, rho T).  Then the priors
        are learned.
        """
        b = tempering.of_priors
        floor = 0.0
        if tempering.form == "posterior":
            rho = min(1.0, rho / b)
            floor = POSTERIOR_FLOOR
        elif rho > 1:
            floor = float(np.min(model.eta))
        if model.partition is not None:
            model.partition.outdate(min(rho, 1.0))
        self.step_topics(model, statistics, rho, scale, floor, b)
        if model.learned and learns_at(tempering):
            self.learn_priors(model, statistics.prior_sums, min(rho, 1.0), b)
        if rho == 1 and statistics.local_step is not None:
            # the temperature learns from the energy at the topics after this step
            of_words = self.energy_of_words(model, statistics) / statistics.b0
            local_step = statistics.local_step
            local_step.energy = float(np.sum(local_step.energy)) + (of_words - statistics.of_words)

    def learn_priors(self, model: LDA, sums: NDArray | None, rho: float, b: float) -> None:
        """Update alpha and eta after the topics, by a step of size rho.

        `sums` are the :func:`prior_sums` of the step, and b is the power of the priors.
        """
        alpha = model.alpha_row
        if sums is not None:
            learned = learned_alpha(alpha, sums, rho, b)
            # without a change, alpha stays a number if it is one
            if np.any(learned != alpha):
                model.alpha = read_only(learned)
        V = model.n_features
        if "topic_word_prior" in model.learned and np.ndim(model.eta) == 0 and V > 1:
            self.pull(model)
            model.catch_up(self.n_threads)  # applies pending steps, which use the old eta
            mean = mean_of_logs(model)
            point = 1.0 if model.estimate == "map" else 0.0  # for point estimates, eta + 1 is used
            shape = model.n_topics, V
            model.set_eta(learned_eta(float(model.eta), mean, shape, rho, b, point), self.n_threads)

    def energy_of_words(self, model: LDA, statistics: Any) -> float:
        """Compute sum_dkv b n_dv phi_dvk E log beta_kv from statistics, at the current topics."""
        self.pull(model)
        K = model.n_topics
        lam = model.up_to_date_lambda()
        words = statistics.words()
        total = 0.0
        # the logarithms of a block take about BLOCK_BYTES, with 8 bytes for each number
        for block in np.array_split(words, max(1, 8 * K * len(words) // BLOCK_BYTES)):
            logs = model.logs(lam[block, :K])
            total += float(np.sum(statistics.rows(block, K) * logs))
        return total

    # ------------------------------------------------------------ after training

    def infer(self, model: LDA, X: Any, tempering: Tempering = UNTEMPERED) -> NDArray:
        """Infer gamma of documents; each gamma starts at ones."""
        gamma = np.ones((X.shape[0], model.n_topics), dtype=model.dtype)
        if X.shape[0]:
            step = EStep.of(model, tempering, X.shape[0], exact=model.options.exact)
            self.fit(model, step, X, gamma)
        return gamma

    def energies(
        self, model: LDA, X: Any, gamma: NDArray, tempering: Tempering = UNTEMPERED
    ) -> NDArray:
        """The energies L_d = +E_q[log p(w_d, z_d | theta_d, beta)] at gamma and its best phi."""
        energy = np.zeros(X.shape[0])
        if X.shape[0]:
            gamma = np.array(gamma, dtype=model.dtype, order="C")  # a copy, because kernels write
            # without iterations, gamma stays as it is, and only its best phi is computed
            step = EStep.of(model, tempering, X.shape[0], max_iter=0)
            self.fit(model, step, X, gamma, energy=energy)
        return energy

    def bound(
        self,
        model: LDA,
        X: Any,
        gamma: NDArray,
        tempering: Tempering = UNTEMPERED,
        kappa: float = 0.0,
    ) -> NDArray:
        """Each document's part of the annealed ELBO at gamma and its best phi.

        If kappa is not 0, phi is that of sparse documents; see :meth:`objective`.
        """
        gamma = np.array(gamma, dtype=model.dtype, order="C")  # a copy, because kernels write
        bound = np.zeros(X.shape[0])
        # without iterations, gamma stays as it is, and only its best phi is computed
        step = replace(EStep.of(model, tempering, X.shape[0], max_iter=0), sparsity=kappa)
        self.fit(model, step, X, gamma, log_normalizer=bound)
        bound += negative_kl(model.effective_alpha(tempering), gamma)  # of theta
        return bound

    def document_bound(
        self,
        model: LDA,
        X: Any,
        tempering: Tempering = UNTEMPERED,
        at: Tempering = UNTEMPERED,
        *,
        gamma: NDArray | None = None,
    ) -> float:
        """Infer gamma of documents, block by block, and return the sum of :meth:`bound`.

        gamma is inferred at the first tempering, and the bound computed `at` the second.  If an
        array `gamma` is passed, the inferred gamma is written to it.
        """
        total = 0.0
        # without eps, a fit also computes the normalisers of phi that its bound needs
        same = tempering.form == at.form and np.array_equal(tempering.inverse, at.inverse)
        at_once = not model.options.exact and tempering.rule is None and same
        # the sum of the bounds depends on the blocks, like the results of training
        blocks = [*self.blocks(model, slice(0, X.shape[0]), X.indptr, TRAINING_ENTRIES)]
        # one array for gamma of all blocks
        longest = max((rows.stop - rows.start for rows in blocks), default=0)
        scratch = np.empty((longest, model.n_topics), dtype=model.dtype)
        for rows in blocks:
            documents = X[rows]
            at_rows = of_rows(at, rows)
            if at_once:
                n_samples = documents.shape[0]
                fitted = scratch[:n_samples]
                fitted[:] = 1  # from where the inference starts
                bound = np.empty(n_samples)
                step = EStep.of(model, at_rows, n_samples)
                self.fit(model, step, documents, fitted, log_normalizer=bound)
                bound += negative_kl(model.effective_alpha(at), fitted)
            else:
                fitted = self.infer(model, documents, of_rows(tempering, rows))
                bound = self.bound(model, documents, fitted, at_rows)
            total += float(np.sum(bound))
            if gamma is not None:
                gamma[rows] = fitted
        return total

    def objective(
        self, model: LDA, X: Any, tempering: Tempering, *, gamma: NDArray | None = None
    ) -> float:
        """The part of the training objective that documents contribute: the largest Q at gamma.

        If gamma is None, it is inferred.  Q is defined at the beginning of this module.
        """
        kappa = sparsity(model, tempering)
        if gamma is None:
            n_samples = X.shape[0]
            gamma = np.ones((n_samples, model.n_topics), model.dtype)
            step = replace(EStep.of(model, tempering, n_samples), sparsity=kappa)
            self.fit(model, step, X, gamma)
        bound = self.bound(model, X, gamma, tempering, kappa)
        if kappa > 0:  # the terms of h that contain kappa
            alpha = model.effective_alpha(tempering)
            gamma = gamma.astype(float)
            penalty = np.sum((gamma - alpha) / gamma - special.log(gamma / alpha), axis=1)
            bound += kappa * penalty
        return float(np.sum(bound))

    def moments(self, model: LDA, X: Any, tempering: Tempering, inverse: NDArray) -> NDArray:
        """The bound, the energy, and log C at each of M b, all at one gamma: 2 + M numbers.

        `inverse` contains the M inverse temperatures b; gamma is inferred at `tempering`.
        """
        gamma = self.infer(model, X, tempering)
        bound = self.bound(model, X, gamma, tempering).sum()
        energy = self.energies(model, X, gamma, tempering).sum()
        log_c = np.zeros(0)
        if len(inverse):
            log_c = self.posterior_log_partition(model, inverse, X, gamma)
        return np.concatenate([[bound, energy], log_c])

    def posterior_log_partition(
        self,
        model: LDA,
        inverse: NDArray,
        X: Any,
        gamma: NDArray | None = None,
    ) -> NDArray:
        """log C(b) at the current q, summed over documents, for each b of `inverse`."""
        if gamma is None:
            gamma = self.infer(model, X)
        partition = DocumentPartition(inverse)
        partition.refresh(model, self.n_threads)
        total = np.zeros(len(inverse))
        for rows in self.blocks(model, slice(0, X.shape[0])):
            log_c = partition(gamma[rows], lengths(X, rows), self.n_threads)
            total += log_c.sum(axis=0)
        return total

    # ------------------------------------- block by block, in training and after

    def fit(
        self,
        model: LDA,
        step: EStep,
        X: Any,
        gamma: NDArray,
        *,
        log_normalizer: NDArray | None = None,
        energy: NDArray | None = None,
    ) -> None:
        """Fit gamma of documents in place, block by block, outside of training."""
        rule = step.tempering.rule
        mixed = bool(np.any(step.b != step.b0))  # whether documents have different temperatures
        engine = self.for_inference(
            model, step, want_logs=mixed or energy is not None or rule is not None
        )
        n_entries = BLOCK_ENTRIES
        partition = None
        if rule is not None:
            n_entries = TRAINING_ENTRIES  # a rule needs whole blocks
            partition = DocumentPartition(rule.inverses)
            partition.refresh(model, self.n_threads)
        for rows in engine.blocks(model, slice(0, X.shape[0]), X.indptr, n_entries):
            if partition is not None:  # computes the temperatures of the block, in step.b
                engine.heat(model, step, X, rows, gamma[rows], step.b[rows], partition)
            engine.fit_block(
                model,
                step,
                X,
                rows,
                gamma[rows],
                step.b[rows],
                log_normalizer=None if log_normalizer is None else log_normalizer[rows],
                energy=None if energy is None else energy[rows],
            )

    def blocks(
        self, model: LDA, rows: slice, indptr: NDArray | None = None, n_entries: int = 0
    ) -> Iterator[slice]:
        """Split rows into blocks; see BLOCK_BYTES.

        If `indptr` is given, a block has at most `n_entries` entries, unless one document has more.
        """
        size = self.block_size(model)
        for begin in range(rows.start, rows.stop, size):
            start = begin
            end = min(begin + size, rows.stop)
            while start < end:
                stop = end
                if indptr is not None and int(indptr[end]) - int(indptr[start]) > n_entries:
                    # of the same dtype as indptr, which otherwise would be converted
                    last = indptr.dtype.type(int(indptr[start]) + n_entries)
                    stop = max(start + 1, int(np.searchsorted(indptr, last, "right")) - 1)
                yield slice(start, stop)
                start = stop

    def start(self, model: LDA, rows: slice, rng: RandomState | None) -> NDArray:
        """The gamma from which a training step starts."""
        shape = rows.stop - rows.start, model.n_topics
        if not model.options.exact:  # otherwise at random, as in scikit-learn
            return np.ones(shape, dtype=model.dtype)
        if rng is None:
            raise ValueError(
                "The topic proportions of documents cannot start at random, because this model has "
                "no random number generator. Set its attribute 'random_state_'."
            )
        return gamma_draws(rng, shape).astype(model.dtype, copy=False)

    def heat(
        self,
        model: LDA,
        step: EStep,
        X: Any,
        rows: slice,
        gamma: Any,
        b: NDArray,
        partition: DocumentPartition,
    ) -> None:
        """Update gamma and the documents' inverse temperatures b in turn, and overwrite both.

        All documents get the same number of rounds, so no document's result depends on the others.
        """
        rule: Any = step.tempering.rule
        energy = np.zeros(len(b))
        n_words = lengths(X, rows)
        heating = step.heating(model)
        for _ in range(rule.rounds):
            self.fit_block(model, heating, X, rows, gamma, b, energy=energy)
            log_c = partition(gamma, n_words, self.n_threads)
            b[:] = representable(rule(energy, n_words, log_c), b.dtype)

    def _partition(self, model: LDA, tempering: Tempering) -> DocumentPartition | None:
        """What computes log C of documents for a rule, or else for the fit's temperature."""
        partition = model.partition
        rule = tempering.rule
        # the partition of the model is used for a rule with the same inverse temperatures
        if rule is not None and (
            partition is None or not np.array_equal(partition.grid.inverses, rule.inverses)
        ):
            partition = DocumentPartition(rule.inverses)
        if partition is not None:
            self.pull(model)  # the sums are computed on the host
            partition.refresh(model, self.n_threads)
        return partition
