"""How the site is built: ``make docs``."""

import os
import sys
import tomllib
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_ext"))

# One BLAS thread, as in all other commands of the Makefile: pictures and figures do not depend on the machine.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

PROJECT = tomllib.loads((HERE.parent / "pyproject.toml").read_text(encoding="utf-8"))["project"]
REPOSITORY = PROJECT["urls"]["Changelog"].partition("/blob/")[0]

project = PROJECT["name"]
release = version = PROJECT["version"]
author = PROJECT["authors"][0]["name"]
copyright = author

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.viewcode",
    "numpydoc",
    "myst_parser",
    "sphinx_gallery.gen_gallery",
    "formulas",
    "api_pages",
    "command_pages",
    "documents",
]
exclude_patterns = ["_ext"]
default_role = "py:obj"  # `Party` in a docstring or an example is a link, and code where there is no such page

autodoc_typehints = "none"  # the sections of the docstrings have the types
autodoc_member_order = "bysource"
numpydoc_show_class_members = False
add_module_names = False
toc_object_entries_show_parents = "hide"

myst_heading_anchors = 4

sphinx_gallery_conf = {
    "examples_dirs": ["../examples"],
    "gallery_dirs": ["gallery"],
    "filename_pattern": r"plot_",
    "within_subsection_order": "gallery_rules.ReadingOrder",
    "backreferences_dir": "gallery/backreferences",
    "doc_module": ("datacollab",),
    "matplotlib_animations": False,
    "write_computation_times": False,
    "show_memory": False,
    "reset_modules": ("matplotlib", "gallery_rules.refuse_exits"),
    "reset_modules_order": "both",
    "remove_config_comments": True,
}

html_theme = "pydata_sphinx_theme"
html_title = f"{project} {release}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_js_files = ["search-from-folder.js"]
html_math_renderer = "mathml"
html_copy_source = False
html_context = {"repository": REPOSITORY, "default_mode": "auto"}
html_theme_options = {
    "logo": {"text": project},
    "navbar_align": "left",
    "navbar_end": ["theme-switcher"],
    "header_links_before_dropdown": 5,
    "collapse_navigation": True,
    "show_nav_level": 1,
    "navigation_depth": 3,
    "show_toc_level": 2,
    "footer_start": ["copyright"],
    "footer_end": [],
    "external_links": [{"name": "Repository", "url": REPOSITORY}],
}
