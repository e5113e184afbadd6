"""Fonts for the words in figures, because matplotlib's own font lacks most scripts of Asia."""

from __future__ import annotations

import unicodedata
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
    def call(*args: Any, **given: Any) -> Any:
        axes = plot(*args, **given)
        for figure in {ax.figure for ax in np.ravel(axes)}:
            _make_legible(figure)
        return axes

    return call  # type: ignore[return-value]


def _make_legible(figure: Any) -> None:
    """Add a font to texts whose own font lacks some of their characters."""
    text = import_optional("matplotlib.text", "annealvi.plot")
    fonts = import_optional("matplotlib.font_manager", "annealvi.plot")
    for ax in figure.axes:
        ax.get_xticklabels(), ax.get_yticklabels()  # this call creates the labels
    shown = [each for each in figure.findobj(text.Text) if not each.get_text().isascii()]
    missing: dict[str, list[Any]] = {}
    for each in shown:
        has = _characters(fonts.findfont(each.get_fontproperties()))
        for sign in set(each.get_text()):
            if ord(sign) not in has and not sign.isspace():
                missing.setdefault(sign, []).append(each)
    families: dict[str, str] = {}
    for font in fonts.fontManager.ttflist if missing else ():
        if "last resort" not in font.name.lower() and len(families) < len(missing):
            own = _characters(font.fname)
            new = [sign for sign in missing if sign not in families and ord(sign) in own]
            families |= dict.fromkeys(new, font.name)
    for sign, texts in missing.items():
        for each in texts if sign in families else ():
            each.set_fontfamily(list(dict.fromkeys([*each.get_fontfamily(), families[sign]])))
    lost = sorted(set(missing) - set(families))
    if lost:
        script = unicodedata.name(lost[0], "unknown").split()[0].title()
        warn_user(
            f"No installed font has {len(lost)} of the characters in the figure, such as "
            f"{lost[0]!r} ({script}). These characters are drawn as boxes. Install a font that has "
            "them, such as a Noto font, and delete the font cache in matplotlib.get_cachedir()."
        )


def _characters(path: str) -> dict[int, int]:
    fonts = import_optional("matplotlib.font_manager", "annealvi.plot")
    try:
        return fonts.get_font(path).get_charmap()
    except (OSError, RuntimeError):  # the file is not a font
        return {}
