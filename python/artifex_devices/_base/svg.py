# SPDX-License-Identifier: Apache-2.0
"""SVG text that notebooks show as what it pictures."""

from __future__ import annotations

__all__ = ["Picture"]


class Picture(str):
    """A stand-alone SVG document: a str, to be written to a file or put into a page; notebooks draw it.

    Example:
        >>> picture = Picture("<svg/>")
        >>> picture, picture == "<svg/>"
        (<Picture: SVG of 6 characters>, True)
    """

    __slots__ = ()

    def __repr__(self) -> str:
        """Its size: the text itself is long."""
        return f"<Picture: SVG of {len(self)} characters>"

    def _repr_svg_(self) -> str:
        return str(self)
