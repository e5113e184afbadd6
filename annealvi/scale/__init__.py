"""Sums over shards (parts) of the data, which are computed in one process or in several."""
