"""What all estimators of deep models share: checks, the fit, resuming it, and its record."""

from __future__ import annotations

import copy
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted
from torch import nn

from annealvi._optional import import_optional
from annealvi.checks import Interval
from annealvi.deep.estimators.saved import header_of, read_state, write_state
from annealvi.deep.files import load_network, meta_network
from annealvi.deep.noise import Noise
from annealvi.deep.rows import as_rows
from annealvi.deep.training import Outcome, Training, as_device
from annealvi.files import Node
from annealvi.inference import Callbacks, Monitor, Start, during_fit
from annealvi.inference.tasks import CallbackSupport, Tasks
from annealvi.threads import brief_lock
from annealvi.versions import Versioned

#: Held while PyTorch's one generator is seeded for a network.
_building = brief_lock()
#: Seeds are drawn below this.
MAX_SEED = 2**31 - 1
#: Called with the estimator and the monitor after each step.
Callback = Callable[[Any, Monitor], None]
#: Returns the optimiser of parameters.
MakeOptimiser = Callable[[Iterator[nn.Parameter]], torch.optim.Optimizer]
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


@dataclass(frozen=True)
class Plan:
    """What a fit needs to know about the model that it trains.

    Each estimator makes a plan in its `fit` and hands it to :class:`DeepEstimator`.

    Parameters
    ----------
    architecture : dict
        Numbers, strings and lists by name.  A fit resumes a saved state only if all of them
        are equal.
    build : callable
        ``build()`` returns the network on the CPU.  Its initial weights come from PyTorch's
        global generator, which the fit seeds first.
    objective : callable
        ``objective(network, data, noise)`` returns the objective that
        :class:`annealvi.deep.training.Training` minimises.  `data` is what
        :func:`annealvi.deep.rows.as_rows` returns, or None where there are no data.
    optimiser : callable
        ``optimiser(parameters)`` returns the optimiser of these parameters.
    """

    architecture: dict[str, Any]
    build: Callable[[], nn.Module]
    objective: Callable[[Any, Any, Noise], Callable[[Any, int], Outcome]]
    optimiser: MakeOptimiser


class DeepEstimator(Versioned, BaseEstimator, CallbackSupport):
    """Fits a network by gradients, with scikit-learn's interface.

    An estimator inherits from this class, has the parameters below, and calls `_fit` with the
    :class:`Plan` of its model.

    Parameters
    ----------
    learning_rate : float
        Step size of the optimiser.
    batch_size : int
        Data, or draws, per step.
    max_iter : int
        Number of steps.
    device : str
        ``"cpu"``, ``"cuda"`` or ``"cuda:<index>"``.
    random_state : int, RandomState instance or None
        Seed of the initial weights and of all draws.
    verbose : int
        Whether to show progress.
    callback : callable, list of callables or None
        Called as ``callback(estimator, monitor)`` after each step.  scikit-learn's own callbacks
        are set by `set_callbacks`, from its version 1.9 on.
    """

    learning_rate: float
    batch_size: int
    max_iter: int
    device: Any
    random_state: Any
    verbose: int
    callback: Callback | Sequence[Callback] | None

    # ---------------------------------------------------------------- the fit

    def _fit(
        self,
        X: Any,
        plan: Plan,
        keep: Callable[[], None],
        resume: str | os.PathLike | None,
        given: tuple[Any, Any] = (None, None),
    ) -> Self:
        """Train the network of a plan, from the start or from a saved state.

        Parameters
        ----------
        X : ndarray or CSR matrix of shape (n_samples, n_features), float32, or None
            The data; None where the plan needs none.
        plan : Plan
        keep : callable
            Called before an error that ends a fit after its first step: the steps that were
            made are kept.
        resume : path, optional
            A file written by :meth:`save_state`.
        given : tuple of X and y
            As the user gave them, for scikit-learn's callbacks.
        """
        device = as_device(self.device, type(self).__name__)
        others: tuple[Any, ...] = ()
        if "_skl_callbacks" in vars(self):  # scikit-learn's, from `set_callbacks`
            others = (Tasks(self, self._init_callback_context, *given, self._fit_so_far),)
        callbacks = Callbacks.of(self.callback, self, others)
        seed = check_random_state(self.random_state).randint(MAX_SEED)
        header = header_of(type(self).__name__, plan.architecture, X)
        state = None if resume is None else read_state(resume, header)
        noise = Noise(seed, device)
        # the user's generator stays as it is
        with _building, torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            network = plan.build()
        network = network.to(device, torch.float32)  # whatever PyTorch's default dtype is
        data = None if X is None else as_rows(X, device)
        training = Training(
            network,
            plan.optimiser(network.parameters()),
            noise,
            n_rows=None if data is None else len(data),
            batch_size=int(self.batch_size),
        )
        objective = plan.objective(network, data, noise)
        if state is not None:
            training.load_state_dict(state)
        self._saved_header = header
        self._training = training
        self.network_: Any = network
        done = training.monitor.step
        elbo: Any = torch.nan

        def after_step(outcome: Outcome) -> None:
            nonlocal elbo
            progress.show(outcome)
            if callbacks is not None:
                elbo = outcome.elbo.detach()
                callbacks(training.monitor)

        with _Progress(bool(self.verbose), int(self.max_iter), done) as progress:
            try:
                with during_fit(callbacks):
                    if callbacks is not None:
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
                    training.run(objective, int(self.max_iter), after_step)
            except BaseException:
                if training.monitor.step:
                    keep()
                raise
        return self

    def _fit_so_far(self) -> dict[str, Any]:
        """What a copy of the estimator needs so that it stays as the fit is now."""
        training = copy.deepcopy(self._training)
        return {"_training": training, "network_": training.module}

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
        write_state(path, self._saved_header, self._training)

    def state_dict(self) -> dict[str, Any]:
        """Return the fitted state as a tree, for :func:`annealvi.save`."""
        check_is_fitted(self, "network_")
        return {
            "feature_names_in": getattr(self, "feature_names_in_", None),
            "fit": self._saved_header,
            "training": self._training.state_dict(),
        }

    def _load(
        self,
        node: Node,
        architecture: dict[str, Any],
        build: Callable[[], nn.Module],
        optimiser: MakeOptimiser,
    ) -> None:
        """Take over a fitted state; the estimator stays as it was if it cannot be used.

        Parameters
        ----------
        node : Node
            What :meth:`state_dict` returned, from a file.
        architecture : dict
            From the node, checked.
        build, optimiser : callable
            See :class:`Plan`.
        """
        device = as_device(self.device, type(self).__name__)
        fit, state = node.node("fit"), node.node("training")
        network = meta_network(build, fit.node("architecture"))
        load_network(network, state.node("module"))
        network = network.to(device)
        n_rows = None if state.is_none("n_rows") else state.integer("n_rows", 1)
        training = Training(
            network,
            optimiser(network.parameters()),
            Noise(0, device),
            n_rows=n_rows,
            batch_size=state.integer("batch_size", 1),
        )
        training.load_state_dict(state)
        n_features = architecture.get("n_features")
        if n_features is not None:
            self.n_features_in_ = n_features
            if not node.is_none("feature_names_in"):
                self.feature_names_in_ = node.strings("feature_names_in", n_features)
        self._saved_header = {
            "estimator": type(self).__name__,
            "architecture": architecture,
            "n_samples": n_rows,
            "X": None if fit.is_none("X") else fit.string("X"),
        }
        self._training, self.network_ = training, network

    # -------------------------------------------------------------- afterwards

    @property
    def n_iter_(self) -> int:
        """Number of steps made."""
        return self._training.monitor.step

    @property
    def history_(self) -> dict[str, NDArray]:
        """About a thousand records of ``pass``, ``step``, ``temperature``, ``seconds`` and
        ``elbo`` (the mean over the steps since the last record)."""
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

    def _tensor(self, X: NDArray) -> torch.Tensor:
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


class _Progress:
    """A progress bar that shows the ELBO, or nothing if it is not wanted."""

    def __init__(self, wanted: bool, total: int, done: int) -> None:
        self._bar = None
        if wanted:
            tqdm = import_optional("tqdm", "deep", "Progress (verbose=1)")
            self._bar = tqdm.tqdm(total=total, initial=done, unit="step", mininterval=0.5)

    def show(self, outcome: Outcome) -> None:
        if self._bar is not None:
            self._bar.set_postfix(elbo=f"{float(outcome.elbo.detach()):.4g}", refresh=False)
            self._bar.update()

    def __enter__(self) -> _Progress:
        return self

    def __exit__(self, *error: object) -> None:
        if self._bar is not None:
            self._bar.close()


def numbers(tensor: torch.Tensor) -> NDArray:
    """Return a tensor as an array, without its gradient.

    Parameters
    ----------
    tensor : torch.Tensor
    """
    return np.asarray(tensor.detach().cpu())


def positive(value: Any, name: str) -> int:
    """Check an argument that counts something, and return it as an int.

    Parameters
    ----------
    value : object
    name : str
        Name of the argument, for the error message.

    Raises
    ------
    ValueError
        If the value is not an integer of at least 1.
    """
    if not isinstance(value, Integral) or value < 1:
        raise ValueError(f"{name!r} must be an int in the range [1, inf). Got {value!r} instead.")
    return int(value)
