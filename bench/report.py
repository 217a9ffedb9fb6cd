# SPDX-License-Identifier: Apache-2.0
"""The table: with rich where it is installed, plain text elsewhere."""

from __future__ import annotations

import sys
from typing import Any


def quantity(value: float, unit: str) -> str:
    """A number in a unit that fits it."""
    if unit == "count":
        return f"{value:.0f}"
    if unit == "bytes":
        return f"{value / 1e6:.1f} MB"
    for limit, scale, name in ((1e-3, 1e6, "us"), (1.0, 1e3, "ms")):
        if value < limit:
            return f"{value * scale:.3g} {name}" if value * scale < 100 else f"{value * scale:.0f} {name}"
    return f"{value:.3g} s"


def cell(row: dict[str, Any], peer: str) -> str:
    """Median, half the distance of the quartiles as a percentage, and the rate."""
    stats = row["peers"].get(peer)
    if stats is None:
        return "-"
    text = quantity(stats["median"], row["unit"])
    if stats["repeats"] > 2 and stats["median"]:
        text += f" ±{50 * stats['spread'] / stats['median']:.0f}%"
    if row["bytes"]:
        text += f" ({row['bytes'] / stats['median'] / 1e9:.1f} GB/s)"
    if stats.get("notes"):
        text += " *"
    return text


def ratio(row: dict[str, Any], peer: str) -> str:
    """How many times longer (or bigger) the peer's median is than ours."""
    ours, theirs = row["peers"].get("ours"), row["peers"].get(peer)
    if not ours or not theirs or not ours["median"]:
        return "-"
    return f"{theirs['median'] / ours['median']:.3g}x"


def lines_of(result: dict[str, Any]) -> tuple[list[str], list[list[str]]]:
    """Header and rows of the table."""
    others = [peer for peer in result["peers"] if peer != "ours"]
    header = ["work", "ours"]
    for peer in others:
        header += [peer, f"{peer} / ours"]
    header.append("of copy limit")
    limit = max(result["copy_limits_bytes_per_s"].values(), default=0.0)
    table = []
    for row in result["rows"]:
        line = [row["name"], cell(row, "ours")]
        for peer in others:
            line += [cell(row, peer), ratio(row, peer)]
        ours = row["peers"].get("ours")
        line.append(f"{100 * row['bytes'] / ours['median'] / limit:.0f}%" if row["bytes"] and ours and limit else "")
        table.append(line)
    return header, table


def footnotes(result: dict[str, Any]) -> list[str]:
    """Facts and warnings that belong to the table."""
    facts = result["machine"]
    notes = [
        f"{facts['cpu']}, {facts['cores']} cores, Python {facts['python']}, {facts['date']}, "
        f"load {facts['load_before']:.1f}; "
        + ", ".join(f"{peer} {version}" for peer, version in result["versions"].items()),
        "streaming copy of 256 MiB, best: "
        + ", ".join(f"{name} {rate / 1e9:.1f} GB/s" for name, rate in result["copy_limits_bytes_per_s"].items()),
        "cells: median, ± half the interquartile range, bytes of the value by the median; ratio above 1: ours wins",
    ]
    for row in result["rows"]:
        for peer, stats in row["peers"].items():
            if stats.get("notes"):
                notes.append(f"* {row['name']}, {peer}: {stats['notes']}")
    notes += [f"! {problem}" for problem in result["problems"]]
    return notes


def print_report(result: dict[str, Any]) -> None:
    """Prints table and footnotes."""
    header, table = lines_of(result)
    try:
        from rich.console import Console
        from rich.table import Table
    except ImportError:
        Console = None  # noqa: N806
    if Console is not None and sys.stdout.isatty():
        shown = Table(*header)
        for column in shown.columns[1:]:
            column.justify = "right"
        for line in table:
            shown.add_row(*line)
        Console().print(shown)
    else:
        widths = [max(len(line[i]) for line in [header, *table]) for i in range(len(header))]
        for line in [header, ["-" * width for width in widths], *table]:
            print("  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)).rstrip())
    for note in footnotes(result):
        print(note)
