"""One adapter for each library, so that all libraries do the same work.

An adapter is a module with a function ``start(problem, X, **options)`` that returns a
:class:`Fit`.  Each call of the Fit makes one pass over X.  Everything that is not part of a pass
(parsing, first draws, allocation of the model) is done by `start`.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray


@dataclass
class Fit:
    """A model that makes a pass, or a fixed number of passes, each time it is called."""

    one_pass: Callable[..., Any]
    topics: Callable[[], NDArray]  # the current E[beta], of shape (K, V)
    passes: int = 1

    def __call__(self) -> None:
        self.one_pass()


def mean_topics(weights: NDArray) -> NDArray:
    """Compute E[beta] of topics from Dirichlet parameters: each row is divided by its sum."""
    return weights / weights.sum(axis=1, keepdims=True, dtype=np.float64)


class Library(NamedTuple):
    """A library that annealvi is compared with."""

    name: str
    module: str
    distribution: str

    def adapter(self) -> ModuleType:
        """Import the adapter; raise ImportError if the library does not work on this machine."""
        try:
            return importlib.import_module(f"bench.adapters.{self.module}")
        except ImportError:
            raise
        except Exception as error:  # compiled libraries fail to load in various ways
            raise ImportError(
                f"{self.distribution} fails to import: {str(error).splitlines()[0]}"
            ) from error

    def version(self) -> str | None:
        """The installed version, or None if the library is not installed."""
        try:
            return version(self.distribution)
        except PackageNotFoundError:
            return None


SCIKIT_LEARN = Library("scikit-learn", "scikit_learn", "scikit-learn")
RIVALS = [
    Library("gensim", "gensim_lda", "gensim"),
    Library("Vowpal Wabbit", "vowpal_wabbit", "vowpalwabbit"),
    Library("BigARTM", "bigartm", "bigartm"),
    Library("tomotopy", "tomotopy_lda", "tomotopy"),
    Library("topica", "topica_lda", "topica"),
]
#: The libraries in the study of quality.
BY_NAME = {library.name: library for library in (SCIKIT_LEARN, *RIVALS)}
BY_NAME["pyrmallet"] = Library("pyrmallet", "mallet", "pyrmallet")
