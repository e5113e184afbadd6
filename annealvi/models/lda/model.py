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
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, Self, get_args

import numpy as np
from numpy.random import RandomState
from numpy.typing import ArrayLike, DTypeLike, NDArray
from sklearn.utils import gen_batches

from annealvi._kernels import lda_topics as kernels
from annealvi._kernels import special
from annealvi._kernels.layout import aligned_empty, padded_length, padded_rows, separate_rows
from annealvi.checks import check_prior
from annealvi.exceptions import BadParameter
from annealvi.files.schema import (
    Array,
    Field,
    Flag,
    Generator,
    Integer,
    Number,
    Optional,
    Schema,
    Text,
    Tree,
    damaged,
)
from annealvi.model import Form, Tempering
from annealvi.models.dirichlet import BLOCK, divergence_terms
from annealvi.models.lda import starts
from annealvi.models.lda.priors import DocumentPartition
from annealvi.models.lda_prior import LDAPrior
from annealvi.threads import shallow

TopicEstimate = Literal["map", "variational"]
Prior = float | NDArray
#: The kernels count iterations in 32 bits.
MOST_ITERATIONS = 2**31 - 1
#: Number of words whose logarithms are computed together.
TOPIC_ROWS = 512
#: Rows of added words start at this share of the prior, and steps move them to the whole prior.
#: Starting at the whole prior would change the sums of small topics, and so all shares, suddenly.
NEW_SHARE = 1e-3
#: Pending steps are applied when the product of 1 - rho falls below this.
FORGOTTEN = 1e-200


@dataclass(frozen=True)
class LocalOptions:
    """What the user's parameters mean for the local step of documents, at any temperature."""

    #: Largest number of iterations for a document.
    max_iter: int = 100
    #: With `by_topic`, a document stops when mean_k |change of gamma_dk| falls below `tolerance`.
    #: With more topics it stops earlier.  Otherwise it stops when sum_k |change of gamma_dk| falls
    #: below `tolerance` times the document's number of tokens, which does not depend on K.
    tolerance: float = 1e-3
    by_topic: bool = True
    #: Largest number of iterations outside training, if it differs from `max_iter`.  In float32
    #: the result of a document that stops before convergence may vary.
    inference_iter: int | None = None
    #: Whether to compute scikit-learn's numbers.  Then gamma starts at new Gamma(100, 0.01) draws
    #: in training, and the dtype's eps is added to the normaliser of phi.  Otherwise gamma starts
    #: at 1, and the largest exponent is subtracted, so that float32 does not underflow.
    exact: bool = False
    #: Whether training favours few topics for each document when T is low.
    sparse: bool = False
    #: Whether training makes longer steps, and may stop earlier, when T is low.
    over_relaxed: bool = False
    #: Number of documents in a shard, if training sums over shards.
    shard_size: int | None = None


OPTIONS = Schema(
    LocalOptions,
    max_iter=Integer(0, MOST_ITERATIONS),
    tolerance=Number(0.0),
    by_topic=Flag(),
    inference_iter=Optional(Integer(0, MOST_ITERATIONS)),
    exact=Flag(),
    sparse=Flag(),
    over_relaxed=Flag(),
    shard_size=Optional(Integer(1)),
)


class PriorField(Field):
    """A prior in the form that the user sees: a number, or an array of one of the `shapes`."""

    def __init__(self, *shapes: str) -> None:
        """Set the shapes that an array can have, such as "KV" for (n_topics, n_features)."""
        self.shapes = shapes

    def load(self, value: Any, path: str, sizes: Mapping[str, Any]) -> Prior:
        """Check and return the prior at `path` in a file; `sizes` are the model's other fields."""
        names = {"K": "n_topics", "V": "n_features"}
        shapes = tuple(tuple(sizes[names[side]] for side in shape) for shape in self.shapes)
        dtype = np.dtype(sizes["dtype"])
        try:
            return read_only(check_prior(value, path, shapes, dtype))
        except BadParameter as error:
            raise damaged(path, error.must_be, value) from error


ALPHA = PriorField("K")
ETA = PriorField("V", "KV")


def read_only(value: Any) -> Any:
    """Return a prior; if it is an array, it cannot be changed in place from now on."""
    if isinstance(value, np.ndarray):
        value.flags.writeable = False
    return value


def log_of(estimate: TopicEstimate) -> Callable[..., NDArray]:
    """The function f for which log E[beta] or E[log beta] is f(lambda_v) - f(sum_v lambda_v)."""
    return special.log if estimate == "map" else special.digamma


class LDA:
    """What a fit has learned about LDA: data that engines read and change.

    `lam` has a row for each word, padded to whole cache lines.  An online step updates only the
    rows of the words in the minibatch.  The other rows only move towards the prior.  Their steps
    are pending: they multiply ``lam[v] - eta[v]`` by ``now / decay[v]``, where `now` is the product
    of 1 - rho over all steps, and `decay[v]` its value when the row was last updated.

    Several threads may read an LDA.  While a method changes it, no other thread may use it.
    Methods that read do not apply pending steps in place, because the local step of another thread
    may read the rows.
    """

    SCHEMA = Schema(
        dtype=Text("float32", "float64"),
        n_topics=Integer(1),
        n_features=Integer(1),
        estimate=Text(*get_args(TopicEstimate)),
        options=OPTIONS,
        alpha=ALPHA,
        eta=ETA,
        lam=Array(("n_features", None), "dtype"),
        decay=Array(("n_features",), positive=True),
        now=Number(FORGOTTEN, 1.0),
        sums=Array(("n_topics",), positive=True),
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
        dtype: DTypeLike = np.float64,
        estimate: TopicEstimate = "variational",
        options: LocalOptions | None = None,
    ) -> None:
        """Make an LDA whose lambda is not set yet; see `initialize`, `assign` and `replace`."""
        self.n_topics = n_topics
        self.n_features = n_features
        self.dtype = np.dtype(dtype)
        self.width = padded_length(n_topics, self.dtype)
        #: The priors of theta and beta: numbers, or arrays of shape (K,), (V,) or (K, V).
        self.alpha: Any = alpha
        self.eta: Any = eta
        self.estimate: TopicEstimate = estimate
        self.options = LocalOptions() if options is None else options
        #: The priors that steps learn: "doc_topic_prior", "topic_word_prior".
        self.learned: tuple[str, ...] = ()
        self.rng: RandomState | None = None
        self.n_documents: float | None = None
        self.n_words: float | None = None
        #: The documents from which a temperature is planned, only while it is being planned.
        self.corpus: starts.CorpusOfFit | None = None
        #: Computes log C of documents, if the temperature is learned from it.
        self.partition: DocumentPartition | None = None
        self.lam = aligned_empty((n_features, self.width), self.dtype)
        # no steps are pending
        self.decay = np.ones(n_features)
        self.now = 1.0
        self._sums: NDArray | None = None
        self._spare: NDArray | None = None  # `lam` is its first rows; see add_words
        self._prior: tuple[NDArray, NDArray] | None = None  # rows, sums over words
        #: Values that were computed from lambda, by name.
        self.derived: dict[Any, Any] = {}
        #: Another object after each change of lambda, by which engines know if it has changed.
        self.version = object()

    @property
    def shape(self) -> tuple[int, int, np.dtype]:
        """V, K padded and the dtype, for which buffers are made."""
        return self.n_features, self.width, self.dtype

    @property
    def words(self) -> NDArray[np.int64]:
        """The numbers of all words."""
        return np.arange(self.n_features, dtype=np.int64)

    def initialize(self, rng: RandomState, X: Any = None, init: str = "random") -> None:
        """Set the topics to a starting point."""
        self.rng = rng
        lam = self._empty()
        components = lam[:, : self.n_topics].T  # a view of shape (K, V), to which starts writes
        if init == "kmeans++":
            starts.topics_of_spread_documents(X, rng, components)
        elif init == "documents":
            starts.topics_of_documents(X, np.asarray(self.eta), rng, components)
        else:
            starts.random_topics(rng, components)
        self.replace(lam)

    # ------------------------------------------------------------------- priors

    @property
    def alpha_row(self) -> NDArray:
        """The prior alpha, of shape (K,)."""
        alpha = self.alpha
        return np.full(self.n_topics, alpha, float) if np.ndim(alpha) == 0 else alpha

    def effective_alpha(self, tempering: Tempering) -> NDArray:
        """The prior alpha or, with ``form="posterior"``, (alpha + T - 1) / T."""
        b = tempering.of_priors
        return b * self.alpha_row + (1.0 - b)

    def set_eta(self, eta: Any, n_threads: int = 1) -> None:
        """Set the prior, of shape (), (V,) or (K, V), which the next step uses."""
        if not np.array_equal(self.eta, eta):
            self.catch_up(n_threads)  # pending steps must use the old prior
            self._prior = None
        self.eta = eta  # even if equal, because the dtype or the flags may differ

    def eta_rows(self, dtype: DTypeLike, b: float = 1.0) -> NDArray:
        """Return b eta as a (V, K) array; if eta is a number, it takes the memory of one row."""
        shape = self.n_features, self.n_topics
        eta = np.asarray(self.eta, dtype=float)
        if eta.ndim == 0:
            # a view in which all rows are the same memory
            return np.broadcast_to(np.full(self.n_topics, b * eta, dtype=dtype), shape)
        rows = (eta[:, None] if eta.ndim == 1 else eta.T) * b
        return np.ascontiguousarray(np.broadcast_to(rows, shape), dtype=dtype)

    def prior(self) -> tuple[NDArray, NDArray]:
        """The rows of eta, and their sums over words, of shape (K,) or (1,)."""
        if self._prior is None:
            eta = np.asarray(self.eta, dtype=float)
            topics = eta if eta.ndim == 2 else eta.reshape(1, -1)
            n_copies = self.n_features if eta.ndim == 0 else 1  # a number is the prior of V words
            self._prior = self.eta_rows(self.dtype), n_copies * topics.sum(axis=1)
        return self._prior

    # ------------------------------------------------------------------- lambda

    def up_to_date_lambda(self) -> NDArray:
        """Lambda with all steps applied, of shape (V, K padded); a copy if steps are pending."""
        if self.now == 1:
            return self.lam
        # copies, because the local step of another thread may read the rows
        lam = padded_rows(self.lam, self.dtype)
        move_rows(self.words, lam, eta=self.prior()[0], decay=self.decay.copy(), now=self.now)
        return lam

    @property
    def components(self) -> NDArray:
        """Lambda with all steps applied, as a view of shape (K, V)."""
        return self.up_to_date_lambda()[:, : self.n_topics].T

    def counts(self) -> NDArray:
        """The counts of words in each topic, lambda minus the prior, as a new (K, V) array."""
        # at least 0, because the difference has rounding errors
        return np.maximum(self.components - self.eta_rows(self.dtype).T, 0, order="C")

    def rows_of(self, words: NDArray[np.int64]) -> NDArray:
        """Copies of the rows of some words, to which pending steps have been applied."""
        lam = self.lam[words]
        if self.now != 1:  # otherwise no steps are pending
            move_rows(
                np.arange(len(words), dtype=np.int64),  # rows of the copies
                lam,
                eta=self.prior()[0][words],
                decay=self.decay[words],
                now=self.now,
            )
        return lam[:, : self.n_topics]

    @property
    def sums(self) -> NDArray:
        """The sums of lambda over words, of shape (K,)."""
        sums = self._sums
        if sums is None:
            sums = np.empty(self.n_topics)
            partial = separate_rows(kernels.n_blocks(self.n_features), self.n_topics)
            # writes to `sums`; one thread, because any thread may ask for the sums
            kernels.sum_topics(self.up_to_date_lambda(), n_threads=1, partial=partial, sums=sums)
            # stored only now, because another thread may read or pickle this object meanwhile
            self._sums = sums
        return sums

    @sums.setter
    def sums(self, value: NDArray | None) -> None:
        """Set the sums after a step; with None they are computed when they are needed."""
        self._sums = value

    def changed(self) -> None:
        """Forget values that were computed from lambda, before a change of lambda."""
        self.derived = {}
        self.version = object()

    def copy_if_read_only(self) -> None:
        """Before a change, copy lambda and `decay` if they are read-only parts of a file."""
        if not self.lam.flags.writeable:
            self.lam = padded_rows(self.lam, self.dtype)
            self.decay = self.decay.copy()

    def catch_up(self, n_threads: int = 1) -> None:
        """Apply the pending steps of all rows."""
        if self.now != 1:
            self.copy_if_read_only()
            self._sums = move_rows(
                self.words,
                self.lam,
                eta=self.prior()[0],
                decay=self.decay,
                now=self.now,
                n_threads=n_threads,
                whole=True,  # the result is the sums of the new rows
            )
            self.decay = np.ones(self.n_features)
            self.now = 1.0
            self.changed()  # because rows change by rounding errors

    def replace(self, lam: NDArray) -> None:
        """Set lambda, of shape (V, K padded), without a step."""
        self.lam = lam
        self.decay = np.ones(self.n_features)
        self.now = 1.0
        self._spare = None
        self._sums = None
        self.replaced()

    def replaced(self) -> None:
        """Forget values that steps would only move, after lambda was changed without a step."""
        self.changed()
        if self.partition is not None:
            self.partition.sums = None

    def assign(self, components: ArrayLike) -> None:
        """Set lambda from an array of shape (K, V)."""
        lam = self._empty()
        lam[:, : self.n_topics].T[:] = components  # written through a transposed view
        self.replace(lam)

    def _empty(self) -> NDArray:
        """Return a new array for lambda, of which only the padding is set, to 0."""
        lam = aligned_empty((self.n_features, self.width), self.dtype)
        lam[:, self.n_topics :] = 0
        return lam

    def add_words(self, n: int) -> None:
        """Add n words, whose prior is the smallest prior of the other words in the same topic.

        The allocated number of rows doubles when it is too small, so that few calls copy lambda.
        """
        V = self.n_features + n
        K = self.n_topics
        sums = self.sums  # before lambda changes
        spare = self._spare
        # also if lambda has been replaced, and is no longer a view of the spare rows
        if spare is None or self.lam.base is not spare.base or len(spare) < V:
            spare = aligned_empty((2 * V, self.width), self.dtype)
            spare[: self.n_features] = self.lam
        if np.ndim(self.eta):
            smallest = np.repeat(self.eta.min(axis=-1, keepdims=True), n, axis=-1)
            self.eta = read_only(np.concatenate([self.eta, smallest], axis=-1))
        self.decay = np.append(self.decay, np.full(n, self.now))  # no steps of new rows are pending
        self.n_features = V
        self.lam = spare[:V]
        self._spare = spare
        self._prior = None
        new = self.lam[-n:]
        new[:, :K] = NEW_SHARE * self.eta_rows(self.dtype)[-n:]
        new[:, K:] = 0
        self._sums = sums + new[:, :K].sum(axis=0, dtype=float)
        self.replaced()

    # ------------------------------------------------------ what follows from lambda

    def logs(self, lam: NDArray, out: NDArray | None = None) -> NDArray:
        """Compute E log beta or, with the map estimate, log E beta, for rows of lambda."""
        log = log_of(self.estimate)
        logs = log(np.asarray(lam, dtype=float), out=out)
        logs[:, : self.n_topics] -= log(self.sums)  # not in the padding
        return logs

    def bound(self, b: float = 1.0) -> float:
        """Compute the contribution of the topics to the objective, where the prior is Dir(b eta).

        This contribution is -KL(q(beta) || p(beta)).  With the map estimate, it is the log density
        of the point E beta under the prior Dir(b eta + 1), minus its log density under the uniform
        prior Dir(1).
        """
        return self._negative_kl(b) if self.estimate == "variational" else self._log_density(b)

    def _negative_kl(self, b: float) -> float:
        """Compute -KL(Dir(lambda) || Dir(b eta)), summed over topics."""
        K = self.n_topics
        V = self.n_features
        sums = self.sums
        lam = self.up_to_date_lambda()
        eta = np.asarray(self.eta, dtype=float) * b
        # its shape is (1, 1), (V, 1) or (V, K), so that equal terms of the prior are summed once
        eta = eta.reshape(-1, 1) if eta.ndim < 2 else eta.T
        # how many words, and how many topics, an element of eta is the prior of
        of_words = V // eta.shape[0]
        of_topics = K // eta.shape[1]
        of_each = np.broadcast_to(eta, (V, eta.shape[1]))
        psi_sums = special.digamma(sums)
        total = np.zeros(K)
        for rows in gen_batches(V, max(1, BLOCK // K)):
            total += divergence_terms(lam[rows, :K], of_each[rows], psi_sums).sum(axis=0)
        of_prior = special.lgamma(of_words * eta.sum(axis=0))
        of_prior -= of_words * np.sum(special.lgamma(eta), axis=0)
        return float(np.sum(total - special.lgamma(sums)) + of_topics * np.sum(of_prior))

    def _log_density(self, b: float) -> float:
        """Compute the sum over k of log Dir(E beta_k; b eta_k + 1) - log Dir(E beta_k; 1)."""
        V = self.n_features
        lam = self.up_to_date_lambda()
        eta = self.eta_rows(np.float64, b)
        total = np.zeros(self.n_topics)
        for rows in gen_batches(V, TOPIC_ROWS):  # the order is the same for any number of threads
            total += np.sum(eta[rows] * self.logs(lam[rows, : self.n_topics]), axis=0)
        # if all rows are equal, the log normalizer of the prior is computed from one row
        copies = V if np.ndim(self.eta) == 0 else 1
        eta = eta[: V // copies]
        of_prior = special.lgamma(copies * eta.sum(axis=0) + V) - special.lgamma([float(V)])
        of_prior -= copies * np.sum(special.lgamma(eta + 1.0), axis=0)
        return float(np.sum(total + of_prior))

    # -------------------------------------------- what temperatures ask; see annealvi.model

    def normalise_at(self, inverse: NDArray | None) -> None:
        """See :class:`annealvi.model.LocallyNormalised`."""
        self.partition = None if inverse is None else DocumentPartition(inverse)

    def log_mean_unit(self, inverse: NDArray) -> NDArray:
        """log E[sum_k theta_k^b sum_v beta_kv^b], with the expectation over the prior."""
        prior = LDAPrior(
            self.n_topics,
            self.n_features,
            [1],  # the lengths of documents, which this result does not depend on
            doc_topic_prior=self.alpha_row,
            topic_word_prior=np.asarray(self.eta, dtype=float),
        )
        return prior.log_mean_word(inverse)

    def critical_temperature(self, form: Form = "likelihood") -> float:
        """The temperature of :mod:`annealvi.models.lda.starts`, or a constant without documents."""
        if self.corpus is None:
            return starts.DEFAULT_CRITICAL
        alpha = float(np.mean(self.alpha_row))
        return self.corpus.critical_temperature(self.n_topics, alpha, form)

    def hyperparameters(self) -> dict[str, Any]:
        """The quantities that log C(T) depends on."""
        return {
            "n_documents": self.n_documents,
            "n_words": self.n_words,
            "n_components": self.n_topics,
            "n_features": self.n_features,
            # a number if all topics have the same prior
            "doc_topic_prior": self.alpha if np.ptp(self.alpha) else float(self.alpha_row[0]),
            "topic_word_prior": np.asarray(self.eta),
        }

    # ----------------------------------------------------------------------- files

    def __getstate__(self) -> dict[str, Any]:
        """Return the attributes for pickles, without what can be computed again."""
        return vars(self) | {"corpus": None, "_spare": None, "_prior": None, "derived": {}}

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """Return an independent copy whose rows are aligned in memory too."""
        copied = shallow(self)  # the same attributes; those that steps change are copied below
        memo[id(self)] = copied
        vars(copied).update(self.__getstate__())  # without caches, which belong to this object
        copied.lam = padded_rows(self.lam, self.dtype)
        copied.decay = self.decay.copy()
        copied.rng = copy.deepcopy(self.rng, memo)
        copied.partition = copy.copy(self.partition)
        return copied

    def state_dict(self) -> dict[str, Any]:
        """Everything that the next step depends on, as a tree; see :mod:`annealvi.files`.

        Pending steps are not applied, which would change the last digits of later steps.
        """
        return self.SCHEMA.dump(self)

    @classmethod
    def of(cls, tree: Mapping[str, Any], path: str = "") -> Self:
        """Make an LDA from a tree, without log C(T), which :meth:`load_partition` reads."""
        # checked before arrays are allocated for the numbers of topics and words in the file
        values = cls.SCHEMA.load(tree, path)
        K = values["n_topics"]
        lam = values["lam"]
        if lam.shape[1] != padded_length(K, lam.dtype):
            raise damaged(f"{path}.lam", f"of {K} topics", lam)
        for rows in gen_batches(len(lam), TOPIC_ROWS):
            if np.any(lam[rows, :K] <= 0) or np.any(lam[rows, K:]):
                raise damaged(f"{path}.lam", "positive, and 0 in the padding", lam)
        names = "n_topics", "n_features", "alpha", "eta", "dtype", "estimate", "options"
        model = cls(**{name: values[name] for name in names})
        for name in ("lam", "decay", "now", "sums", "rng", "n_documents", "n_words"):
            setattr(model, name, values[name])
        return model

    def load_partition(self, tree: Mapping[str, Any], path: str = "") -> None:
        """Read the sums for log C(T) from a tree, after the temperature has been attached."""
        saved: Any = tree.get("partition")  # a damaged file may lack it
        # an attached temperature that is learned from log C(T) has made a partition
        if (self.partition is None) != (saved is None):
            raise damaged(f"{path}.partition", "there if and only if T needs it", saved)
        if self.partition is not None:
            self.partition.load_state_dict(saved, self.n_topics, f"{path}.partition")


def move_rows(
    words: NDArray[np.int64],
    lam: NDArray,
    eta: NDArray,
    decay: NDArray,
    now: float,
    *,
    n_threads: int = 1,
    amount: float = 0.0,
    floor: float = 0.0,
    whole: bool = False,
    statistics: Any = None,
) -> NDArray:
    """Apply the pending steps to the rows of some words in place, and add statistics if given.

    Statistics are multiplied by `amount`, and lambda is at least `floor`.  The sums of the new rows
    are returned if `whole` is true, and otherwise those of the statistics.
    """
    n_topics = eta.shape[1]
    sums = np.empty(n_topics)
    partial = separate_rows(kernels.n_blocks(len(words)), n_topics)  # the sums of blocks of rows
    if statistics is None:
        block = None
        values = lam  # not read, because no word has a row of statistics
        row_of = np.full(len(decay), -1, dtype=np.int32)
    else:
        block = statistics.deferred  # if not None, the kernel sums its statistics row by row
        values = statistics.stored
        row_of = statistics.row_of
    kernels.step_topics(  # overwrites lam, decay, partial and sums
        words,
        lam,
        eta,
        decay,
        now,
        values,
        row_of,
        block,
        amount,
        floor,
        whole,
        n_threads,
        partial,
        sums,
    )
    return sums
