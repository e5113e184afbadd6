"""Small estimators and chains of each kind, and what several tests do with them."""

import copy

import numpy as np
import torch

from annealvi import Annealed
from annealvi.deep import (
    HierarchicalPosterior,
    PoissonDEF,
    ProximityPenalty,
    SigmoidBeliefNetwork,
    VariationalAutoencoder,
)
from annealvi.deep.energies import ENERGIES
from annealvi.deep.hvi import Chain
from annealvi.deep.training import Noise
from annealvi.schedules import Linear

X = (np.random.RandomState(0).random_sample((40, 12)) < 0.3).astype(np.float32)
FEW = dict(max_iter=12, batch_size=16, random_state=0)
WARM = dict(annealing=0.5, schedule=Linear(0.1, 1.0))
GATED = dict(n_transitions=1, transition_hidden=4, units="gated")
ORTHOGONAL = ProximityPenalty("orthogonal", magnitude=0.1)
MODELS = {
    "sbn": SigmoidBeliefNetwork((4, 3), temperature=Annealed(3.0), proximity="kl", **FEW),
    "poisson": PoissonDEF(3, n_local_steps=3, n_draws=8, proximity="entropy", **FEW),
    "vae": VariationalAutoencoder(3, hidden=(8,), proximity=ORTHOGONAL, **FEW),
    "chain": VariationalAutoencoder(3, hidden=(8,), n_transitions=2, calibration=0.5, **FEW),
    "gated": VariationalAutoencoder(3, hidden=(8,), **GATED, **WARM, **FEW),
    "posterior": HierarchicalPosterior(ENERGIES["d"], 2, 2, n_init=2, hidden=4, **WARM, **FEW),
    "flow": HierarchicalPosterior(ENERGIES["d"], 2, 2, transition="flow", hidden=4, **FEW),
}


def model(name, **parameters):
    return copy.deepcopy(MODELS[name]).set_params(**parameters)


def weights(fitted):
    return torch.cat([part.detach().cpu().flatten() for part in fitted.network_.parameters()])


def answers(estimator):
    """All that a fitted estimator says, as bytes."""
    sample = estimator.sample(3)
    parts = [estimator.score(X), *(sample if isinstance(sample, tuple) else [sample])]
    if hasattr(estimator, "transform"):
        parts.append(estimator.transform(X))
    if hasattr(estimator, "lower_bounds_"):
        parts += [estimator.lower_bounds_, estimator.best_, estimator.lower_bound_]
    state = estimator.network_.state_dict()
    parts += [part for part in state.values() if isinstance(part, torch.Tensor)]
    history = {name: part for name, part in estimator.history_.items() if name != "seconds"}
    parts += [estimator.temperature_path_, *history.values()]
    return [np.asarray(part).tobytes() for part in parts], list(history)


class DoubleNoise(Noise):
    """In double precision, so that tolerances can be tight."""

    def normal(self, *shape):
        return super().normal(*shape).double()


def chain(seed=0, dim=2, n_transitions=3, **options):
    """A chain of transitions in double precision."""
    torch.manual_seed(seed)
    return Chain(dim, n_transitions, **options).double()


def each_gradient(parameters, penalty, cost):
    """The gradient of a penalty, beside its finite differences, for each of some parameters."""
    memory = penalty.memory
    cost().backward()
    for part in parameters:
        differences = torch.zeros_like(part)
        for place in np.ndindex(*part.shape):
            values = []
            for epsilon in (1e-6, -2e-6):
                with torch.no_grad():
                    part[place] += epsilon
                penalty.memory = memory
                values.append(float(cost().detach()))
            with torch.no_grad():
                part[place] += 1e-6
            differences[place] = (values[0] - values[1]) / 2e-6
        yield part.grad, differences
