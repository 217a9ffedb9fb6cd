# SPDX-License-Identifier: Apache-2.0
"""How results lie: which mesh axes cut which dimension, and what operands must look like to get there."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any

from artifex_devices._base.clearable_cache import remembered
from artifex_devices._core import Array, AxisType, NamedSharding, PartitionSpec, Sharding, SingleDeviceSharding
from artifex_devices._placement.mesh_context import mesh_that_is_set
from artifex_devices._placement.reshard import reshard
from artifex_devices.errors import ShardingTypeError

# The mesh axes that cut each dimension, major to minor; () for a whole dimension.
Spec = tuple[tuple[Hashable, ...], ...]


@remembered(maxsize=4096)
def spec_in(sharding: Sharding, ndim: int) -> Spec:
    """The mesh axes that cut each of `ndim` dimensions; axes of size 1 are left out."""
    if not isinstance(sharding, NamedSharding):
        return ((),) * ndim
    sizes = sharding.mesh.shape
    spec = []
    for entry in tuple(sharding.spec)[:ndim]:
        names = () if entry is None else entry if isinstance(entry, tuple) else (entry,)
        spec.append(tuple(name for name in names if sizes[name] > 1))  # an axis of size 1 spec nothing
    return (*spec, *((),) * (ndim - len(spec)))


def spec_of(x: Array) -> Spec:
    """The mesh axes that cut each dimension of x; axes of size 1 are left out."""
    return spec_in(x.sharding, x.ndim)


@remembered(maxsize=4096)
def sharding_with(placement: Sharding, spec: Spec) -> Sharding:
    """The sharding on the devices of `placement` that spec dimensions as `spec` says; trailing whole dimensions unnamed."""
    if not isinstance(placement, NamedSharding):
        return placement
    entries: list[object] = [axes if len(axes) > 1 else axes[0] if axes else None for axes in spec]
    while entries and entries[-1] is None:
        entries.pop()
    return NamedSharding(
        placement.mesh, PartitionSpec(*entries), memory_kind=placement.memory_kind, uneven=placement.uneven
    )


class Placement:
    """The devices that an operation runs on: those of its committed operands."""

    __slots__ = ("committed", "sharding")

    def __init__(self, sharding: Sharding, committed: bool) -> None:
        """`sharding` stands for its mesh, memory kind and policy for uneven dimensions; its spec does not count."""
        self.sharding = sharding
        self.committed = committed

    def shares_mesh(self, x: Array) -> bool:
        """Whether the spec of x have a meaning here: it lies on the same mesh, or on the same single device."""
        mine, its = self.sharding, x.sharding
        if mine is its:
            return True
        if isinstance(mine, NamedSharding):
            return isinstance(its, NamedSharding) and its.mesh is mine.mesh
        return isinstance(its, SingleDeviceSharding) and its.device_set == mine.device_set


def common_placement(operation: str, arrays: Sequence[Array]) -> Placement:
    """The devices of the committed Arrays, else of the first one, with the mesh and the policy of a sharded operand.

    Of several operands the first one that is sharded gives the mesh, so that a replicated operand before it does not
    matter. Uneven shards are allowed where one of the operands sharded over that mesh allows them.

    Raises:
        ValueError: Two committed Arrays lie on different devices, in another order, or in different kinds of memory;
            the text lists them.
    """
    first = arrays[0]
    if len(arrays) == 1:
        return Placement(first.sharding, first.committed)
    committed = [x for x in arrays if x.committed]
    placement = _leading_sharding(committed or arrays, arrays)
    if any(x.sharding is not placement and not x.sharding._same_devices(placement) for x in committed):
        details = "; ".join(
            f"operand {i} of shape {x.shape} on {_devices_text(x.sharding)}"
            for i, x in enumerate(arrays)
            if x.committed
        )
        raise ValueError(
            f"{operation}: the operands lie on incompatible devices; expected the same devices in the same order and "
            f"one kind of memory, got {details}; move one: device_put(x, y.sharding)"
        )
    return Placement(placement, committed=bool(committed))


def _leading_sharding(candidates: Sequence[Array], arrays: Sequence[Array]) -> Sharding:
    """The sharding of one of the candidates, with the policy for uneven dimensions that suits all the Arrays."""
    named = [x for x in candidates if isinstance(x.sharding, NamedSharding)]
    if not named:
        return candidates[0].sharding
    leader = next((x for x in named if any(spec_of(x))), named[0]).sharding
    for x in arrays:
        if any(spec_of(x)):
            leader = allowing_uneven(leader, x.sharding)
    return leader


def allowing_uneven(placement: Sharding, other: Sharding) -> Sharding:
    """`placement`, with uneven shards allowed where `other` has the same mesh and allows them."""
    if not isinstance(placement, NamedSharding) or not isinstance(other, NamedSharding):
        return placement
    if placement.uneven is not None or other.uneven is None or placement.mesh is not other.mesh:
        return placement
    return NamedSharding(placement.mesh, placement.spec, memory_kind=placement.memory_kind, uneven=other.uneven)


def broadcast_specs(operation: str, placement: Placement, shape: tuple[int, ...], arrays: Iterable[Array]) -> Spec:
    """How an element-wise result of `shape` is cut: in each dimension as the first operand that is cut there.

    Operands broadcast from the right, as in NumPy; a dimension that is broadcast does not count.

    Raises:
        ShardingTypeError: Operands are cut differently over axes that are Explicit (a ValueError).
    """
    merged: list[tuple[Hashable, ...]] = [()] * len(shape)
    asked: list[tuple[int, tuple[Hashable, ...]]] = []
    for x in arrays:
        if not placement.shares_mesh(x):
            continue
        offset = len(shape) - x.ndim
        for d, axes in enumerate(spec_of(x)):
            if not axes or x.shape[d] != shape[offset + d]:
                continue
            asked.append((offset + d, axes))
            if not merged[offset + d] and not any(name in other for other in merged for name in axes):
                merged[offset + d] = axes
    for d, axes in asked:
        if merged[d] != axes and any_explicit(placement.sharding, axes):
            raise ShardingTypeError(
                f"{operation}: dimension {d} of the result would be cut over {merged[d] or 'no axis'} and over {axes} "
                f"at once; expected operands that agree on Explicit axes, got {specs_text(arrays)}; move one first: "
                "reshard(y, x.sharding)"
            )
    return tuple(merged)


def any_explicit(sharding: Sharding, axes: tuple[Hashable, ...]) -> bool:
    """Whether one of the axes is Explicit: then nothing may be laid out anew without being asked for."""
    if not isinstance(sharding, NamedSharding):
        return False
    types = dict(zip(sharding.mesh.axis_names, sharding.mesh.axis_types, strict=True))
    return any(types[name] == AxisType.Explicit for name in axes)


def specs_text(arrays: Iterable[Array]) -> str:
    """Shapes and specs of operands, for messages."""
    return " and ".join(
        f"{x.shape} with {x.sharding.spec}" if isinstance(x.sharding, NamedSharding) else f"{x.shape}" for x in arrays
    )


def _devices_text(sharding: Sharding) -> str:
    ids = [device.id for device in sharding._device_assignment]
    shown = ", ".join(map(str, ids[:8])) + (", ..." if len(ids) > 8 else "")
    kind = "" if sharding.memory_kind == "device" else f" in {sharding.memory_kind} memory"
    return f"{sharding._device_assignment[0].platform} [{shown}]{kind}"


def with_out_sharding(x: Array, change: Callable[[Array], Array], out_sharding: Any) -> Array:
    """change(x), placed by out_sharding; as it comes where that is None.

    Where the shards of x do not allow the change, x is made whole on its devices first.

    Raises:
        TypeError: out_sharding is not a NamedSharding or a PartitionSpec.
        ValueError: It does not fit the result; and as change.
    """
    if out_sharding is None:
        return change(x)
    try:
        result = change(x)
    except ShardingTypeError:
        result = change(reshard(x, sharding_with(x.sharding, ((),) * x.ndim)))
    return placed_as(result, x, out_sharding)


def placed_as(result: Array, x: Array, out_sharding: Any) -> Array:
    """A result placed by out_sharding; a PartitionSpec is for the mesh that is set, else for that of x."""
    if isinstance(out_sharding, PartitionSpec) and mesh_that_is_set() is None and isinstance(x.sharding, NamedSharding):
        out_sharding = NamedSharding(x.sharding.mesh, out_sharding)
    placed: Array = reshard(result, out_sharding)
    return placed
