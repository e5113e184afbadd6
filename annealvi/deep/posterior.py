"""The estimator HierarchicalPosterior, which fits a chain of transitions to a density."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import KW_ONLY, dataclass
from functools import partial
from os import PathLike
from typing import Any, ClassVar, Literal, Self

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import _fit_context
from sklearn.utils._param_validation import StrOptions
from torch import Tensor
from torch.nn import Parameter

from annealvi.checks import COUNT, SHARE, check_count, check_width, checked, unchanged_on_error
from annealvi.deep.estimator import DeepEstimator, plan_beta
from annealvi.deep.hvi import Chain, FlowPosterior, LayeredPosterior
from annealvi.deep.objectives import hvi_elbo, log_evidence_bounds, loss_calibrated
from annealvi.deep.penalties import check_gradient, check_values
from annealvi.deep.training import Noise, Objective, Outcome, numbers
from annealvi.files.schema import Array, Integer, Optional, Text
from annealvi.matrices import check_matrix
from annealvi.schedules import Schedule
from annealvi.threads import writing

#: Before a fit, the log density is checked at this many draws of an untrained chain.
TRIALS = 64
#: Options of the transitions at the start.  If a transition changes little at first, it does not
#: mix the modes that earlier transitions have separated (docs/record/deep_models.md).
GATE_BIAS = -2.0
WEIGHT_SCALE = 0.3
#: Fits are ranked by this many draws, with this many draws of the reverse chain for each.
RANKING = (500, 50)
#: The class of posterior for each name of a transition.
POSTERIORS: dict[str, Callable[..., LayeredPosterior]] = {
    "gaussian": partial(Chain, gate_bias=GATE_BIAS, weight_scale=WEIGHT_SCALE),
    "flow": FlowPosterior,
}


@dataclass(eq=False, repr=False)
class HierarchicalPosterior(DeepEstimator):
    r"""Neural networks that approximate a distribution whose density is known up to a constant.

    A chain of T transitions changes draws from N(0, I) into draws from the density.  Transitions
    are Gaussians (see :mod:`annealvi.deep.hvi`) or deterministic flows
    (:class:`annealvi.deep.hvi.FlowPosterior`).  With annealed variational objectives
    (:mod:`annealvi.deep.objectives`), each transition has its own target between N(0, I) and the
    density.  The chain then finds more of the modes than with the plain ELBO.

    Parameters
    ----------
    log_density : callable
        The function log f, which takes a tensor of shape (n, dim) and returns one of shape (n,).
        The function must use PyTorch operations, so that it has a gradient, and it is evaluated in
        float32 on `device`.
    dim : int
        Number of dimensions of z.
    n_transitions : int, default=10
        The number T of transitions.  More transitions can represent more complicated densities,
        but make steps slower.
    transition : {"gaussian", "flow"}, default="gaussian"
        The kind of transition.  ``"gaussian"`` is a Gaussian whose mean and standard deviation
        depend on the previous state.  ``"flow"`` is a deep sigmoidal flow, which applies to each
        coordinate an increasing function that depends on the earlier coordinates.  Its density has
        a closed form, so both bounds of `evidence_bounds` are equal and `score_samples` is exact.
    objective : {"avo", "elbo"}, default="avo"
        What is maximised.  ``"avo"`` is the sum of the annealed objectives of the transitions, and
        ``"elbo"`` is the ELBO of the chain.  Use ``"avo"`` if the density may have several modes.
    calibration : float, default=1.0
        With ``"avo"``, the weight a of the annealed objectives, in [0, 1].  The ELBO of the chain
        has the weight 1 - a.
    annealing : float, default=0.0
        The fraction of the steps, in [0, 1], over which beta follows `schedule`.  Then beta is 1.
        Beta multiplies the log densities of transitions (see :mod:`annealvi.deep.objectives`).
    schedule : Schedule or None, default=None
        How beta changes over the first steps (see `annealing` and :mod:`annealvi.schedules`).  None
        means ``Linear(0.01, 1)``.
    hidden : int, default=64
        The number of hidden units of each transition.  With ``"flow"`` these are the units of the
        network that computes the function of each coordinate.
    learning_rate : float, default=1e-3
        The step size of Adam.  Use a smaller step size if the fit diverges.
    batch_size : int, default=64
        Number of draws in each step.
    max_iter : int, default=2000
        Number of steps.
    n_init : int, default=1
        Number of independent fits, which are computed together.  `network_` contains all fits, and
        the methods use the fit with the largest lower bound.
    device : str, default="cpu"
        The device on which to fit: ``"cpu"``, ``"cuda"`` or ``"cuda:<index>"``.
    random_state : int, RandomState instance or None, default=None
        The random seed of the initial weights and of all draws, including those in `sample` and
        `score`.
    verbose : int, default=0
        If not 0, show a progress bar.
    callback : callable or list of callables, default=None
        Called as ``callback(estimator, monitor)`` after each step.  The callback can use the
        estimator, write into `history_` with ``monitor.record(name=value)``, and raise
        ``StopIteration`` to end the fit.  Examples are :class:`annealvi.callbacks.Checkpoint` and
        :class:`annealvi.callbacks.ProgressBar`.  From scikit-learn 1.9 on, `set_callbacks` sets
        scikit-learn's own callbacks.

    Attributes
    ----------
    lower_bounds_ : ndarray of shape (n_init,)
        The lower bound of log Z that each fit reached, computed as in `score`.
    lower_bound_ : float
        The largest of the lower bounds.
    best_ : int
        Index of the fit with the largest lower bound.
    network_ : Chain or FlowPosterior
        The chains of all fits, in the order of `lower_bounds_`.
    n_iter_ : int
        Number of steps made.
    temperature_path_ : ndarray of shape (n_iter,)
        The value of beta in each step.
    history_ : dict of str to ndarray
        About a thousand records of ``pass``, ``step``, ``temperature`` (beta), ``seconds`` and
        ``elbo``.  ``elbo`` is the ELBO of the chain at beta = 1, averaged over the fits and over
        the steps since the last record.

    References
    ----------
    Huang, Tan, Lacoste, Courville (2018), *Improving explorability in variational inference
    with annealed variational objectives*, NeurIPS.
    Ranganath, Tran, Blei (2016), *Hierarchical variational models*, ICML.
    Huang, Krueger, Lacoste, Courville (2018), *Neural autoregressive flows*, ICML.

    Examples
    --------
    >>> from annealvi.deep import HierarchicalPosterior
    >>> from annealvi.deep.energies import ENERGIES
    >>> posterior = HierarchicalPosterior(ENERGIES["d"], 2, max_iter=20, random_state=0).fit()
    >>> posterior.sample(5).shape
    (5, 2)
    """

    ARCHITECTURE: ClassVar[dict] = {
        "dim": Integer(1),
        "n_transitions": Integer(1),
        "hidden": Integer(1),
        "n_init": Integer(1),
        "transition": Text(*POSTERIORS),
    }
    _parameter_constraints: ClassVar[dict] = {
        **DeepEstimator._parameter_constraints,
        "log_density": [callable],
        "dim": COUNT,
        "n_transitions": COUNT,
        "transition": [StrOptions(set(POSTERIORS))],
        "objective": [StrOptions({"avo", "elbo"})],
        "calibration": SHARE,
        "annealing": SHARE,
        "schedule": [None, callable],
        "hidden": COUNT,
        "n_init": COUNT,
    }

    log_density: Callable[[Tensor], Tensor]
    dim: int
    n_transitions: int = 10
    _: KW_ONLY
    transition: Literal["gaussian", "flow"] = "gaussian"
    objective: Literal["avo", "elbo"] = "avo"
    calibration: float = 1.0
    annealing: float = 0.0
    schedule: Schedule | None = None
    hidden: int = 64
    batch_size: int = 64
    max_iter: int = 2000
    n_init: int = 1

    @checked
    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any = None, y: Any = None, *, resume: str | PathLike | None = None) -> Self:
        """Learn the posterior of the log density.

        Parameters
        ----------
        X, y : Ignored
            Present for API consistency; the estimator needs no data.
        resume : path, optional
            A file written by :meth:`save_state`, from which the fit continues up to `max_iter`.

        Returns
        -------
        self : HierarchicalPosterior

        Raises
        ------
        ValueError
            If a parameter is out of range, or if `log_density` returns a wrong shape, NaN, an
            infinity or no gradient.  The estimator is then unchanged.
        annealvi.exceptions.DivergenceError
            If the objective or its gradient is not finite during the fit.
        """
        # one thread at a time may fit self; an error restores its attributes, unless `keep_state`
        # was called before
        with writing(self), unchanged_on_error(self) as keep_state:
            # a callback must not see results of an earlier fit
            self.__dict__.pop("lower_bounds_", None)
            earlier_trainer = vars(self).get("_trainer")
            try:
                self._fit(None, self._objective, keep_state, resume)
            finally:
                # also after an error or an interruption, if the new fit made a step
                if vars(self).get("_trainer") is not earlier_trainer and self.n_iter_:
                    self.lower_bounds_ = self.evidence_bounds(*RANKING)[0]
        return self

    @property
    def best_(self) -> int:
        """Index of the fit with the largest lower bound."""
        return int(np.argmax(np.nan_to_num(self.lower_bounds_, nan=-np.inf)))

    @property
    def lower_bound_(self) -> float:
        """The largest of the lower bounds."""
        return float(self.lower_bounds_[self.best_])

    def state_dict(self) -> dict[str, Any]:
        """Return the fitted state as a tree, for :func:`annealvi.save`."""
        # without a step there are no lower bounds
        return super().state_dict() | {"lower_bounds": getattr(self, "lower_bounds_", None)}

    def load_state_dict(self, tree: Mapping[str, Any], tree_path: str = "") -> None:
        """Set the fitted state from a tree, for :func:`annealvi.load`."""
        super().load_state_dict(tree, tree_path)
        field = Optional(Array((self.network_.n_runs,), finite=False))
        bounds = field.load(tree["lower_bounds"], "lower_bounds", sizes={})
        if bounds is not None:
            self.lower_bounds_ = bounds.copy()  # the array of a file may be read-only

    def _network(self, architecture: Mapping[str, Any], X: Any = None) -> LayeredPosterior:
        """Return the chains of all fits; there are no data X."""
        return POSTERIORS[architecture["transition"]](
            architecture["dim"],
            architecture["n_transitions"],
            n_runs=architecture["n_init"],
            hidden=architecture["hidden"],
        )

    def sample(self, n_samples: int = 1) -> NDArray[np.float32]:
        """Draw from the posterior.

        Parameters
        ----------
        n_samples : int, default=1

        Returns
        -------
        ndarray of shape (n_samples, dim), float32
        """
        return self.layers(n_samples)[-1]

    def layers(self, n_samples: int = 1) -> NDArray[np.float32]:
        """Draw the states z_0, ..., z_T of the chain; z_T is a draw from the posterior.

        Parameters
        ----------
        n_samples : int, default=1

        Returns
        -------
        ndarray of shape (n_transitions + 1, n_samples, dim), float32
        """
        noise = self._draws()
        # the chain has one run, on the second axis
        return numbers(self._chain().layers(check_count(n_samples, "n_samples"), noise)[:, 0])

    def score_samples(self, Z: Any, *, n_reverse: int = 1000) -> NDArray[np.float32]:
        """Estimate the log density of the posterior at given points by importance sampling.

        The expectation of the estimate is a lower bound of the log density; see
        :meth:`annealvi.deep.hvi.Chain.log_marginal`.

        Parameters
        ----------
        Z : array-like of shape (n_samples, dim)
        n_reverse : int, default=1000
            Number of importance samples for each point.

        Returns
        -------
        ndarray of shape (n_samples,), float32
        """
        noise = self._draws()
        n_reverse = check_count(n_reverse, "n_reverse")
        chain = self._chain()
        Z = check_matrix(Z, dtype=np.float32, accept_sparse=False, name="Z")
        check_width(Z, chain.dim, type(self).__name__, name="Z")
        # the chain has one run, on the first axis
        return numbers(chain.log_marginal(self._tensor(Z)[None], n_reverse, noise)[0])

    def score(
        self, X: Any = None, y: Any = None, *, n_draws: int = 1000, n_reverse: int = 100
    ) -> float:
        """Estimate a lower bound of log Z - KL(q || p) for the best fit q; larger is better.

        Parameters
        ----------
        X, y : Ignored
            Present for API consistency.
        n_draws, n_reverse : int, default=1000 and 100
            Numbers of draws, as in :meth:`evidence_bounds`.
        """
        below, _ = self.evidence_bounds(n_draws, n_reverse)
        return float(below[getattr(self, "best_", 0)])

    def evidence_bounds(
        self, n_draws: int = 1000, n_reverse: int = 2000
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        r"""Estimate bounds of :math:`\log Z - KL(q \| p)` for each of the `n_init` fits.

        Parameters
        ----------
        n_draws : int, default=1000
            Number of draws from q over which each bound is averaged.
        n_reverse : int, default=2000
            Number K of importance samples that estimate log q at each draw from q.  With larger K
            the bounds are closer together.

        Returns
        -------
        below, above : ndarrays of shape (n_init,)
            The lower and the upper bounds.  If the constant log Z is known, `above` minus log Z is
            an upper bound of :math:`-KL(q \| p)`.  Huang et al. (2018) report this upper bound.
        """
        noise = self._draws()  # first, because it checks that there was a fit
        below, above = log_evidence_bounds(
            self.network_,
            self._log_density,
            noise,
            check_count(n_draws, "n_draws"),
            check_count(n_reverse, "n_reverse"),
        )
        # means over draws, for each fit
        return (
            numbers(below).mean(axis=1, dtype=float),
            numbers(above).mean(axis=1, dtype=float),
        )

    def _optimiser(self, parameters: Iterator[Parameter]) -> torch.optim.Optimizer:
        """Return the optimiser of a fit."""
        return torch.optim.Adam(parameters, lr=float(self.learning_rate))

    def _objective(self, network: LayeredPosterior, X: Any, noise: Noise) -> Objective:
        """Check the log density, and return the loss of a step; there are no data X."""
        # at draws of an untrained chain, with random numbers of their own
        noise_of_trials = Noise(seed=0, device=noise.device)
        z = network.layers(TRIALS, noise_of_trials).flatten(0, -2).requires_grad_()
        what = f"The 'log_density' parameter of {type(self).__name__}"
        value = self.log_density(z)
        check_values(what, value, shape=(len(z),), at=z)
        check_gradient(what, value, [z])
        calibration = float(self.calibration) if self.objective == "avo" else 0.0
        betas = plan_beta(self.schedule, float(self.annealing), int(self.max_iter))

        def objective(rows: Tensor | None, step: int) -> Outcome:
            """Return the outcome of a step; `rows` is None."""
            beta = betas[step]
            # standard normal numbers, which the chain changes into draws
            epsilon = network.draw_noise(int(self.batch_size), noise)
            value, path = loss_calibrated(
                network, epsilon, self._log_density, calibration=calibration, beta=beta
            )
            with torch.no_grad():  # only for the history
                elbo = hvi_elbo(network, path, self._log_density)
            # a sum over fits, so that the gradient of a fit does not depend on other fits
            return Outcome(-value.mean(dim=-1).sum(), elbo.mean(), beta)

        return objective

    def _log_density(self, z: Tensor) -> Tensor:
        """Evaluate the user's log density on a tensor with any number of leading axes."""
        return self.log_density(z.flatten(0, -2)).unflatten(0, z.shape[:-1])

    def _chain(self) -> LayeredPosterior:
        """Return the chain of the best fit, or of the first fit if none was chosen yet."""
        return self.network_.single(getattr(self, "best_", 0))
