"""Methods of a fitted VariationalAutoencoder; vae.py has its parameters and its fit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, check_non_negative
from torch import Tensor

from annealvi.deep.estimators.base import DeepEstimator, numbers, positive
from annealvi.deep.models.layers import ReLUStack, never_positive
from annealvi.deep.objectives import importance_weighted
from annealvi.matrices import check_matrix

#: Number of draws of z that are computed at a time.
BLOCK = 4096


class FittedAutoencoder(ClassNamePrefixFeaturesOutMixin, TransformerMixin, DeepEstimator):
    """The methods of :class:`annealvi.deep.VariationalAutoencoder` that need a fit."""

    def transform(self, X: Any) -> NDArray[np.float32]:
        """Return the latent variables of images: the mean of q(z | x).

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_components), float32
            With transitions, the mean of the Gaussian carried on through the means of the
            transitions, because the mean of the whole chain has no closed form.
        """
        check_is_fitted(self)
        return self._by_blocks(X, 1, lambda x: numbers(self.network_.centre(x)))

    def inverse_transform(self, X: Any) -> NDArray[np.float32]:
        """Return the images of latent variables: the probability of each pixel.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_components)
            Latent variables, as `transform` returns them.

        Returns
        -------
        ndarray of shape (n_samples, n_features), float32
        """
        check_is_fitted(self)
        Z = check_matrix(X, dtype=np.float32, accept_sparse=False)
        if Z.shape[1] != self._n_features_out:
            raise ValueError(
                f"X has {Z.shape[1]} features, but inverse_transform of {type(self).__name__} "
                f"is expecting {self._n_features_out}, the number of components."
            )
        with torch.no_grad():
            return numbers(self.network_.logits(self._tensor(Z)).sigmoid())

    def sample(self, n_samples: int = 1) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Draw images from the fitted model.

        Parameters
        ----------
        n_samples : int, default=1

        Returns
        -------
        X : ndarray of shape (n_samples, n_features), float32, of 0 and 1
            ``inverse_transform(Z)`` returns the probabilities of these draws.
        Z : ndarray of shape (n_samples, n_components), float32
        """
        noise = self._draws()
        z = noise.normal(positive(n_samples, "n_samples"), self._n_features_out)
        with torch.no_grad():
            x = noise.bernoulli(self.network_.logits(z).sigmoid())
        return numbers(x), numbers(z)

    def score(self, X: Any, y: Any = None) -> float:
        """Return the mean of `elbo`, with one draw per datum; higher is better.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        y : Ignored

        Returns
        -------
        float
            In nats.
        """
        return float(np.mean(self.elbo(X)))

    def elbo(self, X: Any, *, n_draws: int = 1) -> NDArray[np.float64]:
        """Return the ELBO of each datum at T = 1, a lower bound of its log-likelihood.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        n_draws : int, default=1
            Draws of z for each datum.  More make the estimate less noisy; it is unbiased with
            any number.

        Returns
        -------
        ndarray of shape (n_samples,)
            In nats.
        """
        return self._average(X, n_draws, lambda weights: weights.mean(dim=0))

    def score_samples(self, X: Any, *, n_draws: int = 100) -> NDArray[np.float64]:
        r"""Return the log-likelihood of each datum, estimated by importance sampling.

        .. math::
           \log \frac1K \sum_k \frac{p(x, z_k)}{q(z_k \mid x)}, \quad z_k \sim q(z \mid x)

        (Burda, Grosse, Salakhutdinov 2016, *Importance weighted autoencoders*).  In expectation
        it is a lower bound that rises with K from the ELBO to :math:`\log p(x)`.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        n_draws : int, default=100
            K, the number of draws of z for each datum.

        Returns
        -------
        ndarray of shape (n_samples,)
            In nats.
        """
        return self._average(X, n_draws, importance_weighted)

    def dead_units(self, X: Any) -> dict[str, NDArray[np.bool_]]:
        """Return which rectified units are positive for none of these images.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        dict of str to ndarray of bool, of shape (n_units,)
            The units of ``"encoder 1"``, ..., counted from the pixels, and of ``"decoder 1"``,
            ..., counted from z.  The decoder is given one draw of z from q for each image.

        Raises
        ------
        ValueError
            If the units are gated: such a unit passes on negative numbers too.
        """
        noise, network = self._draws(), self.network_
        if type(network.encoder) is not ReLUStack:
            raise ValueError("dead_units needs a fit with units='relu': gated units do not die.")

        def dead(x: Tensor) -> NDArray[np.bool_]:
            z, _ = network.log_weights(x, 1, noise)
            layers = [*network.encoder.activations(x), *network.decoder.activations(z)]
            return numbers(torch.cat(never_positive(layers)))[None]

        every = np.all(self._by_blocks(X, 1, dead), axis=0)
        widths = network.encoder.widths
        names = [f"{part} {i + 1}" for part in ("encoder", "decoder") for i in range(len(widths))]
        ends = np.cumsum([*widths, *widths[::-1]])[:-1]
        return dict(zip(names, np.split(every, ends), strict=True))

    # ----------------------------------------------------------------- details

    def _average(
        self, X: Any, n_draws: int, average: Callable[[Tensor], Tensor]
    ) -> NDArray[np.float64]:
        """Return an average of the log weights of each datum."""
        noise, n_draws = self._draws(), positive(n_draws, "n_draws")

        def of(x: Tensor) -> NDArray[np.float64]:
            parts = []
            for first in range(0, n_draws, BLOCK):
                n = min(BLOCK, n_draws - first)
                parts.append(self.network_.log_weights(x, n, noise)[1].double())
            return numbers(average(torch.cat(parts)))

        return self._by_blocks(X, n_draws, of)

    @torch.no_grad()
    def _by_blocks(self, X: Any, n_draws: int, of: Callable[[Tensor], NDArray]) -> NDArray:
        """Apply a function to rows, to a block of them at a time."""
        X = self._check_X(X)
        size = max(1, BLOCK // n_draws)
        blocks = (self._tensor(X[first : first + size]) for first in range(0, len(X), size))
        return np.concatenate([of(block) for block in blocks])

    def _check_X(self, X: Any, reset: bool = False) -> NDArray[np.float32]:
        X = check_matrix(X, estimator=self, reset=reset, dtype=np.float32, order="C")
        return self._check_pixels(X.toarray() if sparse.issparse(X) else X)

    def _check_pixels(self, X: NDArray[np.float32]) -> NDArray[np.float32]:
        """Raise an error unless all values are in [0, 1]."""
        check_non_negative(X, type(self).__name__)
        if np.max(X) > 1:
            raise ValueError(
                f"{type(self).__name__} needs pixels in [0, 1], which are taken as "
                f"probabilities. X has values up to {np.max(X):g}: divide by the largest value "
                "that a pixel can have, 255 in images of bytes."
            )
        return X

    @property
    def _n_features_out(self) -> int:
        return self.network_.n_components

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = True
        tags.transformer_tags.preserves_dtype = ["float32"]
        return tags
