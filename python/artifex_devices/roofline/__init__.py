# SPDX-License-Identifier: Apache-2.0
"""What hardware can do at most: FLOP/s, bytes/s, and from which batch on the first is the limit.

Numbers of accelerators are a table's, each with its sources; those of this machine's CPU devices are measured.
"""

from artifex_devices.roofline.model import (
    Accelerator,
    Conditions,
    Links,
    MeasuredRoofline,
    Provenance,
    Rate,
    Roofline,
    RooflinePoint,
    Source,
    accelerator,
    accelerators,
    measure_roofline,
    roofline,
)

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
