"""Fonts for the words in figures, because matplotlib's own font lacks most scripts of Asia."""

from __future__ import annotations

import unicodedata
import warnings
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

import numpy as np

from annealvi._optional import import_optional
from annealvi.exceptions import warn_user

Function = TypeVar("Function", bound=Callable[..., Any])


def legible(plot: Function) -> Function:
    """Make a function that returns Axes show all characters, or warn if no font has them."""

    @wraps(plot)
    def call(*args: Any, **options: Any) -> Any:
        axes = plot(*args, **options)
        for figure in {ax.figure for ax in np.ravel(axes)}:
            _make_legible(figure)
        return axes

    return call  # type: ignore[return-value]


def _make_legible(figure: Any) -> None:
    """Add a font to texts whose own font lacks some of their characters."""
    text = import_optional("matplotlib.text", "annealvi.plot")
    fonts = import_optional("matplotlib.font_manager", "annealvi.plot")
    for ax in figure.axes:  # these calls create the labels
        ax.get_xticklabels()
        ax.get_yticklabels()
    missing: dict[str, list[Any]] = {}
    for element in figure.findobj(text.Text):
        if element.get_text().isascii():
            continue
        characters = _characters(fonts, fonts.findfont(element.get_fontproperties()))
        for sign in set(element.get_text()):
            if ord(sign) not in characters and not sign.isspace():
                missing.setdefault(sign, []).append(element)
    families: dict[str, str] = {}
    for font in fonts.fontManager.ttflist:
        if len(families) < len(missing) and "last resort" not in font.name.lower():
            characters = _characters(fonts, font.fname)
            for sign in missing:
                if ord(sign) in characters:
                    families.setdefault(sign, font.name)
    for sign, family in families.items():
        for element in missing[sign]:
            element.set_fontfamily(list(dict.fromkeys([*element.get_fontfamily(), family])))
    lost = set(missing) - set(families)
    if lost:
        scripts = {unicodedata.name(sign, "unknown").split()[0].title() for sign in lost}
        warn_user(
            f"No installed font has some characters in the figure ({', '.join(sorted(scripts))}). "
            "These characters are drawn as boxes. Install a font that has them, such as a Noto "
            "font, and delete the font cache in matplotlib.get_cachedir()."
        )
        # matplotlib would warn of each of them again whenever the figure is drawn
        warnings.filterwarnings("ignore", r"Glyph \d+ .*missing from", UserWarning)


def _characters(fonts: Any, path: str) -> dict[int, int]:
    try:
        return fonts.get_font(path).get_charmap()
    except (OSError, RuntimeError):  # the file is not a font
        return {}
