"""The fit of a mixture: starts, the record, and the attributes of all fitted mixtures."""

from __future__ import annotations

import os
import threading
import warnings
from collections.abc import Callable
from functools import partial
from numbers import Integral
from typing import Any

import numpy as np
from numpy.random import RandomState
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from annealvi.files import Node
from annealvi.inference import fit_starts
from annealvi.inference.checkpoints import Fingerprint
from annealvi.inference.fitted import Fitted
from annealvi.mixtures.progress import MixtureProgress
from annealvi.mixtures.run import MixtureRun, Options, options_of
from annealvi.mixtures.state import MixtureState, ModelFiles
from annealvi.temperature import Fixed, Temperature


def fit_mixture(
    X: Any,
    draw: Callable[[RandomState], Callable[[], Any]],
    temperature: Temperature,
    options: Options,
    progress: MixtureProgress,
    *,
    files: ModelFiles,
    adopt: Callable[[MixtureState], None],
    commit: Callable[[], None],
) -> None:
    """Fit from every starting point, and set the estimator's state to the best.

    Starts draw from one generator, one after another.  With a fixed T a fit draws no random
    numbers after its start.  If there is also no callback, all starts are drawn first and then
    fitted in parallel.  A model is built when its fit begins, so only as many models hold
    arrays of the size of the data as there are fits at a time.
    """
    rng = progress.rng

    def run(
        model: Any, planned: Temperature, number: int, halt: threading.Event | None = None
    ) -> MixtureRun:
        halt = threading.Event() if halt is None else halt
        return MixtureRun(X, model, planned, rng, number, options, adopt, halt, files)

    def begin(number: int, build: Callable[[], Any] | None, halt: threading.Event) -> MixtureRun:
        if build is None:
            progress.note_start()
            build = draw(rng)
        model = build()
        if n_workers > 1:
            model.n_threads = 1
        return run(model, temperature.plan(options.max_iter, model=model), number, halt)

    def ended(number: int, node: Node) -> MixtureRun:
        made = run(None, temperature, number)
        made.load_ended(node)
        return made

    def salvage(run: MixtureRun) -> None:
        adopt(run.state)
        commit()

    n_workers = 1
    if options.callback is None and isinstance(temperature, Fixed) and not progress.resumes:
        n_workers = min(options.n_threads, options.n_init)
    drawn = [None if n_workers == 1 else draw(rng) for _ in range(options.n_init)]
    starts = [partial(begin, number, build) for number, build in enumerate(drawn)]
    if progress.resumes:
        progress.resume(starts, ended)
    best = progress.starts.best.run
    if best is None or not progress.finished:
        best, _ = fit_starts(starts, n_workers=n_workers, salvage=salvage, progress=progress.starts)
    progress.finished = True
    salvage(best)  # whatever becomes of the last checkpoint
    if options.tol > 0 and best.comparable and not best.state.converged and not best.stopped:
        warnings.warn(
            f"The ELBO had not converged to tol={options.tol!r} after max_iter={options.max_iter} "
            "iterations. Increase max_iter or tol.",
            ConvergenceWarning,
            stacklevel=5,  # past fit and scikit-learn's fit context
        )


class FittedMixture(Fitted):
    """Attributes that all fitted mixtures have."""

    # set by `fit`
    _state: MixtureState

    def _fit_from_starts(
        self,
        X: Any,
        draw: Callable[[RandomState], Callable[[], Any]],
        temperature: Temperature,
        given: tuple[Any, Any],
        *,
        n_threads: int,
        resume: str | os.PathLike | None,
        files: ModelFiles,
        adopt: Callable[[MixtureState], None],
        commit: Callable[[], None],
    ) -> None:
        """Fit, see :func:`fit_mixture`, so that callbacks can write checkpoints.

        `given` is X and y as the user gave them.
        """
        with self._fit_under_way(*given) as callbacks:
            options = options_of(self, n_threads, callbacks)
            progress = MixtureProgress(Fingerprint(self, X), options.random_state, resume)
            self._progress = progress
            fit_mixture(
                *(X, draw, temperature, options, progress),
                files=files,
                adopt=adopt,
                commit=commit,
            )

    @property
    def n_iter_(self) -> int:
        return self._fitted().monitor.step

    @property
    def converged_(self) -> bool:
        return self._fitted().converged

    @property
    def lower_bound_(self) -> float:
        return self._fitted().lower_bound

    def _fitted_tree(self, files: ModelFiles) -> dict[str, Any]:
        """The fitted state as a tree."""
        names = getattr(self, "feature_names_in_", None)
        return {"feature_names_in": names, "fit": self._fitted().state_dict(files)}

    def _load_fitted(
        self, node: Node, files: ModelFiles, adopt: Callable[[MixtureState], None]
    ) -> None:
        """Take over what :meth:`_fitted_tree` returned."""
        state = MixtureState.restored(node.node("fit"), files)
        n_features = state.model.n_features
        if not node.is_none("feature_names_in"):
            self.feature_names_in_ = node.strings("feature_names_in", n_features)
        self.n_features_in_ = n_features
        adopt(state)


def sampler(estimator: Any, n_samples: Any, random_state: Any) -> RandomState:
    """Check that the estimator is fitted and `n_samples` valid; return the generator."""
    check_is_fitted(estimator)
    if not isinstance(n_samples, Integral) or n_samples < 1:
        raise ValueError(
            f"Invalid value for 'n_samples': {n_samples!r}. The sampling requires at least "
            "one sample."
        )
    return check_random_state(random_state)


def check_reached(log_joint: NDArray[np.float64], X: NDArray) -> NDArray[np.float64]:
    """Return log p(x, z) of each datum and component, which must be finite for one of them."""
    lost = np.flatnonzero(~np.isfinite(log_joint.max(axis=1)))
    if lost.size:
        raise ValueError(
            f"Row {lost[0]} of X is so far from all components, with values up to "
            f"{np.max(np.abs(X[lost[0]])):.3g}, that no float can hold its log-likelihood."
        )
    return log_joint
