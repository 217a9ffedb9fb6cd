# SPDX-License-Identifier: Apache-2.0
"""GpuAllocatorConfig: how a client takes memory from the system."""

from __future__ import annotations

import dataclasses
import enum
import math
import numbers
import operator
from typing import Any

from artifex_devices._base.public_path import public
from artifex_devices._base.safe_repr import shown
from artifex_devices._core import _check_allocator

__all__ = ["GpuAllocatorConfig"]


@public("artifex_devices.xla_client")
@dataclasses.dataclass(frozen=True, slots=True)
class GpuAllocatorConfig:
    """How a client takes memory; what `make_cpu_client(allocator_config=...)` takes too. Frozen.

    On a CPU client, DEFAULT and BFC are the library's caching allocator; PLATFORM maps pages for each array and gives
    them back at once; CUDA_ASYNC is refused. The default of preallocate is False, other than for GPUs in XLA: what is
    taken up front on a CPU is missing elsewhere in the process.

    Attributes:
        kind: A member of GpuAllocatorConfig.Kind, or its number.
        memory_fraction: Part of each device's memory_bytes that arrays may hold in the kind `device`; greater than 0,
            at most 1. It becomes the devices' bytes_limit.
        preallocate: Whether that much is taken from the system, and touched, when the client is made.
        collective_memory_size: Bytes for collectives alone. Recorded; a CPU's collectives work in the arrays' memory.

    Raises:
        TypeError: A value is of another type (bools are no numbers); all that are wrong are named.
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
        """Which allocator."""

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
        """Checks all fields and makes them of their own types."""
        kind: Any = self.kind
        part: Any = self.memory_fraction
        flag: Any = self.preallocate
        wrong = []
        if isinstance(kind, bool) or not hasattr(kind, "__index__"):
            wrong.append(
                f"kind is of type {type(kind).__name__}; expected a GpuAllocatorConfig.Kind, got {shown(kind)}"
            )
        if isinstance(part, bool) or not isinstance(part, numbers.Real):
            wrong.append(f"memory_fraction is of type {type(part).__name__}; expected a float, got {shown(part)}")
        if not isinstance(flag, bool):
            wrong.append(f"preallocate is of type {type(flag).__name__}; expected a bool, got {shown(flag)}")
        size: Any = self.collective_memory_size
        if isinstance(size, bool) or not hasattr(size, "__index__"):
            wrong.append(f"collective_memory_size is of type {type(size).__name__}; expected an int, got {shown(size)}")
        if wrong:
            raise TypeError(f"GpuAllocatorConfig: {'; '.join(wrong)}; correct it, or leave it out")
        number = operator.index(kind)
        if number not in self.Kind.__members__.values():
            known = ", ".join(f"{member.value} ({name})" for name, member in self.Kind.__members__.items())
            raise ValueError(f"GpuAllocatorConfig: kind is {number}; expected one of {known}; write Kind.BFC")
        bytes_ = operator.index(size)
        if bytes_ >= 2**63:
            raise ValueError(
                f"GpuAllocatorConfig: collective_memory_size is {bytes_}; expected a number of bytes that fits 63 "
                "bits; write a smaller one"
            )
        try:
            fraction = float(part)
        except OverflowError:
            fraction = math.inf if part > 0 else -math.inf  # refused below
        _check_allocator(number, fraction, flag, max(bytes_, -(2**63)))
        for name, value in (
            ("kind", self.Kind(number)),
            ("memory_fraction", fraction),
            ("collective_memory_size", bytes_),
        ):
            object.__setattr__(self, name, value)

    def _for_core(self) -> tuple[int, float, bool, int]:
        return int(self.kind), self.memory_fraction, self.preallocate, self.collective_memory_size


def _kind(number: int) -> GpuAllocatorConfig.Kind:
    return GpuAllocatorConfig.Kind(number)
