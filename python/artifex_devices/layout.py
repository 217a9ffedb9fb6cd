# SPDX-License-Identifier: Apache-2.0
"""Layout and Format: the names of `jax.experimental.layout`. XLA's own Layout is in `xla_client`.

Shards are stored in the order of dimensions of their Layout, row-major without one. There are no tiles.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from artifex_devices._base.checks import MAX_DIMENSIONS, check_sequence_of_ints, check_type, failure, wrong_value
from artifex_devices._base.public_lookup import add_public_lookup
from artifex_devices._core import Device, PjRtLayout, Sharding, SingleDeviceSharding
from artifex_devices._core import Layout as XlaLayout

__all__ = ["AutoLayout", "Format", "Layout"]
add_public_lookup(__name__)


class AutoLayout:
    """`Layout.AUTO`, the choice of a compiler. There is no compiler here, so placing data with it is an error."""

    def __repr__(self) -> str:
        return "AUTO"


class Layout:
    """The order of an array's dimensions in memory.

    Args:
        major_to_minor: Numbers of the dimensions, the slowest first; (0, 1, ..., n - 1) is row-major.

    Raises:
        TypeError: `major_to_minor` is not a sequence of integers.

    Example:
        >>> from artifex_devices.layout import Layout
        >>> Layout((0, 1)).is_row_major, Layout((1, 0)).is_row_major
        (True, False)
    """

    AUTO: ClassVar[AutoLayout] = AutoLayout()
    __slots__ = ("major_to_minor",)

    def __init__(self, major_to_minor: Sequence[int]) -> None:
        self.major_to_minor = check_sequence_of_ints(
            "Layout", "major_to_minor", major_to_minor, "write (0, 1)", maximum=MAX_DIMENSIONS
        )

    @property
    def is_row_major(self) -> bool:
        """Whether this is the default order."""
        return self.major_to_minor == tuple(range(len(self.major_to_minor)))

    @staticmethod
    def from_pjrt_layout(pjrt_layout: PjRtLayout) -> Layout:
        """Converts a `xla_client.PjRtLayout`.

        Raises:
            TypeError: The argument is not a PjRtLayout.
        """
        fix = "write PjRtLayout(layout)"
        check_type("Layout.from_pjrt_layout", "pjrt_layout", pjrt_layout, PjRtLayout, "a PjRtLayout", fix)
        return Layout(pjrt_layout._xla_layout().minor_to_major()[::-1])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Layout) and self.major_to_minor == other.major_to_minor

    def __hash__(self) -> int:
        return hash(self.major_to_minor)

    def __repr__(self) -> str:
        return f"Layout(major_to_minor={self.major_to_minor})"


class Format:
    """A layout and a sharding: order and placement of an array.

    Args:
        layout: None, a Layout or Layout.AUTO.
        sharding: None, a Sharding, or a Device.

    Raises:
        TypeError: An argument is of another type.
        ValueError: A Layout without a sharding.

    Example:
        >>> import numpy as np, artifex_devices as ad
        >>> from artifex_devices.layout import Format, Layout
        >>> x = ad.device_put(np.ones((2, 3)), Format(Layout((1, 0)), ad.devices()[0]))
        >>> x.format.layout.major_to_minor, np.asarray(x).strides
        ((1, 0), (8, 16))
    """

    __slots__ = ("layout", "sharding")

    def __init__(self, layout: Layout | AutoLayout | None = None, sharding: Sharding | Device | None = None) -> None:
        kinds = (Layout, AutoLayout, type(None))
        check_type("Format", "layout", layout, kinds, "a Layout, Layout.AUTO or None", "leave it out")
        if isinstance(sharding, Device):
            sharding = SingleDeviceSharding(sharding)
        fix = "write NamedSharding(mesh, P('data'))"
        check_type("Format", "sharding", sharding, (Sharding, type(None)), "a Sharding, a Device or None", fix)
        if isinstance(layout, Layout) and sharding is None:
            raise failure(
                ValueError,
                "Format",
                "a Layout needs a sharding",
                expected="a NamedSharding or SingleDeviceSharding",
                got="None",
                fix="give one, or leave the layout out",
            )
        self.layout = layout
        self.sharding = sharding

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Format) and (self.layout, self.sharding) == (other.layout, other.sharding)

    def __hash__(self) -> int:
        return hash((self.layout, self.sharding))

    def __repr__(self) -> str:
        return f"Format(layout={self.layout!r}, sharding={self.sharding!r})"


def check_format(operation: str, format: Format) -> int:
    """Returns the rank of the Format, -1 for any; ValueError unless it is row-major."""
    layout = format.layout
    if layout is None:
        return -1
    if not isinstance(layout, Layout) or not layout.is_row_major:
        fix = "leave it out, and place the result by device_put(x, Format(layout, sharding))"
        raise wrong_value(operation, "layout", layout, "None or row-major order", fix)
    return len(layout.major_to_minor)


def requested_layout(operation: str, format: Format) -> XlaLayout | None:
    """Returns the Layout of a Format as XLA's, or None; ValueError for AUTO or an order that is not a permutation."""
    layout = format.layout
    if layout is None:
        return None
    fix = "write Layout((1, 0)) for column-major"
    if not isinstance(layout, Layout):
        raise wrong_value(operation, "layout", layout, "None or a Layout, as no compiler chooses one", fix)
    order = layout.major_to_minor
    if sorted(order) != list(range(len(order))):
        raise wrong_value(operation, "major_to_minor", order, f"each of 0 to {len(order) - 1} once", fix)
    return XlaLayout(order[::-1])
