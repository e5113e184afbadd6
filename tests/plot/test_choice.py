"""The figure of a choice shows its measures."""

import numpy as np
import pytest
from matplotlib import pyplot
from numpy.testing import assert_allclose, assert_array_equal

from annealvi import TemperedLDA
from annealvi.plot import plot_choice
from annealvi.topics import choose

KS = [2, 3]


@pytest.fixture(scope="module")
def choice():
    X = np.random.RandomState(0).poisson(1.0, (40, 12))
    return choose(X, KS, n_runs=3, model=TemperedLDA(max_iter=3), random_state=0)


def test_means_and_standard_deviations(choice):
    axes = plot_choice(choice)
    names = ("heldout", "coherence", "diversity", "stability", "quality")
    assert axes.shape == (5,)
    axes[0].figure.canvas.draw()
    for ax, name in zip(axes, names, strict=True):
        line, values = ax.lines[0], choice.measures[name]
        assert_array_equal(line.get_xdata(), KS)
        assert_allclose(line.get_ydata(), values.mean(axis=1))
        bars = np.array([segment[:, 1] for segment in ax.containers[0][2][0].get_segments()])
        assert_allclose(np.ptp(bars, axis=1), 2 * values.std(axis=1, ddof=1), atol=1e-12)
        assert_array_equal(ax.lines[-1].get_xdata(), [choice.recommended] * 2)


def test_in_given_axes(choice):
    own = pyplot.subplots(2, 3)[1]
    assert plot_choice(choice, axes=own)[1, 1] is own[1, 1]
    assert own[1, 1].lines and not own[1, 2].lines


def test_wrong_axes_and_wrong_choices(choice):
    with pytest.raises(ValueError, match=r"an Axes for each of 5 measures\. Got 2"):
        plot_choice(choice, axes=pyplot.subplots(1, 2)[1])
    with pytest.raises(TypeError, match=r"'axes' must hold Axes of matplotlib\. Got 1"):
        plot_choice(choice, axes=[1, 2, 3, 4, 5])
    with pytest.raises(TypeError, match=r"'choice' must be a Choice, as .*choose\(X, ks\) returns"):
        plot_choice({"ks": KS})
