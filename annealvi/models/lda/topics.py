"""The topics of LDA, q(beta) = Dir(lambda): their storage, their steps and their bound."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from annealvi._kernels.layout import aligned_empty, padded_length
from annealvi.files import Node
from annealvi.model import UNTEMPERED, Tempering
from annealvi.models.lda.checked_rows import checked_sums, read_rows, read_shown_dtype
from annealvi.models.lda.shown import Shown
from annealvi.models.lda.statistics import Statistics
from annealvi.models.lda.topic_bound import log_density_of_mean, negative_kl_of_topics
from annealvi.models.lda.weights import (
    Rows,
    TopicEstimate,
    TopicWeights,
    exp_e_log,
    log_of,
    move_rows,
    prior_rows,
    sums_of_rows,
)
from annealvi.threads import Lender, brief_lock, is_lent, shallow

#: A step updates all rows if at least this share of the vocabulary occurs in the minibatch,
#: because the next minibatch would need nearly all of them.
DENSE_SHARE = 0.7
#: If the prior is so many times lambda, their difference has lost digits of lambda.
CANCELS = 1e6
#: Pending steps are applied when the product of 1 - rho falls below this.
FORGOTTEN = 1e-200


class Topics:
    """lambda, word-major, and its prior.

    An online step updates only the rows of the words in the minibatch.  The other rows would
    merely move towards the prior.  They are updated later, when they are needed (see
    :meth:`step`).

    One thread at a time makes steps.  Others read a :meth:`copy`, which shares the arrays; a
    change leaves these to the copies, if there are any, and goes on in new ones.
    """

    def __init__(
        self,
        n_topics: int,
        n_features: int,
        eta: ArrayLike,
        dtype: DTypeLike,
        n_threads: int = 1,
        estimate: TopicEstimate = "variational",
    ) -> None:
        self.lock = brief_lock()
        self._lender = Lender()
        self.n_topics = n_topics
        self.n_features = n_features
        self.eta = np.array(eta, dtype=np.float64)
        self.dtype = np.dtype(dtype)
        self.n_threads = n_threads
        self.width = padded_length(n_topics, self.dtype)
        self._lam = aligned_empty((n_features, self.width), self.dtype)
        #: See :class:`Rows`; one attribute, so that an interrupt finds both or neither changed.
        self._steps = (np.ones(n_features), 1.0)
        self._eta_kept: NDArray | None = None
        self._eta_sums = np.empty(0)  # over words, of shape (K,) or (1,)
        self._estimate: TopicEstimate = estimate
        self._sums: NDArray[np.float64] | None = None
        self.version = self.replaced = 0
        self.weights: dict[Any, TopicWeights] = {}
        self._shown = Shown(n_topics, self.dtype)

    def _changed(self) -> None:
        """Mark the values that follow from single rows of lambda as outdated."""
        self.version += 1
        self.weights = {}

    def _was_replaced(self) -> None:
        """Mark all values derived from lambda as outdated."""
        self._sums = None
        self._changed()
        self.replaced += 1

    def copy(self, *, lasting: bool = False) -> Self:
        """Return the topics as they are now; arrays are shared until one of the two changes.

        The user may write to the array that :meth:`show` returned.  It is shared too, unless the
        copy is `lasting`.
        """
        with self.lock:
            self.notice_writes()
            _ = self.sums, self.rows()  # computed once for all copies
            copied, lend = shallow(self), self._lender.lend
            copied.lock, copied._lender = brief_lock(), Lender()
            copied._shown = self._shown.fresh()
            copied._lam, copied._steps = lend(self._lam), (lend(self._steps[0]), self._steps[1])
            if lasting and self._lam is self._shown.rows:
                copied._own_arrays()
            return copied

    @property
    def estimate(self) -> TopicEstimate:
        """The estimate of log beta that documents use."""
        return self._estimate

    @estimate.setter
    def estimate(self, value: TopicEstimate) -> None:
        if value != self._estimate:
            self._estimate = value
            self._changed()
            self.replaced += 1

    def set_eta(self, eta: ArrayLike) -> None:
        """Use another prior, of shape (), (V,) or (K, V), from the next step on."""
        with self.lock:
            if not np.array_equal(self.eta, eta):
                self.catch_up()  # pending steps use the old prior
                self._eta_kept = None
                self.eta = np.array(eta, dtype=np.float64)

    # ------------------------------------------------------------------- lambda

    @property
    def lam(self) -> NDArray:
        with self.lock:
            decay, now = self._steps
            if now == 1:
                return self._lam
            lam = self._copied()
            self._move_rows(lam, decay.copy(), now, np.arange(self.n_features))
            return lam

    @property
    def components(self) -> NDArray:
        """lambda as a (K, V) view."""
        self.notice_writes()
        return self.lam[:, : self.n_topics].T

    def copy_of_components(self) -> NDArray:
        """:attr:`components` in an array of its own."""
        with self.lock:
            self.notice_writes()
            lam = self.lam
            return (lam.copy() if lam is self._lam else lam)[:, : self.n_topics].T

    def some_rows(self, words: NDArray[np.int64]) -> NDArray:
        """Copies of some words' rows of lambda, with their pending steps applied."""
        with self.lock:
            (decay, now), lam = self._steps, self._lam[words]
            if now != 1:
                eta = self.rows().eta[words]
                self._move_rows(lam, decay[words], now, np.arange(len(words)), eta=eta)
            return lam[:, : self.n_topics]

    def rows(self) -> Rows:
        """lambda as it is stored, with its pending steps."""
        with self.lock:
            if self._eta_kept is None:
                topics = self.eta if self.eta.ndim == 2 else self.eta.reshape(1, -1)
                of_words = self.n_features if self.eta.ndim == 0 else 1
                self._eta_sums = of_words * topics.sum(axis=1)
                self._eta_kept = self.eta_rows(self.dtype)  # last, in case of an interrupt
            return Rows(self._lam, self._eta_kept, *self._steps)

    def catch_up(self) -> None:
        """Apply the pending steps of all rows."""
        with self.lock:
            if self._steps[1] != 1:
                self._own_arrays()
                words = np.arange(self.n_features)
                self._sums = self._move_rows(self._lam, *self._steps, words, whole=True)
                self._all_current()
                self._changed()  # rows change by rounding errors

    @property
    def shown_dtype(self) -> np.dtype:
        """The dtype of the array that :meth:`show` returns, which is a copy if it is another."""
        return self._shown.dtype

    @shown_dtype.setter
    def shown_dtype(self, dtype: DTypeLike) -> None:
        with self.lock:
            if dtype != self._shown.dtype:
                self.notice_writes()
                if self._lam is self._shown.rows:
                    self._own_arrays()
                self._shown = Shown(self.n_topics, dtype)

    def show(self) -> NDArray:
        """:attr:`components` for a user, who may keep the array and write to it.

        What the user writes before the topics' next step takes effect.  An array obtained
        before a step may not show later updates.  If its dtype is another than that of lambda,
        the array is a copy, which is kept until the next step.
        """
        with self.lock:
            if self._shown.rows is None:
                # the user may write to lambda itself
                own = self._shown.dtype == self.dtype
                if own and (is_lent(self._lam) or self._lender.has_lent):
                    self._own_arrays()
                self._shown.show(self.lam, self.n_threads)
            return self._shown.components

    def notice_writes(self) -> None:
        """Use what the user wrote to the array that :meth:`show` returned."""
        with self.lock:
            if self._shown.written(self.n_threads):
                self._lam = self._shown.taken_over(self.lam)
                self._all_current()
                self._was_replaced()
                self._shown.agree(self._lam, self.n_threads)

    def assign(self, components: ArrayLike) -> None:
        """Set lambda from an array of shape (K, V)."""
        with self.replaced_by() as own:
            own[:] = components

    @contextmanager
    def replaced_by(self) -> Iterator[NDArray]:
        """Set lambda by writing to all of an array of shape (K, V)."""
        with self.lock:
            self._own_arrays(keep=False)
            self._shown = self._shown.fresh()
            self._lam[:, self.n_topics :] = 0
            yield self._lam[:, : self.n_topics].T
            self._all_current()
            self._was_replaced()

    def _all_current(self) -> None:
        """Record that no row has pending steps."""
        self._steps = (np.ones(self.n_features), 1.0)

    @property
    def sums(self) -> NDArray[np.float64]:
        """sum_v lambda_kv, of shape (K,)."""
        with self.lock:
            if self._sums is None:
                self.catch_up()
                self._sums = sums_of_rows(self._lam, self.n_topics, self.n_threads)
            return self._sums

    # ------------------------------------------------------ what follows from lambda

    def exp_e_log(self) -> NDArray:
        """exp(E log beta) for a user, as a (K, V) array of :attr:`shown_dtype`."""
        topics = self.copy()
        weights = exp_e_log(topics.rows(), topics.sums, topics.n_threads)
        return weights[:, : self.n_topics].T.astype(self.shown_dtype, copy=False)

    def logs(self, lam: NDArray, out: NDArray | None = None) -> NDArray[np.float64]:
        """E log beta or, under the map estimate, log E beta."""
        log = log_of(self.estimate)
        logs = log(np.asarray(lam, dtype=np.float64), out=out)
        logs[:, : self.n_topics] -= log(self.sums)
        return logs

    def bound(self, tempering: Tempering = UNTEMPERED) -> float:
        """The topics' part of the objective.

        This is -KL(q(beta) || p(beta)).  In the map estimate beta is a point, so there is no KL.
        The prior Dir(eta + 1) of the point is then compared with the uniform prior:
        log Dir(E beta; eta + 1) - log Dir(E beta; 1).
        """
        self.notice_writes()
        b = tempering.mean if tempering.form == "posterior" else 1.0
        if self.estimate == "variational":
            return negative_kl_of_topics(
                self.lam, self.eta * b, self.sums, self.n_topics, self.n_threads
            )
        lam, K = self.lam, self.n_topics
        eta = self.eta_rows(np.float64, tempering)
        return log_density_of_mean(lambda some: self.logs(lam[some, :K]), eta, self.eta.ndim == 0)

    # --------------------------------------------------------------------- steps

    def step(
        self,
        statistics: Statistics,
        rho: float,
        scale: float,
        *,
        floor: float = 0.0,
        tempering: Tempering = UNTEMPERED,
    ) -> None:
        """lambda <- (1 - rho) lambda + rho (eta + scale * statistics).

        Only the rows of words in the statistics must be updated now.  The others move towards
        the prior, lambda - eta <- (1 - rho) (lambda - eta).  These steps are pending until the
        row is needed, and are then applied all at once.  The sums over words follow from those
        of the statistics.  All rows are updated if most words occur, if rho = 1, or if the
        step has another prior or a floor.
        """
        with self.lock:
            eta = self.rows().eta
            if tempering.form == "posterior":
                eta = self.eta_rows(self.dtype, tempering)
            self._changed()
            words = statistics.words()
            amount = rho * scale
            lazily = len(words) < DENSE_SHARE * self.n_features and rho < 1
            if lazily and eta is self._eta_kept and floor == 0:
                before, eta_sums = self.sums, self._eta_sums
                self._own_arrays()
                self._shown = self._shown.fresh()
                steps = (self._steps[0], self._steps[1] * (1.0 - rho))
                # if interrupted here, it was a step without statistics
                self._sums, self._steps = None, steps
                sums = self._move_rows(self._lam, *steps, words, statistics, amount)
                moved = eta_sums + (1.0 - rho) * (before - eta_sums)
                if np.any(eta_sums > CANCELS * before):
                    moved = (1.0 - rho) * before + rho * eta_sums
                self._sums = moved + amount * sums
                if steps[1] < FORGOTTEN:
                    self.catch_up()
            else:
                self.catch_up()  # pending steps use the old prior
                self._own_arrays()
                self._shown, self._sums = self._shown.fresh(), None
                self._sums = self._move_rows(
                    self._lam,
                    np.ones(self.n_features),  # `_steps` stay, so an interrupt does no harm
                    1.0 - rho,
                    np.arange(self.n_features),
                    statistics,
                    amount,
                    eta=eta,
                    floor=floor,
                    whole=True,
                )

    def _own_arrays(self, keep: bool = True) -> None:
        """Before a change, copy arrays that are not its own, or that others have too.

        Without `keep` the copy of lambda has no values yet.
        """
        shared = self._lender.has_lent
        if shared or self._lam is self._shown.rows or not self._lam.flags.writeable:
            self._lam = self._copied() if keep else aligned_empty(self._lam.shape, self.dtype)
        if shared or not self._steps[0].flags.writeable:
            self._steps = (self._steps[0].copy(), self._steps[1])
            self._lender = Lender()

    def _copied(self) -> NDArray:
        copied = aligned_empty(self._lam.shape, self.dtype)
        copied[:] = self._lam
        return copied

    def _move_rows(
        self,
        lam: NDArray,
        decay: NDArray[np.float64],
        now: float,
        words: NDArray[np.int64],
        statistics: Statistics | None = None,
        amount: float = 0.0,
        *,
        eta: NDArray | None = None,
        floor: float = 0.0,
        whole: bool = False,
    ) -> NDArray[np.float64]:
        """Apply the pending steps of some words' rows, up to `now`."""
        rows = Rows(lam, self.rows().eta if eta is None else eta, decay, now)
        if statistics is None:
            return move_rows(words, rows, floor, whole, self.n_threads)
        return statistics.step_rows(words, rows, amount, floor, whole, self.n_threads)

    def eta_rows(self, dtype: Any, tempering: Tempering = UNTEMPERED) -> NDArray:
        """eta as a (V, K) array with contiguous rows; a scalar takes the memory of one row."""
        b = tempering.mean if tempering.form == "posterior" else 1.0
        return prior_rows(self.eta, (self.n_features, self.n_topics), b, dtype)

    def state_dict(self) -> dict[str, Any]:
        """Return lambda as a tree, see :mod:`annealvi.files`: as it is stored, steps pending.

        Applying pending steps would change the bits of later steps.
        """
        with self.lock:
            self.notice_writes()
            decay, now = self._steps
            decay_of_rows = None if now == 1 else decay
            return {
                "rows": self._lam,
                "decay": decay_of_rows,
                "now": now,
                "sums": self._sums,
                "shown": self.shown_dtype.name,
            }

    def load_state_dict(self, node: Node) -> None:
        """Take over what :meth:`state_dict` returned; lambda stays a view of the file."""
        shape = self.n_features, self.width
        rows, decay, now = read_rows(node, shape, self.dtype, FORGOTTEN)
        shown = read_shown_dtype(node, self.dtype)
        with self.lock:
            self._lam, self._steps = rows, (decay, now)
            self._shown = Shown(self.n_topics, shown)
            self._was_replaced()
            self._sums = checked_sums(node, self.rows(), self.n_topics)

    def __getstate__(self) -> dict[str, Any]:
        self.notice_writes()
        kept = {name: value for name, value in vars(self).items() if name not in _NOT_PICKLED}
        return kept | {"_shown": self._shown.fresh()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        fresh = dict(_lender=Lender(), lock=brief_lock(), weights={}, _eta_kept=None)
        vars(self).update(state, **fresh)


#: Attributes that a copy computes again.
_NOT_PICKLED = ("_eta_kept", "weights", "lock", "_lender")
