r"""Proximity variational inference as a temperature for each binary factor."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from numbers import Real
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.utils._param_validation import StrOptions

from annealvi._kernels import special
from annealvi.checks import Interval
from annealvi.files.schema import Integer, Number, Schema, damaged
from annealvi.model import UNTEMPERED, BinaryFactors, FactorLimits, LocalStep, Tempering
from annealvi.proximity.penalty import MAGNITUDES, MovingAverage
from annealvi.proximity.statistics import kl_limits
from annealvi.temperature.base import Temperature, whole_steps

LEAST = 1e-30  # the least 1/T, so that float32 can hold it
TINY = float(np.finfo(np.float64).tiny)  # so that 0 log 0 is 0


@dataclass(eq=False, repr=False)
class Proximity(Temperature):
    r"""A temperature for each binary factor, which keeps a statistic of q near its past values.

    Proximity variational inference adds :math:`-k\, d(f - \tilde f)` to the objective.  Here f is a
    statistic of a factor q(z) = Bern(sigmoid theta), either its entropy H or its KL from the prior,
    and :math:`\tilde f` is the average of f over the steps so far.  The distance d is :math:`\tilde
    H - H`, or the KL minus its average, if that is positive.  Otherwise q is less certain than
    before, and d is 0.  Let a be the logit that plain inference would choose.  The optimum is then
    a *local, adaptive temperature*: theta = a / T with

    .. math::
       T = 1 \text{ if } H(a) \ge \tilde H, \quad
       T = 1 + k \text{ if } H(a / (1 + k)) < \tilde H, \quad
       \text{else } H(a / T) = \tilde H

    (for the KL: about the prior's logit, and with the inequalities reversed).  So only factors that
    become certain too fast are slowed down.  The global variables are updated at T = 1. k falls
    during the first part of the fit, given by `length`, and is 0 afterwards.

    It can be used with models of binary factors, such as :class:`annealvi.TemperedFMM`.

    Parameters
    ----------
    statistic : {"entropy", "kl"}, default="entropy"
        The statistic that changes slowly.  The two are equivalent if the prior probability is 1/2.
    magnitude : float or None, default=None
        The first k, at least 0 (plain inference).  None means the energy per datum at the start,
        -E_q[log p(x, z | globals)] without the Gaussian's constant.  It has the scale of the
        logits, whatever the units and the number of data.
    gamma : float, default=1e-4
        The fraction of the first k that remains at the end of its fall, in (0, 1].  The paper's
        1e-5 to 1e-30 are for millions of steps; in the hundred steps of a usual fit they would
        leave too few steps in which k matters.  Not used with ``shape="linear"``.
    shape : {"exponential", "linear"}, default="exponential"
        How k falls: :math:`k_0 \gamma^s` or :math:`k_0 (1 - s)`, where s is the fraction of
        these steps that is done.
    decay : float, default=0.9999
        :math:`\alpha` of the moving average, in (0, 1]; near 1 it is the mean of all steps.
    length : float, default=0.5
        The fraction of the planned steps, in (0, 1], over which k falls.  The last step has k = 0.

    Examples
    --------
    >>> from annealvi import Proximity, TemperedFMM
    >>> from annealvi.datasets import make_shape_mixture
    >>> fmm = TemperedFMM(8, temperature=Proximity(magnitude=100.0), random_state=0)
    >>> hot = fmm.fit(make_shape_mixture(300, random_state=0).data).temperature_path_ > 1
    >>> bool(hot[:50].all()), bool(hot[100:].any())  # k falls over half of 200 iterations
    (True, False)

    References
    ----------
    Altosaar, Ranganath, Blei (2018), *Proximity Variational Inference*, AISTATS.  The paper
    leaves the coordinate-wise form to future work; docs/record/proximity.md derives it.
    """

    _parameter_constraints: ClassVar[dict] = {
        "statistic": [StrOptions({"entropy", "kl"})],
        "magnitude": [None, Interval(Real, 0, None, closed="left")],
        "gamma": [Interval(Real, 0, 1, closed="right")],
        "shape": [StrOptions(set(MAGNITUDES))],
        "decay": [Interval(Real, 0, 1, closed="right")],
        "length": [Interval(Real, 0, 1, closed="right")],
    }

    tempers = False
    perturbs = False  # the globals step at T = 1, so a high temperature cannot make them vanish
    SCHEMA = Schema(
        n_proximity_steps_=Integer(),
        _step=Integer(),
        magnitude_=Number(0.0),
        _average=MovingAverage.SCHEMA,
    )

    statistic: Literal["entropy", "kl"] = "entropy"
    _: KW_ONLY
    magnitude: float | None = None
    gamma: float = 1e-4
    shape: Literal["exponential", "linear"] = "exponential"
    decay: float = 0.9999
    length: float = 0.5

    def _prepare(self, n_steps: int | None, steps_per_pass: float, model: Any) -> None:
        if not isinstance(model, BinaryFactors):
            raise ValueError(
                "A Proximity temperature penalises changes of binary factors, and this model has "
                "none. Use it with TemperedFMM, or a model with the methods of "
                "annealvi.model.BinaryFactors; otherwise use 'annealed' or a number."
            )
        planned = 0 if n_steps is None else n_steps
        #: Steps over which k falls.
        self.n_proximity_steps_ = max(0, min(whole_steps(self.length * planned), planned - 1))
        self._falls = MAGNITUDES[self.shape](self.gamma)
        self._average = MovingAverage(self.decay)
        self._step = 0
        self.attach(model)
        #: The first k.
        self.magnitude_ = 0.0 if self.magnitude is None else float(self.magnitude)
        if self.magnitude is None:
            self.magnitude_ = abs(model.energy()) / model.n_samples
        if self.n_proximity_steps_:
            self._average.update(self._statistic())

    def _sizes(self, model: Any) -> dict[str, int]:
        if model is not None:
            self.attach(model)
        return dict(zip("Kn", self._model.factors().shape, strict=True))

    def _resume(self, model: Any, way: str) -> None:
        self._falls = MAGNITUDES[self.shape](self.gamma)
        average, found = MovingAverage(self.decay), vars(self)["_average"]
        vars(average).update(found)
        if average.value is not None and np.any(average.value < 0):
            raise damaged(f"{way}._average.value", "at least 0 everywhere", average.value)
        self._average = average

    def attach(self, model: Any) -> None:
        self._model = model

    def inverse(self, step: int) -> float:
        """1/T = 1/(1 + k) of the hottest factors."""
        if self.settled(step):
            return 1.0
        k = self.magnitude_ * self._falls(step / self.n_proximity_steps_)
        return max(1.0 / (1.0 + k), LEAST)

    def settled(self, step: int) -> bool:
        return step >= self.n_proximity_steps_

    def tempering(self, step: int) -> Tempering:
        if self.settled(step) or self._average.value is None:
            return UNTEMPERED
        centre = self._centre()
        limits = kl_limits(self._average.value, centre)
        return Tempering(limits=FactorLimits(self.inverse(step), centre, *limits))

    def observe(self, local: LocalStep, scale: float) -> None:
        self._step += 1
        if not self.settled(self._step):
            self._average.update(self._statistic())

    def _centre(self) -> NDArray[np.float64]:
        """The logit at which the statistic is extreme, of each factor."""
        logit = np.asarray(self._model.prior_logit(), dtype=np.float64)
        return logit if self.statistic == "kl" else np.zeros_like(logit)

    def _statistic(self) -> NDArray[np.float64]:
        """KL of each factor from the centre; if the centre is 0, log 2 less the entropy."""
        nu = np.asarray(self._model.factors(), dtype=np.float64)
        c = self._centre()[:, None]
        left = 1.0 - nu
        value = nu * special.log(np.maximum(nu, TINY)) + left * special.log(np.maximum(left, TINY))
        value += np.logaddexp(0.0, c) - nu * c
        return np.maximum(value, 0.0)
