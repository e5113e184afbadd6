"""What the estimators of deep models share: checks, the fit and its resumption, the record."""

from __future__ import annotations

import os
from collections.abc import Callable
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted
from torch import nn

from annealvi._optional import import_optional
from annealvi.deep.noise import Noise
from annealvi.deep.rows import as_rows
from annealvi.deep.training import Outcome, Training, as_device, read_state, write_state
from annealvi.inference import Monitor

#: Seeds are drawn below this.
MAX_SEED = 2**31 - 1


class DeepEstimator(BaseEstimator):
    """A model with the face of scikit-learn whose parameters follow gradients.

    A subclass has the parameters below, builds its network in ``_network``, says in
    ``_objective`` what is minimised and in ``_architecture`` what a saved state must agree
    with.

    Parameters
    ----------
    learning_rate : float
    batch_size : int
        Data, or draws, a step.
    max_iter : int
        Steps.
    device : str
        ``"cpu"``, ``"cuda"`` or ``"cuda:<index>"``.
    random_state : int, RandomState instance or None
    verbose : int
        Whether to show progress.
    callback : callable or None
        Called as ``callback(estimator, monitor)`` after each step.
    """

    learning_rate: float
    batch_size: int
    max_iter: int
    device: Any
    random_state: Any
    verbose: int
    callback: Callable[[Any, Monitor], None] | None

    _training_constraints: ClassVar[dict] = {
        "learning_rate": [Interval(Real, 0, None, closed="neither")],
        "batch_size": [Interval(Integral, 1, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "device": "no_validation",  # as_device has the message
        "random_state": ["random_state"],
        "verbose": ["verbose"],
        "callback": [None, callable],
    }

    # -------------------------------------------------- what a subclass fills in

    def _architecture(self) -> dict[str, Any]:
        """Numbers, strings and lists by name: what a saved state must agree with."""
        raise NotImplementedError

    def _network(self) -> nn.Module:
        """The module, with initial weights from PyTorch's global generator, on the CPU."""
        raise NotImplementedError

    def _objective(self, network: Any, X: Any, noise: Noise) -> Callable[[Any, int], Outcome]:
        """What :class:`annealvi.deep.training.Training` follows downhill."""
        raise NotImplementedError

    def _optimiser(self, network: nn.Module) -> torch.optim.Optimizer:
        return torch.optim.Adam(network.parameters(), lr=self.learning_rate)

    # ---------------------------------------------------------------- the fit

    def _fit(self, X: Any, keep: Callable[[], None], resume: str | os.PathLike | None) -> Self:
        """Train on X, of float32 or None, from the start or from a saved state.

        Parameters
        ----------
        X : ndarray or CSR matrix of shape (n_samples, n_features) or None
            As :func:`annealvi.deep.rows.as_rows` takes it.
        keep : callable
            Called before an error that leaves what there is goes on.
        resume : path, optional
            What :meth:`save_state` wrote.
        """
        device = as_device(self.device, type(self).__name__)
        seed = check_random_state(self.random_state).randint(MAX_SEED)
        header = self._header()
        state = None if resume is None else read_state(resume, header)
        noise = Noise(seed, device)
        with torch.random.fork_rng(devices=[]):  # the user's generator stays where it is
            torch.manual_seed(seed)
            network = self._network()
        network = network.to(device, torch.float32)  # whatever PyTorch's default is
        data = None if X is None else as_rows(X, device)
        training = Training(
            network,
            self._optimiser(network),
            noise,
            n_rows=None if data is None else len(data),
            batch_size=int(self.batch_size),
        )
        objective = self._objective(network, data, noise)
        if state is not None:
            training.restore(state)
        self._saved_header = header
        self._training = training
        self.network_: Any = network
        done = training.monitor.step
        with _Progress(bool(self.verbose), int(self.max_iter), done) as progress:
            try:
                training.run(
                    objective,
                    int(self.max_iter),
                    lambda outcome: self._after_step(outcome, progress),
                )
            except BaseException:
                if training.monitor.step:
                    keep()
                raise
        return self

    def _after_step(self, outcome: Outcome, progress: _Progress) -> None:
        progress.show(outcome)
        if self.callback is not None:
            self.callback(self, self._training.monitor)

    def _header(self) -> dict[str, Any]:
        return {"estimator": type(self).__name__, "architecture": self._architecture()}

    def save_state(self, path: str | os.PathLike) -> None:
        """Write all that a fit needs to go on, now or in a callback.

        ``fit(..., resume=path)`` of an estimator with the same architecture goes on to its
        `max_iter`, with the same parameters as if the fit had never stopped.  Of other
        parameters its own hold from there on: a lower `learning_rate`, say.

        Parameters
        ----------
        path : path
            A file, which is replaced at once when it is complete.
        """
        check_is_fitted(self, "network_")
        write_state(path, self._saved_header, self._training)

    # -------------------------------------------------------------- afterwards

    @property
    def n_iter_(self) -> int:
        """Steps done."""
        return self._training.monitor.step

    @property
    def history_(self) -> dict[str, NDArray]:
        """About a thousand records: ``pass``, ``step``, ``temperature``, ``seconds``, ``elbo``
        (the mean since the record before)."""
        return self._training.history()

    @property
    def temperature_path_(self) -> NDArray[np.float64]:
        """T of each step."""
        return np.array(self._training.monitor.temperature_path)

    def _draws(self) -> Noise:
        """Random numbers for a method of the fitted model."""
        check_is_fitted(self, "network_")
        seed = check_random_state(self.random_state).randint(MAX_SEED)
        return Noise(seed, self._training.noise.device)

    def _tensor(self, X: NDArray) -> torch.Tensor:
        """Data where the network is."""
        return torch.as_tensor(X, dtype=torch.float32, device=self._training.noise.device)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "network_")


class _Progress:
    """A bar with the ELBO, or nothing."""

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
    """A tensor as an array, without its gradient.

    Parameters
    ----------
    tensor : torch.Tensor
    """
    return np.asarray(tensor.detach().cpu())


def positive(value: Any, name: str) -> int:
    """An argument of a method that counts something, checked.

    Parameters
    ----------
    value : object
    name : str
        The argument, for the message.
    """
    if not isinstance(value, Integral) or value < 1:
        raise ValueError(f"{name!r} must be an int in the range [1, inf). Got {value!r} instead.")
    return int(value)
