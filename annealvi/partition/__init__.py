"""Several estimates of log C(T), where C(T) is the normaliser of a tempered likelihood."""

from annealvi.partition.estimate import log_partition
from annealvi.partition.result import LogPartition, OutOfReach, even_grid, exponential_grid

__all__ = ["LogPartition", "OutOfReach", "even_grid", "exponential_grid", "log_partition"]
