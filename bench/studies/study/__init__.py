"""The parts of quality.py: the methods, the store of fits, the scores and the report."""
