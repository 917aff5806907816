"""Sphinx's settings: Markdown pages, docstrings, a theme that asks no other server."""

from __future__ import annotations

from importlib.metadata import version as version_of
from pathlib import Path

project = "isolux"
author = "The isolux developers"
copyright = author  # noqa: A001 - Sphinx's own name
release = version_of("isolux")
root_doc = "index"
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
exclude_patterns = ["extra"]

myst_heading_anchors = 4  # `page.md#heading`, as a forge has them
suppress_warnings = ["myst.header"]  # a page may start its own headings at any level
napoleon_google_docstring = False
napoleon_use_rtype = False
autodoc_typehints = "none"
autodoc_member_order = "bysource"
add_module_names = False
default_role = "code"  # a word between single backticks in a docstring
python_use_unqualified_type_names = True

html_theme = "pydata_sphinx_theme"
html_title = "isolux"
html_static_path = ["static"]
html_search_scorer = str(Path(__file__).with_name("search_scores.js"))
html_css_files = ["site.css"]
html_copy_source = False
html_show_sourcelink = False
html_show_sphinx = False
html_show_search_summary = True  # what it fetches stands in a script: summaries.py
html_sidebars = {"index": [], "demo": []}
html_theme_options = {
    "logo": {"text": "isolux"},
    "show_prev_next": False,
    "navbar_align": "left",
    "header_links_before_dropdown": 8,
    "navigation_depth": 2,
    "collapse_navigation": True,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": [],
    "footer_end": [],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
