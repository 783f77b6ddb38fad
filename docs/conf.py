"""How Sphinx builds the documentation: ``make docs``."""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

project, author, copyright = "gym_custom", "the gym_custom authors", "the gym_custom authors"
extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx.ext.viewcode", "sphinx_copybutton"]
exclude_patterns = ["_build", "**.ipynb_checkpoints", "images"]

# Markdown: links from page to page and to headings are checked, as on GitHub
myst_heading_anchors = 3
myst_enable_extensions = ["dollarmath", "colon_fence"]
nb_execution_mode = "off"  # the notebooks hold their outputs; the tests run them

# API reference
autodoc_member_order = "bysource"
autodoc_typehints = "description"
autodoc_typehints_description_target = "documented"
autodoc_class_signature = "separated"
napoleon_google_docstring, napoleon_numpy_docstring = True, False
napoleon_use_ivar = True
suppress_warnings = ["ref.python"]  # a word for a shape, such as capacity, is an attribute of several classes

html_theme = "furo"
html_title = "gym_custom"
html_static_path = ["static"]
html_css_files = ["custom.css"]
html_theme_options = {
    "light_css_variables": {"color-brand-primary": "#266cd8", "color-brand-content": "#266cd8"},
    "dark_css_variables": {"color-brand-primary": "#7aa7f0", "color-brand-content": "#7aa7f0"},
    "navigation_with_keys": True,
}
copybutton_prompt_text = r">>> |\$ "
copybutton_prompt_is_regexp = True
