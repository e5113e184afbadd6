"""Engines: who computes the sums over shards."""
