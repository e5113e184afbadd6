"""Measures of fitted models, which can come from any library."""

from annealvi.metrics.classes import purity
from annealvi.metrics.held_out import document_completion, split_tokens
from annealvi.metrics.topics import (
    component_recovery,
    duplicate_topics,
    topic_checksum,
    topic_coherence,
    topic_diversity,
    topic_stability,
)

__all__ = [
    "component_recovery",
    "document_completion",
    "duplicate_topics",
    "purity",
    "split_tokens",
    "topic_checksum",
    "topic_coherence",
    "topic_diversity",
    "topic_stability",
]
