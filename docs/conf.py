# SPDX-License-Identifier: Apache-2.0
"""Configuration of Sphinx: `make docs` builds the documentation site into build/docs."""

import enum
import inspect
import re
import subprocess
import sys
from pathlib import Path

DOCS = Path(__file__).resolve().parent
sys.path.insert(0, str(DOCS))

import artifex_devices  # noqa: E402
import autodoc_types  # noqa: E402
import llms_text  # noqa: E402
import navigation  # noqa: E402
import reference_pages  # noqa: E402
import type_names  # noqa: E402
from artifex_devices import _core  # noqa: E402
from bound_signatures import definitions, signature_of  # noqa: E402
from docutils import nodes  # noqa: E402
from sphinx.domains.python import PyXRefRole  # noqa: E402
from sphinx.ext import napoleon  # noqa: E402
from sphinx.ext.autodoc import PropertyDocumenter  # noqa: E402
from sphinx.util.docutils import SphinxRole  # noqa: E402
from sphinx.util.inspect import signature as sphinx_signature  # noqa: E402
from sphinx.util.inspect import stringify_signature  # noqa: E402

origin = subprocess.run(["git", "-C", DOCS, "remote", "get-url", "origin"], capture_output=True, text=True, check=False)
# A site that is built in a clone of a public repository links to it.
REPOSITORY = origin.stdout.strip() if origin.stdout.startswith("https://") else ""

project = "artifex_devices"
release = version = artifex_devices.__version__
html_title = f"artifex_devices {release}"
html_show_copyright = False
html_show_sphinx = False

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.intersphinx",
    "sphinx.ext.viewcode",
    "sphinx_copybutton",
    "sphinx_design",
]
html_theme = "furo"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_extra_path = [str(navigation.PLAYGROUND)] if navigation.PLAYGROUND.exists() else []
html_logo = html_favicon = "images/logo.svg"
if REPOSITORY:
    html_theme_options = {"source_repository": REPOSITORY, "source_branch": "main", "source_directory": "docs/"}
default_role = "name"
smartquotes = False  # "--option" keeps its hyphens

myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 4  # GitHub's anchors; links to unknown anchors are errors
nb_execution_mode = "off"  # notebooks are committed with outputs that a test compares
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

intersphinx_mapping = {  # inventories by tools/make_inventories.py: the site is built without a network
    "python": ("https://docs.python.org/3/", "inventories/python.inv"),
    "numpy": ("https://numpy.org/doc/stable/", "inventories/numpy.inv"),
    "jax": ("https://docs.jax.dev/en/latest/", "inventories/jax.inv"),
}

autosummary_generate = False
autodoc_member_order = "groupwise"
autodoc_preserve_defaults = False
autoclass_content = "both"
python_maximum_signature_line_length = 88
python_use_unqualified_type_names = True
toc_object_entries_show_parents = "hide"
add_module_names = False


# Names of modules and functions that are more often names of parameters.
PARAMETERS = {"devices", *(module for page in reference_pages.PAGES for module in page.modules.split())}
HOMES = reference_pages.homes()


class NameRole(SphinxRole):
    """Single backticks in docstrings: a link if they hold the name of something documented, otherwise code."""

    def run(self):
        name = self.text.removesuffix("()")
        if not re.fullmatch(r"[A-Za-z_][\w.]*", name) or self.text in PARAMETERS:
            return [nodes.literal(self.rawtext, self.text)], []
        home = HOMES.get(f"{project}.{name}")
        link = f"{self.text} <{home.path if home else name}>"
        return PyXRefRole()("py:obj", self.rawtext, link, self.lineno, self.inliner)


def is_bound(value):
    """Whether pybind11 has bound a function, so that `inspect` finds no signature."""
    return type(value).__name__.startswith(("builtin", "method_descriptor", "instancemethod"))


def find_signature(app, what, name, value, options, signature, returns):
    """Gives autodoc the signatures of bound classes, functions and methods, from the stub."""
    if what == "class" and issubclass(value, enum.Enum):
        return "", None
    if what == "class" and vars(_core).get(value.__name__) is value and f"{value.__name__}.__init__" in definitions():
        return signature_of(f"{value.__name__}.__init__")[0], None
    if what == "class" and inspect.isfunction(vars(value).get("__init__")):  # autodoc would take that of a bound base
        return stringify_signature(sphinx_signature(value.__init__, True), show_return_annotation=False), None
    path = ".".join(name.split(".")[-2:]) if what == "method" else name.rpartition(".")[2]
    if what not in ("function", "method") or not (is_bound(value) or (path in definitions() and what == "method")):
        return None
    return signature_of(path)


class BoundPropertyDocumenter(PropertyDocumenter):
    """Gives autodoc the types of bound properties, from the stub."""

    def add_directive_header(self, sig):
        super().add_directive_header(sig)
        if is_bound(getattr(self.object, "fget", None)):
            returned = signature_of(".".join(self.objpath[-2:]))[1]
            self.add_line(f"   :type: {returned}", self.get_sourcename())


class Docstring(napoleon.GoogleDocstring):
    """A docstring whose section "Returns" has no type before its first colon."""

    def _consume_returns_section(self, preprocess_types=False):
        lines = self._dedent(self._consume_to_next_section())
        return [("", "", lines)] if lines else []


def format_docstring(app, what, name, value, options, lines):
    """Formats Google-style docstrings. To napoleon the docstring of a property is "type: text", which ours are not."""
    kind = "function" if what in ("property", "attribute", "data") else what
    style = napoleon.Config(napoleon_use_ivar=True)
    lines[:] = Docstring("\n".join(lines), style, app, kind, name, value, options).lines()


def adapt_source(app, page, source):
    """Adapts pages written for readers of the repository: notebooks are in docs, and navigation.py has additions."""
    source[0] = source[0].replace("](../../examples/notebooks/", "](../notebooks/")
    source[0] = source[0].replace("](../examples/notebooks/", "](notebooks/")
    below_title, at_end = navigation.additions(page)
    if below_title:
        title, newline, text = source[0].partition("\n")
        source[0] = title + newline + below_title + text
    source[0] += at_end


def find_alias(app, env, node, text):
    """Finds the alias whose name is in a signature, where Sphinx looks for a class only."""
    if node.get("reftype") != "class" or node["reftarget"] not in type_names.ALIASES:
        return None
    return env.get_domain("py").resolve_xref(env, node["refdoc"], app.builder, "type", node["reftarget"], node, text)


def leave_out_of_search(app, document):
    """Leaves pages for developers out of the site's search; its titles stay."""
    if app.env.docname.startswith(navigation.NOT_SEARCHED):
        app.env.metadata[app.env.docname]["nosearch"] = ""


def write_dashes(app, document):
    """Writes dashes between parameters and their descriptions, where Sphinx has two hyphens."""
    for text in list(document.findall(nodes.Text)):
        if text == " -- ":
            text.parent.replace(text, nodes.Text(" \N{EN DASH} "))


def setup(app):
    """Connects the generated parts of the site."""
    reference_pages.write(DOCS / "reference", {"types.rst": type_names.page_text()})
    autodoc_types.name_types()
    app.connect("source-read", adapt_source)
    app.add_role("name", NameRole())
    app.add_autodocumenter(BoundPropertyDocumenter, override=True)
    app.connect("autodoc-process-signature", find_signature)
    app.connect("autodoc-process-docstring", format_docstring)
    app.connect("missing-reference", find_alias)
    app.connect("doctree-read", write_dashes)
    app.connect("doctree-read", leave_out_of_search)
    app.connect("build-finished", llms_text.write)
