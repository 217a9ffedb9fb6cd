# SPDX-License-Identifier: Apache-2.0
"""Bytes, seconds, sets of CPUs and alternatives as texts for people."""

from __future__ import annotations

import itertools
import math
import re
import textwrap
from collections.abc import Container, Iterable, Sequence
from typing import Any

_SHORT = 12  # characters of a text that is not wrapped
_THOUSANDS = ((1e18, "E"), (1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))
_SCALES: dict[str, int] = {"": 1} | {unit: 1000**power for power, unit in enumerate("kmgtp", 1)}
_SCALES |= {f"{unit}i": 1024**power for power, unit in enumerate("kmgtp", 1)}
_UNITS = ("KiB", "MiB", "GiB", "TiB", "PiB", "EiB")


def bytes_text(count: float) -> str:
    """Formats bytes as the core does in its messages: "512 bytes", "1.5 KiB", "256.0 MiB"."""
    if count < 1024:
        return f"{count} byte{'' if count == 1 else 's'}"
    value = count / 1024
    unit = 0
    while value >= 1024 and unit + 1 < len(_UNITS):
        value /= 1024
        unit += 1
    return f"{value:.1f} {_UNITS[unit]}"


def counted(count: int, noun: str) -> str:
    """Formats a count of things, such as "1 file" and "1,024 files"."""
    return f"{count:,} {noun}{'s' * (count != 1)}"


def parse_bytes(text: str) -> int | None:
    """Reads `4000000`, `4MB` (of a million), `4 MiB` (of 2 to the 20th) or `1.5 GB`; None for other texts.

    Example:
        >>> parse_bytes("40 MB"), parse_bytes("1.5KiB"), parse_bytes("7"), parse_bytes("a lot")
        (40000000, 1536, 7, None)
    """
    match = re.fullmatch(r"([0-9]{1,18}(?:\.[0-9]{1,18})?) ?([kmgtp]i?)?b?", text.strip().lower())
    if match is None:
        return None
    unit = _SCALES[match[2] or ""]
    return round(float(match[1]) * unit) if "." in match[1] else int(match[1]) * unit


def seconds_text(seconds: float, digits: int = 4) -> str:
    """Formats seconds with this number of significant digits and a unit.

    Example:
        >>> seconds_text(560e-6), seconds_text(0), seconds_text(1.2345, digits=3)
        ('560 us', '0 s', '1.23 s')
    """
    if not seconds:
        return "0 s"
    limit = 10**digits - 0.5  # larger numbers round to more digits
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= limit / 10**digits * scale:
            value = seconds / scale
            return f"{value:.{digits}g} {unit}" if value < limit else f"{value:,.0f} {unit}"
    return f"{seconds / 1e-9:.{digits}g} ns"


def rate_text(value: float, unit: str) -> str:
    """Formats a number of units of a thousand with four digits at most; seconds as `seconds_text`.

    Example:
        >>> rate_text(989e12, "FLOP/s"), rate_text(4.5e10, "B/s a chip"), rate_text(1e-6, "s")
        ('989 TFLOP/s', '45 GB/s a chip', '1 us')
    """
    if unit == "s":
        return seconds_text(value)
    factor, sign = next(((each, sign) for each, sign in _THOUSANDS if value >= each), (1.0, ""))
    return f"{value / factor:.4g} {sign}{unit}"


def count_text(value: float) -> str:
    """Formats four digits and a unit of a thousand: "4.194M".

    Example:
        >>> count_text(4194304), count_text(468.1), count_text(7e9), count_text(float("inf"))
        ('4.194M', '468.1', '7G', 'inf')
    """
    for factor, unit in ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e4, "k")):
        if factor <= value < math.inf:
            return f"{value / (1e3 if unit == 'k' else factor):.4g}{unit}"
    return f"{value:.4g}"


def printable(text: str) -> str:
    r"""Returns a text of a file, escaped where a terminal would obey it instead of showing it.

    Example:
        >>> printable("layer 1") == "layer 1", printable("\x1b[2J") == r"\x1b[2J"
        (True, True)
    """
    if text.isprintable():
        return text
    return "".join(sign if sign.isprintable() else sign.encode("unicode_escape").decode() for sign in text)


def wrapped(text: str, width: int, first: str = "", rest: str = "") -> list[str]:
    """Returns lines of at most `width` characters that begin with `first`, then `rest`; longer words stay whole.

    Example:
        >>> wrapped("a table of 3 rows", 10, rest="  ")
        ['a table of', '  3 rows']
    """
    form = textwrap.TextWrapper(width, first, rest, break_on_hyphens=False, break_long_words=False)
    return form.wrap(text) or [""]


def table_lines(rows: Sequence[Sequence[str]], *, right: Container[int] = (), width: int = 0) -> list[str]:
    """Formats rows in columns as wide as their widest text. The first row may be a head.

    A row of one text is a line between other rows. Columns whose numbers are in `right` are set to the right, all other
    columns to the left. Lines have at most `width` characters, if it is not 0: the widest columns are wrapped between
    words. Where that is too wide, each row becomes a paragraph, with the head before each text. Long words of the last
    column, such as paths, stay whole.

    Example:
        >>> table_lines([("", "bytes"), ("a gather", "64")], right=[1])
        ['          bytes', 'a gather     64']
        >>> table_lines([("axis", "links"), ("data", "a ring of 16 along y")], width=20)
        ['axis  links', 'data  a ring of 16', '      along y']
    """
    columns = list(zip(*(row for row in rows if len(row) > 1), strict=True))
    widths = [max(map(len, column)) for column in columns]
    room = width - 2 * (len(widths) - 1)
    if width and columns and sum(widths) > room:
        least = [max(map(_least_width, column)) for column in columns]
        least[-1] = min(least[-1], _SHORT)
        if len(columns) > 2 and sum(least) > room:
            return [line for row in rows[1:] for line in wrapped(_paragraph(rows[0], row), width, rest="    ")]
        while sum(widths) > room and widths != least:
            _, widest = max((size, i) for i, size in enumerate(widths) if size > least[i])
            widths[widest] -= 1
    signs = [">" if i in right else "<" for i in range(len(widths))]
    lines: list[str] = []
    for row in rows:
        if len(row) == 1:
            lines += wrapped(row[0], width, rest="  ") if width else row
            continue
        cells = [[text] if len(text) <= most else wrapped(text, most) for text, most in zip(row, widths, strict=True)]
        for parts in itertools.zip_longest(*cells, fillvalue=""):
            lines.append("  ".join(map("{:{}{}}".format, parts, signs, widths)).rstrip())
    return lines


def _least_width(text: str) -> int:
    """Returns the width below which a text of a table is not wrapped: that of its longest word; amounts stay whole."""
    return len(text) if len(text) <= _SHORT else max(map(len, text.split()))


def _paragraph(head: Sequence[str], row: Sequence[str]) -> str:
    named = [f"{name}: {text}" for name, text in zip(head[1:], row[1:], strict=False) if text]
    return "  ".join(filter(None, (row[0], *named)))


def cpu_list(cpus: Iterable[int]) -> str:
    """Formats numbers as Linux lists CPUs: "0-3,8"."""
    runs: list[list[int]] = []
    for cpu in sorted(set(cpus)):
        if runs and cpu == runs[-1][1] + 1:
            runs[-1][1] = cpu
        else:
            runs.append([cpu, cpu])
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in runs)


def parse_cpu_list(text: str) -> set[int]:
    """Reads the format of `cpu_list`; skips other words."""
    cpus: set[int] = set()
    for run in text.split(","):
        first, _, last = run.strip().partition("-")
        if first.isdigit() and (last or first).isdigit() and int(last or first) < 1 << 20:
            cpus.update(range(int(first), int(last or first) + 1))
    return cpus


def more_devices(count: int) -> str:
    """Formats the ways to get `count` devices, for errors.

    Example:
        >>> more_devices(8)[:54]
        'simulate more devices (`with ad.simulate(8):`), or set'
    """
    return (
        f"simulate more devices (`with ad.simulate({count}):`), or set JAX_NUM_CPU_DEVICES={count} before "
        "the program starts"
    )


def shortened(texts: Sequence[str], most: int, more: str = "and {} more") -> list[str]:
    """Returns the first `most` texts, and if there are more, a last text with their number.

    Example:
        >>> shortened(["a", "b"], 2), shortened(["a", "b", "c"], 2), "; ".join(shortened(["a", "b", "c"], 1))
        (['a', 'b'], ['a', 'b', 'and 1 more'], 'a; and 2 more')
    """
    rest = len(texts) - most
    return list(texts) if rest <= 0 else [*texts[:most], more.format(rest)]


def shortened_list(texts: Sequence[str], most: int) -> str:
    """Joins the first `most` texts by commas and counts the rest.

    Example:
        >>> shortened_list(["a", "b", "c"], 3), shortened_list(["a", "b", "c"], 1)
        ('a, b, c', 'a and 2 more')
    """
    rest = len(texts) - most
    return ", ".join(texts[:most]) + (f" and {rest} more" if rest > 0 else "")


def alternatives(values: Iterable[Any]) -> str:
    """Formats the values that an argument may have: "'auto', 'threads' or None"."""
    *first, last = map(repr, values)
    return f"{', '.join(first)} or {last}" if first else last


def index_text(index: object) -> str:
    """Returns the code of a simple index, as written in brackets; "i" for arrays and other objects.

    Example:
        >>> index_text((0, slice(None, 3), ...)), index_text([1, 2])
        ('0, :3, ...', 'i')
    """
    if isinstance(index, tuple):
        parts = [index_text(part) for part in index]
        return "i" if "i" in parts or not parts else ", ".join(parts)
    if isinstance(index, slice):
        ends = [index.start, index.stop] if index.step is None else [index.start, index.stop, index.step]
        if not all(end is None or type(end) is int for end in ends):
            return "i"
        return ":".join("" if end is None else str(end) for end in ends)
    if index is ...:
        return "..."
    return repr(index) if index is None or type(index) in (int, bool) else "i"
