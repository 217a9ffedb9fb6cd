# SPDX-License-Identifier: Apache-2.0
"""`artifex_devices audit`: collectives of a program, shardings of a tree, and what changed in either."""

from __future__ import annotations

import argparse
import json
import re
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from artifex_devices.command_line.console import (
    ATTENTION,
    OK,
    UsageError,
    bytes_of,
    terminal_width,
    usage_errors,
    write_json,
    write_lines,
    write_text,
)
from artifex_devices.command_line.parser import add_parser

if TYPE_CHECKING:
    from artifex_devices.audit import Program

SUMMARY = "show the collectives and shardings of a program of JAX or torch, and what is suspicious"
DESCRIPTION = """\
program     list the collectives of a compiled program, and what is suspicious about them
shardings   list the leaves of a file of shardings, and what is notable
diff        list what changed between two files; the exit code is 1 if something did"""
EXAMPLES = """\
examples:
  artifex_devices audit program step.hlo --mesh data=4,model=2
  artifex_devices audit program dumps/ --max all_gather=2,all_to_all=0   fail if there are more
  artifex_devices audit shardings named_shardings.json
  artifex_devices audit diff golden/step.json step.hlo                   fail if something changed

exit codes: 0 success; 1 a rule of --max is broken, or the files of diff differ;
            2 invalid arguments or files; other codes: artifex_devices --help
"""
_PROGRAM = "HLO or StableHLO text, also .gz, a folder that XLA_FLAGS=--xla_dump_to wrote, or a profile"
_SHARDINGS = "JSON of audit.save, or MaxText's named, logical or input shardings"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the subcommands and their options."""
    actions = parser.add_subparsers(title="what to do", metavar="<what>", dest="action", required=True)
    text = "Lists the collectives of a program."
    program = add_parser(actions, "program", "list collectives and findings", text, EXAMPLES, run=_program)
    program.add_argument("file", metavar="FILE", help=_PROGRAM)
    _add_mesh(program)
    least_help = "least bytes of a finding, as 4MB or 4MiB (default: 1048576)"
    program.add_argument("--at-least", metavar="SIZE", type=bytes_of, default=1 << 20, help=least_help)
    max_help = "most operations of a kind; several, as all_gather=2,all_to_all=0; the exit code is 1 if there are more"
    program.add_argument("--max", metavar="KIND=N", type=_limits, action="extend", default=[], help=max_help)
    program.add_argument("--runs", action="store_true", help="--max counts executions, in loops too")
    program.add_argument("--json", action="store_true", help="print everything as JSON")
    text = "Lists the leaves of a tree, with their bytes on each device."
    shardings = add_parser(actions, "shardings", "list leaves and what is notable", text, EXAMPLES, run=_shardings)
    shardings.add_argument("file", metavar="FILE", help=_SHARDINGS)
    _add_mesh(shardings)
    least_help = "least bytes of a replicated leaf that is notable, as 4MB or 4MiB (default: 1048576)"
    shardings.add_argument("--at-least", metavar="SIZE", type=bytes_of, default=1 << 20, help=least_help)
    shardings.add_argument("--json", action="store_true", help="print everything as JSON")
    text = "Compares two files of shardings, or two programs."
    diff = add_parser(actions, "diff", "list what changed between two files", text, EXAMPLES, run=_diff)
    diff.add_argument("old", metavar="OLD", help="file of shardings or of a program, or a golden file")
    diff.add_argument("new", metavar="NEW", help="file of the same kind")
    _add_mesh(diff)
    diff.add_argument("--json", action="store_true", help="print everything as JSON")


def _add_mesh(parser: argparse.ArgumentParser) -> None:
    mesh_help = "sizes of the mesh axes, as data=4,model=2 (default: those of FILE)"
    parser.add_argument("--mesh", metavar="AXES", type=_mesh, help=mesh_help)


def _pairs(text: str, expected: str) -> list[tuple[str, int]]:
    found = [re.fullmatch(r"\s*([^=,\s]+)=([0-9]{1,15})\s*", part) for part in text.split(",")]
    pairs = [(match[1], int(match[2])) for match in found if match is not None]
    if len(pairs) < len(found) or len(dict(pairs)) < len(pairs):
        raise argparse.ArgumentTypeError(f"expected {expected}, got {text!r}")
    return pairs


def _mesh(text: str) -> dict[str, int]:
    return dict(_pairs(text, "axes and sizes such as data=4,model=2"))


def _limits(text: str) -> list[tuple[str, int]]:
    return _pairs(text, "kinds and numbers such as all_gather=2,all_to_all=0")


def run(arguments: argparse.Namespace) -> int:
    """Runs the subcommand."""
    commands = {"program": _program, "shardings": _shardings, "diff": _diff}
    return commands[arguments.action](arguments)


def _program(arguments: argparse.Namespace) -> int:
    """Prints the table or the JSON document, and the rules that are broken."""
    from artifex_devices import audit

    with usage_errors(OSError, ValueError, TypeError):
        found = audit.program(arguments.file, arguments.mesh)
        broken = _broken_rules(found, arguments)
    if arguments.json:
        content = {name: getattr(found, name) for name in ("source", "name", "devices", "backend", "is_partitioned")}
        content["mesh"] = dict(found.mesh)
        content["collectives"] = [{**asdict(each), "where": each.where} for each in found.collectives]
        content["findings"] = [{**asdict(each), "where": each.where} for each in found.findings(arguments.at_least)]
        write_json("audit", {**content, "notes": found.notes, "broken": broken})
    else:
        write_text(f"{found}\n")
        write_lines(line for text in broken for line in text.split("\n"))
    return ATTENTION if broken else OK


def _broken_rules(found: Program, arguments: argparse.Namespace) -> list[str]:
    from artifex_devices import audit

    texts = []
    for kind, limit in arguments.max:
        try:
            audit.assert_collectives(found, runs=arguments.runs, **{kind: audit.at_most(limit)})
        except AssertionError as error:
            texts.append(str(error).partition(": ")[2])
        except TypeError as error:
            raise UsageError(f"--max {kind}={limit}: {str(error).partition(': ')[2]}") from None
    return texts


def _shardings(arguments: argparse.Namespace) -> int:
    """Prints the table or the JSON document."""
    from artifex_devices import audit

    with usage_errors(OSError, ValueError):
        found = audit.shardings(arguments.file, mesh=arguments.mesh, at_least=arguments.at_least)
    if arguments.json:
        text = found.to_json()
        rows = json.loads(text)
        sizes = ("device_bytes", "total_bytes", "replicas")
        leaves = [
            {**row, **{name: getattr(leaf, name) for name in sizes}}
            for row, leaf in zip(rows["leaves"], audit.Shardings.from_json(text).leaves, strict=True)
        ]
        totals = {"device_bytes": found.device_bytes, "total_bytes": found.total_bytes}
        notes = [asdict(each) for each in found.notes]
        write_json("audit", {"meshes": rows["meshes"], **totals, "leaves": leaves, "notes": notes})
    else:
        write_text(f"{found:{terminal_width()}}\n")
    return OK


def _diff(arguments: argparse.Namespace) -> int:
    """Prints the changes."""
    from artifex_devices import audit

    with usage_errors(OSError, ValueError, TypeError):
        found = audit.diff(arguments.old, arguments.new, mesh=arguments.mesh)
    if arguments.json:
        names = ("kind", "name", "bytes", "text")
        changes: list[dict[str, Any]] = [{name: getattr(each, name) for name in names} for each in found.changes]
        write_json("audit", {"changes": changes})
    else:
        write_text(f"{found}\n")
    return ATTENTION if found else OK
