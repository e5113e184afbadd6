"""From texts to topics that people can read."""

from annealvi.topics.description import describe
from annealvi.topics.model import TopicModel
from annealvi.topics.summary import TopicSummary
from annealvi.topics.vectorizer import TopicVectorizer

__all__ = ["TopicModel", "TopicSummary", "TopicVectorizer", "describe"]
