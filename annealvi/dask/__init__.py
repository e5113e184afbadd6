"""Fits on Dask workers, for documents that are too many for one machine.

It needs dask and distributed, on the workers too: ``pip install 'dask[array]' distributed``.
docs/do/scale.md shows how to start workers.
"""

from annealvi.dask.completion import document_completion
from annealvi.dask.estimator import TemperedLDA, document_order

__all__ = ["TemperedLDA", "document_completion", "document_order"]
