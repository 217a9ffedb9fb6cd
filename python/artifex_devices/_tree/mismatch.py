# SPDX-License-Identifier: Apache-2.0
"""The paths at which a tree does not begin with a structure."""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from collections.abc import Iterator
from typing import Any

from artifex_devices._base.safe_repr import safe_repr
from artifex_devices._base.text import shortened
from artifex_devices._tree.keys import keystr
from artifex_devices._tree.nodes import UnsortableKeysError, has_same_data, keys_of, one_level, public_data

_MAX_ENTRIES = 8  # of a list in a message
_DICTS = (dict, OrderedDict, defaultdict)


def explain(node: object, tree: object, name: str) -> str:
    """Returns all paths where the tree differs from the node of a structure, in one line."""
    found = [f"at {name}{keystr(path)}: {problem}" for path, problem in mismatches(node, tree)]
    return "; ".join(shortened(found, _MAX_ENTRIES, "and at {} more places"))


def mismatches(node: object, tree: object) -> Iterator[tuple[tuple[Any, ...], str]]:
    """Yields the paths where the tree differs, each with the expected and the actual node."""
    open_: list[tuple[Any, Any, tuple[Any, ...]]] = [(node, tree, ())]  # an explicit stack: trees may be deep
    while open_:
        each, value, path = open_.pop()
        if each is None:
            continue
        typ, data, children = each
        arity = children if type(children) is int else len(children)
        if type(value) is not typ:
            yield path, f"expected {_node_text(typ, data, arity)}, got {_value_text(value)}"
            continue
        try:
            level = one_level(value)
        except UnsortableKeysError as error:
            yield path, f"the keys cannot be sorted, got {error}"
            continue
        if level is None:
            yield path, f"expected {_node_text(typ, data, arity)}, got a leaf"
            continue
        values, other = level
        if not has_same_data(typ, data, other):
            yield path, _data_text(typ, data, other)
        elif len(values) != arity:
            got = _value_text(value) if isinstance(value, (list, tuple)) else f"{len(values)} children"
            yield path, f"expected {_node_text(typ, data, arity)}, got {got}"
        elif type(children) is not int:
            paths = [(*path, key) for key in keys_of(typ, data, arity)]
            open_.extend(reversed(list(zip(children, values, paths, strict=True))))


def _node_text(typ: type, data: Any, arity: int) -> str:
    if typ is type(None):
        return "None"
    if typ in _DICTS:
        return f"{typ.__name__} with keys {_list(data[1] if typ is defaultdict else data)}"
    return f"{typ.__name__} of {arity}"


def _value_text(tree: Any) -> str:
    typ = type(tree)
    if tree is None or typ in _DICTS or isinstance(tree, list | tuple):
        return _node_text(typ, (None, tree) if typ is defaultdict else tree, 0 if tree is None else len(tree))
    return f"a leaf or node of type {typ.__name__}"


def _data_text(typ: type, data: Any, other: Any) -> str:
    if typ in _DICTS:
        ours, theirs = (data[1], other[1]) if typ is defaultdict else (data, other)
        if set(ours) != set(theirs):
            missing = [key for key in ours if key not in set(theirs)]
            surplus = [key for key in theirs if key not in set(ours)]
            words = [f"{word} {_list(keys)}" for word, keys in (("lacks", missing), ("has besides", surplus)) if keys]
            return f"expected {typ.__name__} with keys {_list(ours)}, got a {typ.__name__} that {' and '.join(words)}"
        if ours != theirs:
            return f"expected {typ.__name__} with keys in the order {_list(ours)}, got {_list(theirs)}"
        return f"expected {typ.__name__} with factory {safe_repr(data[0])}, got {safe_repr(other[0])}"
    return f"expected {typ.__name__} with data {safe_repr(public_data(data))}, got {safe_repr(public_data(other))}"


def _list(keys: Any) -> str:
    listed = list(keys)
    if len(listed) <= _MAX_ENTRIES:
        return repr(listed)
    return f"[{', '.join(map(safe_repr, listed[:_MAX_ENTRIES]))}, ...]"
