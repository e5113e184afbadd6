r"""Proximity variational inference as a temperature for each binary factor."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from numbers import Real
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.utils._param_validation import StrOptions

from annealvi._kernels import special
from annealvi.checks import TINY, Interval
from annealvi.files.schema import Integer, Number, Schema, damaged
from annealvi.model import UNTEMPERED, BinaryFactors, FactorLimits, LocalStep, Tempering
from annealvi.proximity.penalty import MAGNITUDES, MovingAverage
from annealvi.proximity.statistics import kl_limits
from annealvi.temperature.base import Temperature, whole_steps

LEAST = 1e-30  # the least 1/T, so that float32 can represent it


@dataclass(eq=False, repr=False)
class Proximity(Temperature):
    r"""A temperature for each binary variable (factor), so that q does not become certain too fast.

    Proximity variational inference adds :math:`-k\, d(f - \tilde f)` to the objective.  Here f is a
    statistic of the posterior q(z) = Bern(sigmoid theta) of a factor z, either its entropy H or its
    KL from the prior, and :math:`\tilde f` is the average of f over the steps so far.  For the
    entropy d is :math:`\tilde H - H`, and for the KL it is the KL minus its average.  If this
    number is negative, q is less certain than before, and d is 0.  Let a be the logit that plain
    inference would choose.  The optimum is theta = a / T, with a temperature T for each factor:

    .. math::
       T = 1 \text{ if } H(a) \ge \tilde H, \quad
       T = 1 + k \text{ if } H(a / (1 + k)) < \tilde H, \quad
       \text{else } H(a / T) = \tilde H

    (With the KL in place of H, subtract the prior's logit from theta and a, and reverse the
    inequalities.)  So only factors that become certain too fast are slowed down.  The global
    variables are updated at T = 1.  The magnitude k falls during the first part of the fit, whose
    length is `length`, and is 0 afterwards.

    This temperature works with models of binary factors, such as :class:`annealvi.TemperedFMM`.

    Parameters
    ----------
    statistic : {"entropy", "kl"}, default="entropy"
        The statistic that changes slowly.  Entropy and KL are equivalent if the prior probability
        is 1/2.
    magnitude : float or None, default=None
        The first k, at least 0.  With 0 the fit is plain inference.  None means the initial
        -E_q[log p(x, z | parameters)] per datum, without the normalising constant of the
        likelihood.  This number is about as large as the logits, whatever the scale and size of X.
    gamma : float, default=1e-4
        The fraction of the first k that remains when k stops falling, in (0, 1].  The paper uses
        1e-5 to 1e-30, for millions of steps.  A usual fit has about a hundred steps, and with such
        values k would be too small after a few of them.  ``shape="linear"`` does not use `gamma`.
    shape : {"exponential", "linear"}, default="exponential"
        How k falls: :math:`k_0 \gamma^s` or :math:`k_0 (1 - s)`, where s rises from 0 to 1 over
        the steps in which k falls.
    decay : float, default=0.9999
        The factor :math:`\alpha` of the moving average, in (0, 1].  With a factor near 1, the
        average is nearly the mean of f over all steps so far.
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
    perturbs = False  # global variables are updated at T = 1, so they cannot shrink to zero
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
        """Prepare a fit: its number of steps with k > 0, and k of the first step."""
        if not isinstance(model, BinaryFactors):
            raise ValueError(
                "A Proximity temperature penalises changes of binary factors, and this model has "
                "no binary factors. Use 'annealed' or a number as the temperature, or fit "
                "TemperedFMM or a model that implements annealvi.model.BinaryFactors."
            )
        n_planned = 0 if n_steps is None else n_steps
        #: Number of steps over which k falls.
        self.n_proximity_steps_ = max(0, min(whole_steps(self.length * n_planned), n_planned - 1))
        self._average = MovingAverage(self.decay)
        self._step = 0
        self.attach(model)
        #: The magnitude k of the first step.
        if self.magnitude is None:  # the energy of a datum at the start
            self.magnitude_ = abs(model.energy()) / model.n_samples
        else:
            self.magnitude_ = float(self.magnitude)
        if self.n_proximity_steps_:
            self._average.update(self._statistic())

    def _sizes(self, model: Any) -> dict[str, int]:
        """The numbers K of components and n of columns of the factors."""
        if model is not None:
            self.attach(model)
        return dict(zip("Kn", self._model.factors().shape, strict=True))

    def _resume(self, model: Any, place: str) -> None:
        """Continue from a file; `place` names its values in errors."""
        average = MovingAverage(self.decay)
        # the schema has set a dict of the average's attributes
        vars(average).update(vars(self)["_average"])
        if average.value is not None and np.any(average.value < 0):
            raise damaged(f"{place}._average.value", "at least 0 everywhere", average.value)
        self._average = average

    def attach(self, model: Any) -> None:
        """Use the factors of this model."""
        self._model = model

    def inverse(self, step: int) -> float:
        """The inverse temperature 1/(1 + k) of the factors with the highest temperature."""
        if self.settled(step):
            return 1.0
        decrease = MAGNITUDES[self.shape](self.gamma)  # a schedule that falls from 1
        k = self.magnitude_ * decrease(step / self.n_proximity_steps_)
        return max(1.0 / (1.0 + k), LEAST)

    def settled(self, step: int) -> bool:
        """Whether k is 0, and so T is 1, from this step on."""
        return step >= self.n_proximity_steps_

    def tempering(self, step: int) -> Tempering:
        """The limits on the logits of a step, outside of which factors are tempered."""
        if self.settled(step) or self._average.value is None:
            return UNTEMPERED
        centre = self._centre()
        limits = kl_limits(self._average.value, centre)
        return Tempering(limits=FactorLimits(self.inverse(step), centre, *limits))

    def observe(self, local: LocalStep, scale: float) -> None:
        """Count a step, and include its factors in the average."""
        self._step += 1
        if not self.settled(self._step):
            self._average.update(self._statistic())

    def _centre(self) -> NDArray:
        """For each factor, the logit at which the statistic has its extreme value."""
        logit = np.asarray(self._model.prior_logit(), dtype=float)
        return logit if self.statistic == "kl" else np.zeros_like(logit)

    def _statistic(self) -> NDArray:
        """KL of each factor from the centre; for centre 0, it is log 2 minus the entropy."""
        nu = np.asarray(self._model.factors(), dtype=float)
        centre = self._centre()[:, None]
        one_minus_nu = 1.0 - nu
        # the maximum is taken so that 0 log 0 is 0
        value = nu * special.log(np.maximum(nu, TINY)) + one_minus_nu * special.log(
            np.maximum(one_minus_nu, TINY)
        )
        value += np.logaddexp(0.0, centre) - nu * centre
        return np.maximum(value, 0.0)
