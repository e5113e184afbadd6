"""Pickles of estimators contain the version of annealvi; another version warns when it reads."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from annealvi._version import __version__
from annealvi.exceptions import InconsistentVersionWarning, warn_user

KEY = "_annealvi_version"


class Versioned:
    """A base class of estimators; it must precede scikit-learn's `BaseEstimator` in the bases."""

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = super().__getstate__()  # type: ignore[misc, assignment]
        return {**state, KEY: __version__}

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        state = dict(state)
        warn_of_version(type(self).__name__, state.pop(KEY, "(an older version)"))
        super().__setstate__(state)  # type: ignore[misc]


def warn_of_version(owner: str, version: str) -> None:
    """Warn if another version of annealvi wrote the file or pickle."""
    if version != __version__:
        warning = InconsistentVersionWarning(
            estimator_name=owner,
            current_sklearn_version=__version__,
            original_sklearn_version=version[:40],
        )
        warn_user(warning)
