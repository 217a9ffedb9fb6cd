# SPDX-License-Identifier: Apache-2.0
"""The argument `like` of a conversion: names, types and shardings of the arrays of the target, and its values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from artifex_devices import tree_util
from artifex_devices._array.shape_dtype import ShapeDtypeStruct
from artifex_devices._base.checks import wrong_type
from artifex_devices._base.leaf_types import Tree
from artifex_devices._core import Array, Sharding
from artifex_devices._placement.target import PLACES, resolve_target, sharding_of_new
from artifex_devices.checkpoint.manifest import VALUE_TYPES, Path
from artifex_devices.checkpoint.named_leaves import name_leaves, path_of
from artifex_devices.checkpoint.planning import NamedType


class TargetTree:
    """A tree as `restore` takes it.

    Attributes:
        shardings: Shardings of arrays that have one, by name.
        values: Types of Python values, by name.
        paths: Paths of leaves whose path is not just their name, by name.
    """

    def __init__(self, operation: str, like: Tree) -> None:
        """Raises TypeError for leaves of other types."""
        leaves, structure = tree_util.tree_flatten(like)
        names = name_leaves(operation, structure)
        paths = zip(names, map(path_of, structure.paths()), strict=True)
        self.paths: dict[str, Path] = {name: path for name, path in paths if path != (name,)}
        self.shardings: dict[str, Sharding] = {}
        self.values: dict[str, type] = {}
        self._types: dict[str, tuple[tuple[int, ...], np.dtype[Any]] | None] = {}
        for name, leaf in zip(names, leaves, strict=True):
            if type(leaf) in VALUE_TYPES:
                self.values[name] = type(leaf)
            elif isinstance(leaf, PLACES):
                self._types[name] = None
                self.shardings[name] = sharding_of_new(operation, resolve_target(operation, leaf))
            elif isinstance(leaf, (Array, ShapeDtypeStruct, np.ndarray, np.generic)):
                self._types[name] = (tuple(leaf.shape), leaf.dtype)
                sharding = getattr(leaf, "sharding", None)
                if sharding is not None:
                    self.shardings[name] = sharding
            else:
                expected = "a ShapeDtypeStruct, a Sharding, an Array, an ndarray or a number"
                what = f"the leaf {name!a} of `like`"
                raise wrong_type(operation, what, leaf, expected, "write ad.ShapeDtypeStruct(...)")

    def types(self, planned: Callable[[], list[NamedType]]) -> list[NamedType]:
        """Returns the types of the arrays; `planned` returns the types of leaves that have only a sharding."""
        known = self._types
        if None in known.values():
            found = {name: (shape, dtype) for name, shape, dtype in planned()}
            known = {name: known[name] or found.get(name) for name in known}
        nothing = ((), np.dtype(np.float32))  # no source: the plan reports the name
        return [(name, *(type or nothing)) for name, type in known.items()]
