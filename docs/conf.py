"""How Sphinx builds the site: `make docs`."""

from __future__ import annotations

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_extensions"))

import gallery  # noqa: E402
import inventories  # noqa: E402

import annealvi  # noqa: E402

project = "annealvi"
author = "The annealvi developers"
version = release = annealvi.__version__
project_copyright = f"2026, {author}"

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.intersphinx",
    "sphinx.ext.mathjax",
    "numpydoc",
    "myst_parser",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    "gallery",
    "live_report",
    "repository",
]
exclude_patterns = ["_build"]
templates_path = ["_templates"]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
default_role = "literal"  # a name in backticks
smartquotes = False  # options keep their two hyphens
highlight_language = "text"  # what has no language is output or a command
toc_object_entries_show_parents = "hide"

# Pages in Markdown.  GitHub makes the same anchors of headings.
myst_heading_anchors = 3
myst_enable_extensions = ["colon_fence", "dollarmath"]

# The reference, from docstrings.
autosummary_generate = True
autodoc_typehints = "none"  # the docstrings tell the types
autodoc_member_order = "groupwise"
numpydoc_class_members_toctree = False
numpydoc_show_class_members = False  # the template of a class lists them
numpydoc_xref_param_type = False

intersphinx_mapping = inventories.mapping(HERE.parent / "build" / "inventories")
intersphinx_timeout = 5

# Those that end within half a minute are run, with what they print and draw.
sphinx_gallery_conf = {
    "examples_dirs": ["../examples"],
    "gallery_dirs": ["examples"],
    "filename_pattern": gallery.PATTERN,
    "reset_argv": "gallery.arguments",
    "ignore_pattern": r"(^|/)_",
    "download_all_examples": False,
    "show_memory": False,
    "show_signature": False,
    "remove_config_comments": True,
    "within_subsection_order": "ExampleTitleSortKey",
    "abort_on_example_error": True,
    "min_reported_time": 1e9,
    "parallel": True,  # as many at a time as -j says
}

html_theme = "pydata_sphinx_theme"
html_title = f"annealvi {release}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_theme_options = {
    "navbar_align": "left",
    "header_links_before_dropdown": 7,
    "show_toc_level": 2,
    "navigation_with_keys": False,
    # the widest table has the whole width
    "secondary_sidebar_items": {"**": ["page-toc"], "index": [], "look_up/features": []},
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
html_sidebars = {"index": [], "record/papers": [], "look_up/features": []}
