# SPDX-License-Identifier: Apache-2.0
"""The calls whose instructions are counted: small, frequent, without waits and worker threads."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def _layer(leaf: Any) -> dict[str, Any]:
    """The parameters of one layer of a transformer, as nested dicts."""
    linear = {"w": leaf, "b": leaf}
    norm = {"scale": leaf, "bias": leaf}
    attention = {name: dict(linear) for name in ("query", "key", "value", "out")}
    return {"attention": attention, "mlp": {"up": dict(linear), "down": dict(linear)}, "ln 1": norm, "ln 2": norm}


def hot_calls() -> dict[str, Callable[[], Any]]:
    """Calls by name, on a world of 8 devices."""
    import artifex_devices as ad
    import numpy as np
    from artifex_devices import lax
    from artifex_devices.sharding import Mesh, NamedSharding, P, SingleDeviceSharding

    devices = np.array(ad.devices())
    line = Mesh(devices, ("x",))
    plane = Mesh(devices.reshape(4, 2), ("x", "y"))
    one = SingleDeviceSharding(ad.devices()[0])
    rows = NamedSharding(line, P("x"))
    columns = NamedSharding(line, P(None, "x"))
    replicated = NamedSharding(line, P())
    small = np.ones((8, 16), np.float32)
    tree = {f"leaf {number:03}": small for number in range(200)}
    dicts = [{"a": 1, "b": 2, "c": 3} for _ in range(1000)]
    model = {f"layer {number}": _layer(small) for number in range(48)}
    model_leaves, model_structure = ad.tree.flatten(model)
    nested = {f"layer {number}": {"w": small, "b": [small, small]} for number in range(50)}
    sharded = ad.device_put(small, rows)
    whole = ad.device_put(small, one)
    mapped = ad.shard_map(lambda x: lax.psum(x, "x"), mesh=line, in_specs=P("x"), out_specs=P())

    def fresh_gather() -> Any:
        return ad.device_get(ad.device_put(small, rows))

    return {
        "device_put, one device": lambda: ad.device_put(small, one),
        "device_put, 8 shards": lambda: ad.device_put(small, rows),
        "device_put, replicated 8": lambda: ad.device_put(small, replicated),
        "device_put, tree of 200, 8 shards each": lambda: ad.device_put(tree, rows),
        "device_put, nested tree of 150": lambda: ad.device_put(nested, rows),
        "device_put and device_get, 8 shards": fresh_gather,
        "device_get, one device": lambda: ad.device_get(whole),
        "reshard, rows to columns": lambda: ad.device_put(sharded, columns),
        "x + x, 8 shards": lambda: sharded + sharded,
        "x + 1, one device": lambda: whole + 1,
        "sum, 8 shards": lambda: sharded.sum(),
        "Mesh of 8": lambda: Mesh(devices, ("x",)),
        "NamedSharding": lambda: NamedSharding(plane, P("x", "y")),
        "devices_indices_map": lambda: rows.devices_indices_map((8, 16)),
        "shard_shape": lambda: rows.shard_shape((8, 16)),
        "PartitionSpec": lambda: P("x", ("y", "z"), None),
        "device_set": lambda: rows.device_set,
        "sharding and spec of an Array": lambda: sharded.sharding.spec,
        "hash and == of a sharding": lambda: (hash(rows), rows == columns),
        "tree.flatten, 1,000 dicts of 3": lambda: ad.tree.flatten(dicts),
        "tree.flatten, parameters of 48 layers": lambda: ad.tree.flatten(model),
        "tree.unflatten, parameters of 48 layers": lambda: ad.tree.unflatten(model_structure, model_leaves),
        "shard_map and psum, 8 devices": lambda: mapped(sharded),
    }
