"""Variational autoencoders: the networks, the objectives of a step, and the estimator."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from functools import partial
from itertools import pairwise
from numbers import Integral
from typing import Any, ClassVar, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.validation import check_is_fitted, check_non_negative
from torch import Tensor, nn
from torch.distributions import Normal
from torch.nn import Linear, Module, ModuleList, functional

from annealvi.checks import COUNT, SHARE, Interval, check_width
from annealvi.deep import hvi
from annealvi.deep.estimator import AmortisedEstimator, Bound, Widths, plan_beta
from annealvi.deep.objectives import avo, log_densities
from annealvi.deep.penalties import STATISTICS, Statistic
from annealvi.deep.training import Noise, Outcome, numbers
from annealvi.exceptions import BadParameter
from annealvi.files.schema import Integer, Text
from annealvi.matrices import check_matrix
from annealvi.schedules import Schedule

#: For each value of `units`: the units of encoder and decoder, and of the transitions.
UNITS = {"relu": ("relu", "elu"), "gated": ("gated", "gated"), "gated-elu": ("gated", "elu")}


class Stack(Module):
    """Layers of rectified or gated units."""

    # A gated unit is h = (W x + b) * sigmoid(V x + c), elementwise (Dauphin, Fan, Auli, Grangier
    # 2017, Language modeling with gated convolutional networks).  W and V are the upper and the
    # lower half of one matrix.

    def __init__(self, n_in: int, widths: Sequence[int], units: str = "relu") -> None:
        """Make a layer for each of `widths`; `units` is "relu" or "gated"."""
        super().__init__()
        self.widths = list(widths)
        self.gated = units == "gated"
        self.maps = 2 if self.gated else 1  # number of outputs of the linear map for each unit
        sizes = pairwise([n_in, *widths])
        self.layers = ModuleList(Linear(n, self.maps * width) for n, width in sizes)

    def activations(self, x: Tensor) -> list[Tensor]:
        """Return the output of each layer."""
        outputs = []
        for layer in self.layers:
            x = functional.glu(layer(x), dim=-1) if self.gated else functional.relu(layer(x))
            outputs.append(x)
        return outputs

    def forward(self, x: Tensor) -> Tensor:
        """Return the output of the last layer."""
        return self.activations(x)[-1]


@torch.no_grad()
def start_orthogonal(layer: Any, maps: int = 1) -> None:
    """Make each of the `maps` matrices in a layer's weights orthogonal, and set its bias to 0.

    The weights of a layer of gated units contain two matrices, one below the other.
    """
    for matrix in layer.weight.chunk(maps):  # views, so that the layer's weights are changed
        nn.init.orthogonal_(matrix)
    nn.init.zeros_(layer.bias)


class GaussianHead(Module):
    """The Gaussian q_0; its means and standard deviations depend on the encoder's output."""

    def __init__(self, n_in: int, dim: int) -> None:
        """Make the maps from `n_in` outputs of the encoder to z_0 in `dim` dimensions."""
        super().__init__()
        self.mean = Linear(n_in, dim)
        self.spread = Linear(n_in, dim)

    def moments(self, context: Tensor) -> tuple[Tensor, Tensor]:
        """Return means and standard deviations of z_0."""
        return self.mean(context), functional.softplus(self.spread(context)) + hvi.LEAST_SIGMA

    def forward(self, epsilon: Tensor, context: Tensor) -> tuple[Tensor, Tensor]:
        """Return draws of z_0 from standard normal numbers, and their log densities."""
        return hvi.gaussian_draws(epsilon, *self.moments(context))


class AutoencoderNetwork(Module):
    """The encoder, the posterior and the decoder."""

    def __init__(
        self,
        n_features: int,
        n_components: int,
        hidden: Sequence[int],
        *,
        n_transitions: int = 0,
        transition_hidden: int = 64,
        units: str = "relu",
    ) -> None:
        """Make the networks of images of `n_features` pixels; see VariationalAutoencoder."""
        super().__init__()
        self.n_components = n_components
        coder, activation = UNITS[units]  # units of encoder and decoder, and of transitions
        self.encoder = Stack(n_features, hidden, coder)
        self.head = GaussianHead(hidden[-1], n_components)
        for layer in self.encoder.layers:
            start_orthogonal(layer, self.encoder.maps)
        for head in (self.head.mean, self.head.spread):
            start_orthogonal(head)
        self.decoder = Stack(n_components, hidden[::-1], coder)
        self.pixels = Linear(hidden[0], n_features)
        self.chain = None
        if n_transitions:
            self.chain = hvi.Chain(
                n_components,
                n_transitions,
                hidden=transition_hidden,
                activation=activation,
                context=hidden[-1],
                base=self.head,
                **hvi.NEAR_IDENTITY,
            )

    def encoder_weights(self) -> list[Tensor]:
        """Return the weights of all layers from x to q_0, each of shape (outputs, inputs)."""
        layers = (*self.encoder.layers, self.head.mean, self.head.spread)
        return [layer.weight for layer in layers]  # type: ignore[misc]

    def posterior(self, context: Tensor) -> Normal:
        """Return q_0(z | x)."""
        return Normal(*self.head.moments(context), validate_args=False)

    def centre(self, x: Tensor) -> Tensor:
        """Return the mean of q_0(z | x), passed through the means of the transitions."""
        context = self.encoder(x)
        mean, _ = self.head.moments(context)
        if self.chain is not None:
            for t in range(self.chain.n_transitions):
                # the chain has one run, on the first axis
                means, _ = self.chain.forwards.moments(mean[None], t, context)
                mean = means[0]
        return mean

    def logits(self, z: Tensor) -> Tensor:
        """Return the log-odds of the pixels."""
        return self.pixels(self.decoder(z))

    def log_likelihood(self, x: Tensor, z: Tensor) -> Tensor:
        """Return log p(x | z), of the shape of z without its last axis."""
        logits = self.logits(z)
        if logits.shape == x.shape:  # PyTorch's fused function does not broadcast
            loss = functional.binary_cross_entropy_with_logits(logits, x, reduction="none")
            return -loss.sum(dim=-1)
        # several draws of z for each x: log Bern(x; sigmoid(a)) = x a - log(1 + e^a)
        return (x * logits - functional.softplus(logits)).sum(dim=-1)

    def log_joint(self, x: Tensor, z: Tensor) -> Tensor:
        """Return log p(x, z), of the shape of z without its last axis."""
        return self.log_likelihood(x, z) + hvi.standard_log_density(z)

    def bound(
        self, x: Tensor, context: Tensor, noise: Noise, temperature: float = 1.0, beta: float = 1.0
    ) -> tuple[Tensor, Tensor]:
        """Return the objective of one step without a chain, and the ELBO, averaged over data."""
        # beta multiplies all terms but log p(x | z), and T the entropy
        # log p(x | z) is estimated from one draw, the other terms are exact: E[log p(z)] = -1/2
        # sum(mu^2 + sigma^2 + log 2 pi) and H = 1/2 sum(log sigma^2 + 1 + log 2 pi)
        q = self.posterior(context)
        z = torch.addcmul(q.mean, q.stddev, noise.normal(*q.mean.shape))
        log_prior = hvi.standard_log_density(q.mean) - 0.5 * q.variance.sum(dim=-1)
        entropy = q.entropy().sum(dim=-1)
        elbo = (self.log_likelihood(x, z) + log_prior + entropy).mean()
        tempered = elbo
        if beta * temperature != 1:
            tempered = elbo + (beta * temperature - 1.0) * entropy.mean()
        if beta != 1:
            tempered = tempered + (beta - 1.0) * log_prior.mean()
        return tempered, elbo

    def chain_bound(
        self,
        x: Tensor,
        context: Tensor,
        noise: Noise,
        temperature: float = 1.0,
        beta: float = 1.0,
        calibration: float = 0.0,
        decoder_steps: str = "all",
    ) -> tuple[Tensor, Tensor]:
        """Return the objective of one step with a chain, and the ELBO, averaged over data."""
        # with the probability `calibration` it is the sum of the annealed objectives, otherwise the
        # ELBO; `decoder_steps` is explained in VariationalAutoencoder
        chain = self.chain
        assert chain is not None
        epsilon = chain.draw_noise(len(x), noise)
        annealed = calibration > 0 and noise.coin(calibration)
        path = chain(epsilon, context=context, detach=annealed)
        log_weight = chain.log_weight(path)

        def target(z: Tensor) -> Tensor:
            """Return log p(x | z) + beta log p(z)."""
            return self.log_likelihood(x, z) + beta * hvi.standard_log_density(z)

        if annealed:
            log_f = log_densities(path, target, self, follows=decoder_steps == "all")
            bound = avo(path, log_f, beta=beta * temperature, prior_weight=beta)
            log_f = log_f[-1]  # at z_T
        else:
            log_f = target(path.z[-1])
            bound = log_f - beta * temperature * log_weight
        # the ELBO has the prior with weight 1
        log_joint = log_f + (1.0 - beta) * hvi.standard_log_density(path.z[-1])
        return bound.mean(), (log_joint - log_weight).mean()

    def statistic(self, statistic: Statistic, x: Tensor, context: Tensor | None = None) -> Tensor:
        """Return a statistic of q_0 for a proximity penalty; `context` is the encoder's output."""
        if statistic.of_weights:
            return statistic((), self.encoder_weights())
        prior = Normal(x.new_zeros(()), x.new_ones(()))
        return statistic([(self.posterior(self.encoder(x) if context is None else context), prior)])

    def log_weights(self, x: Tensor, n_draws: int, noise: Noise) -> tuple[Tensor, Tensor]:
        """Return draws of z, and log p(x, z) - log q(z | x) of each draw."""
        # with a chain the weight is log p(x, z_T) + log r(z_<T | z_T) - log q(z_<=T), and the mean
        # of its exponential is p(x) too
        context = self.encoder(x)
        if self.chain is None:
            z, log_q = self.head(noise.normal(n_draws, len(x), self.n_components), context)
        else:
            epsilon = self.chain.draw_noise(n_draws * len(x), noise)
            # all draws of all data are rows of the chain's only run
            path = self.chain(epsilon, context=context.repeat(n_draws, 1))
            # z_T in run 0
            z = path.z[-1, 0].unflatten(0, (n_draws, len(x)))
            log_q = self.chain.log_weight(path)[0].unflatten(0, (n_draws, len(x)))
        return z, (self.log_joint(x, z) - log_q).double()  # for accurate averages

    def sample(self, n_samples: int, noise: Noise) -> tuple[Tensor, Tensor]:
        """Draw x and z from p."""
        z = noise.normal(n_samples, self.n_components)
        return noise.bernoulli(self.logits(z).sigmoid()), z


@dataclass(eq=False, repr=False)
class VariationalAutoencoder(AmortisedEstimator):
    r"""Variational autoencoder of images, with Gaussian latent variables.

    .. math::
       z \sim N(0, I), \quad x_d \sim \mathrm{Bern}(\mathrm{decoder}(z)_d), \quad
       q(z \mid x) = N(\mu(x), \mathrm{diag}\,\sigma(x)^2)

    Encoder and decoder are networks of rectified units, fitted by gradients of the ELBO.  Three
    options can help avoid poor optima: a penalty on fast changes of q (`proximity`), annealing
    (`temperature`), and a more flexible posterior, in which a Markov chain of `n_transitions` steps
    starts from the Gaussian.

    Parameters
    ----------
    n_components : int, default=100
        Number of latent variables.
    hidden : sequence of int, default=(200, 200)
        Number of units of each layer of the encoder; the layer nearest the pixels comes first.
        The decoder has the same layers in reverse order.
    proximity : None, str, callable or ProximityPenalty, default=None
        A penalty on fast changes of q.  Pass the name of the statistic whose changes are penalised
        (``"orthogonal"``, ``"entropy"``, ``"kl"``, ``"mean"``, ``"variance"`` or
        ``"mean_variance"``), your own statistic, or a :class:`annealvi.deep.ProximityPenalty`,
        which also sets the magnitude of the penalty.  ``"orthogonal"`` is :math:`W W^T` for the
        weights W of each layer that computes q.  This penalty reduces the number of units that are
        0 for all images (see `dead_units`).  The other names are statistics of the Gaussian q.
    temperature : float, "annealed" or Temperature, default=1
        The temperature T of each step: a number >= 1, ``"annealed"``, or an object of
        :mod:`annealvi.temperature` that does not learn T.  T multiplies the entropy of q, whatever
        the `form` of the object.  T > 1 keeps q broad; T = 1 is plain variational inference.
    n_transitions : int, default=0
        The number n of transitions (steps of the Markov chain).  With 0 the posterior is the
        Gaussian.  Transitions make steps slower.  `transform` uses means instead of random draws,
        so its result approximates the posterior mean.
    transition_hidden : int, default=64
        Number of hidden units of each transition.
    units : {"relu", "gated", "gated-elu"}, default="relu"
        The hidden units of encoder and decoder.  A gated unit is a linear unit times a sigmoid
        unit, and takes about twice the time of a rectified unit.  With ``"gated"`` transitions also
        have gated units; otherwise they have ELU units.  The input of gated transitions is the
        encoder's output, scaled to mean 0 and variance 1.  Huang et al. use ``"gated-elu"``.
    calibration : float, default=0.0
        The probability, in [0, 1], that a step maximises annealed objectives instead of the ELBO.
        Transition t of n is then fitted to :math:`p(z) p(x \mid z)^{t/n}`.  Not used if n = 0.
    decoder_steps : {"all", "elbo"}, default="all"
        Which steps update the decoder.  With ``"elbo"``, steps with annealed objectives do not
        update the decoder.  With ``"all"``, these steps update the decoder from draws of the last
        transition only, because earlier draws are meant to be broader than the posterior.
    annealing : float, default=0.0
        The fraction of the steps, in [0, 1], over which beta follows `schedule` (a warm-up).
        Afterwards beta is 1.  Beta is the weight of all terms of the objective except log p(x | z).
        Without transitions these terms are the divergence KL(q(z | x), p(z)).
    schedule : Schedule or None, default=None
        How beta changes during the warm-up; see :mod:`annealvi.schedules`.  None means
        ``Linear(0.01, 1)``.
    learning_rate : float, default=1e-3
        The step size of Adam.  Use a smaller step size if the fit diverges.
    batch_size : int, default=128
        Number of images in each step.
    max_iter : int, default=10000
        Number of steps.
    device : str, default="cpu"
        The device on which to fit: ``"cpu"``, ``"cuda"`` or ``"cuda:<index>"``.
    random_state : int, RandomState instance or None, default=None
        The random seed of the weights and of all draws.  The same seed gives the same fit on a CPU
        and, up to rounding, on a GPU.
    verbose : int, default=0
        If not 0, show a progress bar.
    callback : callable or list of callables, default=None
        Called as ``callback(estimator, monitor)`` after each step.  The callback can use the
        estimator, write into `history_` with ``monitor.record(name=value)``, and raise
        ``StopIteration`` to end the fit.  Examples are :class:`annealvi.callbacks.Checkpoint` and
        :class:`annealvi.callbacks.ProgressBar`.  From scikit-learn 1.9 on, `set_callbacks` sets
        scikit-learn's own callbacks.

    Attributes
    ----------
    network_ : AutoencoderNetwork
        The PyTorch module with encoder, posterior and decoder.
    temperature_path_ : ndarray of shape (n_iter,)
        The temperature of each step.
    history_ : dict of str to ndarray
        About a thousand records of ``pass``, ``step``, ``temperature``, ``seconds`` and ``elbo``.
        ``elbo`` is the ELBO per datum at T = 1, averaged over all steps since the last record,
        including steps with annealed objectives.
    n_iter_ : int
        Number of steps made.
    n_features_in_ : int
        Number of pixels.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the pixels, if X has string column names.

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

    STATISTICS = STATISTICS
    BLOCK = 4096
    ARCHITECTURE: ClassVar[dict] = {
        "n_components": Integer(1),
        "hidden": Widths(),
        "n_transitions": Integer(),
        "transition_hidden": Integer(1),
        "units": Text(*UNITS),
    }
    _parameter_constraints: ClassVar[dict] = {
        **AmortisedEstimator._parameter_constraints,
        "n_components": COUNT,
        "hidden": "no_validation",  # Widths checks it
        "n_transitions": [Interval(Integral, 0, None, closed="left")],
        "transition_hidden": COUNT,
        "units": [StrOptions(set(UNITS))],
        "calibration": SHARE,
        "decoder_steps": [StrOptions({"all", "elbo"})],
        "annealing": SHARE,
        "schedule": [None, callable],
    }

    n_components: int = 100
    _: KW_ONLY
    hidden: Sequence[int] = (200, 200)
    n_transitions: int = 0
    transition_hidden: int = 64
    units: Literal["relu", "gated", "gated-elu"] = "relu"
    calibration: float = 0.0
    decoder_steps: Literal["all", "elbo"] = "all"
    annealing: float = 0.0
    schedule: Schedule | None = None

    def _network(self, architecture: Mapping[str, Any], X: Any = None) -> AutoencoderNetwork:
        """Return a network with random weights, which do not depend on the data X."""
        names = ("n_features", *self.ARCHITECTURE)
        return AutoencoderNetwork(**{name: architecture[name] for name in names})

    def _bound(self, network: AutoencoderNetwork, X: Any, noise: Noise) -> Bound:
        """Return the function that computes the bound of a minibatch of X."""
        # the method that returns the objective of a step and the ELBO
        objective: Callable[..., tuple[Tensor, Tensor]] = network.bound
        if network.chain is not None:
            if self.decoder_steps == "elbo" and self.calibration == 1:
                raise BadParameter(
                    "calibration",
                    "below 1 with decoder_steps='elbo', so that some steps train the decoder",
                    self.calibration,
                )
            objective = partial(
                network.chain_bound,
                calibration=float(self.calibration),
                decoder_steps=self.decoder_steps,
            )
        betas = plan_beta(self.schedule, float(self.annealing), int(self.max_iter))

        def bound(rows: Tensor, t: float, step: int) -> Outcome:
            """Return the outcome of a step at temperature t; `rows` are row numbers of X."""
            x = X[rows]
            context = network.encoder(x)  # the features of the data, of which q_0 is a function
            tempered, elbo = objective(x, context, noise, temperature=t, beta=betas[step])

            def statistic(f: Statistic, averaged: AutoencoderNetwork | None = None) -> Tensor:
                """Return f of q_0, or of the q_0 of a network with averaged parameters."""
                return averaged.statistic(f, x) if averaged else network.statistic(f, x, context)

            return Outcome(-tempered, elbo, t, statistic)

        return bound

    def inverse_transform(self, X: Any) -> NDArray[np.float32]:
        """Decode latent variables to images, which contain a probability for each pixel.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_components)
            Latent variables, as `transform` returns them.

        Returns
        -------
        ndarray of shape (n_samples, n_features), float32
        """
        check_is_fitted(self)
        Z = check_matrix(X, dtype=np.float32, accept_sparse=False)
        owner = f"inverse_transform of {type(self).__name__}"
        check_width(Z, self._n_features_out, owner, ", the number of components")
        with torch.no_grad():
            return numbers(self.network_.logits(self._tensor(Z)).sigmoid())

    def score(self, X: Any, y: Any = None) -> float:
        """Return the mean of `elbo`, with one draw per datum; higher is better.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        y : Ignored

        Returns
        -------
        float
            The mean ELBO, in nats.
        """
        return float(np.mean(self.elbo(X)))

    def elbo(self, X: Any, *, n_draws: int = 1) -> NDArray[np.float64]:
        """Return the ELBO of each datum at T = 1, a lower bound of its log-likelihood.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        n_draws : int, default=1
            Number of draws of z for each datum.  More draws make the estimate less noisy.  The
            estimate is unbiased for any number of draws.

        Returns
        -------
        ndarray of shape (n_samples,)
            The ELBO of each datum, in nats.
        """
        return self._average(X, n_draws, lambda weights: weights.mean(dim=0))

    def dead_units(self, X: Any) -> dict[str, NDArray[np.bool_]]:
        """Find the dead units: rectified units that are 0 for all of these images.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        dict of str to ndarray of bool, of shape (n_units,)
            Whether each unit of a layer is dead.  The keys are the layers ``"encoder 1"``, ...,
            counted from the pixels, and ``"decoder 1"``, ..., counted from z.  The decoder's input
            is one draw of z from q for each image.

        Raises
        ------
        ValueError
            If the units are gated, because only rectified units can be dead.
        """
        noise = self._draws()
        network = self.network_
        if network.encoder.gated:
            raise ValueError("dead_units needs a model with units='relu'. Got gated units.")

        def dead(x: Tensor) -> Tensor:
            """Return one row: whether each unit of any layer is 0 for all images of a block."""
            z, _ = network.log_weights(x, n_draws=1, noise=noise)
            layers = [*network.encoder.activations(x), *network.decoder.activations(z)]
            return torch.cat([~(layer.flatten(0, -2) > 0).any(dim=0) for layer in layers])[None]

        is_dead = np.all(self._by_blocks(X, n_draws=1, function=dead), axis=0)  # in all blocks
        widths = network.encoder.widths
        names = [f"{coder} {i + 1}" for coder in ("encoder", "decoder") for i in range(len(widths))]
        # the decoder's layers have the encoder's widths in reverse order
        ends = np.cumsum([*widths, *widths[::-1]])[:-1]
        return dict(zip(names, np.split(is_dead, ends), strict=True))

    def _check_values(self, values: NDArray[np.float32]) -> None:
        """Raise a ValueError if a value of X is not in [0, 1]."""
        check_non_negative(values, type(self).__name__)
        largest = np.max(values, initial=0)
        if largest > 1:
            raise ValueError(
                f"X must contain pixels in [0, 1] for {type(self).__name__}. Got "
                f"{largest:g}. Divide X by the maximum pixel value (255 for 8-bit images)."
            )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = True
        return tags
