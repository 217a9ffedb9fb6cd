# SPDX-License-Identifier: Apache-2.0
"""What reshards and collectives of this machine's devices are made of: calls, copies and bytes, by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from artifex_devices import _core
from artifex_devices._core import Sharding
from artifex_devices.config import config

__all__ = ["COLLECTIVES", "collective_terms", "executor_for", "reshard_terms"]

COLLECTIVES = ("all_gather", "reduce_scatter", "all_reduce", "all_to_all", "permute")
"""Of `plan_collective` on this machine: lax.all_gather, psum_scatter, psum, all_to_all and ppermute."""

_COPY_TERMS: tuple[str, ...] = tuple(_core._copy_term_names())
_COUNTS = ("calls", "calls on workers", "copies")  # the others are bytes
_MOST_BYTES = 1 << 62


def reshard_terms(
    shape: tuple[int, ...], itemsize: int, source: Sharding, destination: Sharding, cache_bytes: int | None
) -> tuple[dict[str, float], list[tuple[int, int, int]]]:
    """Terms of the direct copies, and (memory node read, memory node written, bytes).

    Raises:
        ValueError: The devices are not all of this process, or the shardings do not fit the shape.
    """
    terms, memories = _core._copy_terms(shape, itemsize, source, destination, cache_bytes or 0)
    return dict(zip(_COPY_TERMS, terms, strict=True)), memories


def collective_terms(
    op: str, nbytes: float, devices: int, groups: int, executor: str, cache_bytes: int | None
) -> Mapping[str, float]:
    """Terms of one program with one collective, in which `groups` of `devices` each do the same.

    Args:
        op: One of COLLECTIVES.
        nbytes: Bytes of the whole array of a group, as `plan_collective` has it.
        devices: In a group.
        groups: How many.
        executor: "cooperative" or "threads".
        cache_bytes: Last-level caches; None where not known.
    """
    terms = {f"{executor} programs": 1.0, f"{executor} participants": float(devices * groups)}
    is_shared = op in ("all_gather", "all_reduce")  # one result that all members show
    terms["results"] = float(groups if is_shared else devices * groups)
    if devices == 1 or op == "permute":  # blocks are handed on
        return terms
    if op in ("all_gather", "all_to_all"):
        pieces = devices if op == "all_gather" else devices**2
        for name, count in _dense(nbytes, pieces, cache_bytes).items():
            terms[name] = count * groups
        return terms
    # One result of a group, which its members share: all inputs are read and it is written.
    moved = _dense(nbytes * (devices + 1) * groups, 1, cache_bytes)
    terms["calls on workers"] = moved["calls on workers"]
    terms["added from memory"] = moved["memory"]
    terms["added in caches"] = moved["alone"] + moved["cached"] + moved["warm"]
    return terms


def executor_for(op: str, nbytes: float, devices: int) -> str:
    """The executor that `shard_map` takes for such blocks, by `config`."""
    chosen: str = config.spmd_executor
    if chosen != "auto":
        return chosen
    block = nbytes / devices if op in ("all_gather", "all_to_all", "permute") else nbytes
    return "threads" if block >= config.spmd_threads_bytes and devices > 1 else "cooperative"


def _dense(nbytes: float, copies: int, cache_bytes: int | None) -> dict[str, Any]:
    # So many bytes are no number of the core's; from far less on each byte costs the same.
    scale = max(1.0, nbytes / _MOST_BYTES)
    counted = _core._dense_copy_terms(min(round(nbytes), _MOST_BYTES), copies, cache_bytes or 0)
    terms = dict(zip(_COPY_TERMS, counted, strict=True))
    return {name: count if name in _COUNTS else count * scale for name, count in terms.items()}
