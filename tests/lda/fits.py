"""Fits of small corpora, and what the tests of several files do with them."""

from unittest import mock

import numpy as np
from scipy import sparse

from annealvi import TemperedLDA
from annealvi.lda import settings as recipe
from bench import parameters

METHODS = ("batch", "online")


def mean_field(X, **kwargs):
    """An annealed fit of the mean field from random topics."""
    is_single = getattr(X, "dtype", None) == np.float32
    settings = parameters.mean_field(kwargs.get("n_components", 4))
    settings |= dict(learning_method="batch", max_iter=10, temperature="annealed")
    settings["dtype"] = "float32" if is_single else "float64"
    return recommended(X, **settings | kwargs)


def recommended(X, **kwargs):
    """A fit by the recipe; with `max_iter` one run of just so many passes."""
    settings = dict(n_components=4, random_state=0, batch_size=16) | kwargs
    if "max_iter" not in kwargs:
        return TemperedLDA(**settings).fit(X)
    return one_run(TemperedLDA(**{"n_init": 1} | settings), X)


def one_run(lda, X):
    """Fit without the passes that end a fit."""
    with mock.patch.object(recipe, "FINISH", 0):
        return lda.fit(X)


def without_words(X, documents):
    """A copy of a corpus in which these documents have no words."""
    counts = X.toarray()
    counts[documents] = 0
    return sparse.csr_matrix(counts)
