r"""Latent Dirichlet allocation, with a tempered likelihood.

.. math::
   \theta_d \sim \mathrm{Dir}(\alpha), \quad \beta_k \sim \mathrm{Dir}(\eta), \quad
   z \sim \mathrm{Cat}(\theta_d), \quad w \sim \mathrm{Cat}(\beta_z)

with q(beta_k) = Dir(lambda_k), q(theta_d) = Dir(gamma_d), q(z) = phi.  The updates at inverse
temperature b are (Mandt et al. 2016)

.. math::
   \phi_{dvk} &\propto \exp b (E \log\theta_{dk} + E \log\beta_{kv}) \\
   \gamma_{dk} &= \alpha_k + b \sum_v n_{dv} \phi_{dvk} \\
   \lambda_{kv} &\leftarrow (1 - \rho) \lambda_{kv}
       + \rho (\eta_{kv} + \tfrac{D}{B}\, b \sum_d n_{dv} \phi_{dvk})

These updates increase the annealed ELBO, in which KL is the divergence of q from the prior:

.. math::
   F(b) = \sum_{dv} n_{dv} \log \sum_k \exp b (E \log\theta_{dk} + E \log\beta_{kv})
       - \mathrm{KL}(\theta) - \mathrm{KL}(\beta).

With the ``"map"`` estimate topics are point estimates.  Then log E beta = log(lambda_kv / sum_v
lambda_kv) replaces E log beta everywhere, and the same update of lambda maximises

.. math::
   F(b) = \sum_{dv} n_{dv} \log \sum_k \exp b (E \log\theta_{dk} + \log\beta_{kv})
       - \mathrm{KL}(\theta)
       + \sum_k \log \frac{\mathrm{Dir}(\beta_k; \eta_k + 1)}{\mathrm{Dir}(\beta_k; 1)},

because d F / d log beta_kv = eta_kv + b sum_d n_dv phi_dvk.  This is variational EM with a
tempered likelihood of documents.

With ``form="posterior"`` (Abrol et al. 2014), alpha becomes (alpha + T - 1)/T, eta becomes eta/T,
and rho becomes rho T.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from operator import attrgetter
from typing import Any, Self, TypeVar, get_args

import numpy as np
from numpy.random import RandomState
from numpy.typing import ArrayLike, NDArray

from annealvi.checks import check_priors
from annealvi.files.schema import (
    Array,
    Field,
    Generator,
    Integer,
    Number,
    Optional,
    Schema,
    Text,
    Tree,
    damaged,
)
from annealvi.model import UNTEMPERED, Batch, Form, LocalStep, Tempering
from annealvi.models.lda import starts
from annealvi.models.lda.documents import Documents
from annealvi.models.lda.local_step import DocumentStep, FitShard, Summed, fit_batch, total
from annealvi.models.lda.priors import DocumentPartition, LearnedPriors, mean_of_logs
from annealvi.models.lda.topics import Statistics, TopicEstimate, Topics
from annealvi.models.lda.workspace import (
    OPTIONS,
    Buffers,
    LocalOptions,
    inverse_of_each,
    lent_buffers,
)
from annealvi.models.lda_prior import LDAPrior
from annealvi.scale.elsewhere import Elsewhere, Task
from annealvi.threads import shallow

#: Least value of lambda in the posterior form, because its online steps may lower lambda too far.
POSTERIOR_FLOOR = 1e-10

T = TypeVar("T")


class LDA:
    """The steps of Algorithm 1 for LDA; see :class:`annealvi.model.Model`."""

    #: Files of a model contain no buffers, and not gamma of documents, which belongs to a run.
    STATE = Schema(
        dtype=Text("float32", "float64"),
        n_topics=Integer(1),
        n_features=Integer(1),
        estimate=Text(*get_args(TopicEstimate)),
        options=OPTIONS,
        alpha=Array(("n_topics",), positive=True),
        eta=Field(),
        topics=Tree(),
        rng=Generator(),
        n_documents=Optional(Number(0.0)),
        n_words=Optional(Number(0.0)),
        partition=Optional(Tree()),
    )

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
        self.topics = Topics(n_topics, n_features, eta, dtype, n_threads, topic_estimate)
        options = LocalOptions() if options is None else options
        self.documents = Documents(self.topics, alpha, options)
        self.rng: RandomState | None = None
        self.n_documents: float | None = None
        self.n_words: float | None = None
        self.learned_priors: LearnedPriors | None = None
        self.buffers = Buffers()
        self._corpus: starts.CorpusOfFit | None = None
        #: Number of steps of the topics with rho = 1.
        self.n_full_steps = 0
        #: Computes log C of documents, if the temperature is learned from it.
        self.partition: DocumentPartition | None = None

    # ----------------------------------------------------------- what it is made of

    n_topics = property(attrgetter("topics.n_topics"), doc="K.")
    n_features = property(attrgetter("topics.n_features"), doc="V.")
    dtype = property(attrgetter("topics.dtype"), doc="dtype of all arrays that the kernels use.")
    alpha = property(attrgetter("documents.alpha"), doc="Prior of theta, of shape (K,).")
    eta = property(attrgetter("topics.eta"), doc="Prior of beta, of shape (), (V,) or (K, V).")

    def set_priors(self, alpha: ArrayLike, eta: ArrayLike) -> None:
        """Set the priors, which the next step uses."""
        self.documents.set_alpha(alpha)
        self.topics.set_eta(eta)

    def initialize(self, rng: RandomState, X: Any = None, init: str = "random") -> None:
        """Set the topics to a starting point."""
        self.rng = rng
        with self.topics.replaced_by() as components:
            if init == "kmeans++":
                starts.topics_of_spread_documents(X, rng, components)
            elif init == "documents":
                starts.topics_of_documents(X, self.eta, rng, components)
            else:
                starts.random_topics(rng, components)

    # ----------------------------------------------------------------- Algorithm 1

    def start_documents(self, n_samples: int) -> None:
        """Allocate gamma of all documents, if it is kept between passes over the documents."""
        if self.documents.options.start == "warm":
            self.documents.gamma = np.ones((n_samples, self.n_topics), dtype=self.dtype)

    def local_step(self, batch: Batch, tempering: Tempering, moments: bool = False) -> LocalStep:
        """Fit gamma and phi of a batch of documents."""
        if self.documents.options.shard_size is None:
            return fit_batch(self, batch, tempering, moments, self.rng)
        return self._sum_of_shards(batch, tempering, moments)

    def _sum_of_shards(self, batch: Batch, tempering: Tempering, moments: bool) -> LocalStep:
        """Compute the local step as a sum over shards."""
        options, seeds = self.documents.options, None
        if options.start == "random" and self.rng is not None:
            n_samples = batch.rows.stop - batch.rows.start
            seeds = self.rng.randint(2**31 - 1, size=-(-n_samples // options.shard_size))
        if self.partition is not None and (moments or tempering.rule is not None):
            self.partition.refresh(self.topics)  # its sums are used for several steps
        found = self.total(FitShard(tempering, moments, seeds), batch.data, batch.rows)
        if self.learned_priors is not None:
            self.learned_priors.begin(tempering, found.seen)
        topics = self.topics
        statistics = self.buffers.ready(*topics.shape, topics.n_threads).statistics
        statistics.clear()
        statistics.put_seen(found.seen_words, found.rows)
        if found.n_units is None:
            return LocalStep(statistics)
        b = float(inverse_of_each(tempering, 1, self.dtype)[0])
        sums = found.n_units, found.energy, found.log_partition, found.inverse, found.of_words
        return DocumentStep(self, statistics, *sums, b)

    def total(self, task: Task[T], X: Any, rows: slice) -> T:
        """Sum a task's results over shards; see :mod:`annealvi.models.lda.local_step`."""
        if isinstance(X, Elsewhere):
            return X.total(task, self.copy(shallow(self.topics)), rows)
        size = self.documents.options.shard_size or max(1, rows.stop - rows.start)
        return total(task, self, X, rows, size)

    def global_step(
        self, statistics: Statistics, rho: float, scale: float, tempering: Tempering
    ) -> None:
        """Set lambda to (1 - rho) lambda + rho (eta + scale * statistics), with tempering.

        rho = 1 sets lambda to the optimum for the batch; rho > 1 moves it further, but not below
        the least eta.  With ``form="posterior"``, a rho < 1 becomes min(1, rho T).
        """
        b, floor = tempering.of_priors, 0.0
        if tempering.form == "posterior":
            rho, floor = min(1.0, rho / b), POSTERIOR_FLOOR
        elif rho > 1:
            floor = float(np.min(self.eta))
        self.n_full_steps += rho == 1
        if self.partition is not None:
            self.partition.outdate(min(rho, 1.0))
        self.topics.step(statistics, rho, scale, floor, b)
        if self.learned_priors is not None:
            self.step_priors(self.learned_priors, min(rho, 1.0), tempering)

    def step_priors(self, learned: LearnedPriors, rho: float, tempering: Tempering) -> None:
        """Update alpha and eta after the topics."""
        topics, documents = self.topics, self.documents

        def mean_log_topics() -> float:
            topics.catch_up()
            lam, K = topics.lam, self.n_topics
            return mean_of_logs(lambda some: topics.logs(lam[some, :K]), self.n_features)

        before = documents.effective_alpha(tempering)
        self.set_priors(
            *learned.step(
                self.alpha, self.eta, rho, mean_log_topics, self.n_features, topics.estimate
            )
        )
        if documents.gamma is not None:  # the counts gamma - alpha must not change
            documents.gamma += documents.effective_alpha(tempering) - before

    # ------------------------------------------------------ learned temperatures

    def normalise_at(self, inverse: NDArray[np.float64] | None) -> None:
        """See :class:`annealvi.model.LocallyNormalised`."""
        self.partition = None if inverse is None else DocumentPartition(inverse)

    def log_mean_unit(self, inverse: NDArray[np.float64]) -> NDArray[np.float64]:
        """log E[sum_k theta_k^b sum_v beta_kv^b], with the expectation over the prior."""
        prior = LDAPrior(
            self.n_topics,
            self.n_features,
            [1],
            doc_topic_prior=self.alpha,
            topic_word_prior=self.eta,
        )
        return prior.log_mean_word(inverse)

    def set_corpus(self, corpus: starts.CorpusOfFit) -> None:
        """Set the corpus and its size."""
        self._corpus = corpus
        self.n_documents, self.n_words = corpus.n_documents, corpus.n_words

    def critical_temperature(self, form: Form = "likelihood") -> float:
        """The temperature of :mod:`annealvi.models.lda.starts`, or a constant without documents."""
        if self._corpus is None:
            return starts.DEFAULT_CRITICAL
        return self._corpus.critical_temperature(self.n_topics, float(np.mean(self.alpha)), form)

    def hyperparameters(self) -> dict[str, Any]:
        """The quantities that log C(T) depends on."""
        return {
            "n_documents": self.n_documents,
            "n_words": self.n_words,
            "n_components": self.n_topics,
            "n_features": self.n_features,
            "doc_topic_prior": self.alpha if np.ptp(self.alpha) else float(self.alpha[0]),
            "topic_word_prior": self.eta,
        }

    # ------------------------------------------------------------------ evaluation

    def elbo(
        self, X: Any, gamma: NDArray | None = None, tempering: Tempering = UNTEMPERED
    ) -> float:
        """The objective F(b) of documents and topics, which is the ELBO at T = 1."""
        if gamma is None:
            documents = self.document_bound(X, tempering, tempering)
        else:
            documents = float(np.sum(self.documents.bound(X, gamma, tempering)))
        return documents + self.topics.bound(tempering.of_priors)

    def document_bound(
        self,
        X: Any,
        tempering: Tempering = UNTEMPERED,
        at: Tempering = UNTEMPERED,
        *,
        n_threads: int | None = None,
        gamma: NDArray | None = None,
    ) -> float:
        """:meth:`Documents.inferred_bound`, as a sum over shards if training uses shards."""
        sharded = self.documents.options.shard_size is not None or isinstance(X, Elsewhere)
        if not sharded or not X.shape[0]:
            return self.documents.inferred_bound(X, tempering, at, n_threads=n_threads, gamma=gamma)
        task = Summed(Documents.inferred_bound, (tempering, at), gamma, {"n_threads": n_threads})
        return self.total(task, X, slice(0, X.shape[0]))

    def objective(self, X: Any, tempering: Tempering, gamma: NDArray | None = None) -> float:
        """The objective of training with sparse documents; see :meth:`Documents.objective`."""
        task = Summed(Documents.objective, (tempering,), gamma)
        documents = self.total(task, X, slice(0, X.shape[0]))
        return documents + self.topics.bound(tempering.of_priors)

    def moments(
        self,
        X: Any,
        tempering: Tempering,
        inverse: NDArray[np.float64] | None,
        gamma: NDArray | None = None,
    ) -> tuple[float, float, NDArray[np.float64] | None]:
        """F(b), and the energy and log C of the documents, all at one gamma."""
        wanted = np.zeros(0) if inverse is None else inverse
        task = Summed(Documents.moments, (tempering,), gamma, {"inverse": wanted})
        bound, energy, *log_c = self.total(task, X, slice(0, X.shape[0]))
        log_partition = None if inverse is None else np.array(log_c)
        return float(bound + self.topics.bound(tempering.of_priors)), float(energy), log_partition

    # --------------------------------------------------------------------- details

    def copy(self, topics: Topics | None = None) -> Self:
        """An independent copy, by default with a copy of the topics; rng is shared."""
        copied = shallow(self)
        copied.topics = self.topics.copy() if topics is None else topics
        copied.documents = self.documents.copy(copied.topics)
        copied.partition = copy.copy(self.partition)
        copied.learned_priors = copy.copy(self.learned_priors)
        copied.buffers = Buffers()
        copied.forget_documents()
        return copied

    @contextmanager
    def working(self, n_threads: int) -> Iterator[Self]:
        """Return a context for tasks in a worker: a copy that uses the buffers of the process."""
        own = self.copy(shallow(self.topics))
        own.topics.n_threads = n_threads
        with lent_buffers() as own.buffers:
            yield own

    def forget_documents(self) -> None:
        """Release what belongs to the documents of a fit, after its end."""
        self.documents.release_buffers()
        self.topics.leave()
        self._corpus = None
        if self.partition is not None:
            self.partition.release_buffers()

    # ----------------------------------------------------------------------- files

    def state_dict(self) -> dict[str, Any]:
        """Everything that the next step depends on, as a tree; see :mod:`annealvi.files`."""
        partition, topics = self.partition, self.topics
        return self.STATE.dump(
            {name: getattr(self, name, None) for name in self.STATE.fields}
            | {
                "estimate": topics.estimate,
                "options": self.documents.options,
                "topics": topics.state_dict(),
                "partition": None if partition is None else partition.state_dict(topics),
            }
        )

    @classmethod
    def of(cls, tree: Mapping[str, Any], way: str = "") -> Self:
        """Make the model from a tree, without log C(T), which :meth:`load_partition` reads."""
        found = cls.STATE.load(tree, way)
        shape, dtype = (found["n_topics"], found["n_features"]), np.dtype(found["dtype"])
        alpha, eta = check_priors(found["alpha"], found["eta"], shape, dtype)
        # checked before arrays are allocated for the numbers of topics and words in the file
        topics = Topics.read(found["topics"], *shape, dtype, f"{way}.topics")
        options = {"options": found["options"], "topic_estimate": found["estimate"]}
        model = cls(*shape, alpha=alpha, eta=eta, dtype=dtype, **options)
        model.topics.restore(topics)
        for name in ("rng", "n_documents", "n_words"):
            setattr(model, name, found[name])
        return model

    def load_partition(self, tree: Mapping[str, Any], way: str = "") -> None:
        """Read the sums for log C(T) from a tree, after the temperature has been attached."""
        found = self.STATE.load(tree, way)["partition"]
        if (self.partition is None) != (found is None):
            raise damaged(f"{way}.partition", "there if and only if T needs it", found)
        if self.partition is not None:
            self.partition.load_state_dict(found, self.topics, f"{way}.partition")

    def __getstate__(self) -> dict[str, Any]:
        return vars(self) | {"_corpus": None}
