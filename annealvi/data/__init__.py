"""Data shipped with the package."""
