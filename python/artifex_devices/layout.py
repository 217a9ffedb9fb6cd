# SPDX-License-Identifier: Apache-2.0
"""Layout and Format: the names of `jax.experimental.layout`. XLA's own Layout is in `xla_client`.

Shards are stored in the order of dimensions that a Layout says, row-major without one. Tiles are not stored:
`xla_client.Layout.pack` makes the memory of any tiles.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from artifex_devices._base.safe_repr import shown
from artifex_devices._core import Device, PjRtLayout, Sharding, SingleDeviceSharding
from artifex_devices._core import Layout as XlaLayout

__all__ = ["AutoLayout", "Format", "Layout"]


_SMALL_INTEGERS = {"int2": 2, "int4": 4, "uint2": 2, "uint4": 4}


def _integer(what: str, given: Any) -> int:
    """A whole number, also NumPy's, as an int."""
    if not isinstance(given, (bool, np.bool_)):
        try:
            return operator.index(given)
        except TypeError:
            pass
    raise TypeError(
        f"Layout: {what} is {shown(given)} ({type(given).__name__}); expected an integer; write Layout((0, 1))"
    )


def _sequence(what: str, given: Any, expected: str) -> list[Any]:
    if not isinstance(given, (str, bytes)):
        try:
            return list(given)
        except TypeError:
            pass
    raise TypeError(f"Layout: {what} is {shown(given)} ({type(given).__name__}); expected a sequence of {expected}")


def _integers(what: str, given: Any, example: str) -> tuple[int, ...]:
    numbers = _sequence(what, given, f"integers; write {example}")
    return tuple(_integer(f"{what}[{i}]", number) for i, number in enumerate(numbers))


def _tiles(given: Any) -> tuple[tuple[int, ...], ...]:
    tiles = _sequence("tiling", given, "tiles; write ((8, 128),)")
    return tuple(_integers(f"tiling[{i}]", tile, "((8, 128),)") for i, tile in enumerate(tiles))


class AutoLayout:
    """`Layout.AUTO`: a compiler would choose. There is none here, so that placing data with it is an error."""

    def __repr__(self) -> str:
        """As in JAX."""
        return "AUTO"


class Layout:
    """The order of an array's dimensions in memory.

    Args:
        major_to_minor: Dimension numbers, the slowest first; (0, 1, ..., n - 1) is row-major.
        tiling: None or (); tiles are kept, and refused where an Array is placed.
        sub_byte_element_size_in_bits: 0; other numbers are treated as tiles are.

    Raises:
        TypeError: An argument is not made of integers.

    Example:
        >>> from artifex_devices.layout import Layout
        >>> Layout((0, 1)).is_row_major, Layout((1, 0)).is_row_major
        (True, False)
    """

    AUTO: ClassVar[AutoLayout] = AutoLayout()
    __slots__ = ("major_to_minor", "sub_byte_element_size_in_bits", "tiling")

    def __init__(
        self,
        major_to_minor: Sequence[int],
        tiling: Sequence[Sequence[int]] | None = None,
        sub_byte_element_size_in_bits: int = 0,
    ) -> None:
        """See the class."""
        self.major_to_minor = _integers("major_to_minor", major_to_minor, "(0, 1)")
        self.tiling = None if tiling is None else _tiles(tiling)
        self.sub_byte_element_size_in_bits = _integer("sub_byte_element_size_in_bits", sub_byte_element_size_in_bits)

    @property
    def is_row_major(self) -> bool:
        """Whether it is what shards are stored in without a Layout."""
        in_order = self.major_to_minor == tuple(range(len(self.major_to_minor)))
        return in_order and not self.tiling and self.sub_byte_element_size_in_bits == 0

    @staticmethod
    def from_pjrt_layout(pjrt_layout: PjRtLayout) -> Layout:
        """The same order as a `xla_client.PjRtLayout`.

        Raises:
            TypeError: It is no PjRtLayout.
            ValueError: It has a memory space or a tail alignment, for which there is no word here.
        """
        if not isinstance(pjrt_layout, PjRtLayout):
            raise TypeError(
                f"Layout.from_pjrt_layout: the argument is of type {type(pjrt_layout).__name__}; expected a "
                f"PjRtLayout, got {shown(pjrt_layout)}; write PjRtLayout(layout)"
            )
        layout = pjrt_layout._xla_layout()
        if layout.memory_space() != 0 or layout.tail_padding_alignment_in_elements() != 1:
            raise ValueError(
                f"Layout.from_pjrt_layout: {layout} has a memory space or a tail alignment; expected order, tiles and "
                "element bits only; drop S(..) and L(..) from its text"
            )
        return Layout(layout.minor_to_major()[::-1], layout.tiling(), layout.element_size_in_bits())

    def _to_xla_layout(self, dtype: Any) -> XlaLayout:
        """The same order in XLA's words; with tiles, a dtype under a byte says its bits, as in JAX."""
        bits = self.sub_byte_element_size_in_bits
        if bits == 0 and self.tiling is not None:
            bits = _SMALL_INTEGERS.get(np.dtype(dtype).name, 0)
        return XlaLayout(self.major_to_minor[::-1], self.tiling or (), bits)

    def update(self, **kwargs: Any) -> Layout:
        """A Layout with some of its arguments replaced, by name."""
        given = {name: getattr(self, name) for name in Layout.__slots__}
        unknown = sorted(kwargs.keys() - given.keys())
        if unknown:
            raise TypeError(f"Layout.update: {', '.join(unknown)} is no argument of Layout; expected {sorted(given)}")
        return Layout(**{**given, **kwargs})

    def _key(self) -> tuple[Any, ...]:
        return self.major_to_minor, self.tiling or (), self.sub_byte_element_size_in_bits

    def __eq__(self, other: object) -> bool:
        """Equal order, tiles and element size; no tiles is ()."""
        return isinstance(other, Layout) and self._key() == other._key()

    def __hash__(self) -> int:
        """Of what __eq__ compares."""
        return hash(self._key())

    def __repr__(self) -> str:
        """As in JAX."""
        return (
            f"Layout(major_to_minor={self.major_to_minor}, tiling={self.tiling}, "
            f"sub_byte_element_size_in_bits={self.sub_byte_element_size_in_bits})"
        )


class Format:
    """A layout and a sharding: where an array lies and in which order.

    Args:
        layout: None, a Layout or Layout.AUTO.
        sharding: None, a Sharding, or a Device for all of the array on it.

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
        """See the class."""
        if not isinstance(layout, (Layout, AutoLayout, type(None))):
            raise TypeError(
                f"Format: layout is of type {type(layout).__name__}; expected a Layout, Layout.AUTO or None, "
                f"got {shown(layout)}"
            )
        if isinstance(sharding, Device):
            sharding = SingleDeviceSharding(sharding)
        if not isinstance(sharding, (Sharding, type(None))):
            raise TypeError(
                f"Format: sharding is of type {type(sharding).__name__}; expected a Sharding, a Device or None, "
                f"got {shown(sharding)}; say NamedSharding(mesh, P('data'))"
            )
        if isinstance(layout, Layout) and sharding is None:
            raise ValueError(
                "Format: a Layout needs a sharding; expected a NamedSharding or SingleDeviceSharding, got None; "
                "give one, or leave the layout out"
            )
        self.layout = layout
        self.sharding = sharding

    def __eq__(self, other: object) -> bool:
        """Equal layouts and shardings."""
        return isinstance(other, Format) and (self.layout, self.sharding) == (other.layout, other.sharding)

    def __hash__(self) -> int:
        """Of what __eq__ compares."""
        return hash((self.layout, self.sharding))

    def __repr__(self) -> str:
        """As in JAX."""
        return f"Format(layout={self.layout!r}, sharding={self.sharding!r})"


def check_format(operation: str, given: Format) -> int:
    """The rank that the Format is for, -1 for any; ValueError unless it is row-major."""
    if given.layout is None:
        return -1
    if not isinstance(given.layout, Layout) or not given.layout.is_row_major:
        raise ValueError(
            f"{operation}: layout is {shown(given.layout)}; expected None or row-major order without tiles; leave it "
            "out, and place it by device_put(x, Format(layout, sharding)) afterwards"
        )
    return len(given.layout.major_to_minor)


def requested_layout(operation: str, given: Format) -> XlaLayout | None:
    """What a Format asks for, in XLA's words; None where it leaves that open.

    Raises:
        ValueError: Layout.AUTO; an order that is no permutation.
    """
    if given.layout is None:
        return None
    if not isinstance(given.layout, Layout):
        raise ValueError(
            f"{operation}: layout is {shown(given.layout)}; expected None or a Layout, as nothing chooses one here; "
            "write Layout((1, 0)) for column-major"
        )
    order = given.layout.major_to_minor
    if sorted(order) != list(range(len(order))):
        raise ValueError(
            f"{operation}: major_to_minor is {order}; expected each of 0 to {len(order) - 1} once; "
            "write Layout((1, 0)) for column-major"
        )
    return given.layout._to_xla_layout(np.dtype(np.uint8))
