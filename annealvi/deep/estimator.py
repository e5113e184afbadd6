"""What the estimators share: the fit, resuming it, its record, and checks of parameters."""

from __future__ import annotations

import abc
import copy
import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from numbers import Integral, Real
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted
from torch import Tensor, nn

from annealvi._optional import import_optional
from annealvi.checks import Interval, unchanged_on_error
from annealvi.deep.noise import Noise
from annealvi.deep.penalties import ProximityLike, ProximityPenalty, RunningPenalty, as_penalty
from annealvi.deep.statistics import FUNCTION, Statistic
from annealvi.deep.training import (
    Objective,
    Outcome,
    Training,
    as_rows,
    load_network,
    meta_network,
)
from annealvi.exceptions import BadParameter
from annealvi.files import Node
from annealvi.files.schema import (
    Field,
    Integer,
    Listed,
    Optional,
    Schema,
    Sizes,
    Strings,
    Text,
    damaged,
)
from annealvi.inference import Callbacks, Monitor, Start
from annealvi.inference.callbacks import CallbackSupport, Tasks
from annealvi.inference.starts import digest, read_checkpoint, write_checkpoint
from annealvi.schedules import Linear, Schedule
from annealvi.temperature import Temperature, as_temperature
from annealvi.threads import brief_lock, writing
from annealvi.versions import Versioned

#: Held while PyTorch's one generator is seeded for a network.
_building = brief_lock()
#: Seeds are drawn below this.
MAX_SEED = 2**31 - 1
#: Adam's epsilon in Altosaar et al. (2018).
EPSILON = 1e-6
#: Called with the estimator and the monitor after each step.
Callback = Callable[[Any, Monitor], None]
#: Largest value of parameters: networks compute in float32, which holds up to 3.4e38.
LARGEST = 1e38
#: Constraints of the parameters that every estimator of a deep model has.
TRAINING_CONSTRAINTS: dict[str, Any] = {
    "learning_rate": [Interval(Real, 0, LARGEST, closed="right")],
    "batch_size": [Interval(Integral, 1, None, closed="left")],
    "max_iter": [Interval(Integral, 1, None, closed="left")],
    "device": "no_validation",  # as_device raises the error
    "random_state": ["random_state"],
    "verbose": ["verbose"],
    "callback": [None, callable, list],
}
#: What a saved state belongs to.
HEADER = Schema(
    estimator=Text(),
    architecture=Field(),
    n_samples=Optional(Integer(1)),
    X=Optional(Text()),
)


class DeepEstimator(Versioned, BaseEstimator, abc.ABC, CallbackSupport):
    """Fits a network by gradients, with scikit-learn's interface; has the parameters below."""

    #: Sizes, strings and lists that say which network it is.  A fit goes on from a saved state only
    #: if all are equal; a file is read with the network that they describe.
    ARCHITECTURE: ClassVar[Schema]
    #: The statistics of q that a proximity penalty can have.
    STATISTICS: ClassVar[Iterable[str]] = ()

    learning_rate: float
    batch_size: int
    max_iter: int
    device: Any
    random_state: Any
    verbose: int
    callback: Callback | Sequence[Callback] | None

    @abc.abstractmethod
    def _network(
        self, architecture: Mapping[str, Any], penalty: RunningPenalty | None, X: Any = None
    ) -> Any:
        """Return a network on the CPU; without X its start does not matter."""

    @abc.abstractmethod
    def _optimiser(self, parameters: Iterator[nn.Parameter]) -> torch.optim.Optimizer:
        """Return the optimiser of these parameters."""

    # ---------------------------------------------------------------- the fit

    def _fit(
        self,
        X: Any,  # ndarray or CSR matrix, float32; None for a density
        objective: Callable[[Any, Any, Noise], Objective],  # of the network, as_rows(X), noise
        keep: Callable[[], None],  # called before an error that leaves the steps made
        resume: str | os.PathLike | None,
        *,
        penalty: RunningPenalty | None = None,
        given: tuple[Any, Any] = (None, None),  # X and y of the user, for scikit-learn's callbacks
    ) -> Self:
        """Train a network, from the start or from a saved state."""
        device = as_device(self.device)
        others: tuple[Any, ...] = ()
        if "_skl_callbacks" in vars(self):  # scikit-learn's, from `set_callbacks`
            others = (Tasks(self, self._init_callback_context, *given, self._fit_so_far),)
        callbacks = Callbacks(self.callback, self, others)
        seed = check_random_state(self.random_state).randint(MAX_SEED)
        found = {"n_samples": None, "X": None, **self.get_params(deep=False)}
        if X is not None:
            found |= {"n_samples": int(X.shape[0]), "n_features": int(X.shape[1]), "X": digest(X)}
        found["proximity"] = None if penalty is None else penalty.statistic.name
        architecture = self.ARCHITECTURE.dump(found)
        header = {
            "estimator": type(self).__name__,
            "architecture": architecture,
            "n_samples": found["n_samples"],
            "X": found["X"],
        }
        state = None if resume is None else self._read_state(resume, header)
        noise = Noise(seed, device)
        # the user's generator stays as it is
        with _building, torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            network = self._network(architecture, penalty, X)
        network = network.to(device, torch.float32)  # whatever PyTorch's default dtype is
        data = None if X is None else as_rows(X, device)
        optimiser, n_rows = self._optimiser(network.parameters()), header["n_samples"]
        training = Training(network, optimiser, noise, n_rows, int(self.batch_size))
        minimised = objective(network, data, noise)
        if state is not None:
            training.load_state_dict(state)
        self._saved_header = header
        self._training = training
        self.network_: Any = network
        done = training.monitor.step
        elbo: Any = torch.nan

        def after_step(outcome: Outcome) -> None:
            nonlocal elbo
            show(outcome)
            if callbacks:
                elbo = outcome.elbo.detach()
                callbacks(training.monitor)

        with _progress(bool(self.verbose), int(self.max_iter), done) as show:
            try:
                with callbacks.during_fit():
                    if callbacks:
                        callbacks.begin(
                            Start(
                                number=0,
                                n_starts=1,
                                n_done=done,
                                n_steps=max(int(self.max_iter), done),
                                steps_per_pass=training.steps_per_pass,
                                bound_name="ELBO",
                                bound=lambda: float(elbo),
                            )
                        )
                    training.run(minimised, int(self.max_iter), after_step)
            except BaseException:
                if training.monitor.step:
                    keep()
                raise
        return self

    def _fit_so_far(self) -> dict[str, Any]:
        """What a copy of the estimator needs so that it stays as the fit is now."""
        training = copy.deepcopy(self._training)
        return {"_training": training, "network_": training.module}

    # ----------------------------------------------------------------- its state

    def save_state(self, path: str | os.PathLike) -> None:
        """Write everything that is needed to continue the fit, after it or in a callback.

        ``fit(..., resume=path)`` of an estimator with the same architecture continues the fit
        up to its own `max_iter`.  The result has the same parameters as a fit that never
        stopped.  All other settings, such as `learning_rate`, are those of the estimator that
        continues, so that a diverging fit can be continued in smaller steps.  X must be the same.

        Parameters
        ----------
        path : path
            The file to write.  An existing file is replaced only once the new one is complete.
        """
        check_is_fitted(self, "network_")
        write_checkpoint(path, {"fit": self._saved_header, "training": self._training.state_dict()})

    def _read_state(self, path: str | os.PathLike, header: Mapping[str, Any]) -> Any:
        """Return the state of a training from a file, if it belongs to what this fit has."""
        file, owner = repr(os.fspath(path)), header["estimator"]
        state = _tree(read_checkpoint(path, owner))
        parts = Schema(fit=HEADER, training=Field()).load(state)
        fit, have = parts["fit"], header["architecture"]
        if fit["estimator"] != owner:
            raise ValueError(f"{file} is the state of a {fit['estimator'][:80]}, not of a {owner}.")
        had = self.ARCHITECTURE.load(fit["architecture"], "fit.architecture")
        for name, value in had.items():
            if value != have[name]:
                raise ValueError(
                    f"{file} is the state of another architecture: it has {name}={value!r:.80}, "
                    f"this {owner} has {name}={have[name]!r:.80}."
                )
        same = "a fit can only be continued with the data that it began with."
        if fit["n_samples"] != header["n_samples"]:
            raise ValueError(
                f"{file} is of a fit of {fit['n_samples']} data, X has {header['n_samples']}: "
                f"{same}"
            )
        if fit["X"] != header["X"]:
            raise ValueError(
                f"{file} is the state of a fit to another X: the numbers in X differ, or their "
                f"order; {same}"
            )
        return parts["training"]

    def state_dict(self) -> dict[str, Any]:
        """Return the fitted state as a tree, for :func:`annealvi.save`."""
        check_is_fitted(self, "network_")
        return {
            "feature_names_in": getattr(self, "feature_names_in_", None),
            "fit": self._saved_header,
            "training": self._training.state_dict(),
        }

    def load_state_dict(self, node: Node) -> None:
        """Take over a fitted state from a file, if it can be used; nothing is changed if not."""
        self._validate_params()
        device = as_device(self.device)
        state = Schema(fit=HEADER, training=Field(), feature_names_in=Field()).load(_tree(node))
        header, training = state["fit"], Training.STATE.load(state["training"], "training")
        architecture = self.ARCHITECTURE.load(header["architecture"], "fit.architecture")
        penalty = self._saved_penalty(architecture.get("proximity"))
        network = meta_network(lambda: self._network(architecture, penalty), "fit.architecture")
        module = Schema(module=Field()).load(state["training"], "training")["module"]
        load_network(network, module, "training.module")
        network = network.to(device)
        optimiser, sizes = self._optimiser(network.parameters()), ("n_rows", "batch_size")
        fitted = Training(network, optimiser, Noise(0, device), *(training[n] for n in sizes))
        fitted.load_state_dict(state["training"])
        names = state["feature_names_in"]
        names = Optional(Strings("n_features")).load(names, "feature_names_in", architecture)
        if "n_features" in architecture:
            self.n_features_in_ = architecture["n_features"]
            if names is not None:
                self.feature_names_in_ = names
        self._saved_header = {
            **header,
            "estimator": type(self).__name__,
            "architecture": architecture,
            "n_samples": training["n_rows"],
        }
        self._training, self.network_ = fitted, network

    def _saved_penalty(self, name: str | None) -> RunningPenalty | None:
        """The penalty that a network in a file has; its settings do not matter any more."""
        if name is None:
            return None
        if not name.startswith(FUNCTION):
            return ProximityPenalty(name).plan(1)
        proximity = self.get_params(deep=False)["proximity"]
        penalty = as_penalty(proximity, self.STATISTICS)
        if penalty is None or Statistic(penalty.statistic).name != name:
            raise ValueError(
                f"The file was written with a penalty of the statistic "
                f"{name.removeprefix(FUNCTION)!r}, and the 'proximity' of this "
                f"{type(self).__name__} has another one. Got {proximity!r}."
            )
        return penalty.plan(1)

    # -------------------------------------------------------------- afterwards

    @property
    def n_iter_(self) -> int:
        """Number of steps made."""
        return self._training.monitor.step

    @property
    def history_(self) -> dict[str, NDArray]:
        """About a thousand records of pass, step, temperature, seconds and the mean ELBO since."""
        return self._training.history()

    @property
    def temperature_path_(self) -> NDArray[np.float64]:
        """Temperature of each step."""
        return np.array(self._training.monitor.temperature_path)

    def _draws(self) -> Noise:
        """Return random numbers for a method of the fitted model."""
        check_is_fitted(self, "network_")
        seed = check_random_state(self.random_state).randint(MAX_SEED)
        return Noise(seed, self._training.noise.device)

    def _tensor(self, X: NDArray) -> Tensor:
        """Return data as a float32 tensor on the device of the network."""
        return torch.as_tensor(X, dtype=torch.float32, device=self._training.noise.device)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "network_")

    def __getattr__(self, name: str) -> Any:
        """Called for what is not there: say so if the reason is that there is no fit."""
        owner = type(self).__name__
        if name.endswith("_") and not name.startswith("_") and "network_" not in vars(self):
            raise AttributeError(f"This {owner} instance is not fitted yet: it has no {name!r}.")
        raise AttributeError(f"{owner!r} object has no attribute {name!r}")


class Bound(NamedTuple):
    """What one minibatch says about a model of data; the scalars are averaged over it."""

    #: The objective at the temperature of the step, whose gradient is followed uphill.  It may be a
    #: surrogate of which only the gradient means anything.
    tempered: Tensor
    #: The ELBO at T = 1.
    elbo: Tensor
    #: ``statistic(f)`` returns the statistic f of q for a proximity penalty.
    statistic: Callable[[Statistic], Tensor]


#: Returns the bound of rows, at T, after so many steps.
BoundOf = Callable[[Tensor, float, int], Bound]


def penalised(
    bound: BoundOf, temperature: Temperature, penalty: RunningPenalty | None
) -> Objective:
    """Return the objective of a model of data: minus its tempered bound, plus the penalty."""

    def objective(rows: Tensor, step: int) -> Outcome:
        t = 1.0 / temperature.inverse(step)
        found = bound(rows, t, step)
        loss = -found.tempered
        if penalty is not None:
            value = found.statistic(penalty.statistic)
            loss = loss + penalty(value, step, found.elbo.detach() * len(rows))
        return Outcome(loss, found.elbo, t)

    return objective


class DataEstimator(ClassNamePrefixFeaturesOutMixin, TransformerMixin, DeepEstimator):
    """A model of data, with the parameters `temperature` and `proximity`."""

    temperature: float | str | Temperature
    proximity: ProximityLike

    @abc.abstractmethod
    def _check_X(self, X: Any, reset: bool = False) -> Any:
        """Return the data, dense or CSR, float32, with the values that the model has."""

    @abc.abstractmethod
    def _bound(self, network: Any, X: Any, noise: Noise) -> BoundOf:
        """Return what the bound of a minibatch is computed by, for data from `as_rows`."""

    def _fit_data(self, X: Any, y: Any, resume: str | os.PathLike | None) -> Self:
        with writing(self), unchanged_on_error(self) as keep:
            given, X = (X, y), self._check_X(X, reset=True)
            temperature, penalty = self._plan(int(X.shape[0]))

            def objective(network: Any, data: Any, noise: Noise) -> Objective:
                return penalised(self._bound(network, data, noise), temperature, penalty)

            return self._fit(X, objective, keep, resume, penalty=penalty, given=given)

    def _plan(self, n_samples: int) -> tuple[Temperature, RunningPenalty | None]:
        """Check `temperature` and `proximity`, and plan both for a fit."""
        n_steps = int(self.max_iter)
        penalty = as_penalty(self.proximity, self.STATISTICS)
        steps_per_pass = n_samples / min(int(self.batch_size), n_samples)
        temperature = as_temperature(self.temperature)
        if temperature.learns:
            raise BadParameter(
                "temperature",
                "one that follows a plan: a float, 'annealed', Fixed or Annealed",
                self.temperature,
                "Learned temperatures need log C(T), which deep models do not have.",
            )
        planned = temperature.plan(n_steps, steps_per_pass)
        return planned, None if penalty is None else penalty.plan(n_steps)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float32"]
        return tags


@contextmanager
def _progress(wanted: bool, total: int, done: int) -> Iterator[Callable[[Outcome], None]]:
    """A progress bar that shows the ELBO, if it is wanted."""
    if not wanted:
        yield lambda outcome: None
        return
    tqdm = import_optional("tqdm", "deep", "Progress (verbose=1)")
    with tqdm.tqdm(total=total, initial=done, unit="step", mininterval=0.5) as bar:

        def show(outcome: Outcome) -> None:
            bar.set_postfix(elbo=f"{float(outcome.elbo.detach()):.4g}", refresh=False)
            bar.update()

        yield show


def _tree(node: Node) -> dict[str, Any]:
    return {name: node.plain(name) for name in node}


def numbers(tensor: Tensor) -> NDArray:
    """Return a tensor as an array, without its gradient."""
    return np.asarray(tensor.detach().cpu())


# ------------------------------------------------------------ parameters and their fields


def positive(value: Any, name: str) -> int:
    """Return an argument that counts something, an int of at least 1."""
    if not isinstance(value, Integral) or value < 1:
        raise BadParameter(name, "an int in the range [1, inf)", value)
    return int(value)


def as_device(device: Any) -> torch.device:
    """Return the device that a parameter names, if there is one."""
    try:
        found = torch.device(device)
    except (RuntimeError, TypeError, ValueError):
        found = None
    if found is None or found.type not in ("cpu", "cuda"):
        raise BadParameter("device", "'cpu', 'cuda' or 'cuda:<index>'", device)
    there = torch.cuda.device_count()
    if found.type == "cuda" and (found.index or 0) >= there:
        raise BadParameter("device", f"'cpu', as PyTorch sees {there} CUDA devices", device)
    return found


def plan_beta(schedule: Schedule | None, annealed: float) -> list[float]:
    """Return beta of each step that is annealed, this many; after these it is 1."""
    schedule = Linear(0.01, 1.0) if schedule is None else schedule
    betas = [schedule(step / annealed) for step in range(math.ceil(annealed))]
    for step, beta in enumerate(betas):
        if not isinstance(beta, Real) or not 0 <= beta < math.inf:
            wanted = "a function that gives finite floats in the range [0, inf)"
            hint = f"That is at {step / annealed:.3g} of the way."
            raise BadParameter("schedule", wanted, beta, hint)
    return [float(beta) for beta in betas]


class Widths(Listed):
    """The widths of layers: a parameter `hidden`, a list in files."""

    def __init__(self) -> None:
        super().__init__(Integer(1))

    def dump(self, value: Any) -> list[int]:
        listed = isinstance(value, Sequence) and not isinstance(value, str)
        if isinstance(value, np.ndarray):
            listed = value.ndim == 1
        if not (listed and len(value) and all(_is_width(width) for width in value)):
            wanted = "a sequence of ints in the range [1, inf), one a layer"
            raise BadParameter("hidden", wanted, value)
        return [int(width) for width in value]

    def load(self, value: Any, way: str, sizes: Sizes) -> list:
        widths = super().load(value, way, sizes)
        if not widths:
            raise damaged(way, "a list of at least one int", widths)
        return widths


def _is_width(width: Any) -> bool:
    return isinstance(width, Integral) and not isinstance(width, bool) and int(width) >= 1


class StatisticName(Text):
    """The statistic of a penalty in a file: one of these names, or a function of the user's."""

    def load(self, value: Any, way: str, sizes: Sizes) -> str:
        own = isinstance(value, str) and value.startswith(FUNCTION)
        return value if own else super().load(value, way, sizes)
