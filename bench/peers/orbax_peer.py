# SPDX-License-Identifier: Apache-2.0
"""Orbax, for checkpoints of JAX arrays on simulated CPU devices."""

from __future__ import annotations

import ctypes
import gc
from importlib.metadata import version as version_of
from typing import Any

import jax
import numpy as np
import orbax.checkpoint as ocp

from peers.jax_peer import HAS_MESHES, PREFETCH, devices, get, mesh, named, put

__all__ = ["HAS_MESHES", "IMPORT", "NAME", "PREFETCH", "devices", "get", "mesh", "named", "put"]
NAME = "orbax"
IMPORT = "import orbax.checkpoint"
_checkpointer = ocp.StandardCheckpointer()


def version() -> str:
    """Version of the package."""
    return version_of("orbax-checkpoint")


def forget_memory() -> None:
    """Releases free memory to the system."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)


def save_tree(path: Any, tree: Any) -> None:
    """Replaces a checkpoint."""
    save_async(path, tree).wait()


class _Wait:
    """What save_async returns: `wait()` until the checkpoint is complete."""

    def wait(self) -> None:
        """Waits for all saves."""
        _checkpointer.wait_until_finished()


def save_async(path: Any, tree: Any) -> _Wait:
    """Starts to replace a checkpoint."""
    _checkpointer.save(path, tree, force=True)
    return _Wait()


def restore_tree(path: Any, like: Any) -> Any:
    """Restores the arrays of a tree of placed arrays, and waits."""
    target = jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=x.sharding), like)
    return jax.block_until_ready(_checkpointer.restore(path, target))


def save(path: Any, array: Any) -> None:
    """Replaces a checkpoint of one array."""
    save_tree(path, {"value": array})


def restore(path: Any, where: Any, like: Any) -> Any:
    """Restores a checkpoint of one array with the shape and dtype of `like`."""
    target = jax.ShapeDtypeStruct(like.shape, like.dtype, sharding=where)
    return jax.block_until_ready(_checkpointer.restore(path, {"value": target}))


CONVERSIONS = ("orbax",)


def write_source(folder: Any, kind: str, arrays: dict[str, Any]) -> Any:
    """Writes a checkpoint, and returns its path."""
    save_tree(folder / "source", arrays)
    return folder / "source"


def convert(source: Any, target: Any, kind: str) -> None:
    """Restores a checkpoint over all devices, and saves it."""
    by_row = named(mesh(np.array(devices()), ("x",)), "x")
    found = _checkpointer.metadata(source).item_metadata.tree
    like = {name: jax.ShapeDtypeStruct(each.shape, each.dtype, sharding=by_row) for name, each in found.items()}
    save_tree(target, _checkpointer.restore(source, like))


def checkpoint_metadata(path: Any) -> Any:
    """Reads what is in a checkpoint."""
    return _checkpointer.metadata(path)
