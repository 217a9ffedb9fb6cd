# SPDX-License-Identifier: Apache-2.0
"""Terms of reshards and collectives of this machine's devices: numbers of calls, copies and bytes, by name."""

from __future__ import annotations

from artifex_devices import _core
from artifex_devices._core import Sharding
from artifex_devices.config import config

COLLECTIVES: tuple[str, ...] = _core._PROGRAM_COLLECTIVES
"""Ops of `plan_collective` on this machine: lax.all_gather, psum_scatter, psum, all_to_all and ppermute."""

TERMS: tuple[str, ...] = (*_core._COPY_TERMS, *_core._PROGRAM_TERMS)
"""Each has a coefficient: seconds per call, copy, program or participant, or seconds per byte."""


def reshard_terms(
    shape: tuple[int, ...], itemsize: int, source: Sharding, destination: Sharding, cache_bytes: int | None
) -> tuple[dict[str, float], list[tuple[int, int, int]]]:
    """Terms of the direct copies, and (memory node read, memory node written, bytes).

    Raises:
        ValueError: Devices are not all of this process, or the shardings do not fit the shape.
    """
    terms, memories = _core._copy_terms(shape, itemsize, source, destination, cache_bytes or 0)
    return dict(zip(_core._COPY_TERMS, terms, strict=True)), memories


def collective_terms(
    op: str, nbytes: float, devices: int, groups: int, executor: str, cache_bytes: int | None
) -> dict[str, float]:
    """Terms of one program with one collective, in which `groups` groups of `devices` each do the same.

    Args:
        op: One of COLLECTIVES.
        nbytes: Bytes of the full array of a group, as `plan_collective` counts them.
        devices: Number of devices in a group.
        groups: Number of groups.
        executor: "cooperative" or "threads".
        cache_bytes: Bytes of the last-level caches; None if not known.
    """
    terms = _core._collective_terms(op, nbytes, devices, groups, executor, cache_bytes or 0)
    return {name: count for name, count in zip(TERMS, terms, strict=True) if count}


def executor_for(op: str, nbytes: float, devices: int) -> str:
    """The executor that `shard_map` chooses for such blocks, by `config`."""
    chosen: str = config.spmd_executor
    return chosen if chosen != "auto" else _core._executor_for(op, nbytes, devices, config.spmd_threads_bytes)
