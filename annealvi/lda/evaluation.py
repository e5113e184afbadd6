"""What a fit is told by after each pass: recorded, printed, a reason to stop."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from annealvi.lda.early_stopping import EarlyStopping
from annealvi.model import Tempering
from annealvi.temperature import LocalVariational, Variational


class Evaluation:
    """Evaluates an estimator on its training documents every so many passes.

    Parameters
    ----------
    estimator : TemperedLDA
    X : CSR matrix of shape (n_samples, V)
        What is fitted.
    documents : CSR matrix
        What the evaluation at the end is of: X, and what was held out.
    n_passes : int
        Most passes of the fit.
    keep_topics : bool
        Whether the topics of `documents` are wanted at the end.
    early_stopping : EarlyStopping or None
    prefix : str
        What printed lines begin with.
    """

    def __init__(
        self,
        estimator: Any,
        X: Any,
        documents: Any,
        n_passes: int,
        keep_topics: bool,
        early_stopping: EarlyStopping | None = None,
        prefix: str = "",
    ) -> None:
        self.estimator = estimator
        self.X = X
        self.documents = documents
        self.n_passes = n_passes
        self.early_stopping = early_stopping
        self.prefix = prefix
        self.gamma: NDArray | None = None
        if keep_topics:
            shape = (documents.shape[0], estimator._model.n_topics)
            self.gamma = np.empty(shape, estimator._model.dtype)
        self.last: float | None = None  # at T settled, so comparable with the next
        self.latest: tuple[int, float] | None = None  # step, value
        self.budget_ended = False  # whether the last pass came before a reason to stop
        self.compared = False  # whether there were two values to compare

    def after_pass(self, index: int) -> bool:
        """Record a pass; return whether the fit should end."""
        estimator, monitor = self.estimator, self.estimator._monitor
        every = estimator.evaluate_every
        line = f"{self.prefix}iteration: {index + 1} of max_iter: {self.n_passes}"
        converged = exhausted = False
        monitor.record()
        if every > 0 and (index + 1) % every == 0:
            perplexity = self.evaluate()
            line += f", perplexity: {perplexity:.4f}"
            if estimator._temperature.settled(monitor.step - 1):
                change = np.inf if self.last is None else abs(self.last - perplexity)
                self.compared = self.last is not None
                converged = bool(change < estimator.perp_tol)
                self.last = perplexity
        if not converged:
            estimator.n_iter_ += 1
        if self.early_stopping is not None:
            score, exhausted = self.early_stopping.after_pass(estimator)
            line += f", validation: {score:.4f}"
        if estimator.verbose:
            print(line)
        self.budget_ended = index + 1 == self.n_passes and not (converged or exhausted)
        return converged or exhausted

    def warn(self, stacklevel: int) -> None:
        """Say so where the budget ended a fit that was getting better."""
        budget = f"after max_iter={self.n_passes} passes."
        if self.budget_ended and self.estimator.evaluate_every > 0:
            tol = self.estimator.perp_tol
            if self.compared:
                advice = "Increase max_iter or perp_tol."
            elif self.estimator._temperature.settled(0):
                advice = "There were no two evaluations to compare: increase max_iter."
            else:
                advice = (
                    "Evaluations are compared at T = 1 only, and there were no two of them: let "
                    "the temperature fall over a part of the fit, such as with "
                    "temperature='annealed', or evaluate more often."
                )
            warnings.warn(
                f"The training perplexity had not converged to perp_tol={tol!r} {budget} {advice}",
                ConvergenceWarning,
                stacklevel=stacklevel + 1,
            )
        if self.budget_ended and self.early_stopping is not None and self.early_stopping.improving:
            warnings.warn(
                f"The validation score was still improving {budget} Increase max_iter.",
                ConvergenceWarning,
                stacklevel=stacklevel + 1,
            )

    def evaluate(self) -> float:
        estimator, model, X = self.estimator, self.estimator._model, self.X
        model.settle()  # as at the end of the fit
        elbo, perplexity = self._evaluate()
        estimator._monitor.record(elbo=elbo, perplexity=perplexity)
        temperature, done = estimator._temperature, estimator._monitor.step
        form = temperature.tempering(done - 1).form
        tempering = Tempering(1.0 / estimator._monitor.temperature, form)
        kept = model.document_topics  # the gamma that the fit itself has come to
        learning = isinstance(temperature, Variational) and not temperature.settled(done - 1)
        if isinstance(temperature, LocalVariational) and tempering != Tempering():
            pass  # documents had temperatures of their own
        elif kept is None and tempering == Tempering() and not learning:
            estimator._monitor.record(annealed_elbo=elbo)
        else:
            hot = model.infer(X, tempering) if kept is None and learning else kept
            annealed = model.elbo(X, hot, tempering)
            estimator._monitor.record(annealed_elbo=annealed)
            if learning:
                tempered = annealed + self._tempered_change(temperature, tempering, hot)
                estimator._monitor.record(tempered_elbo=tempered)
        self.latest = (done, perplexity)
        return perplexity

    def _evaluate(self) -> tuple[float, float]:
        # gamma has a row for each of the documents
        return self._value_of(self.X, self.gamma if self.documents is self.X else None)

    def _value_of(self, X: Any, gamma: NDArray | None) -> tuple[float, float]:
        elbo = self.estimator._elbo(X, out=gamma)
        return elbo, self.estimator._perplexity_of(elbo, X, False)

    def _tempered_change(
        self, temperature: Variational, tempering: Tempering, gamma: NDArray
    ) -> float:
        """What makes Eq. 5 of the annealed bound: E_q(y)[b L - log C] in place of b L."""
        model, X = self.estimator._model, self.X
        energy = float(np.sum(model.document_energies(X, gamma, tempering)))
        log_c = None
        if isinstance(temperature.partition, str) and temperature.partition == "posterior":
            log_c = model.posterior_log_partition(1 / temperature.temperatures_, X, gamma)
        b = 1.0 / self.estimator._monitor.temperature
        return temperature.tempered_energy(energy, log_c) - b * energy

    def final(self) -> float:
        """Perplexity at the end of the fit, evaluated again only if there was a step since."""
        step = self.estimator._monitor.step
        if self.documents is not self.X:
            return self._value_of(self.documents, self.gamma)[1]
        if self.latest is None or self.latest[0] != step:
            self.latest = (step, self._evaluate()[1])
        return self.latest[1]
