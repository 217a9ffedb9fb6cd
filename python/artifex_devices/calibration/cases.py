# SPDX-License-Identifier: Apache-2.0
"""Cases to time: reshards and collectives of devices of the current world, with their terms."""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from artifex_devices import lax
from artifex_devices._base.timing import without_garbage_collection
from artifex_devices._core import Mesh, NamedSharding, PartitionSpec, Sharding
from artifex_devices._placement.device_put import device_put
from artifex_devices._spmd.shard_map import shard_map
from artifex_devices.planner.collective import collective_terms, executor_for, reshard_terms

BODIES: dict[str, tuple[str, Callable[[Any, int], Any], bool]] = {
    "all_gather": ("all_gather", lambda block, _: lax.all_gather(block, "i", tiled=True), True),
    "reduce_scatter": ("psum_scatter", lambda block, _: lax.psum_scatter(block, "i", tiled=True), False),
    "all_reduce": ("psum", lambda block, _: lax.psum(block, "i"), True),
    "all_to_all": ("all_to_all", lambda block, _: lax.all_to_all(block, "i", 0, 0, tiled=True), False),
    "permute": (
        "ppermute",
        lambda block, count: lax.ppermute(block, "i", [(i, (i + 1) % count) for i in range(count)]),
        False,
    ),
}
"""For each op of `plan_collective`: the function of `lax`, a body that calls it, whether the result is replicated."""

_REPEAT_SECONDS = 1e-3  # short calls are repeated for about this long in one repeat
_MAX_CALLS = 50


@dataclass(frozen=True)
class Case:
    """A call to time. `prepare` creates its input and returns it; its result has `block_until_ready`."""

    name: str
    nbytes: int  # of the value that is moved
    devices: int  # that take part
    prepare: Callable[[], Callable[[], Any]]
    terms: dict[str, float] = field(default_factory=dict)  # by the names of TERMS


def host_values(nbytes: int) -> np.ndarray[Any, Any]:
    """Returns values to place: one buffer that all cases use parts of, with all pages written."""
    return np.ones(nbytes // 4, np.float32)


def reshard_case(
    name: str,
    host: np.ndarray[Any, Any],
    shape: tuple[int, ...],
    source: Sharding,
    destination: Sharding,
    cache_bytes: int | None,
) -> Case:
    """Makes a case: `device_put` of a float32 Array from one sharding to another, until it is done."""
    count = math.prod(shape)

    def prepare() -> Callable[[], Any]:
        array = device_put(host[:count].reshape(shape), source).block_until_ready()
        return lambda: device_put(array, destination)

    terms, _ = reshard_terms(shape, 4, source, destination, cache_bytes)
    return Case(name, 4 * count, len(source.device_set | destination.device_set), prepare, terms)


def full_blocks(op: str, devices: int) -> int:
    """Returns the number of full arrays that the devices of a group hold together: each brings one to a sum."""
    return devices if op in ("all_reduce", "reduce_scatter") else 1


def collective_case(
    op: str, host: np.ndarray[Any, Any], nbytes: int, mesh: Mesh, cache_bytes: int | None, executor: str | None = None
) -> Case:
    """Makes a case: a program of one collective over a mesh with the axis "i", until it is done.

    `nbytes` has the meaning of `plan_collective`'s, and is rounded down to a multiple of the float32 blocks.
    """
    devices, spec = mesh.size, PartitionSpec("i")
    function, body, is_shared = BODIES[op]
    blocks = full_blocks(op, devices)
    step = 4 * devices * devices // blocks
    nbytes = max(nbytes // step, 1) * step
    chosen = executor or executor_for(op, nbytes, devices)
    count = nbytes // 4 * blocks

    def prepare() -> Callable[[], Any]:
        values = device_put(host[:count], NamedSharding(mesh, spec)).block_until_ready()
        program = shard_map(
            lambda block: body(block, devices),
            mesh=mesh,
            in_specs=spec,
            out_specs=PartitionSpec() if is_shared else spec,
            executor=executor,
        )
        return lambda: program(values)

    terms = collective_terms(op, nbytes, devices, 1, chosen, cache_bytes)
    return Case(f"{function}, {chosen}", nbytes, devices, prepare, terms)


def time_cases(
    cases: Sequence[Case], *, rounds: int, repeats: int, step: Callable[[str], None] = lambda _: None
) -> list[list[float]]:
    """Times all cases in turn, `rounds` times. A slow phase of the machine then affects all of them.

    Each round places a new input, runs the call once untimed, and then times `repeats` of it. Results are released
    first, so that each call reuses the memory of the call before. Returns the seconds of each case, in order.
    """
    seconds: list[list[float]] = [[] for _ in cases]
    for _, (number, case) in itertools.product(range(rounds), enumerate(cases)):
        step(case.name)
        seconds[number] += _times(case, repeats)
    return seconds


def _times(case: Case, repeats: int) -> Iterator[float]:
    run = case.prepare()
    begin = time.perf_counter()
    run().block_until_ready()
    once = time.perf_counter() - begin
    calls = max(1, min(_MAX_CALLS, int(_REPEAT_SECONDS / max(once, 1e-7))))
    run().block_until_ready()  # later calls reuse the memory of the first result
    with without_garbage_collection():
        for _ in range(repeats):
            begin = time.perf_counter()
            for _ in range(calls):
                run().block_until_ready()
            yield (time.perf_counter() - begin) / calls
