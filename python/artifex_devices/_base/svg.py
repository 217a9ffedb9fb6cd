# SPDX-License-Identifier: Apache-2.0
"""SVG text that notebooks draw."""

from __future__ import annotations


class Picture(str):
    """A stand-alone SVG document: a str to write to a file or insert into a page; notebooks draw it.

    Example:
        >>> picture = Picture("<svg/>")
        >>> picture, picture == "<svg/>"
        (<Picture: SVG of 6 characters>, True)
    """

    __slots__ = ()

    def __repr__(self) -> str:
        return f"<Picture: SVG of {len(self)} characters>"

    def _repr_svg_(self) -> str:
        return str(self)
