# SPDX-License-Identifier: Apache-2.0
"""`artifex_devices calibrate`: measures this machine's copies and collectives, and checks the fitted model."""

from __future__ import annotations

import argparse
import json
from functools import partial

from artifex_devices.command_line.console import ATTENTION, OK, count_of, terminal_width, write_json, write_text

SUMMARY = "seconds of this machine's own copies and collectives: measured, stored and checked"
DESCRIPTION = """\
Measures copies and collectives of CPU devices, fits the model that plan_reshard(calibration=) uses, and
stores it for this machine. Takes some 10 s, with --check some 20 s more; best while nothing else runs."""
EXAMPLES = """\
examples:
  artifex_devices calibrate                      the stored calibration of this machine, or a new one
  artifex_devices calibrate --refresh --check    measured now, and a table of predicted against measured
  artifex_devices calibrate --check --json       the same as JSON, with the calibration

exit codes: 0 done; 1 the machine was busy, or the median error of the check is above 20 % from 64 MiB on; others as for
every command (artifex_devices --help)
"""

_MOST_ERROR = 0.2


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds --refresh, --check, --rounds and --json."""
    parser.add_argument("--refresh", action="store_true", help="measure now, whatever is kept")
    parser.add_argument("--check", action="store_true", help="predict reshards and collectives, measure them, compare")
    parser.add_argument(
        "--rounds",
        type=partial(count_of, most=100),
        help="turns of each thing that is measured (calibration 10, check 3); "
        "measured again if the stored calibration had fewer; 1 or 2 cannot show whether the machine was busy",
    )
    parser.add_argument("--json", action="store_true", help="all figures as JSON")


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
