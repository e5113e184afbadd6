"""The figure of a choice of the number of topics."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from annealvi._optional import import_optional

#: The measures that are drawn, and their titles.
TITLES = {
    "heldout": "held-out log-likelihood",
    "coherence": "coherence (NPMI)",
    "diversity": "diversity",
    "stability": "stability",
    "quality": "coherence x diversity",
}


def plot_choice(choice: Any, *, axes: Any = None) -> NDArray[Any]:
    """Draw what :func:`annealvi.topics.choose` measured, over the number of topics.

    A line connects the means over runs, bars are standard deviations, and a dashed line marks the
    recommended number.

    Parameters
    ----------
    choice : Choice
        From :func:`annealvi.topics.choose`.
    axes : array of matplotlib Axes, optional
        Axes to draw into, in reading order, at least five of them.

    Returns
    -------
    ndarray of matplotlib Axes
        The given ones, in their shape, or five new ones side by side.

    Raises
    ------
    TypeError
        If it is no Choice, or `axes` are no Axes.
    ValueError
        If there are too few Axes.
    """
    missing = [part for part in ("ks", "measures", "recommended") if not hasattr(choice, part)]
    if missing or isinstance(choice, type):
        raise TypeError(
            "'choice' must be a Choice, as annealvi.topics.choose(X, ks) returns it. "
            f"Got {choice!r}."
        )
    if axes is None:
        pyplot = import_optional("matplotlib.pyplot", "plot", "annealvi.plot")
        size = (3 * len(TITLES), 3)
        axes = pyplot.subplots(1, len(TITLES), figsize=size, layout="constrained")[1]
    axes = np.asarray(axes, dtype=object)
    if axes.size < len(TITLES):
        raise ValueError(
            f"'axes' must hold an Axes for each of {len(TITLES)} measures. Got {axes.size}."
        )
    wrong = [ax for ax in axes.flat if not hasattr(ax, "errorbar")]
    if wrong:
        raise TypeError(f"'axes' must hold Axes of matplotlib. Got {wrong[0]!r} instead.")
    for ax, (name, title) in zip(axes.flat, TITLES.items(), strict=False):
        values = choice.measures[name]
        # a single run has no standard deviation
        spread = values.std(axis=1, ddof=1) if values.shape[1] > 1 else np.zeros(len(values))
        ax.errorbar(choice.ks, values.mean(axis=1), yerr=spread, marker="o")
        ax.axvline(choice.recommended, linestyle="--", color="0.6")
        ax.set_xscale("log")
        ax.set_xticks(choice.ks, [str(k) for k in choice.ks])
        ax.minorticks_off()
        ax.set_xlabel("number of topics")
        ax.set_title(title)
    return axes
