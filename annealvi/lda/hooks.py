"""Hooks, which run after each pass of a fit: evaluation, early stopping and convergence tests.

After each pass, a hook gets the state and an engine.  It records values, and returns whether the
fit should end.  A hook warns if the fit ended too early.  The `SCHEMA` of a hook lists the
attributes that are stored in a checkpoint.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.random import RandomState
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from sklearn.exceptions import ConvergenceWarning

from annealvi.exceptions import warn_user
from annealvi.files.schema import Array, Flag, Integer, Number, Optional, Schema
from annealvi.lda.state import LDAState, perplexity_of
from annealvi.metrics.held_out import log_likelihood_per_word, split_tokens, sums_of
from annealvi.model import Tempering
from annealvi.models.lda.engine import Engine, sparsity
from annealvi.models.lda.model import ALPHA, ETA
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


def hold_out(X: csr_matrix, fraction: float, rng: RandomState) -> tuple[csr_matrix, csr_matrix]:
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
    documents = X[held_out]
    if documents.sum(dtype=float) == 0:
        raise ValueError(
            f"With validation_fraction={fraction!r} the held-out documents must contain words. "
            f"Got n_samples={n_samples}, and {size} held-out documents without words. Use a larger "
            "validation_fraction, or remove documents without words."
        )
    return X[~held_out], documents


def held_out_halves(X: csr_matrix, rng: RandomState) -> tuple[csr_matrix, csr_matrix] | None:
    """Split the tokens of held-out documents in halves, or return None if that is impossible."""
    if X.sum(dtype=float) > MOST_TOKENS or not np.array_equal(X.data, np.floor(X.data)):
        return None
    halves = split_tokens(X, random_state=rng)
    return halves if halves[1].nnz else None


class Perplexity:
    """Evaluates a fit on its training documents, and ends it when the perplexity has converged."""

    SCHEMA = Schema(
        last=Optional(Number(finite=False)),
        latest=Number(finite=False),
        elbo=Number(finite=False),
        latest_step=Integer(),
        compared=Flag(),
    )

    def __init__(self, plan: Any, n_full: int) -> None:
        """Evaluate a fit with this plan, which ends with at most `n_full` batch passes."""
        self.plan = plan
        self.n_full = n_full  # the number of batch passes at the end
        #: gamma of all documents, or None if it is not stored.
        self.gamma: NDArray | None = None
        if plan.keep_gamma:
            shape = plan.documents.shape[0], int(plan.parameters["n_components"])
            self.gamma = np.empty(shape, plan.training.dtype)
        self.last: float | None = None  # the last value at the final T, to compare with the next
        self.latest = np.nan  # the last value at any T, and the ELBO of documents and topics
        self.elbo = np.nan
        self.latest_step = 0  # the step of the last value
        self.compared = False  # whether two values at the final T were compared

    def after_pass(self, state: LDAState, engine: Engine, index: int) -> tuple[bool, str]:
        """Evaluate the fit if due; return whether it should end, and a text for the user."""
        every = self.plan.parameters["evaluate_every"]
        if every <= 0 or (index + 1) % every:
            return False, ""
        with self.plan.lock:
            state.model.catch_up(engine.n_threads)  # as at the end of the fit
        engine.release_large()
        perplexity = self.evaluate(state, engine)
        converged = False
        if state.temperature.settled(state.monitor.step - 1):
            self.compared = self.last is not None
            if self.last is not None:
                converged = bool(abs(self.last - perplexity) < self.plan.parameters["perp_tol"])
            self.last = perplexity
        state.n_passes -= converged  # as in scikit-learn, the last pass does not count
        return converged, f", perplexity: {perplexity:.4f}"

    def evaluate(self, state: LDAState, engine: Engine) -> float:
        """Record bounds and perplexity of the training documents; return the perplexity.

        The annealed ELBO is that at the temperature of the last step.
        """
        X = self.plan.training
        model = state.model
        monitor = state.monitor
        temperature: Any = state.temperature
        self._evaluate(state, engine, X)
        elbo = self.elbo
        monitor.record(elbo=elbo, perplexity=self.latest)
        step = monitor.step - 1  # the last step
        tempering = Tempering(1.0 / monitor.temperature, temperature.tempering(step).form)
        of_topics = tempering.of_priors
        learns_one = temperature.learns and not temperature.per_document
        if temperature.per_document and tempering != Tempering():
            pass  # not defined: each document had its own temperature
        elif sparsity(model, tempering) > 0:
            documents = engine.objective(model, X, tempering)
            monitor.record(annealed_elbo=documents + model.bound(of_topics))
        elif learns_one and not temperature.settled(step):
            # whether log C(T) is computed from q, so that it must be computed here
            at_q = isinstance(temperature.partition, str) and temperature.partition == "posterior"
            # without inverse temperatures, log C is not computed
            inverse = 1 / temperature.temperatures_ if at_q else np.zeros(0)
            bound, energy, *log_c = engine.moments(model, X, tempering, inverse)
            annealed = float(bound + model.bound(of_topics))
            log_partition = np.array(log_c) if at_q else None
            # in Eq. 5, E_q(y)[b L - log C] - KL(q(y) || pi) replaces b L
            tempered = temperature.tempered_energy(float(energy), log_partition)
            change = tempered - float(energy) / monitor.temperature
            monitor.record(annealed_elbo=annealed, tempered_elbo=annealed + change)
        elif tempering == Tempering():
            monitor.record(annealed_elbo=elbo)
        else:
            documents = engine.document_bound(model, X, tempering, tempering)
            monitor.record(annealed_elbo=documents + model.bound(of_topics))
        return self.latest

    def _evaluate(self, state: LDAState, engine: Engine, X: Any) -> None:
        """Compute the perplexity of documents, and the ELBO of documents and topics."""
        # gamma of all documents is stored, but not that of the training documents alone
        out = self.gamma if X is self.plan.documents else None
        documents = state.elbo(engine, X, out=out, topics=False)
        self.elbo = documents + state.model.bound()
        self.latest = perplexity_of(self.elbo if self.plan.scores_topics else documents, X)
        self.latest_step = state.monitor.step

    def final(self, state: LDAState, engine: Engine) -> float:
        """Return the perplexity of all documents; it is computed once unless more steps follow."""
        plan = self.plan
        # whether the last value is that of all documents at the present topics
        done = plan.documents is plan.training and self.latest_step == state.monitor.step
        if np.isnan(self.latest) or not done:
            self._evaluate(state, engine, plan.documents)
        return self.latest

    def warn(self) -> None:
        """Warn that the perplexity did not converge within the passes of the fit."""
        plan = self.plan
        if plan.parameters["evaluate_every"] <= 0:
            return
        longer = "n_init=1 with a larger max_iter" if plan.settings.merged else "a larger max_iter"
        more = f" and {self.n_full} batch passes at the end" if self.n_full else ""
        advice = f"Use {longer}, or a larger perp_tol."
        if not self.compared:
            advice = (
                "Values are compared only at T = 1, and fewer than two values were computed at "
                f"T = 1. Use {longer}, or let the temperature reach 1 earlier, for example with "
                "temperature='annealed'."
            )
        perp_tol = plan.parameters["perp_tol"]
        warn_user(
            f"The training perplexity had not converged to perp_tol={perp_tol!r} "
            f"after max_iter={plan.n_passes} passes{more}. {advice}",
            ConvergenceWarning,
        )


class Validation:
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
                topics=Array(("n_topics", "n_features"), "dtype", positive=True),
                alpha=ALPHA,
                eta=ETA,
            )
        ),
    )

    def __init__(self, plan: Any) -> None:
        """Score a fit with this plan, which holds out documents."""
        self.plan = plan
        self.score = -np.inf  # the best score
        self.improving = False  # whether the last pass at the final T improved the score
        self.best: dict[str, Any] | None = None
        self.step = -1  # the last step after which topics were scored
        self.reference = -np.inf  # the score that must be improved
        self.waited = 0  # number of passes without improvement

    def after_pass(self, state: LDAState, engine: Engine, index: int) -> tuple[bool, str]:
        """Score the fit; return whether it should end, and a text for the user."""
        score = self._score(state, engine)
        text = f", validation: {score:.4f}"
        if not state.temperature.settled(state.monitor.step - 1):
            return False, text  # scores rise merely because T falls
        self.improving = bool(score > self.reference + LEAST_GAIN)
        if self.improving:
            self.improving = bool(np.isfinite(self.reference))  # false if this is the first score
            self.reference = score
            self.waited = 0
        else:
            self.waited += 1
        return self.waited >= PATIENCE, text

    def finish(self, state: LDAState, engine: Engine) -> float:
        """Restore the best topics, maybe of an unfinished last pass, and return their score."""
        if state.monitor.step != self.step:  # steps were made after the last score
            self._score(state, engine)
        if self.best is not None:  # None if nothing was scored since the last call of `finish`
            state.n_passes = self.best["n_passes"]
            if self.best["step"] != state.monitor.step:  # later topics were worse
                with self.plan.lock:
                    state.model.assign(self.best["topics"])
                    state.set_priors(self.best["alpha"], self.best["eta"])
        self.best = None  # its arrays are no longer needed
        state.results["validation_score"] = self.score
        return self.score

    def _score(self, state: LDAState, engine: Engine) -> float:
        """Score the topics, record the score, and store the topics if they are the best so far."""
        engine.release_large()
        monitor = state.monitor
        score = self.score_of(state, engine)
        self.step = monitor.step
        if monitor.step:  # before the first step there is no record
            monitor.record(validation=score)
        # the first topics are kept even if their score is NaN
        if self.best is None or score > self.score:
            self.best = None  # frees the old copy before the new one is made
            topics = state.model.components  # already a copy if steps are pending
            if np.shares_memory(topics, state.model.lam):
                topics = topics.copy(order="K")
            self.best = {
                "step": monitor.step,
                "n_passes": state.n_passes,
                "topics": topics,
                "alpha": state.model.alpha,
                "eta": state.model.eta,
            }
            self.score = score
        return score

    def score_of(self, state: LDAState, engine: Engine) -> float:
        """Return the log-likelihood of document completion, in nats per word.

        If the documents were not split into halves, return the ELBO per word instead.
        """
        X = self.plan.held_out
        model = state.model
        if self.plan.halves is None:
            return engine.document_bound(model, X) / float(X.sum(dtype=float))
        seen, hidden = self.plan.halves
        gamma = engine.infer(model, seen).astype(float, copy=False)
        theta = gamma / gamma.sum(axis=1)[:, None]
        # pending steps are applied to copies of a few rows at a time, so the topics do not change
        sums = sums_of(model.rows_of, (model.n_topics, model.n_features))
        return log_likelihood_per_word(hidden, theta, model.rows_of, sums)

    def warn(self) -> None:
        """Warn if the last pass improved the score; merged fits end with batch passes."""
        plan = self.plan
        if self.improving and not plan.settings.merged:
            warn_user(
                f"The validation score was still improving after max_iter={plan.n_passes} passes. "
                "Increase max_iter.",
                ConvergenceWarning,
            )


class Converged:
    """Ends a fit when a batch pass at T = 1 hardly changes its topics."""

    SCHEMA = Schema(
        topics=Optional(Array(("n_features", "n_topics"), "dtype", positive=True)),
        change=Optional(Number(0.0)),
    )

    def __init__(self, plan: Any, n_passes: int) -> None:
        """Test the batch passes that follow `n_passes` passes over minibatches."""
        self.plan = plan
        self.n_passes = n_passes  # the number of passes before the batch passes
        self.topics: NDArray | None = None  # the topics after the last pass
        #: The share of `components_` that the last pass has moved between topics.
        self.change: float | None = None

    def after_pass(self, state: LDAState, engine: Engine, index: int) -> tuple[bool, str]:
        """Record the change of the topics; return whether the fit should end, and no text."""
        if index + 1 < self.n_passes:  # before the last pass over minibatches
            return False, ""
        model = state.model
        with self.plan.lock:
            model.catch_up(engine.n_threads)  # applies pending steps, so that `lam` is complete
        topics = model.lam[:, : model.n_topics]
        if self.topics is not None and index >= self.n_passes:
            self.change = moved_share(self.topics, topics)
            state.monitor.record(topic_change=self.change)
        self.topics = topics.copy()
        return self.change is not None and self.change < CONVERGED, ""


def moved_share(before: NDArray, after: NDArray) -> float:
    """Return half the sum of |after - before|, divided by the larger of the two arrays' sums."""
    moved = 0.0
    totals = np.zeros(2)
    for start in range(0, len(after), ROWS):
        rows = slice(start, start + ROWS)
        moved += float(np.abs(after[rows] - before[rows]).sum(dtype=float))
        # the sums of both arrays
        totals += [topics[rows].sum(dtype=float) for topics in (before, after)]
    return moved / (2 * float(totals.max()))
