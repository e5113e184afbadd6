"""How the examples are run for the site."""

from __future__ import annotations

from pathlib import Path
from typing import Any

#: Those that end within half a minute.
QUICK = (
    *("annealing_lengths", "custom_model", "gmm_surface", "hot_documents", "learning_curves"),
    *("proximity_ring", "toy_factors"),
)
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
