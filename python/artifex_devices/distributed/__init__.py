# SPDX-License-Identifier: Apache-2.0
"""One program in many processes: `mpiexec -n 4 python script.py`, with `initialize()` at its beginning."""

from __future__ import annotations

from artifex_devices._base.public_lookup import add_public_lookup
from artifex_devices.distributed.job import initialize, is_initialized, is_launched, shutdown

__all__ = ["initialize", "is_initialized", "is_launched", "shutdown"]
add_public_lookup(__name__)
