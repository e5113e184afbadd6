"""Small topic models for the tests of summaries."""

import functools

import numpy as np

from annealvi import TemperedLDA
from annealvi.datasets import make_topic_corpus

WORDS = np.array(["comet", "orbit", "orbits", "moon", "goal", "team", "the", "rare"])
#: Weights of words in three topics; "the" is in all.
COMPONENTS = np.array(
    [[40.0, 80, 60, 20, 1, 1, 90, 2], [1.0, 1, 1, 1, 90, 70, 80, 0], [5.0, 1, 1, 60, 1, 1, 50, 0]]
)
COUNTS = np.array(
    [
        [2, 5, 3, 1, 0, 0, 4, 1],
        [0, 0, 0, 0, 6, 4, 5, 0],
        [1, 0, 0, 9, 0, 0, 3, 0],
        [0, 1, 0, 0, 1, 1, 1, 0],
        [0, 0, 0, 0, 0, 0, 0, 0],
    ]
)
SHARES = np.array(
    [[0.8, 0.1, 0.1], [0.1, 0.9, 0.0], [0.2, 0.0, 0.8], [0.5, 0.5, 0.0], [1 / 3, 1 / 3, 1 / 3]]
)


class Given:
    """A topic model of someone else's, with the shares that it is given."""

    def __init__(self, components=COMPONENTS, shares=SHARES):
        self.components_, self.shares = components, shares

    def transform(self, X):
        return self.shares


@functools.cache
def fitted():
    """A fitted TemperedLDA and its corpus, for tests that change neither."""
    X = make_topic_corpus(80, 60, 4, random_state=0).data
    return TemperedLDA(4, max_iter=8, random_state=0).fit(X), X
