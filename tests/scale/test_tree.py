"""Sums over a tree do not depend on who adds what, or when."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from annealvi.scale.tree import TreeSum
from tests.asserts import refused


def pairs(one, other):
    """A sum that shows its shape."""
    return (one, other)


def test_shapes():
    shapes = {1: 0, 2: (0, 1), 3: ((0, 1), 2), 5: (((0, 1), (2, 3)), 4)}
    shapes[6] = (((0, 1), (2, 3)), (4, 5))
    for n_leaves, shape in shapes.items():
        tree = TreeSum(n_leaves, pairs)
        for number in range(n_leaves):
            tree.add(number, number)
        assert tree.total() == shape


@given(st.integers(1, 40), st.integers(1, 5), st.randoms(use_true_random=False))
def test_parts_in_any_order(n_leaves, n_parts, random):
    values = np.random.RandomState(n_leaves).standard_normal(n_leaves) * 10.0 ** np.arange(n_leaves)
    whole = TreeSum(n_leaves, float.__add__)
    for number, value in enumerate(values.tolist()):
        whole.add(number, value)
        assert len(whole.nodes) <= n_leaves.bit_length() + 1
    parts = [TreeSum(n_leaves, float.__add__) for _ in range(n_parts)]
    numbers = list(range(n_leaves))
    random.shuffle(numbers)
    for number in numbers:
        parts[random.randrange(n_parts)].add(number, float(values[number]))
    together = TreeSum(n_leaves, float.__add__)
    for part in parts:
        together.update(part.nodes)
    assert together.total() == whole.total()  # to the last bit


def test_missing_leaves():
    tree = TreeSum(3, pairs)
    tree.add(0, "a")
    tree.add(2, "c")
    refused("all 3 terms. Some were not added", tree.total)
