# SPDX-License-Identifier: Apache-2.0
"""What the Arrays of a client hold, by device and by the line that made them, as a pprof profile."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator

from artifex_devices._core import Array, Client, _creation_line, _heap_profile

__all__ = ["heap_profile"]


def heap_profile(client: Client) -> bytes:
    """`client.heap_profile`, where it is documented."""
    samples = []
    for array in client.live_arrays():
        file, line = _creation_line(array) or ("", 0)
        samples += [(device, held, 1, file, line, "") for device, held in _bytes_by_device(array)]
    return _heap_profile(samples, time.time_ns())


def _bytes_by_device(array: Array) -> Iterator[tuple[str, int]]:
    """Logical bytes on each device, as `Memory.stats()` of the Array's kind counts them."""
    sharding = array.sharding
    even = math.prod(sharding.shard_shape(array.shape)) * array.itemsize
    uneven = getattr(sharding, "uneven", None) is not None
    index_of = sharding.devices_indices_map(array.shape) if uneven else {}
    own = sharding.addressable_devices
    for device in sharding._device_assignment:
        if device not in own:
            continue
        if uneven:
            parts = zip(index_of[device], array.shape, strict=True)
            yield str(device), math.prod(len(range(*part.indices(size))) for part, size in parts) * array.itemsize
        else:
            yield str(device), even
