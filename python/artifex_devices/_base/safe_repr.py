# SPDX-License-Identifier: Apache-2.0
"""How messages tell a caller's value: its repr, cut where it is long; a repr that raises costs no message."""

from __future__ import annotations

from artifex_devices._core import _shown as shown

__all__ = ["shown"]
