"""Measurements of speed, compared with other libraries, other commits and the machine's limits."""
