"""The estimator TemperedGaussianMixture, which fits the model of :mod:`annealvi.models.gmm`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.random import RandomState
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, DensityMixin
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.extmath import randomized_svd

from annealvi.checks import check_numbers, check_squares
from annealvi.exceptions import BadParameter
from annealvi.inference.fitted import Found, reads
from annealvi.matrices import check_matrix
from annealvi.mixtures.fit import POSITIVE, Draw, FiniteMixture, check_rows
from annealvi.models.gmm import GMM, initial_responsibilities
from annealvi.temperature import Annealed, Temperature, Variational, as_temperature

#: The default annealing starts this many times above the critical temperature.
ABOVE_CRITICAL = 7.0
#: The default prior variance of a constant feature, divided by the mean variance of all features.
VARIANCE_FLOOR = 1e-6


#: Precisions are at least this, so that variances are finite.
LEAST = 1.0 / float(np.finfo(np.float64).max)


def _precisions(model: GMM) -> NDArray[np.float64]:
    """The expected precisions, in the shape that the attributes of the estimator have."""
    is_spherical = model.covariance_type == "spherical"  # one precision for all features
    return (model.precisions[:, 0] if is_spherical else model.precisions).copy()


def _prior_covariance(model: GMM) -> Any:
    """The prior of the covariances, in the shape that the attribute of the estimator has."""
    return model.beta[0] if model.covariance_type == "spherical" else model.beta.copy()


def _learned(name: str, value_of_model: Callable[[GMM], Any]) -> Found:
    """A fitted attribute that exists only if the parameter called `name` is None."""

    def value_if_learned(state: Any) -> Any:
        """The attribute, or None if the parameter was known."""
        return (
            value_of_model(state.model) if getattr(state.model, f"known_{name}") is None else None
        )

    return Found(value_if_learned, f"a fit with {name}=None")


@dataclass(eq=False, repr=False)
class TemperedGaussianMixture(FiniteMixture, DensityMixin, BaseEstimator):
    r"""Gaussian mixture, fitted by annealed variational inference.

    .. math::
       z_n \sim \mathrm{Cat}(w), \quad x_{nd} \sim N(\mu_{z_n d}, 1/\lambda_{z_n d}),

    Priors are conjugate: a Dirichlet prior for the weights, and a Normal-Gamma prior for the means
    and precisions.  Parameters that mean the same as in
    :class:`sklearn.mixture.BayesianGaussianMixture` have the same names.  `weights` and
    `covariances` can be given if they are known; otherwise they are learned.

    **Which parameters matter.**  Usually set `n_components`, `covariance_type` and
    `random_state`.  Set `weights` and `covariances` if they are known.  `n_init` can improve a fit.

    Parameters
    ----------
    n_components : int, default=1
        Number of components K.
    covariance_type : {"diag", "spherical"}, default="diag"
        With ``"diag"`` a component has a variance for each dimension; with ``"spherical"`` it has
        one variance.
    tol : float, default=1e-3
        The fit ends when T no longer changes and an iteration changes the ELBO per sample by less
        than `tol`.  With ``tol=0`` every fit makes `max_iter` iterations.
    max_iter : int, default=200
        Largest number of iterations.
    n_init : int, default=1
        Number of fits from different starting points.  The fit with the best ELBO is kept.
    init_params : {"kmeans", "k-means++", "random", "random_from_data"}, default="kmeans"
        How responsibilities are initialised if `means_init` is None.  ``"kmeans"`` uses the
        clusters of k-means.  ``"k-means++"`` draws one datum for each component by D^2 sampling
        (:func:`sklearn.cluster.kmeans_plusplus`), and ``"random_from_data"`` draws one uniformly.
        All three need at least as many data as components.  ``"random"`` draws random
        responsibilities.
    means_init : array-like of shape (n_components, n_features), default=None
        The means to start from.
    weights : array-like of shape (n_components,), default=None
        Known weights, which sum to 1.  None means that the weights are learned.
    covariances : float or array-like, default=None
        Known variances: a number, or an array of shape (n_features,) or
        (n_components, n_features).  With ``covariance_type="spherical"`` the array has shape
        (n_components,).  None means that the variances are learned.
    weight_concentration_prior : float, default=None
        The parameter :math:`\alpha_0` of the Dirichlet prior of learned weights.  None means
        1 / n_components.
    mean_precision_prior : float, default=None
        The factor :math:`\kappa_0`: the prior precision of a component's mean is :math:`\kappa_0`
        times the component's precision :math:`\lambda`.  None means 1.
    mean_prior : array-like of shape (n_features,), default=None
        The prior expectation :math:`m_0` of the means.  None means the mean of X.
    degrees_of_freedom_prior : float, default=None
        The degrees of freedom :math:`\nu_0` of learned precisions.  None means n_features.
    covariance_prior : float or array-like of shape (n_features,), default=None
        The number :math:`\beta_0`: the prior expectation of a learned precision is
        :math:`\nu_0 / \beta_0`.  None means the variances of X, or their mean if spherical.
    temperature : float, "annealed", "variational" or Temperature, default="annealed"
        The temperature T of the fit.

        - A number T >= 1: T has this value in every step.  T = 1 is plain variational inference.
        - ``"annealed"``: T falls over the first half of `max_iter` iterations.  T starts at 2 if
          covariances are learned.  If covariances are known, X is divided by the standard
          deviations, and T falls linearly from 7 times the variance of X along its first principal
          component (the critical temperature).
        - ``"variational"``: T is learned from the data.  `covariances` must be given.
        - An object of :mod:`annealvi.temperature`.

        Components that are equal at high T would stay equal.  Therefore, while T falls, each step
        is followed by a random move of the means.  A move has the size of a hundredth of the
        component's standard deviation, or of a ten-thousandth if components differ in known
        weights or variances.
    random_state : int, RandomState instance or None, default=None
        The random seed of the starting points, and of `sample`.
    verbose : int, default=0
        If not 0, print a line after each iteration.
    callback : callable or list of callables, default=None
        Called as ``callback(estimator, monitor)`` after each iteration.  The callback can use the
        estimator as fitted so far, write into `history_` with ``monitor.record(name=value)``, and
        raise ``StopIteration`` to end the fit.  A :class:`annealvi.callbacks.ProgressBar` shows the
        progress of the fit.  A :class:`annealvi.callbacks.Checkpoint` writes the fit to a file
        from which it can be resumed.  From scikit-learn 1.9 on, `set_callbacks` sets
        scikit-learn's own callbacks.

    Attributes
    ----------
    weights_ : ndarray of shape (n_components,)
        The expected weights of the components.
    means_ : ndarray of shape (n_components, n_features)
        The expected means of the components.
    covariances_ : ndarray of shape (n_components, n_features) or (n_components,)
        The variances, computed as 1 / `precisions_`.
    precisions_ : ndarray of the shape of `covariances_`
        The expected precisions of the components.
    weight_concentration_ : ndarray of shape (n_components,)
        The parameters :math:`\alpha` of the posterior of learned weights.
    mean_precision_ : ndarray of shape (n_components,)
        The factor :math:`\kappa` of each component's posterior.
    degrees_of_freedom_ : ndarray of shape (n_components,)
        The degrees of freedom :math:`\nu` of the posterior of learned precisions.
    mean_prior_, mean_precision_prior_ : ndarray of shape (n_features,), float
        The values of these priors that the fit used.
    weight_concentration_prior_, degrees_of_freedom_prior_, covariance_prior_ : float
        The values of these priors that the fit used, if weights and precisions were learned.
        `covariance_prior_` has shape (n_features,) if ``covariance_type="diag"``.
    lower_bound_ : float
        The ELBO per sample at T = 1, at the end of the best fit.
    n_iter_ : int
        Number of iterations of the best fit.
    converged_ : bool
        Whether the best fit ended because of `tol`.
    temperature_ : float
        The temperature of the last iteration.
    temperature_path_ : ndarray of shape (n_iter,)
        The temperature of each iteration.
    temperature_posterior_ : ndarray of shape (grid,)
        Only with a variational temperature: the distribution q(y) over the temperatures of the
        grid, when T was last learned.  The fit's T slowly approaches the harmonic mean of q(y).
    temperature_posterior_path_ : ndarray of shape (n_learning_steps, grid)
        `temperature_posterior_` after each step in which T was learned, in float32.
    history_ : dict of str to ndarray
        Records of the fit, one for each iteration: ``pass``, ``step``, ``temperature``,
        ``seconds`` spent in iterations, and ``elbo``, which is the ELBO of all training data at
        T = 1.  ``annealed_elbo`` is the objective at the present T, and never falls while T stays
        the same.  With a variational temperature, ``tempered_elbo`` is the ELBO of the model in
        which T is a latent variable.
    n_features_in_ : int
        Number of features D.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the features, if X has string column names.

    References
    ----------
    Katahira, Watanabe, Okada (2008), *Deterministic annealing variant of variational
    Bayes method*.
    Mandt, McInerney, Abrol, Ranganath, Blei (2016), *Variational Tempering*, AISTATS.

    Examples
    --------
    >>> import numpy as np
    >>> from annealvi import TemperedGaussianMixture
    >>> rng = np.random.RandomState(0)
    >>> X = np.concatenate([rng.randn(30, 1) - 4, rng.randn(70, 1) + 4])
    >>> mixture = TemperedGaussianMixture(2, covariances=1.0, random_state=0).fit(X)
    >>> sorted(mixture.weights_.round(1).tolist())
    [0.3, 0.7]
    """

    Model = GMM
    weights_ = Found(lambda state: state.model.weights.copy())
    means_ = Found(lambda state: state.model.means)
    precisions_ = Found(lambda state: _precisions(state.model))
    covariances_ = Found(lambda state: 1.0 / np.maximum(_precisions(state.model), LEAST))
    mean_prior_ = Found(lambda state: state.model.mean_prior.copy())
    mean_precision_prior_ = Found(lambda state: state.model.kappa)
    mean_precision_ = Found(lambda state: state.model.posterior.kappa.copy())
    weight_concentration_prior_ = _learned("weights", lambda model: float(model.alpha[0]))
    weight_concentration_ = _learned("weights", lambda model: model.posterior.alpha.copy())
    degrees_of_freedom_prior_ = _learned("covariances", lambda model: model.nu)
    degrees_of_freedom_ = _learned("covariances", lambda model: model.posterior.nu.copy())
    covariance_prior_ = _learned("covariances", _prior_covariance)
    _parameter_constraints: ClassVar[dict] = {
        **FiniteMixture._parameter_constraints,
        "covariance_type": [StrOptions({"diag", "spherical"})],
        "init_params": [StrOptions({"kmeans", "k-means++", "random", "random_from_data"})],
        "means_init": [None, "array-like"],
        "weights": [None, "array-like"],
        "covariances": [None, POSITIVE, "array-like"],
        "weight_concentration_prior": [None, POSITIVE],
        "mean_precision_prior": [None, POSITIVE],
        "mean_prior": [None, "array-like"],
        "degrees_of_freedom_prior": [None, POSITIVE],
        "covariance_prior": [None, POSITIVE, "array-like"],
    }

    n_components: int = 1
    _: KW_ONLY
    covariance_type: Literal["diag", "spherical"] = "diag"
    tol: float = 1e-3
    max_iter: int = 200
    n_init: int = 1
    init_params: str = "kmeans"
    means_init: ArrayLike | None = None
    weights: ArrayLike | None = None
    covariances: float | ArrayLike | None = None
    weight_concentration_prior: float | None = None
    mean_precision_prior: float | None = None
    mean_prior: ArrayLike | None = None
    degrees_of_freedom_prior: float | None = None
    covariance_prior: float | ArrayLike | None = None
    temperature: float | str | Temperature = "annealed"
    random_state: int | RandomState | None = None
    verbose: int = 0
    callback: Callable | Sequence[Callable] | None = None

    @reads
    def sample(self, n_samples: int = 1) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Draw data from the mixture of `weights_`, `means_` and `covariances_`.

        Parameters
        ----------
        n_samples : int, default=1

        Returns
        -------
        X : ndarray of shape (n_samples, n_features)
        y : ndarray of shape (n_samples,)
            The component of each datum, in ascending order.
        """
        model, rng = self._sampler(n_samples)
        counts = rng.multinomial(n_samples, model.weights / model.weights.sum())
        y = np.repeat(np.arange(len(counts), dtype=np.int64), counts)
        scale = 1.0 / np.sqrt(model.precisions[y])
        return model.means[y] + scale * rng.standard_normal(scale.shape), y

    # ----------------------------------------------------------------- details

    def _prepare(self, X: Any, copied: Any) -> tuple[NDArray, dict[str, Any], Temperature, Draw]:
        """Check X and the parameters; see :meth:`TemperedMixture._prepare`."""
        X = _checked(X, copied, reset=True)
        K = int(self.n_components)
        D = X.shape[1]
        is_spherical = self.covariance_type == "spherical"
        weights = self.weights
        covariances = self.covariances
        variance = X.var(axis=0)
        if weights is not None:
            weights = check_numbers(weights, "weights", (K,), positive=True)
            if not np.isclose(weights.sum(), 1.0):
                raise BadParameter(
                    "weights",
                    must_be=f"positive and sum to 1, not to {weights.sum():.6g}",
                    got=self.weights,
                )
            weights = weights / weights.sum()
        if covariances is not None:
            shapes: tuple[tuple[int, ...], ...] = ((), (K,)) if is_spherical else ((), (D,), (K, D))
            covariances = check_numbers(covariances, "covariances", *shapes, positive=True)
            if is_spherical and covariances.ndim:  # a number for each component
                covariances = covariances[:, None]
            covariances = np.broadcast_to(covariances, (K, D))
        mean_prior = X.mean(axis=0)
        if self.mean_prior is not None:
            mean_prior = check_numbers(self.mean_prior, "mean_prior", (D,))
            check_squares(mean_prior[None], "mean_prior")
        if self.covariance_prior is None:
            unbiased_variance = variance * len(X) / max(len(X) - 1, 1)
            # the prior needs a positive variance for constant features too
            unbiased_variance[_constant(X)] = VARIANCE_FLOOR * (variance.mean() or 1.0)
            beta = unbiased_variance.mean() if is_spherical else unbiased_variance
        else:
            shapes = ((),) if is_spherical else ((), (D,))
            beta = check_numbers(self.covariance_prior, "covariance_prior", *shapes, positive=True)
        if self.means_init is not None:
            check_squares(check_numbers(self.means_init, "means_init", (K, D)), "means_init")
        settings = dict(
            alpha=np.full(K, float(self.weight_concentration_prior or 1.0 / K)),
            mean_prior=mean_prior,
            kappa=float(self.mean_precision_prior or 1.0),
            nu=float(self.degrees_of_freedom_prior or D),
            beta=np.full(D, beta),
            known_weights=weights,
            known_covariances=covariances,
            covariance_type=self.covariance_type,
        )
        annealed = Annealed(start=2.0, length=0.5)
        t_max = 100.0
        if covariances is not None and isinstance(self.temperature, str):
            # the critical temperature is the largest variance of X, in units of the known variance
            scaled = (X - X.mean(axis=0)) / np.sqrt(covariances.min(axis=0))
            largest_singular_value = randomized_svd(scaled, n_components=1, random_state=0)[1][0]
            # rounded, because LAPACK's last digits depend on the processor
            start = max(2.0, float(f"{ABOVE_CRITICAL * largest_singular_value**2 / len(X):.6g}"))
            annealed = Annealed(start=start, length=0.5, shape="linear")
            t_max = max(t_max, start)
        named_temperatures = {
            "annealed": annealed,
            "variational": Variational(t_max=t_max, start=t_max),
        }
        temperature = as_temperature(self.temperature, named_temperatures)
        if temperature.learns and not temperature.per_document and covariances is None:
            raise ValueError(
                "A variational temperature needs known 'covariances', because T and covariances "
                "cannot both be learned. Pass 'covariances', or use temperature='annealed'."
            )
        draw = partial(
            _draw,
            X,
            means=self.means_init,
            init=self.init_params,
            n_components=K,
            covariance_type=self.covariance_type,
        )
        return X, settings, temperature, draw

    @reads
    def _log_joint(self, X: Any) -> NDArray[np.float64]:
        """Compute log p(x, z) of each datum and component; raise if a datum has no finite one."""
        model = self._ready()
        X = _checked(X, self)
        with np.errstate(over="ignore", invalid="ignore"):
            log_joint = model.log_joint(X)
        check_rows(log_joint.max(axis=1), X)  # raises if all values of a row are infinite or NaN
        return log_joint


def _checked(X: Any, estimator: Any, *, reset: bool = False) -> NDArray[np.float64]:
    """Check X, and that its squares are finite; `reset` is True in `fit`."""
    X = check_matrix(X, estimator=estimator, reset=reset, dtype=np.float64, accept_sparse=False)
    check_squares(X)
    return X


def _draw(
    X: NDArray,
    rng: np.random.RandomState,
    *,
    means: Any,
    init: str,
    n_components: int,
    covariance_type: str,
) -> dict[str, Any]:
    """Draw the responsibilities at the start of a fit, or return `means` if they are passed."""
    if means is not None:
        return {"means": means}
    if covariance_type == "diag":  # so that clusters do not depend on units
        X = X / np.where(_constant(X), 1.0, X.std(axis=0))
    return {"responsibilities": initial_responsibilities(X, n_components, init, rng)}


def _constant(X: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Find the columns whose numbers are equal up to rounding errors."""
    return X.std(axis=0) <= 4 * np.finfo(np.float64).eps * np.abs(X).max(axis=0)
