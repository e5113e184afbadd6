"""VariationalAutoencoder: scikit-learn's face over :mod:`annealvi.deep.models.vae`."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin, _fit_context
from sklearn.utils import check_array
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted, validate_data
from torch import Tensor, nn
from torch.distributions import Normal

from annealvi._validation import unchanged_on_error
from annealvi.deep._estimator import DeepEstimator, numbers
from annealvi.deep.models.vae import AutoencoderNetwork, never_positive
from annealvi.deep.noise import Noise
from annealvi.deep.objectives import avo, importance_weighted
from annealvi.deep.proximity import ProximityPenalty, as_penalty, gram, statistic
from annealvi.deep.training import Outcome
from annealvi.inference import Monitor
from annealvi.temperature import Temperature, as_temperature

#: Adam's epsilon, as Altosaar et al. have it.
EPSILON = 1e-6
#: Draws of z that methods of the fitted model work on at a time.
BLOCK = 4096


class VariationalAutoencoder(ClassNamePrefixFeaturesOutMixin, TransformerMixin, DeepEstimator):
    r"""Images by a network of latent Gaussian variables, whose posterior is a network too.

    .. math::
       z \sim N(0, I), \quad x_d \sim \mathrm{Bern}(\mathrm{decoder}(z)_d), \quad
       q(z \mid x) = N(\mu(x), \mathrm{diag}\,\sigma(x)^2)

    with networks of rectified units, fitted by gradients of the ELBO.  Three ways round poor
    optima can be added: a penalty on moving q fast (`proximity`), annealing (`temperature`),
    and a deeper posterior, a chain of `n_transitions` gated transitions from the Gaussian on,
    each with an annealed target of its own (`calibration`).

    Parameters
    ----------
    n_components : int, default=100
        Latent variables.

    hidden : sequence of int, default=(200, 200)
        Units of the encoder's layers, from the pixels on; the decoder mirrors them.

    proximity : None, {"orthogonal", "entropy", "kl", "mean_variance"} or ProximityPenalty, \
            default=None
        What q pays for leaving where it has been: a statistic, or an object of
        :class:`annealvi.deep.ProximityPenalty` with a magnitude too.  ``"orthogonal"`` is of
        the weights of all layers that lead to q; the others are of the Gaussian q.

    temperature : float, "annealed" or Temperature, default=1
        T >= 1, what multiplies the entropy of q: a number, ``"annealed"`` or an object of
        :mod:`annealvi.temperature`.

    n_transitions : int, default=0
        T, the transitions of the posterior's chain.

    transition_hidden : int, default=64
        Units of the hidden layer of each transition.

    calibration : float, default=0.0
        a in [0, 1]: the probability that a step follows the annealed objectives, with the
        targets :math:`p(z) p(x \mid z)^{t/T}`, rather than the ELBO.  It makes no difference
        without transitions.

    learning_rate : float, default=1e-3
        Of Adam.

    batch_size : int, default=128
        Data a step.

    max_iter : int, default=10000
        Steps.

    device : str, default="cpu"
        ``"cpu"``, ``"cuda"`` or ``"cuda:<index>"``.

    random_state : int, RandomState instance or None, default=None
        Seed of the weights and of all draws.  The same seed gives the same fit on a CPU, and
        up to rounding on a GPU.

    verbose : int, default=0
        Whether to show progress.

    callback : callable, default=None
        Called as ``callback(estimator, monitor)`` after each step; the estimator can be used
        as it then is.  ``monitor.record(name=value)`` writes into `history_`; raising
        ``StopIteration`` ends the fit.

    Attributes
    ----------
    network_ : AutoencoderNetwork
        The PyTorch module.

    temperature_ : float
        T of the last step.

    history_ : dict of str to ndarray
        About a thousand records: ``pass``, ``step``, ``temperature``, ``seconds``, ``elbo``
        (a datum's at T = 1, the mean over the minibatches since the record before; of steps
        with annealed objectives too).

    n_iter_ : int
        Steps done.

    n_features_in_ : int
        Number of pixels.

    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the pixels, where X has string column names.

    References
    ----------
    Kingma, Welling (2014), *Auto-encoding variational Bayes*, ICLR.
    Altosaar, Ranganath, Blei (2018), *Proximity Variational Inference*, AISTATS.
    Huang, Tan, Lacoste, Courville (2018), *Improving explorability in variational inference
    with annealed variational objectives*, NeurIPS.

    Examples
    --------
    >>> import numpy as np
    >>> from annealvi.deep import VariationalAutoencoder
    >>> X = np.random.RandomState(0).random_sample((300, 16)) < 0.3
    >>> vae = VariationalAutoencoder(2, hidden=(8,), max_iter=50, random_state=0).fit(X)
    >>> vae.transform(X).shape
    (300, 2)
    """

    _parameter_constraints: ClassVar[dict] = {
        "n_components": [Interval(Integral, 1, None, closed="left")],
        "hidden": "no_validation",  # _layers has the message
        "proximity": "no_validation",  # as_penalty
        "temperature": "no_validation",  # as_temperature
        "n_transitions": [Interval(Integral, 0, None, closed="left")],
        "transition_hidden": [Interval(Integral, 1, None, closed="left")],
        "calibration": [Interval(Real, 0, 1, closed="both")],
        **DeepEstimator._training_constraints,
    }

    def __init__(
        self,
        n_components: int = 100,
        *,
        hidden: Sequence[int] = (200, 200),
        proximity: str | ProximityPenalty | None = None,
        temperature: float | str | Temperature = 1,
        n_transitions: int = 0,
        transition_hidden: int = 64,
        calibration: float = 0.0,
        learning_rate: float = 1e-3,
        batch_size: int = 128,
        max_iter: int = 10_000,
        device: Any = "cpu",
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
        callback: Callable[[Any, Monitor], None] | None = None,
    ) -> None:
        self.n_components = n_components
        self.hidden = hidden
        self.proximity = proximity
        self.temperature = temperature
        self.n_transitions = n_transitions
        self.transition_hidden = transition_hidden
        self.calibration = calibration
        self.learning_rate = learning_rate
        self.batch_size = batch_size
        self.max_iter = max_iter
        self.device = device
        self.random_state = random_state
        self.verbose = verbose
        self.callback = callback

    # ------------------------------------------------------------------ the fit

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None, *, resume: str | os.PathLike | None = None) -> Self:
        """Learn encoder and decoder from images.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Pixels in [0, 1]; what is not 0 or 1 is taken as a probability.
        y : Ignored
            Present for API consistency.
        resume : path, optional
            What `save_state` wrote, to go on from.

        Returns
        -------
        self : VariationalAutoencoder

        Raises
        ------
        ValueError
            If X or a parameter is out of range, or `resume` of another architecture; the
            estimator stays as it was.
        annealvi.exceptions.DivergenceError
            If the loss or its gradient is not finite; the last finite state is kept.
        """
        with unchanged_on_error(self) as keep:
            X = self._check_X(X, reset=True)
            self._layers()
            as_penalty(self.proximity, type(self).__name__)
            temperature = as_temperature(self.temperature, type(self).__name__)
            self._planned = temperature.plan(
                int(self.max_iter), max(1, len(X) // int(self.batch_size)), owner="the fit"
            )
            return self._fit(X, keep, resume)

    def _architecture(self) -> dict[str, Any]:
        penalty = as_penalty(self.proximity, type(self).__name__)
        return {
            "n_features": self.n_features_in_,
            "n_components": int(self.n_components),
            "hidden": self._layers(),
            "n_transitions": int(self.n_transitions),
            "transition_hidden": int(self.transition_hidden) if self.n_transitions else None,
            "proximity": None if penalty is None else penalty.statistic,
        }

    def _network(self) -> nn.Module:
        penalty = as_penalty(self.proximity, type(self).__name__)
        return AutoencoderNetwork(
            self.n_features_in_,
            int(self.n_components),
            self._layers(),
            n_transitions=int(self.n_transitions),
            transition_hidden=int(self.transition_hidden),
            penalty=None if penalty is None else penalty.plan(int(self.max_iter)),
        )

    def _optimiser(self, network: nn.Module) -> torch.optim.Optimizer:
        return torch.optim.Adam(
            network.parameters(), lr=self.learning_rate, eps=EPSILON, fused=True
        )

    def _objective(
        self, network: AutoencoderNetwork, X: Any, noise: Noise
    ) -> Callable[[Any, int], Outcome]:
        prior = Normal(torch.zeros((), device=X.device), torch.ones((), device=X.device))

        def objective(rows: Tensor, step: int) -> Outcome:
            x, temperature = X[rows], 1.0 / self._planned.inverse(step)
            context = network.encoder(x)
            if network.chain is None:
                q = network.posterior(context)
                parts = network.bound(x, q, noise)
                bound = elbo = (parts.energy + parts.entropy).mean()
                if temperature != 1:
                    bound = elbo + (temperature - 1.0) * parts.entropy.mean()
            else:
                bound, elbo = self._chain_bound(network, x, context, noise, temperature)
            loss = -bound
            if network.penalty is not None:
                name = network.penalty.statistic
                if name == "orthogonal":
                    value = gram(network.encoder_weights())
                else:
                    value = statistic(name, network.posterior(context), prior)
                loss = loss + network.penalty(value, step, elbo.detach() * len(x))
            return Outcome(loss, elbo, temperature)

        return objective

    def _chain_bound(
        self, network: AutoencoderNetwork, x: Tensor, context: Tensor, noise: Noise, beta: float
    ) -> tuple[Tensor, Tensor]:
        """What a step of a chain follows uphill, and the ELBO."""
        chain = network.chain
        assert chain is not None
        epsilon = chain.draw_noise(len(x), noise)
        annealed = self.calibration > 0 and noise.coin(float(self.calibration))
        path = chain(epsilon, context=context, detach=annealed)
        log_weight = chain.log_weight(path)
        if not annealed:
            log_joint = network.log_joint(x, path.z[-1])
            bound = log_joint - beta * log_weight
        else:
            every = network.log_joint(x, path.z[1:])
            log_joint = every[-1]
            bound = avo(path, lambda z: every, beta=beta)
        return bound.mean(), (log_joint - log_weight).mean()

    # -------------------------------------------------------------- afterwards

    @property
    def temperature_(self) -> float:
        return self._training.monitor.temperature

    def transform(self, X: Any) -> NDArray[np.float32]:
        """Latent variables of images: the mean of q(z | x).

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_components), float32
            With transitions, what leads from the mean of the Gaussian through the means of
            the transitions: their own mean has no closed form.
        """
        check_is_fitted(self)
        return self._by_blocks(X, 1, lambda x: numbers(self.network_.centre(x)))

    def inverse_transform(self, X: Any) -> NDArray[np.float32]:
        """Images of latent variables: the probability of each pixel.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_components)
            As `transform` gives it.

        Returns
        -------
        ndarray of shape (n_samples, n_features), float32
        """
        check_is_fitted(self)
        Z = check_array(X, dtype=np.float32, input_name="X")
        if Z.shape[1] != self._n_features_out:
            raise ValueError(
                f"X has {Z.shape[1]} features, but inverse_transform of {type(self).__name__} "
                f"is expecting {self._n_features_out}, the number of components."
            )
        with torch.no_grad():
            return numbers(self.network_.logits(self._tensor(Z)).sigmoid())

    def sample(self, n_samples: int = 1) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Draw images from the fitted model.

        Parameters
        ----------
        n_samples : int, default=1

        Returns
        -------
        X : ndarray of shape (n_samples, n_features), float32, of 0 and 1
            ``inverse_transform(Z)`` has the probabilities they were drawn with.
        Z : ndarray of shape (n_samples, n_components), float32
        """
        noise = self._draws()
        if not isinstance(n_samples, Integral) or n_samples < 1:
            raise ValueError(
                f"Invalid value for 'n_samples': {n_samples!r}. The sampling requires at least "
                "one sample."
            )
        z = noise.normal(int(n_samples), self._n_features_out)
        with torch.no_grad():
            x = noise.bernoulli(self.network_.logits(z).sigmoid())
        return numbers(x), numbers(z)

    def score(self, X: Any, y: Any = None) -> float:
        """The mean of `elbo`, of one draw a datum: higher is better.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        y : Ignored

        Returns
        -------
        float
            In nats.
        """
        return float(np.mean(self.elbo(X)))

    def elbo(self, X: Any, *, n_draws: int = 1) -> NDArray[np.float64]:
        """The ELBO of each datum at T = 1, a lower bound of its log-likelihood.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        n_draws : int, default=1
            Draws of z for each; the estimate is unbiased with any number.

        Returns
        -------
        ndarray of shape (n_samples,)
            In nats.
        """
        return self._average(X, n_draws, lambda weights: weights.mean(dim=0))

    def score_samples(self, X: Any, *, n_draws: int = 100) -> NDArray[np.float64]:
        r"""The log-likelihood of each datum by importance sampling.

        .. math::
           \log \frac1K \sum_k \frac{p(x, z_k)}{q(z_k \mid x)}, \quad z_k \sim q(z \mid x)

        (Burda, Grosse, Salakhutdinov 2016, *Importance weighted autoencoders*): in
        expectation a lower bound that rises with K, from the ELBO to :math:`\log p(x)`.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        n_draws : int, default=100
            K.

        Returns
        -------
        ndarray of shape (n_samples,)
            In nats.
        """
        return self._average(X, n_draws, importance_weighted)

    def dead_units(self, X: Any) -> dict[str, NDArray[np.bool_]]:
        """Which rectified units are positive for none of these images.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        dict of str to ndarray of bool, of shape (n_units,)
            For ``"encoder 1"``, ... from the pixels on and ``"decoder 1"``, ... from z on,
            where the decoder is given one draw of z from q for each image.
        """
        noise, network = self._draws(), self.network_

        def dead(x: Tensor) -> NDArray[np.bool_]:
            z, _ = network.log_weights(x, 1, noise)
            layers = [*network.encoder.activations(x), *network.decoder.activations(z)]
            return numbers(torch.cat(never_positive(layers)))[None]

        every = np.all(self._by_blocks(X, 1, dead), axis=0)
        widths = [layer.out_features for layer in network.encoder.layers]
        names = [f"{part} {i + 1}" for part in ("encoder", "decoder") for i in range(len(widths))]
        ends = np.cumsum([*widths, *widths[::-1]])[:-1]
        return dict(zip(names, np.split(every, ends), strict=True))

    # ----------------------------------------------------------------- details

    def _average(
        self, X: Any, n_draws: int, average: Callable[[Tensor], Tensor]
    ) -> NDArray[np.float64]:
        """Some mean of each datum's log weights."""
        noise = self._draws()
        if not isinstance(n_draws, Integral) or n_draws < 1:
            raise ValueError(f"'n_draws' must be an int in the range [1, inf). Got {n_draws!r}.")

        def of(x: Tensor) -> NDArray[np.float64]:
            parts = []
            for first in range(0, int(n_draws), BLOCK):
                n = min(BLOCK, int(n_draws) - first)
                parts.append(self.network_.log_weights(x, n, noise)[1].double())
            return numbers(average(torch.cat(parts)))

        return self._by_blocks(X, int(n_draws), of)

    @torch.no_grad()
    def _by_blocks(self, X: Any, n_draws: int, of: Callable[[Tensor], NDArray]) -> NDArray:
        """A function of rows, of as many at a time as fit."""
        X = self._check_X(X)
        size = max(1, BLOCK // n_draws)
        blocks = (self._tensor(X[first : first + size]) for first in range(0, len(X), size))
        return np.concatenate([of(block) for block in blocks])

    def _layers(self) -> list[int]:
        """`hidden`, checked."""
        hidden = self.hidden
        listed = isinstance(hidden, Sequence | np.ndarray) and not isinstance(hidden, str)
        if not (listed and len(hidden) and all(_is_count(width) for width in hidden)):
            raise ValueError(
                f"The 'hidden' parameter of {type(self).__name__} must be a sequence of ints in "
                f"the range [1, inf), at least one. Got {hidden!r} instead."
            )
        return [int(width) for width in hidden]

    def _check_X(self, X: Any, reset: bool = False) -> NDArray[np.float32]:
        X = validate_data(self, X, reset=reset, accept_sparse="csr", dtype=np.float32, order="C")
        values = X.data if sparse.issparse(X) else X
        if values.size and not (values.min() >= 0 and values.max() <= 1):
            raise ValueError(
                f"{type(self).__name__} needs pixels in [0, 1], which are taken as "
                f"probabilities. X has values from {values.min():g} to {values.max():g}: divide "
                "by the largest that a pixel can have, 255 in images of bytes."
            )
        return X.toarray() if sparse.issparse(X) else X

    @property
    def _n_features_out(self) -> int:
        return self.network_.n_components

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = True
        tags.transformer_tags.preserves_dtype = ["float32"]
        return tags


def _is_count(width: Any) -> bool:
    return isinstance(width, Integral) and not isinstance(width, bool) and width >= 1
