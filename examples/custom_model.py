"""A model of your own
===================

How to write your own model: a mixture of Poissons with annealing and a learned temperature.

Prints the mean ELBO and how often fits from random starts find the best optimum, for plain
inference, annealing and a learned temperature.

::

    python examples/custom_model.py

annealvi does not contain this model.  The class below only needs the three methods of the protocol
in annealvi.model.
"""

from __future__ import annotations

import numpy as np
from scipy.special import entr, gammaln, logsumexp, psi

from annealvi import Annealed, Fixed, Variational
from annealvi.inference import Monitor, optimise
from annealvi.model import UNTEMPERED, Batch, LocalStep, Tempering


class PoissonMixture:
    """x ~ sum_k w_k Poisson(rate_k), w ~ Dir(alpha), rate_k ~ Gamma(shape, scale^-1).

    The base measure h(x) = 1/x! is not tempered: energies and log C(T) leave it out.
    """

    def __init__(self, alpha: np.ndarray, shape: float, inverse_scale: float) -> None:
        #: Natural parameters, in which updates are linear: weights, shapes, inverse scales.
        ones = np.ones(len(alpha))
        self.prior = np.array([alpha, shape * ones, inverse_scale * ones])

    def initialize(self, x: np.ndarray, rng: np.random.RandomState) -> None:
        self.n_samples = len(x)
        rates = rng.gamma(1.0, x.mean(), self.prior.shape[1])
        share = np.full(self.prior.shape[1], len(x) / self.prior.shape[1])
        self.posterior = self.prior + np.array([share, share * rates, share])

    def expectations(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """E log w, E log rate, E rate."""
        alpha, a, s = self.posterior
        return psi(alpha) - psi(alpha.sum()), psi(a) - np.log(s), a / s

    # ------------------------------------------------------- the protocol: three methods

    def local_step(self, batch: Batch, tempering: Tempering, moments: bool = False) -> LocalStep:
        x = batch.data[batch.rows]
        log_w, log_rate, rate = self.expectations()
        log_joint = log_w + x[:, None] * log_rate - rate  # of x and z, without 1/x!
        log_phi = tempering.inverse * log_joint
        log_phi -= logsumexp(log_phi, axis=1, keepdims=True)
        phi = np.exp(log_phi)
        statistics = tempering.inverse * np.array([phi.sum(0), x @ phi, phi.sum(0)])
        return LocalStep(statistics, (phi * log_joint).sum(1), entr(phi).sum(1))

    def global_step(
        self, statistics: np.ndarray, rho: float, scale: float, tempering: Tempering
    ) -> None:
        self.posterior = (1 - rho) * self.posterior + rho * (self.prior + scale * statistics)

    def log_partition(self, inverse: np.ndarray) -> np.ndarray:
        """log C(T): the sum over z and x of h(x) exp(b log p(x, z)), at the current q.

        Integrated over the prior instead it has no closed form here; at the current q, T
        comes to 1 when the data are as probable as the model's own.
        """
        log_w, log_rate, rate = self.expectations()
        b = inverse[:, None]
        return self.n_samples * logsumexp(b * (log_w - rate) + np.exp(b * log_rate), axis=1)

    # ----------------------------------------------------------- to compare fits, the ELBO

    def elbo(self, x: np.ndarray) -> float:
        local = self.local_step(Batch(x, slice(0, len(x))), UNTEMPERED)
        p_alpha, p_a, p_s = self.prior
        alpha, a, s = self.posterior
        log_w, log_rate, rate = self.expectations()
        kl = gammaln(alpha.sum()) - gammaln(p_alpha.sum())
        kl += np.sum(gammaln(p_alpha) - gammaln(alpha))
        kl += np.sum((alpha - p_alpha) * log_w + (a - p_a) * log_rate - (s - p_s) * rate)
        kl += np.sum(a * np.log(s) - gammaln(a) - p_a * np.log(p_s) + gammaln(p_a))
        return float(np.sum(local.energy) + np.sum(local.entropy) - np.sum(gammaln(x + 1)) - kl)


def main(n_starts: int = 20, n_steps: int = 100) -> dict[str, float]:
    """Fit from many starts at each kind of temperature; print how often the best is found."""
    rng = np.random.RandomState(0)
    rates = np.array([5.0, 20.0, 50.0, 100.0, 200.0])
    x = rng.poisson(rng.choice(rates, 500)).astype(float)
    kinds = {
        "VI (T = 1)": Fixed(1),
        "annealed": Annealed(start=30, length=0.5),
        "variational tempering": Variational(t_max=30, start=30),
    }
    reached: dict[str, list[float]] = {name: [] for name in kinds}
    for start in range(n_starts):
        for name, temperature in kinds.items():
            model = PoissonMixture(np.ones(len(rates)), shape=1.0, inverse_scale=0.05)
            model.initialize(x, np.random.RandomState(start))
            planned = temperature.plan(n_steps, model=model)
            optimise(model, x, planned, Monitor(), n_samples=len(x), n_passes=n_steps)
            reached[name].append(model.elbo(x) / len(x))
    best = max(max(values) for values in reached.values())
    shares_at_best = {
        name: float(np.mean(np.array(v) > best - 0.01)) for name, v in reached.items()
    }
    print(f"{n_starts} starts, true rates {rates}, ELBO a datum")
    for name, values in reached.items():
        print(
            f"{name:24s} mean {np.mean(values):.4f}, best optimum found {shares_at_best[name]:.0%}"
        )
    return shares_at_best


if __name__ == "__main__":
    main()
