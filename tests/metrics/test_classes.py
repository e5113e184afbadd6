"""Purity against counting by hand."""

import numpy as np
import pytest

from annealvi.metrics import purity


def test_purity_counts_the_most_frequent_label_of_each_class():
    rng = np.random.RandomState(0)
    labels, classes = rng.choice(["a", "b", "c"], 90), rng.randint(5, size=90)
    best = sum(np.unique(labels[classes == k], return_counts=True)[1].max() for k in range(5))
    assert purity(labels, classes) == best / 90
    assert purity(labels, labels) == purity(labels, range(90)) == 1
    assert purity(labels, np.zeros(90)) == np.unique(labels, return_counts=True)[1].max() / 90


@pytest.mark.parametrize(("one", "other"), [([1, 2], [1]), ([], []), (3, [1])])
def test_bad_labels(one, other):
    with pytest.raises(ValueError):
        purity(one, other)
