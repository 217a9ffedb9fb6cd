# SPDX-License-Identifier: Apache-2.0
"""Traces in the JSON format of Chrome: planner.read_profile."""

from __future__ import annotations

import math
import tempfile
from pathlib import Path

from artifex_devices.planner import read_profile
from oracle import check_refusal, require

MODULES = (
    "artifex_devices.planner.profile.reader",
    "artifex_devices.planner.profile.names",
    "artifex_devices.planner.profile.tracks",
    "artifex_devices.planner.profile.trace_file",
)
_FILE = Path(tempfile.mkdtemp(prefix="fuzz-")) / "trace.json"


def one_input(data: bytes) -> bool:
    """Whether it was accepted."""
    _FILE.write_bytes(data)
    try:
        read = read_profile(_FILE, steps=2)
    except ValueError as error:
        return check_refusal(error, ValueError)
    total = math.fsum(read.alone.values()) + read.idle
    require(math.isclose(total, read.seconds, rel_tol=1e-6, abs_tol=1e-9), f"{total} of {read.seconds} s")
    require(all(0 <= read.alone[kind] <= busy for kind, busy in read.busy.items()), f"{read.busy}, {read.alone}")
    require(repr(read).isprintable() and all(line.isprintable() for line in str(read).split("\n")), repr(str(read)))
    require(read_profile(_FILE, steps=2).busy == read.busy, "another one when read again")
    return True
