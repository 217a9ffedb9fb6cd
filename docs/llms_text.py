# SPDX-License-Identifier: Apache-2.0
"""Writes llms.txt, the list of all pages for language models, into the built site: titles, links, first sentences."""

from pathlib import Path

from docutils import nodes
from sphinx import addnodes

INTRODUCTION = """\
# artifex_devices

> Devices, meshes, sharded arrays and collectives for NumPy, with the names and semantics of JAX's device layer, on a
> C++ core. It runs on CPUs; devices are real or simulated.
"""


def first_sentence(page: nodes.document) -> str:
    """The first sentence of the first paragraph below the heading."""
    for paragraph in page.findall(nodes.paragraph):
        if isinstance(paragraph.parent, nodes.section):
            return " ".join(paragraph.astext().split()).partition(". ")[0].rstrip(".:") + "."
    return ""


def sections(env) -> list[tuple[str, list[str]]]:
    """The tables of contents of the first page: caption and pages, with the pages below them."""

    def with_children(page):
        yield page
        for child in env.toctree_includes.get(page, ()):
            yield from with_children(child)

    return [
        (toctree["caption"], [page for entry in toctree["includefiles"] for page in with_children(entry)])
        for toctree in env.get_doctree("index").findall(addnodes.toctree)
    ]


def text_of(app) -> str:
    """The text of llms.txt: links lead to the sources of pages, which are plain text."""
    parts = [INTRODUCTION]
    for caption, pages in sections(app.env):
        parts.append(f"## {caption}\n")
        for page in pages:
            title = app.env.titles[page].astext()
            suffix = Path(app.env.doc2path(page)).suffix
            summary = first_sentence(app.env.get_doctree(page))
            parts.append(f"- [{title}](_sources/{page}{suffix}.txt){': ' if summary else ''}{summary}")
        parts.append("")
    return "\n".join(parts)


def write(app, error) -> None:
    """Writes the file after a successful build."""
    if error is None and app.builder.format == "html":
        Path(app.outdir, "llms.txt").write_text(text_of(app), encoding="utf-8")
