# SPDX-License-Identifier: Apache-2.0
"""Reads the leaves of a tree of arrays: of JAX, of torch, of this package, or descriptions of them.

Objects are read by their attributes, so that neither library is imported. Containers that only JAX knows are opened by
its own functions, if the program has imported it.
"""

from __future__ import annotations

import dataclasses
import math
import operator
import sys
from collections.abc import Iterator, Mapping
from typing import Any

from artifex_devices._base.checks import failure
from artifex_devices._core import PartitionSpec
from artifex_devices._tree.keys import DictKey, GetAttrKey, keystr
from artifex_devices._tree.nodes import UnsortableKeysError, keys_of, one_level
from artifex_devices.audit.leaves import LeafSharding, bytes_of, dtype_name, leaf_of, spec_of
from artifex_devices.audit.tensor_placements import is_tensor, tensor_sharding

_MAX_DEPTH = 1000
_PLAIN = (bool, int, float, complex, str, bytes, type)

Path = tuple[Any, ...]


def leaves_of(operation: str, tree: Any, shapes: Any, mesh: Mapping[str, int]) -> tuple[list[LeafSharding], list[str]]:
    """Returns the leaves of a tree that have a shape or a sharding, and the paths and types of others but numbers.

    Args:
        operation: Name of the public function, for errors.
        tree: The tree.
        shapes: A tree of the same structure with the shapes of shardings, or None.
        mesh: Sizes of the axes of PartitionSpecs and of leaves without a mesh.
    """
    found: list[LeafSharding] = []
    others: list[str] = []
    given = None if shapes is None else {keystr(path): value for path, value in _walk(operation, shapes, is_shape)}
    for path, value in _walk(operation, tree, is_leaf):
        text = keystr(path) if path else ""
        if not is_leaf(value):
            if path and not isinstance(value, _PLAIN):
                others.append(f"{text} ({type(value).__name__})")
            continue
        described = None
        if given is not None:
            described = given.pop(text, None)
            if described is None:
                raise failure(
                    ValueError,
                    operation,
                    f"shapes has no shape at {text!r}",
                    expected="a tree of the same structure as the tree of shardings",
                    fix="give the tree of ShapeDtypeStructs that jax.eval_shape returns",
                )
        found.append(_leaf(operation, text, value, described, mesh))
    return found, others


def is_leaf(value: Any) -> bool:
    """Returns whether a value is an array, a sharding, a spec, or a pair of a sharding and a shape."""
    return _is_array(value) or _is_sharding(value) or _is_spec(value) or _is_pair(value)


def is_shape(value: Any) -> bool:
    """Returns whether a value has a shape, or is a tuple or list of sizes."""
    return _is_array(value) or _are_sizes(value)


def _is_array(value: Any) -> bool:
    return value is not None and not isinstance(value, type) and hasattr(value, "shape") and hasattr(value, "dtype")


def _is_sharding(value: Any) -> bool:
    if isinstance(value, type):
        return False
    return (hasattr(value, "spec") and hasattr(value, "mesh")) or hasattr(value, "device_set")


def _is_spec(value: Any) -> bool:
    return hasattr(type(value), "UNCONSTRAINED")  # of JAX's class, which is named P or PartitionSpec, and of ours


def _are_sizes(value: Any) -> bool:
    return isinstance(value, (tuple, list)) and all(type(size) is int for size in value)


def _is_pair(value: Any) -> bool:
    """Returns whether a value is a pair of a sharding or spec and a shape or description, in either order."""
    if type(value) not in (tuple, list) or len(value) != 2:
        return False
    return any(
        (_is_sharding(first) or _is_spec(first)) and is_shape(second) and getattr(second, "sharding", None) is None
        for first, second in (value, reversed(value))
    )


def _walk(operation: str, tree: Any, stops: Any) -> Iterator[tuple[Path, Any]]:
    """Yields the leaves in the order of the tree, with their paths."""
    open_: list[tuple[Path, Any]] = [((), tree)]
    while open_:
        path, value = open_.pop()
        if value is None:
            continue
        if _is_array(inner := getattr(value, "value", None)):  # a variable of Flax, or another box of an array
            value = inner
        children = None if stops(value) else _children(value)
        if children is None:
            yield path, value
            continue
        if len(path) >= _MAX_DEPTH:
            raise failure(
                RecursionError,
                operation,
                "the tree contains itself or is nested too deep",
                expected=f"at most {_MAX_DEPTH} levels",
                fix="give the part of it that has arrays",
            )
        open_.extend(reversed([((*path, key), child) for key, child in children]))


def _children(value: Any) -> list[tuple[Any, Any]] | None:
    """Returns the keys and children of a node, or None for a leaf."""
    if isinstance(value, _PLAIN):
        return None
    try:
        level = one_level(value)
    except UnsortableKeysError:  # as in the state of an optimizer of torch: the order of the dict
        level = None
    if level is not None:
        return list(zip(keys_of(type(value), level[1], len(level[0])), level[0], strict=True))
    jax = sys.modules.get("jax")
    flatten = getattr(getattr(jax, "tree_util", None), "tree_flatten_with_path", None)
    if flatten is not None:
        pairs = flatten(value, is_leaf=lambda node: node is not value)[0]
        if not (len(pairs) == 1 and pairs[0][1] is value):
            return [(path[0], child) for path, child in pairs]
    if isinstance(value, Mapping):
        return [(DictKey(key), child) for key, child in value.items()]
    if isinstance(value, (list, tuple)):
        return [(key, child) for key, child in zip(keys_of(list, None, len(value)), value, strict=True)]
    if callable(getattr(value, "named_parameters", None)):
        return [(DictKey(name), child) for name, child in value.named_parameters()]
    if callable(getattr(value, "state_dict", None)):
        return [(DictKey(key), child) for key, child in value.state_dict().items()]
    if dataclasses.is_dataclass(value):
        return [(GetAttrKey(field.name), getattr(value, field.name, None)) for field in dataclasses.fields(value)]
    return None


def _leaf(operation: str, path: str, value: Any, described: Any, mesh: Mapping[str, int]) -> LeafSharding:
    if _is_pair(value):
        value, described = value if is_shape(value[1]) else reversed(value)
    if _is_spec(value):
        return leaf_of(operation, path, _sizes(described), _dtype(described), mesh, spec_of(value))
    shape, dtype = _sizes(value), _dtype(value)
    if is_tensor(value):
        return leaf_of(operation, path, shape, dtype, *tensor_sharding(value.device_mesh, value.placements))
    sharding: Any = getattr(value, "sharding", None)
    if _is_sharding(value):
        shape, dtype, sharding = _sizes(described), _dtype(described), value
    if _is_spec(sharding):
        return leaf_of(operation, path, shape, dtype, mesh, spec_of(sharding))
    if not _is_sharding(sharding):
        return leaf_of(operation, path, shape, dtype, {}, None)
    if hasattr(sharding, "spec") and hasattr(sharding, "mesh"):
        return leaf_of(operation, path, shape, dtype, mesh_axes(sharding.mesh), spec_of(sharding.spec))
    devices = len(sharding.device_set)
    if getattr(sharding, "is_fully_replicated", devices == 1):
        return leaf_of(operation, path, shape, dtype, {}, PartitionSpec(), replicas=devices)
    try:
        shard = tuple(map(operator.index, sharding.shard_shape(shape)))
    except Exception:  # this sharding does not divide the shape, or the shape is None
        return leaf_of(operation, path, shape, dtype, {}, None)
    replicas = devices * math.prod(shard) // (math.prod(shape or ()) or 1) or None
    return leaf_of(operation, path, shape, dtype, {}, None, device_bytes=bytes_of(shard, dtype), replicas=replicas)


def mesh_axes(mesh: Any) -> dict[str, int]:
    """Returns the sizes of the axes of a mesh of JAX or of this package, or of a mapping."""
    shape = mesh if isinstance(mesh, Mapping) else mesh.shape
    return {str(name): operator.index(size) for name, size in dict(shape).items()}


def _sizes(value: Any) -> tuple[int, ...] | None:
    """Returns the sizes of a shape or an array, or None if they are unknown or symbolic."""
    if value is None:
        return None
    try:
        return tuple(map(operator.index, value if _are_sizes(value) else value.shape))
    except (TypeError, ValueError, AttributeError):
        return None


def _dtype(value: Any) -> str | None:
    return dtype_name(getattr(value, "dtype", None))
