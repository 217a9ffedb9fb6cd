# SPDX-License-Identifier: Apache-2.0
"""make_cpu_client, make_gpu_client and GpuAllocatorConfig: devices that are independent of the world's."""

from __future__ import annotations

import dataclasses
import enum
import math
import numbers
import operator
from typing import Any

from artifex_devices._base.checks import check_types, failure, is_integer, wrong_value
from artifex_devices._base.public_path import public, unpickles
from artifex_devices._base.safe_repr import safe_repr
from artifex_devices._core import Client, internal

_MAX_NUMBER = 2**24
_ONE_PROCESS = (
    "distributed_client is {} (processes are not joined by a client)",
    "collectives is {} (collectives run in this process, through artifex_devices.lax)",
    "transfer_server_factory is {} (transfer servers are not supported)",
)


@public("artifex_devices.xla_client")
@dataclasses.dataclass(frozen=True, slots=True)
class GpuAllocatorConfig:
    """Settings of a client's memory allocator, for `make_cpu_client` and `make_gpu_client`. Frozen.

    DEFAULT and BFC are the library's caching allocator. PLATFORM takes memory for each array and releases it at once:
    pages of the system, or blocks of CUDA. CUDA_ASYNC takes blocks from the stream-ordered pool of a GPU, and is
    refused on a CPU client. The default of preallocate is False, unlike for GPUs in XLA, because other parts of the
    process need the memory too.

    Attributes:
        kind: A member of GpuAllocatorConfig.Kind, or its number.
        memory_fraction: Part of each device's memory_bytes that arrays may hold in the kind `device`; greater than 0,
            at most 1. It becomes the devices' bytes_limit.
        preallocate: Whether the client takes that much from the system, and touches it, when it is created.
        collective_memory_size: Bytes for collectives alone. Recorded; a CPU's collectives work in the arrays' memory.

    Raises:
        TypeError: A value is of another type (bools are not numbers); the text names all of them.
        ValueError: A value is out of range (NaN too), or no kind has that number.

    Example:
        >>> from artifex_devices import xla_client
        >>> config = xla_client.GpuAllocatorConfig(xla_client.GpuAllocatorConfig.Kind.BFC, memory_fraction=0.25)
        >>> client = xla_client.make_cpu_client(num_devices=1, allocator_config=config)
        >>> device = client.devices()[0]
        >>> device.memory_stats()["bytes_limit"] == device.memory_bytes // 4
        True
    """

    class Kind(enum.IntEnum):
        """The allocator."""

        DEFAULT = 0
        PLATFORM = 1
        BFC = 2
        CUDA_ASYNC = 3

        def __reduce_ex__(self, protocol: object) -> tuple[Any, ...]:
            return _kind, (self.value,)  # a class in a class is pickled by getattr before protocol 4

    kind: Kind = Kind.DEFAULT
    memory_fraction: float = 0.75
    preallocate: bool = False
    collective_memory_size: int = 0

    def __post_init__(self) -> None:
        """Checks all fields and converts them to their types."""
        rows = (
            ("kind", self.kind, is_integer, "a GpuAllocatorConfig.Kind"),
            ("memory_fraction", self.memory_fraction, _is_real, "a float"),
            ("preallocate", self.preallocate, bool, "True or False"),
            ("collective_memory_size", self.collective_memory_size, is_integer, "an int"),
        )
        check_types("GpuAllocatorConfig", rows, "correct it, or leave it out")
        number = operator.index(self.kind)
        if number not in self.Kind.__members__.values():
            known = ", ".join(f"{member.value} ({name})" for name, member in self.Kind.__members__.items())
            raise ValueError(f"GpuAllocatorConfig: kind is {number}; expected one of {known}; write Kind.BFC")
        size = operator.index(self.collective_memory_size)
        if size >= 2**63:
            expected, fix = "a number of bytes that fits 63 bits", "write a smaller one"
            raise wrong_value("GpuAllocatorConfig", "collective_memory_size", size, expected, fix)
        try:
            fraction = float(self.memory_fraction)
        except OverflowError:
            fraction = math.inf if self.memory_fraction > 0 else -math.inf  # refused below
        internal.check_allocator(number, fraction, self.preallocate, max(size, -(2**63)))
        object.__setattr__(self, "kind", self.Kind(number))
        object.__setattr__(self, "memory_fraction", fraction)
        object.__setattr__(self, "collective_memory_size", size)

    def _for_core(self) -> tuple[int, float, bool, int]:
        return int(self.kind), self.memory_fraction, self.preallocate, self.collective_memory_size


@unpickles("allocator_kind")
def _kind(number: int) -> GpuAllocatorConfig.Kind:
    return GpuAllocatorConfig.Kind(number)


def make_cpu_client(
    asynchronous: bool = True,
    distributed_client: None = None,
    node_id: int = 0,
    num_nodes: int = 1,
    collectives: None = None,
    num_devices: int | None = None,
    get_local_topology_timeout_minutes: int | None = None,
    get_global_topology_timeout_minutes: int | None = None,
    transfer_server_factory: None = None,
    allocator_config: GpuAllocatorConfig | None = None,
) -> Client:
    """Creates CPU devices that are independent of the world's: ids from 0, and memory that is counted separately.

    The parameters are jaxlib's. Devices of different clients do not mix in one Array, Mesh or operation. Without
    num_devices, creating a client counts as the first use of a device.

    Args:
        asynchronous: Whether big copies between devices may continue after the call returns.
        distributed_client: None.
        node_id: 0.
        num_nodes: 1.
        collectives: None.
        num_devices: Number of devices, from 1 to 2**24, by default as many as the world has.
        get_local_topology_timeout_minutes: None or at least 1; without effect for a client of one process.
        get_global_topology_timeout_minutes: None or at least 1; without effect.
        transfer_server_factory: None.
        allocator_config: How its devices take memory, by default from the caching allocator without a limit. Not in
            jaxlib.

    Returns:
        A Client on this machine's cores and memory.

    Raises:
        TypeError: An argument is of another type; the text names all of them.
        ValueError: A number is out of range; a CPU does not have what allocator_config names.
        ResourceExhaustedError: The memory to preallocate is not free (a MemoryError and a RuntimeError).
        NotImplementedError: An argument is for several processes, which `distributed.initialize()` joins (a
            RuntimeError).

    Example:
        >>> from artifex_devices import xla_client
        >>> client = xla_client.make_cpu_client(num_devices=2)
        >>> client.devices()
        [CpuDevice(id=0), CpuDevice(id=1)]
    """
    optional = {
        "num_devices": num_devices,
        "get_local_topology_timeout_minutes": get_local_topology_timeout_minutes,
        "get_global_topology_timeout_minutes": get_global_topology_timeout_minutes,
    }
    given = {name: value for name, value in optional.items() if value is not None}
    counts = {"node_id": node_id, "num_nodes": num_nodes, **given}
    rows = (
        *((name, value, is_integer, "an int") for name, value in counts.items()),
        ("asynchronous", asynchronous, bool, "True or False"),
        ("allocator_config", allocator_config, (GpuAllocatorConfig, type(None)), "a GpuAllocatorConfig or None"),
    )
    fix = "write make_cpu_client(asynchronous=True, num_devices=8, allocator_config=None), or leave arguments out"
    check_types("make_cpu_client", rows, fix)
    outside = [
        f"{name} is {value}, expected {minimum} to {_MAX_NUMBER}"
        for name, value in counts.items()
        if not (minimum := int(name != "node_id")) <= operator.index(value) <= _MAX_NUMBER
    ]
    if outside:
        raise ValueError(f"make_cpu_client: {'; '.join(outside)}; leave out unneeded arguments")
    _check_one_process(
        operator.index(node_id), operator.index(num_nodes), distributed_client, collectives, transfer_server_factory
    )
    count = internal.current_client().local_device_count() if num_devices is None else operator.index(num_devices)
    allocator = None if allocator_config is None else allocator_config._for_core()
    return internal.make_client(None, count, None, False, allocator, asynchronous, operation="make_cpu_client")


def make_gpu_client(num_devices: int | None = None, allocator_config: GpuAllocatorConfig | None = None) -> Client:
    """Creates CUDA devices that are independent of `devices("gpu")`: their memory is counted separately.

    Devices of different clients do not mix in one Array, Mesh or operation.

    Args:
        num_devices: Number of devices, one for each GPU in CUDA's order; None for all GPUs.
        allocator_config: How its devices take memory, by default from the caching allocator without a limit.

    Raises:
        TypeError: An argument is of another type.
        ValueError: There are fewer GPUs; a kind that caches no memory is to preallocate it.
        RuntimeError: CUDA is not usable, or the GPU has no memory pools for CUDA_ASYNC; the text says why, and the
            repair.
        ResourceExhaustedError: The memory to preallocate is not free (a MemoryError and a RuntimeError).
    """
    rows = (
        ("num_devices", num_devices, lambda value: value is None or is_integer(value), "an int or None"),
        ("allocator_config", allocator_config, (GpuAllocatorConfig, type(None)), "a GpuAllocatorConfig or None"),
    )
    check_types("make_gpu_client", rows, "write make_gpu_client(num_devices=2), or leave arguments out")
    count = None if num_devices is None else operator.index(num_devices)
    if count is not None and not 1 <= count <= _MAX_NUMBER:
        raise wrong_value("make_gpu_client", "num_devices", count, f"1 to {_MAX_NUMBER}", "leave it out for all GPUs")
    allocator = None if allocator_config is None else allocator_config._for_core()
    backend = internal.cuda_backend()
    return internal.make_client(None, count, None, False, allocator, backend=backend, operation="make_gpu_client")


def _is_real(value: object) -> bool:
    return not isinstance(value, bool) and isinstance(value, numbers.Real)


def _check_one_process(node_id: int, num_nodes: int, *objects: Any) -> None:
    pairs = zip(_ONE_PROCESS, objects, strict=True)
    wrong = [problem.format(safe_repr(value)) for problem, value in pairs if value is not None]
    if num_nodes != 1:
        wrong.insert(0, f"num_nodes is {num_nodes}")
    if wrong:
        raise failure(
            NotImplementedError,
            "make_cpu_client",
            "; ".join(wrong),
            expected="the client of one process: num_nodes=1 and None for the objects",
            fix="leave these out, and join processes by distributed.initialize()",
        )
    if node_id >= num_nodes:
        raise ValueError(f"make_cpu_client: node_id is {node_id}; expected 0, the number of this process; leave it out")
