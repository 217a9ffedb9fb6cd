# SPDX-License-Identifier: Apache-2.0
"""Bytes by device, computed on first access; the sum and maximum are known earlier."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from artifex_devices._base.checks import failure
from artifex_devices._base.public_path import unpickles
from artifex_devices._base.state_validation import checked_count


class DeviceBytes(Mapping[int, int]):
    """Immutable mapping of device id to bytes, in order of positions. A device at two positions has their sum."""

    def __init__(self, count: Callable[[], tuple[NDArray[Any], NDArray[Any]]], total: int, most: int | None) -> None:
        """`count` returns ids and bytes by position; `most` is the maximum, or None to count it."""
        self._count = count
        self.total = total
        self._most = most

    @property
    def most(self) -> int:
        """Bytes of the device that has most."""
        return max(self._bytes.values(), default=0) if self._most is None else self._most

    @functools.cached_property
    def _bytes(self) -> dict[int, int]:
        found: dict[int, int] = {}
        for device, count in zip(*(each.tolist() for each in self._count()), strict=True):
            found[device] = found.get(device, 0) + count
        return found

    def __getitem__(self, device: int) -> int:
        return self._bytes[device]

    def __iter__(self) -> Iterator[int]:
        return iter(self._bytes)

    def __len__(self) -> int:
        return len(self._bytes)

    def __repr__(self) -> str:
        return repr(self._bytes)

    def __reduce__(self) -> tuple[Any, ...]:
        return of_counts, (self._bytes,)


@unpickles("device_bytes")
def of_counts(counted: object) -> DeviceBytes:
    """Restores a pickle.

    Raises:
        ValueError: The pickle does not hold a dict of ids and bytes, each an int of 0 to 2^53.
    """
    if not isinstance(counted, dict):
        raise failure(
            ValueError,
            "DeviceBytes",
            f"the counts are a {type(counted).__name__}",
            expected="a dict of device id to bytes",
        )
    ids = [checked_count(each, "a device id", 0) for each in counted]
    counts = [checked_count(each, "a number of bytes", 0) for each in counted.values()]
    return DeviceBytes(
        lambda: (np.array(ids, np.int64), np.array(counts, np.int64)), sum(counts), max(counts, default=0)
    )
