# SPDX-License-Identifier: Apache-2.0
"""`artifex_devices doctor`: an examination of the machine and of the process."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from artifex_devices._base.rich_console import rich_console
from artifex_devices._base.text import bytes_text, printable, wrapped
from artifex_devices.command_line.console import ATTENTION, OK, has_signs, terminal_width, write_json, write_text

if TYPE_CHECKING:
    from artifex_devices.doctor import Fact, Report, Section

SUMMARY = "check machine, limits, memory, BLAS, MPI and GPUs, and suggest repairs"
DESCRIPTION = """\
Checks the machine and the part of it that this process may use: topology, affinity, control groups, NUMA policy, huge
pages, limits, BLAS, MPI, GPU libraries, versions, environment variables. Each value is followed by its source: a file,
a call, a library or a measurement. Each finding states its cost and the repair. The command changes nothing, starts no
program and does not initialize MPI."""
EXAMPLES = """\
examples:
  artifex_devices doctor                           check everything
  artifex_devices doctor --no-measure              skip the measurements, which take some seconds
  artifex_devices doctor --json > report.json      write a report for programs and bug reports
  artifex_devices doctor --json | python -c \\
    "import json, sys; print([f['id'] for f in json.load(sys.stdin)['findings']])"
  artifex_devices doctor --schema                  print the JSON schema of the report
  artifex_devices doctor --no-measure --strict >/dev/null || echo "look at this machine first"

exit codes: 0 no finding needs attention; 1 a finding needs attention (with --strict: any finding);
            other codes: artifex_devices --help
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds --json, --schema, --strict and --no-measure."""
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print the report as JSON")
    form.add_argument("--schema", action="store_true", help="print the JSON schema of the report and exit")
    parser.add_argument("--strict", action="store_true", help="let hints affect the exit code too")
    parser.add_argument("--no-measure", action="store_true", help="skip the measurements")


def run(arguments: argparse.Namespace) -> int:
    """Prints the report; 1 where something needs attention."""
    if arguments.schema:
        from importlib import resources

        schema = resources.files("artifex_devices.doctor") / "report.schema.json"
        write_text(schema.read_text(encoding="utf-8"))
        return OK
    from artifex_devices.doctor import examine

    report = examine(measure=not arguments.no_measure)
    if arguments.json:
        write_json("doctor", report.to_json())
    else:
        write_report(report)
    return ATTENTION if report.needs_attention or (arguments.strict and report.findings) else OK


_NAME_WIDTH = 24


def write_report(report: Report) -> None:
    """Writes to standard output: in colour to a terminal that has its signs if rich is installed, else plain."""
    if sys.stdout is not None and sys.stdout.isatty() and has_signs("…"):
        try:
            from rich.text import Text

            console = rich_console(highlight=False)
        except ImportError:
            pass
        else:
            for line, style in _styled_lines(report, terminal_width()):
                console.print(Text(line, style=style), soft_wrap=True)
            return
    write_text("\n".join(report_lines(report, terminal_width() or 100)) + "\n")


def report_lines(report: Report, width: int) -> list[str]:
    """Formats the report as plain text, in lines of `width` characters at most, where words allow it."""
    return [line for line, _ in _styled_lines(report, width)]


def _styled_lines(report: Report, width: int) -> Iterator[tuple[str, str]]:
    """Returns the lines of the report, with their styles on a terminal."""
    begin = f"Examined {report.date}. Each value is followed by its source."
    yield from ((line, "dim") for line in wrapped(begin, width))
    yield "", ""
    indent = min(_NAME_WIDTH + 3, width // 3 + 1)
    for section in report.sections.values():
        yield section.title, "bold"
        for name, fact in section.facts.items():
            value, *more = _value_lines(fact)
            style = "yellow" if fact.value is None else ""
            first, rest = f"  {_label(name, section):<{_NAME_WIDTH}} ", " " * indent
            for line in (f"{value}  [{fact.source}]", *more):
                yield from ((part, style) for part in wrapped(line, width, first, rest))
                first = rest
        if not section.facts:
            yield "  none", "dim"
        yield "", ""
    yield "Findings", "bold"
    for finding in report.findings:
        mark, style = ("!", "bold red") if finding.severity == "attention" else ("-", "bold blue")
        what = f"{mark} {finding.what} ({finding.id})"
        yield from ((line, style) for line in wrapped(what, width, "  ", "    "))
        for word, text in (("costs: ", finding.cost), ("repair: ", finding.repair)):
            first, rest = f"    {word:<8}", " " * 12
            yield from ((line, "") for line in wrapped(text, width, first, rest))
        yield "", ""
    style = "bold red" if report.needs_attention else "bold green"
    yield from ((line, style) for line in wrapped(verdict(report), width))


def verdict(report: Report) -> str:
    """Formats the last line: how many findings there are."""
    serious = sum(finding.severity == "attention" for finding in report.findings)
    hints = len(report.findings) - serious
    if not report.findings:
        return "Nothing to repair."
    need = f"{serious} finding{'s need' if serious != 1 else ' needs'} attention"
    return f"{need}, {hints} hint{'' if hints == 1 else 's'}."


def _label(name: str, section: Section) -> str:
    """Formats the name in words; names of packages and variables are not changed."""
    return name if section.title in ("Versions", "Environment variables") else name.replace("_", " ")


def _value_lines(fact: Fact) -> list[str]:
    """Formats the value in words, then its problem."""
    lines = [f"({fact.problem})"] if fact.value is None else _words(fact.value, fact.unit or "")
    if fact.problem and fact.value is not None:
        lines = [*lines[:-1], f"{lines[-1]} ({fact.problem})"]
    return [printable(line) for line in lines]


def _words(value: Any, unit: str) -> list[str]:
    if isinstance(value, bool) or value is None:
        return [json.dumps(value)]
    if isinstance(value, (dict, list)):
        keys = [f"{key}: " for key in value] if isinstance(value, dict) else [""] * len(value)
        values = value.values() if isinstance(value, dict) else value
        parts = [key + " ".join(_words(each, unit)) for key, each in zip(keys, values, strict=True)] or ["none"]
        short = ", ".join(parts)
        return [short] if len(short) <= 60 else parts
    if isinstance(value, str):
        return value.splitlines() or ["(empty)"]
    if unit.startswith("bytes"):
        return [bytes_text(int(value)) + unit.removeprefix("bytes")]
    return [f"{value:g} {unit}".rstrip() if isinstance(value, float) else f"{value} {unit}".rstrip()]
