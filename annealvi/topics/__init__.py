"""Topic models of texts, and functions that describe, edit and check their topics."""

from annealvi.topics.adding import add_topics, split_topic
from annealvi.topics.choice import Choice, choose_n_topics
from annealvi.topics.comparison import compare_topics
from annealvi.topics.editing import drop_topics, merge_topics, reduce_topics, refine_topics
from annealvi.topics.effects import Effects, estimate_effects
from annealvi.topics.model import TopicModel
from annealvi.topics.paper import write_table
from annealvi.topics.passages import split_passages
from annealvi.topics.reading import TopicDocument
from annealvi.topics.refits import Refits, refit
from annealvi.topics.summary import TopicSummary, describe
from annealvi.topics.validation import (
    Scores,
    Sheet,
    document_sample,
    score_answers,
    topic_intrusion,
    word_intrusion,
)
from annealvi.topics.vectorizer import TopicVectorizer

__all__ = [
    "Choice",
    "Effects",
    "Refits",
    "Scores",
    "Sheet",
    "TopicDocument",
    "TopicModel",
    "TopicSummary",
    "TopicVectorizer",
    "add_topics",
    "choose_n_topics",
    "compare_topics",
    "describe",
    "document_sample",
    "drop_topics",
    "estimate_effects",
    "merge_topics",
    "reduce_topics",
    "refine_topics",
    "refit",
    "score_answers",
    "split_passages",
    "split_topic",
    "topic_intrusion",
    "word_intrusion",
    "write_table",
]
