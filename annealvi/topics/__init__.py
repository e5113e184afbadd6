"""From texts to topics that people can read."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from annealvi.topics.comparison import Choice
from annealvi.topics.model import TopicModel
from annealvi.topics.summary import TopicSummary, describe
from annealvi.topics.vectorizer import TopicVectorizer

if TYPE_CHECKING:
    from annealvi.topics.choice import choose
    from annealvi.topics.editing import drop, merge, reduce, refine

__all__ = [
    "Choice",
    "TopicModel",
    "TopicSummary",
    "TopicVectorizer",
    "choose",
    "describe",
    "drop",
    "merge",
    "reduce",
    "refine",
]

#: Imported when they are asked for, so that ``import annealvi`` stays fast.
_LATER = {
    "choose": "choice",
    **dict.fromkeys(["drop", "merge", "reduce", "refine"], "editing"),
}


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_LATER[name]}"), name)
