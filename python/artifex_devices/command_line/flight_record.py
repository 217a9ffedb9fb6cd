# SPDX-License-Identifier: Apache-2.0
"""`artifex_devices flight-record`: the last operations of the processes of a job."""

from __future__ import annotations

import argparse
from functools import partial
from typing import TYPE_CHECKING, Any

from artifex_devices.command_line.console import ATTENTION, OK, count_of, usage_errors, write_json, write_text

if TYPE_CHECKING:
    from artifex_devices._core.internal import FlightEvent

SUMMARY = "show the last operations of each process of a job that crashed or hangs"
DESCRIPTION = """\
Each process of a job records its last operations with other processes in a file that survives the process. This
command shows the last operation that all processes called, which processes did not call the next operation, and the
last operations of each process with their lines. A job that ends normally removes its files. They are in
config.flight_record_dir."""
EXAMPLES = """\
examples:
  artifex_devices flight-record                         show the last job that failed or still runs
  artifex_devices flight-record /tmp/.../20261124-093012-4711
  artifex_devices flight-record --last 20               show more operations of each process
  artifex_devices flight-record --json                  print all recorded operations

exit codes: 0 all processes called the same operations; 1 some process is behind or called another operation;
            2 the record is missing or damaged; other codes: artifex_devices --help
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options."""
    parser.add_argument("folder", metavar="DIR", nargs="?", help="folder of a job (default: the last job)")
    last = "number of operations to show for each process (default: 5)"
    parser.add_argument("--last", type=partial(count_of, most=1024), default=5, help=last)
    parser.add_argument("--json", action="store_true", help="print everything as JSON")


def run(arguments: argparse.Namespace) -> int:
    """Prints the records of the job."""
    from artifex_devices.distributed import flight_records

    with usage_errors(OSError, ValueError):
        folder = arguments.folder or flight_records.last_job()
        records = flight_records.read_job(folder)
    reports = flight_records.compare(records)
    if arguments.json:
        write_json(
            "flight-record",
            {
                "folder": folder,
                "processes": [
                    {
                        "process": record.process,
                        "pid": record.pid,
                        "host": record.host,
                        "state": flight_records.state_of(record),
                        "event_count": record.event_count,
                        "events": [_as_dict(event) for event in record.events],
                    }
                    for record in records
                ],
                "groups": [
                    {
                        "processes": report.processes,
                        "common": report.common and _as_dict(report.common),
                        "next": [{"process": n, "event": event and _as_dict(event)} for n, event in report.members],
                        "behind": report.behind,
                        "is_apart": report.is_apart,
                    }
                    for report in reports
                ],
            },
        )
    else:
        lines = [*flight_records.verdicts(records), *flight_records.last_operations(records, arguments.last)]
        write_text("\n".join([f"Flight records of {folder}", *lines, ""]))
    return ATTENTION if any(report.behind or report.is_apart for report in reports) else OK


def _as_dict(event: FlightEvent) -> dict[str, Any]:
    return {
        "number": event.number,
        "kind": event.kind,
        "route": event.route,
        "outcome": event.outcome,
        "turn": event.turn,
        "processes": event.processes,
        "operation": event.operation,
        "file": event.file,
        "line": event.line,
        "bytes": event.bytes,
        "begin_s": event.begin_ns / 1e9,
        "end_s": event.end_ns / 1e9 if event.end_ns else None,
    }
