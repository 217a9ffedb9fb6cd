# SPDX-License-Identifier: Apache-2.0
"""Traces of a program's operations, and memory profiles of devices, with the names of `jax.profiler`."""

from __future__ import annotations

from artifex_devices._base.public_lookup import add_public_lookup
from artifex_devices.profiler.annotation import annotate
from artifex_devices.profiler.memory import device_memory_profile, save_device_memory_profile
from artifex_devices.profiler.recording import trace
from artifex_devices.profiler.trace import ProcessClock, Trace, TracedMeeting, TraceEvent

__all__ = [
    "ProcessClock",
    "Trace",
    "TraceEvent",
    "TracedMeeting",
    "annotate",
    "device_memory_profile",
    "save_device_memory_profile",
    "trace",
]
add_public_lookup(__name__)
