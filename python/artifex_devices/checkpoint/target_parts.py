# SPDX-License-Identifier: Apache-2.0
"""The boxes of arrays that each process of the future job reads: its file of the new checkpoint."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from artifex_devices._core import Mesh, Sharding, internal
from artifex_devices.checkpoint.readers.reader import Box

Arrays = Mapping[str, tuple[tuple[int, ...], np.dtype[Any]]]
Parts = list[dict[str, list[Box]]]


def equal_parts(arrays: Arrays, count: int) -> Parts:
    """Returns the boxes of `count` processes, each with an equal part of each array."""
    parts: Parts = []
    for index in range(count):
        boxes = {name: internal.part_of_box(shape, index, count) for name, (shape, _) in arrays.items()}
        parts.append({name: [box] for name, box in boxes.items() if box is not None})
    return parts


def sharded_parts(arrays: Arrays, shardings: Mapping[str, Sharding]) -> Parts:
    """Returns the boxes that the processes of the shardings save. Process 0 saves arrays without a sharding."""
    holders = {name: processes_of(sharding) for name, sharding in shardings.items()}
    processes = sorted({0}.union(*holders.values()))
    parts: Parts = [{} for _ in range(processes[-1] + 1)]
    found: dict[tuple[Sharding, tuple[int, ...]], dict[int, list[Box]]] = {}
    for name, (shape, _) in arrays.items():
        if name not in shardings or len(holders[name]) == 1:
            (process,) = holders.get(name, {0})
            parts[process][name] = [((0,) * len(shape), shape)]
            continue
        key = (shardings[name], shape)
        if key not in found:
            found[key] = {process: internal.owned_boxes(*key, process) for process in holders[name]}
        for process, boxes in found[key].items():
            if boxes:
                parts[process][name] = boxes
    return parts


def processes_of(placement: Sharding | Mesh) -> set[int]:
    """Returns the processes of the devices of a sharding or a mesh."""
    devices = placement.devices.flat if isinstance(placement, Mesh) else placement.device_set
    return {device.process_index for device in devices}
