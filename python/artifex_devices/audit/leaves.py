# SPDX-License-Identifier: Apache-2.0
"""LeafSharding: one array of an audited tree, with its sharding, and the bytes that follow from it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from artifex_devices._base.checks import failure
from artifex_devices._base.nearest_name import did_you_mean
from artifex_devices._base.public_path import public
from artifex_devices._base.safe_repr import safe_repr
from artifex_devices._base.text import shortened_list
from artifex_devices._core import PartitionSpec
from artifex_devices.planner.packed_dtypes import elements_per_byte

MAX_SIZE = 2**63 - 1
FREE = PartitionSpec.UNCONSTRAINED

# Bytes of a key of jax.random, by the name of its dtype.
_KEYS = {"key<fry>": 8, "key<rbg>": 16, "key<urbg>": 16}
# Names that JAX and XLA write in place of those of NumPy.
_SHORT = {
    "bf16": "bfloat16",
    "pred": "bool",
    **{f"{short}{bits}": f"{name}{bits}" for short, name in (("s", "int"), ("i", "int"), ("u", "uint"))
       for bits in (2, 4, 8, 16, 32, 64)},
    **{f"f{bits}": f"float{bits}" for bits in (16, 32, 64)},
    **{f"c{bits}": f"complex{bits}" for bits in (64, 128)},
}  # fmt: skip


@public("artifex_devices.audit")
@dataclass(frozen=True)
class LeafSharding:
    """One array of a tree.

    Attributes:
        path: Place in the tree, such as ".params['layer_0']['kernel']"; names of files are unchanged.
        shape: Sizes of the global array, or None if the record does not have them.
        dtype: Name in NumPy and ml_dtypes, another name for keys and foreign types, or None if it is unknown.
        mesh: Sizes of the mesh axes by name; empty without a mesh.
        spec: Mesh axes of each dimension, or None if the sharding is unknown or not one of mesh axes.
        device_bytes: Bytes of the largest shard, or None if they are unknown. Types of 2 and 4 bits are packed.
        total_bytes: Bytes of the global array, or None if they are unknown.
        replicas: Number of devices that hold the same shard, or None if it is unknown.
        logical: Names that the program gives the dimensions, where a record has them.
    """

    path: str
    shape: tuple[int, ...] | None
    dtype: str | None
    mesh: dict[str, int]
    spec: PartitionSpec | None
    device_bytes: int | None
    total_bytes: int | None
    replicas: int | None
    logical: PartitionSpec | None = None

    @property
    def size(self) -> int | None:
        """The number of elements of the global array, or None if the shape is unknown."""
        return None if self.shape is None else math.prod(self.shape)

    @property
    def weight(self) -> int:
        """The bytes of the global array, or its elements where the dtype is unknown; 0 without a shape."""
        return (self.size or 0) if self.total_bytes is None else self.total_bytes

    @property
    def parts(self) -> tuple[int, ...] | None:
        """The number of shards along each dimension, or None if the sharding is unknown."""
        if self.shape is None or self.spec is None or FREE in self.spec:
            return None
        found = [math.prod(self.mesh.get(name, 0) for name in axes_of(entry)) for entry in self.spec]
        return None if 0 in found else (*found, *(1,) * (len(self.shape) - len(found)))


def sharded_axes(leaf: LeafSharding) -> tuple[tuple[str, ...], ...] | None:
    """Returns the axes of more than one device of each dimension, without empty ones at the end; None if unknown."""
    if leaf.spec is None:
        return None
    found = [shown_axes(leaf, entry) for entry in leaf.spec]
    while found and not found[-1]:
        found.pop()
    return tuple(found)


def shown_axes(leaf: LeafSharding, entry: Any) -> tuple[str, ...]:
    """Returns the axes of an entry of the spec that have more than one device, or no known size."""
    return tuple(name for name in axes_of(entry) if leaf.mesh.get(name, 0) != 1)


def leaf_of(
    operation: str,
    path: str,
    shape: tuple[int, ...] | None,
    dtype: str | None,
    mesh: Mapping[str, int],
    spec: PartitionSpec | None,
    *,
    logical: PartitionSpec | None = None,
    device_bytes: int | None = None,
    replicas: int | None = None,
) -> LeafSharding:
    """Returns a leaf with the bytes and replicas that follow from the mesh and the spec.

    Args:
        operation: Name of the public function, for errors.
        path: Place in the tree.
        shape: Sizes, or None.
        dtype: A name of `dtype_name`, or None.
        mesh: Sizes of the axes.
        spec: Axes of each dimension, or None.
        logical: Names that the program gives the dimensions.
        device_bytes: Bytes of the largest shard, where the sharding is not one of mesh axes.
        replicas: Number of devices that hold the same shard, where the sharding is not one of mesh axes.

    Raises:
        ValueError: The spec has more entries than the shape, or an axis that the mesh lacks or that is used twice.
    """
    if spec is not None:
        _check_spec(operation, path, shape, mesh, spec)
    parts = LeafSharding(path, shape, dtype, dict(mesh), spec, None, None, None).parts
    if parts is not None and shape is not None:
        device_bytes = bytes_of(tuple(-(-size // part) for size, part in zip(shape, parts, strict=True)), dtype)
        if mesh:
            replicas = math.prod(mesh.values()) // math.prod(parts)
    total = None if shape is None else bytes_of(shape, dtype)
    return LeafSharding(path, shape, dtype, dict(mesh), spec, device_bytes, total, replicas, logical)


def _check_spec(
    operation: str, path: str, shape: tuple[int, ...] | None, mesh: Mapping[str, int], spec: PartitionSpec
) -> None:
    names = [name for entry in spec for name in axes_of(entry)] if mesh else []
    is_short = shape is None or len(spec) <= len(shape)
    if is_short and len(set(names)) == len(names) and all(name in mesh for name in names):
        return
    what = f"the spec {safe_repr(spec)} of {safe_repr(path)}"
    if shape is not None and not is_short:
        fix = "remove the entries behind the last dimension"
        problem = f"{what} has {len(spec)} entries"
        raise failure(ValueError, operation, problem, expected=f"at most {len(shape)}, for {shape}", fix=fix)
    for name in names:
        if name not in mesh:
            problem = f"{what} has the axis {safe_repr(name)}{did_you_mean(name, list(mesh))}"
            axes = shortened_list(list(map(safe_repr, mesh)), 12)
            fix = "correct the spec or the mesh"
            raise failure(ValueError, operation, problem, expected=f"axes of the mesh: {axes}", fix=fix)
    twice = next(name for name in names if names.count(name) > 1)
    problem = f"{what} has the axis {safe_repr(twice)} twice"
    raise failure(ValueError, operation, problem, expected="each axis once", fix="remove one of them")


def axes_of(entry: Any) -> tuple[str, ...]:
    """Returns the axes of one entry of a PartitionSpec; none for UNCONSTRAINED."""
    if entry is None or entry is FREE:
        return ()
    return entry if isinstance(entry, tuple) else (entry,)


def spec_of(entries: Iterable[Any]) -> PartitionSpec:
    """Returns a PartitionSpec of names; entries may be nested, as in [["data", ["model"]], None]."""
    return PartitionSpec(*(_entry(each) for each in entries))


def _entry(value: Any) -> Any:
    if value is None or value is FREE:
        return value
    if value == "UNCONSTRAINED" or type(value).__name__.startswith("Unconstrained"):  # of JAX
        return FREE
    return tuple(_names(value)) if isinstance(value, (tuple, list)) else str(value)


def _names(values: Iterable[Any]) -> Iterable[str]:
    for each in values:
        if isinstance(each, (tuple, list)):
            yield from _names(each)
        elif each is not None:
            yield str(each)


def bytes_of(shape: tuple[int, ...], dtype: str | None) -> int | None:
    """Returns the bytes of an array in the memory of an accelerator, or None if the dtype is unknown.

    Example:
        >>> bytes_of((4, 8), "bfloat16"), bytes_of((3,), "int4"), bytes_of((3,), "float7")
        (64, 2, None)
    """
    if dtype in _KEYS:
        return math.prod(shape) * _KEYS[dtype]
    known = None if dtype is None else _number_dtype(dtype)
    if known is None:
        return None
    return -(-math.prod(shape) * known.itemsize // elements_per_byte(known))


def _number_dtype(name: str) -> np.dtype[Any] | None:
    import ml_dtypes

    kind = vars(ml_dtypes).get(name) or vars(np).get(name)
    if name == "bool":
        kind = np.bool_
    is_number = isinstance(kind, type) and issubclass(kind, np.generic) and kind not in (np.object_, np.void)
    found = np.dtype(kind) if is_number else None
    return found if found is not None and found.name == name and found.kind not in "USMmO" else None


def dtype_name(dtype: Any) -> str | None:
    """Returns the name of a dtype of NumPy, JAX or torch, or of a text: "float32", "bfloat16", "key<fry>"."""
    if dtype is None:
        return None
    if isinstance(dtype, type):
        name = dtype.__name__.removesuffix("_")
    else:
        name = dtype if isinstance(dtype, str) else str(getattr(dtype, "name", None) or dtype)
    name = name.removeprefix("torch.")
    return _SHORT.get(name, name)
