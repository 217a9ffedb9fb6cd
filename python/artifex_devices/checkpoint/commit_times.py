# SPDX-License-Identifier: Apache-2.0
"""manager.json: when a Manager committed a checkpoint. It gives the order of the checkpoints of a run.

The times of files do not: a copy of a run may lose them. docs/formats/checkpoint.md describes the file.
"""

from __future__ import annotations

import json
import os

FILE = "manager.json"
_MAX_BYTES = 4096


def write(folder: str, time_ns: int) -> None:
    """Writes the file of a folder, and waits for the storage."""
    with open(f"{folder}/{FILE}", "x", encoding="utf-8") as file:
        file.write(json.dumps({"committed_ns": time_ns}) + "\n")
        file.flush()
        os.fsync(file.fileno())


def read(folder: str) -> int:
    """Returns the time of a checkpoint in nanoseconds since 1970; 0 if the file is missing or damaged."""
    try:
        descriptor = os.open(f"{folder}/{FILE}", os.O_RDONLY | os.O_NONBLOCK)
        try:
            text = os.read(descriptor, _MAX_BYTES)
        finally:
            os.close(descriptor)
        found = json.loads(text)["committed_ns"]
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        return 0
    return found if type(found) is int and found > 0 else 0
