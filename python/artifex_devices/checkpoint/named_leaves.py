# SPDX-License-Identifier: Apache-2.0
"""Names of the leaves of a tree: the path of each, as in `params.layers.0.weight`."""

from __future__ import annotations

from collections import Counter

from artifex_devices import tree_util
from artifex_devices._base.checks import failure
from artifex_devices._base.safe_repr import safe_repr
from artifex_devices._base.text import shortened_list

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


def list_of(names: list[str]) -> str:
    """Returns the first names for a message, and the number of further names."""
    return shortened_list(list(map(safe_repr, names)), _SHOWN)
