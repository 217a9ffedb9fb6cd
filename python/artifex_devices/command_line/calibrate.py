# SPDX-License-Identifier: Apache-2.0
"""`artifex_devices calibrate`: measures this machine's copies and collectives, and checks the fitted model."""

from __future__ import annotations

import argparse
import json
from functools import partial

from artifex_devices.command_line.console import ATTENTION, OK, count_of, terminal_width, write_json, write_text

SUMMARY = "measure the copies and collectives of this machine, and check the fitted model"
DESCRIPTION = """\
Measures copies and collectives of CPU devices, fits the model that plan_reshard(calibration=) uses, and
stores it for this machine. This takes about 10 s, or 30 s with --check. Run it while the machine is idle."""
EXAMPLES = """\
examples:
  artifex_devices calibrate                      print the stored calibration, or measure a new one
  artifex_devices calibrate --refresh --check    measure now, and compare predictions with measurements
  artifex_devices calibrate --check --json       print the calibration and the comparison as JSON

exit codes: 0 success; 1 the machine was busy, or the median error of the check is above 20 % for 64 MiB or more;
            other codes: artifex_devices --help
"""

_MOST_ERROR = 0.2


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds --refresh, --check, --rounds and --json."""
    parser.add_argument("--refresh", action="store_true", help="measure now, even if a calibration is stored")
    parser.add_argument("--check", action="store_true", help="compare predicted with measured reshards and collectives")
    parser.add_argument(
        "--rounds",
        type=partial(count_of, most=100),
        help="repetitions of each measurement (default: 10 to calibrate, 3 to check); "
        "a stored calibration with fewer is replaced; with 1 or 2 a busy machine goes unnoticed",
    )
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(arguments: argparse.Namespace) -> int:
    """Prints the calibration, and the table of its check; 1 where they are not to be trusted."""
    from artifex_devices import calibration

    rounds = {} if arguments.rounds is None else {"rounds": arguments.rounds}
    found = calibration.calibrate(refresh=arguments.refresh, **rounds)
    checked = calibration.check(found, **rounds) if arguments.check else None
    if arguments.json:
        write_json("calibrate", json.loads((checked or found).to_json()))
    else:
        width = str(terminal_width())
        write_text(f"{found:{width}}\n" if checked is None else f"{found:{width}}\n\n{checked:{width}}\n")
    error = None if checked is None else checked.median_error()
    return ATTENTION if found.was_busy or (error is not None and error > _MOST_ERROR) else OK
