# SPDX-License-Identifier: Apache-2.0
"""Bytes, seconds, sets of CPUs and alternatives as texts for people."""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from typing import Any

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


def seconds_text(seconds: float, digits: int = 4) -> str:
    """Formats seconds with so many significant digits and a unit.

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


def table_lines(rows: Sequence[Sequence[str]], *, right: Container[int] = ()) -> list[str]:
    """Formats rows, of which the first may be a head, in columns as wide as their widest text.

    Columns whose numbers are in `right` are set to the right, all others to the left.

    Example:
        >>> table_lines([("", "bytes"), ("a gather", "64")], right=[1])
        ['          bytes', 'a gather     64']
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    signs = [">" if i in right else "<" for i in range(len(widths))]
    return [
        "  ".join(f"{text:{sign}{width}}" for text, sign, width in zip(row, signs, widths, strict=True)).rstrip()
        for row in rows
    ]


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


def alternatives(values: Iterable[Any]) -> str:
    """Formats the values of which one is expected: "'auto', 'threads' or None"."""
    *first, last = map(repr, values)
    return f"{', '.join(first)} or {last}" if first else last
