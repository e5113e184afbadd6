r"""The Gaussian mixture model with conjugate priors.

.. math::
   z_n \sim \mathrm{Cat}(w), \quad x_{nd} \sim N(\mu_{z_n d}, 1/\lambda_{z_n d}), \quad
   w \sim \mathrm{Dir}(\alpha_0), \quad \mu_{kd} \sim N(m_{0d}, 1/(\kappa_0 \lambda_{kd})),
   \quad \lambda_{kd} \sim \mathrm{Gamma}(\nu_0/2, \beta_{0d}/2)

The weights w and the precisions lambda are known or learned.  If precisions are spherical, all D
dimensions of a component have the same lambda_k, whose prior has D nu_0 and sum_d beta_0d in place
of nu_0 and beta_0d.  The statistics are N_k = sum_n phi_nk, S_k = sum_n phi_nk x_n and V_k = sum_n
phi_nk x_n^2.  At inverse temperature b all natural parameters are linear in the statistics:

.. math::
   \phi_{nk} &\propto \exp b \{ E \log w_k + \tfrac12 \sum_d (E \log \lambda_{kd}
       - \log 2\pi - E[\lambda_{kd} (x_{nd} - \mu_{kd})^2]) \} \\
   \alpha_k &= \alpha_0 + b N_k, \quad \kappa_k = \kappa_0 + b N_k, \quad
   \kappa_k m_k = \kappa_0 m_0 + b S_k \\
   \nu_k &= \nu_0 + b N_k, \quad
   \beta_k + \kappa_k m_k^2 = \beta_0 + \kappa_0 m_0^2 + b V_k

where E[lambda] = nu/beta and E[lambda (x - mu)^2] = E[lambda] (x - m)^2 + 1/kappa (Bishop, *Pattern
Recognition and Machine Learning*, 10.2).  With ``form="posterior"`` (Abrol et al. 2014) the priors
are also raised to the power b, which does not change their families.

All arrays of this module are in double precision.
"""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Any, Literal

import numpy as np
from numpy.random import RandomState
from numpy.typing import ArrayLike, NDArray

from annealvi._kernels import gemm, special
from annealvi.checks import TINY
from annealvi.files.schema import Array, Number, Optional, Schema, Text, damaged
from annealvi.model import UNTEMPERED, Batch, Tempering
from annealvi.models.dirichlet import centre, log_gamma_variates, log_rising
from annealvi.models.kmeans import k_means, sampled_rows
from annealvi.models.mixture import SIZES, D, K, Mixture, MixtureStep
from annealvi.partition.result import check_log_c_at_1


@dataclass(frozen=True)
class Natural:
    """The parameters of q or of the prior in which updates are linear."""

    #: Parameters of the Dirichlet distribution of the weights.
    alpha: NDArray
    #: Precision of each mean, divided by the precision of its component.
    kappa: NDArray
    #: The product kappa m.
    shift: NDArray
    #: Degrees of freedom of the precisions.
    nu: NDArray
    #: The sum beta + kappa m^2.
    square: NDArray

    def __add__(self, statistics: Natural) -> Natural:
        """Add statistics, each to the parameter that it belongs to."""
        pairs = zip(vars(self).values(), vars(statistics).values(), strict=True)
        return Natural(*(a + b for a, b in pairs))

    def __rmul__(self, factor: float) -> Natural:
        """Multiply all parameters by a factor."""
        return Natural(*(factor * a for a in vars(self).values()))


NATURAL = Schema(
    Natural,
    alpha=Array((K,)),
    kappa=Array((K,)),
    shift=Array((K, D)),
    nu=Array((K,)),
    square=Array((K, D)),
)


def collect(X: NDArray, phi: NDArray) -> Natural:
    """The statistics of centred data that natural parameters are linear functions of."""
    count = phi.sum(axis=0)
    # the count of a component is added to alpha, kappa and nu
    return Natural(
        alpha=count,
        kappa=count,
        shift=gemm.product(phi.T, X),
        nu=count,
        square=gemm.product(phi.T, X**2),
    )


def log_mean_power(alpha: NDArray, n: int, b: float, log_c: NDArray) -> float:
    r"""Compute log E[(sum_k w_k^b c_k)^n] for w ~ Dir(alpha), exactly.

    The multinomial theorem and the moments of the Dirichlet distribution give

        n! Gamma(A) / Gamma(A + b n) [t^n] prod_k f_k(t),
        f_k(t) = sum_i Gamma(alpha_k + b i) / (Gamma(alpha_k) i!) (c_k t)^i,

    with A = sum_k alpha_k.  The series are multiplied by FFT.  All terms are positive.  To keep
    all digits, t is chosen such that the powers of t, weighted by their terms, have mean n.
    """
    if len(alpha) == 1:
        return n * log_c[0]
    powers = np.arange(n + 1, dtype=np.int64)
    # components with the same alpha and c have the same series, which is computed once
    distinct_components, component_kind = np.unique(
        np.stack([alpha, log_c], axis=1), axis=0, return_inverse=True
    )
    component_kind = component_kind.ravel()
    series = log_rising(distinct_components[:, :1], b * powers)
    series += powers * distinct_components[:, 1:] - special.lgamma(powers + 1)

    def tilted(log_t: float) -> tuple[NDArray, NDArray, float]:
        """The series as distributions, the logarithms of their sums, and the sum of the means."""
        # each distinct series once; `component_kind` maps components to them
        terms = series + log_t * powers
        totals = special.log_sum_exp(terms, axis=1, keepdims=True)
        distributions = special.exp(terms - totals)
        return (
            distributions,
            totals[component_kind, 0],
            np.sum(np.sum(distributions * powers, axis=1)[component_kind]),
        )

    log_t_low = -1.0
    log_t_high = 1.0
    # find an interval of log t in which the mean is n, and bisect it
    while tilted(log_t_low)[2] > n:
        log_t_low *= 2
    while tilted(log_t_high)[2] < n:
        log_t_high *= 2
    for _ in range(60):
        log_t = 0.5 * (log_t_low + log_t_high)
        masses, totals, mean = tilted(log_t)
        if abs(mean - n) < 1:
            break
        log_t_low, log_t_high = (log_t, log_t_high) if mean < n else (log_t_low, log_t)
    from scipy.signal import fftconvolve  # imported here, because it is slow to import

    product = masses[component_kind[0]]
    for k in component_kind[1:]:
        product = fftconvolve(product, masses[k])[: n + 1]
    log_factor = special.lgamma(n + 1) - log_rising(alpha.sum(), b * n)
    return log_factor + special.log(product[n]) + totals.sum() - n * log_t


def log_distortions(covariances: NDArray | None, b: NDArray) -> NDArray:
    """log c_k at each b, where c_k is a factor due to component k's different variances.

    c_k is prod_d (sigma_kd / s_d)^(1 - b), and s_d the geometric mean of sigma_kd over components.
    """
    if covariances is None:
        raise ValueError(
            "With learned covariances the normaliser C(T) of the tempered likelihood is infinite "
            "at high T, so T cannot be learned. Pass 'covariances', or use temperature='annealed'."
        )
    log_sigma = 0.5 * special.log(covariances)
    return np.sum(log_sigma - log_sigma.mean(axis=0), axis=1) * (1 - b[:, None])


def initial_responsibilities(X: NDArray, n_components: int, init: str, rng: RandomState) -> NDArray:
    """Compute the responsibilities (n, K) at the start of a fit; `init` is `init_params`."""
    n = len(X)
    K = n_components
    if n < K and init != "random":
        raise ValueError(
            f"Expected n_samples >= n_components but got n_components = {K}, n_samples = {n} with "
            f"init_params={init!r}. Pass 'means_init' or use init_params='random'."
        )
    if init == "kmeans":
        return np.eye(K)[k_means(X, K, rng)]
    if init == "random":
        # plus a tiny number, so that no row is 0
        responsibilities = rng.uniform(size=(n, K)) + TINY
        return responsibilities / responsibilities.sum(axis=1, keepdims=True)
    far_apart = init == "k-means++"
    chosen_rows = sampled_rows(X, K, rng) if far_apart else rng.choice(n, K, replace=False)
    responsibilities = np.zeros((n, K))
    responsibilities[chosen_rows, np.arange(K, dtype=np.int64)] = 1
    return responsibilities


#: At high T components become equal, and equal components would stay equal when T has fallen.  So
#: while T falls, each step is followed by a small random move of the means (Rose 1998,
#: *Deterministic Annealing for Clustering, Compression, Classification, Regression*).  Its size is
#: PERTURBATION times the component's standard deviation.  Components that differ in known weights
#: or variances separate without a move, and towards the better optimum.  A large move could
#: prevent this, so SMALL_PERTURBATION is used for them.
PERTURBATION = 1e-2
SMALL_PERTURBATION = 1e-4


@dataclass(eq=False)
class GMM(Mixture):
    """The posterior q(w, mu, lambda) and its updates, as a :class:`annealvi.model.Model`.

    The mean of the data is subtracted, so that differences of squares do not lose digits.
    """

    STATE = Schema(
        **SIZES,
        covariance_type=Text("diag", "spherical"),
        alpha=Array((K,), positive=True),
        mean_prior=Array((D,)),
        kappa=Number(TINY),
        nu=Number(TINY),
        beta=Array((D,), positive=True),
        known_weights=Optional(Array((K,), positive=True)),
        known_covariances=Optional(Array((K, D), positive=True)),
        least_beta=Array((D,), positive=True),
        offset=Array((D,)),
        posterior=NATURAL,
        last=NATURAL,
        entropy=Number(),
    )

    n_components: int
    n_features: int
    _: KW_ONLY
    alpha: NDArray
    mean_prior: NDArray
    kappa: float
    nu: float = 1.0
    beta: Any = 1.0
    known_weights: NDArray | None = None
    known_covariances: NDArray | None = None
    covariance_type: Literal["diag", "spherical"] = "diag"
    n_samples: int = 0
    #: The last computed log C(T), with the values from which it was computed.
    normaliser: Any = field(default=None, init=False)

    def __post_init__(self) -> None:
        """Begin with the prior as posterior."""
        self.offset = np.zeros(self.n_features)
        self.least_beta = self.beta
        self.prior = self._prior()
        self.posterior = self.prior

    def start(
        self, X: NDArray, *, means: ArrayLike | None = None, responsibilities: Any = None
    ) -> None:
        """Begin training on X from given means or responsibilities."""
        self.n_samples = X.shape[0]
        self.offset = X.mean(axis=0, dtype=float)
        self.prior = self._prior()
        self.least_beta = self.beta
        if responsibilities is not None:
            self.posterior = self.prior + collect(X - self.offset, responsibilities)
            return
        centred_means = np.asarray(means, dtype=float) - self.offset
        # as if each component had the same number of data, with the variance of all data
        samples_per_component = self.n_samples / self.n_components
        kappa = self.prior.kappa + samples_per_component
        nu = self.prior.nu + samples_per_component
        variance = self.beta / self.nu + X.var(axis=0)
        self.posterior = Natural(
            alpha=self.prior.alpha + samples_per_component,
            kappa=kappa,
            shift=kappa[:, None] * centred_means,
            nu=nu,
            square=nu[:, None] * variance + kappa[:, None] * centred_means**2,
        )

    def perturb(self, rng: RandomState) -> None:
        """Move the means at random, by small fractions of their component's standard deviation."""
        q = self.posterior
        # the zeros put all components in one group if nothing is known
        known = [np.zeros(self.n_components), self.known_weights, self.known_covariances]
        known_parameters = np.column_stack([array for array in known if array is not None])
        _, group_of_component, group_sizes = np.unique(
            known_parameters, axis=0, return_inverse=True, return_counts=True
        )
        # a move is smaller if no other component has the same known weights and variances
        move_sizes = np.where(
            group_sizes[group_of_component.ravel()] > 1, PERTURBATION, SMALL_PERTURBATION
        )
        kappa = q.kappa[:, None]
        m = self.means_centred
        moves = move_sizes[:, None] * rng.standard_normal(m.shape) / np.sqrt(self.precisions)
        moved = m + moves
        # beta + kappa m^2 changes with m, so that beta stays the same
        square = q.square + kappa * (moved**2 - m**2)
        self.posterior = replace(q, shift=kappa * moved, square=square)

    def _restore(self, fields: dict[str, Any], place: str) -> None:
        """Set the fields of a file as attributes; check that q, named by `place`, is usable."""
        vars(self).update(fields)
        self.prior = self._prior()
        q = self.posterior
        with np.errstate(all="ignore"):
            derived_arrays = (
                self.means,
                self.log_joint(self.means),
                self.weights,
                1 / self.precisions,
            )
        positive = np.all(np.stack([q.alpha, q.kappa, q.nu]) > 0)
        if not (positive and all(np.all(np.isfinite(array)) for array in derived_arrays)):
            raise damaged(
                f"{place}.posterior", "a set of parameters at which densities are finite", q
            )

    # ------------------------------------------------------------- Algorithm 1

    def local_step(self, batch: Batch, tempering: Tempering, moments: bool = False) -> MixtureStep:
        """Compute the responsibilities of a batch of data, and from them the statistics.

        `moments` is ignored.
        """
        X = batch.data[batch.rows] - self.offset
        b = float(tempering.inverse)
        log_phi = b * self._log_joint(X)
        log_phi -= special.log_sum_exp(log_phi, axis=1, keepdims=True)
        phi = special.exp(log_phi)
        entropy = special.entr(phi).sum(axis=1)
        self.last = collect(X, phi)
        self.entropy = float(entropy.sum())
        return MixtureStep(self, statistics=b * self.last, entropy=entropy)

    def global_step(
        self, statistics: Natural, rho: float, scale: float, tempering: Tempering
    ) -> None:
        """Move q to (1 - rho) q + rho (prior + scale * statistics), in natural parameters.

        If T tempers the posterior instead of the likelihood, min(1, rho T) replaces rho.
        """
        if tempering.form == "posterior":
            rho = min(1.0, rho / tempering.mean)  # tempering.mean is b = 1 / T
        prior = self._tempered_prior(tempering)
        self.least_beta = self._prior_beta(prior)
        optimum = prior + scale * statistics
        self.posterior = optimum if rho == 1 else (1 - rho) * self.posterior + rho * optimum

    # -------------------------------------------------------------- objectives

    def energy(self) -> float:
        """The energy L of the data of the last local step, at the current q."""
        statistics = self.last  # not multiplied by b
        means = self.means_centred
        constants = self._expected_log_weights() + 0.5 * self._log_scales()
        constants -= 0.5 * self.n_features / self.posterior.kappa
        count = statistics.kappa  # the number N_k of data of each component
        # sum_n phi_nk (x_n - m_k)^2
        distance = statistics.square - 2 * means * statistics.shift + means**2 * count[:, None]
        energy = np.sum(count * constants) - 0.5 * np.sum(self.precisions * distance)
        return float(energy - count.sum() * self._log_base())

    def log_base_measure(self) -> float:
        """The logarithm of the base measure of the training data."""
        return self.n_samples * self._log_base()

    def global_bound(self, tempering: Tempering = UNTEMPERED) -> float:
        """-KL(q || p) of the weights, means and precisions, without those that are known."""
        q = self.posterior
        p = self._tempered_prior(tempering)
        kl = 0.0
        if self.known_weights is None:  # KL of two Dirichlet distributions
            kl += special.lgamma(q.alpha.sum()) - special.lgamma(p.alpha.sum())
            kl += np.sum(special.lgamma(p.alpha) - special.lgamma(q.alpha))
            kl += np.sum((q.alpha - p.alpha) * self._expected_log_weights())
        # KL of the normal distributions of the means
        kappa_ratio = p.kappa / q.kappa
        kl += 0.5 * self.n_features * np.sum(kappa_ratio - 1 - special.log(kappa_ratio))
        distance = self.means_centred - p.shift / p.kappa[:, None]
        kl += 0.5 * np.sum(p.kappa[:, None] * self.precisions * distance**2)
        if self.known_covariances is None:  # KL of Gamma distributions
            shape, rate = self._gamma(q, self.least_beta)
            prior_shape, prior_rate = self._gamma(p, self._prior_beta(p))
            shape = np.broadcast_to(shape, rate.shape)
            prior_shape = np.broadcast_to(prior_shape, rate.shape)
            kl += np.sum(
                (shape - prior_shape) * special.digamma(shape)
                - special.lgamma(shape)
                + special.lgamma(prior_shape)
            )
            kl += np.sum(
                prior_shape * (special.log(rate) - special.log(prior_rate))
                + shape * (prior_rate - rate) / rate
            )
        return -float(kl)

    def log_partition(self, inverse: NDArray) -> NDArray:
        r"""Compute log C(T) exactly, for known precisions.

        It equals N [(D/2) log T + log sum_k w_k^b c_k] with c_k = prod_d (sigma_kd / s_d)^(1 - b).
        s_d is the geometric mean of sigma_kd over components.  If weights are learned, the
        power (sum_k w_k^b c_k)^N is replaced by its expectation under their Dirichlet prior.
        """
        log_c = log_distortions(self.known_covariances, inverse)
        # log C is computed once as long as the quantities in `key` stay the same
        key = inverse.tobytes(), self.n_samples, self.alpha.tobytes()
        if self.normaliser is None or self.normaliser[0] != key:
            log_width = 0.5 * self.n_samples * self.n_features * special.log(inverse)
            if self.known_weights is not None:
                logs = inverse[:, None] * special.log(self.known_weights) + log_c
                total = self.n_samples * special.log_sum_exp(logs, axis=1) - log_width
            else:
                log_powers = [
                    log_mean_power(self.alpha, self.n_samples, b, log_c_at_b)
                    for b, log_c_at_b in zip(inverse, log_c, strict=True)
                ]
                total = np.array(log_powers) - log_width
                check_log_c_at_1(total, inverse, self.n_samples)
            self.normaliser = key, total
        return self.normaliser[1].copy()

    def posterior_log_partition(self, temperatures: NDArray, data: Any = None) -> NDArray:
        """Compute log C(T) at the expected logarithms of the weights under the current q."""
        log_weights = self._expected_log_weights()
        return self.n_samples * self.local_log_partition(log_weights, 1.0 / temperatures)

    def sample_prior(self, rng: np.random.Generator) -> NDArray:
        """Draw log w from its prior, or return the known log w.  C(T) depends only on w."""
        if self.known_weights is not None:
            return special.log(self.known_weights)
        logs = log_gamma_variates(rng, self.alpha, self.alpha.shape)
        return logs - special.log_sum_exp(logs)

    def prior_centre(self) -> NDArray:
        """log w at the prior's mode if the mode is inside the simplex, else at its mean."""
        return special.log(centre(self.alpha) if self.known_weights is None else self.known_weights)

    def local_log_partition(self, parameters: NDArray, inverse: NDArray) -> NDArray:
        """The log integral of one datum's tempered likelihood; `parameters` is log w."""
        logs = inverse[:, None] * parameters + log_distortions(self.known_covariances, inverse)
        log_sums = special.log_sum_exp(logs, axis=1)
        return log_sums - 0.5 * self.n_features * special.log(inverse)

    def hyperparameters(self) -> dict[str, Any]:
        """The quantities that log C(T) depends on: the sizes, alpha or w, and the variances."""
        return super().hyperparameters() | {
            "alpha": self.alpha if self.known_weights is None else None,
            "weights": "learned" if self.known_weights is None else self.known_weights,
            "covariances": self.known_covariances,
        }

    # ---------------------------------------------------------------- new data

    def log_joint(self, X: NDArray) -> NDArray:
        """Return E log w_k + E log N(x; mu_k, lambda_k), of shape (n_samples, K).

        The softmax over k is phi at T = 1.  The log-sum-exp over k is the contribution of each
        datum to the ELBO.
        """
        return self._log_joint(X - self.offset)

    @property
    def means(self) -> NDArray:
        """The expected means E mu, of shape (K, D)."""
        return self.means_centred + self.offset

    @property
    def means_centred(self) -> NDArray:
        """The expected means minus the mean of the training data."""
        return self.posterior.shift / self.posterior.kappa[:, None]

    @property
    def weights(self) -> NDArray:
        """The expected weights E w, of shape (K,)."""
        if self.known_weights is not None:
            return self.known_weights
        return self.posterior.alpha / self.posterior.alpha.sum()

    @property
    def precisions(self) -> NDArray:
        """The expected precisions E lambda, of shape (K, D)."""
        if self.known_covariances is not None:
            return 1.0 / self.known_covariances
        a, rate = self._gamma(self.posterior, self.least_beta)
        return np.broadcast_to(a / rate, (self.n_components, self.n_features))

    # ----------------------------------------------------------------- details

    def _prior(self) -> Natural:
        """The natural parameters of the prior, for data whose mean was subtracted."""
        K = self.n_components
        centred_mean = self.mean_prior - self.offset
        kappa = np.full(K, self.kappa)
        shift = kappa[:, None] * centred_mean
        return Natural(
            alpha=self.alpha,
            kappa=kappa,
            shift=shift,
            nu=np.full(K, self.nu),
            square=self.beta + shift * centred_mean,
        )

    def _tempered_prior(self, tempering: Tempering) -> Natural:
        """Return the prior or, with ``form="posterior"``, the prior raised to the power b.

        If each datum has its own b, the mean of b is used.
        """
        if tempering.form == "likelihood":
            return self.prior
        b = tempering.mean
        scaled = b * self.prior
        # b multiplies the exponents of the densities w^(alpha - 1) and lambda^(g nu/2 + g/2 - 1),
        # where g = n_shared is the number of dimensions with the same lambda
        n_shared = self.n_features if self.covariance_type == "spherical" else 1
        nu = scaled.nu + (1 - b) * (2 / n_shared - 1)
        if self.known_covariances is None and np.any(nu <= 0):
            raise ValueError(
                f"With form='posterior' and degrees_of_freedom_prior={self.nu!r}, the prior of "
                f"the precisions is improper at T={1 / b:.4g}. Use a lower temperature, more "
                "degrees of freedom, or form='likelihood'."
            )
        return replace(scaled, alpha=scaled.alpha + 1 - b, nu=nu)

    def _log_joint(self, X: NDArray) -> NDArray:
        """Compute E log w_k + E log N(x; mu_k, lambda_k), for X minus the mean of training data."""
        precision = self.precisions
        means = self.means_centred
        # E[lambda (x - mu)^2] is multiplied out: constants, terms linear and quadratic in x
        constants = self._expected_log_weights() + 0.5 * self._log_scales()
        constants -= 0.5 * (
            self.n_features / self.posterior.kappa + np.sum(precision * means**2, 1)
        )
        linear = gemm.product(X, (precision * means).T)
        return constants + linear - 0.5 * gemm.product(X**2, precision.T)

    def _expected_log_weights(self) -> NDArray:
        """E log w_k under q, or the known log w_k."""
        if self.known_weights is not None:
            return special.log(self.known_weights)
        return special.digamma(self.posterior.alpha) - special.digamma(self.posterior.alpha.sum())

    def _log_scales(self) -> NDArray:
        """For each component k, the sum over d of E log lambda_kd - log 2 pi."""
        if self.known_covariances is not None:
            log_precision = -special.log(self.known_covariances)
        else:
            a, rate = self._gamma(self.posterior, self.least_beta)
            log_precision = special.digamma(a) - special.log(rate)
        shape = (self.n_components, self.n_features)
        return np.sum(np.broadcast_to(log_precision, shape) - math.log(2 * math.pi), axis=1)

    def _log_base(self) -> float:
        """The logarithm of the base measure h of a datum."""
        if self.known_covariances is None:
            return -0.5 * self.n_features * math.log(2 * math.pi)
        return -0.5 * float(np.sum(special.log(2 * math.pi * self.known_covariances).mean(axis=0)))

    def _prior_beta(self, prior: Natural) -> NDArray:
        """The beta of a tempered prior, which is accurate even if the prior mean is far from 0."""
        return self.beta * (prior.kappa[0] / self.prior.kappa[0])

    def _gamma(self, q: Natural, least_beta: NDArray) -> tuple[NDArray, NDArray]:
        """The Gamma parameters of the precisions: the shape (K, 1) and the rate (K, D or 1).

        `least_beta` is the beta of the prior, below which the beta of q cannot be.
        """
        # rounding errors could make beta smaller than the prior's
        beta = np.maximum(q.square - q.shift**2 / q.kappa[:, None], least_beta)
        if self.covariance_type == "diag":
            return 0.5 * q.nu[:, None], 0.5 * beta
        return 0.5 * self.n_features * q.nu[:, None], 0.5 * beta.sum(axis=1, keepdims=True)
