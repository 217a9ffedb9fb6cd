# SPDX-License-Identifier: Apache-2.0
"""Configuration of Sphinx: `make docs` builds the documentation site into build/docs."""

import re
import sys
from pathlib import Path

DOCS = Path(__file__).resolve().parent
sys.path.insert(0, str(DOCS))

import artifex_devices  # noqa: E402
import llms_text  # noqa: E402
import reference_pages  # noqa: E402
from artifex_devices._base.bound_signatures import signature_of  # noqa: E402
from docutils import nodes  # noqa: E402
from sphinx.domains.python import PyXRefRole  # noqa: E402
from sphinx.util.docutils import SphinxRole  # noqa: E402
from sphinx.util.inspect import stringify_signature  # noqa: E402

project = "artifex_devices"
release = version = artifex_devices.__version__
html_title = f"artifex_devices {release}"
html_show_copyright = False
html_show_sphinx = False

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
]
html_theme = "furo"
default_role = "name"

myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 4  # anchors as GitHub makes them; links to others are errors
nb_execution_mode = "off"  # notebooks are committed with outputs that a test compares
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

autosummary_generate = False
autodoc_member_order = "groupwise"
autodoc_preserve_defaults = False
autoclass_content = "both"
napoleon_numpy_docstring = False
napoleon_use_ivar = True
python_maximum_signature_line_length = 88
python_use_unqualified_type_names = True
toc_object_entries_show_parents = "hide"
add_module_names = False


class NameRole(SphinxRole):
    """Single backticks in docstrings: a link if they hold the name of something documented, otherwise code."""

    def run(self):
        if re.fullmatch(r"[A-Za-z_][\w.]*(\(\))?", self.text):
            return PyXRefRole()("py:obj", self.rawtext, self.text, self.lineno, self.inliner)
        return [nodes.literal(self.rawtext, self.text)], []


def find_signature(app, what, name, value, options, signature, returns):
    """Gives autodoc the signature of a bound function or method, which the stub has."""
    if what not in ("function", "method") or not type(value).__name__.startswith(
        ("builtin", "method_desc", "instance")
    ):
        return None
    try:
        found = signature_of(".".join(name.split(".")[-2:]) if what == "method" else name.rpartition(".")[2])
    except KeyError:
        return None
    parameters = [each for each in found.parameters.values() if each.name != "self"]
    text = stringify_signature(found.replace(parameters=parameters), unqualified_typehints=True)
    arguments, _, result = text.partition(" -> ")
    return arguments, result or None


def adapt_source(app, page, source):
    """Adapts pages whose text suits readers of the repository: notebooks are in docs here, the decisions need a list."""
    source[0] = source[0].replace("](../../examples/notebooks/", "](../notebooks/")
    source[0] = source[0].replace("](../examples/notebooks/", "](notebooks/")
    if page == "decisions/README":
        source[0] += "\n```{toctree}\n:glob:\n:hidden:\n\n0*\n```\n"


def setup(app):
    """Connects the generated parts of the site."""
    reference_pages.write(DOCS / "reference")
    app.connect("source-read", adapt_source)
    app.add_role("name", NameRole())
    app.connect("autodoc-process-signature", find_signature)
    app.connect("build-finished", llms_text.write)
