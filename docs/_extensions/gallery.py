"""How the examples are run for the site."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

#: Those that end within half a minute.
QUICK = [
    *("annealing_lengths", "arxiv_years", "custom_model", "gmm_surface", "hot_documents"),
    *("learning_curves", "proximity_ring", "toy_factors"),
]
#: The folder of data that is not in the package.
DATA = Path(os.environ.get("ANNEALVI_DATA", Path(__file__).parents[2] / ".." / "shared" / "data"))
if (DATA / "poliblog5k.npz").exists():
    QUICK.append("political_blogs")
    os.environ["ANNEALVI_DATA"] = str(DATA)  # examples run in another folder
#: The files that are run.
PATTERN = rf"/({'|'.join(QUICK)})\.py"


def arguments(gallery_conf: dict[str, Any], script_vars: dict[str, Any]) -> list[str]:
    """Return the arguments of an example: its figure goes to a folder of the build.

    Parameters
    ----------
    gallery_conf, script_vars : dict
        What sphinx-gallery knows.
    """
    name = Path(script_vars["src_file"]).stem
    folder = Path(gallery_conf["src_dir"]).parent / "build" / "figures"
    folder.mkdir(parents=True, exist_ok=True)
    return [] if name == "custom_model" else ["--output", str(folder / f"{name}.png")]


def describe_pictures(app: Any, page: str, source: list[str]) -> None:
    """Give each picture of the gallery its example's title as alternative text."""
    if page == "examples/index":
        picture = r"(?s):alt:\n(.*?sphx-glr-thumbnail-title\">(.*?)<)"
        source[0] = re.sub(picture, r":alt: Thumbnail of the example: \2\n\1", source[0])


def setup(app: Any) -> dict[str, bool]:
    """Register the alternative texts."""
    app.connect("source-read", describe_pictures)
    return {"parallel_read_safe": True}
