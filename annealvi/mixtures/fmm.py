"""The estimator TemperedFMM, which fits the model of :mod:`annealvi.models.fmm`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from functools import partial
from numbers import Integral, Real
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.random import RandomState
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.validation import check_is_fitted

from annealvi._kernels import gemm
from annealvi.checks import (
    FLOATS,
    Interval,
    as_array,
    as_float,
    check_flag,
    check_numbers,
    check_squares,
    check_width,
)
from annealvi.exceptions import BadParameter, warn_user
from annealvi.inference.fitted import Found, reads
from annealvi.matrices import check_matrix
from annealvi.mixtures.fit import POSITIVE, Draw, TemperedMixture, check_rows
from annealvi.models.fmm import FMM
from annealvi.models.kmeans import sampled_rows
from annealvi.temperature import Annealed, Proximity, Temperature, Variational, as_temperature
from annealvi.threads import writing

#: Largest ratio of the mean square of X to the noise variance at which residuals are accurate.
DYNAMIC_RANGE = {np.dtype(np.float32): 1e5, np.dtype(np.float64): 1e11}
#: ``"annealed"`` starts at T = HOTTEST N pi / D, or at the nearer of the limits MILDEST and
#: HOTTEST.  The uncertainty of the components lowers every logit of nu by D / (2 N pi) nats, at
#: any T.  What the data add to the logit is divided by T.  So if there are more dimensions than
#: data, a high T at the start switches components off permanently (docs/record/evidence.md).
HOTTEST = 10.0
MILDEST = 1.5
VARIATIONAL = Variational(t_max=100.0)
#: D^2 sampling uses at most SEED_ROWS rows, or SEED_ROWS_EACH for each component if that is
#: more.  With all rows of a large X it would take as long as tens of iterations.
SEED_ROWS = 2000
SEED_ROWS_EACH = 10


@dataclass(eq=False, repr=False)
class TemperedFMM(
    TemperedMixture, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator
):
    r"""Factorial mixture model, fitted by annealed variational inference.

    Each datum is the sum of some of the K components, plus Gaussian noise.  A vector
    :math:`z_n` of K bits marks the components that datum n contains:

    .. math::
       x_n = \sum_k z_{nk} \mu_k + \epsilon_n, \quad z_{nk} \sim \mathrm{Bern}(\pi_k), \quad
       \mu_k \sim N(0, \sigma_\mu I), \quad \epsilon_n \sim N(0, \sigma_n I).

    Plain mean-field inference finds only some of the components, depending on where it starts.
    With a falling temperature, inference finds nearly all of them.

    **Which parameters matter.**  Usually set `n_components`, `n_jobs` and `random_state`.  Set
    `noise_variance` if it is known.  `n_init` and `max_iter` can improve a fit.

    Parameters
    ----------
    n_components : int, default=10
        Number of components K.
    prior_probability : float, array-like of shape (n_components,) or "learn", default=0.3
        Probability :math:`\pi` that a datum contains a component, in (0, 1): one number for all
        components, or one for each.  With ``"learn"``, :math:`\pi` starts at 0.3 and is set to the
        mean of :math:`q(z_{nk} = 1)` after each step (empirical Bayes).  With
        ``temperature="variational"``, this update is approximate, because it ignores the effect of
        :math:`\pi` on the normaliser of the tempered likelihood.
    noise_variance : float or "learn", default="learn"
        The variance :math:`\sigma_n` of the noise.  With ``"learn"`` it starts at the variance of X
        and is set to the mean squared residual after each step.  ``"learn"`` cannot be combined
        with a ``"variational"`` T: the data determine only the product of T and the variance.
    component_variance : float or None, default=None
        The prior variance :math:`\sigma_\mu` of the components.  None means the mean square of
        X, so that a component may be as large as a datum.
    temperature : float, str or Temperature, default="annealed"
        The temperature T of the fit.

        - A number T >= 1: T has this value in every step.  T = 1 is plain variational inference.
        - ``"annealed"``: T falls exponentially over the first half of `max_iter` iterations.  T
          starts at ``10 * n_samples * pi / n_features``, but at least at 1.5 and at most at 10.
        - ``"variational"``: T is learned from the data, on a grid from 1 to 100.
        - ``"proximity"``: T > 1 for each bit :math:`z_{nk}` whose probability nears 0 or 1 too
          fast; see :class:`Proximity`.  The components are updated at T = 1.
        - An object of :mod:`annealvi.temperature`.

        At high T components could shrink to zero.  Therefore, while T falls, a short random vector
        is added to each component after every iteration.  It is a hundredth as long as the initial
        vectors of ``init="random"``.
    max_iter : int, default=200
        Largest number of iterations.
    tol : float, default=1e-4
        The fit ends when T no longer changes and an iteration changes the ELBO per sample by less
        than `tol`.  With ``tol=0`` every fit makes `max_iter` iterations.
    init : {"random", "prior", "data", "kmeans++"} or array-like, default="random"
        Where the means of the components start.

        - ``"random"``: short random vectors.  Their expected squared length is twice the noise
          variance, but never more than with ``"prior"``.
        - ``"prior"``: draws from the prior N(0, component_variance).  In many dimensions such
          vectors are so long that the first step may set every bit :math:`z_{nk}` to 0.
        - ``"data"``: random rows of X.
        - ``"kmeans++"``: rows of X chosen by D^2 sampling (:func:`sklearn.cluster.kmeans_plusplus`)
          from 2,000 random rows or, with over 200 components, 10 rows per component.  The rows are
          scaled to the length of the vectors of ``"random"``.  ``"kmeans++"`` usually improves
          plain inference, and makes no difference to an annealed fit (docs/record/evidence.md).
        - An array of shape (n_components, n_features).
    n_init : int, default=1
        Number of fits from different starting points.  The fit with the best ELBO is kept.
    covariance : {"diag", "full"}, default="diag"
        Covariance of the components in q.  With ``"diag"`` components are independent, and updated
        one after the other.  With ``"full"`` they have a K x K covariance and are updated jointly.
    random_state : int, RandomState instance or None, default=None
        The random seed of the starting points, and of `sample` and `predictive_score`.
    n_jobs : int, default=None
        Number of threads.  None means 1 unless in a :obj:`joblib.parallel_backend` context,
        -1 means all processors.  Results are bit-identical for every number of threads.  A
        forked process may use threads too, even if its parent used threads before the fork.
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
    components_ : ndarray of shape (n_components, n_features)
        The posterior means :math:`E[\mu_k]` of the components.
    component_variances_ : ndarray of shape (n_components,)
        The posterior variance of each component, which is the same in every dimension.
    component_covariance_ : ndarray of shape (n_components, n_components)
        The posterior covariance of the components, which is the same in every dimension.  With
        ``covariance="diag"`` it is 0 off the diagonal.
    noise_variance_ : float
        The variance :math:`\sigma_n` of the noise, which was passed or learned.
    prior_probability_ : ndarray of shape (n_components,)
        The prior probabilities :math:`\pi`, which were passed or learned.
    component_variance_ : float
        The prior variance :math:`\sigma_\mu`, which was passed or computed from X.
    lower_bound_ : float
        The ELBO per sample at T = 1, at the end of the best fit.
    n_iter_ : int
        Number of iterations of the best fit.
    converged_ : bool
        Whether the best fit ended because of `tol`.
    temperature_ : float
        The temperature of the last iteration.
    temperature_path_ : ndarray of shape (n_iter,)
        The temperature of each iteration.  With a proximity temperature, each bit has its own T,
        and the path contains their harmonic mean.
    temperature_posterior_ : ndarray of shape (grid,)
        Only with a variational temperature: the distribution q(y) over the temperatures of the
        grid, when T was last learned.  The fit's T slowly approaches the harmonic mean of q(y).
    temperature_posterior_path_ : ndarray of shape (n_learning_steps, grid)
        `temperature_posterior_` after each step in which T was learned, in float32.
    history_ : dict of str to ndarray
        Records of the fit, one for each iteration:  ``pass``, ``step``, ``temperature``,
        ``seconds`` spent in iterations, and ``elbo``, which is the ELBO of all training data at T =
        1.  ``annealed_elbo`` is the objective at the present T, and never falls while T stays the
        same; with a proximity temperature it is computed as if T were 1.  With a variational
        temperature, ``tempered_elbo`` is the ELBO of the model in which T is a latent variable.
    n_features_in_ : int
        Number of dimensions D.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the dimensions, if X has string column names.

    References
    ----------
    Ghahramani (1995), *Factorial learning and the EM algorithm*.
    Arthur, Vassilvitskii (2007), *k-means++: the advantages of careful seeding*, SODA.
    Mandt, McInerney, Abrol, Ranganath, Blei (2016), *Variational Tempering*, AISTATS.
    Altosaar, Ranganath, Blei (2018), *Proximity Variational Inference*, AISTATS.

    Examples
    --------
    >>> from annealvi import TemperedFMM
    >>> from annealvi.datasets import make_shape_mixture
    >>> shapes = make_shape_mixture(500, random_state=0)
    >>> fmm = TemperedFMM(n_components=8, random_state=0).fit(shapes.data)
    >>> fmm.transform(shapes.data).shape
    (500, 8)
    """

    Model = FMM
    components_ = Found(lambda state: state.model.means.copy())
    component_covariance_ = Found(lambda state: state.model.covariance_matrix.copy())
    component_variances_ = Found(lambda state: np.diag(state.model.covariance_matrix).copy())
    noise_variance_ = Found(lambda state: state.model.noise_variance)
    prior_probability_ = Found(lambda state: state.model.prior_probability.copy())
    component_variance_ = Found(lambda state: state.model.component_variance)
    _parameter_constraints: ClassVar[dict] = {
        **TemperedMixture._parameter_constraints,
        "prior_probability": [
            Interval(Real, 0, 1, closed="neither"),
            "array-like",
            StrOptions({"learn"}),
        ],
        "noise_variance": [POSITIVE, StrOptions({"learn"})],
        "component_variance": [None, POSITIVE],
        "init": [StrOptions({"random", "prior", "data", "kmeans++"}), "array-like"],
        "covariance": [StrOptions({"diag", "full"})],
        "n_jobs": [None, Integral],
    }

    n_components: int = 10
    _: KW_ONLY
    prior_probability: float | ArrayLike | Literal["learn"] = 0.3
    noise_variance: float | Literal["learn"] = "learn"
    component_variance: float | None = None
    temperature: float | str | Temperature = "annealed"
    max_iter: int = 200
    tol: float = 1e-4
    init: str | ArrayLike = "random"
    n_init: int = 1
    covariance: Literal["diag", "full"] = "diag"
    random_state: int | RandomState | None = None
    n_jobs: int | None = None
    verbose: int = 0
    callback: Callable | Sequence[Callable] | None = None

    @reads
    def transform(self, X: Any) -> NDArray:
        """Infer the probability that each component is in each datum.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_components)
            The probabilities E[Z] at T = 1.  To avoid poor local optima, inference starts from
            `prior_probability_`, and T falls from 10 to 1 over the first 10 updates.
        """
        return self._ready().infer(self._check_X(X))

    def fit_transform(self, X: Any, y: Any = None) -> NDArray:
        """Fit, then `transform` the same data.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : Ignored

        Returns
        -------
        ndarray of shape (n_samples, n_components)
        """
        with writing(self):  # so that it is this fit that transforms
            return super().fit_transform(X, y)

    def inverse_transform(self, X: Any) -> NDArray:
        """Compute data from components, as the product :math:`E[Z] E[\\mu]`.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_components)
            As returned by `transform`.

        Returns
        -------
        ndarray of shape (n_samples, n_features)
        """
        check_is_fitted(self)
        components = self.components_
        X = check_matrix(X, accept_sparse=False)
        owner = f"inverse_transform of {type(self).__name__}"
        check_width(X, len(components), owner, ", the number of components")
        with np.errstate(over="ignore", invalid="ignore"):
            data = gemm.product(X, components).astype(X.dtype)
            if not np.all(np.isfinite(data)):  # beyond float32: the largest number instead
                largest = np.finfo(X.dtype).max
                data = np.clip(X.astype(float) @ components, -largest, largest)
                data = data.astype(X.dtype)
        return data

    @reads
    def score_samples(self, X: Any) -> NDArray[np.float64]:
        """Compute a lower bound of the log-likelihood of each datum.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
            Each datum's part of the ELBO at T = 1, in nats.
        """
        model = self._ready()
        X = self._check_X(X)
        with np.errstate(over="ignore", invalid="ignore"):
            bound = model.sample_bound(X)
        check_rows(bound, X)
        return bound

    @reads
    def predictive_score(
        self, X: Any, observed: ArrayLike, *, n_draws: int = 100, per_sample: bool = False
    ) -> float | NDArray[np.float64]:
        r"""Estimate the log-likelihood of hidden dimensions given the observed ones.

        q(z) is inferred from the observed dimensions.  The score of the hidden dimensions is the
        logarithm of the mean of :math:`N(x; z M, (\sigma_n + z Q z^T) I)` over draws z from q(z),
        where M and Q are the posterior means and covariance of the components.  With few draws the
        score is too low on average, so compare only scores with the same `n_draws`.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        observed : array-like of bool, of shape (n_features,)
            Which dimensions are observed.
        n_draws : int, default=100
            Number of draws.
        per_sample : bool, default=False
            If True, return the score of each datum; if False, the mean of these scores.

        Returns
        -------
        float or ndarray of shape (n_samples,)
            The log-likelihood of all hidden dimensions together, in nats.
        """
        check_flag(per_sample, "per_sample")
        model = self._ready()
        X = self._check_X(X)
        mask = as_array(observed)
        if mask.shape != (X.shape[1],) or mask.dtype != bool:
            raise BadParameter("observed", f"an array of bool of shape ({X.shape[1]},)", mask)
        if mask.all() or not mask.any():
            raise BadParameter(
                "observed",
                must_be=f"True for 1 to {len(mask) - 1} of the {len(mask)} features",
                got=int(mask.sum()),
            )
        if not isinstance(n_draws, Integral) or not 1 <= n_draws < 2**31:
            raise BadParameter("n_draws", "an int in the range [1, 2147483647]", n_draws)
        rng = check_random_state(self.random_state)
        scores = model.predictive(X, mask, n_draws, rng)
        return scores if per_sample else float(np.mean(scores))

    @reads
    def sample(self, n_samples: int = 1) -> tuple[NDArray, NDArray]:
        """Draw data from the fitted model, with each component equal to its posterior mean.

        Parameters
        ----------
        n_samples : int, default=1

        Returns
        -------
        X : ndarray of shape (n_samples, n_features)
        Z : ndarray of shape (n_samples, n_components), of 0 and 1
            1 for each component that is in the datum, 0 for the others.
        """
        model, rng = self._sampler(n_samples)
        shape = (n_samples, model.n_components)
        Z = (rng.random_sample(shape) < model.prior_probability).astype(float)
        noise = rng.standard_normal((n_samples, model.n_features))
        return gemm.product(Z, model.means) + np.sqrt(model.noise_variance) * noise, Z

    # ----------------------------------------------------------------- details

    def _prepare(self, X: Any, copied: Any) -> tuple[NDArray, dict[str, Any], Temperature, Draw]:
        """Check X and the parameters; see :meth:`TemperedMixture._prepare`."""
        X = check_matrix(X, estimator=copied, dtype=FLOATS, order="C", accept_sparse=False)
        n_samples, D = X.shape
        K = int(self.n_components)
        learn_probability = isinstance(self.prior_probability, str)
        prior_probability = np.full(K, 0.3)
        if not learn_probability:
            prior_probability = check_numbers(
                self.prior_probability, "prior_probability", (), (K,), positive=True
            )
            if np.any(prior_probability >= 1):
                raise BadParameter(
                    "prior_probability",
                    must_be="in the range (0.0, 1.0)",
                    got=np.max(prior_probability),
                )
        samples_per_parameter = n_samples * float(np.mean(prior_probability)) / D
        start = min(HOTTEST, max(MILDEST, HOTTEST * samples_per_parameter))
        named_temperatures = {
            "annealed": Annealed(start, length=0.5, shape="exponential"),
            "variational": VARIATIONAL,
            "proximity": Proximity(),
        }
        temperature = as_temperature(self.temperature, named_temperatures)
        sum_of_squares = check_squares(X)
        learns = temperature.learns and not temperature.per_document
        if learns and isinstance(self.noise_variance, str):
            raise ValueError(
                "noise_variance='learn' cannot be combined with a variational temperature, because "
                "only their product can be learned. Set noise_variance or temperature='annealed'."
            )
        mean_square = sum_of_squares / X.size
        smallest = float(np.finfo(X.dtype).tiny)
        largest = float(np.finfo(X.dtype).max)
        variance = mean_square - float(np.mean(X, dtype=float)) ** 2
        variances = {}
        for name, default in (
            ("component_variance", mean_square),
            ("noise_variance", max(variance, 1e-10 * mean_square)),
        ):
            parameter = getattr(self, name)
            if parameter is None or isinstance(parameter, str):
                variances[name] = default if default > smallest else 1.0
                continue
            variances[name] = as_float(parameter)
            if not smallest <= variances[name] <= largest:
                raise BadParameter(
                    name,
                    must_be=f"in [{smallest:.3g}, {largest:.3g}], the range of {X.dtype}, "
                    "the dtype of X",
                    got=parameter,
                )
        squares_of_components = D * variances["component_variance"]
        if not isinstance(self.init, str):
            squares_of_components = check_squares(check_numbers(self.init, "init", (K, D)), "init")
        elif self.init in ("data", "kmeans++") and n_samples < K:
            raise ValueError(
                f"n_components={K} must be at most n_samples={n_samples} with init={self.init!r}."
            )
        _check_range(sum_of_squares + squares_of_components, variances["noise_variance"], X.dtype)
        settings = dict(
            prior_probability=prior_probability,
            learn_probability=learn_probability,
            learn_noise=isinstance(self.noise_variance, str),
            covariance=self.covariance,
            dtype=X.dtype,
            **variances,
        )
        draw = partial(
            _draw,
            X,
            init=self.init,
            n_components=K,
            variance=variances["component_variance"],
            noise_variance=variances["noise_variance"],
        )
        return X, settings, temperature, draw

    def _warn(self, X: NDArray) -> None:
        """Warn if all components are zero, or if X is too large for its dtype."""
        model = self._state.model
        if not np.any(model.means**2 > 1e-12 * model.component_variance) and np.any(X):
            warn_user(
                f"All {model.n_components} components are switched off: noise of variance "
                f"{model.noise_variance:.3g} explains X better than any sum of components. Try "
                "init='random', a lower temperature, or a smaller 'noise_variance'."
            )
        mean_square = check_squares(X) / X.size
        accurate_ratio = DYNAMIC_RANGE[X.dtype]
        if mean_square > accurate_ratio * model.noise_variance:
            as_float64 = ", or pass it as float64" if X.dtype == np.float32 else ""
            warn_user(
                f"The mean square of X, {mean_square:.3g}, is more than {accurate_ratio:.0e} times "
                f"the noise variance, {model.noise_variance:.3g}, so residuals are inaccurate in "
                f"{X.dtype}. Centre X{as_float64}."
            )

    def _check_X(self, X: Any) -> NDArray:
        """Check new data, and that the kernels can compute with their squares."""
        model = self._state.model
        X = check_matrix(
            X, estimator=self, reset=False, dtype=model.dtype, order="C", accept_sparse=False
        )
        square = check_squares(X) + float(np.sum(model.means**2))
        _check_range(square, model.noise_variance, X.dtype)
        return X

    def __sklearn_tags__(self) -> Any:
        """The tags of scikit-learn, with the dtypes that `transform` preserves."""
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float32", "float64"]
        return tags


def _check_range(square: float, noise_variance: float, dtype: np.dtype) -> None:
    """Raise ValueError if squares divided by the noise variance could overflow in the kernels.

    `square` is the sum of the squares of X and of the components.
    """
    relative_square = square / noise_variance
    if relative_square > 1e-3 * float(np.finfo(dtype).max):
        raise ValueError(
            f"The squares of X and of the components add up to {relative_square:.3g} times "
            f"noise_variance={noise_variance:.3g}, too large for {dtype}. "
            "Rescale X, or raise 'noise_variance'."
        )


def _draw(
    X: NDArray,
    rng: np.random.RandomState,
    *,
    init: Any,
    n_components: int,
    variance: float,
    noise_variance: float,
) -> dict[str, Any]:
    """Draw the components at the start of a fit, or return those that `init` contains.

    `variance` is that of the prior of the components.
    """
    if not isinstance(init, str):
        return {"means": init}
    n_samples, n_features = X.shape
    if init == "data":
        return {"means": X[rng.choice(n_samples, n_components, replace=False)]}
    if init != "prior":  # short vectors: their expected square is twice the noise variance
        variance = min(variance, 2.0 * noise_variance / n_features)
    means = rng.normal(0.0, np.sqrt(variance), (n_components, n_features))
    if init == "kmeans++":
        means = _with_sampled_directions(means, X, np.sqrt(n_features * variance), rng)
    return {"means": means}


def _with_sampled_directions(
    drawn: NDArray[np.float64], X: NDArray, length: float, rng: RandomState
) -> NDArray[np.float64]:
    """Vectors of a given length in the directions of rows of X, chosen by D^2 sampling.

    A row is the sum of several components.  The direction of a row is therefore a good start for
    one component, but its length is too large.  If X has fewer distinct rows than components, a
    chosen row may be zero or equal to another row.  The drawn vector is then kept instead.
    """
    n_candidates = max(SEED_ROWS, SEED_ROWS_EACH * len(drawn))
    if len(X) > n_candidates:
        X = X[rng.choice(len(X), n_candidates, replace=False)]
    sampled = X[sampled_rows(X, len(drawn), rng)].astype(float)
    norms = np.sqrt(np.sum(sampled**2, axis=1))
    first_of_equal_rows = np.unique(sampled, axis=0, return_index=True)[1]
    usable_rows = first_of_equal_rows[norms[first_of_equal_rows] > 0]
    drawn[usable_rows] = sampled[usable_rows] * (length / norms[usable_rows])[:, None]
    return drawn
