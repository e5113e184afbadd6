"""Figures of a fit: the temperature it ran at, and what it reached when.

Every function draws into the Axes it is given, or into new ones, and returns them.
They need matplotlib (``pip install 'annealvi[plot]'``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from annealvi._optional import import_optional


def _axes(ax: Any) -> Any:
    if ax is not None:
        return ax
    return import_optional("matplotlib.pyplot", "plot", "annealvi.plot").subplots()[1]


def plot_temperature(estimator: Any, *, ax: Any = None, label: str | None = None) -> Any:
    """Draw T of each step of a fit.

    Parameters
    ----------
    estimator : fitted estimator
        With ``temperature_path_``.
    ax : matplotlib Axes, optional
    label : str, optional
        For the legend.

    Returns
    -------
    matplotlib Axes
    """
    ax = _axes(ax)
    path = np.asarray(estimator.temperature_path_)
    ax.plot(np.arange(1, len(path) + 1), path, label=label)
    ax.set_xlabel("step")
    ax.set_ylabel("temperature T")
    return ax


def plot_learning_curves(
    fits: Mapping[str, Any | Sequence[Any]],
    *,
    value: str = "heldout",
    over: str = "pass",
    ax: Any = None,
) -> Any:
    """Draw what fits reached over passes, steps or seconds.

    Parameters
    ----------
    fits : dict of str to fitted estimators
        For each name one estimator or several (seeds, say), which are drawn thin with
        their mean on top; with ``history_``.
    value : str, default="heldout"
        What to draw: a name in ``history_``.
    over : {"pass", "step", "seconds"}, default="pass"
        Over what.
    ax : matplotlib Axes, optional

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    ValueError
        If an estimator's ``history_`` has no such name.
    """
    ax = _axes(ax)
    for number, (name, estimators) in enumerate(fits.items()):
        colour = f"C{number}"
        curves = []
        for estimator in estimators if isinstance(estimators, Sequence) else [estimators]:
            history = estimator.history_
            for wanted in (value, over):
                if wanted not in history:
                    raise ValueError(
                        f"The history of {name!r} has no {wanted!r}. It has {sorted(history)}."
                    )
            taken = np.isfinite(history[value])
            curves.append((history[over][taken], history[value][taken]))
        for x, y in curves:
            ax.plot(x, y, color=colour, alpha=0.3 if len(curves) > 1 else 1, lw=1)
        shortest = min(len(x) for x, _ in curves)
        mean = np.mean([[x[:shortest], y[:shortest]] for x, y in curves], axis=0)
        ax.plot(*mean, color=colour, lw=2, label=name)
    ax.set_xlabel({"pass": "passes over the documents", "seconds": "seconds"}.get(over, over))
    ax.set_ylabel(
        {"heldout": "held-out log-likelihood a word", "elbo": "ELBO at T = 1"}.get(value, value)
    )
    ax.legend()
    return ax
