"""Held-out documents, which decide when a fit stops and which of its topics are kept."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.random import RandomState
from numpy.typing import NDArray
from scipy import sparse

from annealvi.checks import check_priors, check_topics
from annealvi.files import Node
from annealvi.lda.state import LDAState
from annealvi.metrics.held_out import log_likelihood_per_word, split_tokens, sums_of
from annealvi.temperature.base import whole_steps

#: Gain of the score, in nats per word, that is required within `patience` passes.  Two fits
#: that differ by less are equally good.  On small corpora the score may rise by a tenth of this
#: for a hundred passes.
LEAST_GAIN = 1e-3
#: Above this number tokens are not split in halves, which would take long.
MOST_TOKENS = 2e7


class HeldOutDocuments:
    """Documents on which topics are scored; a higher score is better."""

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
        """Score of a fit, in nats per word.

        Log-likelihood of document completion or, if tokens cannot be split, the documents'
        part of the bound.
        """
        if self.halves is None:
            return state.document_elbo(self.X) / self.n_words
        seen, hidden = self.halves
        gamma = state.infer(seen).astype(np.float64, copy=False)
        theta = gamma / gamma.sum(axis=1)[:, np.newaxis]
        topics = state.model.topics
        shape = topics.n_topics, topics.n_features
        # pending steps are applied to copies of some rows at a time: scoring changes nothing
        sums = sums_of(topics.some_rows, shape)
        return log_likelihood_per_word(hidden, theta, topics.some_rows, sums)


def hold_out(
    X: sparse.csr_matrix, fraction: float, rng: RandomState
) -> tuple[sparse.csr_matrix, HeldOutDocuments]:
    """Split the documents into a training set, order kept, and a held-out set."""
    n_samples = X.shape[0]
    size = whole_steps(fraction * n_samples)
    if not 1 <= size < n_samples:
        raise ValueError(
            f"validation_fraction={fraction!r} must leave at least one document on either side. "
            f"Got n_samples={n_samples}, of which {size} would be held out."
        )
    held_out = np.zeros(n_samples, dtype=bool)
    held_out[rng.permutation(n_samples)[:size]] = True
    some = X[held_out]
    if some.sum(dtype=np.float64) == 0:
        raise ValueError(
            f"With validation_fraction={fraction!r} the held-out documents must have words. "
            f"Got {size} without any out of n_samples={n_samples}: use a larger "
            "validation_fraction, or leave out documents without words."
        )
    return X[~held_out], HeldOutDocuments(some, rng)


class EarlyStopping:
    """Scores one fit after each pass, keeps its best topics and decides when to stop."""

    def __init__(self, held_out: HeldOutDocuments, patience: int) -> None:
        self.held_out = held_out
        self.patience = patience
        self.score = -np.inf  # the best
        self.improving = False  # whether the last pass at settled T improved the score
        self._best: tuple[int, int, NDArray, tuple[Any, Any]] | None = None
        self._step = -1  # the last step that was scored
        self._reference = -np.inf  # the score to improve on
        self._waited = 0

    def after_pass(self, state: LDAState) -> tuple[float, bool]:
        """Score the current topics; return the score and whether the fit should end."""
        score = self._score(state)
        if not state.temperature.settled(state.monitor.step - 1):
            return score, False  # scores rise merely because T falls
        self.improving = bool(score > self._reference + LEAST_GAIN)
        if self.improving:
            self.improving = np.isfinite(self._reference)  # there was something to compare with
            self._reference, self._waited = score, 0
        else:
            self._waited += 1
        return score, self._waited >= self.patience

    def finish(self, state: LDAState) -> None:
        """Restore the best topics, which may be those of an unfinished last pass."""
        if state.monitor.step != self._step:
            self._score(state)
        if self._best is not None:
            step, state.n_passes, topics, priors = self._best
            if step != state.monitor.step:
                with state.lock:
                    state.model.topics.assign(topics)
                    state.doc_topic_prior, state.topic_word_prior = priors
                    state.use_priors()
        self._best = None  # its arrays are no longer needed
        state.results.validation_score = self.score

    def state_dict(self) -> dict[str, Any]:
        """Return the scores and the best topics as a tree; see :mod:`annealvi.files`."""
        best = None
        if self._best is not None:
            step, n_passes, topics, priors = self._best
            best = {"step": step, "passes": n_passes, "topics": topics, "priors": list(priors)}
        return {
            "score": self.score,
            "improving": bool(self.improving),
            "step": self._step,
            "reference": self._reference,
            "waited": self._waited,
            "best": best,
        }

    def load_state_dict(self, node: Node, state: LDAState) -> None:
        """Take over what :meth:`state_dict` returned."""
        self.score = node.number("score", finite=False)
        self.improving = node.boolean("improving")
        self._step = node.integer("step", -1)
        self._reference = node.number("reference", finite=False)
        self._waited = node.integer("waited")
        self._best = None
        if not node.is_none("best"):
            best, model = node.node("best"), state.model
            shape = model.n_topics, model.n_features
            topics = best.array("topics", shape, model.dtype)
            check_topics(topics, "components_", shape, model.dtype)
            pair = best.items("priors")
            if len(pair) != 2:
                raise best.error("priors", "a list of two priors", pair)
            priors = check_priors(pair[0], pair[1], shape, model.dtype, suffix="_")
            self._best = best.integer("step"), best.integer("passes"), topics, priors

    def _score(self, state: LDAState) -> float:
        """Score and record the topics, and keep them if they are the best so far."""
        state.model.buffers.release_large()
        monitor, score = state.monitor, self.held_out.score(state)
        self._step = monitor.step
        if monitor.step:
            monitor.record(validation=score)
        if self._best is None or score > self.score:
            priors = state.doc_topic_prior, state.topic_word_prior
            self._best = None  # first, so that there are no two copies
            topics = state.model.topics.copy_of_components()
            self._best = (monitor.step, state.n_passes, topics, priors)
            self.score = score
        return score
