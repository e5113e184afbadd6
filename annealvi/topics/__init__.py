"""From texts to topics that people can read."""

from annealvi.topics.choice import Choice, choose
from annealvi.topics.editing import drop, merge, reduce, refine

__all__ = ["Choice", "choose", "drop", "merge", "reduce", "refine"]
