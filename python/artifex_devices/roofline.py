# SPDX-License-Identifier: Apache-2.0
"""What hardware can do at most: FLOP/s, bytes/s, and from which batch on the first is the limit.

Numbers of accelerators are a table's, each with its sources; those of this machine's CPU devices are measured.
"""

from __future__ import annotations

from artifex_devices.accelerators import Accelerator, Links, Source, accelerator, accelerators

__all__ = ["Accelerator", "Links", "Source", "accelerator", "accelerators"]
