"""How Sphinx builds the documentation: ``make docs``."""

import re
import sys
from pathlib import Path
from types import ModuleType

from docutils import nodes

from variegate import __version__

DOCS = Path(__file__).parent
sys.path.insert(0, str(DOCS / "_ext"))

project = "Variegate"
author = "The Variegate developers"
project_copyright = author
version = release = __version__

extensions = [
    "mathml",
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
]
exclude_patterns = ["_build", "_ext", "_static"]
nitpicky = True
# Docstrings may name modules that are not part of the reference.
nitpick_ignore_regex = [("py:mod", r"variegate\..*")]

# Pages --------------------------------------------------------------------------------
myst_enable_extensions = ["colon_fence", "dollarmath"]
myst_heading_anchors = 4
highlight_language = "text"
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
copybutton_exclude = ".linenos, .gp, .go"

# Reference ----------------------------------------------------------------------------
# Docstrings say what arguments are, in words that annotations cannot say better.
autodoc_typehints = "none"
autodoc_member_order = "bysource"
autodoc_default_options = {"members": True}
# Frameworks that are not needed to read about what is made for them.
autodoc_mock_imports = [
    "haystack.core",
    "haystack.utils",
    "langchain_core",
    "llama_index",
    "pydantic",
    "safetensors",
    "torch",
    "triton",
]
napoleon_numpy_docstring = True
napoleon_google_docstring = False
napoleon_use_param = False
napoleon_use_rtype = False
# Types are words ("array of shape (N,)"), not names to link to.
napoleon_custom_sections = [("Attributes", "params_style")]
python_maximum_signature_line_length = 80
add_module_names = False
toc_object_entries_show_parents = "hide"

# Site ---------------------------------------------------------------------------------
html_theme = "furo"
html_title = "Variegate"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_math_renderer = "mathml"
html_copy_source = False
html_show_sphinx = False
html_show_copyright = False


class Component:
    """The decorator of Haystack, whose mock would take the place of the class."""

    def __call__(self, cls):
        """Return the class as it is."""
        return cls

    def output_types(self, **types):
        """Return a decorator that changes nothing."""
        return lambda run: run


haystack = ModuleType("haystack")
haystack.__path__ = []
haystack.component = Component()
haystack.Document = haystack.default_from_dict = haystack.default_to_dict = object
sys.modules["haystack"] = haystack


# Hooks --------------------------------------------------------------------------------
def link_to_model_cards(app, name, source):
    """Lead links to the cards beside the models to the pages that show them.

    In the repository these links lead to the files themselves.
    """
    cards = ("text/models/news.md", "text/models/evidence.md", "video/models/videos.md")
    for card in cards:
        page = f"/reference/models/{Path(card).name}"
        source[0] = source[0].replace(f"../src/variegate/{card}", page)


def show_model_cards(app, name, parent, source):
    """Lead links in the cards, which are written for where the files are, to pages."""
    source[0] = source[0].replace("../../../../docs/", "/")


def mark_numbers(app, doctree):
    """Keep cells such as "49.2 ± 0.1" on one line."""
    for cell in doctree.findall(nodes.entry):
        if re.fullmatch(r"[-+±×/%\d.,\[\] ]+", cell.astext().strip()):
            cell["classes"].append("number")


def skip_what_others_add(app, what, name, member, skip, options):
    """Leave out scikit-learn's methods about metadata, and fields of named tuples."""
    request = name.startswith("set_") and name.endswith("_request")
    request = request or name == "get_metadata_routing"
    field = str(getattr(member, "__doc__", "")).startswith("Alias for field number")
    return True if request or field else skip


def setup(app):
    """Put the hooks in place."""
    app.connect("source-read", link_to_model_cards)
    app.connect("include-read", show_model_cards)
    app.connect("doctree-read", mark_numbers)
    app.connect("autodoc-skip-member", skip_what_others_add)
