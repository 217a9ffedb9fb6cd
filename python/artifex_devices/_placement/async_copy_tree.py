# SPDX-License-Identifier: Apache-2.0
"""A tree of Arrays that is copied to the host: it can be used as the tree, whose leaves NumPy reads."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from artifex_devices._placement.async_copy import HostCopy
from artifex_devices._tree.register import register_pytree_node

__all__ = ["TreeHostCopy"]


class TreeHostCopy(HostCopy):
    """The HostCopy of a tree; `copy[key]`, iteration and the functions of `tree_util` find a HostCopy at each leaf."""

    def tree(self) -> Any:
        """The tree with a HostCopy for each Array; other leaves as they are."""
        return self._treedef.unflatten(self._parts())

    def __getitem__(self, key: Any) -> Any:
        return self.tree()[key]

    def __iter__(self) -> Iterator[Any]:
        return iter(self.tree())


register_pytree_node(TreeHostCopy, lambda copy: ((copy.tree(),), None), lambda _, children: children[0])
