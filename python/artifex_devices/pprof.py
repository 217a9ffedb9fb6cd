# SPDX-License-Identifier: Apache-2.0
"""Memory that arrays hold, as a profile that the pprof tool reads."""

from __future__ import annotations

import gzip
from collections.abc import Iterable
from typing import NamedTuple

from artifex_devices import _core

__all__ = ["HeapSample", "heap_profile"]


class HeapSample(NamedTuple):
    """Memory on one device, by the line that made it.

    Attributes:
        device: Name of the device, "cpu:0".
        bytes: Bytes that are held.
        allocations: How many hold them.
        file: Source file of the line, or "" where the line is not known.
        line: Its number, from 1; 0 where not known.
        function: Name of the function that it is in, or "".
    """

    device: str
    bytes: int
    allocations: int = 1
    file: str = ""
    line: int = 0
    function: str = ""


def heap_profile(samples: Iterable[HeapSample], time_ns: int = 0) -> bytes:
    r"""Writes a gzip'd pprof profile, as `jax.profiler.device_memory_profile` does.

    It has two numbers a sample, "allocations" in "count" and "space" in "bytes", and the labels "kind" ("buffer") and
    "device". Samples of one device and line are added up. Equal samples give equal bytes.

    Args:
        samples: What is held, in any order.
        time_ns: Time of the profile in nanoseconds since the epoch; 0 for none.

    Returns:
        Bytes to be kept in a file and read by `pprof -top FILE`.

    Raises:
        ValueError: A number is negative, a sum is beyond 2**63 - 1, or a text has no UTF-8 form.
        TypeError: A sample is no HeapSample.

    Example:
        >>> from artifex_devices.pprof import HeapSample, heap_profile
        >>> heap_profile([HeapSample("cpu:0", 4096, 1, "train.py", 12, "step")])[:2]  # gzip
        b'\x1f\x8b'
    """
    return gzip.compress(_core._heap_profile(list(samples), time_ns), compresslevel=6, mtime=0)
