"""Figures hold the numbers of the fits they show."""

import matplotlib
import numpy as np
import pytest
from numpy.testing import assert_array_equal

from annealvi import TemperedLDA, plot
from annealvi.datasets import make_topic_corpus
from annealvi.metrics import HeldOut

matplotlib.use("Agg")


@pytest.fixture(scope="module")
def fits():
    X = make_topic_corpus(60, 30, 3, document_length=20, random_state=0).data
    return [
        TemperedLDA(3, max_iter=4, callback=HeldOut(X[:10]), random_state=seed).fit(X[10:])
        for seed in range(2)
    ]


def test_temperature(fits):
    ax = plot.plot_temperature(fits[0], label="mine")
    assert_array_equal(ax.lines[0].get_ydata(), fits[0].temperature_path_)
    assert_array_equal(ax.lines[0].get_xdata(), [1, 2, 3, 4])


@pytest.mark.parametrize("over", ["pass", "step", "seconds"])
def test_learning_curves(fits, over):
    ax = plot.plot_learning_curves({"both": fits, "one": fits[0]}, over=over)
    curves = [line.get_ydata() for line in ax.lines]
    assert_array_equal(curves[0], fits[0].history_["heldout"])
    assert_array_equal(curves[1], fits[1].history_["heldout"])
    assert_array_equal(curves[2], np.mean(curves[:2], axis=0))
    assert_array_equal(ax.lines[0].get_xdata(), fits[0].history_[over])
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["both", "one"]


def test_a_value_that_was_not_recorded(fits):
    with pytest.raises(ValueError, match=r"'both' has no 'perplexity'. It has \['heldout'"):
        plot.plot_learning_curves({"both": fits}, value="perplexity")


def test_without_matplotlib(fits, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r"annealvi\[plot\]"):
        plot.plot_temperature(fits[0])
