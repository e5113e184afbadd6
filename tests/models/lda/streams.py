"""Streams of short documents: a minibatch has few of the words."""

import numpy as np
from scipy import sparse

K, V = 5, 150  # three blocks of the vocabulary, the last not full


def stream(n_documents, n_words=6, seed=0):
    """Short documents: a minibatch has few of the words."""
    rng = np.random.RandomState(seed)
    X = np.zeros((n_documents, V))
    for row in X:
        row[rng.choice(V - 20, n_words, replace=False)] = rng.randint(1, 5, n_words)
    return sparse.csr_matrix(X)


def put(statistics, words, rows):
    """Set the rows of words in statistics, of which none was seen before."""
    own = statistics.n_rows[0] + np.arange(len(words))
    statistics.row_of[words] = own
    statistics.values[own] = 0
    statistics.values[own, : rows.shape[1]] = rows
    statistics.n_rows[0] += len(words)


def dense(statistics, n_topics):
    """The statistics of all words, of shape (V, K); words that did not occur have 0."""
    out = np.zeros((len(statistics.row_of), n_topics), statistics.values.dtype)
    out[statistics.words()] = statistics.rows(statistics.words(), n_topics)
    return out
