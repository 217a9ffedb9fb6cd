# SPDX-License-Identifier: Apache-2.0
"""Batch sizes from measuring one's own function: `measure_batch_size`."""

from __future__ import annotations

from artifex_devices._base.public_lookup import add_public_lookup
from artifex_devices.batch_measurement.measure import measure_batch_size
from artifex_devices.batch_measurement.measurement import BatchSizeMeasurement
from artifex_devices.batch_measurement.memory import MemoryFit, MemoryMeter, MemoryUse
from artifex_devices.batch_measurement.probe import BatchProbe
from artifex_devices.batch_measurement.throughput import ThroughputModel

__all__ = [
    "BatchProbe",
    "BatchSizeMeasurement",
    "MemoryFit",
    "MemoryMeter",
    "MemoryUse",
    "ThroughputModel",
    "measure_batch_size",
]
add_public_lookup(__name__)
