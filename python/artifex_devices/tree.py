# SPDX-License-Identifier: Apache-2.0
"""Trees of arrays: the names of `jax.tree`. `map` is `tree_util.tree_map`, and so on."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from artifex_devices._base.checks import check_type
from artifex_devices._base.public_lookup import add_public_lookup
from artifex_devices.tree_util import tree_all as all
from artifex_devices.tree_util import tree_broadcast as broadcast
from artifex_devices.tree_util import tree_flatten as flatten
from artifex_devices.tree_util import tree_flatten_with_path as flatten_with_path
from artifex_devices.tree_util import tree_leaves as leaves
from artifex_devices.tree_util import tree_leaves_with_path as leaves_with_path
from artifex_devices.tree_util import tree_map as map
from artifex_devices.tree_util import tree_map_with_path as map_with_path
from artifex_devices.tree_util import tree_reduce as reduce
from artifex_devices.tree_util import tree_reduce_associative as reduce_associative
from artifex_devices.tree_util import tree_structure as structure
from artifex_devices.tree_util import tree_transpose as transpose
from artifex_devices.tree_util import tree_unflatten as unflatten

__all__ = [
    "all",
    "broadcast",
    "flatten",
    "flatten_with_path",
    "leaves",
    "leaves_with_path",
    "map",
    "map_with_path",
    "reduce",
    "reduce_associative",
    "static",
    "structure",
    "transpose",
    "unflatten",
]
add_public_lookup(__name__)


def static(**kwargs: object) -> Any:
    """Returns a field of a dataclass that `tree_util.register_dataclass` takes as data, not as a child.

    Args:
        **kwargs: Arguments of `dataclasses.field`.

    Raises:
        TypeError: `metadata` is not a mapping.

    Example:
        >>> import dataclasses
        >>> import artifex_devices as ad
        >>> @ad.tree_util.register_dataclass
        ... @dataclasses.dataclass
        ... class Scaled:
        ...     value: float
        ...     unit: str = ad.tree.static(default="s")
        >>> ad.tree.leaves(Scaled(1.5))
        [1.5]
    """
    options: dict[str, Any] = kwargs
    metadata = options.pop("metadata", None) or {}
    check_type("static", "metadata", metadata, Mapping, "a mapping or None", "leave it out")
    return dataclasses.field(metadata={"static": True, **metadata}, **options)
