"""log C(T), the normaliser of a tempered likelihood, estimated in several ways."""

from annealvi.partition.estimate import Conjugate, Draws, Nested, PowerGrid, log_partition
from annealvi.partition.result import LogPartition, OutOfReach, even_grid, exponential_grid

__all__ = [
    "Conjugate",
    "Draws",
    "LogPartition",
    "Nested",
    "OutOfReach",
    "PowerGrid",
    "even_grid",
    "exponential_grid",
    "log_partition",
]
