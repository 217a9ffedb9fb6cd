# SPDX-License-Identifier: Apache-2.0
"""HTML of values, as a notebook reads it."""

import base64
import re
import xml.etree.ElementTree as ET
from html.parser import HTMLParser

# What the sanitizer of JupyterLab 4 keeps (packages/apputils/src/sanitizer.ts), of what pages use.
KEPT_ATTRIBUTES = {
    "details": set(),
    "div": {"style"},
    "img": {"alt", "src", "style", "width"},
    "pre": {"style"},
    "summary": set(),
    "table": {"style"},
    "td": {"style"},
    "th": {"style"},
    "tr": {"style"},
    "wbr": set(),
}
KEPT_STYLES = {
    "background-color", "border-collapse", "font-family", "font-size", "font-weight", "height", "line-height", "margin",
    "max-width", "min-width", "opacity", "overflow-x", "padding", "text-align", "vertical-align", "white-space",
}  # fmt: skip


class Page(HTMLParser):
    """Reads a page; asserts that elements nest and that the sanitizer of JupyterLab would change nothing.

    Attributes:
        tags: Names of the elements, in order.
        letters: The text.
        pictures: The SVG documents of the images.
    """

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.letters, self.pictures = [], [], "", []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)
        self.handle_startendtag(tag, attrs)

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)
        assert tag in KEPT_ATTRIBUTES, tag
        attributes = dict(attrs)
        assert set(attributes) <= KEPT_ATTRIBUTES[tag], attributes
        styles = [style.partition(":")[0] for style in attributes.get("style", "").split(";") if style]
        assert set(styles) <= KEPT_STYLES, styles
        if tag == "img":
            kind, data = attributes["src"].split(",")
            assert kind == "data:image/svg+xml;base64"
            self.pictures.append(base64.b64decode(data).decode())

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.letters += data


def svg_of(page):
    """The only picture of a page, as an XML element."""
    (picture,) = Page(page).pictures
    return ET.fromstring(picture)


def titles_of(picture):
    """What the elements of a picture are, below its own title."""
    return re.findall(r"<title>(.*?)</title>", picture)[1:]
