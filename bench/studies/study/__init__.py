"""The parts of quality.py: what is fitted, where it is kept, how it is scored and reported."""
