# SPDX-License-Identifier: Apache-2.0
"""Looking at how data lies: the names of `jax.debug`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from artifex_devices._base.safe_repr import shown
from artifex_devices._core import Array, Sharding, sharding_text

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["inspect_array_sharding", "visualize_array_sharding", "visualize_sharding"]

ColorMap = Callable[[float], Sequence[float]]


def visualize_sharding(
    shape: Sequence[int],
    sharding: Sharding,
    *,
    use_color: bool = True,
    scale: float = 1.0,
    min_width: int = 9,
    max_width: int = 80,
    color_map: ColorMap | None = None,
) -> None:
    """Prints which devices hold which part of an array of `shape`.

    In colour where rich is installed and standard output shows colours (a terminal, a notebook); plain text otherwise.
    Any rank can be shown: of more than two dimensions the two that are cut most, and a line says so.

    Args:
        shape: Sizes, one int a dimension.
        sharding: How the array would lie.
        use_color: False never colours.
        scale: 2.0 draws twice as high and wide; above 0, at most 100.
        min_width: Characters of a cell with its frame, at least.
        max_width: Characters of the whole, at most; not below 20.
        color_map: From a number between 0 and 1 to red, green and blue between 0 and 1 (more is ignored), as
            matplotlib's colour maps are; None takes colours of our own.

    Raises:
        ValueError: The sharding does not fit the shape, or scale is out of range.

    Example:
        >>> import artifex_devices as ad
        >>> with ad.simulate(2):
        ...     mesh = ad.make_mesh((2,), ("x",))
        ...     ad.debug.visualize_sharding((4,), ad.NamedSharding(mesh, ad.P("x")), use_color=False)
        ┌───────┬───────┐
        │ CPU 0 │ CPU 1 │
        └───────┴───────┘
    """
    text = sharding_text(sharding, shape, max_columns=max_width, min_width=min_width, scale=scale)
    console = _colour_console() if use_color else None
    if console is None:
        print(text)
    else:
        _print_in_colour(console, text, color_map or _own_colour)


def visualize_array_sharding(array: Array, **options: Any) -> None:
    """Prints which devices hold which part of `array`.

    Args:
        array: An Array of any rank.
        **options: As of `visualize_sharding`.

    Raises:
        TypeError: array is no Array.

    Example:
        >>> import numpy as np, artifex_devices as ad
        >>> with ad.simulate(2):
        ...     mesh = ad.make_mesh((2,), ("x",))
        ...     x = ad.device_put(np.ones(4), ad.NamedSharding(mesh, ad.P("x")))
        ...     ad.debug.visualize_array_sharding(x, use_color=False)
        ┌───────┬───────┐
        │ CPU 0 │ CPU 1 │
        └───────┴───────┘
    """
    if not hasattr(array, "sharding"):
        raise TypeError(
            f"visualize_array_sharding: array is of type {type(array).__name__}; expected an Array; place it by "
            "device_put, or use visualize_sharding(shape, sharding)"
        )
    visualize_sharding(array.shape, array.sharding, **options)


def inspect_array_sharding(value: Any, *, callback: Callable[[Sharding], Any]) -> None:
    """Calls a function with the sharding of each Array of a tree, at once and in the order of the leaves.

    Args:
        value: An Array or a tree of Arrays.
        callback: Function of a Sharding; what it returns is ignored.

    Raises:
        TypeError: A leaf is not an Array; callback is not callable. Nothing has been called then.

    Example:
        >>> import artifex_devices as ad
        >>> with ad.simulate(2):
        ...     ad.debug.inspect_array_sharding(ad.device_put(1.0), callback=lambda s: print(s.num_devices))
        1
    """
    from artifex_devices import tree_util

    if not callable(callback):
        raise TypeError(
            f"inspect_array_sharding: callback is of type {type(callback).__name__}; expected a function of a "
            f"Sharding, got {shown(callback)}; write callback=print"
        )
    leaves = tree_util.tree_leaves_with_path(value)
    for path, leaf in leaves:
        if not isinstance(leaf, Array):
            raise TypeError(
                f"inspect_array_sharding: value{tree_util.keystr(path)} is of type {type(leaf).__name__}; expected an "
                "Array; place it by device_put"
            )
    for _, leaf in leaves:
        callback(leaf.sharding)


def _colour_console() -> Console | None:
    """The console of rich, if that is installed and finds that standard output shows colours."""
    try:
        from rich.console import Console
    except ImportError:
        return None
    console = Console(highlight=False)
    return None if console.color_system is None or console.no_color else console


def _own_colour(place: float) -> tuple[float, float, float]:
    """Light enough for black letters. Hues go round by the golden angle, so that neighbours differ well."""
    import colorsys

    return colorsys.hls_to_rgb(0.57 + 0.618034 * place, 0.75, 0.55)


def _print_in_colour(console: Console, text: str, color_map: ColorMap) -> None:
    """Prints a table of our own drawing, each of its cells with letters in it on a ground of its own colour."""
    from rich.text import Text

    lines = text.split("\n")
    bands: list[list[int]] = [[]]  # the lines of each row of cells
    for number, line in enumerate(lines):
        if line.startswith("├"):
            bands.append([])
        elif line.startswith("│"):
            bands[-1].append(number)
    bars = [at for at, sign in enumerate(lines[bands[0][0]]) if sign == "│"]
    columns = len(bars) - 1
    own = color_map is _own_colour
    drawn = [Text(line) for line in lines]
    for row, band in enumerate(bands):
        for column in range(columns):
            begin, end = bars[column] + 1, bars[column + 1]
            if not any(lines[number][begin:end].strip() for number in band):
                continue
            cell = row * columns + column
            style = _style(color_map(float(cell) if own else cell / (len(bands) * columns)))
            for number in band:
                drawn[number].stylize(style, begin, end)
    console.print(Text("\n").join(drawn), soft_wrap=True)  # at once: a notebook shows each print by itself


def _style(colour: Sequence[float]) -> str:
    """Black or white letters, whichever can be read on the colour."""
    red, green, blue = (max(0, min(255, round(255 * part))) for part in tuple(colour)[:3])
    letters = "black" if 0.299 * red + 0.587 * green + 0.114 * blue > 110 else "white"
    return f"{letters} on #{red:02x}{green:02x}{blue:02x}"
