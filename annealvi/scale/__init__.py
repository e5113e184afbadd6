"""Sums over shards of the data, in one process or in many."""
