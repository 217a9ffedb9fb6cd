# SPDX-License-Identifier: Apache-2.0
"""Bytes by device that are counted one by one only when somebody looks: their sum and the most are known before."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from artifex_devices._base.state_validation import checked_count

__all__ = ["DeviceBytes", "most_bytes", "total_bytes"]


class DeviceBytes(Mapping[int, int]):
    """Immutable; device id to bytes, in order of positions. A device that stands twice has both together."""

    __slots__ = ("_found", "_make", "_most", "total")

    def __init__(self, make: Callable[[], tuple[NDArray[Any], NDArray[Any]]], total: int, most: int | None) -> None:
        """`make` gives ids and bytes, one a position; `total` and `most` are what they come to (None: count)."""
        self._make = make
        self._found: dict[int, int] | None = None
        self._most = most
        self.total = total

    @property
    def most(self) -> int:
        """Of one device."""
        return max(self._all().values(), default=0) if self._most is None else self._most

    def _all(self) -> dict[int, int]:
        if self._found is None:
            ids, counts = self._make()
            found = dict(zip(ids.tolist(), counts.tolist(), strict=True))
            if len(found) < len(ids):
                found = dict.fromkeys(found, 0)
                for device, count in zip(ids.tolist(), counts.tolist(), strict=True):
                    found[device] += count
            self._found = found
        return self._found

    def __getitem__(self, device: int) -> int:
        return self._all()[device]

    def __iter__(self) -> Iterator[int]:
        return iter(self._all())

    def __len__(self) -> int:
        return len(self._all())

    def __repr__(self) -> str:
        return repr(self._all())

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickles and copies are counted: what counts is no value."""
        return of_counts, (self._all(),)


def of_counts(told: Any) -> DeviceBytes:
    """Of a dict of device id to bytes.

    Raises:
        ValueError: It is no such dict, or a number in it is none from 0 to 2^53.
    """
    if not isinstance(told, dict):
        raise ValueError(f"DeviceBytes: the counts are a {type(told).__name__}; expected a dict of device id to bytes")
    ids = [checked_count(each, "a device id", 0) for each in told]
    counts = [checked_count(each, "a number of bytes", 0) for each in told.values()]
    total = sum(counts)
    return DeviceBytes(lambda: (np.array(ids, np.int64), np.array(counts, np.int64)), total, max(counts, default=0))


def total_bytes(by_device: Mapping[int, int]) -> int:
    """The sum, without counting where it is known."""
    return by_device.total if isinstance(by_device, DeviceBytes) else sum(by_device.values())


def most_bytes(by_device: Mapping[int, int]) -> int:
    """The most, without counting where it is known."""
    return by_device.most if isinstance(by_device, DeviceBytes) else max(by_device.values(), default=0)


def counted(ids: Callable[[], NDArray[Any]], bytes_: NDArray[Any]) -> DeviceBytes:
    """Of bytes that are counted already, one a position."""
    return DeviceBytes(lambda: (ids(), bytes_), int(bytes_.sum()), int(np.max(bytes_, initial=0)))
