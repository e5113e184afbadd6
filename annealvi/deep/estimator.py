"""Base classes of the estimators: they fit a network, resume a fit and keep its history."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from numbers import Integral, Real
from os import PathLike, fspath
from typing import Any, ClassVar, Self

import numpy as np
import torch
from numpy.random import RandomState
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.base import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
    _fit_context,
)
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted
from torch import Tensor
from torch.nn import Module, Parameter
from torch.nn.utils import parameters_to_vector

from annealvi.callbacks import ProgressBar
from annealvi.checks import COUNT, Interval, check_count, checked, unchanged_on_error
from annealvi.deep.objectives import importance_weighted
from annealvi.deep.penalties import ProximityLike, ProximityPenalty, RunningPenalty, as_penalty
from annealvi.deep.training import Noise, Objective, Outcome, Trainer, as_rows, numbers, tensors_of
from annealvi.exceptions import BadParameter
from annealvi.files.schema import (
    Field,
    Integer,
    Listed,
    Optional,
    Schema,
    Strings,
    Text,
    Tree,
    damaged,
)
from annealvi.inference import Callbacks, Monitor, Run
from annealvi.inference.callbacks import CallbackSupport, Tasks
from annealvi.inference.runs import read_checkpoint, write_checkpoint
from annealvi.matrices import check_matrix, digest
from annealvi.schedules import Linear, Schedule
from annealvi.temperature import Temperature, as_temperature
from annealvi.threads import writing
from annealvi.versions import Versioned

#: Random seeds are drawn below this number.
MAX_SEED = 2**31 - 1
#: The epsilon of Adam in Altosaar et al. (2018).
EPSILON = 1e-6
#: Called with the estimator and the monitor after each step.
Callback = Callable[[Any, Monitor], None]
#: Largest value of parameters.  Networks compute in float32, whose largest number is 3.4e38, and
#: optimisers multiply step sizes.
LARGEST = 1e37


@dataclass(eq=False, repr=False, kw_only=True)
class DeepEstimator(Versioned, BaseEstimator, ABC, CallbackSupport):
    """Base class of estimators that fit a network by gradients, with scikit-learn's interface."""

    #: The parameters that define the network.  A fit continues from a saved state only if they are
    #: equal.  A file contains them, so that its network can be built.
    ARCHITECTURE: ClassVar[dict[str, Field]]
    #: Constraints of these parameters.
    _parameter_constraints: ClassVar[dict] = {
        "learning_rate": [Interval(Real, 0, LARGEST, closed="right")],
        "batch_size": COUNT,
        "max_iter": COUNT,
        "device": "no_validation",  # as_device raises the error
        "random_state": ["random_state"],
        "verbose": ["verbose"],
        "callback": [None, callable, list],
    }

    learning_rate: float = 1e-3
    batch_size: int = 128
    max_iter: int = 10_000
    device: Any = "cpu"
    random_state: int | RandomState | None = None
    verbose: int = 0
    callback: Callback | Sequence[Callback] | None = None

    @abstractmethod
    def _network(self, architecture: Mapping[str, Any], X: Any = None) -> Any:
        """Return a network on the CPU.  X is None if its weights will be replaced."""

    def _optimiser(self, parameters: Iterator[Parameter]) -> torch.optim.Optimizer:
        """Return the optimiser of a fit; some models override it."""
        return torch.optim.Adam(parameters, lr=float(self.learning_rate), eps=EPSILON, fused=True)

    # ---------------------------------------------------------------- the fit

    def _fit(
        self,
        X: Any,  # ndarray or CSR matrix, float32; None for a density
        objective: Callable[[Any, Any, Noise], Objective],  # takes the network, as_rows(X), noise
        keep_state: Callable[[], None],  # called if the state is to survive the error that follows
        resume: str | PathLike | None,
        *,
        penalty: RunningPenalty | None = None,
        X_and_y: tuple[Any, Any] = (None, None),  # the user's, for scikit-learn's callbacks
    ) -> Self:
        """Train a new network, or continue the training of a saved one."""
        device = as_device(self.device)
        more_callbacks: tuple[Any, ...] = (ProgressBar(),) if self.verbose else ()
        if "_skl_callbacks" in vars(self):  # scikit-learn's own, set by `set_callbacks`
            # the context's method is that of scikit-learn's mixin
            tasks = Tasks(self, self._init_callback_context, *X_and_y, self._fit_so_far)
            more_callbacks += (tasks,)
        callbacks = Callbacks(self.callback, self, more_callbacks)
        seed = check_random_state(self.random_state).randint(MAX_SEED)
        description = self._describe(X, penalty)
        # read before self is changed, so that an unusable file changes nothing
        state = None if resume is None else self._read_state(resume, description)
        # PyTorch's global generator, which the user may use, is restored afterwards; the lock on
        # the class lets one thread at a time seed it
        with writing(DeepEstimator), torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            network = self._network(description, X)
        network = network.to(device, torch.float32)  # PyTorch's default dtype may differ
        noise = Noise(seed, device)
        trainer = Trainer(
            network,
            self._optimiser(network.parameters()),
            noise,
            description["n_samples"],
            int(self.batch_size),
            penalty,
        )
        loss_of_step = objective(network, None if X is None else as_rows(X, device), noise)
        if state is not None:
            trainer.load_state_dict(state)
        self._description = description
        self._trainer = trainer
        self.network_: Any = network
        n_steps = int(self.max_iter)
        n_done = trainer.monitor.step  # steps that were made before the fit was resumed
        try:
            with callbacks.during_fit():
                callbacks.begin(
                    Run(
                        number=0,
                        n_runs=1,
                        n_done=n_done,
                        n_steps=max(n_steps, n_done),
                        steps_per_pass=1 if X is None else X.shape[0] // trainer.batch_size,
                        n_before=0,
                        n_all=max(n_steps, n_done),
                        bound_name="ELBO",
                        bound=lambda: trainer.elbo,
                    )
                )
                # a StopIteration of a callback ends `run`
                trainer.run(loss_of_step, n_steps, on_step=lambda: callbacks(trainer.monitor))
        except BaseException:
            if trainer.monitor.step:  # without a step there is nothing to keep
                keep_state()
            raise
        return self

    def _fit_so_far(self) -> dict[str, Any]:
        """The attributes with which a copy of the estimator keeps the present state of the fit."""
        trainer = deepcopy(self._trainer)
        return {"_trainer": trainer, "network_": trainer.module}

    # ----------------------------------------------------------------- its state

    def _schema(self, **more: Field) -> Schema:
        """Return the fields of a file: the network and data of a state, and the fields `more`."""
        size = Optional(Integer(1))
        text = Optional(Text())
        data: dict[str, Field] = {"n_features": size, "n_samples": size, "X": text}
        return Schema(**data, **self.ARCHITECTURE, proximity=text, **more)

    def _describe(self, X: Any, penalty: RunningPenalty | None) -> dict[str, Any]:
        """Return the network and the data that the state of a fit belongs to."""
        description = dict.fromkeys(("n_samples", "n_features", "X", "proximity"))
        description |= {name: getattr(self, name) for name in self.ARCHITECTURE}
        if X is not None:
            description["n_samples"], description["n_features"] = X.shape
            description["X"] = digest(X)
        if penalty is not None:
            # what is averaged over steps must not change when a fit continues
            averaged = "" if penalty.of_parameters else ", averaged"
            description["proximity"] = penalty.statistic.name + averaged
        return self._schema().dump(description)  # as a file contains it, to compare it with a file

    def save_state(self, path: str | PathLike) -> None:
        """Write the whole state of a fit to a file, so that the fit can be continued.

        Call this method after `fit`, or in a callback.  Then ``fit(X, resume=path)`` continues the
        fit up to `max_iter`.  The result has the same parameters as a fit that never stopped.  X
        and the network must be the same as before.  Other settings may change: for example, a fit
        that diverges can continue with a smaller `learning_rate`.

        Parameters
        ----------
        path : path
            The file to write.  An existing file is replaced only when the new file is complete.
        """
        write_checkpoint(path, {"estimator": type(self).__name__, **self.state_dict()})

    def _read_state(self, path: str | PathLike, description: Mapping[str, Any]) -> Any:
        """Read the state of a training from a file; raise if it belongs to another fit."""
        file = fspath(path)
        owner = type(self).__name__
        tree = read_checkpoint(path, owner)
        writer = Schema(estimator=Text()).load(tree)["estimator"]  # the name of a class
        if writer != owner:
            raise ValueError(f"{file!r} was written by a {writer:.80}. A {owner} cannot read it.")
        saved = self._schema(training=Tree()).load(tree)
        for name, value in description.items():
            if saved[name] != value:
                raise ValueError(
                    f"{file!r} was written by another fit, in which {name} is {saved[name]!r:.80}. "
                    f"In this {owner}, {name} is {value!r:.80}. A fit can be continued only with "
                    "the same network, and with the same data in the same order."
                )
        return saved["training"]

    def state_dict(self) -> dict[str, Any]:
        """Return the fitted state as a tree, for :func:`annealvi.save`."""
        check_is_fitted(self, "network_")
        return {
            **self._description,
            "feature_names_in": getattr(self, "feature_names_in_", None),
            "training": self._trainer.state_dict(),
        }

    def load_state_dict(self, tree: Mapping[str, Any], tree_path: str = "") -> None:
        """Set the fitted state from a file.  If the file is not usable, nothing is changed."""
        self._validate_params()
        device = as_device(self.device)
        schema = self._schema(feature_names_in=Optional(Strings("n_features")), training=Tree())
        description = schema.load(tree, tree_path)
        feature_names = description.pop("feature_names_in")
        training = description.pop("training")
        try:
            with torch.device("meta"):  # allocate no memory before the sizes have been checked
                network = self._network(description)
        except Exception as error:
            raise damaged(
                tree_path, f"the description of a network ({error})", description
            ) from error
        module = tensors_of(network).load(training.get("module"), "training.module")
        # with assign=True the tensors of the file replace the network's, which have no memory
        network.load_state_dict(module, assign=True)
        network = network.to(device)
        penalty = None
        if training.get("penalty") is not None:
            # it is not used, and only keeps its memory for a fit that continues
            penalty = RunningPenalty(ProximityPenalty(), n_steps=1)
        trainer = Trainer(
            network,
            self._optimiser(network.parameters()),
            Noise(seed=0, device=device),  # the state in the file replaces it
            description["n_samples"],
            int(self.batch_size),
            penalty,
        )
        trainer.load_state_dict(training)
        if description["n_features"] is not None:
            self.n_features_in_ = description["n_features"]
        if feature_names is not None:
            self.feature_names_in_ = feature_names
        self._description = description
        self._trainer = trainer
        self.network_ = network

    # -------------------------------------------------------------- afterwards

    @property
    def n_iter_(self) -> int:
        """Number of steps made."""
        return self._trainer.monitor.step

    @property
    def history_(self) -> dict[str, NDArray]:
        """About a thousand records: pass, step, temperature, seconds, and the mean ELBO of the
        steps since the last record."""
        return self._trainer.history()

    @property
    def temperature_path_(self) -> NDArray[np.float64]:
        """The temperature of each step."""
        return np.array(self._trainer.monitor.temperature_path)

    def _draws(self) -> Noise:
        """Return a stream of random numbers for a method, the same in each call if seeded."""
        check_is_fitted(self, "network_")
        seed = check_random_state(self.random_state).randint(MAX_SEED)
        return Noise(seed, self._trainer.noise.device)

    def _tensor(self, X: NDArray) -> Tensor:
        """Return data as a float32 tensor on the device of the network."""
        return torch.as_tensor(X, dtype=torch.float32, device=self._trainer.noise.device)

    def __getattr__(self, name: str) -> Any:
        """Raise the error for an attribute that is missing; explain if there was no fit."""
        owner = type(self).__name__
        # called only for missing attributes; names of fitted attributes end with an underscore
        if name.endswith("_") and not name.startswith("_") and "network_" not in vars(self):
            raise AttributeError(f"This {owner} instance is not fitted yet, so it has no {name!r}.")
        raise AttributeError(f"{owner!r} object has no attribute {name!r}")


# --------------------------------------------------------------------------- models of data


#: Called with row numbers, T and the number of steps made; returns the outcome without a penalty.
Bound = Callable[[Tensor, float, int], Outcome]


def penalised(
    network: Module, bound: Bound, temperature: Temperature, penalty: RunningPenalty | None
) -> Objective:
    """Return the loss of a model of data: minus its tempered bound, plus the penalty."""
    # a network for the average of the parameters over past steps, if the penalty needs it
    averaged = deepcopy(network) if penalty is not None and penalty.of_parameters else None

    def objective(rows: Tensor, step: int) -> Outcome:
        """Return the outcome of a step for these rows, with the penalty added to its loss."""
        outcome = bound(rows, 1.0 / temperature.inverse(step), step)
        if penalty is None or outcome.statistic is None:
            return outcome
        value = outcome.statistic(penalty.statistic)
        past_value = None  # the penalty then uses the average of the statistic itself
        if averaged is not None:
            with torch.no_grad():
                average = penalty.update_average(parameters_to_vector(network.parameters()))
                start = 0  # of the parameter in the vector `average`
                for parameter in averaged.parameters():
                    end = start + parameter.numel()
                    # a copy, because products with unaligned views round differently
                    parameter.copy_(average[start:end].view_as(parameter))
                    start = end
                past_value = outcome.statistic(penalty.statistic, averaged)
        # the first ELBO of a whole minibatch is the default magnitude; `elbo` is a mean over rows
        cost = penalty(value, step, outcome.elbo.detach() * len(rows), past_value)
        return outcome._replace(loss=outcome.loss + cost)

    return objective


@dataclass(eq=False, repr=False, kw_only=True)
class DataEstimator(ClassNamePrefixFeaturesOutMixin, TransformerMixin, DeepEstimator):
    """Base class of models of data, with the parameters `temperature` and `proximity`."""

    #: The statistics of q that a proximity penalty can have.
    STATISTICS: ClassVar[Iterable[str]]
    _parameter_constraints: ClassVar[dict] = {
        **DeepEstimator._parameter_constraints,
        "proximity": "no_validation",  # as_penalty checks it
        "temperature": "no_validation",  # fit checks it
    }

    proximity: ProximityLike = None
    temperature: float | str | Temperature = 1

    @abstractmethod
    def _check_X(self, X: Any, reset: bool = False) -> Any:
        """Check X and its values; return it as a dense or CSR matrix in float32."""

    @abstractmethod
    def _bound(self, network: Any, X: Any, noise: Noise) -> Bound:
        """Return the function that computes the bound of a minibatch, for data from `as_rows`."""

    @checked
    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None, *, resume: str | PathLike | None = None) -> Self:
        """Learn the model from data.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The data: a row for each datum, with values that the model allows.
        y : Ignored
            Present for API consistency.
        resume : path, optional
            A file written by `save_state`, from which the fit continues up to `max_iter`.

        Returns
        -------
        self : object

        Raises
        ------
        ValueError
            If X or a parameter is out of range, or if the file belongs to another network.  In
            these cases the estimator is unchanged.
        annealvi.exceptions.DivergenceError
            If the loss or its gradient is not finite.  The estimator keeps the last finite state.
        """
        # one thread at a time may fit self; an error restores its attributes, unless `keep_state`
        # was called before
        with writing(self), unchanged_on_error(self) as keep_state:
            X_and_y = (X, y)  # as the user passed them, for scikit-learn's callbacks
            X = self._check_X(X, reset=True)
            temperature = as_temperature(self.temperature)
            proximity = as_penalty(self.proximity, self.STATISTICS)
            n_steps = int(self.max_iter)
            if temperature.learns:
                raise BadParameter(
                    "temperature",
                    "a float, 'annealed', a Fixed or an Annealed",
                    self.temperature,
                    "Deep models cannot learn the temperature.",
                )
            steps_per_pass = X.shape[0] / min(int(self.batch_size), X.shape[0])
            temperature_of_fit = temperature.plan(n_steps, steps_per_pass)
            penalty = None if proximity is None else proximity.plan(n_steps)

            def objective(network: Any, data: Any, noise: Noise) -> Objective:
                """Return the loss of a step, for a network and the data on its device."""
                bound = self._bound(network, data, noise)
                return penalised(network, bound, temperature_of_fit, penalty)

            return self._fit(X, objective, keep_state, resume, penalty=penalty, X_and_y=X_and_y)

    def sample(self, n_samples: int = 1) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Draw data from the fitted model.

        Parameters
        ----------
        n_samples : int, default=1

        Returns
        -------
        X : ndarray of shape (n_samples, n_features), float32
        Z : ndarray of shape (n_samples, n_components), float32
            The latent variables that each row of X was drawn from, in the layer nearest the data.
        """
        noise = self._draws()
        n_samples = check_count(n_samples, "n_samples")
        with torch.no_grad():
            x, z = self.network_.sample(n_samples, noise)
        return numbers(x), numbers(z)

    @property
    def _n_features_out(self) -> int:
        return self.network_.n_components

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float32"]
        return tags


class AmortisedEstimator(DataEstimator):
    """Base class of models in which a network computes q from each datum."""

    #: Number of draws that are evaluated together.
    BLOCK: ClassVar[int]

    @abstractmethod
    def _check_values(self, values: NDArray[np.float32]) -> None:
        """Raise a ValueError if the model does not allow these values of X."""

    def transform(self, X: Any) -> NDArray[np.float32]:
        """Return the means under q of the latent variables in the layer nearest the data.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_components), float32
        """
        check_is_fitted(self)
        return self._by_blocks(X, n_draws=1, function=self.network_.centre)

    def score_samples(self, X: Any, *, n_draws: int = 100) -> NDArray[np.float64]:
        r"""Return the log-likelihood of each datum, estimated by importance sampling.

        .. math::
           \log \frac1K \sum_k \frac{p(x, z_k)}{q(z_k \mid x)}, \quad z_k \sim q(z \mid x)

        (Burda, Grosse, Salakhutdinov 2016, *Importance weighted autoencoders*).  The expectation
        of this estimate rises with K from the ELBO to :math:`\log p(x)`.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        n_draws : int, default=100
            The number K of draws of z for each datum.

        Returns
        -------
        ndarray of shape (n_samples,)
            The estimated log-likelihoods, in nats.
        """
        return self._average(X, n_draws, importance_weighted)

    def _average(
        self, X: Any, n_draws: int, average: Callable[[Tensor], Tensor]
    ) -> NDArray[np.float64]:
        """Return for each datum `average` of its log weights, log p(x, z) - log q(z | x)."""
        noise = self._draws()
        n_draws = check_count(n_draws, "n_draws")

        def average_of(x: Tensor) -> Tensor:
            """Return the averages for a block of data, from `n_draws` draws for each datum."""
            log_weights = [
                self.network_.log_weights(x, min(self.BLOCK, n_draws - n_done), noise)[1]
                for n_done in range(0, n_draws, self.BLOCK)  # to limit the memory
            ]
            return average(torch.cat(log_weights))

        return self._by_blocks(X, n_draws, average_of).astype(float)

    @torch.no_grad()
    def _by_blocks(self, X: Any, n_draws: int, function: Callable[[Tensor], Tensor]) -> NDArray:
        """Apply a function to the rows of X in blocks, so that a block has about BLOCK draws."""
        device = self._trainer.noise.device
        data = as_rows(self._check_X(X), device)
        blocks = torch.arange(len(data), device=device).split(max(1, self.BLOCK // n_draws))
        return np.concatenate([numbers(function(data[rows])) for rows in blocks])

    def _check_X(self, X: Any, reset: bool = False) -> Any:
        """Check X and its values; `reset` sets the number and names of features (in `fit`)."""
        X = check_matrix(X, estimator=self, reset=reset, dtype=np.float32, order="C")
        self._check_values(X.data if issparse(X) else X)
        return X


# ------------------------------------------------------------------------------ parameters


class Widths(Listed):
    """The widths of layers, which are the parameter `hidden` and a list in files."""

    def __init__(self) -> None:
        super().__init__(Integer(1))

    def dump(self, value: Any) -> list[int]:
        """Check the parameter `hidden`, and return it as a list of ints for a file."""
        is_vector = isinstance(value, np.ndarray) and value.ndim == 1
        has_layers = (is_vector or isinstance(value, list | tuple | range)) and len(value) > 0
        if not has_layers or not all(isinstance(n, Integral) and int(n) > 0 for n in value):
            raise BadParameter(
                "hidden", "a sequence of ints in the range [1, inf), one for each layer", value
            )
        return super().dump(value)


def as_device(device: Any) -> torch.device:
    """Return the device that a parameter names; raise if it does not exist."""
    try:
        torch_device = torch.device(device)
    except (RuntimeError, TypeError, ValueError):
        torch_device = None
    if torch_device is None or torch_device.type not in ("cpu", "cuda"):
        raise BadParameter("device", "'cpu', 'cuda' or 'cuda:<index>'", device)
    n_gpus = torch.cuda.device_count()
    # "cuda" without an index means the first GPU
    if torch_device.type == "cuda" and (torch_device.index or 0) >= n_gpus:
        raise BadParameter(
            "device",
            f"'cpu' or a GPU that exists, and PyTorch finds {n_gpus} CUDA devices",
            device,
        )
    return torch_device


def plan_beta(schedule: Schedule | None, annealing: float, n_steps: int) -> list[float]:
    """Return beta of each step: the schedule's values in the annealed steps, then 1."""
    if schedule is None:
        schedule = Linear(0.01, 1.0)
    betas = [1.0] * n_steps
    for step in range(math.ceil(annealing * n_steps)):  # the annealed steps come first
        fraction = step / (annealing * n_steps)
        beta = schedule(fraction)
        if not isinstance(beta, Real) or not 0 <= beta < math.inf:
            raise BadParameter(
                "schedule",
                "a function that returns finite floats in the range [0, inf)",
                beta,
                f"It returned this value at the fraction {fraction:.3g} of the annealing.",
            )
        betas[step] = float(beta)
    return betas
