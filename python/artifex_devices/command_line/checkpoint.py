# SPDX-License-Identifier: Apache-2.0
"""`artifex_devices checkpoint`: the contents of checkpoints."""

from __future__ import annotations

import argparse
import json
from functools import partial

from artifex_devices.command_line.console import OK, count_of, usage_errors, write_json, write_text
from artifex_devices.command_line.parser import add_parser

SUMMARY = "list checkpoints and safetensors files, or convert them to another number of files"
DESCRIPTION = """\
info        list names, dtypes, shapes, stored parts and bytes, without reading arrays or using devices
convert     write a checkpoint as another number of files; the source may come from any program"""
EXAMPLES = """\
examples:
  artifex_devices checkpoint info runs/1/1000            print a table
  artifex_devices checkpoint info runs/1/1000 --json     print everything, with the position of each part
  artifex_devices checkpoint info model.safetensors      list one file, or a folder that any program wrote
  artifex_devices checkpoint convert runs/1/1000 whole   put all arrays in one file
  artifex_devices checkpoint convert model parts --files 8

exit codes: 0 success; 2 there is no checkpoint, it is damaged, or the target cannot be written;
            other codes: artifex_devices --help
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the subcommands and their options."""
    actions = parser.add_subparsers(title="what to do", metavar="<what>", dest="action", required=True)
    info = add_parser(actions, "info", "list arrays and values", "Lists a checkpoint.", EXAMPLES, run=_info)
    info.add_argument("path", metavar="PATH", help="folder of a checkpoint, one safetensors file, or an index")
    info.add_argument("--json", action="store_true", help="print everything as JSON")
    text = "Copies a checkpoint piece by piece, so arrays may be larger than memory."
    convert = add_parser(actions, "convert", "copy to another number of files", text, EXAMPLES, run=_convert)
    convert.add_argument("source", metavar="SOURCE", help="folder of a checkpoint, one safetensors file, or an index")
    convert.add_argument("target", metavar="TARGET", help="folder of the new checkpoint")
    convert.add_argument("--files", type=partial(count_of, most=99_999), default=1, help="number of files (default: 1)")
    convert.add_argument("--overwrite", action="store_true", help="replace a checkpoint at TARGET")
    convert.add_argument("--json", action="store_true", help="print the contents of the new checkpoint as JSON")


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
