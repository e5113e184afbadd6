"""Sums in the order of a binary tree, whose shape depends only on the number of terms.

Floating-point sums depend on the order of additions.  The terms are the leaves of a tree.  Node i
of a level is the sum of nodes 2i and 2i + 1 of the level below, or equals node 2i if there is no
node 2i + 1.  So the sum is identical for any division of the leaves among processes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Generic, TypeVar

T = TypeVar("T")
#: The level of a node, which is 0 for leaves, and its number in the level.
Place = tuple[int, int]


class TreeSum(Generic[T]):
    """A sum of terms, which are the leaves of a binary tree.

    Leaves, and nodes that are sums of some leaves, may be passed in any order.  The two nodes below
    a node are added as soon as both are known.  If the leaves are passed in order, the number of
    values in memory never exceeds the number of levels.
    """

    def __init__(self, n_leaves: int, merged: Callable[[T, T], T]) -> None:
        """`merged` adds two terms, and may change the first."""
        self._last_leaf = n_leaves - 1
        self._merged = merged
        #: The sums that are known, and cannot be added further yet.
        self.nodes: dict[Place, T] = {}

    def add(self, number: int, value: T) -> None:
        """Add the leaf with this number, counted from 0."""
        self._add((0, number), value)

    def update(self, nodes: Mapping[Place, T]) -> None:
        """Add the nodes of another sum over the same tree, with other leaves."""
        for place, value in nodes.items():
            self._add(place, value)

    def total(self) -> T:
        """Return the sum of all leaves."""
        root = self._last_leaf.bit_length(), 0
        if root not in self.nodes:
            raise ValueError(f"The sum needs all {self._last_leaf + 1} terms. Some were not added.")
        return self.nodes[root]

    def _add(self, place: Place, value: T) -> None:
        """Add a node, and all nodes above it whose other node is known."""
        level, number = place
        # `_last_leaf >> level` is the number of the level's last node, which is 0 for the root
        while self._last_leaf >> level:
            sibling = number ^ 1  # the node 2i + 1 of node 2i, or the reverse
            # a node without a sibling becomes the node above
            if sibling <= self._last_leaf >> level:
                sibling_value = self.nodes.pop((level, sibling), None)
                if sibling_value is None:
                    break  # wait until the other node is added
                left, right = (value, sibling_value) if number < sibling else (sibling_value, value)
                value = self._merged(left, right)
            level += 1
            number >>= 1
        self.nodes[level, number] = value
