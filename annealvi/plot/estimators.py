"""Figures of a fit: its temperature, its learning curves and its components.

Every function draws into the given Axes, or into new ones, and returns them.
They need matplotlib (``pip install 'annealvi[plot]'``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from annealvi._optional import import_optional
from annealvi.checks import as_array
from annealvi.matrices import check_matrix


def _axes(ax: Any) -> Any:
    if ax is not None:
        return ax
    return import_optional("matplotlib.pyplot", "plot", "annealvi.plot").subplots()[1]


def _attribute(estimator: Any, name: str, caller: str) -> Any:
    """An attribute of a fitted estimator."""
    if not hasattr(estimator, name):
        check_is_fitted(estimator)  # TypeError if it is no estimator
        raise TypeError(f"{caller} needs an estimator with {name!r}. Got {estimator!r}.")
    return getattr(estimator, name)


def plot_temperature(estimator: Any, *, ax: Any = None, label: str | None = None) -> Any:
    """Draw T of each step of a fit.

    Parameters
    ----------
    estimator : fitted estimator
        With ``temperature_path_``.
    ax : matplotlib Axes, optional
    label : str, optional
        Label of the curve in a legend.

    Returns
    -------
    matplotlib Axes
    """
    path = np.asarray(_attribute(estimator, "temperature_path_", "plot_temperature"))
    ax = _axes(ax)
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
    """Draw learning curves of fits over passes, steps or seconds.

    Parameters
    ----------
    fits : dict of str to fitted estimators
        For each name one estimator with ``history_``, or several (for example one for each
        seed).  Several are drawn as thin lines, with their mean as a thick one.
    value : str, default="heldout"
        Name in ``history_`` of the values to draw.
    over : {"pass", "step", "seconds"}, default="pass"
        Name in ``history_`` of the horizontal axis.
    ax : matplotlib Axes, optional

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    ValueError
        If an estimator's ``history_`` has no such name.
    """
    if not isinstance(fits, Mapping):
        raise TypeError(f"'fits' must be a dict of fitted estimators by name. Got {fits!r}.")
    for name, wanted in (("value", value), ("over", over)):
        if not isinstance(wanted, str):
            raise TypeError(f"{name!r} must be a name in `history_`. Got {wanted!r}.")
    ax = _axes(ax)
    for number, (name, estimators) in enumerate(fits.items()):
        colour = f"C{number}"
        curves = []
        if isinstance(estimators, Sequence) and not len(estimators):
            raise ValueError(f"There is no fit of {name!r} to draw.")
        for estimator in estimators if isinstance(estimators, Sequence) else [estimators]:
            history = _attribute(estimator, "history_", "plot_learning_curves")
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
    """Draw components as images side by side, on one scale that is symmetric about 0.

    Parameters
    ----------
    components : array-like of shape (n_components, n_features)
        One image in each row, for example ``estimator.components_``.
    shape : (int, int)
        Height and width of an image; their product is n_features.
    n_columns : int, default=8
        Number of images in a row of new Axes.
    axes : array of matplotlib Axes, optional
        Axes to draw into, in reading order, at least n_components of them.  Axes that are
        not needed are switched off.
    titles : sequence of str, optional
        Titles of the images.
    limit : float, optional
        The colours span the values from -limit to limit; values beyond have the colour of
        the nearer end.  The default is the largest absolute value.  Use the same limit in
        figures that are to be compared.
    cmap : str or matplotlib Colormap, default="gray"
        With ``"gray"``, 0 is a middle gray; ``"RdBu_r"`` shows signs by hue.

    Returns
    -------
    ndarray of matplotlib Axes
        The given ones, in their shape, or new ones of shape (n_rows, n_columns).

    Raises
    ------
    ValueError
        If the images do not have n_features pixels, if there are too few Axes, if the number
        of titles is not the number of images, or if `n_columns` or `limit` is not positive.
    """
    images = check_matrix(components, dtype=np.float64, accept_sparse=False, name="components")
    sides = as_array(shape)
    whole = sides.shape == (2,) and sides.dtype.kind in "iu" and sides.min() >= 1
    if not whole or int(sides[0]) * int(sides[1]) != images.shape[1]:
        raise ValueError(
            "'shape' must be the height and width of an image, whose product is the number of "
            f"features. Got shape={shape!r} and {images.shape[1]} features."
        )
    shape = int(sides[0]), int(sides[1])
    if titles is not None:
        n_titles = len(titles) if isinstance(titles, Sequence) or np.ndim(titles) else 0
        if n_titles != len(images):
            raise ValueError(
                f"'titles' must be one for each component. Got {n_titles} for {len(images)} "
                "components."
            )
    if limit is None:
        limit = float(np.max(np.abs(images))) or 1.0
    elif not isinstance(limit, Real) or not 0 < limit <= float(np.finfo(np.float64).max):
        raise ValueError(f"'limit' must be a float in the range (0, inf). Got {limit!r}.")
    if axes is None:
        if not isinstance(n_columns, Integral) or n_columns < 1:
            raise ValueError(
                f"'n_columns' must be an int in the range [1, inf). Got {n_columns!r}."
            )
        pyplot = import_optional("matplotlib.pyplot", "plot", "annealvi.plot")
        n_columns = min(int(n_columns), len(images))
        n_rows = -(-len(images) // n_columns)
        size = (n_columns, n_rows * (shape[0] / shape[1] + (0.3 if titles is not None else 0)))
        axes = pyplot.subplots(
            n_rows, n_columns, figsize=size, squeeze=False, layout="constrained"
        )[1]
    if not isinstance(
        cmap, str | import_optional("matplotlib.colors", "plot", "annealvi.plot").Colormap
    ):
        raise TypeError(f"'cmap' must be a str or a Colormap of matplotlib's. Got {cmap!r}.")
    axes = np.asarray(axes, dtype=object)
    if axes.size < len(images):
        raise ValueError(
            f"'axes' must hold an Axes for each component. Got {axes.size} for {len(images)} "
            "components."
        )
    for ax in axes.flat[len(images) :]:
        ax.set_axis_off()
    for number, (ax, image) in enumerate(zip(axes.flat, images, strict=False)):
        ax.imshow(image.reshape(shape), cmap=cmap, vmin=-float(limit), vmax=float(limit))
        ax.set_xticks([])
        ax.set_yticks([])
        if titles is not None:
            ax.set_title(titles[number])
    return axes
