# SPDX-License-Identifier: Apache-2.0
"""JSON files of kept calibrations and rooflines: read_measurement, which tells why it does not use one."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

from artifex_devices.planner.calibration.values import Calibration
from artifex_devices.roofline.cache import read_measurement, write_measurement
from artifex_devices.roofline.measured import MeasuredRoofline
from oracle import LONGEST, require

MODULES = (
    "artifex_devices.roofline.cache",
    "artifex_devices._base.state_validation",
    "artifex_devices.planner.calibration.values",
    "artifex_devices.planner.calibration.parts",
    "artifex_devices.roofline.measured",
    "json",
)
_FOLDER = Path(tempfile.mkdtemp(prefix="fuzz-"))
_FILE, _AGAIN = _FOLDER / "kept.json", _FOLDER / "again.json"
_FINGERPRINT = {"machine": "fuzz"}


def one_input(data: bytes) -> bool:
    """Whether it was accepted, as one or the other."""
    _FILE.write_bytes(data)
    is_calibration, is_roofline = _read(Calibration), _read(MeasuredRoofline)
    return is_calibration or is_roofline


def _read(kind: type[Calibration] | type[MeasuredRoofline]) -> bool:
    found, why = read_measurement(_FILE, _FINGERPRINT, kind.from_dict)
    if found is None:
        require(why.startswith(f"{_FILE} is not used: ") and why.isprintable() and len(why) < LONGEST, repr(why))
        return False
    require(why == "" and isinstance(found, kind), why)
    require(write_measurement(_AGAIN, _FINGERPRINT, found) == f"stored in {_AGAIN}", "not stored")
    again, why = read_measurement(_AGAIN, _FINGERPRINT, kind.from_dict)
    require(again is not None, f"what was written is not read again: {why}")
    require(again.to_dict() == found.to_dict() and again.notes == found.notes, "another one when read again")
    require(all(line.isprintable() for line in str(found).split("\n")), str(found))
    if isinstance(found, Calibration):
        json.loads(found.to_json(), parse_constant=lambda name: require(False, f"{name} in JSON"))
    return True
