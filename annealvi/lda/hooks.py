"""Hooks, which run after each pass of a fit: evaluation, early stopping and convergence tests.

A hook is created with an :class:`annealvi.lda.fit.Fit`.  After each pass a hook records values and
returns whether the fit should end.  A hook warns if the fit ended too early.  The `SCHEMA` of a
hook lists the attributes that are stored in a checkpoint.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.random import RandomState
from numpy.typing import NDArray
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from annealvi.exceptions import warn_user
from annealvi.files.schema import Array, Flag, Integer, Number, Optional, Schema
from annealvi.lda.state import ALPHA, ETA, LDAState, perplexity_of
from annealvi.metrics.held_out import log_likelihood_per_word, split_tokens, sums_of
from annealvi.model import Tempering
from annealvi.temperature.base import whole_steps

#: The fit ends when the score has not improved within this number of passes.
PATIENCE = 3
#: The minimum gain of the score within these passes, in nats per word.  Two fits whose scores
#: differ by less are equally good.  On small corpora the score may increase by a tenth of this gain
#: for a hundred passes.
LEAST_GAIN = 1e-3
#: If there are more tokens, they are not split in halves, because this would take long.
MOST_TOKENS = 2e7
#: The topics have converged if a pass moves less than this share of the words to other topics.
CONVERGED = 1e-3
#: The number of words whose topics are compared at a time.
ROWS = 1024


class Perplexity:
    """Evaluates a fit on its training documents, and ends it when the perplexity has converged."""

    SCHEMA = Schema(
        last=Optional(Number(finite=False)),
        latest=Optional(Number(finite=False)),
        latest_step=Integer(),
        compared=Flag(),
    )

    def __init__(self, fit: Any) -> None:
        self.fit, plan, state = fit, fit.plan, fit.state
        #: gamma of all documents, or None if it is not stored.
        self.gamma: NDArray | None = None
        if plan.keep_gamma:
            shape = plan.documents.shape[0], state.model.n_topics
            self.gamma = np.empty(shape, state.model.dtype)
        self.last: float | None = None  # the last value at the final T, to compare with the next
        self.latest: float | None = None  # the last value at any T
        self.latest_step = 0  # the step of the last value
        self.compared = False  # whether two values at the final T were compared

    def after_pass(self, index: int) -> tuple[bool, str]:
        """Evaluate the fit if due; return whether it should end, and a text for the user."""
        state, parameters = self.fit.state, self.fit.plan.parameters
        every = parameters["evaluate_every"]
        if every <= 0 or (index + 1) % every:
            return False, ""
        perplexity, converged = self.evaluate(), False
        if state.temperature.settled(state.monitor.step - 1):
            change = np.inf if self.last is None else abs(self.last - perplexity)
            self.compared = self.last is not None
            converged = bool(change < parameters["perp_tol"])
            self.last = perplexity
        state.n_passes -= converged
        return converged, f", perplexity: {perplexity:.4f}"

    def evaluate(self) -> float:
        """Record bounds and perplexity; return the perplexity."""
        state, X = self.fit.state, self.fit.plan.training
        model, monitor = state.model, state.monitor
        temperature: Any = state.temperature
        self.fit.catch_up()  # as at the end of the fit
        model.buffers.release_large()
        elbo, perplexity = self._evaluate(X)
        monitor.record(elbo=elbo, perplexity=perplexity)
        done = monitor.step
        form = temperature.tempering(done - 1).form
        tempering = Tempering(1.0 / monitor.temperature, form)
        learns_one = temperature.learns and not temperature.per_document
        if temperature.per_document and tempering != Tempering():
            pass  # not defined: each document had its own temperature
        elif model.documents.options.sparsity(tempering) > 0:
            monitor.record(annealed_elbo=model.objective(X, tempering))
        elif learns_one and not temperature.settled(done - 1):
            inverse = None
            if isinstance(temperature.partition, str) and temperature.partition == "posterior":
                inverse = 1 / temperature.temperatures_
            annealed, energy, log_c = model.moments(X, tempering, inverse)
            # in Eq. 5, E_q(y)[b L - log C] - KL(q(y) || pi) replaces b L
            change = temperature.tempered_energy(energy, log_c) - energy / monitor.temperature
            monitor.record(annealed_elbo=annealed, tempered_elbo=annealed + change)
        elif tempering == Tempering():
            monitor.record(annealed_elbo=elbo)
        else:
            monitor.record(annealed_elbo=model.elbo(X, None, tempering))
        self.latest, self.latest_step = perplexity, done
        return perplexity

    def _evaluate(self, X: Any) -> tuple[float, float]:
        elbo = self.fit.state.elbo(X, out=self.gamma if X is self.fit.plan.documents else None)
        return elbo, perplexity_of(elbo, X)

    def final(self) -> float:
        """Return the perplexity of all documents; it is computed once unless more steps follow."""
        plan, step = self.fit.plan, self.fit.state.monitor.step
        if plan.documents is not plan.training:
            return self._evaluate(plan.documents)[1]
        if self.latest is None or self.latest_step != step:
            self.latest, self.latest_step = self._evaluate(plan.training)[1], step
        return self.latest

    def warn(self) -> None:
        plan, parameters = self.fit.plan, self.fit.plan.parameters
        if parameters["evaluate_every"] <= 0:
            return
        longer = "n_init=1 with a larger max_iter" if plan.settings.merged else "a larger max_iter"
        n_full = self.fit.passes.n_full
        more = f" and {n_full} batch passes at the end" if n_full else ""
        advice = f"Use {longer}, or a larger perp_tol."
        if not self.compared:
            advice = (
                "Values are compared only at T = 1, and fewer than two values were computed at "
                f"T = 1. Use {longer}, or let the temperature reach 1 earlier, for example with "
                "temperature='annealed'."
            )
        warn_user(
            f"The training perplexity had not converged to perp_tol={parameters['perp_tol']!r} "
            f"after max_iter={plan.n_passes} passes{more}. {advice}",
            ConvergenceWarning,
        )


class HeldOutDocuments:
    """The held-out documents, on which topics are scored; a higher score is better."""

    def __init__(self, X: sparse.csr_matrix, rng: RandomState) -> None:
        self.X = X
        self.n_words = float(X.sum(dtype=np.float64))
        #: The observed and the hidden half of each document's tokens.
        self.halves: tuple[sparse.csr_matrix, sparse.csr_matrix] | None = None
        if self.n_words <= MOST_TOKENS and np.array_equal(X.data, np.floor(X.data)):
            halves = split_tokens(X, random_state=rng)
            if halves[1].nnz:
                self.halves = halves

    def score(self, state: LDAState) -> float:
        """Return the log-likelihood of document completion, in nats per word.

        If the documents were not split into halves, return the ELBO per word instead.
        """
        if self.halves is None:
            return state.model.document_bound(self.X) / self.n_words
        seen, hidden = self.halves
        gamma = state.model.documents.infer(seen).astype(np.float64, copy=False)
        theta = gamma / gamma.sum(axis=1)[:, np.newaxis]
        topics = state.model.topics
        shape = topics.n_topics, topics.n_features
        # pending steps are applied to copies of a few rows at a time, so the topics do not change
        sums = sums_of(topics.some_rows, shape)
        return log_likelihood_per_word(hidden, theta, topics.some_rows, sums)


def hold_out(
    X: sparse.csr_matrix, fraction: float, rng: RandomState
) -> tuple[sparse.csr_matrix, HeldOutDocuments]:
    """Split the documents into a training set, in the same order, and a held-out set."""
    n_samples = X.shape[0]
    size = whole_steps(fraction * n_samples)  # the size that scikit-learn's train_test_split uses
    if not 1 <= size < n_samples:
        raise ValueError(
            f"validation_fraction={fraction!r} must result in at least one training document and "
            f"one held-out document. Got n_samples={n_samples}: {size} documents would be held out."
        )
    held_out = np.zeros(n_samples, dtype=bool)
    held_out[rng.permutation(n_samples)[:size]] = True
    some = X[held_out]
    if some.sum(dtype=np.float64) == 0:
        raise ValueError(
            f"With validation_fraction={fraction!r} the held-out documents must contain words. "
            f"Got n_samples={n_samples}, and {size} held-out documents without words. Use a larger "
            "validation_fraction, or remove documents without words."
        )
    return X[~held_out], HeldOutDocuments(some, rng)


class HeldOut:
    """Scores a fit on held-out documents, stores the best topics, and ends the fit after them."""

    SCHEMA = Schema(
        score=Number(finite=False),
        improving=Flag(),
        step=Integer(-1),
        reference=Number(finite=False),
        waited=Integer(),
        best=Optional(
            Schema(  # the topics with the highest score, and their step
                step=Integer(),
                n_passes=Integer(),
                topics=Array(("K", "V"), "dtype", positive=True),
                alpha=ALPHA,
                eta=ETA,
            )
        ),
    )

    def __init__(self, fit: Any, documents: HeldOutDocuments) -> None:
        self.fit, self.documents = fit, documents
        self.score = -np.inf  # the best score
        self.improving = False  # whether the last pass at the final T improved the score
        self.best: dict[str, Any] | None = None
        self.step = -1  # the last step after which topics were scored
        self.reference = -np.inf  # the score that must be improved
        self.waited = 0  # number of passes without improvement

    def after_pass(self, index: int) -> tuple[bool, str]:
        """Score the fit; return whether it should end, and a text for the user."""
        score, state = self._score(), self.fit.state
        text = f", validation: {score:.4f}"
        if not state.temperature.settled(state.monitor.step - 1):
            return False, text  # scores rise merely because T falls
        self.improving = bool(score > self.reference + LEAST_GAIN)
        if self.improving:
            self.improving = bool(np.isfinite(self.reference))  # false if this is the first score
            self.reference, self.waited = score, 0
        else:
            self.waited += 1
        return self.waited >= PATIENCE, text

    def finish(self) -> float:
        """Restore the best topics, maybe of an unfinished last pass, and return their score."""
        state = self.fit.state
        if state.monitor.step != self.step:
            self._score()
        if self.best is not None:
            state.n_passes = self.best["n_passes"]
            if self.best["step"] != state.monitor.step:
                with self.fit.plan.changing:
                    state.model.topics.assign(self.best["topics"])
                    state.set_priors(self.best["alpha"], self.best["eta"])
        self.best = None  # its arrays are no longer needed
        state.results["validation_score"] = self.score
        return self.score

    def _score(self) -> float:
        """Score the topics, record the score, and store the topics if they are the best so far."""
        state = self.fit.state
        state.model.buffers.release_large()
        monitor, score = state.monitor, self.documents.score(state)
        self.step = monitor.step
        if monitor.step:
            monitor.record(validation=score)
        if self.best is None or score > self.score:
            self.best = None  # frees the old copy before the new one is made
            self.best = {
                "step": monitor.step,
                "n_passes": state.n_passes,
                "topics": state.model.topics.snapshot(),
                "alpha": state.doc_topic_prior,
                "eta": state.topic_word_prior,
            }
            self.score = score
        return score

    def warn(self) -> None:
        plan = self.fit.plan
        if self.improving and not plan.settings.merged:
            warn_user(
                f"The validation score was still improving after max_iter={plan.n_passes} passes. "
                "Increase max_iter.",
                ConvergenceWarning,
            )


class Converged:
    """Ends a fit when a batch pass at T = 1 hardly changes its topics."""

    SCHEMA = Schema(
        topics=Optional(Array(("V", "K"), "dtype", positive=True)), change=Optional(Number(0.0))
    )

    def __init__(self, fit: Any) -> None:
        self.fit = fit
        self.topics: NDArray | None = None  # the topics after the last pass
        #: The share of `components_` that the last pass has moved between topics.
        self.change: float | None = None

    def after_pass(self, index: int) -> tuple[bool, str]:
        """Record the change of the topics; return whether the fit should end, and no text."""
        n_before, state = self.fit.passes.n_passes, self.fit.state
        if index + 1 < n_before:
            return False, ""
        self.fit.catch_up()
        topics = state.model.topics
        now = topics.lam[:, : topics.n_topics]
        if self.topics is not None and index >= n_before:
            self.change = moved_share(self.topics, now)
            state.monitor.record(topic_change=self.change)
        self.topics = now.copy()
        return self.change is not None and self.change < CONVERGED, ""


def moved_share(before: NDArray, after: NDArray) -> float:
    """Return half the sum of |after - before|, divided by the larger of the two arrays' sums."""
    moved, totals = 0.0, np.zeros(2)
    for start in range(0, len(after), ROWS):
        rows = slice(start, start + ROWS)
        moved += float(np.abs(after[rows] - before[rows]).sum(dtype=np.float64))
        totals += [topics[rows].sum(dtype=np.float64) for topics in (before, after)]
    return moved / (2 * float(totals.max()))
