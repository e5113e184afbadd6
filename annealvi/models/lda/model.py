r"""Latent Dirichlet allocation, tempered.

.. math::
   \theta_d \sim \mathrm{Dir}(\alpha), \quad \beta_k \sim \mathrm{Dir}(\eta), \quad
   z \sim \mathrm{Cat}(\theta_d), \quad w \sim \mathrm{Cat}(\beta_z)

with q(beta_k) = Dir(lambda_k), q(theta_d) = Dir(gamma_d), q(z) = phi.  At inverse
temperature b (Mandt et al. 2016):

.. math::
   \phi_{dvk} &\propto \exp b (E \log\theta_{dk} + E \log\beta_{kv}) \\
   \gamma_{dk} &= \alpha_k + b \sum_v n_{dv} \phi_{dvk} \\
   \lambda_{kv} &\leftarrow (1 - \rho) \lambda_{kv}
       + \rho (\eta_{kv} + \tfrac{D}{B}\, b \sum_d n_{dv} \phi_{dvk})

which ascends the annealed ELBO, with KL to the priors,

.. math::
   F(b) = \sum_{dv} n_{dv} \log \sum_k \exp b (E \log\theta_{dk} + E \log\beta_{kv})
       - \mathrm{KL}(\theta) - \mathrm{KL}(\beta).

Where the topics are a point, the ``"map"`` estimate, log E beta = log(lambda_kv / sum_v
lambda_kv) stands for E log beta in all of this: the same step of lambda then maximises

.. math::
   F(b) = \sum_{dv} n_{dv} \log \sum_k \exp b (E \log\theta_{dk} + \log\beta_{kv})
       - \mathrm{KL}(\theta)
       + \sum_k \log \frac{\mathrm{Dir}(\beta_k; \eta_k + 1)}{\mathrm{Dir}(\beta_k; 1)},

variational EM of b-tempered documents, for d F / d log beta_kv = eta_kv + b sum_d n_dv phi_dvk.

The posterior form (Abrol et al. 2014) is the same with alpha -> (alpha + T - 1)/T,
eta -> eta/T and rho -> rho T.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import gammaln

from annealvi._kernels import bounds, special
from annealvi.model import UNTEMPERED, Batch, Form, LocalRule, LocalStep, Tempering
from annealvi.models.lda.block import (
    Local,
    LocalOptions,
    Statistics,
    TopicEstimate,
    TopicWeights,
    Workspace,
    fit_block,
    index_words,
)
from annealvi.models.lda.critical import LEAST_DOCUMENTS, critical_temperature
from annealvi.models.lda.learned_priors import LearnedPriors, mean_of_logs
from annealvi.models.lda.log_partition import DocumentPartition, DocumentStep
from annealvi.models.lda.topics import Topics
from annealvi.models.lda_prior import LDAPrior

#: Bytes of unnormalised exp(E log theta) kept at a time, which bounds a block of documents.
BLOCK_BYTES = 1 << 23
#: lambda stays above this under the posterior form, whose online step subtracts.
POSTERIOR_FLOOR = 1e-10
#: Taken for the critical temperature where no documents were seen.
UNKNOWN_CRITICAL = 3.3


class LDA(Topics):
    """q(beta) and the steps that move it; see :class:`annealvi.model.Model`.

    Parameters
    ----------
    n_topics, n_features : int
        K and V.
    alpha : float or array-like of shape (K,)
        Prior of the documents' topics.
    eta : float or array-like of shape (V,) or (K, V)
        Prior of the topics' words.
    dtype : dtype
        float32 or float64, of everything the kernels touch.
    options : LocalOptions
    n_threads : int
        Threads of the training steps.
    topic_estimate : {"variational", "map"}
        Whether topics are a distribution or its mean.

    Attributes
    ----------
    lam
        See :class:`Topics`.
    document_topics : ndarray of shape (D, K) or None
        gamma of the last pass, under ``start="warm"``.
    n_documents, n_words : float or None
        Of the whole corpus, where it is known: what log C(T) is of.
    learned_priors : LearnedPriors or None
        What learns alpha and eta, where they are to be learned.
    """

    def __init__(
        self,
        n_topics: int,
        n_features: int,
        *,
        alpha: ArrayLike,
        eta: ArrayLike,
        dtype: Any = np.float64,
        options: LocalOptions | None = None,
        n_threads: int = 1,
        topic_estimate: TopicEstimate = "variational",
    ) -> None:
        super().__init__(n_topics, n_features, eta, dtype, n_threads, topic_estimate)
        self.set_priors(alpha, eta)
        self.options = LocalOptions() if options is None else options
        self.document_topics: NDArray | None = None
        self._full_steps = 0
        self.n_documents: float | None = None
        self.n_words: float | None = None
        self._corpus: Any = None
        self.learned_priors: LearnedPriors | None = None
        self._partition: DocumentPartition | None = None
        self._training: _Training | None = None
        self._inference: dict[tuple[float, bool, bool], TopicWeights] = {}

    def set_priors(self, alpha: ArrayLike, eta: ArrayLike) -> None:
        """Take other priors from the next step on."""
        self.alpha = np.broadcast_to(np.array(alpha, dtype=np.float64), (self.n_topics,))
        with self._lock:
            if not np.array_equal(self.eta, eta):
                self.settle()  # under the prior that it has had
                self.eta = np.array(eta, dtype=np.float64)
                self._eta_kept = None

    def _changed(self, rho: float) -> None:
        self._inference = {}  # other threads may be reading the old ones
        if self._training is not None:
            self._training.weights.outdate()
        if self._partition is not None:
            self._partition.outdate(rho)

    # ------------------------------------------------------------- Algorithm 1

    def start_documents(self, n_samples: int) -> None:
        """Make room for gamma of all documents, where it is kept from pass to pass."""
        if self.options.start == "warm":
            self.document_topics = np.ones((n_samples, self.n_topics), dtype=self.dtype)

    def local_step(self, batch: Batch, tempering: Tempering, moments: bool = False) -> LocalStep:
        """Fit gamma and phi of a batch of documents.

        Parameters
        ----------
        batch : Batch
            ``data`` is a CSR matrix of counts.
        tempering : Tempering
        moments : bool
            Whether energies are wanted: of a document
            sum_v n_v sum_k phi_vk (E log theta_k + E log beta_kv).  After
            :meth:`normalise_at` the batch's energy and log C(T) instead; under a
            :class:`annealvi.model.LocalRule`, which has used energies already, the latter.

        Returns
        -------
        LocalStep
            Its statistics are a :class:`Statistics`, valid until the next call.
        """
        self.notice_writes()
        shape = (self.n_features, self.width, self.dtype)
        if self._training is None or self._training.work.n_threads != self.n_threads:
            self._training = _Training(
                TopicWeights(*shape), Workspace(*shape, self.n_threads), Statistics.empty(*shape)
            )
        weights, work, statistics = self._training
        statistics.seen[:] = 0
        start = batch.rows.start
        n_samples = batch.rows.stop - start
        inverse = self._per_document(tempering, n_samples)
        rule, partition = tempering.rule, self._partition if moments else None
        if rule is not None:
            partition = self._partition_at(rule.inverses)
        if partition is not None:
            partition.refresh(self)
        uniform = moments and rule is None and bool(np.all(inverse == inverse[0]))
        # With log C the energy of the batch is enough, which is cheaper than the documents'.
        # It takes b sum_v n_v phi_v from gamma - alpha, so documents must have been fitted.
        together = uniform and partition is not None and self.options.max_iter > 0
        apart = moments and rule is None and not together
        energy = np.zeros(n_samples if apart else 0)
        word_energy = np.empty(self.n_features) if uniform else None
        log_partition: Any = 0.0
        from_theta = 0.0
        n_words = _lengths(batch.data, batch.rows) if moments or rule else np.empty(0)
        exact = self.options.start == "random"
        prior = self._effective_alpha(tempering)
        call = _Call(batch.data, weights, work, float(inverse[0]), prior, exact)
        gammas = []
        learned = self.learned_priors
        if learned is not None:
            learned.begin(tempering)
        for rows in self._blocks(batch.rows):
            local = slice(rows.start - start, rows.stop - start)
            gamma = self._start(rows)
            if rule is not None:
                assert partition is not None
                self._heat(call, rows, gamma, inverse[local], n_words[local], rule, partition)
            wanted = Local(statistics, None, energy[local] if apart else None, word_energy)
            self._fit_block(call, rows, gamma, inverse[local], wanted)
            if learned is not None:
                learned.add(gamma, prior)
            if moments and partition is not None:
                of_block = partition.of_batch(gamma, prior, n_words[local], self.n_threads)
                log_partition, from_theta = log_partition + of_block[0], from_theta + of_block[1]
            gammas.append(gamma)
        if not moments and rule is None:
            return LocalStep(statistics)
        step = DocumentStep(statistics, float(n_words.sum()))
        of_words = 0.0 if word_energy is None else float(word_energy[statistics.seen != 0].sum())
        if moments and partition is not None:
            step.log_partition = log_partition
        if apart:
            same = Tempering(inverse, tempering.form)
            step.energy = energy
            step.inverse_used = inverse
            step.bound = lambda: self.document_bound(
                batch.data[batch.rows], np.concatenate(gammas), same
            )
            if uniform:
                made = self._full_steps
                step.moved = lambda: (
                    None
                    if self._full_steps == made
                    else self._word_energy(statistics, call.b0) - of_words
                )
        elif rule is None:
            step.energy = from_theta / call.b0 + of_words
        else:
            step.inverse = inverse
        return step

    def _word_energy(self, statistics: Statistics, b: float) -> float:
        """sum_dkv n_dv phi_dvk E log beta_kv of statistics at one b, at the topics as they are."""
        K, total, lam = self.n_topics, 0.0, self.lam
        words = np.flatnonzero(statistics.seen)
        for some in np.array_split(words, max(1, 8 * K * len(words) // BLOCK_BYTES)):
            logs = self.log_topics(lam[some, :K])
            total += float(np.einsum("vk,vk->", statistics.values[some, :K], logs))
        return total / b

    def global_step(
        self, statistics: Statistics, rho: float, scale: float, tempering: Tempering
    ) -> None:
        """lambda <- (1 - rho) lambda + rho (eta + scale * statistics), tempered.

        A full step (rho = 1) goes to the optimum of the batch; under the posterior form
        smaller ones are multiplied by T.
        """
        floor = 0.0
        if tempering.form == "posterior":
            rho = min(1.0, rho / float(np.mean(tempering.inverse)))
            floor = POSTERIOR_FLOOR
        eta = self._rows().eta
        if tempering.form == "posterior":
            eta = self._eta_rows(self.dtype, tempering)
        self._full_steps += rho == 1
        self._changed(rho)
        self._step(rho, scale, floor, eta, statistics)
        if self.learned_priors is not None:
            self._step_priors(self.learned_priors, rho, tempering)

    def _step_priors(self, learned: LearnedPriors, rho: float, tempering: Tempering) -> None:
        """Move alpha and eta after the topics."""

        def mean_log_topics() -> float:
            self.settle()
            lam, K = self._lam, self.n_topics
            return mean_of_logs(lambda some: self.log_topics(lam[some, :K]), self.n_features)

        V, estimate = self.n_features, self.topic_estimate
        before = self._effective_alpha(tempering)
        self.set_priors(*learned.step(self.alpha, self.eta, rho, mean_log_topics, V, estimate))
        if self.document_topics is not None:  # words stay with their topics
            self.document_topics += self._effective_alpha(tempering) - before

    # ------------------------------------------------------ learned temperatures

    def normalise_at(self, inverse: NDArray[np.float64] | None) -> None:
        """See :class:`annealvi.model.LocallyNormalised`."""
        self._partition = None if inverse is None else DocumentPartition(inverse)

    def log_mean_unit(self, inverse: NDArray[np.float64]) -> NDArray[np.float64]:
        """log E[sum_k theta_k^b sum_v beta_kv^b] of a word over the prior."""
        prior = LDAPrior(
            self.n_topics,
            self.n_features,
            [1],
            doc_topic_prior=self.alpha,
            topic_word_prior=self.eta,
        )
        return prior.log_mean_word(inverse)

    def describe(
        self, X: Any, n_documents: float | None = None, n_words: float | None = None
    ) -> None:
        """Say what the corpus is: its first documents or all of them, and how many it has.

        Parameters
        ----------
        X : CSR matrix of shape (n_samples, V)
            Kept until the fit ends.
        n_documents, n_words : float, optional
            Of the whole corpus, where they are known.
        """
        self._corpus, self.n_documents, self.n_words = X, n_documents, n_words

    def critical_temperature(self, form: Form = "likelihood") -> float:
        """See :mod:`annealvi.models.lda.critical`; a constant where too little was seen."""
        X, n_documents = self._corpus, self.n_documents or 0
        if X is None or X.shape[0] < min(LEAST_DOCUMENTS, n_documents):
            return UNKNOWN_CRITICAL
        return critical_temperature(X, self.n_topics, float(np.mean(self.alpha)), form)

    def hyperparameters(self) -> dict[str, Any]:
        """What log C(T) depends on."""
        return {
            "n_documents": self.n_documents,
            "n_words": self.n_words,
            "n_components": self.n_topics,
            "n_features": self.n_features,
            "doc_topic_prior": self.alpha if np.ptp(self.alpha) else float(self.alpha[0]),
            "topic_word_prior": self.eta,
        }

    def _partition_at(self, inverses: NDArray[np.float64]) -> DocumentPartition:
        """The training's, or one of one's own."""
        kept = self._partition
        if kept is None or not np.array_equal(kept.grid.inverses, inverses):
            kept = DocumentPartition(inverses)
        return kept

    def _heat(
        self,
        call: _Call,
        rows: slice,
        gamma: NDArray,
        inverse: NDArray,
        n_words: NDArray[np.float64],
        rule: LocalRule,
        partition: DocumentPartition,
    ) -> None:
        """Fit documents and their temperatures in turn, in place.

        As often for every document: one must not depend on when its neighbours settle.
        """
        energy = np.zeros(len(gamma))
        for _ in range(rule.rounds):
            self._fit_block(call, rows, gamma, inverse, Local(energy=energy))
            log_c = partition(gamma, n_words, call.work.n_threads)
            inverse[:] = rule(energy, n_words, log_c)

    # -------------------------------------------------------------- evaluation

    def infer(
        self, X: Any, tempering: Tempering = UNTEMPERED, *, n_threads: int | None = None
    ) -> NDArray:
        """gamma of documents, each started from ones: of shape (n_samples, K)."""
        gamma = np.ones((X.shape[0], self.n_topics), dtype=self.dtype)
        exact = self.options.start == "random"
        self._over_blocks(X, gamma, tempering, n_threads, exact=exact)
        return gamma

    def document_energies(
        self,
        X: Any,
        gamma: NDArray,
        tempering: Tempering = UNTEMPERED,
        *,
        n_threads: int | None = None,
    ) -> NDArray[np.float64]:
        """L_d of documents at a given gamma and its best phi."""
        gamma = np.array(gamma, dtype=self.dtype, order="C")
        energy = np.zeros(X.shape[0])
        self._over_blocks(X, gamma, tempering, n_threads, exact=False, max_iter=0, energy=energy)
        return energy

    def document_log_partition(
        self,
        X: Any,
        gamma: NDArray,
        inverse: NDArray[np.float64],
        *,
        n_threads: int | None = None,
    ) -> NDArray[np.float64]:
        """log C_d(b) of documents at a given gamma, of shape (n_samples, M)."""
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
        """log C(b) of all documents together at the current q, of shape (M,).

        Parameters
        ----------
        inverse : ndarray of shape (M,)
        data : CSR matrix of shape (n_samples, V)
        gamma : ndarray of shape (n_samples, K), optional
            Inferred at T = 1 if not given.
        n_threads : int, optional
        """
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
        partition.refresh(self)
        threads = self.n_threads if n_threads is None else n_threads
        for rows in self._blocks(slice(0, X.shape[0])):
            yield partition(gamma[rows], _lengths(X, rows), threads)

    def document_bound(
        self,
        X: Any,
        gamma: NDArray,
        tempering: Tempering = UNTEMPERED,
        *,
        n_threads: int | None = None,
    ) -> NDArray[np.float64]:
        """Each document's part of the annealed ELBO at a given gamma and its best phi."""
        gamma = np.array(gamma, dtype=self.dtype, order="C")
        bound = np.zeros(X.shape[0])
        self._over_blocks(X, gamma, tempering, n_threads, exact=False, max_iter=0, bound=bound)
        prior = self._effective_alpha(tempering)
        bound += _negative_kl(prior, gamma, self.n_threads if n_threads is None else n_threads)
        return bound

    def inferred_bound(
        self,
        X: Any,
        tempering: Tempering = UNTEMPERED,
        at: Tempering = UNTEMPERED,
        *,
        n_threads: int | None = None,
        gamma: NDArray | None = None,
    ) -> NDArray[np.float64]:
        """:meth:`document_bound` of documents whose topics are inferred, block by block.

        Parameters
        ----------
        X : CSR matrix of shape (n_samples, V)
        tempering : Tempering
            What documents are fitted at.
        at : Tempering
            What the bound is of.
        n_threads : int, optional
        gamma : ndarray of shape (n_samples, K), optional
            Written if given; otherwise no more than a block's is ever held.
        """
        bound = np.empty(X.shape[0])
        exact = self.options.start == "random"
        # the norms that a fit ends with are those of its bound, but for scikit-learn's eps
        same = tempering.form == at.form and np.array_equal(tempering.inverse, at.inverse)
        at_once = not exact and tempering.rule is None and same
        threads = self.n_threads if n_threads is None else n_threads
        for rows in self._blocks(slice(0, X.shape[0])):
            some, own = X[rows], _of_rows(at, rows)
            if at_once:
                fitted = np.ones((some.shape[0], self.n_topics), dtype=self.dtype)
                part = bound[rows]
                self._over_blocks(some, fitted, own, n_threads, exact=False, bound=part)
                part += _negative_kl(self._effective_alpha(at), fitted, threads)
            else:
                fitted = self.infer(some, _of_rows(tempering, rows), n_threads=n_threads)
                bound[rows] = self.document_bound(some, fitted, own, n_threads=n_threads)
            if gamma is not None:
                gamma[rows] = fitted
        return bound

    def elbo(
        self, X: Any, gamma: NDArray | None = None, tempering: Tempering = UNTEMPERED
    ) -> float:
        """F(b) of documents and topics; at T = 1 the ELBO.

        Parameters
        ----------
        X : CSR matrix of shape (n_samples, V)
        gamma : ndarray of shape (n_samples, K), optional
            Inferred if not given.
        tempering : Tempering
            Under the posterior form, the objective with the priors it amounts to.
        """
        if gamma is None:
            documents = self.inferred_bound(X, tempering, tempering)
        else:
            documents = self.document_bound(X, gamma, tempering)
        return float(np.sum(documents)) + self.topic_bound(tempering)

    # ----------------------------------------------------------------- kernels

    def _fit_block(
        self,
        call: _Call,
        rows: slice,
        gamma: NDArray,
        inverse: NDArray,
        wanted: Local,
        max_iter: int | None = None,
    ) -> None:
        """Fit gamma of a block of documents in place, and write what else is wanted."""
        X, weights, work, b0, alpha, exact = call
        words = index_words(X, rows, work)
        want_logs = wanted.energy is not None or bool(np.any(inverse != b0))
        with self._lock:
            sums = self.topic_sums
            weights.refresh(
                words,
                self._rows(),
                sums,
                self.topic_estimate,
                b0,
                exact,
                work.n_threads,
                want_logs,
            )
        fit_block(
            X,
            rows,
            gamma,
            inverse,
            b0,
            alpha,
            words,
            weights,
            work,
            wanted,
            self.options,
            exact=exact,
            max_iter=max_iter,
        )

    def _over_blocks(
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
    ) -> None:
        """Fit gamma of documents in place, block by block, outside of training."""
        if max_iter is None:
            max_iter = self.options.inference_iter
        if X.shape[0] == 0:
            return
        self.notice_writes()
        inverse = self._per_document(tempering, X.shape[0])
        rule = tempering.rule
        want_logs = energy is not None or rule is not None or bool(np.any(inverse != inverse[0]))
        weights, work = self._for_inference(float(inverse[0]), exact, want_logs, n_threads)
        prior = self._effective_alpha(tempering)
        call = _Call(X, weights, work, float(inverse[0]), prior, exact)
        if rule is not None:
            partition = DocumentPartition(rule.inverses)
            partition.refresh(self)
        for rows in self._blocks(slice(0, X.shape[0])):
            if rule is not None:
                lengths = _lengths(X, rows)
                self._heat(call, rows, gamma[rows], inverse[rows], lengths, rule, partition)
            wanted = Local(
                log_normalizer=None if bound is None else bound[rows],
                energy=None if energy is None else energy[rows],
            )
            self._fit_block(call, rows, gamma[rows], inverse[rows], wanted, max_iter)

    def _for_inference(
        self, b: float, exact: bool, want_logs: bool, n_threads: int | None
    ) -> tuple[TopicWeights, Workspace]:
        """Weights that calls at the same temperature share, and a workspace of one's own.

        Rows are only ever filled in, never made anew, so threads may read them while
        others fill in more.
        """
        shape = (self.n_features, self.width, self.dtype)
        key = (b, exact, want_logs)
        with self._lock:
            weights = self._inference.get(key)
            if weights is None:
                weights = TopicWeights(*shape)
                if not want_logs:
                    # at most the weights of transform and those of score
                    kept = {k: w for k, w in self._inference.items() if k[0] == b}
                    self._inference = kept | {key: weights}
        return weights, Workspace(*shape, self.n_threads if n_threads is None else n_threads)

    # ----------------------------------------------------------------- details

    def _blocks(self, rows: slice) -> list[slice]:
        """Rows in blocks whose exp(E log theta) fits into BLOCK_BYTES, whatever n_threads is."""
        size = max(64, BLOCK_BYTES // (self.width * self.dtype.itemsize))
        return [
            slice(start, min(start + size, rows.stop))
            for start in range(rows.start, rows.stop, size)
        ]

    def _start(self, rows: slice) -> NDArray:
        """gamma at the start of a training step."""
        shape = (rows.stop - rows.start, self.n_topics)
        if self.options.start == "random":
            assert self.rng is not None
            return self.rng.gamma(100.0, 0.01, shape).astype(self.dtype, copy=False)
        if self.document_topics is not None:
            return self.document_topics[rows]
        return np.ones(shape, dtype=self.dtype)

    def _per_document(self, tempering: Tempering, n_samples: int) -> NDArray:
        inverse = np.asarray(tempering.inverse, dtype=self.dtype)
        return np.array(np.broadcast_to(inverse, (n_samples,)), order="C")

    def _effective_alpha(self, tempering: Tempering) -> NDArray[np.float64]:
        if tempering.form == "likelihood":
            return self.alpha
        b = float(np.mean(tempering.inverse))
        return b * self.alpha + (1.0 - b)

    @property
    def in_training(self) -> bool:
        """Whether a step was made since the last :meth:`end_fit`."""
        return self._training is not None

    def end_fit(self) -> None:
        """Let go of what only training needs."""
        self.document_topics = None
        self._training = self._corpus = None
        if self._partition is not None:
            self._partition.let_go()

    def __getstate__(self) -> dict[str, Any]:
        self.notice_writes()
        return {name: value for name, value in vars(self).items() if name not in _NOT_PICKLED}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, **dict.fromkeys(_NOT_PICKLED))
        self._inference = {}
        self._lock = threading.RLock()


#: What a copy works out again.
_NOT_PICKLED = (
    "document_topics",
    "_shown",
    "_shown_sums",
    "_eta_kept",
    "_training",
    "_corpus",
    "_inference",
    "_lock",
)


class _Call(NamedTuple):
    """What the blocks of one call have in common."""

    X: Any
    weights: TopicWeights
    work: Workspace
    b0: float  # what the weights are raised to
    alpha: NDArray[np.float64]
    exact: bool


class _Training(NamedTuple):
    """What training steps write to, from the first to the last."""

    weights: TopicWeights
    work: Workspace
    statistics: Statistics


def _negative_kl(
    prior: NDArray[np.float64], gamma: NDArray, n_threads: int = 1
) -> NDArray[np.float64]:
    """-KL(Dir(gamma_d) || Dir(prior)) of each row."""
    out = np.empty(len(gamma))
    prior = np.ascontiguousarray(prior)
    sums = gamma.sum(axis=1, dtype=np.float64)
    scratch = np.empty((n_threads, 2, len(prior)))
    bounds.row_terms(gamma, prior, special.digamma(sums), n_threads, scratch, out)
    return out + (gammaln(prior.sum()) - gammaln(prior).sum() - special.lgamma(sums))


def _of_rows(tempering: Tempering, rows: slice) -> Tempering:
    """The same for some of the documents."""
    if np.ndim(tempering.inverse) == 0:
        return tempering
    return tempering._replace(inverse=np.asarray(tempering.inverse)[rows])


def _lengths(X: Any, rows: slice) -> NDArray[np.float64]:
    """Words of each document."""
    ends = X.indptr[rows.start : rows.stop + 1]
    written = ends[1:] > ends[:-1]
    sums = np.zeros(len(written))
    if written.any():  # reduceat takes an empty stretch for its first number
        counts = X.data[ends[0] : ends[-1]]
        sums[written] = np.add.reduceat(counts, ends[:-1][written] - ends[0], dtype=np.float64)
    return sums
