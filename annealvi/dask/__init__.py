"""Fits on Dask workers, for corpora that are too large for one machine.

This module and all workers need dask and distributed: ``pip install 'dask[array]' distributed``.
docs/do/scale.md shows how to start workers.
"""

from annealvi.dask.completion import document_completion
from annealvi.dask.estimator import TemperedLDA, document_order

__all__ = ["TemperedLDA", "document_completion", "document_order"]
