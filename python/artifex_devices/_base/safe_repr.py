# SPDX-License-Identifier: Apache-2.0
"""The repr of a caller's value for messages: shortened if it is long, replaced if it raises."""

from __future__ import annotations

from artifex_devices._core.internal import safe_repr

__all__ = ["safe_repr"]
