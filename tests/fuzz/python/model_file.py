# SPDX-License-Identifier: Apache-2.0
"""TOML files of models, for `plan step` and `plan suggest`."""

from __future__ import annotations

import tempfile
from argparse import Namespace
from pathlib import Path

from artifex_devices.command_line.console import UsageError
from artifex_devices.command_line.plan_model import read_model
from oracle import check_pickle, check_refusal, require

MODULES = (
    "artifex_devices.command_line.plan_model",
    "artifex_devices._base.toml",
    "artifex_devices.models",
    "tomllib",
)
_FILE = Path(tempfile.mkdtemp(prefix="fuzz-")) / "mine.toml"
_STEP = Namespace(model=str(_FILE), batch=8, sequence=16, keep="products", forward=False, cache=None, dtype="bfloat16")


def one_input(data: bytes) -> bool:
    """Whether it was accepted."""
    _FILE.write_bytes(data)
    try:
        read = read_model(_STEP)
    except UsageError as error:
        return check_refusal(error, UsageError)
    require(read.parameters >= 1 and read.tokens == 128, f"{read.parameters} parameters, {read.tokens} tokens")
    require(read_model(_STEP) == read, "another one when read again")
    require(read.name.isprintable(), repr(read.name))
    check_pickle(read)
    return True
