r"""A factor model, whose data are sums of components that are present or absent, plus noise.

.. math::
   z_{ik} \sim \mathrm{Bern}(\pi_k), \quad x_i \sim N(\sum_k z_{ik} \mu_k, \sigma^2 I), \quad
   q(z_{ik}) = \mathrm{Bern}(\lambda_{ik} = \mathrm{sigmoid}(\theta_{ik}))

where the components :math:`\mu` are parameters.  The factorial mixture of
:mod:`annealvi.models.fmm` is the same model with q(mu) = N(m, s I), which adds D s to each squared
length of a component.  The ELBO is

.. math::
   L = \sum_i \Big\{ -\tfrac{D}{2} \log 2\pi\sigma^2
       - \tfrac{1}{2\sigma^2} \big[ \|r_i\|^2
         + \sum_k \lambda_{ik} (1 - \lambda_{ik}) \|\mu_k\|^2 \big]
       + \sum_k [\lambda_{ik} \log \pi_k + (1 - \lambda_{ik}) \log (1 - \pi_k)
         + H(\lambda_{ik})] \Big\}

where :math:`r_i = x_i - \sum_k \lambda_{ik} \mu_k` is the residual.  The gradients of L are

.. math::
   a_{ik} &= \mathrm{logit}\, \pi_k + [\mu_k^T (r_i + \lambda_{ik} \mu_k)
       - \tfrac12 \|\mu_k\|^2] / \sigma^2, \\
   \partial L / \partial \theta_{ik} &= (a_{ik} - \theta_{ik}) \lambda_{ik} (1 - \lambda_{ik}), \\
   \partial L / \partial \mu_k &= \sum_i [\lambda_{ik} r_i
       - \lambda_{ik} (1 - \lambda_{ik}) \mu_k] / \sigma^2.

The coordinate update sets :math:`\theta = a`, where its gradient is 0.  See Figure 1 and Eqs. 4 to
7 of Altosaar, Ranganath, Blei (2018); their Eq. 6 leaves out the prior.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from annealvi._kernels import gemm, special
from annealvi.checks import check_numbers, check_squares, checked
from annealvi.exceptions import BadParameter
from annealvi.proximity.statistics import Bernoulli, Floats


class BernoulliFactorModel:
    """The data and constants of a model with binary factors.

    The logits of q and the components are arguments of the methods.  The first axis of all arrays
    indexes independent runs, which are computed together.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features) or (n_runs, n_samples, n_features)
        One data matrix for all runs, or one for each run.
    prior_probability : float or array-like of shape (n_components,), default=0.5
        The prior probability pi of each component, in (0, 1).
    noise_variance : float, default=1.0
        The variance sigma^2 > 0 of the noise.

    Attributes
    ----------
    prior_logit : ndarray of shape (1, 1) or (n_components, 1)
        The logit of `prior_probability`.

    Raises
    ------
    ValueError
        If a number is out of its range, X is not finite, or its squares overflow.
    """

    @checked
    def __init__(
        self, X: ArrayLike, *, prior_probability: ArrayLike = 0.5, noise_variance: float = 1.0
    ) -> None:
        """Check the data and the parameters."""
        data = check_numbers(X, "X")
        if data.ndim not in (2, 3) or not data.size:
            raise BadParameter(
                "X",
                must_be="of shape (n_samples, n_features) or (n_runs, n_samples, n_features)",
                got=data,
            )
        check_squares(data.reshape(-1, data.shape[-1]))
        probability = check_numbers(prior_probability, "prior_probability")
        if probability.ndim > 1 or not probability.size:
            raise BadParameter(
                "prior_probability",
                must_be="a float or an array of floats of shape (n_components,)",
                got=probability,
            )
        wrong_probabilities = probability[(probability <= 0) | (probability >= 1)]
        if wrong_probabilities.size:
            raise BadParameter(
                "prior_probability", "in the range (0.0, 1.0)", wrong_probabilities.flat[0]
            )
        self.noise_variance = float(
            check_numbers(noise_variance, "noise_variance", (), positive=True)
        )
        # as in the kernels, the values of a component for all data are contiguous in memory
        self._x = np.ascontiguousarray(np.swapaxes(data, -1, -2))
        pi = probability.reshape(-1, 1)
        self.prior_probability = pi
        self.prior_logit = special.log(pi) - special.log1p(-pi)

    @property
    def n_samples(self) -> int:
        """Number of data points, N."""
        return self._x.shape[-1]

    @property
    def n_features(self) -> int:
        """Number of features D."""
        return self._x.shape[-2]

    def check_means(self, means: ArrayLike) -> Floats:
        """Check the components with which runs start; return them with shape (n_runs, K, D).

        Parameters
        ----------
        means : array-like of shape (n_components, n_features) or \
                (n_runs, n_components, n_features)
            The components mu at the start of each run.  A two-dimensional array means a single run.

        Raises
        ------
        ValueError
            If the components are not finite, or if their shape does not match the data.
        """
        n_runs = len(self._x) if self._x.ndim == 3 else None
        n_components = len(self.prior_probability) if len(self.prior_probability) > 1 else None
        shape = (n_runs, n_components, self.n_features)  # None allows any length
        start_means = check_numbers(means, "means")
        means_of_runs = (
            start_means[None] if start_means.ndim == 2 and n_runs is None else start_means
        )
        if means_of_runs.ndim != 3 or any(
            expected not in (None, length) or not length
            for expected, length in zip(shape, means_of_runs.shape, strict=True)
        ):
            raise BadParameter(
                "means",
                must_be=f"numbers of shape ({n_runs or 'n_runs'}, "
                f"{n_components or 'n_components'}, {self.n_features}), "
                "which is (n_runs, n_components, n_features)",
                got=start_means,
            )
        return means_of_runs

    @checked
    def elbo(self, q: Bernoulli, means: Floats) -> Floats:
        """Compute the ELBO of each run.

        Parameters
        ----------
        q : Bernoulli
            The factors.  Their logits theta have the shape (n_runs, n_components, n_samples).
        means : ndarray of shape (n_runs, n_components, n_features)
            The components mu.

        Returns
        -------
        ndarray of shape (n_runs,)
        """
        residual = self._residual(q, means)
        squared_lengths = np.sum(means**2, axis=-1, keepdims=True)
        expected_square = np.sum(residual**2, axis=(-2, -1)) + np.sum(
            q.variance * squared_lengths, axis=(-2, -1)
        )
        half_size = 0.5 * self.n_samples * self.n_features
        log_h = -half_size * math.log(2 * math.pi) - half_size * math.log(self.noise_variance)
        log_prior = special.log1p(-self.prior_probability) + q.probability * self.prior_logit
        local = np.sum(log_prior + q.entropy, axis=(-2, -1))
        return log_h - expected_square / (2 * self.noise_variance) + local

    @checked
    def gradients(self, q: Bernoulli, means: Floats) -> tuple[Floats, Floats]:
        """Return the optimum a of each logit, and the gradient with respect to the components.

        The gradient with respect to the logits is ``(a - q.logit) * q.variance``.

        Parameters
        ----------
        q, means
            The same as in `elbo`.

        Returns
        -------
        a : ndarray of shape (n_runs, n_components, n_samples)
        gradient : ndarray of shape (n_runs, n_components, n_features)
        """
        residual = self._residual(q, means)
        squared_lengths = np.sum(means**2, axis=-1, keepdims=True)
        optimal_logit = gemm.product(means, residual)
        optimal_logit += (q.probability - 0.5) * squared_lengths
        optimal_logit /= self.noise_variance
        optimal_logit += self.prior_logit
        gradient = gemm.product(q.probability, np.swapaxes(residual, -1, -2))
        gradient -= q.variance.sum(axis=-1, keepdims=True) * means
        return optimal_logit, gradient / self.noise_variance

    @checked
    def best_means(self, q: Bernoulli) -> Floats:
        r"""Return the components mu that maximise the ELBO, the solution of R mu = A.

        Here :math:`A = \lambda^T X` and :math:`R = \lambda^T \lambda + \mathrm{diag} \sum_i
        \lambda_i (1 - \lambda_i)`.  If several mu solve the equation, for example because a factor
        is absent from all data, the solution with the smallest norm is returned.

        Parameters
        ----------
        q : Bernoulli
            The factors, as in `elbo`.

        Returns
        -------
        ndarray of shape (n_runs, n_components, n_features)
        """
        R = q.probability @ np.swapaxes(q.probability, -1, -2)
        diagonal = np.einsum("...kk->...k", R)  # a view of R, which changes R
        diagonal += q.variance.sum(axis=-1)
        # this pseudoinverse works even if R is so small that NumPy's pseudoinverse would overflow
        values, vectors = np.linalg.eigh(R)
        threshold = np.maximum(1e-14 * values[..., -1:], 1e-100)
        inverse = np.divide(1.0, values, out=np.zeros_like(values), where=values > threshold)
        A = q.probability @ np.swapaxes(self._x, -1, -2)
        return (vectors * inverse[..., None, :]) @ (np.swapaxes(vectors, -1, -2) @ A)

    def _residual(self, q: Bernoulli, means: Floats) -> Floats:
        """The residuals x - sum_k lambda_k mu_k, of shape (n_runs, D, N)."""
        return self._x - gemm.product(np.swapaxes(means, -1, -2), q.probability)
