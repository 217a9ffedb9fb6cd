# SPDX-License-Identifier: Apache-2.0
"""`artifex_devices timeline`: a trace of a job from its flight records, and the processes that delayed the rest."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from artifex_devices.command_line.console import OK, terminal_width, usage_errors, write_json, write_text

SUMMARY = "show which process delayed a job, and write a trace of all processes"
DESCRIPTION = """\
Reads the flight records of a job (see artifex_devices flight-record). Shows which process arrived last at each meeting,
and how long other processes waited for it. With -o it writes a trace for https://ui.perfetto.dev. The trace has a track
of meetings and a track of exchanges for each process, and arrows from the process that arrived last. The meetings also
align the clocks of the hosts, and the output states the remaining error."""
EXAMPLES = """\
examples:
  artifex_devices timeline                     show the last job that failed or still runs
  artifex_devices timeline DIR -o trace.json   write a trace too
  artifex_devices timeline DIR --json          print clocks and all waits as JSON

exit codes: 0 success; 2 there is no record, or the trace cannot be written; other codes: artifex_devices --help
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options."""
    parser.add_argument("folder", metavar="DIR", nargs="?", help="folder of a job (default: the last job)")
    parser.add_argument("-o", "--output", metavar="FILE", help="write the trace to this file")
    parser.add_argument("--json", action="store_true", help="print clocks and waits as JSON")


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
