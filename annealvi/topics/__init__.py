"""From texts to topics that people can read."""

from annealvi.topics.choice import Choice, choose
from annealvi.topics.editing import drop, merge, reduce, refine
from annealvi.topics.model import TopicModel
from annealvi.topics.summary import TopicSummary, describe
from annealvi.topics.vectorizer import TopicVectorizer

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
