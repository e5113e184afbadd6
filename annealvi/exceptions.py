"""What a fit raises beyond Python's and scikit-learn's own errors."""

from __future__ import annotations


class DivergenceError(ArithmeticError):
    """A fit by gradients left the finite numbers; what it had before is kept."""
