# SPDX-License-Identifier: Apache-2.0
"""TOML files of models, for plans and `plan step`."""

from __future__ import annotations

import tempfile
from pathlib import Path

from artifex_devices.planner.shape import shape_of
from oracle import check_pickle, check_refusal, require

MODULES = (
    "artifex_devices.planner.shape.model_argument",
    "artifex_devices.planner.shape.shape_file",
    "artifex_devices._base.toml",
    "artifex_devices.planner.shape.transformer",
    "tomllib",
)
_FILE = Path(tempfile.mkdtemp(prefix="fuzz-")) / "mine.toml"


def one_input(data: bytes) -> bool:
    """Whether it was accepted."""
    _FILE.write_bytes(data)
    try:
        read = shape_of("plan", _FILE)
    except ValueError as error:
        return check_refusal(error, ValueError)
    require(read.parameters.total >= 1, f"{read.parameters.total} parameters")
    require(shape_of("plan", _FILE) == read, "another one when read again")
    require(read.name.isprintable(), repr(read.name))
    check_pickle(read)
    return True
