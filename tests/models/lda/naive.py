"""Fits of documents, their energies and log C(T), term by term."""

import numpy as np
from scipy.special import logsumexp, psi

from annealvi.models.lda import LDA, LocalOptions
from annealvi.models.lda.priors import DocumentPartition

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


def naive_log_c(gamma, topics, n_words, inverses):
    """N_d log sum_k exp(b E log theta_dk) sum_v exp(b E log beta_kv), term by term."""
    e_log_theta, e_log_beta = e_log(gamma), e_log(topics)
    found = np.zeros((len(gamma), len(inverses)))
    for d, n in enumerate(n_words):
        for m, b in enumerate(inverses):
            found[d, m] = n * logsumexp(b * (e_log_theta[d][:, None] + e_log_beta))
    return found


def log_c_of(model, X, gamma, inverses, n_threads=1):
    """log C_d(b) of documents at a given gamma, by the library."""
    partition = DocumentPartition(inverses)
    partition.refresh(model.topics)
    return partition(gamma, lengths(X), n_threads)


def naive_fit(counts, gamma, b, topics, alpha, n_iterations):
    """gamma of a document after so many iterations, its phi and its energy."""
    e_log_beta = e_log(topics)

    def responsibilities(gamma):
        scores = e_log(gamma)[:, None] + e_log_beta
        weights = np.exp(b * scores)
        return weights / weights.sum(axis=0), scores

    for _ in range(n_iterations):
        gamma = alpha + b * responsibilities(gamma)[0] @ counts
    phi, scores = responsibilities(gamma)
    return gamma, phi, float(np.sum(counts * phi * scores))


def make(n_topics=5, dtype=np.float64, *, alpha=0.1, n_iterations=200, n_threads=1, V=41, **kwargs):
    options = LocalOptions(n_iterations, 0.0, kwargs.get("start", "constant"))
    model = LDA(
        n_topics, V, alpha=alpha, eta=0.05, dtype=dtype, options=options, n_threads=n_threads
    )
    rng = np.random.RandomState(1)
    model.rng = rng
    model.topics.assign(rng.gamma(0.3, 1.0, (n_topics, V)) + 0.02)
    return model


def dense(local, n_topics):
    return local.statistics.dense(n_topics)


def lengths(X):
    return X.toarray().sum(axis=1)
