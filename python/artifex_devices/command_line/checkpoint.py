# SPDX-License-Identifier: Apache-2.0
"""`artifex_devices checkpoint`: the contents of checkpoints."""

from __future__ import annotations

import argparse
import json
from functools import partial

from artifex_devices.command_line.console import OK, add_parser, count_of, usage_errors, write_json, write_text

SUMMARY = "the contents of checkpoints and safetensors files, and copies in another number of files"
DESCRIPTION = """\
info        names, dtypes, shapes, stored parts and bytes; no array is read and no device is used
convert     a checkpoint in another number of files, from files of any program that can be restored"""
EXAMPLES = """\
examples:
  artifex_devices checkpoint info runs/1/1000            a table
  artifex_devices checkpoint info runs/1/1000 --json     everything, with the place of each part
  artifex_devices checkpoint info model.safetensors      one file, or a folder of any program
  artifex_devices checkpoint convert runs/1/1000 whole   all arrays in one file
  artifex_devices checkpoint convert model parts --files 8

exit codes: 0 done; 2 there is no checkpoint, it is damaged, or the target cannot be written;
            others as for every command
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the subcommands and their options."""
    actions = parser.add_subparsers(title="what to do", metavar="<what>", dest="action", required=True)
    info = add_parser(actions, "info", "a table of arrays and values", "Lists a checkpoint.", EXAMPLES, run=_info)
    info.add_argument("path", metavar="PATH", help="folder of a checkpoint, one safetensors file, or an index")
    info.add_argument("--json", action="store_true", help="everything as JSON")
    text = "Copies a checkpoint piece by piece; no array is in memory as a whole."
    convert = add_parser(actions, "convert", "a copy in another number of files", text, EXAMPLES, run=_convert)
    convert.add_argument("source", metavar="SOURCE", help="folder of a checkpoint, one safetensors file, or an index")
    convert.add_argument("target", metavar="TARGET", help="folder of the new checkpoint")
    convert.add_argument("--files", type=partial(count_of, most=99_999), default=1, help="number of files (default 1)")
    convert.add_argument("--overwrite", action="store_true", help="replace a checkpoint at TARGET")
    convert.add_argument("--json", action="store_true", help="the contents of the new checkpoint as JSON")


def run(arguments: argparse.Namespace) -> int:
    """Runs the subcommand."""
    return _convert(arguments) if arguments.action == "convert" else _info(arguments)


def _convert(arguments: argparse.Namespace) -> int:
    """Copies the checkpoint, with a progress bar."""
    from artifex_devices import checkpoint
    from artifex_devices._base.progress import progress_bar

    with usage_errors(OSError, ValueError):
        total = checkpoint.metadata(arguments.source).nbytes
        with progress_bar("convert", total) as progress:
            checkpoint.convert(
                arguments.source,
                arguments.target,
                num_files=arguments.files,
                overwrite=arguments.overwrite,
                progress=progress,
            )
        if arguments.json:
            write_json("checkpoint", json.loads(checkpoint.metadata(arguments.target).to_json()))
    return OK


def _info(arguments: argparse.Namespace) -> int:
    """Prints the table or the JSON document."""
    from artifex_devices import checkpoint

    with usage_errors(OSError, ValueError):
        found = checkpoint.metadata(arguments.path)
    if arguments.json:
        write_json("checkpoint", json.loads(found.to_json()))
    else:
        write_text(f"{found}\n")
    return OK
