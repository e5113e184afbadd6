r"""The factorial mixture model, with binary latent factors and Gaussian noise.

.. math::
   x_n = \sum_k z_{nk} \mu_k + \epsilon_n, \quad z_{nk} \sim \mathrm{Bern}(\pi_k), \quad
   \mu_k \sim N(0, \sigma_\mu I), \quad \epsilon_n \sim N(0, \sigma_n I)

Both sigma are variances.  The posterior is q(z_nk) = Bern(nu_nk) and q(mu) = N(M, Q x I).  Q is a
diagonal ("diag") or full K x K covariance, which is the same for all dimensions.  Let P = X M^T,
A = nu^T X, R = nu^T nu + diag(sum_n nu_n (1 - nu_n)) and G = M M^T + D Q.  The updates at inverse
temperature b are (Mandt et al. 2016)

.. math::
   \mathrm{logit}\, \nu_{nk} &= b \{ \mathrm{logit}\, \pi_k
       + [P_{nk} - \sum_{j \ne k} \nu_{nj} G_{kj} - G_{kk}/2] / \sigma_n \} \\
   \text{diag:}\quad s_k &= 1 / (1/\sigma_\mu + (b/\sigma_n) R_{kk}), \quad
   m_k = s_k (b/\sigma_n) (A_k - \sum_{j \ne k} R_{kj} m_j) \\
   \text{full:}\quad Q^{-1} &= I/\sigma_\mu + (b/\sigma_n) R, \quad M = (b/\sigma_n) Q A

where the first two lines update one component k after another.  The updates ascend

.. math::
   F(b) = b \left( L - \tfrac{ND}{2} \log 2\pi\sigma_n \right) + \sum_{nk} H(\nu_{nk})
       - \mathrm{KL}(q(\mu) \| p(\mu)),

where the energy, which does not contain the base measure, is

.. math::
   L = -\tfrac{1}{2\sigma_n} [ \|X\|^2 - 2 \langle M, A \rangle + \langle R, G \rangle ]
       + \sum_{nk} [\nu_{nk} \log \pi_k + (1 - \nu_{nk}) \log (1 - \pi_k)].

With ``form="posterior"`` (Abrol et al. 2014) p(mu) is also tempered: its variance is T sigma_mu.

If X has many features, as images do, the two products with X take most of the time of an iteration.
The compiled code that updates nu takes about K^2 operations for each datum.
"""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import gen_batches

from annealvi._kernels import fmm as kernels
from annealvi._kernels import gemm, special
from annealvi._kernels.layout import aligned_empty, separate_rows
from annealvi.checks import TINY
from annealvi.files.schema import Array, Flag, Number, Optional, Schema, Text, damaged
from annealvi.model import UNTEMPERED, Batch, Tempering
from annealvi.models.mixture import SIZES, D, K, Mixture, MixtureStep
from annealvi.threads import shallow

#: Rows whose squares are summed together.
ROWS = 1024
#: After training, sweeps (updates of all nu) end when no nu changes by more than this.
TOLERANCE = {np.dtype(np.float64): 1e-10, np.dtype(np.float32): 1e-6}
MAX_SWEEPS = 500
#: In the first COOLING_SWEEPS of these, T falls exponentially from COOLING_START.  Even for fixed
#: components nu has many poor optima (docs/record/evidence.md reports the gain).
COOLING_START = 10.0
COOLING_SWEEPS = 10
#: A learned noise variance stays above NOISE_FLOOR times the variance of X.  It also stays above
#: RESOLUTION times the mean square of X, because rounding errors are as large.  A learned
#: probability stays PROBABILITY_FLOOR away from 0 and 1.  So the objective stays finite.
RESOLUTION = {np.dtype(np.float64): 2e-11, np.dtype(np.float32): 1e-6}
NOISE_FLOOR = 1e-10
PROBABILITY_FLOOR = 1e-10

#: At high T components shrink towards zero or become equal.  They would separate too slowly when T
#: has fallen.  So while T falls, each step is followed by a random move of the components.  Its
#: length is this fraction of that of a vector whose expected square is twice the noise variance.
PERTURBATION = 0.01


class Factors(NamedTuple):
    """The statistics of the data at the nu of a local step, not multiplied by b."""

    #: The matrix A = nu^T X, of shape (K, D).
    data: NDArray
    #: The matrix R = sum_n E[z_n z_n^T].
    pairs: NDArray


def factors_at(pi: NDArray, X: NDArray) -> tuple[Factors, float]:
    """The statistics of data and the entropy of q(z) at nu = pi, without matrix products."""
    n_samples = X.shape[0]
    pairs = n_samples * (np.outer(pi, pi) + np.diag(pi * (1 - pi)))
    entropy = n_samples * float(np.sum(special.entr(pi) + special.entr(1 - pi)))
    return Factors(np.outer(pi, X.sum(axis=0, dtype=float)), pairs), entropy


def collect(nu: NDArray, X: NDArray, n_threads: int) -> tuple[Factors, float]:
    """The statistics of data and the entropy of q(z).  `nu` has shape (K, n padded)."""
    n, D = X.shape
    K = len(nu)
    tile = separate_rows(n_threads, gemm.tile_size(K, max(D, K)), nu.dtype)
    data = np.empty((K, D))
    pairs = np.empty((K, K))
    # data = nu^T X and pairs = nu^T nu, which the kernel sums over groups of rows
    for right, is_gram, product in ((X, False, data), (nu, True, pairs)):
        partial = np.empty((gemm.n_groups(n, product.shape[1]), *product.shape))
        gemm.inner(
            left=nu,
            right=right,
            gram=is_gram,
            n_rows=n,
            n_threads=n_threads,
            tile=tile,
            partial=partial,
            out=product,
        )
    # the diagonal must be E[z^2] = nu, but that of nu^T nu is nu^2
    np.fill_diagonal(pairs, nu[:, :n].sum(axis=1, dtype=float))
    entropy = np.zeros(nu.shape[1])
    kernels.entropy(nu, n_threads=n_threads, out=entropy)
    return Factors(data, pairs), float(np.sum(entropy[:n]))  # without the padding


@dataclass(eq=False)
class FMM(Mixture):
    """The factors q(mu) and q(z) of the training data, and the steps that update them.

    Each step uses all data.  The methods are those of :class:`annealvi.model.Model`.
    """

    STATE = Schema(
        **SIZES,
        dtype=Text("float32", "float64"),
        component_variance=Number(TINY),
        covariance=Text("diag", "full"),
        learn_probability=Flag(),
        learn_noise=Flag(),
        means=Array((K, D)),
        covariance_matrix=Array((K, K)),
        prior_probability=Array((K,), positive=True),
        noise_variance=Number(TINY),
        square=Number(0.0),
        least_noise=Number(0.0),
        last=Schema(Factors, data=Array((K, D)), pairs=Array((K, K))),
        entropy=Number(),
        nu=Optional(Array((K, None), "dtype")),
    )

    n_components: int
    n_features: int
    _: KW_ONLY
    prior_probability: Any = 0.5
    noise_variance: float = 1.0
    component_variance: float = 1.0
    covariance: Literal["diag", "full"] = "diag"
    learn_probability: bool = False
    learn_noise: bool = False
    dtype: Any = np.float64
    n_threads: int = 1
    n_samples: int = 0
    #: During a fit, nu and P of the training data, with a row for each component.
    nu: Any = field(default=None, init=False)
    projection: Any = field(default=None, init=False)

    def __post_init__(self) -> None:
        """Give each component its probability, and make `dtype` a NumPy dtype."""
        self.prior_probability = np.full(self.n_components, self.prior_probability, dtype=float)
        self.dtype = np.dtype(self.dtype)

    def start(self, X: NDArray, means: ArrayLike) -> None:
        """Begin training on X, with nu = pi and with q(mu) concentrated at the given means."""
        self.means = np.array(means, dtype=float)
        # q(mu) is a point at first
        self.covariance_matrix = np.zeros((self.n_components, self.n_components))
        self.n_samples = X.shape[0]
        squares = (np.sum(X[rows].astype(float) ** 2) for rows in gen_batches(len(X), ROWS))
        self.square = float(sum(squares))
        mean_square = self.square / X.size
        variance = mean_square - float(np.mean(X, dtype=float)) ** 2
        # below least_noise, a learned noise variance would only describe rounding errors
        self.least_noise = max(
            NOISE_FLOOR * variance,
            RESOLUTION[self.dtype] * mean_square,
            float(np.finfo(self.dtype).tiny),
        )
        self.nu, self.projection = self._buffers(self.n_samples)
        self.last, self.entropy = factors_at(self.prior_probability, X)

    def perturb(self, rng: Any) -> None:
        """Move the means at random, by PERTURBATION times the length of a random start."""
        scale = PERTURBATION * math.sqrt(2 * self.noise_variance / self.n_features)
        self.means = self.means + scale * rng.standard_normal(self.means.shape)

    def release_buffers(self) -> None:
        """Release the arrays nu and P, which only training needs."""
        self.nu = None
        self.projection = None

    def _restore(self, fields: dict[str, Any], place: str) -> None:
        """Check the fields of a file, which `place` names in errors, and set them as attributes."""
        stored_nu = fields.pop("nu")
        training_nu = self.nu
        if not np.all(np.diag(fields["covariance_matrix"]) >= 0):
            raise damaged(f"{place}.covariance_matrix", "at least 0 on its diagonal", "less")
        if not np.all(fields["prior_probability"] < 1):
            raise damaged(f"{place}.prior_probability", "below 1", fields["prior_probability"])
        # after training there is no array for nu, and the value in the file is not needed
        if training_nu is not None:
            if (
                stored_nu is None
                or stored_nu.shape != training_nu.shape
                or not np.all((stored_nu >= 0) & (stored_nu <= 1))
            ):
                raise damaged(
                    f"{place}.nu", f"of shape {training_nu.shape}, in the range [0, 1]", stored_nu
                )
            training_nu[:] = stored_nu  # in place, to keep its alignment for the kernels
        vars(self).update(fields, dtype=np.dtype(fields["dtype"]))

    # ------------------------------------------------------------- Algorithm 1

    def local_step(self, batch: Batch, tempering: Tempering, moments: bool = False) -> MixtureStep:
        """Update nu of all training data once.  `moments` is ignored."""
        field = self._field()
        self._project(batch.data, self.projection)
        inverse_of_factors = self._sweep(field, self.projection, self.nu, tempering)
        self.last, self.entropy = collect(self.nu, batch.data, self.n_threads)
        return MixtureStep(
            model=self,
            statistics=self.last,  # b multiplies these in the global step
            entropy=self.entropy,
            inverse=inverse_of_factors,
        )

    def global_step(
        self, statistics: Factors, rho: float, scale: float, tempering: Tempering
    ) -> None:
        """Move q(mu) to its optimum, and then pi and sigma_n if they are learned.

        With "diag", components are updated one after the other; with "full", jointly.
        `rho` and `scale` must be 1, because a step uses all data.
        """
        if rho != 1 or scale != 1:
            raise ValueError(
                "'rho' and 'scale' must be 1, because a step of a factorial mixture uses all data. "
                f"Got rho={rho!r} and scale={scale!r}."
            )
        self._move_components(statistics, tempering)
        if self.learn_probability:
            mean_nu = np.diag(statistics.pairs) / self.n_samples
            self.prior_probability = np.clip(mean_nu, PROBABILITY_FLOOR, 1 - PROBABILITY_FLOOR)
        if self.learn_noise:
            mean_residual = self._residual(statistics) / (self.n_samples * self.n_features)
            self.noise_variance = max(mean_residual, self.least_noise)

    def _move_components(self, statistics: Factors, tempering: Tempering) -> None:
        """Move q(mu) to its optimum; raise if its equations are singular."""
        b = float(tempering.inverse)
        heat = b / self.noise_variance
        prior_variance = self.component_variance / tempering.of_priors
        precision = np.full(self.n_components, 1.0 / prior_variance)
        A, R = statistics
        if self.covariance == "full":
            system = np.diag(precision) + heat * R
            solution = np.hstack([np.eye(self.n_components), heat * A])
            gemm.solve(system, solution)  # in place; the diagonal of `system` becomes its pivots
            covariance, means = np.split(solution, [self.n_components], axis=1)
        else:
            variances = 1.0 / (precision + heat * np.diag(R))
            covariance = np.diag(variances)
            # updating one m_k after another solves a triangular system, with new means on the
            # left and old means on the right
            system = np.tril(R, -1) + np.diag(1.0 / (variances * heat))
            means = A - gemm.product(np.triu(R, 1), self.means)
            gemm.solve(system, means)  # in place
        finite = np.all(np.isfinite(covariance)) and np.all(np.isfinite(means))
        if not (finite and np.all(np.diag(system) > 0)):
            raise ValueError(
                f"The equations for the components are singular in float64 at T={1 / b:.4g}. "
                f"Choose a noise_variance (now {self.noise_variance:.4g}) and a component_variance "
                f"(now {self.component_variance:.4g}) that are closer to each other."
            )
        self.covariance_matrix = covariance.copy()
        self.means = means.copy()

    # --------------------------------------------------- for a proximity temperature

    def factors(self) -> NDArray:
        """The probabilities nu of the training data, of shape (K, N padded)."""
        return self.nu

    def prior_logit(self) -> NDArray:
        """The logit of pi of each component."""
        return special.log(self.prior_probability) - special.log1p(-self.prior_probability)

    # -------------------------------------------------------------- objectives

    def energy(self) -> float:
        """The energy L of the training data, with the nu of the last local step."""
        expected_counts = np.diag(self.last.pairs)
        pi = self.prior_probability
        log_prior = np.sum(
            expected_counts * special.log(pi)
            + (self.n_samples - expected_counts) * special.log1p(-pi)
        )
        return float(log_prior - self._residual(self.last) / (2 * self.noise_variance))

    def log_base_measure(self) -> float:
        """The base measure of the training data, -(ND/2) log(2 pi sigma_n)."""
        n_numbers = self.n_samples * self.n_features
        return -0.5 * n_numbers * math.log(2 * math.pi * self.noise_variance)

    def log_partition(self, inverse: NDArray) -> NDArray:
        r"""Compute log C(T) exactly, as (ND/2) log T + N sum_k log(pi_k^b + (1 - pi_k)^b)."""
        b = inverse[:, None]
        pi = self.prior_probability
        log_sums = np.logaddexp(b * special.log(pi), b * special.log1p(-pi)).sum(axis=-1)
        return self.n_samples * (log_sums - 0.5 * self.n_features * special.log(inverse))

    def posterior_log_partition(self, temperatures: NDArray, data: Any = None) -> NDArray:
        """log C(T) at the current q, which equals :meth:`log_partition` for any q(mu)."""
        return self.log_partition(1.0 / temperatures)

    def hyperparameters(self) -> dict[str, Any]:
        """The quantities that log C(T) depends on: the sizes and pi."""
        return super().hyperparameters() | {"prior_probability": self.prior_probability}

    def global_bound(self, tempering: Tempering = UNTEMPERED) -> float:
        """Compute -KL(q(mu) || p(mu)).  With ``form="posterior"`` p(mu) has variance T sigma_mu."""
        prior_variance = self.component_variance / tempering.of_priors
        Q = self.covariance_matrix
        kl = np.trace(Q) / prior_variance - self.n_components * (1 - math.log(prior_variance))
        factorized = Q.copy()
        # the right side does not matter: elimination leaves the pivots of Q on the diagonal
        gemm.solve(factorized, np.zeros((self.n_components, 1)))
        kl -= np.sum(special.log(np.abs(np.diag(factorized))))  # log det Q
        return -0.5 * float(self.n_features * kl + np.sum(self.means**2) / prior_variance)

    # ---------------------------------------------------------------- new data

    def infer(self, X: NDArray) -> NDArray:
        """Infer E[Z] of data, of shape (n_samples, K): T starts above 1 and ends at 1."""
        nu, _ = self._converged(X)
        return np.ascontiguousarray(nu[:, : X.shape[0]].T)

    def sample_bound(self, X: NDArray) -> NDArray:
        """Each datum's part of the ELBO at T = 1, without the KL of the components."""
        nu, projection = self._converged(X)
        coupling, offset, scale = self._field()
        energy, entropy = np.zeros((2, nu.shape[1]))
        kernels.energy(
            projection=projection,
            coupling=coupling,
            offset=offset,
            scale=scale,
            nu=nu,
            n_threads=self.n_threads,
            out=energy,
        )
        kernels.entropy(nu, n_threads=self.n_threads, out=entropy)
        square = np.sum(X.astype(float) ** 2, axis=1)
        constant = np.sum(special.log1p(-self.prior_probability))
        constant -= 0.5 * self.n_features * math.log(2 * math.pi * self.noise_variance)
        bound = (energy + entropy)[: X.shape[0]]
        return bound + constant - square / (2 * self.noise_variance)

    def predictive(
        self, X: NDArray, observed: NDArray[np.bool_], n_draws: int, rng: Any
    ) -> NDArray:
        r"""Estimate log p(hidden dimensions | observed dimensions) of each datum from draws.

        The estimate is the logarithm of the mean of N(x_hidden; z M, (sigma_n + z Q z^T) I) over
        draws z ~ q(z | observed).
        """
        # a copy with the observed dimensions of the components only
        observed_model = shallow(self)
        observed_model.means = self.means[:, observed]
        observed_model.n_features = int(np.count_nonzero(observed))
        nu = observed_model.infer(np.ascontiguousarray(X[:, observed]))
        X_hidden = X[:, ~observed].astype(float)
        means = self.means[:, ~observed]
        n_hidden = X_hidden.shape[1]
        square = np.sum(X_hidden**2, axis=1)
        projection = gemm.product(X_hidden, means.T)
        gram = gemm.product(means, means.T)
        scores = np.empty((n_draws, len(X_hidden)))
        for score in scores:  # each `score` is a row of `scores`, filled in place
            z = (rng.random_sample(nu.shape) < nu).astype(float)
            component_variance = np.sum(gemm.product(z, self.covariance_matrix) * z, axis=1)
            variance = self.noise_variance + component_variance
            # ||x - z M||^2
            distance = square - 2 * np.sum(z * projection, axis=1)
            distance += np.sum(gemm.product(z, gram) * z, axis=1)
            score[:] = -0.5 * (n_hidden * special.log(2 * np.pi * variance) + distance / variance)
        return special.log_sum_exp(scores, axis=0) - math.log(n_draws)

    # ----------------------------------------------------------------- details

    def _buffers(self, n_samples: int) -> tuple[NDArray, NDArray]:
        """Arrays for nu and P of `n_samples` data; nu starts at pi."""
        # a whole number of blocks for each component, as the kernels need
        shape = self.n_components, -(-n_samples // kernels.BLOCK) * kernels.BLOCK
        nu = aligned_empty(shape, self.dtype)
        nu[:] = self.prior_probability[:, None]
        projection = aligned_empty(shape, self.dtype)
        projection[:, n_samples:] = 0  # the kernels also read the padding
        return nu, projection

    def _project(self, X: NDArray, out: NDArray) -> None:
        """Write P = X M^T, with a row for each component, into `out`."""
        gemm.outer(
            left=np.ascontiguousarray(self.means, dtype=self.dtype),
            right=X,
            n_threads=self.n_threads,
            out=out,
        )

    def _gram(self) -> NDArray:
        """G = E[mu mu^T]."""
        return gemm.product(self.means, self.means.T) + self.n_features * self.covariance_matrix

    def _field(self) -> tuple[NDArray, NDArray, float]:
        """Return (C, c, s): a datum's energy is s P nu + c nu - nu C nu / 2, plus a constant.

        C is G / sigma_n with 0 on the diagonal, c = logit pi - G_kk / (2 sigma_n), s = 1 / sigma_n.
        """
        coupling = self._gram() / self.noise_variance
        offset = self.prior_logit() - 0.5 * np.diag(coupling)
        np.fill_diagonal(coupling, 0.0)
        return coupling.astype(self.dtype), offset.astype(self.dtype), 1.0 / self.noise_variance

    def _sweep(
        self,
        field: tuple[NDArray, NDArray, float],
        projection: NDArray,
        nu: NDArray,
        tempering: Tempering,
    ) -> NDArray | None:
        """Update nu of all data once, in place; with limits, return b of each factor.

        `field` are the numbers of :meth:`_field`.  The limits are those of a proximity temperature.
        """
        coupling, offset, scale = field
        limits = tempering.limits
        if limits is None:
            kernels.sweep(
                projection=projection,
                coupling=coupling,
                offset=offset,
                scale=scale,
                b=np.full((1, 1), tempering.inverse, dtype=nu.dtype),  # the same b for all factors
                n_threads=self.n_threads,
                nu=nu,
            )
            return None
        inverse = np.empty_like(nu)
        # limits[0] is b; the other fields are the limits themselves
        centre, lower, upper = (np.ascontiguousarray(array, nu.dtype) for array in limits[1:])
        shapes = (nu.shape[:1], nu.shape, nu.shape)
        if (centre.shape, lower.shape, upper.shape) != shapes:
            raise ValueError(  # the kernel would read past the ends of these arrays
                f"centre, lower and upper of FactorLimits must have the shapes {nu.shape[:1]}, "
                f"{nu.shape} and {nu.shape} after padding. "
                f"Got {centre.shape}, {lower.shape}, {upper.shape}."
            )
        kernels.held_sweep(
            projection=projection,
            coupling=coupling,
            offset=offset,
            scale=scale,
            b=limits.inverse,
            centre=centre,
            lower=lower,
            upper=upper,
            n_threads=self.n_threads,
            nu=nu,
            inverse=inverse,
        )
        # b is a ratio of differences, which may be 0 near the centre
        return np.maximum(inverse[:, : self.n_samples], limits.inverse)

    def _residual(self, statistics: Factors) -> float:
        """E_q ||X - z mu||^2, but not below 0, which rounding errors could cause."""
        cross = np.sum(self.means * statistics.data)
        residual = self.square - 2 * cross + np.sum(statistics.pairs * self._gram())
        return max(float(residual), 0.0)

    def _converged(self, X: NDArray) -> tuple[NDArray, NDArray]:
        """Infer nu of data, and compute P.  T falls to 1; then nu is updated until it converges."""
        nu, projection = self._buffers(X.shape[0])
        self._project(X, projection)
        field = self._field()
        for n_sweeps in range(MAX_SWEEPS):
            # falls from 1 to 0 during the first sweeps, and T with it from COOLING_START to 1
            cooling_left = max(0.0, 1.0 - n_sweeps / COOLING_SWEEPS)
            previous_nu = nu.copy()
            self._sweep(field, projection, nu, Tempering(inverse=COOLING_START**-cooling_left))
            if not cooling_left and np.max(np.abs(nu - previous_nu)) <= TOLERANCE[self.dtype]:
                break
        return nu, projection
