r"""The factorial mixture model: binary latent factors and Gaussian noise, tempered.

.. math::
   x_n = \sum_k z_{nk} \mu_k + \epsilon_n, \quad z_{nk} \sim \mathrm{Bern}(\pi_k), \quad
   \mu_k \sim N(0, \sigma_\mu I), \quad \epsilon_n \sim N(0, \sigma_n I)

(both sigma are variances) with q(z_nk) = Bern(nu_nk) and q(mu) = N(M, Q x I).  Q is a diagonal
("diag") or full K x K covariance, shared by all dimensions.  With P = X M^T, A = nu^T X,
R = nu^T nu + diag sum_n nu (1 - nu) and G = M M^T + D Q, the updates at inverse temperature b
are (Mandt et al. 2016)

.. math::
   \mathrm{logit}\, \nu_{nk} &= b \{ \mathrm{logit}\, \pi_k
       + [P_{nk} - \sum_{j \ne k} \nu_{nj} G_{kj} - G_{kk}/2] / \sigma_n \} \\
   \text{diag:}\quad s_k &= 1 / (1/\sigma_\mu + (b/\sigma_n) R_{kk}), \quad
   m_k = s_k (b/\sigma_n) (A_k - \sum_{j \ne k} R_{kj} m_j) \\
   \text{full:}\quad Q^{-1} &= I/\sigma_\mu + (b/\sigma_n) R, \quad M = (b/\sigma_n) Q A

where the first two lines go through the components k in sequence.  The updates ascend

.. math::
   F(b) = b \left( L - \tfrac{ND}{2} \log 2\pi\sigma_n \right) + \sum_{nk} H(\nu_{nk})
       - \mathrm{KL}(q(\mu) \| p(\mu)),

where the energy, which does not contain the base measure, is

.. math::
   L = -\tfrac{1}{2\sigma_n} [ \|X\|^2 - 2 \langle M, A \rangle + \langle R, G \rangle ]
       + \sum_{nk} [\nu_{nk} \log \pi_k + (1 - \nu_{nk}) \log (1 - \pi_k)].

The posterior form (Abrol et al. 2014) tempers p(mu) too: sigma_mu -> T sigma_mu.

For data as large as images, the two products with X take most of the time of an iteration.
A sweep over nu costs K^2 for each datum and is done by a kernel.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray
from scipy.linalg import cho_factor, cho_solve, solve_triangular
from scipy.special import entr, logsumexp

from annealvi._kernels import fmm as kernels
from annealvi._kernels import gemm
from annealvi._kernels.layout import aligned_empty, separate_rows, single_threaded_blas
from annealvi.files import Node
from annealvi.model import UNTEMPERED, Batch, FactorLimits, LocalStep, Tempering

#: Most samples: BLAS has 32-bit indices.
MOST_SAMPLES = 2**31 - kernels.BLOCK


@dataclass
class Factors:
    """The statistics of the data at the nu of a local step, not weighted by b."""

    #: A = nu^T X.
    data: NDArray[np.float64]
    #: R = sum_n E[z_n z_n^T].
    pairs: NDArray[np.float64]
    #: Entropy of all factors.
    entropy: float

    @classmethod
    def restored(cls, node: Node, n_components: int, n_features: int) -> Self:
        """The statistics that a file has."""
        shapes = {"data": (n_components, n_features), "pairs": (n_components, n_components)}
        arrays = {name: np.array(node.array(name, shapes[name], np.float64)) for name in shapes}
        return cls(**arrays, entropy=node.number("entropy"))


class Field(NamedTuple):
    """The quadratic energy of one datum as a function of its factors."""

    #: G / sigma_n, with 0 on the diagonal.
    coupling: NDArray
    #: logit pi - G_kk / (2 sigma_n).
    offset: NDArray
    #: 1 / sigma_n, the factor of P.
    scale: float


def component_major(n_components: int, n_samples: int, dtype: DTypeLike) -> NDArray:
    """Make an array with a row for each component, whose padding is 0."""
    width = -(-n_samples // kernels.BLOCK) * kernels.BLOCK
    if width > MOST_SAMPLES:
        raise ValueError(
            f"At most {MOST_SAMPLES} samples can be taken at once, as BLAS counts in 32 bits. "
            f"Got {n_samples}."
        )
    room = aligned_empty((n_components, width), dtype)
    room[:, n_samples:] = 0
    return room


def sweep(field: Field, projection: NDArray, nu: NDArray, b: float, n_threads: int) -> None:
    """Update all factors of all data once, in place."""
    inverse = np.full((1, 1), b, dtype=nu.dtype)
    kernels.sweep(projection, *field, inverse, n_threads, nu)


def held_sweep(
    field: Field,
    projection: NDArray,
    nu: NDArray,
    limits: FactorLimits,
    n_samples: int,
    n_threads: int,
) -> NDArray:
    """Update all factors of all data once, within limits and in place."""
    inverse = np.empty_like(nu)
    centre, lower, upper = (np.ascontiguousarray(array, dtype=nu.dtype) for array in limits[1:])
    if not centre.shape == nu.shape[:1] or not lower.shape == upper.shape == nu.shape:
        raise ValueError(
            f"Limits of factors must have the shapes {nu.shape[:1]}, {nu.shape} and "
            f"{nu.shape}, padding too. Got {centre.shape}, {lower.shape} and {upper.shape}."
        )
    kernels.held_sweep(
        projection, *field, limits.inverse, centre, lower, upper, n_threads, nu, inverse
    )
    # b is a ratio of differences, which may vanish near the centre
    return np.maximum(inverse[:, :n_samples], limits.inverse)


def factors_at(probability: NDArray[np.float64], X: NDArray) -> Factors:
    """The statistics of data at nu = pi, computed without matrix products."""
    n, pi = X.shape[0], probability
    pairs = n * (np.outer(pi, pi) + np.diag(pi * (1 - pi)))
    entropy = n * float(np.sum(entr(pi) + entr(1 - pi)))
    return Factors(np.outer(pi, X.sum(axis=0, dtype=np.float64)), pairs, entropy)


def collect(nu: NDArray, X: NDArray, n_threads: int) -> Factors:
    """The statistics of data."""
    (n, D), K = X.shape, len(nu)
    tile = separate_rows(n_threads, gemm.tile_size(K, max(D, K)), nu.dtype)
    data, pairs = np.empty((K, D)), np.empty((K, K))
    for right, gram, out in ((X, False, data), (nu, True, pairs)):
        partial = np.empty((gemm.n_groups(n, out.shape[1]), *out.shape))
        gemm.inner(nu, right, gram, n, n_threads, tile, partial, out)
    # on the diagonal E[z^2] = nu, while nu^T nu has nu^2
    np.fill_diagonal(pairs, nu[:, :n].sum(axis=1, dtype=np.float64))
    entropy = np.zeros(nu.shape[1])
    kernels.entropy(nu, n_threads, entropy)
    return Factors(data, pairs, float(np.sum(entropy[:n])))


#: Outside training the sweeps of the local step end when no nu changes by more than this.
TOLERANCE = {np.dtype(np.float64): 1e-10, np.dtype(np.float32): 1e-6}
MAX_SWEEPS = 500
#: Their first sweeps cool exponentially from this T.  For given components nu has as many poor
#: optima as the whole fit has (docs/evidence.md has the gain).
COOLING_START, COOLING_SWEEPS = 10.0, 10
#: A learned noise variance stays above NOISE_FLOOR times the variance of X, and above
#: RESOLUTION times the mean square of X, below which rounding hides it.  A learned probability
#: stays PROBABILITY_FLOOR away from 0 and 1.  At the limits the objective would be infinite.
RESOLUTION = {np.dtype(np.float64): 2e-11, np.dtype(np.float32): 1e-6}
NOISE_FLOOR, PROBABILITY_FLOOR = 1e-10, 1e-10

#: At high T components shrink towards zero or towards each other.  When T has fallen they would
#: grow back too slowly.  So while T falls, each step is followed by a random move, this fraction
#: of a vector whose expected square is twice the noise variance.
PERTURBATION = 0.01

Covariance = Literal["diag", "full"]


class FactorStep(LocalStep):
    """A local step whose energy is evaluated at the current components when it is read."""

    def __init__(self, model: FMM, statistics: Factors, inverse: NDArray | None = None) -> None:
        self.statistics = statistics
        self.entropy = statistics.entropy
        self.inverse = inverse
        self._model = model

    @property
    def energy(self) -> float:  # type: ignore[override]
        """L = +E_q[log p(x, z | mu)] of all data, without the base measure."""
        return self._model.expected_energy(self.statistics)


class FMM:
    """q(mu), q(z) of the training data, and the steps that update them.

    Inference is in batch mode; see :class:`annealvi.model.Model` for the protocol.
    """

    def __init__(
        self,
        n_components: int,
        n_features: int,
        *,
        prior_probability: ArrayLike = 0.5,
        noise_variance: float = 1.0,
        component_variance: float = 1.0,
        covariance: Covariance = "diag",
        learn_probability: bool = False,
        learn_noise: bool = False,
        dtype: Any = np.float64,
        n_threads: int = 1,
        n_samples: int = 0,
    ) -> None:
        self.n_components = n_components
        self.n_features = n_features
        probability = np.asarray(prior_probability, dtype=np.float64)
        self.prior_probability = np.broadcast_to(probability, (n_components,)).copy()
        self.noise_variance = float(noise_variance)
        self.component_variance = float(component_variance)
        self.covariance = covariance
        self.learn_probability = learn_probability
        self.learn_noise = learn_noise
        self.dtype = np.dtype(dtype)
        self.n_threads = n_threads
        self.means = np.zeros((n_components, n_features))
        self.covariance_matrix = np.zeros((n_components, n_components))
        self.n_samples = n_samples
        self._square = self._least_noise = 0.0
        self._last = Factors(np.empty(0), np.empty(0), 0.0)

    def start(self, X: NDArray, means: ArrayLike) -> None:
        """Begin training on X from nu = pi and q(mu) concentrated on the given means."""
        self.means = np.array(means, dtype=np.float64)
        self.covariance_matrix = np.zeros((self.n_components, self.n_components))
        self.n_samples = X.shape[0]
        self._square = float(np.einsum("nd,nd->", X, X, dtype=np.float64))
        mean_square = self._square / X.size
        variance = mean_square - float(np.mean(X, dtype=np.float64)) ** 2
        resolved = RESOLUTION[self.dtype] * mean_square
        self._least_noise = max(NOISE_FLOOR * variance, resolved, float(np.finfo(self.dtype).tiny))
        self.nu = self._initial_nu(self.n_samples)
        self._projection = component_major(self.n_components, self.n_samples, self.dtype)
        self._last = factors_at(self.prior_probability, X)

    def perturb(self, rng: Any) -> None:
        """Move the means at random, by PERTURBATION times the length of ``init="random"``."""
        scale = PERTURBATION * math.sqrt(2 * self.noise_variance / self.n_features)
        self.means = self.means + scale * rng.standard_normal(self.means.shape)

    def release_buffers(self) -> None:
        """Release the arrays that only training needs."""
        self.__dict__.pop("nu", None)
        self.__dict__.pop("_projection", None)

    # ------------------------------------------------------------------- files

    def state_dict(self) -> dict[str, Any]:
        """All that a fit has learned, as a tree; while it lasts, with nu."""
        return {
            "means": self.means,
            "covariance": self.covariance_matrix,
            "prior_probability": self.prior_probability,
            "noise_variance": self.noise_variance,
            "square": self._square,
            "least_noise": self._least_noise,
            "statistics": vars(self._last),
            "nu": vars(self).get("nu"),
        }

    def load_state_dict(self, node: Node) -> None:
        """Take over what a fit has learned.  A model that is being trained goes on."""
        K, D = self.n_components, self.n_features
        least = float(np.finfo(self.dtype).tiny)
        self.means = np.array(node.array("means", (K, D), np.float64))
        self.covariance_matrix = np.array(node.array("covariance", (K, K), np.float64))
        if not np.all(np.diag(self.covariance_matrix) >= 0):
            raise node.error("covariance", "at least 0 on its diagonal", self.covariance_matrix)
        probability = node.array("prior_probability", (K,), np.float64, positive=True)
        if not np.all(probability < 1):
            raise node.error("prior_probability", "below 1 everywhere", probability)
        self.prior_probability = probability.copy()
        most = 1e-3 * float(np.finfo(self.dtype).max)
        self.noise_variance = node.number("noise_variance", least, most)
        self._square = node.number("square", 0.0)
        self._least_noise = node.number("least_noise", 0.0)
        self._last = Factors.restored(node.node("statistics"), K, D)
        if hasattr(self, "nu"):
            nu = node.array("nu", self.nu.shape, self.dtype)
            if not np.all((nu >= 0) & (nu <= 1)):
                raise node.error("nu", "in the range [0, 1]", nu)
            self.nu[:] = nu

    # ------------------------------------------------------------- Algorithm 1

    def local_step(self, batch: Batch, tempering: Tempering, moments: bool = False) -> FactorStep:
        """Make one sweep over nu of all training data."""
        if batch.rows != slice(0, self.n_samples):
            raise ValueError(
                f"The factorial mixture is fitted in batch: a step takes all {self.n_samples} "
                f"data. Got {batch.rows}."
            )
        field, inverse = self._field(), None
        with single_threaded_blas():
            self._project(batch.data, self._projection)
            if tempering.limits is None:
                b = float(tempering.inverse)
                sweep(field, self._projection, self.nu, b, self.n_threads)
            else:
                arrays = self._projection, self.nu
                sizes = self.n_samples, self.n_threads
                inverse = held_sweep(field, *arrays, tempering.limits, *sizes)
            self._last = collect(self.nu, batch.data, self.n_threads)
        return FactorStep(self, self._last, inverse)

    def global_step(
        self, statistics: Factors, rho: float, scale: float, tempering: Tempering
    ) -> None:
        """Move q(mu) to its optimum, then pi and sigma_n if they are learned.

        The components are updated by one Gauss-Seidel pass (diag) or jointly (full).
        `rho` and `scale` must be 1, as in batch mode.
        """
        if rho != 1 or scale != 1:
            raise ValueError(
                "The factorial mixture is fitted in batch: 'rho' and 'scale' must be 1. "
                f"Got rho={rho!r} and scale={scale!r}."
            )
        b = float(tempering.inverse)
        with single_threaded_blas():
            try:
                self._move_components(statistics, b, self._tempered_variance(tempering))
            except (np.linalg.LinAlgError, ValueError) as error:  # SciPy raises both
                raise ValueError(
                    f"The equations for the components are singular in float64 at T={1 / b:.4g}: "
                    f"noise_variance={self.noise_variance:.4g} and component_variance="
                    f"{self.component_variance:.4g} are too far apart, or too large or too small "
                    "for X."
                ) from error
            R = statistics.pairs
            if self.learn_probability:
                mean = np.diag(R) / self.n_samples
                self.prior_probability = np.clip(mean, PROBABILITY_FLOOR, 1 - PROBABILITY_FLOOR)
            if self.learn_noise:
                n_numbers = self.n_samples * self.n_features
                residual = self._residual(statistics) / n_numbers
                self.noise_variance = max(residual, self._least_noise)

    def _move_components(self, statistics: Factors, b: float, prior_variance: float) -> None:
        """Move q(mu) to its optimum, by one Gauss-Seidel pass (diag) or jointly (full)."""
        heat = b / self.noise_variance
        precision = np.full(self.n_components, 1.0 / prior_variance)
        R, A = statistics.pairs, statistics.data
        if self.covariance == "full":
            factor = cho_factor(np.diag(precision) + heat * R, lower=True)
            self.covariance_matrix = cho_solve(factor, np.eye(self.n_components))
            self.means = cho_solve(factor, heat * A)
            return
        variances = 1.0 / (precision + heat * np.diag(R))
        self.covariance_matrix = np.diag(variances)
        # updating m_k in sequence is a triangular system: new means on the left, old ones on
        # the right
        lower = np.tril(R, -1) + np.diag(1.0 / (variances * heat))
        old = np.triu(R, 1) @ self.means
        self.means = solve_triangular(lower, A - old, lower=True)

    # --------------------------------------------------- for a proximity temperature

    def factors(self) -> NDArray:
        """nu of the training data, of shape (K, N padded)."""
        return self.nu

    def prior_logit(self) -> NDArray[np.float64]:
        """logit pi of each component."""
        return np.log(self.prior_probability) - np.log1p(-self.prior_probability)

    # -------------------------------------------------------------- objectives

    def energy(self) -> float:
        """L of the training data, at the current components and the nu of the last step."""
        return self.expected_energy(self._last)

    def expected_energy(self, statistics: Factors) -> float:
        """L, from statistics and the current components."""
        count = np.diag(statistics.pairs)
        pi = self.prior_probability
        prior = count @ np.log(pi) + (self.n_samples - count) @ np.log1p(-pi)
        return float(prior - self._residual(statistics) / (2 * self.noise_variance))

    def log_base_measure(self) -> float:
        """log h of all data, -(ND/2) log(2 pi sigma_n); a learned T does not temper it."""
        n_numbers = self.n_samples * self.n_features
        return -0.5 * n_numbers * math.log(2 * math.pi * self.noise_variance)

    def log_partition(self, inverse: NDArray[np.float64]) -> NDArray[np.float64]:
        r"""Exact log C(T): (ND/2) log T + N sum_k log(pi_k^b + (1 - pi_k)^b)."""
        b = np.asarray(inverse, dtype=np.float64)[..., None]
        pi = self.prior_probability
        factors = np.logaddexp(b * np.log(pi), b * np.log1p(-pi)).sum(axis=-1)
        return self.n_samples * (factors - 0.5 * self.n_features * np.log(b[..., 0]))

    def posterior_log_partition(
        self, inverse: NDArray[np.float64], data: Any = None
    ) -> NDArray[np.float64]:
        """log C(T) at the current q, equal to :meth:`log_partition`, which does not use q(mu)."""
        return self.log_partition(inverse)

    def hyperparameters(self) -> dict[str, Any]:
        """The quantities that log C(T) depends on."""
        return {
            "n_samples": self.n_samples,
            "n_components": self.n_components,
            "n_features": self.n_features,
            "prior_probability": self.prior_probability,
        }

    def component_bound(self, tempering: Tempering = UNTEMPERED) -> float:
        """-KL(q(mu) || p(mu)); under the posterior form p(mu) has variance T sigma_mu."""
        prior = self._tempered_variance(tempering)
        Q = self.covariance_matrix
        kl = np.trace(Q) / prior - self.n_components * (1 - math.log(prior))
        kl -= np.linalg.slogdet(Q)[1]
        return -0.5 * float(self.n_features * kl + np.sum(self.means**2) / prior)

    def elbo(self, tempering: Tempering = UNTEMPERED) -> float:
        """F(b) of the training data, after at least one step; at T = 1 the ELBO."""
        likelihood = self.energy() + self.log_base_measure()
        b = float(tempering.inverse)
        return b * likelihood + self._last.entropy + self.component_bound(tempering)

    # ---------------------------------------------------------------- new data

    def infer(self, X: NDArray) -> NDArray:
        """E[Z] of data at T = 1, of shape (n_samples, K); the sweeps start at a higher T."""
        nu, _ = self._converged(X)
        return np.ascontiguousarray(nu[:, : X.shape[0]].T)

    def sample_bound(self, X: NDArray) -> NDArray[np.float64]:
        """Each datum's part of the ELBO at T = 1, without the components' KL."""
        nu, projection = self._converged(X)
        coupling, offset, scale = self._field()
        energy, entropy = np.zeros((2, nu.shape[1]))
        kernels.energy(projection, coupling, offset, scale, nu, self.n_threads, energy)
        kernels.entropy(nu, self.n_threads, entropy)
        square = np.einsum("nd,nd->n", X, X, dtype=np.float64)
        constant = np.sum(np.log1p(-self.prior_probability))
        constant -= 0.5 * self.n_features * math.log(2 * math.pi * self.noise_variance)
        bound = energy + entropy
        return bound[: X.shape[0]] + constant - square / (2 * self.noise_variance)

    def restricted(self, columns: NDArray) -> FMM:
        """The same model, restricted to some of the dimensions."""
        part = FMM(
            self.n_components,
            int(np.count_nonzero(columns)),
            prior_probability=self.prior_probability,
            noise_variance=self.noise_variance,
            component_variance=self.component_variance,
            covariance=self.covariance,
            dtype=self.dtype,
            n_threads=self.n_threads,
        )
        part.means = self.means[:, columns]
        part.covariance_matrix = self.covariance_matrix
        return part

    def predictive(
        self, X: NDArray, observed: NDArray[np.bool_], n_draws: int, rng: Any
    ) -> NDArray[np.float64]:
        r"""Estimate log p(hidden dimensions | observed ones) of each datum by Monte Carlo.

        It is the logarithm of the mean, over draws z ~ q(z | observed), of
        N(x_hidden; z M, (sigma_n + z Q z^T) I).
        """
        seen = np.ascontiguousarray(X[:, observed])
        nu = self.restricted(observed).infer(seen).astype(np.float64)
        x, means = X[:, ~observed].astype(np.float64), self.means[:, ~observed]
        n_hidden = x.shape[1]
        with single_threaded_blas():
            square, cross = np.sum(x**2, axis=1), x @ means.T
            gram = means @ means.T
            scores = np.empty((n_draws, len(x)))
            for score in scores:
                z = (rng.random_sample(nu.shape) < nu).astype(np.float64)
                variance = self.noise_variance + np.sum((z @ self.covariance_matrix) * z, axis=1)
                distance = square - 2 * np.sum(z * cross, axis=1) + np.sum((z @ gram) * z, axis=1)
                score[:] = -0.5 * (n_hidden * np.log(2 * np.pi * variance) + distance / variance)
        return logsumexp(scores, axis=0) - math.log(n_draws)

    # ----------------------------------------------------------------- details

    def _tempered_variance(self, tempering: Tempering) -> float:
        if tempering.form == "posterior":
            return self.component_variance / float(tempering.inverse)
        return self.component_variance

    def _initial_nu(self, n_samples: int) -> NDArray:
        nu = component_major(self.n_components, n_samples, self.dtype)
        nu[:] = self.prior_probability[:, None]
        return nu

    def _project(self, X: NDArray, out: NDArray) -> None:
        """Compute P, component-major."""
        gemm.outer(np.ascontiguousarray(self.means, dtype=self.dtype), X, self.n_threads, out)

    def _gram(self) -> NDArray[np.float64]:
        """G = E[mu mu^T]."""
        with single_threaded_blas():
            return self.means @ self.means.T + self.n_features * self.covariance_matrix

    def _field(self) -> Field:
        coupling = self._gram() / self.noise_variance
        pi = self.prior_probability
        offset = np.log(pi) - np.log1p(-pi) - 0.5 * np.diag(coupling)
        np.fill_diagonal(coupling, 0.0)
        scale = 1.0 / self.noise_variance
        return Field(coupling.astype(self.dtype), offset.astype(self.dtype), scale)

    def _residual(self, statistics: Factors) -> float:
        """E_q ||X - z mu||^2; rounding errors may not make it negative."""
        cross = np.sum(self.means * statistics.data)
        residual = self._square - 2 * cross + np.sum(statistics.pairs * self._gram())
        return max(float(residual), 0.0)

    def _converged(self, X: NDArray) -> tuple[NDArray, NDArray]:
        """nu and P of data: nu starts at pi, T falls to 1, then sweeps go on to convergence."""
        nu = self._initial_nu(X.shape[0])
        projection = component_major(self.n_components, X.shape[0], self.dtype)
        with single_threaded_blas():
            self._project(X, projection)
        field = self._field()
        for done in range(MAX_SWEEPS):
            cooling = max(0.0, 1.0 - done / COOLING_SWEEPS)
            before = nu.copy()
            sweep(field, projection, nu, COOLING_START**-cooling, self.n_threads)
            if not cooling and np.max(np.abs(nu - before)) <= TOLERANCE[self.dtype]:
                break
        return nu, projection


def model_tree(model: FMM) -> dict[str, Any]:
    """A model as a tree, from which :func:`restored_model` can make it without data."""
    settings = {
        "component_variance": model.component_variance,
        "covariance": model.covariance,
        "learn_probability": model.learn_probability,
        "learn_noise": model.learn_noise,
        "dtype": model.dtype.name,
        "n_samples": model.n_samples,
    }
    return {"settings": settings, "learned": model.state_dict()}


def restored_model(node: Node) -> FMM:
    """The model of a file, as it was after :meth:`FMM.release_buffers`."""
    settings, learned = node.node("settings"), node.node("learned")
    dtype = settings.string("dtype", ["float32", "float64"])
    means = learned.array("means", (None, None), np.float64)
    if not means.size:
        raise learned.error("means", "an array that is not empty", means)
    K, D = means.shape
    learned.array("covariance", (K, K), np.float64)  # before a model of that size is made
    model = FMM(
        *(K, D),
        component_variance=settings.number("component_variance", float(np.finfo(dtype).tiny)),
        covariance=settings.string("covariance", ["diag", "full"]),  # type: ignore[arg-type]
        learn_probability=settings.boolean("learn_probability"),
        learn_noise=settings.boolean("learn_noise"),
        dtype=dtype,
        n_samples=settings.integer("n_samples", 1),
    )
    model.load_state_dict(learned)
    return model
