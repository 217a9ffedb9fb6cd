# SPDX-License-Identifier: Apache-2.0
"""Names of other projects, for their programs."""

from __future__ import annotations

from artifex_devices._base.public_lookup import add_public_lookup
from artifex_devices.compat import artifex

__all__ = ["artifex"]
add_public_lookup(__name__)
