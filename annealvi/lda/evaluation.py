"""The evaluation of a fit after each pass: what is recorded and printed, and when it stops."""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from annealvi.files import Node
from annealvi.lda.early_stopping import EarlyStopping
from annealvi.lda.perplexity import perplexity_of
from annealvi.lda.state import LDAState
from annealvi.model import Tempering
from annealvi.temperature import LocalVariational, Variational


class StoppingTest(NamedTuple):
    """How often a fit is evaluated, and when its training perplexity has converged."""

    #: Passes between two evaluations; none if zero or negative.
    evaluate_every: int = -1
    #: The fit stops when the perplexity changes by less.
    perp_tol: float = 0.1
    #: Whether to print a line after each pass.
    verbose: int = 0


class Evaluation:
    """Records each pass of a fit, and evaluates the fit on its training documents."""

    def __init__(
        self,
        state: LDAState,
        X: Any,
        documents: Any,
        n_passes: tuple[int, int],
        stopping: StoppingTest,
        *,
        keep_gamma: bool = False,
        early_stopping: EarlyStopping | None = None,
        prefix: str = "",
    ) -> None:
        self.state = state
        self.X = X
        self.documents = documents
        self.n_passes, self.n_finishing = n_passes
        self.stopping = stopping
        self.early_stopping = early_stopping
        self.prefix = prefix
        self.gamma: NDArray | None = None
        if keep_gamma:
            shape = (documents.shape[0], state.model.n_topics)
            self.gamma = np.empty(shape, state.model.dtype)
        self.last: float | None = None  # perplexity at settled T, comparable with the next
        self.latest: tuple[int, float] | None = None  # step, value
        self.budget_ended = False  # whether `max_iter` ended the fit before a test did
        self.compared = False  # whether there were two values to compare

    def after_pass(self, index: int) -> bool:
        """Record a pass; return whether the fit should end."""
        state, monitor = self.state, self.state.monitor
        every, perp_tol, verbose = self.stopping
        line = f"{self.prefix}iteration: {index + 1} of max_iter: {self.n_passes}"
        if index >= self.n_passes:
            finishing = index + 1 - self.n_passes
            line = f"{self.prefix}iteration: {finishing} of finish_iter: {self.n_finishing}"
        converged = exhausted = False
        monitor.record()
        if every > 0 and (index + 1) % every == 0:
            perplexity = self.evaluate()
            line += f", perplexity: {perplexity:.4f}"
            if state.temperature.settled(monitor.step - 1):
                change = np.inf if self.last is None else abs(self.last - perplexity)
                self.compared = self.last is not None
                converged = bool(change < perp_tol)
                self.last = perplexity
        if not converged:
            state.n_passes += 1
        if self.early_stopping is not None:
            score, exhausted = self.early_stopping.after_pass(state)
            line += f", validation: {score:.4f}"
        if verbose:
            print(line)
        last = index + 1 == self.n_passes + self.n_finishing
        self.budget_ended = last and not (converged or exhausted)
        return converged or exhausted

    def state_dict(self) -> dict[str, Any]:
        """Return what the next passes depend on, as a tree; see :mod:`annealvi.files`."""
        return {
            "last": self.last,
            "latest": None if self.latest is None else list(self.latest),
            "budget_ended": self.budget_ended,
            "compared": self.compared,
        }

    def load_state_dict(self, node: Node) -> None:
        """Take over what :meth:`state_dict` returned."""
        self.last = None if node.is_none("last") else node.number("last", finite=False)
        self.budget_ended = node.boolean("budget_ended")
        self.compared = node.boolean("compared")
        self.latest = None
        if not node.is_none("latest") and self.gamma is None:  # gamma is computed again
            pair = Node(dict(zip("01", node.items("latest"), strict=False)), "latest")
            self.latest = (pair.integer("0"), pair.number("1", finite=False))

    def warn(self, stacklevel: int) -> None:
        """Warn if `max_iter` ended a fit that was still improving."""
        budget = f"after max_iter={self.n_passes} passes"
        budget += f" and finish_iter={self.n_finishing} more." if self.n_finishing else "."
        if self.budget_ended and self.stopping.evaluate_every > 0:
            tol = self.stopping.perp_tol
            if self.compared:
                advice = "Increase max_iter or perp_tol."
            elif self.state.temperature.settled(0):
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
        """Record bounds and perplexity; return the perplexity."""
        state, X = self.state, self.X
        model, temperature, monitor = state.model, state.temperature, state.monitor
        model.topics.catch_up()  # as at the end of the fit
        model.buffers.release_large()
        elbo, perplexity = self._evaluate()
        monitor.record(elbo=elbo, perplexity=perplexity)
        done = monitor.step
        form = temperature.tempering(done - 1).form
        tempering = Tempering(1.0 / monitor.temperature, form)
        kept = model.documents.gamma  # gamma of a warm fit
        if isinstance(temperature, LocalVariational) and tempering != Tempering():
            pass  # each document had its own temperature
        elif model.documents.options.sparsity(tempering) > 0:
            monitor.record(annealed_elbo=model.objective(X, tempering, kept))
        elif isinstance(temperature, Variational) and not temperature.settled(done - 1):
            inverse = None
            if isinstance(temperature.partition, str) and temperature.partition == "posterior":
                inverse = 1 / temperature.temperatures_
            annealed, energy, log_c = model.moments(X, tempering, inverse, kept)
            # Eq. 5 has E_q(y)[b L - log C] - KL(q(y) || pi) in the place of b L
            change = temperature.tempered_energy(energy, log_c) - energy / monitor.temperature
            monitor.record(annealed_elbo=annealed, tempered_elbo=annealed + change)
        elif kept is None and tempering == Tempering():
            monitor.record(annealed_elbo=elbo)
        else:
            monitor.record(annealed_elbo=model.elbo(X, kept, tempering))
        self.latest = (done, perplexity)
        return perplexity

    def _evaluate(self) -> tuple[float, float]:
        # gamma has a row for each of the documents
        return self._value_of(self.X, self.gamma if self.documents is self.X else None)

    def _value_of(self, X: Any, gamma: NDArray | None) -> tuple[float, float]:
        elbo = self.state.elbo(X, out=gamma)
        return elbo, perplexity_of(elbo, X)

    def final(self) -> float:
        """Perplexity at the end of the fit; evaluated again only after a further step."""
        step = self.state.monitor.step
        if self.documents is not self.X:
            return self._value_of(self.documents, self.gamma)[1]
        if self.latest is None or self.latest[0] != step:
            self.latest = (step, self._evaluate()[1])
        return self.latest[1]
