# SPDX-License-Identifier: Apache-2.0
"""Prints values and pictures of shardings: the names of `jax.debug`."""

from __future__ import annotations

import builtins
import functools
import string
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from artifex_devices._base.checks import check_bool, check_callable, check_type, wrong_type
from artifex_devices._base.public_lookup import add_public_lookup
from artifex_devices._base.rich_console import rich_console
from artifex_devices._base.safe_repr import safe_repr
from artifex_devices._core import Array, Sharding, sharding_text
from artifex_devices.tree_util import keystr, tree_leaves_with_path

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["inspect_array_sharding", "print", "visualize_array_sharding", "visualize_sharding"]
add_public_lookup(__name__)

ColorMap = Callable[[float], Sequence[float]]


class _Formatter(string.Formatter):
    """str.format that refuses arguments that the text does not use, as JAX's does."""

    def check_unused_args(self, used_args: set[int | str], args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
        """Raises ValueError for arguments without a place in the text."""
        unused = [value for number, value in enumerate(args) if number not in used_args]
        unused += [name for name in kwargs if name not in used_args]
        if unused:
            raise ValueError(
                f"debug.print: the text does not use {', '.join(map(safe_repr, unused))}; write {{}} or {{name}} where "
                "each value belongs"
            )


def print(
    fmt: str | None = None,
    *args: object,
    ordered: bool = False,
    partitioned: bool = False,
    skip_format_check: bool = False,
    **kwargs: object,
) -> Callable[..., None] | None:
    """Prints values by a format string; in a body of `shard_map`, each participant prints its blocks.

    Bodies are plain Python, so `print` of Python works too. An Array is printed as its value.

    Args:
        fmt: A text such as "x = {x}", as for `str.format`. Without it, a function of the text and the values is
            returned: `debug.print(ordered=True)("x = {x}", x=x)`.
        *args: Values by position.
        ordered: As in JAX; lines are always in the order of the calls.
        partitioned: Whether an Array is printed as the shards of this process, by device.
        skip_format_check: Whether values that the text does not use are allowed.
        **kwargs: Values by name.

    Returns:
        None, or the function.

    Raises:
        TypeError: `fmt` is not a str, or values are given without it.
        ValueError: The text does not use one of the values.
        KeyError: The text has a name without a value (IndexError: a position).

    Example:
        >>> import numpy as np, artifex_devices as ad
        >>> ad.debug.print("x = {x}, sum = {:.1f}", 6.0, x=ad.device_put(np.arange(4)))
        x = [0 1 2 3], sum = 6.0
    """
    if fmt is None:
        if args or kwargs:
            raise TypeError("debug.print: values are given without a text; write debug.print('x = {x}', x=x)")
        options = {"ordered": ordered, "partitioned": partitioned, "skip_format_check": skip_format_check}
        return functools.partial(_print_text, **options)
    _print_text(fmt, *args, ordered=ordered, partitioned=partitioned, skip_format_check=skip_format_check, **kwargs)
    return None


def _print_text(
    fmt: str, /, *args: object, ordered: bool, partitioned: bool, skip_format_check: bool, **kwargs: object
) -> None:
    check_type("debug.print", "fmt", fmt, str, "a format string", "write debug.print('x = {x}', x=x)")
    for name, flag in (("ordered", ordered), ("partitioned", partitioned), ("skip_format_check", skip_format_check)):
        check_bool("debug.print", name, flag, "leave it out")
    convert = _parts_of if partitioned else _value_of
    values, named = [convert(value) for value in args], {name: convert(value) for name, value in kwargs.items()}
    builtins.print(fmt.format(*values, **named) if skip_format_check else _Formatter().format(fmt, *values, **named))


def _value_of(value: object) -> object:
    """Returns the value of an Array as an ndarray or a number, other objects unchanged."""
    return np.asarray(value)[()] if isinstance(value, Array) else value


def _parts_of(value: object) -> object:
    """Returns the shards of an Array on this process by device, other objects unchanged."""
    if not isinstance(value, Array):
        return value
    return {str(shard.device): np.asarray(shard.data) for shard in value.addressable_shards}


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

    In colour if rich is installed and standard output shows colours (a terminal, a notebook), otherwise in plain text.
    Of more than two dimensions the two with the most parts are shown, with a note.

    Args:
        shape: Size of each dimension.
        sharding: Sharding of the array.
        use_color: Whether colours are allowed.
        scale: Factor of height and width; above 0, at most 100.
        min_width: Minimum width of a cell with its frame, in characters.
        max_width: Maximum width of the picture, in characters; at least 20.
        color_map: Function of a number between 0 and 1 that returns red, green and blue between 0 and 1 (further values
            are ignored), such as matplotlib's colour maps. By default built-in colours.

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
        builtins.print(text)
    else:
        _print_in_colour(console, text, color_map or _own_colour)


def visualize_array_sharding(array: Array, **options: object) -> None:
    """Prints which devices hold which part of `array`.

    Args:
        array: An Array of any rank.
        **options: Keyword arguments of `visualize_sharding`.

    Raises:
        TypeError: array is not an Array.

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
        fix = "place it by device_put, or use visualize_sharding(shape, sharding)"
        raise wrong_type("visualize_array_sharding", "array", array, "an Array", fix)
    drawing: dict[str, Any] = options
    visualize_sharding(array.shape, array.sharding, **drawing)


def inspect_array_sharding(value: object, *, callback: Callable[[Sharding], object]) -> None:
    """Calls a function with the sharding of each Array of a tree, in the order of the leaves.

    Args:
        value: An Array or a tree of Arrays.
        callback: Function of a Sharding; its results are ignored.

    Raises:
        TypeError: A leaf is not an Array, or callback cannot be called; raised before the first call.

    Example:
        >>> import artifex_devices as ad
        >>> seen = []
        >>> with ad.simulate(2):
        ...     ad.debug.inspect_array_sharding(ad.device_put(1.0), callback=seen.append)
        >>> seen[0].num_devices
        1
    """
    name = "inspect_array_sharding"
    check_callable(name, "callback", callback, "a function of a Sharding", "write callback=print")
    leaves = tree_leaves_with_path(value)
    for path, leaf in leaves:
        check_type(name, f"value{keystr(path)}", leaf, Array, "an Array", "place it by device_put")
    for _, leaf in leaves:
        callback(leaf.sharding)


def _colour_console() -> Console | None:
    """Returns rich's console, if rich is installed and standard output shows colours."""
    try:
        console = rich_console(highlight=False)
    except ImportError:
        return None
    return None if console.color_system is None or console.no_color else console


def _own_colour(place: float) -> tuple[float, float, float]:
    """Returns a light colour for black letters; hues differ by the golden angle, which separates neighbours well."""
    import colorsys

    return colorsys.hls_to_rgb(0.57 + 0.618034 * place, 0.75, 0.55)


def _print_in_colour(console: Console, text: str, color_map: ColorMap) -> None:
    """Prints the drawn table with a background colour for each cell that has letters."""
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
    console.print(Text("\n").join(drawn), soft_wrap=True)  # one call: a notebook shows each print separately


def _style(colour: Sequence[float]) -> str:
    """Returns the style of a background: black letters on light colours, white on dark ones."""
    red, green, blue = (max(0, min(255, round(255 * part))) for part in tuple(colour)[:3])
    letters = "black" if 0.299 * red + 0.587 * green + 0.114 * blue > 110 else "white"
    return f"{letters} on #{red:02x}{green:02x}{blue:02x}"
