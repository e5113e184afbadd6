"""plotly draws the same as matplotlib."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from annealvi.plot import interactive, pictures

pytest.importorskip("plotly", reason="needs plotly, the extra 'report'")


def values(array):
    """Numbers of a figure; plotly keeps arrays or tuples."""
    return np.asarray(array, dtype=float)


def test_words(summary):
    figure = interactive.plot_topic_words(summary, [1, 0], n_words=4)
    table = summary.weights(1, 4)
    assert_array_equal(values(figure.data[0].x), table["probability"])
    assert list(figure.layout.yaxis.ticktext) == [
        word.replace("<", "&lt;").replace(">", "&gt;") for word in table["word"]
    ]
    assert figure.layout.annotations[1].text.startswith("0 &lt;b&gt;$")


@pytest.mark.parametrize("topics", [[0], [0, 1, 2]])
def test_words_do_not_cover_one_another(summary, topics):
    """Each has 12 pixels or more, the size of its letters."""
    figure = interactive.plot_topic_words(summary, topics, n_words=10, n_columns=1)
    low, high = figure.layout.yaxis.domain
    margin = figure.layout.margin
    area = (high - low) * (figure.layout.height - margin.t - margin.b)
    assert area / 10 > 12


def test_map(summary):
    figure = interactive.plot_topic_map(summary, documents=True)
    points, circles = figure.data
    assert_array_equal(values(circles.x), summary.map()["x"])
    assert_array_equal(values(circles.marker.size), summary.topic_shares)
    assert_array_equal(values(circles.customdata), [0, 1, 2])
    assert_array_equal(values(points.x), summary.map(documents=True)["x"])
    assert "&lt;b&gt;" in circles.hovertext[0]


def test_heatmap(summary):
    figure = interactive.plot_topic_heatmap(summary)
    order = list(figure.data[0].meta)
    assert_array_equal(values(figure.data[0].z), summary.similar().distances[np.ix_(order, order)])


def test_dendrogram(summary):
    figure = interactive.plot_topic_dendrogram(summary)
    assert np.nanmax(values(figure.data[0].x)) == summary.similar().linkage[-1, 2]
    assert np.isnan(values(figure.data[0].x)).sum() == 2  # a gap after each bracket


def test_over_time(summary, documents):
    figure = interactive.plot_topics_over_time(summary, documents[3], topics=[1])
    assert_array_equal(values(figure.data[0].y), summary.over(documents[3]).iloc[:, 2])
    assert_array_equal(values(figure.data[0].customdata), [[1, 12]] * 5)


def test_by_group(summary, documents):
    figure = interactive.plot_topics_by_group(summary, documents[4], topics=[2, 1])
    assert_array_equal(values(figure.data[0].z), summary.by(documents[4]).iloc[:, [3, 2]].T)


def test_term_ranks(summary):
    figure = interactive.plot_term_ranks(summary, [2], n_words=6)
    assert_array_equal(values(figure.data[0].y), np.sort(summary.topics[2])[::-1][:6])


def test_stability(summary, fit):
    other = fit(1)
    figure = interactive.plot_stability(summary, other)
    assert_array_equal(values(figure.data[0].z), pictures.matches(summary, other).values)


def test_fit(summary, monkeypatch):
    figure = interactive.plot_fit(summary)
    assert [trace.name for trace in figure.data] == ["temperature T", "perplexity", "ELBO at T = 1"]
    for trace, name in zip(figure.data, ("temperature", "perplexity", "elbo"), strict=True):
        assert_array_equal(values(trace.y), summary.history[name])
        assert_array_equal(values(trace.x), summary.history["pass"])
    monkeypatch.setattr(summary, "history", None)
    with pytest.raises(ValueError, match="no history"):
        interactive.plot_fit(summary)


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("plot_topic_words", dict(n_words=0), "'n_words' parameter of plot_topic_words"),
        ("plot_topic_map", dict(documents="no"), "'documents' parameter of plot_topic_map"),
        ("plot_term_ranks", dict(n_words=-1), "'n_words' parameter of plot_term_ranks"),
    ],
)
def test_what_cannot_be_drawn(summary, name, options, message):
    with pytest.raises(ValueError, match=message):
        getattr(interactive, name)(summary, **options)


def test_without_plotly(summary, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "plotly.graph_objects", None)
    with pytest.raises(ImportError, match=r"annealvi\[report\]"):
        interactive.plot_topic_map(summary)
