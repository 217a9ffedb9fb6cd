# SPDX-License-Identifier: Apache-2.0
"""Donated Arrays of a call, which it deletes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from artifex_devices._core import Array
from artifex_devices.errors import JaxRuntimeError


def donated_arrays(operation: str, donated: Sequence[Any], arguments: Any) -> list[Array]:
    """The Arrays in the donated arguments; JaxRuntimeError where `arguments`, which are all, hold one of them twice."""
    if not donated:
        return []
    from artifex_devices import tree_util

    arrays = [x for x in tree_util.tree_leaves(list(donated)) if isinstance(x, Array)]
    counts: dict[int, int] = {}
    for x in tree_util.tree_leaves(arguments):
        counts[id(x)] = counts.get(id(x), 0) + 1
    for x in arrays:
        if counts[id(x)] > 1:
            raise JaxRuntimeError(
                f"{operation}: an Array of shape {x.shape} and dtype {x.dtype} is donated and passed twice; expected "
                "it once, as the call deletes it; pass np.copy(x) as the other argument, or leave donate_argnums out"
            )
    return arrays


def delete_donated(donated: Sequence[Array], result: Any) -> None:
    """Deletes donated Arrays, except those that the function returned."""
    if not donated:
        return
    from artifex_devices import tree_util

    returned = {id(leaf) for leaf in tree_util.tree_leaves(result)}
    for array in donated:
        if id(array) not in returned:
            array.delete()
