# SPDX-License-Identifier: Apache-2.0
"""JAX on simulated CPU devices."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator
from typing import Any

import jax
import numpy as np

NAME = "jax"
IMPORT = "import jax"
HAS_MESHES = True
PREFETCH = "a thread and a queue of two batches"
P = jax.sharding.PartitionSpec


def version() -> str:
    """Version of the package."""
    return str(jax.__version__)


def devices() -> list[Any]:
    """All devices, in order of id."""
    return jax.devices()


def mesh(devices: Any, names: Any) -> Any:
    """A Mesh over an ndarray of devices."""
    return jax.sharding.Mesh(devices, names)


def named(mesh: Any, *entries: Any) -> Any:
    """A NamedSharding."""
    return jax.sharding.NamedSharding(mesh, P(*entries))


def put(value: Any, where: Any) -> Any:
    """Places and waits."""
    return jax.block_until_ready(jax.device_put(value, where))


def share(value: Any, where: Any) -> Any:
    """Places without a copy where possible, and waits."""
    return jax.block_until_ready(jax.device_put(value, where, may_alias=True))


def get(array: Any) -> np.ndarray:
    """Gathers into one ndarray."""
    return np.asarray(array)


def get_tree(tree: Any) -> Any:
    """Gathers each leaf of a dict."""
    return jax.device_get(tree)


def prefetch(batches: Iterator[Any], where: Any) -> Iterator[Any]:
    """Placed batches, prefetched by a thread, because JAX has no prefetcher."""
    ready: queue.Queue[Any] = queue.Queue(2)
    end = object()

    def read() -> None:
        for batch in batches:
            ready.put(put(batch, where))
        ready.put(end)

    thread = threading.Thread(target=read, daemon=True)
    thread.start()
    yield from iter(ready.get, end)
    thread.join()


numpy = jax.numpy
lax = jax.lax
tree_util = jax.tree_util
jit = jax.jit
wait = jax.block_until_ready


def mapped(body: Any, mesh: Any, in_specs: Any, out_specs: Any) -> Any:
    """jit of shard_map without its checks."""
    return jax.jit(jax.shard_map(body, mesh=mesh, in_specs=in_specs, out_specs=out_specs, check_vma=False))
