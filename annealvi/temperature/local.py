r"""A temperature for each document, learned from how well the model explains the document."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass
from numbers import Integral, Real
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils._param_validation import StrOptions

from annealvi._kernels import special
from annealvi.checks import COUNT, Interval, check_numbers, checked
from annealvi.files.schema import Array, Number, Schema
from annealvi.model import UNTEMPERED, LocallyNormalised, LocalStep, Tempering
from annealvi.temperature.variational import LEARNED, Learned, log_weights

Normaliser = Literal["document", "corpus"]

#: Inverse temperatures over which outlier scores are averaged, m / 100 for m = 1, ..., 100.
SCORE_GRID = np.arange(1, 101) / 100


@dataclass(eq=False)
class DocumentRule:
    r"""The rule that computes each document's temperature from its expected log-likelihood L_d.

    .. math::
       r_{md} \propto \pi_m \exp(b_m L_d - \log C_d(b_m)), \quad b^*_d = \sum_m r_{md} b_m
    """

    inverses: NDArray[np.float64]
    log_prior: NDArray[np.float64]
    rounds: int
    corpus: NDArray[np.float64] | None = None
    level: float | None = None
    floor: float = 0.02

    def __call__(
        self,
        energy: NDArray[np.float64],
        n_units: NDArray[np.float64],
        log_partition: NDArray[np.float64],
    ) -> NDArray[np.float64]:
        log_c = log_partition
        if self.corpus is not None:
            log_c = n_units[:, None] * self.corpus
        scores = self.log_prior + energy[:, None] * self.inverses - log_c
        # a sum, because the rounding errors of a matrix product depend on the number of documents
        b = np.sum(special.softmax(scores) * self.inverses, axis=1)
        if self.level is None:
            return b
        counted = n_units > 0 if np.any(n_units) else slice(None)
        b *= self.level / special.exp(np.mean(special.log(b[counted])))
        return np.clip(b, self.floor, 1.0)


@dataclass(eq=False, repr=False)
class LocalVariational(Learned):
    r"""A temperature for each document, learned from the data.

    Documents that the model explains badly get high temperatures, and so a lower weight in the
    topics.  The temperature of each document is a latent variable.  The inverse temperature takes
    the values :math:`b_m = m/M` with the prior probabilities :math:`\pi_m`.  A step alternates
    between updates of the document's :math:`\gamma` and of

    .. math::
       r_{md} \propto \pi_m \exp(b_m L_d - \log C_d(b_m)), \quad b^*_d = \sum_m r_{md} b_m.

    L_d is the energy :math:`\sum_v n_{dv} \sum_k \phi_{dvk} (E \log\theta_{dk} + E
    \log\beta_{kv})`.  If topics are point estimates, :math:`\log E \beta` replaces :math:`E
    \log\beta`.  The log normaliser at the current q is

    .. math::
       \log C_d(b) = N_d \log \sum_k \exp(b E \log\theta_{dk}) \sum_v \exp(b E \log\beta_{kv}).

    The topics become :math:`\lambda = \eta + \sum_d b_d n_d \phi_d`.

    Without rescaling, temperatures :math:`1 / b^*_d` fall to 1 in less than one pass over the data.
    By default they are therefore rescaled so that their geometric mean falls slowly:

    .. math::
       b_d = \mathrm{clip}(b^*_d \bar B / \mathrm{geomean}(b^*), 0.02, 1),

    where :math:`\log \bar B` moves from :math:`-\log` `start` to 0.  The geometric mean is
    taken over a minibatch, or over a block of some thousand documents if there are no minibatches.
    The last steps of the fit have T = 1.

    If `continuous` is True, inverse temperatures can have any value in (0, 1).  Under the prior
    :math:`b_d \sim \mathrm{Beta}(a, c)` the optimal q is

    .. math::
       q(b_d) \propto b_d^{a-1} (1 - b_d)^{c-1} \exp(b_d L_d - \log C_d(b_d)).

    This q is not a Beta distribution, because log C_d is not linear in log b and log(1 - b).  The
    other updates need only the mean of q, an integral over (0, 1) that the midpoint rule computes
    accurately with `grid` points.

    Parameters
    ----------
    grid : int, default=100
        Number M >= 2 of inverse temperatures.
    prior : array-like of shape (grid,), or (2,) if `continuous`, or None, default=None
        The prior :math:`\pi` as positive numbers or, if `continuous`, (a, c).  None means uniform.
    continuous : bool, default=False
        Whether the temperatures are continuous, as described above.
    normaliser : {"document", "corpus"}, default="document"
        With ``"document"``, C_d is computed from the document's own topic proportions, as in the
        paper.  With ``"corpus"``, it is computed from the mean topic proportions of documents.
        The temperature then measures how unusual a document is.
    undamped : bool, default=False
        If True, the inverse temperature of a document is :math:`b^*_d` itself, as in the paper.
        Then `damping` and `start` affect only the first round of each step (see `rounds`).
    damping : float or None, default=None
        Each step multiplies :math:`\log \bar B` (see above) by 1 minus this number in (0, 1].  None
        means 1 - exp(-12 / S) for S planned steps.
    start : float, default=3.9
        The geometric mean :math:`1 / \bar B` >= 1 of the temperatures in the first step.
    rounds : int, default=2
        How many times a step fits documents and then temperatures, before it updates topics.
    energy_average : float, default=0.1
        The weight, in (0, 1], of the newest minibatch in the average document that
        ``normaliser="corpus"`` uses.
    final_fraction : float, default=0.25
        The last steps have exactly T = 1; this is their fraction of the planned steps, in [0, 1).

    Examples
    --------
    >>> from annealvi import LocalVariational
    >>> LocalVariational(continuous=True, prior=[2, 1], normaliser="corpus").start
    3.9

    References
    ----------
    Mandt, McInerney, Abrol, Ranganath, Blei (2016), *Variational Tempering*, AISTATS.
    """

    per_document = True
    SCHEMA = Schema(
        **LEARNED, _log_prior=Array(("M",)), _level=Number(np.finfo(np.float64).tiny, 1.0)
    )
    _parameter_constraints: ClassVar[dict] = {
        "grid": [Interval(Integral, 2, None, closed="left")],
        "prior": [None, "array-like"],
        "continuous": ["boolean"],
        "normaliser": [StrOptions({"document", "corpus"})],
        "undamped": ["boolean"],
        "damping": [None, Interval(Real, 0, 1, closed="right")],
        "start": [Interval(Real, 1, None, closed="left")],
        "rounds": COUNT,
        "energy_average": [Interval(Real, 0, 1, closed="right")],
        "final_fraction": [Interval(Real, 0, 1, closed="left")],
    }

    grid: int = 100
    _: KW_ONLY
    prior: ArrayLike | None = None
    continuous: bool = False
    normaliser: Normaliser = "document"
    undamped: bool = False
    damping: float | None = None
    start: float = 3.9
    rounds: int = 2
    energy_average: float = 0.1
    final_fraction: float = 0.25

    @checked
    def check(self) -> None:
        super().check()
        if self.prior is not None:
            size = 2 if self.continuous else int(self.grid)
            check_numbers(self.prior, "prior", (size,), positive=True)

    def _prepare(self, n_steps: int | None, steps_per_pass: float, model: Any) -> None:
        super()._prepare(n_steps, steps_per_pass, model)
        self._level = 1.0 / self.start

    def _set_grid(self) -> None:
        size = int(self.grid)
        if self.continuous:
            self._inverses = (np.arange(size) + 0.5) / size
            a, c = np.ones(2) if self.prior is None else np.asarray(self.prior, dtype=np.float64)
            log_prior = (a - 1) * special.log(self._inverses)
            log_prior += (c - 1) * special.log1p(-self._inverses)
            self._log_prior = log_prior - special.log_sum_exp(log_prior)
        else:
            self._inverses = np.arange(1, size + 1) / size
            self._log_prior = log_weights(self.prior, size)

    def _sizes(self, model: Any) -> dict[str, int]:
        return {"M": int(self.grid)}

    def _resume(self, model: Any, place: str) -> None:
        self._set_grid()
        averages = self.normaliser == "corpus" and self._step > 0
        self._check_totals((int(self.grid) + 1) * averages, place)
        if model is not None:
            self.attach(model)

    def attach(self, model: Any) -> None:
        if not isinstance(model, LocallyNormalised):
            raise ValueError(
                "A LocalVariational temperature needs a model in which each document can have its "
                f"own temperature, such as TemperedLDA. {type(model).__name__} is not such a "
                "model. Use 'annealed' or 'variational' as the temperature."
            )
        model.normalise_at(self._inverses)

    @property
    def observes(self) -> bool:  # type: ignore[override]
        """True while log C of the average document is being learned."""
        return self.normaliser == "corpus" and super().observes

    def inverse(self, step: int) -> float:
        return 1.0 if self.settled(step) else self._level

    def tempering(self, step: int) -> Tempering:
        if self.settled(step):
            return UNTEMPERED
        return Tempering(self._level, rule=self._rule(None if self.undamped else self._level))

    def observe(self, local: LocalStep, scale: float) -> None:
        if not self._learns():
            return
        if self.normaliser == "corpus":
            self._average([local.log_partition, local.n_units], scale)
        self._level = math.exp((1.0 - self._damping) * math.log(self._level))

    def learned(self) -> Tempering:
        """The learned rule that computes the temperatures of documents in predictions.

        Temperatures are not rescaled, so each depends only on the document itself.
        """
        return Tempering(1.0, rule=self._rule(None)) if self._step else UNTEMPERED

    def _rule(self, level: float | None) -> DocumentRule:
        corpus = None
        if len(self._totals) and self._totals[-1] > 0:
            corpus = self._totals[:-1] / self._totals[-1]
        return DocumentRule(
            inverses=self._inverses,
            log_prior=self._log_prior,
            rounds=int(self.rounds),
            corpus=corpus,
            level=level,
        )
