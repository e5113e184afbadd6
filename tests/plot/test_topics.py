"""matplotlib and plotly draw the numbers of the summary."""

import numpy as np
import pytest
from matplotlib import pyplot
from numpy.testing import assert_allclose, assert_array_equal

from annealvi import plot
from annealvi.plot import interactive, pictures
from annealvi.topics import estimate_effects
from tests.asserts import refused
from tests.marks import cases

pytest.importorskip("plotly", reason="needs plotly, the extra 'report'")


def labels_of(texts):
    return [text.get_text() for text in texts]


def values(array):
    """Numbers of a figure; plotly keeps arrays or tuples."""
    return np.asarray(array, dtype=float)


def drawn(ax):
    """What is returned, drawn: labels that looked like mathematics would raise here."""
    (ax.flat[0] if isinstance(ax, np.ndarray) else ax).figure.canvas.draw()
    return ax


def test_words(summary):
    axes = drawn(plot.plot_topic_words(summary, n_words=4, n_columns=2))
    assert axes.shape == (2, 2) and not axes[1, 1].axison
    for ax, topic in zip(axes.flat, pictures.by_size(summary), strict=False):
        assert sorted(labels_of(ax.get_yticklabels())) == sorted(summary.words(topic, 4))
        widths = [bar.get_width() for bar in ax.patches]
        assert_array_equal(widths, np.sort(summary.weights(topic, 4)["probability"])[::-1])
        assert ax.get_title() == f"{topic} {summary.labels[topic]}"
    all_words = plot.plot_topic_words(summary, [0], n_words=10**30)
    assert len(all_words[0, 0].patches) == len(summary.feature_names)


def test_given_axes_are_used(summary, documents):
    given = pyplot.subplots(1, 2)[1]
    assert plot.plot_topic_words(summary, [1, 0], axes=given) is given
    assert given[1].get_title().startswith("0 ")
    refused(r"'axes' .* Got 2 Axes for 3 topics", plot.plot_topic_words, summary, axes=given)
    assert plot.plot_topic_map(summary, ax=given[0]) is given[0]
    assert plot.plot_topics_over_time(summary, documents[3], ax=given[0]) is given[0]


def test_map(summary):
    ax = drawn(plot.plot_topic_map(summary, documents=True))
    points, circles = ax.collections
    places, shares = summary.map(), summary.topic_shares
    assert_array_equal(circles.get_offsets(), places[["x", "y"]])
    assert len(points.get_offsets()) == len(summary.shares)
    assert_allclose(circles.get_sizes() / circles.get_sizes().max(), shares / shares.max())
    points, circles = interactive.plot_topic_map(summary, documents=True).data
    assert_array_equal(values(circles.x), places["x"])
    assert_array_equal(values(circles.marker.size), shares)
    assert_array_equal(values(circles.customdata), [0, 1, 2])
    assert_array_equal(values(points.x), summary.map(documents=True)["x"])
    assert "&lt;b&gt;" in circles.hovertext[0]


def test_heatmap(summary):
    ax = drawn(plot.plot_topic_heatmap(summary))
    order = [int(label.get_text()) for label in ax.get_xticklabels()]
    distances = summary.similar().distances[np.ix_(order, order)]
    assert_array_equal(ax.images[0].get_array(), distances)
    assert labels_of(ax.get_yticklabels()) == [f"{k} {summary.labels[k]}" for k in order]


def test_dendrogram(summary):
    ax = drawn(plot.plot_topic_dendrogram(summary))
    heights = summary.similar().linkage[:, 2]
    assert_array_equal(sorted(line.get_xdata().max() for line in ax.lines), heights)


@pytest.mark.slow
def test_over_time(summary, documents):
    ax = drawn(plot.plot_topics_over_time(summary, documents[3], topics=[1, 0]))
    table = summary.over_time(documents[3])
    assert_array_equal(ax.lines[0].get_ydata(), table.iloc[:, 2])
    assert_array_equal(ax.lines[1].get_ydata(), table.iloc[:, 1])
    assert labels_of(ax.get_legend().get_texts()) == [f"{k} {summary.labels[k]}" for k in (1, 0)]
    curve = interactive.plot_topics_over_time(summary, documents[3], topics=[1]).data[0]
    assert_array_equal(values(curve.y), table.iloc[:, 2])
    margins = 1.96 * summary.over_time(documents[3], value="std_error").iloc[:, 2]
    assert_array_equal(values(curve.customdata), np.column_stack([[1] * 5, [12] * 5, margins]))
    assert_array_equal(values(curve.error_y.array), margins)
    band = ax.collections[0].get_paths()[0].vertices[:, 1]
    assert_allclose(band.max(), (table.iloc[:, 2] + margins).max())
    assert band.min() >= 0


def test_by_group(summary, documents):
    ax = drawn(plot.plot_topics_by_group(summary, documents[4], topics=[2, 1]))
    shares = summary.by_group(documents[4]).iloc[:, [3, 2]].T
    assert_array_equal(ax.images[0].get_array(), shares)
    assert labels_of(ax.get_xticklabels()) == ["a (30)", "b (30)"]
    heatmap = interactive.plot_topics_by_group(summary, documents[4], topics=[2, 1]).data[0]
    assert_array_equal(values(heatmap.z), shares)
    assert list(heatmap.meta) == [2, 1]


def test_term_ranks(summary):
    ax = drawn(plot.plot_term_ranks(summary, [2], n_words=6))
    falling = np.sort(summary.topics[2])[::-1][:6]
    assert_array_equal(ax.lines[0].get_ydata(), falling)
    assert ax.get_yscale() == "log"


def test_stability(summary, fit):
    other = fit(1)
    ax = drawn(plot.plot_stability(summary, other))
    grid = pictures.matches(summary, other)
    assert_array_equal(ax.images[0].get_array(), grid.values)
    assert labels_of(ax.get_xticklabels()) == grid.columns
    assert_array_equal(values(interactive.plot_stability(summary, other).data[0].z), grid.values)


def test_fit(summary, monkeypatch):
    figure = interactive.plot_fit(summary)
    assert [trace.name for trace in figure.data] == ["temperature T", "perplexity", "ELBO at T = 1"]
    for trace, name in zip(figure.data, ("temperature", "perplexity", "elbo"), strict=True):
        assert_array_equal(values(trace.y), summary.history[name])
        assert_array_equal(values(trace.x), summary.history["pass"])
    monkeypatch.setattr(summary, "history", None)
    refused("with the attribute `history_`", interactive.plot_fit, summary)


@cases(
    "name, options, message",
    ("plot_topic_words", dict(n_words=0), "'n_words' parameter of plot_topic_words"),
    ("plot_topic_words", dict(topics=[9]), "from 0 to 2 or the label of a topic"),
    ("plot_topic_map", dict(documents="no"), "'documents' parameter of plot_topic_map"),
    ("plot_topics_over_time", dict(times=[1]), "'times' parameter of .* must be .* one entry"),
    ("plot_topics_by_group", dict(groups=[1]), "'groups' parameter of .* must be .* one entry"),
    ("plot_topic_heatmap", dict(ax=3), r"'ax' must be Axes of matplotlib\. Got 3"),
)
def test_what_cannot_be_drawn(summary, name, options, message):
    for library in (plot, interactive):
        if hasattr(library, name) and not (library is interactive and "ax" in options):
            draw = getattr(library, name)
            refused(message, draw, summary, **options, error=(ValueError, TypeError))
    assert pyplot.get_fignums() == []


def test_words_that_groups_use_differently(summary, documents):
    groups = np.array(documents[4])
    axes = drawn(plot.plot_words_by_group(summary, 1, groups, n_words=3, prior=50.0))
    table = summary.words_by_group(1, groups, 3, 50.0)
    assert axes.shape == (1, 2)
    for ax, group in zip(axes.flat, "ab", strict=True):
        own = table[table.group == group]
        assert 0 < len(own) <= 3 and labels_of(ax.get_yticklabels()) == own.word.tolist()
        assert_allclose(ax.lines[1].get_xdata(), own.log_odds)
        ends = [line[:, 0] for line in ax.collections[0].get_segments()]
        assert_allclose(ends, own[["low", "high"]])
        assert ax.get_title() == f"{group} (30)" and ax.get_xlim() == axes[0, 0].get_xlim()
    given = pyplot.subplots(1, 3)[1]
    assert plot.plot_words_by_group(summary, 1, groups, axes=given) is given
    with pytest.raises(ValueError, match=r"'axes' .* Got 1 Axes for 2 groups"):
        plot.plot_words_by_group(summary, 1, groups, axes=given[:1])


def test_groups_without_words_of_the_topic(summary, monkeypatch):
    of_topic = (summary.shares.argmax(axis=1) == 1).astype(int)  # others hardly have its words
    groups = pictures.words_by_group(summary, 1, of_topic, 3, 500.0)
    assert [group.name for group in groups] == ["1 (20)"]
    monkeypatch.setattr("annealvi.topics.contrasts.LEAST_COUNT", 1000)
    message = "a group that uses a word of the topic more than the others"
    refused(message, plot.plot_words_by_group, summary, 1, of_topic)


@pytest.fixture(scope="module")
def effects():
    """Effects on three topics, the last of which has no interval."""
    rng = np.random.RandomState(1)
    number = np.arange(60)
    shares = rng.dirichlet([2.0, 1.0, 1.0], size=60)
    shares[::2] += shares[::2, 2:] * [0.8, 0.0, -0.8]
    data = {"side": ["a", "b"] * 30, "kind": ["u", "v", "w"] * 20, "day": number}
    found = estimate_effects(shares, "~ side + kind + bs(day, df=3)", data)
    for source in found._errors:
        source.covariance[2] = np.nan
    return found


@pytest.mark.slow
def test_the_difference_between_two_values(effects):
    ax = drawn(plot.plot_effects(effects, "side"))
    table = effects.contrast({"side": "b"}, {"side": "a"}).set_index("topic")
    order = table["estimate"].sort_values(ascending=False).index
    assert labels_of(ax.get_yticklabels()) == [f"{k} {k}" for k in order]
    assert ax.get_xlabel() == "share if side is b, minus if a"
    dots, crosses = ax.collections[-2:]
    known = [place for place, k in enumerate(order) if k != 2]
    assert_allclose(dots.get_offsets(), [(table["estimate"][order[at]], at) for at in known])
    # hollow where the interval contains 0
    clear = [table["low"][k] > 0 or table["high"][k] < 0 for k in order if k != 2]
    assert clear == [not (face == 1).all() for face in dots.get_facecolors()]
    assert set(clear) == {True, False}
    assert_allclose(crosses.get_offsets(), [(table["estimate"][2], list(order).index(2))])


def test_the_mean_share_at_each_of_a_few_values(effects):
    ax = drawn(plot.plot_effects(effects, "kind", topics=["1", 0]))
    legend = ax.get_legend().get_title()
    assert legend.get_text() == "kind" and legend.get_visible() and not legend.get_parse_math()
    assert labels_of(ax.get_yticklabels()) == ["1 1", "0 0"]
    assert labels_of(ax.get_legend().get_texts()) == ["u", "v", "w"]
    shares = effects.shares("kind").set_index(["kind", "topic"])["share"]
    for value, dots in zip("uvw", ax.collections[1::3], strict=True):
        assert_allclose(dots.get_offsets()[:, 0], [shares[value, 1], shares[value, 0]])


def test_a_curve_of_a_number(effects):
    ax = drawn(plot.plot_effects(effects, "day"))
    assert len(ax.lines) == len(ax.collections) == 3
    own = effects.shares("day")
    own = own[own["topic"] == int(ax.lines[0].get_label()[0])]
    assert_allclose(ax.lines[0].get_xydata(), own[["day", "share"]])
    assert len(plot.plot_effects(effects, "day", topics=1).lines) == 1


@pytest.mark.parametrize(
    "topics",
    [
        *([], 7, 1.5, ["nope"], [[1]], [0, None], np.ones((2, 2))),
        *(np.ma.masked, np.array(7), [[0, [1]], 0], {"nope": 1}),
    ],
)
def test_no_such_topic_of_effects(effects, topics):
    with pytest.raises(ValueError, match="'topics' parameter must be a list of numbers or labels"):
        plot.plot_effects(effects, "side", topics=topics)


def test_what_has_no_effects(effects):
    with pytest.raises(TypeError, match="'effects' must be a result"):
        plot.plot_effects(effects.table, "side")
    refused("some of the covariates", plot.plot_effects, effects, "no")
