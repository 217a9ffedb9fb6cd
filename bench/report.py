# SPDX-License-Identifier: Apache-2.0
"""The table of one run or of several, with rich if it is installed, else as plain text.

Example:
    python bench/run.py --json a.json; python bench/run.py --json b.json
    python bench/report.py a.json b.json --json bench/table.json
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from json_rows import json_rows


def quantity(value: float, unit: str) -> str:
    """A number in a suitable unit."""
    if unit == "count":
        return f"{value:.0f}"
    if unit == "ratio":
        return f"{value:.2f}"
    if unit == "bytes":
        return f"{value / 1e6:.1f} MB" if value >= 1e5 else f"{value:.0f} bytes"
    for limit, scale, name in ((1e-7, 1e9, "ns"), (1e-3, 1e6, "us"), (1.0, 1e3, "ms")):
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
    return f"{times(theirs['median'] / ours['median'])}x"


def times(ratio: float) -> str:
    """A ratio in three digits."""
    return f"{ratio:,.0f}" if ratio >= 100 else f"{ratio:.3g}"


def others_of(result: dict[str, Any]) -> list[str]:
    """All peers except ours."""
    return [peer for peer in result["peers"] if peer != "ours"]


def header_of(result: dict[str, Any]) -> list[str]:
    """Names of the table's columns, of one run and of several."""
    beside = [name for peer in others_of(result) for name in (peer, f"{peer} / ours")]
    return ["work", "ours", *beside, "of copy limit"]


def lines_of(result: dict[str, Any]) -> list[list[str]]:
    """Rows of the table of one run."""
    others = others_of(result)
    limit = max(result["copy_limits_bytes_per_s"].values(), default=0.0)
    table = []
    for row in result["rows"]:
        line = [row["name"], cell(row, "ours")]
        for peer in others:
            line += [cell(row, peer), ratio(row, peer)]
        ours = row["peers"].get("ours")
        line.append(f"{100 * row['bytes'] / ours['median'] / limit:.0f}%" if row["bytes"] and ours and limit else "")
        table.append(line)
    return table


def merged(runs: list[dict[str, Any]]) -> dict[str, Any]:
    """Several results of run.py in one table, without single times."""
    rows: dict[str, dict[str, Any]] = {}
    for number, run in enumerate(runs):
        for row in run["rows"]:
            kept = rows.setdefault(row["name"], {**{key: row[key] for key in ("name", "family", "bytes", "unit")}})
            by_peer = kept.setdefault("peers", {})
            for peer, stats in row["peers"].items():
                by_peer.setdefault(peer, [None] * len(runs))[number] = {
                    key: float(f"{value:.4g}") if type(value) is float else value
                    for key, value in stats.items()
                    if key in ("median", "spread", "repeats", "notes")
                }
    facts = ("machine", "copy_limits_bytes_per_s", "versions", "quick", "problems")
    return {
        "runs": [{key: run[key] for key in facts} for run in runs],
        "peers": runs[0]["peers"],
        "rows": list(rows.values()),
    }


def lines_of_runs(table: dict[str, Any]) -> list[list[str]]:
    """Rows of the table of several runs: each cell has one number for each run."""
    singles = [_single(table, number) for number in range(len(table["runs"]))]
    found = [dict(zip((row["name"] for row in each["rows"]), lines_of(each), strict=True)) for each in singles]
    lines = []
    for row in table["rows"]:
        cells = [each[row["name"]] for each in found if row["name"] in each]
        lines.append([row["name"], *(_both(texts) for texts in list(zip(*cells, strict=True))[1:])])
    return lines


def _single(table: dict[str, Any], number: int) -> dict[str, Any]:
    """One of the runs, in the form of run.py."""
    rows = [
        {**row, "peers": {peer: runs[number] for peer, runs in row["peers"].items() if runs[number]}}
        for row in table["rows"]
    ]
    rows = [row for row in rows if row["peers"]]
    return {**table["runs"][number], "peers": table["peers"], "rows": rows}


def _both(texts: tuple[str, ...]) -> str:
    shown = [text for text in texts if text not in ("", "-")]
    return ", ".join(shown) or "-"


def footnotes_of_runs(table: dict[str, Any]) -> list[str]:
    """Notes on single cells, and failed measurements."""
    notes: dict[str, None] = {}
    for number in range(len(table["runs"])):
        notes |= dict.fromkeys(footnotes(_single(table, number))[3:])
    return list(notes)


def footnotes(result: dict[str, Any]) -> list[str]:
    """Facts and warnings that belong to the table."""
    facts = result["machine"]
    notes = [
        f"{facts['cpu']}, {facts['cores']} cores, Python {facts['python']}, {facts['date']}, "
        f"load {facts['load_before']:.1f}; "
        + ", ".join(f"{peer} {version}" for peer, version in result["versions"].items()),
        "streaming copy of 256 MiB, best: "
        + ", ".join(f"{name} {rate / 1e9:.1f} GB/s" for name, rate in result["copy_limits_bytes_per_s"].items()),
        "cells: median, ± half the interquartile range, bytes of the value divided by the median; a ratio above 1 "
        "means that ours is faster",
    ]
    for row in result["rows"]:
        for peer, stats in row["peers"].items():
            if stats.get("notes"):
                notes.append(f"* {row['name']}, {peer}: {stats['notes']}")
    notes += [f"! {problem}" for problem in result["problems"]]
    return notes


def _print_plain(header: list[str], table: list[list[str]]) -> None:
    widths = [max(len(line[i]) for line in [header, *table]) for i in range(len(header))]
    for line in [header, ["-" * width for width in widths], *table]:
        print("  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)).rstrip())


def print_report(result: dict[str, Any]) -> None:
    """Prints table and footnotes."""
    header, table = header_of(result), lines_of(result)
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
        _print_plain(header, table)
    for note in footnotes(result):
        print(note)


def main() -> None:
    """Prints the table of several runs, and writes it."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("runs", type=Path, nargs="+", help="files written by run.py --json")
    parser.add_argument("--json", type=Path, help="file for the table")
    options = parser.parse_args()
    table = merged([json.loads(path.read_text()) for path in options.runs])
    _print_plain(header_of(table), lines_of_runs(table))
    for note in footnotes_of_runs(table):
        print(note)
    if options.json:
        options.json.write_text(json_rows(table))


if __name__ == "__main__":
    main()
