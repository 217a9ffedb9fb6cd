# SPDX-License-Identifier: Apache-2.0
"""`artifex_devices data`: what files of samples contain."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from artifex_devices.command_line.console import OK, count_of, terminal_width, usage_errors, write_json, write_text
from artifex_devices.command_line.parser import add_parser

if TYPE_CHECKING:
    from artifex_devices.command_line.samples import Inspection

SUMMARY = "show what files of samples contain: their number, sizes, columns and lengths"
DESCRIPTION = """\
inspect     print the number of samples, bytes, dtype or columns, and the histogram of lengths"""
EXAMPLES = """\
examples:
  artifex_devices data inspect train.npy                       read 1,000 samples, spread evenly
  artifex_devices data inspect "train/*.parquet" --samples 10  read fewer
  artifex_devices data inspect train.parquet --by tokens       read the lengths of all samples, and store
                                                               them where data.pack uses them
  artifex_devices data inspect train.npy --json                print the same as JSON

exit codes: 0 success; 2 FILE cannot be read, or has no such column; other codes: artifex_devices --help
"""
_BAR = 40  # signs of the longest bar


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the subcommand and its options."""
    actions = parser.add_subparsers(title="what to do", metavar="<what>", dest="action", required=True)
    text = "Describes the samples of files, without using devices."
    inspect = add_parser(actions, "inspect", "describe the samples of files", text, EXAMPLES, run=run)
    help_text = ".npy, ArrayRecord, Parquet or Arrow file, a folder, or a pattern in quotes"
    inspect.add_argument("files", metavar="FILE", nargs="+", help=help_text)
    inspect.add_argument("--samples", type=count_of, default=1000, help="number of samples to read (default: 1000)")
    by_help = "column whose lengths are shown; reads every sample once, and stores the lengths for data.pack"
    inspect.add_argument("--by", metavar="COLUMN", help=by_help)
    inspect.add_argument("--json", action="store_true", help="print everything as JSON")


def run(arguments: argparse.Namespace) -> int:
    """Prints the tables or the JSON document."""
    from artifex_devices.command_line.samples import inspect

    with usage_errors(OSError, ValueError, TypeError, RuntimeError, ImportError):
        found = [inspect(path, arguments.samples, arguments.by) for path in arguments.files]
    if arguments.json:
        write_json("data", {"sources": [each.to_dict() for each in found]})
    else:
        write_text("\n".join("\n".join(_lines(each)) + "\n" for each in found))
    return OK


def _lines(found: Inspection) -> list[str]:
    from artifex_devices._base.text import bytes_text, table_lines

    files = f"{found.files:,} file{'s' * (found.files != 1)}, {bytes_text(found.bytes)}"
    lines = [f"{found.path}: {found.samples:,} samples in {files}", f"digest {found.digest}"]
    if not found.columns:
        return lines
    rows: list[tuple[str, ...]] = [("column", "type", "length")]
    rows += [(each.name or "(sample)", each.type, _length_text(each.least, each.most)) for each in found.columns]
    lines += ["", *table_lines(rows, width=terminal_width())]
    lines.append(f"read {found.examined:,} of {found.samples:,} samples" + ", spread evenly" * found.is_part)
    if found.histogram:
        title = f"lengths of {found.by}" if found.by else "lengths"
        lines += ["", f"{title}: median {found.median:g}, mean {found.mean:.1f}"]
        most = max(count for *_, count in found.histogram)
        rows = [
            (_length_text(begin, end), f"{count:,}", "#" * (-(-count * _BAR // most)))
            for begin, end, count in found.histogram
        ]
        lines += [line.rstrip() for line in table_lines(rows, right=(0, 1))]
    return lines


def _length_text(least: Any, most: Any) -> str:
    if least is None:
        return ""
    return str(least) if least == most else f"{least} to {most}"
