# SPDX-License-Identifier: Apache-2.0
"""Clusters that one does not own: TPU slices, GPU nodes, racks, as values to plan with."""

from artifex_devices.cluster.presets import (
    Cluster,
    describe,
    dgx,
    from_toml,
    from_xml,
    gpus,
    mi300x,
    nvl72,
    this_machine,
    tpu,
)

__all__ = ["Cluster", "describe", "dgx", "from_toml", "from_xml", "gpus", "mi300x", "nvl72", "this_machine", "tpu"]
