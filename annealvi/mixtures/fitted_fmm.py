"""The methods of a fitted TemperedFMM; the fit itself is in :mod:`annealvi.mixtures.fmm`."""

from __future__ import annotations

from functools import partial
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from annealvi.checks import as_array, check_flag, check_squares, n_threads
from annealvi.files import Node
from annealvi.inference.fitted import same_features
from annealvi.matrices import check_matrix
from annealvi.mixtures.base import FittedMixture, sampler
from annealvi.mixtures.state import MixtureState, ModelFiles
from annealvi.models.fmm import FMM, model_tree, restored_model
from annealvi.threads import shallow, writing

FILES = ModelFiles(model_tree, restored_model)


class FittedFMM(FittedMixture, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """The methods of :class:`annealvi.TemperedFMM` that need a fit."""

    n_jobs: int | None
    random_state: Any

    def transform(self, X: Any) -> NDArray:
        """Infer which components are in each datum: E[Z].

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_components)
            :math:`\\nu` at T = 1.  Each datum starts from `prior_probability_` and cools
            from T = 10 over 10 sweeps, which avoids poor local optima.
        """
        model = self._ready()
        return model.infer(self._check_X(X, model))

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
        """Compute data from components: :math:`E[Z] E[\\mu]`.

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
        if X.shape[1] != len(components):
            raise ValueError(
                f"X has {X.shape[1]} features, but inverse_transform of {type(self).__name__} "
                f"is expecting {len(components)}, the number of components."
            )
        with np.errstate(over="ignore", invalid="ignore"):
            data = X @ components.astype(X.dtype)
            if not np.all(np.isfinite(data)):  # beyond float32: the largest number instead
                most = np.finfo(X.dtype).max
                data = np.clip(X.astype(np.float64) @ components, -most, most).astype(X.dtype)
        return data

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
        with np.errstate(over="ignore", invalid="ignore"):
            bound = model.sample_bound(self._check_X(X, model))
        lost = np.flatnonzero(~np.isfinite(bound))
        if lost.size:
            raise ValueError(
                f"The bound of row {lost[0]} of X is {bound[lost[0]]}: X, or a parameter of the "
                "mixture, is too large or too small for floats."
            )
        return bound

    def score(self, X: Any, y: Any = None) -> float:
        """The mean of `score_samples`.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : Ignored

        Returns
        -------
        float
        """
        return float(np.mean(self.score_samples(X)))

    def predictive_score(
        self,
        X: Any,
        observed: ArrayLike,
        *,
        n_draws: int = 100,
        per_sample: bool = False,
    ) -> float | NDArray[np.float64]:
        r"""Estimate the log-likelihood of hidden dimensions given the observed ones.

        The observed dimensions give q(z).  The hidden ones are scored by the logarithm of the
        mean of :math:`N(x; z M, (\sigma_n + z Q z^T) I)` over draws z from it.  With few draws
        this is too low on average, so compare only scores with the same `n_draws`.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        observed : array-like of bool, of shape (n_features,)
            Which dimensions are observed.
        n_draws : int, default=100
            Number of draws.
        per_sample : bool, default=False
            Whether to return the score of each datum instead of their mean.

        Returns
        -------
        float or ndarray of shape (n_samples,)
            In nats, for all hidden dimensions together.
        """
        check_flag(per_sample, "per_sample")
        model = self._ready()
        X = self._check_X(X, model)
        mask = as_array(observed)
        if mask.shape != (X.shape[1],) or mask.dtype != bool:
            raise ValueError(
                f"'observed' must be an array of bool of shape ({X.shape[1]},), one for each "
                f"feature. Got shape {mask.shape} and dtype {mask.dtype} instead."
            )
        if mask.all() or not mask.any():
            raise ValueError(
                "'observed' must have True for some features and False for others. "
                f"Got {int(mask.sum())} True of {len(mask)}."
            )
        if not isinstance(n_draws, Integral) or n_draws < 1:
            raise ValueError(f"'n_draws' must be an int in the range [1, inf). Got {n_draws!r}.")
        rng = check_random_state(self.random_state)
        scores = model.predictive(X, mask, int(n_draws), rng)
        return scores if per_sample else float(np.mean(scores))

    def sample(self, n_samples: int = 1) -> tuple[NDArray, NDArray]:
        """Draw data from the fitted model, with the components at their means.

        Parameters
        ----------
        n_samples : int, default=1

        Returns
        -------
        X : ndarray of shape (n_samples, n_features)
        Z : ndarray of shape (n_samples, n_components), of 0 and 1
            Which components are in each datum.
        """
        rng, model = sampler(self, n_samples, self.random_state), self._fitted().model
        shape = (int(n_samples), model.n_components)
        Z = (rng.random_sample(shape) < model.prior_probability).astype(np.float64)
        noise = rng.standard_normal((int(n_samples), model.n_features))
        return Z @ model.means + np.sqrt(model.noise_variance) * noise, Z

    def state_dict(self) -> dict[str, Any]:
        """Return the fitted state as a tree, for :func:`annealvi.save`."""
        check_is_fitted(self)
        return self._fitted_tree(FILES)

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
        self._load_fitted(node, FILES, partial(self._adopt, self))

    # ----------------------------------------------------------------- details

    def _check_X(self, X: Any, model: FMM) -> NDArray:
        X = check_matrix(
            X, estimator=self, reset=False, dtype=model.dtype, order="C", accept_sparse=False
        )
        same_features(self, X, model.n_features)
        square = check_squares(X) + float(np.sum(model.means**2))
        self._check_range(square, model.noise_variance, X.dtype)
        return X

    def _check_range(self, square: float, noise_variance: float, dtype: np.dtype) -> None:
        """Raise ValueError if squares, divided by the noise, could overflow in the kernels."""
        largest = square / noise_variance
        if largest > 1e-3 * float(np.finfo(dtype).max):
            raise ValueError(
                f"Squares of X and of the components are {largest:.3g} times the noise variance, "
                f"{noise_variance:.3g}, which {dtype} cannot hold. Scale X or give a larger "
                "'noise_variance'."
            )

    def _ready(self) -> FMM:
        """The fitted model, set to the number of threads of `n_jobs`; for this call alone."""
        check_is_fitted(self)
        model: FMM = shallow(self._fitted().model)
        model.n_threads = n_threads(self.n_jobs)
        return model

    def _adopt(self, columns: Any, state: MixtureState) -> None:
        """Set the fitted attributes to those of a state of the fit."""
        model = state.model
        self._show(
            columns,
            _state=state.view(),
            components_=model.means.copy(),
            component_covariance_=model.covariance_matrix.copy(),
            component_variances_=np.diag(model.covariance_matrix).copy(),
            noise_variance_=model.noise_variance,
            prior_probability_=model.prior_probability.copy(),
            component_variance_=model.component_variance,
        )

    @property
    def _n_features_out(self) -> int:
        return len(self.components_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float32", "float64"]
        return tags
