"""Figures of temperatures, learning curves, components, and the choice of the number of topics.

Every function draws into the Axes that you pass, or into new Axes, and returns them.  The functions
require matplotlib (``pip install matplotlib``).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from annealvi._optional import import_optional
from annealvi.checks import COUNT, Interval, as_array, validated
from annealvi.matrices import check_matrix
from annealvi.plot.pictures import has_attributes


def one_axes(ax: Any, **options: Any) -> Any:
    """Return the Axes of the user, or (None) new Axes with these options of pyplot.subplots."""
    if ax is None:
        # subplots returns the figure and its Axes
        return import_optional("matplotlib.pyplot", "annealvi.plot").subplots(**options)[1]
    _check_axes([ax], must="'ax' must be")
    return ax


def several_axes(
    axes: Any, n: int, what: str, n_columns: int, size: tuple[float, float]
) -> NDArray:
    """Return the user's Axes, or new Axes; Axes that are not needed are hidden.

    There are at least n Axes, one for each `what`.  New Axes stand in `n_columns` columns, and each
    has this `size` (width and height in inches).
    """
    if axes is None:
        pyplot = import_optional("matplotlib.pyplot", "annealvi.plot")
        n_columns = min(int(n_columns), n)
        n_rows = -(-n // n_columns)  # rounded up
        figsize = (size[0] * n_columns, size[1] * n_rows)
        # squeeze=False: an array even of a single Axes
        axes = pyplot.subplots(
            n_rows, n_columns, figsize=figsize, squeeze=False, layout="constrained"
        )[1]
    axes = np.asarray(axes, dtype=object)
    if axes.size < n:
        raise ValueError(
            f"'axes' must contain an Axes for each {what}. Got {axes.size} Axes for {n} {what}s."
        )
    _check_axes(axes.flat, must="'axes' must contain")
    for ax in axes.flat[n:]:  # those that are not needed
        ax.set_axis_off()
    return axes


def _check_axes(axes: Iterable[Any], must: str) -> None:
    """Raise TypeError, with a message that begins with `must`, if objects are not Axes."""
    kind = import_optional("matplotlib.axes", "annealvi.plot").Axes
    for ax in axes:
        if not isinstance(ax, kind):
            raise TypeError(f"{must} Axes of matplotlib. Got {ax!r} instead.")


def _attribute(model: Any, name: str, caller: str) -> Any:
    """Return an attribute of a fitted model, or raise TypeError if it has none."""
    if not hasattr(model, name):
        check_is_fitted(model)  # TypeError if it is not an estimator
        raise TypeError(f"The model in {caller} must have the attribute {name!r}. Got {model!r}.")
    return getattr(model, name)


def plot_temperature(model: Any, *, ax: Any = None, label: str | None = None) -> Any:
    """Draw the temperature T of each step of a fit.

    Parameters
    ----------
    model : fitted estimator
        A model with ``temperature_path_``.
    ax : matplotlib Axes, optional
        The Axes to draw into.
    label : str, optional
        Label of the curve in a legend.

    Returns
    -------
    matplotlib Axes
    """
    path = np.asarray(_attribute(model, "temperature_path_", "plot_temperature"))
    ax = one_axes(ax)
    ax.plot(np.arange(1, len(path) + 1), path, label=label)
    ax.set_xlabel("step")
    ax.set_ylabel("temperature T")
    return ax


@validated(fits=[Mapping], value=[str], over=[str])
def plot_learning_curves(
    fits: Mapping[str, Any | Sequence[Any]],
    *,
    value: str = "held_out_log_likelihood",
    over: str = "pass",
    ax: Any = None,
) -> Any:
    """Draw learning curves of fits against passes, steps or seconds.

    Parameters
    ----------
    fits : dict of str to fitted estimators
        Each value is a model with ``history_``, or a list of them, for example one for each
        random seed.  A list is drawn as thin lines, with a thick line for their mean.
    value : str, default="held_out_log_likelihood"
        The key of ``history_`` whose values are drawn.
    over : {"pass", "step", "seconds"}, default="pass"
        The key of ``history_`` whose values are on the horizontal axis.
    ax : matplotlib Axes, optional

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    ValueError
        If the ``history_`` of a model does not contain `value` or `over`.
    """
    ax = one_axes(ax)
    for number, (name, models) in enumerate(fits.items()):
        curves = []  # pairs of x and y, one for each model
        models = models if isinstance(models, Sequence) else [models]
        if not models:
            raise ValueError(f"'fits' must contain a fit for each name. Got no fit for {name!r}.")
        for model in models:
            history = _attribute(model, "history_", "plot_learning_curves")
            for key in (value, over):
                if key not in history:
                    raise ValueError(
                        f"The history of {name!r} must contain {key!r}. Got {sorted(history)}."
                    )
            # a record without this value contains NaN
            has_value = np.isfinite(history[value])
            curves.append((history[over][has_value], history[value][has_value]))
        for x, y in curves:  # faint if there are several, because their mean is drawn too
            ax.plot(x, y, color=f"C{number}", alpha=0.3 if len(curves) > 1 else 1, lw=1)
        shortest = min(len(x) for x, _ in curves)  # the mean ends with the shortest curve
        mean = np.mean([[x[:shortest], y[:shortest]] for x, y in curves], axis=0)
        ax.plot(*mean, color=f"C{number}", lw=2, label=name)
    ax.set_xlabel({"pass": "passes over the data", "seconds": "seconds"}.get(over, over))
    names = {"held_out_log_likelihood": "held-out log-likelihood", "elbo": "ELBO at T = 1"}
    ax.set_ylabel(names.get(value, value))
    if ax.get_legend_handles_labels()[0]:
        ax.legend()
    return ax


@validated(
    n_columns=COUNT,
    titles=["array-like", None],
    limit=[Interval(Real, 0, None, closed="neither"), None],
    cmap=[str, callable],
)
def plot_components(
    components: ArrayLike,
    shape: tuple[int, int],
    *,
    n_columns: int = 8,
    axes: Any = None,
    titles: Sequence[str] | None = None,
    limit: float | None = None,
    cmap: Any = "gray",
) -> NDArray:
    """Draw components as images side by side, on a common scale that is symmetric about 0.

    Parameters
    ----------
    components : array-like of shape (n_components, n_features)
        One image in each row, for example ``model.components_``.
    shape : (int, int)
        Height and width of an image; their product is n_features.
    n_columns : int, default=8
        Number of images in a row of new Axes.
    axes : array of matplotlib Axes, optional
        At least n_components Axes to draw into, in reading order.  Axes that are not needed are
        hidden.
    titles : sequence of str, optional
        Titles of the images.
    limit : float, optional
        The colours represent values from -limit to limit.  Smaller values are drawn like -limit,
        and larger values like limit.  The default is the largest absolute value in `components`.
        To compare figures, use the same limit for all.
    cmap : str or matplotlib Colormap, default="gray"
        With ``"gray"``, 0 is a middle gray.  ``"RdBu_r"`` shows signs by hue.

    Returns
    -------
    ndarray of matplotlib Axes
        The Axes that were passed, or new Axes of shape (n_rows, n_columns).

    Raises
    ------
    ValueError
        If the images do not have n_features pixels, if there are too few Axes, if the number
        of titles is not the number of images, or if `n_columns` or `limit` is not positive.
    """
    images = check_matrix(components, dtype=np.float64, accept_sparse=False, name="components")
    sides = as_array(shape)
    are_sizes = sides.shape == (2,) and sides.dtype.kind in "iu" and sides.min() >= 1
    if not are_sizes or int(sides[0]) * int(sides[1]) != images.shape[1]:
        raise ValueError(
            "'shape' must be the height and width of an image, whose product is the number of "
            f"features. Got shape={shape!r} and {images.shape[1]} features."
        )
    height, width = sides.tolist()
    if titles is not None and as_array(titles).shape != (len(images),):
        raise ValueError(
            f"'titles' must contain a title for each of {len(images)} images. "
            f"Got shape {as_array(titles).shape}."
        )
    limit = float(limit or np.max(np.abs(images)) or 1.0)  # 1 if all components are 0
    limit = min(limit, 1e300)  # matplotlib subtracts -limit from limit
    size = (1, height / width + (0.3 if titles is not None else 0))  # a title needs 0.3 inches
    axes = several_axes(axes, len(images), "component", n_columns, size)
    for number, (ax, image) in enumerate(zip(axes.flat, images, strict=False)):
        image = np.clip(image, -limit, limit)  # otherwise matplotlib's division may overflow
        ax.imshow(image.reshape(height, width), cmap=cmap, vmin=-limit, vmax=limit)
        ax.set_xticks([])
        ax.set_yticks([])
        if titles is not None:
            ax.set_title(titles[number])
    return axes


#: The measures in a figure of a Choice, and their titles.
TITLES = {
    "held_out_log_likelihood": "held-out log-likelihood",
    "coherence": "coherence (NPMI)",
    "diversity": "diversity",
    "stability": "stability",
    "quality": "coherence x diversity",
}


def plot_choice(choice: Any, *, axes: Any = None) -> NDArray:
    """Draw the measures of :func:`annealvi.topics.choose_n_topics` against the number of topics.

    A line connects the means over runs, bars are standard deviations, and a dashed line marks the
    recommended number.

    Parameters
    ----------
    choice : Choice
        The result of :func:`annealvi.topics.choose_n_topics`.
    axes : array of matplotlib Axes, optional
        At least five Axes to draw into, in reading order.  Axes that are not needed are hidden.

    Returns
    -------
    ndarray of matplotlib Axes
        The Axes that were passed, or five new Axes side by side.

    Raises
    ------
    TypeError
        If `choice` is not a Choice, or `axes` are not Axes.
    ValueError
        If there are too few Axes.
    """
    if not has_attributes(choice, "n_topics", "measures", "recommended"):
        raise TypeError(
            f"'choice' must be a Choice, the result of choose_n_topics(documents). Got {choice!r}."
        )
    drawn_axes = several_axes(
        axes, n=len(TITLES), what="measure", n_columns=len(TITLES), size=(3, 3)
    )
    for ax, (name, title) in zip(drawn_axes.flat, TITLES.items(), strict=False):
        values = choice.measures[name]
        # a single run has no standard deviation
        spread = values.std(axis=1, ddof=1) if values.shape[1] > 1 else np.zeros(len(values))
        ax.errorbar(choice.n_topics, values.mean(axis=1), yerr=spread, marker="o")
        ax.axvline(choice.recommended, linestyle="--", color="0.6")
        ax.set_xscale("log")
        ax.set_xticks(choice.n_topics, [str(k) for k in choice.n_topics])
        ax.minorticks_off()
        ax.set_xlabel("number of topics")
        ax.set_title(title)
    return drawn_axes[0] if axes is None else drawn_axes  # the only row of new Axes
