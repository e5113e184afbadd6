"""Several estimates of log C(T), where C(T) is the normaliser of a tempered likelihood."""

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
