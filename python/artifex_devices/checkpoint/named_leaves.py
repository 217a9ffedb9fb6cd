# SPDX-License-Identifier: Apache-2.0
"""Names of the leaves of a tree: the path of each, as in `params.layers.0.weight`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from artifex_devices import tree_util
from artifex_devices._base.checks import failure
from artifex_devices._base.safe_repr import safe_repr
from artifex_devices._base.text import shortened_list
from artifex_devices.checkpoint.manifest import Path

_ROOT = "value"  # name of a tree that is one leaf
_RESERVED = "__metadata__"
_SHOWN = 8  # names in a message


def name_leaves(operation: str, structure: tree_util.PyTreeDef) -> list[str]:
    """Returns a name for each leaf of a tree, in order.

    Raises:
        ValueError: Two leaves have one name, or a name is reserved or not valid Unicode.
    """
    numbered = tree_util.tree_unflatten(structure, range(structure.num_leaves))
    paths = [path for path, _ in tree_util.tree_flatten_with_path(numbered)[0]]
    names = [tree_util.keystr(path, simple=True, separator=".") or _ROOT for path in paths]
    if len(set(names)) < len(names):
        twice = [name for name, count in Counter(names).items() if count > 1]
        raise failure(
            ValueError,
            operation,
            f"{list_of(twice)} each name two leaves of the tree",
            expected="a different name for each leaf",
            fix="rename a key, such as 'a.b' next to {'a': {'b': ...}}",
        )
    if _RESERVED in names:
        raise failure(
            ValueError,
            operation,
            f"a leaf has the name {_RESERVED!r}, which safetensors files use for themselves",
            expected="another name",
            fix="rename the key",
        )
    for name in names:
        try:
            name.encode()
        except UnicodeEncodeError:
            raise failure(
                ValueError,
                operation,
                f"the name {safe_repr(name)} is not valid Unicode",
                expected="text",
                fix="rename the key",
            ) from None
    return names


def path_of(keys: tuple[Any, ...]) -> Path:
    """Returns the entries of a path in a form that JSON has."""
    return tuple(
        key.idx if isinstance(key, tree_util.SequenceKey) else tree_util.keystr((key,), simple=True)
        for key in keys or (tree_util.DictKey(_ROOT),)
    )


def tree_of(names: list[str], leaves: list[Any], paths: Mapping[str, Path]) -> Any:
    """Returns the leaves as nested dicts and lists, each at its path; a leaf without a path is at its name.

    Tuples become lists, and other nodes dicts. A list with positions that no leaf has is a dict by position.

    Raises:
        ValueError: Two paths need one place.
    """
    root: dict[Any, Any] = {}
    nodes: list[tuple[dict[Any, Any], Any]] = []  # each node below the root: its parent and its key there
    inner = {id(root)}
    for name, leaf in zip(names, leaves, strict=True):
        *above, last = paths.get(name, (name,))
        node = root
        for key in above:
            if key not in node:
                node[key] = {}
                inner.add(id(node[key]))
                nodes.append((node, key))
            node = node[key]
            if id(node) not in inner:
                raise ValueError(f"{safe_repr(name)} is below another leaf")
        if last in node:
            raise ValueError(f"{safe_repr(name)} is at the path of another leaf")
        node[last] = leaf
    for parent, key in reversed(nodes):
        parent[key] = _list_or_dict(parent[key])
    return _list_or_dict(root)


def _list_or_dict(node: dict[Any, Any]) -> Any:
    is_list = bool(node) and all(type(key) is int for key in node) and sorted(node) == list(range(len(node)))
    return [node[position] for position in range(len(node))] if is_list else node


def list_of(names: list[str]) -> str:
    """Returns the first names for a message, and the number of further names."""
    return shortened_list(list(map(safe_repr, names)), _SHOWN)
