# SPDX-License-Identifier: Apache-2.0
"""Small calls of user code around the work itself: paths of leaves, one shard to NumPy, jit around shard_map."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from measure import Row

LAYERS = 48  # with 8 leaves each


def rows(peer: Any, *, quick: bool) -> Iterator[Row]:
    """One row for each call."""
    if not peer.HAS_MESHES:
        return
    leaf = np.ones(4, np.float32)
    tree = {
        f"layer {number}": {
            "attention": dict.fromkeys(("query", "key", "value", "out"), leaf),
            "mlp": dict.fromkeys(("up", "gate", "down", "bias"), leaf),
        }
        for number in range(LAYERS)
    }
    flatten = peer.tree_util.tree_flatten_with_path
    yield Row("tree_flatten_with_path of 384 leaves", lambda _: flatten(tree), calls=20, repeats=30)
    mesh = peer.mesh(np.array(peer.devices()[:8]), ("x",))
    x = peer.put(np.ones((8, 16), np.float32), peer.named(mesh, "x"))
    yield Row("np.asarray(x.addressable_shards[3].data)", lambda _: one_shard(x), calls=200, repeats=30)
    add = peer.mapped(lambda block: block + 1, mesh, peer.P("x"), peer.P("x"))
    for name, function in (("shard_map", add), ("jit of shard_map", peer.jit(add))):
        yield Row(f"{name}, block + 1", lambda _, f=function: peer.wait(f(x)), calls=100, repeats=30)


def one_shard(x: Any) -> np.ndarray:
    """The part of one device."""
    return np.asarray(x.addressable_shards[3].data)
