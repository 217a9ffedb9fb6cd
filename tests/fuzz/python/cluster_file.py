# SPDX-License-Identifier: Apache-2.0
"""TOML files of clusters: cluster.from_toml."""

from __future__ import annotations

import tempfile
from pathlib import Path

from artifex_devices import cluster
from oracle import check_pickle, check_refusal, require

MODULES = (
    "artifex_devices.cluster.file",
    "artifex_devices._base.toml",
    "tomllib",
)
_FILE = Path(tempfile.mkdtemp(prefix="fuzz-")) / "lab.toml"


def one_input(data: bytes) -> bool:
    """Whether it was accepted."""
    _FILE.write_bytes(data)
    try:
        read = cluster.from_toml(_FILE)
    except ValueError as error:
        return check_refusal(error, ValueError)
    require(1 <= read.device_count <= 1 << 24, f"{read.device_count} devices")
    require(cluster.from_toml(_FILE) == read, "another one when read again")
    require(read.name.isprintable() and repr(read).isprintable(), repr(read))
    check_pickle(read)
    return True
