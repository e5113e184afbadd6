"""VariationalAutoencoder: the networks of :mod:`annealvi.deep.models.vae` as an estimator."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from numbers import Integral, Real
from typing import Any, ClassVar, Literal, Self

import numpy as np
from sklearn.base import _fit_context
from sklearn.utils._param_validation import StrOptions
from torch import Tensor, nn
from torch.optim import Adam

from annealvi.checks import Interval, unchanged_on_error
from annealvi.deep.estimators.base import TRAINING_CONSTRAINTS, Callback, Plan
from annealvi.deep.estimators.data import (
    EPSILON,
    Bound,
    integers,
    layer_widths,
    penalised,
    penalty_name,
    plan_beta,
    plan_parameters,
    saved_penalty,
)
from annealvi.deep.estimators.fitted_vae import FittedAutoencoder
from annealvi.deep.models.layers import STACKS
from annealvi.deep.models.vae import AutoencoderNetwork
from annealvi.deep.noise import Noise
from annealvi.deep.penalties import ProximityLike
from annealvi.deep.training import Outcome
from annealvi.files import Node
from annealvi.schedules import Schedule
from annealvi.temperature import Temperature
from annealvi.threads import writing


class VariationalAutoencoder(FittedAutoencoder):
    r"""Variational autoencoder of images: latent Gaussian variables, decoder and encoder.

    .. math::
       z \sim N(0, I), \quad x_d \sim \mathrm{Bern}(\mathrm{decoder}(z)_d), \quad
       q(z \mid x) = N(\mu(x), \mathrm{diag}\,\sigma(x)^2)

    Encoder and decoder are networks of rectified units, fitted by gradients of the ELBO.  Three
    options can help against poor optima: a penalty on moving q fast (`proximity`), annealing
    (`temperature`), and a deeper posterior, in which a chain of `n_transitions` gated transitions
    follows the Gaussian, each with its own annealed target (`calibration`).

    Parameters
    ----------
    n_components : int, default=100
        Number of latent variables.

    hidden : sequence of int, default=(200, 200)
        Units of each layer of the encoder, the layer nearest the pixels first.  The decoder has
        the same layers in reverse order.

    proximity : None, str, callable or ProximityPenalty, default=None
        Penalty on moving q away from its recent past: the name of a statistic (``"orthogonal"``,
        ``"entropy"``, ``"kl"``, ``"mean"``, ``"variance"`` or ``"mean_variance"``), a statistic
        of your own, or a :class:`annealvi.deep.ProximityPenalty` to choose the magnitude too.
        ``"orthogonal"`` is computed from the weights of all layers that lead to q, and leaves
        fewer dead units in the encoder.  The others are statistics of the Gaussian q.

    temperature : float, "annealed" or Temperature, default=1
        T of each step: a number >= 1, ``"annealed"``, or an object of :mod:`annealvi.temperature`
        that follows a plan.  T multiplies the entropy of q, whatever the `form` of the object.
        Values above 1 keep q broad, so that the fit explores; 1 is plain variational inference.

    n_transitions : int, default=0
        T, the number of transitions that follow the Gaussian in the posterior.  0 gives the
        usual autoencoder; a chain makes steps slower.

    transition_hidden : int, default=64
        Units of the hidden layer of each transition.

    units : {"relu", "gated"}, default="relu"
        Hidden units of encoder and decoder.  ``"gated"`` units are linear, each times a sigmoid
        unit of its own; the hidden units of the transitions are then gated too.  They cost about
        twice the time.

    calibration : float, default=0.0
        a in [0, 1]: the probability that a step follows the annealed objectives, with the
        targets :math:`p(z) p(x \mid z)^{t/T}`, instead of the ELBO.  Not used without
        transitions.

    annealing : float, default=0.0
        The part of the steps, in [0, 1], over which beta follows `schedule` (a warm-up).  After it
        beta is 1.  Beta is the weight of all terms but log p(x | z): without transitions it
        multiplies the divergence KL(q(z | x), p(z)).

    schedule : Schedule or None, default=None
        Beta over the annealed steps, see :mod:`annealvi.schedules`; None means
        ``Linear(0.01, 1)``.

    learning_rate : float, default=1e-3
        Step size of Adam.  Lower it if the fit diverges.

    batch_size : int, default=128
        Images per step.

    max_iter : int, default=10000
        Number of steps.

    device : str, default="cpu"
        Where to fit: ``"cpu"``, ``"cuda"`` or ``"cuda:<index>"``.

    random_state : int, RandomState instance or None, default=None
        Seed of the weights and of all draws.  The same seed gives the same fit on a CPU, and on a
        GPU up to rounding.

    verbose : int, default=0
        Whether to show progress (needs tqdm).

    callback : callable or list of callables, default=None
        Called as ``callback(estimator, monitor)`` after each step.  It can use the estimator in
        its current state.  ``monitor.record(name=value)`` writes into `history_`; raising
        ``StopIteration`` ends the fit.  A :class:`annealvi.checkpoint.Checkpoint` writes it to a
        file, to be resumed; a :class:`annealvi.progress.ProgressBar` shows how far it is.
        scikit-learn's own callbacks are set by `set_callbacks`, from its version 1.9 on.

    Attributes
    ----------
    network_ : AutoencoderNetwork
        The PyTorch module with encoder, posterior and decoder.

    temperature_path_ : ndarray of shape (n_iter,)
        Temperature of each step.

    history_ : dict of str to ndarray
        About a thousand records of ``pass``, ``step``, ``temperature``, ``seconds`` and ``elbo``
        (per datum at T = 1, averaged over the minibatches since the last record, including those
        with annealed objectives).

    n_iter_ : int
        Number of steps made.

    n_features_in_ : int
        Number of pixels.

    feature_names_in_ : ndarray of shape (n_features,)
        Names of the pixels, if X has string column names.

    References
    ----------
    Kingma, Welling (2014), *Auto-encoding variational Bayes*, ICLR.
    Altosaar, Ranganath, Blei (2018), *Proximity Variational Inference*, AISTATS.
    Huang, Tan, Lacoste, Courville (2018), *Improving explorability in variational inference
    with annealed variational objectives*, NeurIPS.

    Examples
    --------
    >>> import numpy as np
    >>> from annealvi.deep import VariationalAutoencoder
    >>> X = np.random.RandomState(0).random_sample((300, 16)) < 0.3
    >>> vae = VariationalAutoencoder(2, hidden=(8,), max_iter=50, random_state=0).fit(X)
    >>> vae.transform(X).shape
    (300, 2)
    """

    _parameter_constraints: ClassVar[dict] = {
        "n_components": [Interval(Integral, 1, None, closed="left")],
        "hidden": "no_validation",  # layer_widths has the message
        "proximity": "no_validation",  # as_penalty
        "temperature": "no_validation",  # plan_temperature
        "n_transitions": [Interval(Integral, 0, None, closed="left")],
        "transition_hidden": [Interval(Integral, 1, None, closed="left")],
        "units": [StrOptions(set(STACKS))],
        "calibration": [Interval(Real, 0, 1, closed="both")],
        "annealing": [Interval(Real, 0, 1, closed="both")],
        "schedule": [None, callable],
        **TRAINING_CONSTRAINTS,
    }

    def __init__(
        self,
        n_components: int = 100,
        *,
        hidden: Sequence[int] = (200, 200),
        proximity: ProximityLike = None,
        temperature: float | str | Temperature = 1,
        n_transitions: int = 0,
        transition_hidden: int = 64,
        units: Literal["relu", "gated"] = "relu",
        calibration: float = 0.0,
        annealing: float = 0.0,
        schedule: Schedule | None = None,
        learning_rate: float = 1e-3,
        batch_size: int = 128,
        max_iter: int = 10_000,
        device: Any = "cpu",
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
        callback: Callback | Sequence[Callback] | None = None,
    ) -> None:
        self.n_components = n_components
        self.hidden = hidden
        self.proximity = proximity
        self.temperature = temperature
        self.n_transitions = n_transitions
        self.transition_hidden = transition_hidden
        self.units = units
        self.calibration = calibration
        self.annealing = annealing
        self.schedule = schedule
        self.learning_rate = learning_rate
        self.batch_size = batch_size
        self.max_iter = max_iter
        self.device = device
        self.random_state = random_state
        self.verbose = verbose
        self.callback = callback

    # ------------------------------------------------------------------ the fit

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None, *, resume: str | os.PathLike | None = None) -> Self:
        """Learn encoder and decoder from images.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Pixels in [0, 1].  Values other than 0 and 1 are taken as probabilities.
        y : Ignored
            Present for API consistency.
        resume : path, optional
            A file written by `save_state`: the fit continues from there up to `max_iter`.

        Returns
        -------
        self : VariationalAutoencoder

        Raises
        ------
        ValueError
            If X or a parameter is out of range, or if `resume` has another architecture.  The
            estimator then stays as it was.
        annealvi.exceptions.DivergenceError
            If the loss or its gradient is not finite.  The last finite state is kept.
        """
        with writing(self), unchanged_on_error(self) as keep:
            given, X = (X, y), self._check_X(X, reset=True)
            hidden = layer_widths(self.hidden, type(self).__name__)
            temperature, penalty = plan_parameters(self, len(X))
            betas = plan_beta(self)
            plan = Plan(
                architecture={
                    "n_features": self.n_features_in_,
                    "n_components": int(self.n_components),
                    "hidden": hidden,
                    "n_transitions": int(self.n_transitions),
                    "transition_hidden": (
                        int(self.transition_hidden) if self.n_transitions else None
                    ),
                    "units": _units_name(self.units),
                    "proximity": penalty_name(penalty),
                },
                build=partial(
                    AutoencoderNetwork,
                    self.n_features_in_,
                    int(self.n_components),
                    hidden,
                    n_transitions=int(self.n_transitions),
                    transition_hidden=int(self.transition_hidden),
                    units=self.units,
                    penalty=penalty,
                ),
                objective=partial(
                    negative_bound,
                    temperature=temperature,
                    calibration=float(self.calibration),
                    betas=betas,
                ),
                optimiser=self._optimiser,
            )
            return self._fit(X, plan, keep, resume, given)

    def load_state_dict(self, node: Node) -> None:
        """Take over a fitted state, for :func:`annealvi.load`.

        Parameters
        ----------
        node : Node
            What :meth:`state_dict` returned, from a file.

        Raises
        ------
        ValueError
            If a parameter is out of range, or the state is not one of this class.
        """
        self._validate_params()
        saved = node.node("fit").node("architecture")
        sizes = integers(saved, "n_features", "n_components")
        n_transitions, width = saved.integer("n_transitions"), None
        if n_transitions:
            width = saved.integer("transition_hidden", 1)
        hidden = layer_widths(saved.items("hidden"), type(self).__name__)
        units = "relu"
        if "units" in saved and not saved.is_none("units"):
            units = saved.string("units", list(STACKS))
        penalty = saved_penalty(saved, self)
        build = partial(
            AutoencoderNetwork,
            *(sizes["n_features"], sizes["n_components"], hidden),
            n_transitions=n_transitions,
            transition_hidden=width or 1,
            units=units,
            penalty=penalty,
        )
        architecture = {
            **sizes,
            "hidden": hidden,
            "n_transitions": n_transitions,
            "transition_hidden": width,
            "units": _units_name(units),
            "proximity": penalty_name(penalty),
        }
        self._load(node, architecture, build, self._optimiser)

    def _optimiser(self, parameters: Iterator[nn.Parameter]) -> Adam:
        return Adam(parameters, lr=self.learning_rate, eps=EPSILON, fused=True)


def _units_name(units: str) -> str | None:
    """How a state names the units: not at all if rectified, as states of older versions do."""
    return None if units == "relu" else units


def negative_bound(
    network: AutoencoderNetwork,
    X: Any,
    noise: Noise,
    *,
    temperature: Temperature,
    calibration: float,
    betas: Sequence[float] = (),
) -> Callable[[Any, int], Outcome]:
    """Return the objective that a fit of an autoencoder minimises.

    Parameters
    ----------
    network : AutoencoderNetwork
        With the penalty of the fit.
    X : Tensor or SparseRows
        The data.
    noise : Noise
    temperature : Temperature
        Planned for this fit.
    calibration : float
        The probability that a step of a chain follows the annealed objectives.
    betas : sequence of float, default=()
        Beta of the first steps; after these it is 1.
    """

    def bound(rows: Tensor, t: float, beta: float) -> Bound:
        x = X[rows]
        context = network.encoder(x)
        if network.chain is not None:
            tempered, elbo = network.chain_bound(
                x, context, noise, temperature=t, calibration=calibration, beta=beta
            )
        else:
            parts = network.bound(x, network.posterior(context), noise)
            tempered = elbo = (parts.energy + parts.entropy).mean()
            if beta * t != 1:
                tempered = elbo + (beta * t - 1.0) * parts.entropy.mean()
            if beta != 1:
                tempered = tempered + (beta - 1.0) * parts.prior.mean()
        return Bound(tempered, elbo, partial(network.statistic, context=context))

    def objective(rows: Any, step: int) -> Outcome:
        beta = betas[step] if step < len(betas) else 1.0
        return penalised(partial(bound, beta=beta), temperature, network.penalty)(rows, step)

    return objective
