# SPDX-License-Identifier: Apache-2.0
"""Checks that report differences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import artifex_devices as ad


def assert_same_bits(actual: Any, expected: Any) -> None:
    """Fails unless both have the same shape, dtype and bits: NaN payloads and the sign of zero count.

    Args:
        actual: An Array, or anything that `np.asarray` takes.
        expected: The same.

    Raises:
        AssertionError: With the first element that differs and the number of differences.

    Example:
        >>> assert_same_bits(np.float32([0.0]), np.float32([-0.0]))
        Traceback (most recent call last):
        AssertionError: 1 of 1 elements differ; first at (0,): bytes 00000000, expected 00000080
    """
    got, want = np.asarray(actual), np.asarray(expected)
    if got.shape != want.shape or got.dtype != want.dtype:
        raise AssertionError(f"got {got.dtype}{got.shape}, expected {want.dtype}{want.shape}")
    if not got.size:
        return
    side = got.dtype.itemsize
    got_bytes = np.frombuffer(got.tobytes(), np.uint8).reshape(-1, side)
    want_bytes = np.frombuffer(want.tobytes(), np.uint8).reshape(-1, side)
    wrong = np.flatnonzero((got_bytes != want_bytes).any(axis=1))
    if wrong.size:
        first = int(wrong[0])
        index = tuple(int(i) for i in np.unravel_index(first, got.shape))
        raise AssertionError(
            f"{wrong.size} of {got.size} elements differ; first at {index}: "
            f"bytes {got_bytes[first].tobytes().hex()}, expected {want_bytes[first].tobytes().hex()}"
        )


def assert_shards_tile(sharding: ad.Sharding, shape: Sequence[int]) -> None:
    """Fails unless the shards cover every element of an array equally often, as replicas should.

    Args:
        sharding: The sharding.
        shape: Shape of the array.

    Raises:
        AssertionError: With an element that is covered too often or too rarely.

    Example:
        >>> mesh = ad.Mesh(np.array(ad.devices()[:1]), ("x",))
        >>> assert_shards_tile(ad.NamedSharding(mesh, ad.PartitionSpec("x")), (8, 2))
    """
    indices = sharding.devices_indices_map(tuple(shape))
    if len(indices) != sharding.num_devices:
        raise AssertionError(f"{len(indices)} devices have an index, expected {sharding.num_devices}")
    boxes = [tuple((part.start, part.stop) for part in index) for index in indices.values()]
    full = [box for box in boxes if all(start is None or start < stop for start, stop in box)]
    replicas = len(full) // max(len(set(full)), 1)
    covered = np.zeros(tuple(shape), np.int64)
    for index in indices.values():
        covered[index] += 1
    wrong = np.argwhere(covered != replicas) if covered.size else np.empty((0, len(shape)), np.int64)
    if len(wrong):
        element = tuple(int(i) for i in wrong[0])
        raise AssertionError(f"element {element} is on {covered[element]} devices, expected {replicas} replicas")
