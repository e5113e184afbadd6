r"""A temperature for each document, learned from how well the model explains the document."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass
from itertools import pairwise
from numbers import Real
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import roots_jacobi
from sklearn.utils._param_validation import StrOptions

from annealvi._kernels import gemm, special
from annealvi.checks import COUNT, GRID_SIZE, TINY, Interval, check_numbers, checked
from annealvi.exceptions import BadParameter
from annealvi.files.schema import Array, Number, Schema
from annealvi.model import UNTEMPERED, LocallyNormalised, LocalStep, Tempering
from annealvi.partition.estimate import lagrange_weights
from annealvi.temperature.variational import LEARNED, Learned, log_weights

Normaliser = Literal["document", "corpus"]

#: The quadrature for continuous temperatures has this many nodes between neighbouring EDGES, which
#: are close together near 0 and 1, where q(b) of long documents is narrow.
NODES = 20
EDGES = np.concatenate([[0, 0.0004, 0.004], np.linspace(0.04, 0.96, 17), [0.996, 0.9996, 1]])
#: Least and greatest parameters of the Beta prior for which the quadrature is accurate.
SHAPES = (1e-6, 1e4)
#: log C is interpolated to the nodes by polynomials through this many points.  More points would
#: multiply rounding errors near 0 and 1; with 12 points, errors of log C are below 1e-10 of it.
STENCIL = 12

#: Inverse temperatures over which outlier scores are averaged, m / 100 for m = 1, ..., 100.
SCORE_GRID = np.arange(1, 101, dtype=np.int64) / 100


@dataclass(eq=False)
class DocumentRule:
    r"""The rule that computes each document's temperature from its expected log-likelihood L_d.

    .. math::
       r_{md} \propto \pi_m \exp(b_m L_d - \log C_d(b_m)), \quad b^*_d = \sum_m r_{md} b_m

    The rule gets log C_d at `inverses`.  If `nodes` is given, the b_m are these nodes of a
    quadrature, and `interpolation`, of shape (inverses, nodes), maps log C_d to them.
    """

    inverses: NDArray
    log_prior: NDArray
    #: How often a local step alternates between topics and temperature of a document.
    rounds: int
    #: log C per unit (word), which then replaces log C of each document.
    corpus: NDArray | None = None
    #: The geometric mean to which 1/T of the documents are rescaled; None does not rescale.
    level: float | None = None
    #: The least 1/T of a document after rescaling.
    floor: float = 0.02
    nodes: NDArray | None = None
    interpolation: NDArray | None = None

    def __call__(
        self,
        energy: NDArray,
        n_units: NDArray,
        log_partition: NDArray,
    ) -> NDArray:
        """Compute 1/T of each document from its energy L_d, its number of words and log C_d."""
        log_c = log_partition
        if self.corpus is not None:
            log_c = n_units[:, None] * self.corpus
        grid_inverses = self.inverses
        if self.nodes is not None:
            grid_inverses = self.nodes
            log_c = gemm.product(log_c, self.interpolation)
        scores = self.log_prior + energy[:, None] * grid_inverses - log_c
        # a sum, because the rounding errors of a matrix product depend on the number of documents
        b = np.sum(special.softmax(scores) * grid_inverses, axis=1)
        if self.level is None:
            return b
        # documents without words do not count, unless all are empty
        with_words = n_units > 0 if np.any(n_units) else slice(None)
        b *= self.level / special.exp(np.mean(special.log(b[with_words])))
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
    other updates need only the mean of q, an integral over (0, 1).  Gauss-Jacobi quadrature with
    440 nodes computes it.  :math:`\log C_d` is computed at M/2 evenly spaced b, at least 12, and
    interpolated to the nodes by polynomials of degree 11.  With M = 100 the error of the mean is
    below 1e-8 for documents of up to 10,000 words and common priors.  It rises to 1e-4 if the mean
    of such a document is far in the tail of a narrow prior, such as Beta(100, 3).

    Parameters
    ----------
    grid : int, default=100
        Number M >= 2 of inverse temperatures.  If `continuous`, log C is computed at half as many.
    prior : array-like of shape (grid,), or (2,) if `continuous`, or None, default=None
        The prior :math:`\pi` as positive numbers or, if `continuous`, (a, c), both in [1e-6, 1e4].
        None means uniform.
    continuous : bool, default=False
        Whether the temperatures are continuous, as described above.
    normaliser : {"document", "corpus"}, default="document"
        With ``"document"``, C_d is computed from the document's own topic proportions, as in the
        paper.  With ``"corpus"``, it is computed from the mean topic proportions of documents.
        The temperature then measures how unusual a document is.
    undamped : bool, default=False
        If True, the inverse temperature of a document is :math:`b^*_d` itself, as in the paper.
        Then `damping` and `start` affect only the first round of each step (see `rounds`).  In the
        paper, the first round instead has the document's temperature of the step before.
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
    SCHEMA = Schema(**LEARNED, _log_prior=Array(("M",)), _level=Number(TINY, 1.0))
    _parameter_constraints: ClassVar[dict] = {
        "grid": GRID_SIZE,
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
    _nodes = None
    _interpolation = None

    @checked
    def check(self) -> None:
        """Raise ValueError if a parameter is out of its range."""
        super().check()
        if self.prior is not None:
            size = 2 if self.continuous else int(self.grid)
            prior = check_numbers(self.prior, "prior", (size,), positive=True)
            least, greatest = SHAPES
            if self.continuous and not (least <= prior.min() <= prior.max() <= greatest):
                raise BadParameter("prior", f"two numbers in [{least}, {greatest}]", self.prior)

    def _prepare(self, n_steps: int | None, steps_per_pass: float, model: Any) -> None:
        """Prepare a fit; see :meth:`plan`.  `_level` is 1/T before documents have their own T."""
        super()._prepare(n_steps, steps_per_pass, model)
        self._level = 1.0 / self.start

    def _set_grid(self) -> None:
        """Set the grid of b and its prior; with `continuous`, also the quadrature."""
        size = int(self.grid)
        if not self.continuous:
            self._inverses = np.arange(1, size + 1, dtype=np.int64) / size
            self._log_prior = log_weights(self.prior, size)
            return
        a, c = np.ones(2) if self.prior is None else np.asarray(self.prior, dtype=float)
        self._nodes, self._log_prior = beta_quadrature(a, c)
        # log C is smooth, so far fewer points suffice than for the sharp q(b)
        n_points = max(STENCIL, size // 2)
        self._inverses = (np.arange(n_points, dtype=np.int64) + 0.5) / n_points
        # node i gets the Lagrange weights of the STENCIL grid points around it
        position_in_grid = self._nodes * n_points - 0.5
        first_point = np.clip(
            np.round(position_in_grid).astype(np.int64) - STENCIL // 2, 0, n_points - STENCIL
        )
        stencils = np.add.outer(np.arange(STENCIL, dtype=np.int64), first_point)
        weights = lagrange_weights(STENCIL, position_in_grid - first_point)
        self._interpolation = np.zeros((n_points, len(self._nodes)))
        np.put_along_axis(self._interpolation, stencils, weights.T, axis=0)

    def _sizes(self, model: Any) -> dict[str, int]:
        """The number M of inverse temperatures or, with `continuous`, of nodes."""
        return {"M": NODES * (len(EDGES) - 1) if self.continuous else int(self.grid)}

    def _resume(self, model: Any, place: str) -> None:
        """Continue from a file; `place` names its values in errors."""
        self._set_grid()
        has_averages = self.normaliser == "corpus" and self._step > 0
        # log C on the grid, and the number of units
        self._check_totals((len(self._inverses) + 1) * has_averages, place)
        if model is not None:
            self.attach(model)

    def attach(self, model: Any) -> None:
        """Let the model compute log C of each document on the grid."""
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
        """1/T of all documents together at a step; 1 when T is no longer learned."""
        return 1.0 if self.settled(step) else self._level

    def tempering(self, step: int) -> Tempering:
        """The temperatures of a step, as a rule for each document."""
        if self.settled(step):
            return UNTEMPERED
        return Tempering(self._level, rule=self._rule(None if self.undamped else self._level))

    def observe(self, local: LocalStep, scale: float) -> None:
        """Update the averages of log C from a local step; lower the common level of T."""
        if not self._learns():
            return
        if self.normaliser == "corpus":
            self._average([local.log_partition, local.n_units], scale)
        # log(1/T) shrinks towards 0
        self._level = math.exp((1.0 - self._damping) * math.log(self._level))

    def learned(self) -> Tempering:
        """The learned rule that computes the temperatures of documents in predictions.

        Temperatures are not rescaled, so each depends only on the document itself.
        """
        return Tempering(inverse=1.0, rule=self._rule(level=None)) if self._step else UNTEMPERED

    def _rule(self, level: float | None) -> DocumentRule:
        """The rule with the averages so far; `level` is the geometric mean of 1/T, if any."""
        log_c_per_unit = None
        if len(self._totals) and self._totals[-1] > 0:
            log_c_per_unit = self._totals[:-1] / self._totals[-1]  # the last is the number of units
        return DocumentRule(
            inverses=self._inverses,
            log_prior=self._log_prior,
            rounds=int(self.rounds),
            corpus=log_c_per_unit,
            level=level,
            nodes=self._nodes,
            interpolation=self._interpolation,
        )


def beta_quadrature(a: float, c: float) -> tuple[NDArray, NDArray]:
    """Nodes in (0, 1) and logarithms of weights, which integrate with the density of Beta(a, c).

    Between two edges, the Gauss-Jacobi rule of NODES nodes is used.  Next to 0 and 1 its weight is
    the singular factor of the density.  The weights are not normalised.
    """
    all_nodes = []
    log_weights_of_all = []
    for begin, end in pairwise(EDGES):
        # powers of the rule's weight; a high power is as smooth as a polynomial
        power_at_0 = min(a, 10) - 1 if begin == 0 else 0.0
        power_at_1 = min(c, 10) - 1 if end == 1 else 0.0
        half_width = (end - begin) / 2
        # rounded, because LAPACK's last digits depend on the processor
        nodes, weights = (
            np.array([float(f"{value:.12g}") for value in values])
            for values in roots_jacobi(NODES, power_at_1, power_at_0)
        )
        b = begin + half_width * (1 + nodes)
        all_nodes.append(b)
        log_weights_of_all.append(
            special.log(weights)
            + (a - 1 - power_at_0) * special.log(b)
            + (c - 1 - power_at_1) * special.log(1 - b)
            + (1 + power_at_0 + power_at_1) * math.log(half_width)
        )
    return np.concatenate(all_nodes), np.concatenate(log_weights_of_all)
