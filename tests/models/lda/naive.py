"""Fits of documents, their energies and log C(T), term by term."""

import numpy as np
from scipy.special import logsumexp, psi

from annealvi.models.lda.priors import DocumentPartition
from tests.models.lda.pair import LDA, LocalOptions

DTYPES = (np.float32, np.float64)
EVEN = np.arange(1, 21) / 20
GRIDS = {
    "even": EVEN,
    "exponential": np.geomspace(1, 0.1, 30),
    "a few": np.array([1.0, 0.83, 0.31, 0.02]),
}


def e_log(parameters):
    parameters = np.asarray(parameters, dtype=np.float64)
    return psi(parameters) - psi(parameters.sum(axis=-1, keepdims=True))


def naive_log_c(gamma, topics, n_words, inverses, log_of=e_log):
    """N_d log sum_k exp(b E log theta_dk) sum_v exp(b E log beta_kv), term by term."""
    e_log_theta, e_log_beta = e_log(gamma), log_of(topics)
    found = np.zeros((len(gamma), len(inverses)))
    for d, n in enumerate(n_words):
        for m, b in enumerate(inverses):
            found[d, m] = n * logsumexp(b * (e_log_theta[d][:, None] + e_log_beta))
    return found


def log_c_of(model, X, gamma, inverses):
    """log C_d(b) of documents at a given gamma, by the library."""
    partition = DocumentPartition(inverses)
    partition.refresh(model, 1)
    return partition(gamma, lengths(X), 1)


def fits(X, begin, b, topics, alpha, n_iterations, *, eps=0.0, kappa=0.0, log_of=e_log):
    """gamma of documents after so many iterations, their statistics, energies and log norms."""
    log_beta, statistics, rows = log_of(topics), np.zeros(topics.shape), []
    b = np.broadcast_to(b, len(X))
    for counts, gamma, b_d in zip(X, np.broadcast_to(begin, (len(X), len(topics))), b, strict=True):
        for left in range(n_iterations, -1, -1):
            scores = (e_log(gamma) - kappa / gamma)[:, None] + log_beta
            weights = np.exp(b_d * scores)
            phi = weights / (weights.sum(axis=0) + eps)
            gamma = alpha + b_d * phi @ counts if left else gamma
        statistics += b_d * phi * counts
        norm = counts @ np.log(weights.sum(axis=0))
        rows.append((gamma, np.sum(counts * phi * scores), norm))
    gammas, energies, norms = map(np.array, zip(*rows, strict=True))
    return gammas, statistics, energies, norms


def make(n_topics=5, dtype=np.float64, *, alpha=0.1, n_iterations=200, V=41, **kwargs):
    options = LocalOptions(n_iterations, 0.0, **kwargs)
    model = LDA(n_topics, V, alpha=alpha, eta=0.05, dtype=dtype, options=options)
    rng = np.random.RandomState(1)
    model.rng = rng
    model.assign(rng.gamma(0.3, 1.0, (n_topics, V)) + 0.02)
    return model


def lengths(X):
    return X.toarray().sum(axis=1)
