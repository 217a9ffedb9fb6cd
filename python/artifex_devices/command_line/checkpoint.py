# SPDX-License-Identifier: Apache-2.0
"""`artifex_devices checkpoint`: what checkpoints contain, conversions, comparisons and checksums."""

from __future__ import annotations

import argparse
import json
from contextlib import AbstractContextManager
from dataclasses import asdict
from functools import partial
from typing import TYPE_CHECKING, Any

from artifex_devices._base.text import printable
from artifex_devices.command_line.console import (
    ATTENTION,
    OK,
    count_of,
    usage_errors,
    write_json,
    write_lines,
    write_text,
)
from artifex_devices.command_line.parser import Parser, add_parser

if TYPE_CHECKING:
    from artifex_devices.checkpoint import Reader
    from artifex_devices.checkpoint.rules import Rule

SUMMARY = "list, convert, compare and verify checkpoints of this library, JAX, torch and NumPy"
DESCRIPTION = """\
inspect     list names, dtypes, shapes and bytes, and which format it is, without reading arrays
convert     write a checkpoint in another format, for another job, with rules; the same command continues
compare     list what differs between two checkpoints, in bits; the exit code is 1 if something does
verify      read everything and compare checksums"""
EXAMPLES = """\
examples:
  artifex_devices checkpoint inspect runs/1/1000
  artifex_devices checkpoint convert runs/1/1000 resharded --files 64
                                                          write a file for each of 64 processes
  artifex_devices checkpoint convert Llama-3 out --format orbax --rules rules.toml --dry-run
                                                          print the table of source and target arrays
  artifex_devices checkpoint compare Llama-3 out --rules rules.toml
  artifex_devices checkpoint verify runs/1/1000

formats: artifex, safetensors, dcp (torch.distributed.checkpoint), orbax, npz; torch is only read

exit codes: 0 success; 1 the checkpoints of compare differ; 2 there is no checkpoint, it is damaged, rules do not
            fit, or the target cannot be written; other codes: artifex_devices --help
"""
_PATH = "folder or file of a checkpoint in any format"
_WRITTEN = ("artifex", "safetensors", "dcp", "orbax", "npz")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the subcommands and their options."""
    actions = parser.add_subparsers(title="what to do", metavar="<what>", dest="action", required=True)
    inspect = add_parser(actions, "inspect", "list arrays and values", "Lists a checkpoint.", EXAMPLES)
    inspect.add_argument("path", metavar="PATH", help=_PATH)
    _add_common(inspect)
    text = (
        "Writes a checkpoint piece by piece, so arrays may be larger than memory. TARGET appears when it is complete; "
        "until then TARGET.partial has its files, and the same command continues after an interruption."
    )
    convert = add_parser(actions, "convert", "write it in another format", text, EXAMPLES)
    convert.add_argument("source", metavar="SOURCE", help=_PATH)
    convert.add_argument("target", metavar="TARGET", help="folder of the new checkpoint, or a file with --format npz")
    convert.add_argument("--format", choices=_WRITTEN, default="artifex", help="format of TARGET (default: artifex)")
    convert.add_argument("--dtype", help="dtype of all floating-point arrays, such as bfloat16")
    convert.add_argument("--dry-run", action="store_true", help="print the table of source and target arrays")
    _add_rules(convert)
    _add_common(convert)
    files = convert.add_argument_group("files").add_argument
    count_help = "number of processes of the job that reads TARGET; each has a file (default: 1)"
    files("--files", metavar="N", type=partial(count_of, most=99_999), default=1, help=count_help)
    files("--max-shard-size", metavar="SIZE", help='largest size of a file of safetensors, such as "5 GB"')
    files("--overwrite", action="store_true", help="replace a checkpoint of this library at TARGET")
    extra_help = "array or value of SOURCE that may be left out; may be repeated"
    files("--allow-extra", metavar="PATTERN", action="append", default=[], help=extra_help)
    text = "Compares two checkpoints piece by piece."
    compare = add_parser(actions, "compare", "list what differs", text, EXAMPLES)
    compare.add_argument("a", metavar="A", help=_PATH)
    compare.add_argument("b", metavar="B", help="the other one")
    compare.add_argument("--dtype", help="dtype that floating-point arrays of both are cast to")
    _add_rules(compare)
    _add_common(compare)
    text = "Reads a checkpoint completely, and compares the checksums that its format has."
    verify = add_parser(actions, "verify", "read everything and compare checksums", text, EXAMPLES)
    verify.add_argument("path", metavar="PATH", help=_PATH)
    _add_common(verify)


def run(arguments: argparse.Namespace) -> int:
    """Runs the subcommand."""
    return {"inspect": _inspect, "convert": _convert, "compare": _compare, "verify": _verify}[arguments.action](
        arguments
    )


def _add_common(parser: Parser) -> None:
    parser.add_argument("--follow-links", action="store_true", help="read links that leave the folder")
    parser.add_argument("--json", action="store_true", help="print the result as JSON")


def _add_rules(parser: Parser) -> None:
    parser.add_argument("--rules", metavar="FILE", help="rules in TOML, from arrays of the first path to the second")
    preset_help = "rules of a model, before those of --rules: hf-to-maxtext-llama:heads=32,kv_heads=8,head_dim=128"
    parser.add_argument("--preset", metavar="NAME:KEY=VALUE,...", help=preset_help)
    parser.add_argument("--inverse", action="store_true", help="apply the rules in the other direction")


def _rules(arguments: argparse.Namespace) -> list[Rule]:
    from artifex_devices.checkpoint import rules

    found: list[Rule] = []
    if arguments.preset is not None:
        name, _, rest = arguments.preset.partition(":")
        pairs = [pair.partition("=") for pair in rest.split(",") if pair]
        with usage_errors(TypeError, ValueError, option="--preset: "):
            found += rules.preset(name, **{key: _number(text) for key, _, text in pairs})
    if arguments.rules is not None:
        found += rules.load(arguments.rules)
    return rules.inverse(found) if arguments.inverse else found


def _number(text: str) -> Any:
    """Returns the value of an argument of a preset: true, false, an integer, or the text."""
    if text in ("true", "false"):
        return text == "true"
    try:
        return int(text)
    except ValueError:
        return text


def _opened(path: str, arguments: argparse.Namespace) -> Reader:
    from artifex_devices.checkpoint.folders import check_path
    from artifex_devices.checkpoint.opening import open_reader

    name = check_path("checkpoint.open", "path", path)
    return open_reader("checkpoint.open", name, None, arguments.follow_links, prefers_stored=True)


def _errors() -> AbstractContextManager[None]:
    return usage_errors(OSError, ValueError, TypeError, ImportError)


def _nbytes(reader: Reader) -> int:
    """Returns the bytes of the arrays that have a dtype."""
    return sum(row["nbytes"] or 0 for row in json.loads(reader.to_json())["arrays"].values())


def _inspect(arguments: argparse.Namespace) -> int:
    """Prints the table or the JSON document."""
    with _errors(), _opened(arguments.path, arguments) as reader:
        text = reader.to_json() if arguments.json else str(reader)
    if arguments.json:
        write_json("checkpoint", json.loads(text))
    else:
        write_text(f"{text}\n")
    return OK


def _convert(arguments: argparse.Namespace) -> int:
    """Writes the checkpoint, with a progress bar."""
    from artifex_devices import checkpoint
    from artifex_devices._base.progress import progress_bar

    with _errors(), _opened(arguments.source, arguments) as reader:
        convert = partial(
            checkpoint.convert,
            reader,
            arguments.target,
            rules=_rules(arguments),
            format=arguments.format,
            dtype=arguments.dtype,
            num_files=arguments.files,
            max_shard_size=arguments.max_shard_size,
            allow_extra=arguments.allow_extra,
            overwrite=arguments.overwrite,
        )
        done = convert(dry_run=True)
        if not arguments.dry_run:
            with progress_bar("convert", done.nbytes, is_bytes=True) as progress:
                done = convert(progress=progress)
    if arguments.json:
        fields = asdict(done)
        write_json("checkpoint", {"kind": fields.pop("format"), **fields})
    else:
        write_text(f"{done}\n")
    return OK


def _compare(arguments: argparse.Namespace) -> int:
    """Prints what differs, after a progress bar."""
    from artifex_devices import checkpoint
    from artifex_devices._base.progress import progress_bar

    with (
        _errors(),
        _opened(arguments.a, arguments) as a,
        _opened(arguments.b, arguments) as b,
        progress_bar("compare", _nbytes(b), is_bytes=True) as progress,
    ):
        found = checkpoint.compare(a, b, rules=_rules(arguments), dtype=arguments.dtype, progress=progress)
    if arguments.json:
        write_json("checkpoint", json.loads(found.to_json()))
    else:
        write_text(f"{found}\n")
    return OK if found else ATTENTION


def _verify(arguments: argparse.Namespace) -> int:
    """Prints what was checked, after a progress bar."""
    from artifex_devices._base.progress import progress_bar

    with _errors(), _opened(arguments.path, arguments) as reader:
        with progress_bar("verify", _nbytes(reader), is_bytes=True) as progress:
            checked = reader.verify(progress=progress)
        if arguments.json:
            write_json("checkpoint", {"path": reader.path, "kind": reader.format, "checked": checked})
        else:
            write_lines([f"{printable(reader.path)}: {reader.format}", *checked, *map(printable, reader.notes)])
    return OK
