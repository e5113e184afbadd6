"""Figures hold the numbers of the fits, or of the choice, that they show."""

import numpy as np
import pytest
from matplotlib import pyplot
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import NotFittedError

from annealvi import TemperedLDA, plot
from annealvi.callbacks import HeldOut
from annealvi.datasets import make_topic_corpus
from annealvi.topics import choose_n_topics
from tests.asserts import refused
from tests.marks import cases

KS = [2, 3]
IMAGES = np.arange(-8.0, 22.0).reshape(5, 6)


@pytest.fixture(scope="module")
def fits():
    X = make_topic_corpus(60, 30, 3, document_length=20, random_state=0).data
    options = dict(max_iter=4, n_init=1, callback=HeldOut(X[:10]))
    return [TemperedLDA(3, random_state=seed, **options).fit(X[10:]) for seed in range(2)]


@pytest.mark.slow
def test_temperature(fits):
    ax = plot.plot_temperature(fits[0], label="mine")
    assert_array_equal(ax.lines[0].get_ydata(), fits[0].temperature_path_)
    assert_array_equal(ax.lines[0].get_xdata(), [1, 2, 3, 4])


@pytest.mark.parametrize("over", ["pass", "step", "seconds"])
def test_learning_curves(fits, over):
    ax = plot.plot_learning_curves({"both": fits, "one": fits[0]}, over=over)
    curves = [line.get_ydata() for line in ax.lines]
    assert_array_equal(curves[0], fits[0].history_["held_out_log_likelihood"])
    assert_array_equal(curves[1], fits[1].history_["held_out_log_likelihood"])
    assert_array_equal(curves[2], np.mean(curves[:2], axis=0))
    assert_array_equal(ax.lines[0].get_xdata(), fits[0].history_[over])
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["both", "one"]


def test_a_value_that_was_not_recorded(fits):
    message = r"'both' must contain 'perplexity'. Got \['held_out_log_likelihood'"
    refused(message, plot.plot_learning_curves, {"both": fits}, value="perplexity")


def test_components():
    axes = plot.plot_components(IMAGES, (2, 3), n_columns=3, titles=list("abcde"))
    assert axes.shape == (2, 3)
    for ax, image, title in zip(axes.flat, IMAGES, "abcde", strict=False):
        (drawn,) = ax.images
        assert_array_equal(drawn.get_array(), image.reshape(2, 3))
        assert drawn.get_clim() == (-21, 21)
        assert ax.get_title() == title
    assert len(axes[1, 2].images) == 0 and not axes[1, 2].axison


def test_components_in_given_axes():
    given = pyplot.subplots(1, 5)[1]
    axes = plot.plot_components(IMAGES, (3, 2), axes=given, limit=4, cmap="RdBu_r")
    assert_array_equal(axes, given)
    for ax, image in zip(given, IMAGES, strict=True):
        (drawn,) = ax.images
        assert_array_equal(drawn.get_array(), np.clip(image, -4, 4).reshape(3, 2))
        assert drawn.get_clim() == (-4, 4) and drawn.get_cmap().name == "RdBu_r"
    assert plot.plot_components([[0.0, 0.0]], (1, 2), axes=given[0]).item() is given[0]
    assert given[0].images[-1].get_clim() == (-1, 1)  # nothing to see, and to divide by


@cases(
    "arguments, message",
    (dict(shape=(4, 2)), r"Got shape=\(4, 2\) and 6 features"),
    (dict(shape=(-2, -3)), r"Got shape=\(-2, -3\) and 6 features"),
    (dict(shape=(6,)), r"Got shape=\(6,\) and 6 features"),
    (dict(shape=(2, 3), titles=["a"]), r"each of 5 images. Got shape \(1,\)"),
    (dict(shape=(2, 3), axes=[None] * 4), "'axes' .* Got 4 Axes for 5 components"),
    (dict(shape="ab"), "Got shape='ab' and 6 features"),
    (dict(shape=(2.0, 3.0)), r"Got shape=\(2.0, 3.0\) and 6 features"),
    (dict(shape=(2, 3), components=IMAGES * np.nan), "components contains NaN"),
    (dict(shape=(2, 3), components=IMAGES[0]), "Expected 2D array"),
)
def test_components_that_cannot_be_drawn(arguments, message):
    refused(message, plot.plot_components, **{"components": IMAGES} | arguments)
    assert pyplot.get_fignums() == []


def test_what_is_no_fit(fits):
    for wrong in (3, None, np.ones(3)):
        refused("estimator", plot.plot_temperature, wrong, error=TypeError)
        refused("estimator", plot.plot_learning_curves, {"a": wrong}, error=TypeError)
        message = r"'fits' parameter of plot_learning_curves must be .*Mapping"
        refused(message, plot.plot_learning_curves, wrong, error=TypeError)
    refused("not fitted", plot.plot_temperature, TemperedLDA(), error=NotFittedError)
    refused("Got no fit for 'a'", plot.plot_learning_curves, {"a": []})
    with pytest.raises(TypeError, match=r"'over' parameter of plot_learning_curves must be .*str"):
        plot.plot_learning_curves({"a": fits[0]}, over=np.ones(2))


def test_wrong_axes(fits):
    message = r"'ax' must be Axes of matplotlib. Got 'left'"
    refused(message, plot.plot_temperature, fits[0], ax="left", error=TypeError)
    message = r"'axes' must contain Axes of matplotlib. Got 1"
    refused(message, plot.plot_components, IMAGES, (2, 3), axes=range(1, 6), error=TypeError)


@pytest.fixture(scope="module")
def choice():
    X = np.random.RandomState(0).poisson(1.0, (40, 12))
    return choose_n_topics(X, KS, n_runs=3, model=TemperedLDA(max_iter=3), random_state=0)


def test_means_and_standard_deviations_of_a_choice(choice):
    axes = plot.plot_choice(choice)
    names = ("held_out_log_likelihood", "coherence", "diversity", "stability", "quality")
    assert axes.shape == (5,)
    axes[0].figure.canvas.draw()
    for ax, name in zip(axes, names, strict=True):
        line, values = ax.lines[0], choice.measures[name]
        assert_array_equal(line.get_xdata(), KS)
        assert_allclose(line.get_ydata(), values.mean(axis=1))
        bars = np.array([segment[:, 1] for segment in ax.containers[0][2][0].get_segments()])
        assert_allclose(np.ptp(bars, axis=1), 2 * values.std(axis=1, ddof=1), atol=1e-12)
        assert_array_equal(ax.lines[-1].get_xdata(), [choice.recommended] * 2)
    own = pyplot.subplots(2, 3)[1]
    assert plot.plot_choice(choice, axes=own)[1, 1] is own[1, 1]
    assert own[1, 1].lines and not own[1, 2].axison
    with pytest.raises(
        ValueError, match=r"'axes' must contain an Axes for each measure. Got 2 Axes for 5"
    ):
        plot.plot_choice(choice, axes=own[0, :2])
    message = r"'choice' must be a Choice, the result of .*choose_n_topics\(documents\)"
    refused(message, plot.plot_choice, {"n_topics": KS}, error=TypeError)
