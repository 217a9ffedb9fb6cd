# SPDX-License-Identifier: Apache-2.0
"""The repr of a caller's value for messages: shortened, and safe for objects whose repr raises."""

from __future__ import annotations

from artifex_devices._core import _safe_repr as safe_repr  # noqa: F401 - for all other rooms
