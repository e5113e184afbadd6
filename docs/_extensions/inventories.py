"""Links to the documentation of other libraries, also where the network cannot be reached.

Sphinx fetches the inventory of a library's names from its site.  Where that fails it takes the
small one that is written here, which has the names that this documentation uses.
"""

from __future__ import annotations

import zlib
from pathlib import Path

#: For each library its site, and the names used here: name, role, and page with "$" for the name.
LIBRARIES: dict[str, tuple[str, dict[str, tuple[str, str]]]] = {
    "python": (
        "https://docs.python.org/3",
        {
            "int": ("py:class", "library/functions.html#$"),
            "float": ("py:class", "library/functions.html#$"),
            "str": ("py:class", "library/stdtypes.html#$"),
            "list": ("py:class", "library/stdtypes.html#$"),
            "dict": ("py:class", "library/stdtypes.html#$"),
        },
    ),
    "numpy": (
        "https://numpy.org/doc/stable",
        {
            "numpy.ndarray": ("py:class", "reference/generated/$.html#$"),
            "numpy.random.RandomState": ("py:class", "reference/random/legacy.html#$"),
        },
    ),
    "scipy": (
        "https://docs.scipy.org/doc/scipy",
        {
            "scipy.sparse.csr_matrix": ("py:class", "reference/generated/$.html#$"),
            "scipy.cluster.hierarchy.linkage": ("py:function", "reference/generated/$.html#$"),
        },
    ),
    "sklearn": (
        "https://scikit-learn.org/stable",
        {
            "metadata_routing": ("std:label", "metadata_routing.html#$"),
            "df_output_transform": ("std:label", "developers/develop.html#$"),
            "sphx_glr_auto_examples_miscellaneous_plot_set_output.py": (
                "std:label",
                "auto_examples/miscellaneous/plot_set_output.html#$",
            ),
            "meta-estimator": ("std:term", "glossary.html#term-$"),
            "sklearn.callback": ("py:module", "api/$.html#module-$"),
            "sklearn.cluster.kmeans_plusplus": ("py:function", "modules/generated/$.html#$"),
            **{
                name: ("py:class", "modules/generated/$.html#$")
                for name in (
                    "sklearn.decomposition.LatentDirichletAllocation",
                    "sklearn.feature_extraction.text.CountVectorizer",
                    "sklearn.mixture.GaussianMixture",
                    "sklearn.mixture.BayesianGaussianMixture",
                    "sklearn.model_selection.GridSearchCV",
                    "sklearn.pipeline.Pipeline",
                    "sklearn.utils.Bunch",
                )
            },
        },
    ),
    "pandas": (
        "https://pandas.pydata.org/docs",
        {
            "pandas.DataFrame": ("py:class", "reference/api/$.html#$"),
            "pandas.Series": ("py:class", "reference/api/$.html#$"),
        },
    ),
}


def mapping(folder: Path) -> dict[str, tuple[str, tuple[str | None, str]]]:
    """Write the small inventories; return ``intersphinx_mapping``.

    Parameters
    ----------
    folder : Path
        Where they are written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    found: dict[str, tuple[str, tuple[str | None, str]]] = {}
    for library, (site, names) in LIBRARIES.items():
        lines = "".join(
            f"{name} {role} 1 {page.replace('$', name)} -\n" for name, (role, page) in names.items()
        )
        head = (
            f"# Sphinx inventory version 2\n# Project: {library}\n# Version: \n"
            "# The remainder of this file is compressed using zlib.\n"
        )
        path = folder / f"{library}.inv"
        path.write_bytes(head.encode() + zlib.compress(lines.encode()))
        found[library] = (site, (None, str(path)))
    return found
