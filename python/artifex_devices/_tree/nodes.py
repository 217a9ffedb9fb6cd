# SPDX-License-Identifier: Apache-2.0
"""The types that are nodes of trees, and the children of one node.

Nodes are lists, tuples, dicts, None, OrderedDicts, defaultdicts, named tuples and instances of registered types.
Everything else is a leaf, also instances of subclasses of the built-in containers.
"""

from __future__ import annotations

import dataclasses
import threading
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Hashable, Iterable
from typing import Any, NamedTuple

import numpy as np

from artifex_devices._base.checks import failure
from artifex_devices._base.public_path import public
from artifex_devices._base.safe_repr import safe_repr
from artifex_devices._core import Array, Device, Mesh, NamedSharding, PartitionSpec, SingleDeviceSharding
from artifex_devices._core.internal import tree_equal
from artifex_devices._tree.keys import DictKey, FlattenedIndexKey, GetAttrKey, SequenceKey

NoneType = type(None)
_BUILTIN = frozenset({list, tuple, dict, NoneType, OrderedDict, defaultdict})
_LEVELS_IN_TUPLES = frozenset({tuple, dict, NoneType})  # whose children flatten_one_level returns as a tuple

# Types of leaves: with these most trees are flattened without a call for each leaf. Registering a type removes it.
PLAIN: set[type] = {
    *(bool, int, float, complex, str, bytes, np.ndarray, np.bool_, np.float32, np.float64, np.int32, np.int64),
    *(Array, Device, Mesh, NamedSharding, PartitionSpec, SingleDeviceSharding),
}


@public("artifex_devices.unpickle")
@dataclasses.dataclass(frozen=True, slots=True)
class Aux:
    """Data of a node of a registered type, and the keys of its children; equal where the data are."""

    data: Any
    keys: tuple[Any, ...] | None = dataclasses.field(compare=False)

    def __hash__(self) -> int:
        return 0  # as in JAX: data need no hash, and caches by structure compare them

    def __repr__(self) -> str:
        return str(self.data)


class NodeType(NamedTuple):
    """A registered type: `flatten(node)` returns children and Aux, `unflatten(data, children)` the node.

    `flatten_one_level` returns the children as an instance of `children_type`.
    """

    flatten: Callable[[Any], tuple[tuple[Any, ...], Aux]]
    unflatten: Callable[[Any, Any], Any]
    children_type: type = tuple


class UnsortableKeysError(Exception):
    """Keys of a dict cannot be sorted; callers raise it as a ValueError with the path."""


_registered: dict[type, NodeType] = {}
_lock = threading.RLock()  # a finalizer on the same thread may call in


def register(operation: str, cls: type, node_type: NodeType) -> None:
    """Registers a type of nodes; ValueError where it is one already."""
    if not isinstance(cls, type):
        raise TypeError(f"{operation}: {safe_repr(cls)} is not a type; expected the class whose instances become nodes")
    with _lock:
        if cls in _BUILTIN or cls in _registered:
            raise failure(
                ValueError,
                operation,
                f"{cls.__name__} is a node of trees already",
                expected="another type",
                fix="register a subclass",
            )
        _registered[cls] = node_type
        PLAIN.discard(cls)


def is_tree_node(typ: object) -> bool:
    """Returns whether instances of a type are nodes of trees.

    Example:
        >>> from artifex_devices import tree_util
        >>> tree_util.is_tree_node(dict), tree_util.is_tree_node(int)
        (True, False)
    """
    if not isinstance(typ, type):
        return False
    return typ in _BUILTIN or typ in _registered or is_named_tuple(typ)


def is_named_tuple(typ: type) -> bool:
    """Returns whether a type is a named tuple and not registered."""
    return issubclass(typ, tuple) and hasattr(typ, "_fields") and typ not in _registered


def sorted_keys(keys: Iterable[Any]) -> list[Any]:
    """Returns the keys of a dict in the order of its children."""
    try:
        return sorted(keys)
    except Exception as error:
        raise UnsortableKeysError(f"{safe_repr(list(keys))} ({error})") from None


def one_level(node: Any) -> tuple[tuple[Any, ...], Any] | None:
    """Returns the children and the data of a node, or None for a leaf; `make_node` and `keys_of` take the data."""
    typ = type(node)
    if typ is list or typ is tuple:
        return tuple(node), None
    if typ is dict:
        keys = tuple(sorted_keys(node))
        return tuple([node[key] for key in keys]), keys
    if node is None:
        return (), None
    entry = _registered.get(typ)
    if entry is not None:
        return entry.flatten(node)
    if typ is OrderedDict:
        return tuple(node.values()), tuple(node)
    if typ is defaultdict:
        keys = tuple(sorted_keys(node))
        return tuple([node[key] for key in keys]), (node.default_factory, keys)
    if is_named_tuple(typ):
        return tuple(node), None
    return None


def make_node(typ: type, data: Any, children: Any) -> Any:
    """Returns the node of a type with these children; the core builds lists, tuples, dicts and None itself."""
    if isinstance(data, Aux):
        return _registered[typ].unflatten(data.data, tuple(children))
    if typ is OrderedDict:
        return OrderedDict(zip(data, children, strict=True))
    if typ is defaultdict:
        return defaultdict(data[0], zip(data[1], children, strict=True))
    return typ(*children)


def keys_of(typ: type, data: Any, count: int) -> tuple[Any, ...]:
    """Returns the keys of the `count` children of a node."""
    if typ is list or typ is tuple:
        return tuple(map(SequenceKey, range(count)))
    if typ is dict or typ is OrderedDict:
        return tuple(map(DictKey, data))
    if isinstance(data, Aux):
        return tuple(map(FlattenedIndexKey, range(count))) if data.keys is None else data.keys
    if typ is defaultdict:
        return tuple(map(DictKey, data[1]))
    return tuple(map(GetAttrKey, typ._fields)) if typ is not NoneType else ()  # type: ignore[attr-defined]


def has_same_data(typ: type, data: object, other: object) -> bool:
    """Returns whether the data of two nodes of a type are equal; ValueError, with the type, where `==` fails."""
    if not isinstance(data, Aux):
        return bool(data == other)
    return tree_equal((typ, data, 0), (typ, other, 0))


def public_data(data: object) -> Any:
    """Returns the data of a node as `node_data` and `flatten_one_level` do."""
    return data.data if isinstance(data, Aux) else data


def flatten_one_level(tree: object) -> tuple[Iterable[Any], Hashable]:
    """Returns the children and the data of the topmost node.

    As in JAX, the children of a tuple, of a dict and of a type registered with a flatten function are a tuple; the
    children of other nodes are a new list.

    Raises:
        ValueError: The tree is a leaf, or keys of a dict cannot be sorted.

    Example:
        >>> from artifex_devices import tree_util
        >>> tree_util.flatten_one_level({"b": [1], "a": 2})
        ((2, [1]), ('a', 'b'))
    """
    children, data = _one_level_of_node("flatten_one_level", tree)
    typ = type(tree)
    entry = _registered.get(typ)
    kind = (tuple if typ in _LEVELS_IN_TUPLES else list) if entry is None else entry.children_type
    return children if kind is tuple else list(children), data_of_level(typ, data)


def flatten_one_level_with_keys(tree: object) -> tuple[Iterable[tuple[Any, Any]], Hashable]:
    """Flattens one level as flatten_one_level does, each child with its key, in a tuple for a list, a tuple and a dict.

    Raises:
        ValueError: The tree is a leaf, or keys of a dict cannot be sorted.
    """
    children, data = _one_level_of_node("flatten_one_level_with_keys", tree)
    typ = type(tree)
    pairs = zip(keys_of(typ, data, len(children)), children, strict=True)
    return tuple(pairs) if typ is list or typ in _LEVELS_IN_TUPLES else list(pairs), data_of_level(typ, data)


def data_of_level(typ: type, data: object) -> Any:
    """Returns the data of a node as functions of one level do: for a named tuple its type."""
    return typ if is_named_tuple(typ) else public_data(data)


def _one_level_of_node(operation: str, tree: object) -> tuple[tuple[Any, ...], Any]:
    try:
        level = one_level(tree)
    except UnsortableKeysError as error:
        raise ValueError(f"{operation}: the keys of the {type(tree).__name__} cannot be sorted, got {error}") from None
    if level is None:
        raise failure(
            ValueError,
            operation,
            f"{type(tree).__name__} is a leaf",
            expected="a list, tuple, dict, None, named tuple or an instance of a registered type",
            fix="register it with register_pytree_node",
        )
    return level
