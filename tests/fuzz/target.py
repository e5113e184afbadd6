"""What a target is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tests.fuzz.trial import Trial


@dataclass(frozen=True)
class Target:
    """One function of random calls.

    Parameters
    ----------
    name : str
    run : callable
        Called with a trial.
    covers : frozenset of str
        The public names that it calls, see :mod:`tests.fuzz.public`.
    weight : int
        Cases of this target among those of all.
    """

    name: str
    run: Callable[[Trial], None]
    covers: frozenset[str]
    weight: int = 1
