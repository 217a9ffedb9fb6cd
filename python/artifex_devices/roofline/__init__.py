# SPDX-License-Identifier: Apache-2.0
"""Rooflines: FLOP/s and bytes/s of hardware, and the batch from which arithmetic is the limit.

Numbers of accelerators come from tables that name their sources; rates of this machine's CPU devices are measured.
"""

from artifex_devices._base.public_lookup import add_public_lookup
from artifex_devices.accelerators import Accelerator, Links, Source, accelerator, accelerators
from artifex_devices.roofline.chart import RooflinePoint
from artifex_devices.roofline.measured import Conditions, MeasuredRoofline, Rate
from artifex_devices.roofline.measurement import measure_roofline
from artifex_devices.roofline.model import Provenance, Roofline, roofline

__all__ = [
    "Accelerator",
    "Conditions",
    "Links",
    "MeasuredRoofline",
    "Provenance",
    "Rate",
    "Roofline",
    "RooflinePoint",
    "Source",
    "accelerator",
    "accelerators",
    "measure_roofline",
    "roofline",
]
add_public_lookup(__name__)
