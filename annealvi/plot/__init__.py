"""Matplotlib figures of temperatures, learning curves, components and topics.

:mod:`annealvi.plot.interactive` draws the figures of topics with plotly.
"""

from annealvi.plot.estimators import (
    plot_choice,
    plot_components,
    plot_learning_curves,
    plot_temperature,
)
from annealvi.plot.topics import (
    plot_effects,
    plot_stability,
    plot_term_ranks,
    plot_topic_dendrogram,
    plot_topic_heatmap,
    plot_topic_map,
    plot_topic_words,
    plot_topics_by_group,
    plot_topics_over_time,
    plot_topics_together,
    plot_words_by_group,
    plot_words_over_time,
)

__all__ = [
    "plot_choice",
    "plot_components",
    "plot_effects",
    "plot_learning_curves",
    "plot_stability",
    "plot_temperature",
    "plot_term_ranks",
    "plot_topic_dendrogram",
    "plot_topic_heatmap",
    "plot_topic_map",
    "plot_topic_words",
    "plot_topics_by_group",
    "plot_topics_over_time",
    "plot_topics_together",
    "plot_words_by_group",
    "plot_words_over_time",
]
