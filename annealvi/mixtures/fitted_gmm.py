"""The methods of a fitted Gaussian mixture; the fit itself is in :mod:`annealvi.mixtures.gmm`."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp, softmax
from sklearn.base import BaseEstimator, DensityMixin
from sklearn.utils.validation import check_is_fitted

from annealvi.checks import check_squares
from annealvi.files import Node
from annealvi.inference.fitted import same_features
from annealvi.matrices import check_matrix
from annealvi.mixtures.base import FittedMixture, check_reached, sampler
from annealvi.mixtures.state import MixtureState, ModelFiles
from annealvi.models.gmm import GMM, model_tree, restored_model

FILES = ModelFiles(model_tree, restored_model)


class FittedGMM(FittedMixture, DensityMixin, BaseEstimator):
    """The methods of :class:`annealvi.TemperedGaussianMixture` that need a fit."""

    random_state: Any

    def predict(self, X: Any) -> NDArray[np.int64]:
        """Return the most probable component of each datum.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        return self._log_joint(X).argmax(axis=1)

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Return the probabilities of the components for each datum, at T = 1.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_components)
        """
        return softmax(self._log_joint(X), axis=1)

    def score_samples(self, X: Any) -> NDArray[np.float64]:
        """Compute the log-likelihood of each datum at the expected log parameters.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
            Each datum's part of the ELBO at T = 1, in nats.
        """
        return logsumexp(self._log_joint(X), axis=1)

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
        scores = self.score_samples(X)
        with np.errstate(over="ignore"):
            mean = np.mean(scores)
        return float(mean if np.isfinite(mean) else np.sum(scores / len(scores)))

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
        rng, model = sampler(self, n_samples, self.random_state), self._fitted().model
        counts = rng.multinomial(n_samples, model.weights / model.weights.sum())
        y = np.repeat(np.arange(len(counts)), counts)
        scale = 1.0 / np.sqrt(model.precisions[y])
        return model.means[y] + scale * rng.standard_normal(scale.shape), y

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

    def _check_X(self, X: Any, columns: Any, reset: bool = False) -> NDArray[np.float64]:
        """X as an array; the features of `columns` are set or checked, see `check_matrix`."""
        X = check_matrix(X, estimator=columns, reset=reset, dtype=np.float64, accept_sparse=False)
        check_squares(X)
        return X

    def _log_joint(self, X: Any) -> NDArray[np.float64]:
        check_is_fitted(self)
        model: GMM = self._fitted().model
        X = same_features(self, self._check_X(X, self), model.n_features)
        with np.errstate(over="ignore", invalid="ignore"):
            return check_reached(model.log_joint(X), X)

    def _adopt(self, columns: Any, state: MixtureState) -> None:
        """Set the fitted attributes to those of a state of the fit."""
        model = state.model
        spherical = model.covariance_type == "spherical"
        precisions = model.precisions[:, 0].copy() if spherical else model.precisions.copy()
        found: dict[str, Any] = dict(
            weights_=model.weights.copy(),
            means_=model.means,
            precisions_=precisions,
            covariances_=1.0 / np.maximum(precisions, 1.0 / np.finfo(np.float64).max),
            mean_prior_=model.mean_prior,
            mean_precision_prior_=model.kappa,
            mean_precision_=model.posterior.kappa.copy(),
        )
        if model.known_weights is None:
            found["weight_concentration_prior_"] = float(model.alpha[0])
            found["weight_concentration_"] = model.posterior.alpha.copy()
        if model.known_covariances is None:
            found["degrees_of_freedom_prior_"] = model.nu
            found["covariance_prior_"] = model.beta[0] if spherical else model.beta
            found["degrees_of_freedom_"] = model.posterior.nu.copy()
        self._show(columns, _state=state.view(), **found)
