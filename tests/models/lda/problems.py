"""Random problems for LDA, and its objective from step to step."""

import numpy as np
from scipy import sparse

from annealvi.model import Batch


def random_corpus(seed):
    """Counts of 30 documents, the shape of a model's topics, and a generator to go on with."""
    rng = np.random.RandomState(seed)
    n_topics, n_features = rng.randint(1, 12), rng.randint(2, 80)
    X = sparse.csr_matrix(rng.poisson(rng.choice([0.1, 1.0, 5.0]), (30, n_features)) * 1.0)
    return X, (n_topics, n_features), rng


def bounds_of_steps(model, X, tempering, n_steps):
    """The objective after each local step and each global step, in batch."""
    batch = Batch(X, slice(0, X.shape[0]))
    bounds = []
    for _ in range(n_steps):
        local = model.local_step(batch, tempering)
        bounds.append(model.elbo(X, model.gamma, tempering))
        model.global_step(local.statistics, 1.0, 1.0, tempering)
        bounds.append(model.elbo(X, model.gamma, tempering))
    return np.array(bounds)
