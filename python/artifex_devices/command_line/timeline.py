# SPDX-License-Identifier: Apache-2.0
"""`artifex_devices timeline`: a trace of a job from its flight records, and which processes the others waited for."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from artifex_devices.command_line.console import OK, terminal_width, usage_errors, write_json, write_text

SUMMARY = "a trace of a job of several processes, and which process delayed the rest"
DESCRIPTION = """\
Reads the flight records of a job (artifex_devices flight-record) and shows which process came last to each meeting, and
how long other processes waited for it. With -o it writes a trace for https://ui.perfetto.dev: a track of meetings and
one of exchanges for each process, and arrows from the process that came last. The clocks of hosts are aligned by the
meetings; the error is shown."""
EXAMPLES = """\
examples:
  artifex_devices timeline                     the last job that ended badly, or that runs
  artifex_devices timeline DIR -o trace.json   writes the trace too
  artifex_devices timeline DIR --json          clocks and all waits as JSON

exit codes: 0 done; 2 there is no record, or the trace cannot be written; others as for every command
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options."""
    parser.add_argument("folder", metavar="DIR", nargs="?", help="folder of a job, by default that of the last one")
    parser.add_argument("-o", "--output", metavar="FILE", help="file for the trace")
    parser.add_argument("--json", action="store_true", help="clocks and waits as JSON")


def run(arguments: argparse.Namespace) -> int:
    """Prints the summary and writes the trace."""
    from artifex_devices.distributed import flight_records
    from artifex_devices.distributed.timeline import Timeline

    with usage_errors(OSError, ValueError):
        folder = arguments.folder or flight_records.last_job()
        timeline = Timeline(flight_records.read_job(folder))
        if arguments.output:
            Path(arguments.output).write_text(json.dumps(timeline.trace()), encoding="utf-8")
    if arguments.json:
        write_json("timeline", {"folder": folder, **timeline.to_dict()})
    else:
        write_text(f"Timeline of {folder}\n{timeline.summary(terminal_width())}\n")
    return OK
