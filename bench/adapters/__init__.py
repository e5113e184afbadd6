"""One adapter for each library: the same work said in its own words.

An adapter is a module with a function ``start(problem, X, **options)`` that returns a
:class:`Fit`: called, it makes one pass over X.  Whatever is not part of a pass (parsing,
first draws, allocation of the model) is done before it returns.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from types import ModuleType
from typing import Any, NamedTuple

from numpy.typing import NDArray


@dataclass
class Fit:
    """A model that makes one pass when it is called.

    Attributes
    ----------
    one_pass : callable
    topics : callable
        Returns E[beta] as it now is, of shape (K, V).
    """

    one_pass: Callable[[], Any]
    topics: Callable[[], NDArray]

    def __call__(self) -> None:
        self.one_pass()


class Library(NamedTuple):
    """A library that is compared with.

    Attributes
    ----------
    name : str
        As the tables have it.
    module : str
        The adapter.
    distribution : str
        What pip calls it.
    """

    name: str
    module: str
    distribution: str

    def adapter(self) -> ModuleType:
        """Import it; ImportError, with the reason, where the library does not work here."""
        try:
            return importlib.import_module(f"bench.adapters.{self.module}")
        except ImportError:
            raise
        except Exception as error:  # a compiled library may fail to load in its own ways
            message = str(error).splitlines()[0]
            raise ImportError(f"{self.distribution} fails to import: {message}") from error

    def version(self) -> str | None:
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
]
