"""matplotlib draws the numbers of the summary."""

import numpy as np
import pytest
from matplotlib import pyplot
from numpy.testing import assert_allclose, assert_array_equal

from annealvi import plot
from annealvi.plot import pictures


def labels_of(texts):
    return [text.get_text() for text in texts]


def render(ax):
    """Draw it: labels that looked like mathematics would raise here."""
    figure = (ax.flat[0] if isinstance(ax, np.ndarray) else ax).figure
    figure.canvas.draw()


def test_words(summary):
    axes = plot.plot_topic_words(summary, n_words=4, n_columns=2)
    render(axes)
    assert axes.shape == (2, 2)
    assert not axes[1, 1].axison
    for ax, topic in zip(axes.flat, pictures.by_size(summary), strict=False):
        assert labels_of(ax.get_yticklabels()) == summary.words(topic, 4)
        widths = [bar.get_width() for bar in ax.patches]
        assert_array_equal(widths, summary.weights(topic, 4)["probability"])
        assert ax.get_title() == f"{topic} {summary.labels[topic]}"


def test_there_are_no_more_bars_than_words(summary):
    axes = plot.plot_topic_words(summary, [0], n_words=10**30)
    render(axes)
    assert len(axes[0, 0].patches) == len(summary.feature_names)


def test_words_in_given_axes(summary):
    given = pyplot.subplots(1, 2)[1]
    assert plot.plot_topic_words(summary, [1, 0], axes=given) is given
    assert given[1].get_title().startswith("0 ")
    with pytest.raises(ValueError, match=r"'axes' .* Got 2 for 3 topics"):
        plot.plot_topic_words(summary, axes=given)


def test_map(summary):
    ax = plot.plot_topic_map(summary, documents=True)
    render(ax)
    documents, circles = ax.collections
    places = summary.map()
    assert_array_equal(circles.get_offsets(), places[["x", "y"]])
    assert len(documents.get_offsets()) == len(summary.shares)
    shares = summary.topic_shares
    assert_allclose(circles.get_sizes() / circles.get_sizes().max(), shares / shares.max())


def test_heatmap(summary):
    ax = plot.plot_topic_heatmap(summary)
    render(ax)
    order = [int(label.get_text()) for label in ax.get_xticklabels()]
    assert_array_equal(ax.images[0].get_array(), summary.similar().distances[np.ix_(order, order)])
    names = [f"{k} {summary.labels[k]}" for k in order]
    assert labels_of(ax.get_yticklabels()) == names


def test_dendrogram(summary):
    ax = plot.plot_topic_dendrogram(summary)
    render(ax)
    heights = sorted(line.get_xdata().max() for line in ax.lines)
    assert_array_equal(heights, summary.similar().linkage[:, 2])


def test_over_time(summary, documents):
    ax = plot.plot_topics_over_time(summary, documents[3], topics=[1, 0])
    render(ax)
    table = summary.over(documents[3])
    assert_array_equal(ax.lines[0].get_ydata(), table.iloc[:, 2])
    assert_array_equal(ax.lines[1].get_ydata(), table.iloc[:, 1])
    assert labels_of(ax.get_legend().get_texts()) == [f"{k} {summary.labels[k]}" for k in (1, 0)]


def test_by_group(summary, documents):
    ax = plot.plot_topics_by_group(summary, documents[4], topics=[2, 1])
    render(ax)
    assert_array_equal(ax.images[0].get_array(), summary.by(documents[4]).iloc[:, [3, 2]].T)
    assert labels_of(ax.get_xticklabels()) == ["a (30)", "b (30)"]


def test_term_ranks(summary):
    ax = plot.plot_term_ranks(summary, [2], n_words=6)
    render(ax)
    assert_array_equal(ax.lines[0].get_ydata(), np.sort(summary.topics[2])[::-1][:6])
    assert ax.get_yscale() == "log"


def test_stability(summary, fit):
    other = fit(1)
    ax = plot.plot_stability(summary, other)
    render(ax)
    drawn = pictures.matches(summary, other)
    assert_array_equal(ax.images[0].get_array(), drawn.values)
    assert labels_of(ax.get_xticklabels()) == drawn.columns


def test_given_axes_are_used(summary, documents):
    ax = pyplot.subplots()[1]
    assert plot.plot_topic_map(summary, ax=ax) is ax
    assert plot.plot_topics_over_time(summary, documents[3], ax=ax) is ax


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("plot_topic_words", dict(n_words=0), "'n_words' parameter of plot_topic_words"),
        ("plot_topic_words", dict(relevance=2), "'relevance' parameter of plot_topic_words"),
        ("plot_topic_words", dict(n_columns=0), "'n_columns' parameter of plot_topic_words"),
        ("plot_topic_words", dict(topics=[9]), "from 0 to 2 or the label of a topic"),
        ("plot_topic_map", dict(documents="no"), "'documents' parameter of plot_topic_map"),
        ("plot_term_ranks", dict(n_words=1.5), "'n_words' parameter of plot_term_ranks"),
        ("plot_topics_over_time", dict(times=[1]), "'times' must have one entry"),
        ("plot_topics_by_group", dict(groups=[1]), "'groups' must have one entry"),
        ("plot_topic_heatmap", dict(ax=3), "'ax' must be Axes of matplotlib. Got 3"),
    ],
)
def test_what_cannot_be_drawn(summary, name, options, message):
    with pytest.raises((ValueError, TypeError), match=message):
        getattr(plot, name)(summary, **options)
    assert pyplot.get_fignums() == []
