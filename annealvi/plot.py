"""Figures of a fit: the temperature it ran at, what it reached when, and what it found.

Every function draws into the Axes it is given, or into new ones, and returns them.
They need matplotlib (``pip install 'annealvi[plot]'``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_array

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
    ax.set_xlabel({"pass": "passes over the data", "seconds": "seconds"}.get(over, over))
    ax.set_ylabel({"heldout": "held-out log-likelihood", "elbo": "ELBO at T = 1"}.get(value, value))
    ax.legend()
    return ax


def plot_components(
    components: ArrayLike,
    shape: tuple[int, int],
    *,
    n_columns: int = 8,
    axes: Any = None,
    titles: Sequence[str] | None = None,
    limit: float | None = None,
    cmap: Any = "gray",
) -> NDArray[Any]:
    """Draw components as images beside each other, on one scale that is symmetric about 0.

    Parameters
    ----------
    components : array-like of shape (n_components, n_features)
        One image a row, for example ``estimator.components_``.
    shape : (int, int)
        Height and width of an image: n_features is their product.
    n_columns : int, default=8
        Images beside each other in new Axes.
    axes : array of matplotlib Axes, optional
        Where to draw instead, in reading order: at least n_components.  Axes left over are
        switched off.
    titles : sequence of str, optional
        One above each image.
    limit : float, optional
        Values from -limit to limit span the colours, and those beyond look like the ends; by
        default the largest absolute value.  Give the same one to compare several figures.
    cmap : str or matplotlib Colormap, default="gray"
        Under ``"gray"`` 0 is a middle gray; ``"RdBu_r"`` shows signs by hue.

    Returns
    -------
    ndarray of matplotlib Axes
        Those given, in their shape, or new ones of shape (n_rows, n_columns).

    Raises
    ------
    ValueError
        If the images do not have n_features pixels, the Axes are too few, the titles are not
        as many as the images, or `n_columns` or `limit` is not positive.
    """
    images = check_array(components, dtype=np.float64, input_name="components")
    if len(shape) != 2 or min(shape) < 1 or shape[0] * shape[1] != images.shape[1]:
        raise ValueError(
            "'shape' must be the height and width of an image, whose product is the number of "
            f"features. Got shape={tuple(shape)} and {images.shape[1]} features."
        )
    if titles is not None and len(titles) != len(images):
        raise ValueError(
            f"'titles' must be one for each component. Got {len(titles)} for {len(images)} "
            "components."
        )
    if limit is None:
        limit = float(np.max(np.abs(images))) or 1.0
    elif not limit > 0:
        raise ValueError(f"'limit' must be a float in the range (0, inf). Got {limit!r}.")
    if axes is None:
        if n_columns < 1:
            raise ValueError(f"'n_columns' must be an int in the range [1, inf). Got {n_columns}.")
        pyplot = import_optional("matplotlib.pyplot", "plot", "annealvi.plot")
        n_columns = min(n_columns, len(images))
        n_rows = -(-len(images) // n_columns)
        size = (n_columns, n_rows * (shape[0] / shape[1] + (0.3 if titles else 0)))
        axes = pyplot.subplots(
            n_rows, n_columns, figsize=size, squeeze=False, layout="constrained"
        )[1]
    axes = np.asarray(axes, dtype=object)
    if axes.size < len(images):
        raise ValueError(
            f"'axes' must hold an Axes for each component. Got {axes.size} for {len(images)} "
            "components."
        )
    for ax in axes.flat[len(images) :]:
        ax.set_axis_off()
    for number, (ax, image) in enumerate(zip(axes.flat, images, strict=False)):
        ax.imshow(image.reshape(shape), cmap=cmap, vmin=-limit, vmax=limit)
        ax.set_xticks([])
        ax.set_yticks([])
        if titles is not None:
            ax.set_title(titles[number])
    return axes
