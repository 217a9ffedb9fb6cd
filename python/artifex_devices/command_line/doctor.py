# SPDX-License-Identifier: Apache-2.0
"""`artifex_devices doctor`: an examination of the machine and of what the process may use of it."""

from __future__ import annotations

import argparse

from artifex_devices.command_line.exit_codes import ATTENTION, OK

SUMMARY = "examines machine, limits, memory, BLAS, MPI and GPUs, and says what to repair"
DESCRIPTION = """\
Examines the machine and what this process may use of it: topology, affinity, control groups, NUMA policy, huge pages,
limits, BLAS, MPI, GPU libraries, versions, environment variables. Each value is followed by where it is from: a file,
a call, a library or a measurement. Each finding says what it costs and how to repair it. Nothing is changed, no
program is started, MPI is not initialized."""
EXAMPLES = """\
examples:
  artifex_devices doctor                           all of it
  artifex_devices doctor --no-measure              without the measurements, which take some seconds
  artifex_devices doctor --json > report.json      for programs and for bug reports
  artifex_devices doctor --json | python -c \\
    "import json, sys; print([f['id'] for f in json.load(sys.stdin)['findings']])"
  artifex_devices doctor --schema                  the JSON schema of that document
  artifex_devices doctor --no-measure --strict >/dev/null || echo "look at this machine first"

exit codes: 0 nothing that needs attention; 1 a finding that does (with --strict: any finding);
others as for every command (artifex_devices --help)
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """--json, --schema, --strict, --no-measure."""
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="the report as JSON")
    form.add_argument("--schema", action="store_true", help="print the JSON schema of the report and end")
    parser.add_argument("--strict", action="store_true", help="hints count for the exit code too")
    parser.add_argument("--no-measure", action="store_true", help="measure nothing")


def run(arguments: argparse.Namespace) -> int:
    """Prints the report; 1 where something needs attention."""
    from artifex_devices.command_line.output import write_json, write_text

    if arguments.schema:
        from importlib import resources

        schema = resources.files("artifex_devices.doctor") / "report.schema.json"
        write_text(schema.read_text(encoding="utf-8"))
        return OK
    from artifex_devices.doctor import examine

    report = examine(measure=not arguments.no_measure)
    if arguments.json:
        write_json(report.to_json())
    else:
        from artifex_devices.command_line.doctor_text import write_report

        write_report(report)
    return ATTENTION if report.needs_attention or (arguments.strict and report.findings) else OK
