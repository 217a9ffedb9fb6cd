# SPDX-License-Identifier: Apache-2.0
"""Pictures as SVG text that notebooks draw."""

from __future__ import annotations

import base64
import html
import re

# As in cpp/artifex_devices/render/svg_document.cpp: `svg:root` matches a stand-alone picture only.
_STYLE = (
    "svg:root{color:#1f2328;background:#fff}@media (prefers-color-scheme:dark){svg:root{color:#e6edf3;background:#111}}"
)
_HEAD = re.compile(r'<svg [^>]*?width="(\d+)" height="(\d+)"[^>]*>\s*<title>(.*?)</title>', re.DOTALL)


class Picture(str):
    """A stand-alone SVG document: a str to write to a file or insert into a page; notebooks draw it.

    In HTML it is an `<img>` with the document as a data URI: a notebook that is not trusted removes `<svg>` elements,
    but shows images.

    Example:
        >>> picture = Picture('<svg width="80" height="40"><title>a mesh</title></svg>')
        >>> picture, picture[:4]
        (<Picture 80 x 40: a mesh>, '<svg')
    """

    __slots__ = ()

    def __repr__(self) -> str:
        head = _HEAD.match(self)
        if head is None:
            return f"<Picture: SVG of {len(self)} characters>"
        width, height, title = head.groups()
        return f"<Picture {width} x {height}: {html.unescape(title)}>"

    def _repr_svg_(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        head = _HEAD.match(self)
        width, title = ("", "picture") if head is None else (f'width="{head[1]}" ', head[3])
        data = base64.b64encode(self.encode()).decode()
        return (
            f'<img alt="{html.escape(html.unescape(title))}" {width}style="max-width:100%;height:auto" '
            f'src="data:image/svg+xml;base64,{data}"/>'
        )


def draw(title: str, width: int, height: int, elements: str) -> Picture:
    """Returns SVG elements as a stand-alone picture in the reader's colour scheme.

    Example:
        >>> draw("one line", 10, 2, '<path d="M0 1H10" stroke="currentColor"/>')
        <Picture 10 x 2: one line>
    """
    return Picture(
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" '
        'role="img" font-family="system-ui, sans-serif" font-size="12" fill="currentColor" '
        f'style="max-width:100%;height:auto">\n<title>{html.escape(title)}</title>\n<style>{_STYLE}</style>\n'
        f"{elements}</svg>\n"
    )
