# SPDX-License-Identifier: Apache-2.0
"""`artifex_devices checkpoint`: the contents of checkpoints."""

from __future__ import annotations

import argparse

from artifex_devices.command_line.console import OK, add_parser, usage_errors, write_text

SUMMARY = "the contents of checkpoints and safetensors files"
DESCRIPTION = """\
info        names, dtypes, shapes, stored parts and bytes; no array is read and no device is used"""
EXAMPLES = """\
examples:
  artifex_devices checkpoint info runs/1/1000            a table
  artifex_devices checkpoint info runs/1/1000 --json     everything, with the place of each part
  artifex_devices checkpoint info model.safetensors      one file, or a folder of any program

exit codes: 0 done; 2 there is no checkpoint, or it is damaged; others as for every command
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The subcommands and their options."""
    actions = parser.add_subparsers(title="what to do", metavar="<what>", dest="action", required=True)
    info = add_parser(actions, "info", "a table of arrays and values", "Lists a checkpoint.", EXAMPLES, run=run)
    info.add_argument("path", metavar="PATH", help="folder of a checkpoint, or one safetensors file")
    info.add_argument("--json", action="store_true", help="everything as JSON")


def run(arguments: argparse.Namespace) -> int:
    """Prints the table or the JSON document."""
    from artifex_devices import checkpoint

    with usage_errors(OSError, ValueError):
        found = checkpoint.metadata(arguments.path)
    write_text(f"{found.to_json() if arguments.json else found}\n")
    return OK
