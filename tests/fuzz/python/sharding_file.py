# SPDX-License-Identifier: Apache-2.0
"""JSON files of shardings and golden files of programs: audit.load."""

from __future__ import annotations

import tempfile
from pathlib import Path

from artifex_devices import audit
from oracle import check_pickle, check_refusal, require

MODULES = (
    "artifex_devices.audit.sharding_files",
    "artifex_devices.audit.sharding_texts",
    "artifex_devices.audit.sharding_table",
    "artifex_devices.audit.notices",
    "artifex_devices.audit.summary",
)
_FILE = Path(tempfile.mkdtemp(prefix="fuzz-")) / "state.json"
_SIGNS = {"\n"}


def one_input(data: bytes) -> bool:
    """Whether it was accepted."""
    _FILE.write_bytes(data)
    try:
        read = audit.load(_FILE)
    except ValueError as error:
        return check_refusal(error, ValueError)
    audit.save(read, _FILE)
    again = audit.load(_FILE)
    require(again.to_json() == read.to_json(), "another one when read again")
    require(not audit.diff(read, again), "it differs from itself")
    require(all(sign.isprintable() or sign in _SIGNS for sign in str(read)), repr(str(read)))
    if isinstance(read, audit.Shardings):
        for leaf in read.leaves:
            require(leaf.device_bytes is None or leaf.device_bytes >= 0, f"{leaf.device_bytes} bytes")
            require(leaf.replicas is None or leaf.replicas >= 1 or not leaf.mesh, f"{leaf.replicas} replicas")
    check_pickle(read)
    return True
