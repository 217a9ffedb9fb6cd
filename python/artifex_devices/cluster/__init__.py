# SPDX-License-Identifier: Apache-2.0
"""Descriptions of TPU slices, GPU nodes and racks, to plan with: one need not own them."""

from artifex_devices._base.public_lookup import add_public_lookup
from artifex_devices._core import Cluster
from artifex_devices.cluster.file import from_toml
from artifex_devices.cluster.presets import describe, dgx, from_text, from_xml, gpus, mi300x, nvl72, this_machine, tpu

__all__ = [
    "Cluster",
    "describe",
    "dgx",
    "from_text",
    "from_toml",
    "from_xml",
    "gpus",
    "mi300x",
    "nvl72",
    "this_machine",
    "tpu",
]
add_public_lookup(__name__)
