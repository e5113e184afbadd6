"""Fits of small corpora, and what the tests of several files do with them."""

from numpy.testing import assert_array_equal
from scipy import sparse

from annealvi import TemperedLDA

METHODS = ("batch", "online")


def mean_field(X, **kwargs):
    """A fit of the faithful mean field from scikit-learn's start, annealed."""
    return recommended(X, **dict(preset="sklearn", temperature="annealed") | kwargs)


def recommended(X, **kwargs):
    settings = dict(n_components=4, random_state=0, batch_size=16) | kwargs
    return TemperedLDA(**settings).fit(X)


def without_words(X, documents):
    """A copy of a corpus in which these documents have no words."""
    counts = X.toarray()
    counts[documents] = 0
    return sparse.csr_matrix(counts)


def assert_identical(one, other):
    """Two lists of arrays and numbers are the same, bit for bit."""
    assert len(one) == len(other)
    for a, b in zip(one, other, strict=True):
        assert_array_equal(a, b)
