"""From texts to topics that people can read."""

from annealvi.topics.summary import TopicSummary, describe

__all__ = ["TopicSummary", "describe"]
