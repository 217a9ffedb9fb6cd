# SPDX-License-Identifier: Apache-2.0
"""artifex_devices."""

from __future__ import annotations

import gc
import importlib.util
from collections.abc import Iterator
from typing import Any

import artifex_devices as lib
import numpy as np
from artifex_devices import checkpoint, data

NAME = "artifex_devices"
IMPORT = "import artifex_devices"
HAS_MESHES = True
PREFETCH = "prefetch_to_device"
P = lib.PartitionSpec


def version() -> str:
    """Version of the package."""
    return str(lib.__version__)


def devices() -> list[Any]:
    """All devices, in order of id."""
    return lib.devices()


def mesh(devices: Any, names: Any) -> Any:
    """A Mesh over an ndarray of devices."""
    return lib.Mesh(devices, names)


def named(mesh: Any, *entries: Any) -> Any:
    """A NamedSharding."""
    return lib.NamedSharding(mesh, P(*entries))


def put(value: Any, where: Any) -> Any:
    """Places and waits."""
    return lib.block_until_ready(lib.device_put(value, where))


def share(value: Any, where: Any) -> Any:
    """Places without a copy where possible, and waits."""
    return lib.block_until_ready(lib.device_put(value, where, may_alias=True))


def forget_memory() -> None:
    """Releases cached memory to the system."""
    gc.collect()
    lib._core.internal.trim()


def allocate_and_free(nbytes: int, times: int, touch: bool) -> None:
    """Takes a block of memory, writes to each of its pages if asked to, and frees it."""
    lib._core.internal.allocate_and_free(nbytes, times, touch)


def get(array: Any) -> np.ndarray:
    """Gathers into one ndarray."""
    return np.asarray(array)


def get_tree(tree: Any) -> Any:
    """Gathers each leaf of a dict."""
    return lib.device_get(tree)


def prefetch(batches: Iterator[Any], where: Any) -> Iterator[Any]:
    """Prefetched batches."""
    from artifex_devices.prefetch import prefetch_to_device

    return prefetch_to_device(batches, where)


numpy = np
lax = lib.lax
tree_util = lib.tree_util
jit = lib.jit
wait = lib.block_until_ready


def mapped(body: Any, mesh: Any, in_specs: Any, out_specs: Any, **options: Any) -> Any:
    """shard_map without its checks."""
    return lib.shard_map(body, mesh=mesh, in_specs=in_specs, out_specs=out_specs, check_vma=False, **options)


def save(path: Any, array: Any) -> None:
    """Replaces a checkpoint of one array."""
    checkpoint.save(path, array, overwrite=True)


def save_async(path: Any, tree: Any) -> Any:
    """Starts to replace a checkpoint."""
    return checkpoint.save_async(path, tree, overwrite=True)


save_tree = save


def restore(path: Any, where: Any, like: Any) -> Any:
    """Restores a checkpoint of one array."""
    return checkpoint.restore(path, where)


restore_tree = checkpoint.restore


def checkpoint_metadata(path: Any) -> Any:
    """Reads the headers of a checkpoint."""
    return checkpoint.metadata(path)


CONVERSIONS = (
    "renamed",
    "processes",
    "transposed",
    "stacked",
    "cast",
    *(kind for kind, library in (("orbax", "tensorstore"), ("torch", "torch")) if importlib.util.find_spec(library)),
)


def write_source(folder: Any, kind: str, arrays: dict[str, np.ndarray]) -> Any:
    """Writes a checkpoint of Orbax, or a file of torch.save, and returns its path."""
    if kind == "torch":
        import torch

        torch.save({name: torch.from_numpy(value.copy()) for name, value in arrays.items()}, folder / "model.bin")
        return folder / "model.bin"
    checkpoint.save(folder / "arrays", arrays)
    checkpoint.convert(folder / "arrays", folder / "source", format="orbax")
    return folder / "source"


def convert(source: Any, target: Any, kind: str) -> None:
    """Converts a checkpoint."""
    rules = checkpoint.rules
    arguments: dict[str, dict[str, Any]] = {
        "renamed": {"format": "safetensors", "rules": rules.rename("layers.{layer}.weight", "w.{layer}")},
        "processes": {"num_files": 8},
        "transposed": {"format": "safetensors", "rules": rules.transpose("*.*.weight", (1, 0))},
        "stacked": {
            "format": "safetensors",
            "rules": [
                rules.transpose("*.*.weight", (1, 0)),
                rules.stack("layers.{layer}.weight", "w", axis="layer", position=1),
            ],
        },
        "cast": {"format": "safetensors", "dtype": "bfloat16"},
        "orbax": {"num_files": 8},
        "torch": {"format": "dcp"},
    }
    checkpoint.convert(source, target, **arguments[kind])


WORKERS = "threads"


def batches(kind: str, path: str, decode: Any, batch: int, workers: int) -> Any:
    """Shuffled batches of a file, read by worker threads and placed on one device."""
    stream = data.Stream(path, seed=7).shuffle().repeat().map(decode)
    return data.batches(stream, batch, devices()[0], workers=workers)


def resumed(source: Any, batch: int, step: int) -> Any:
    """Batches of a shuffled source from a step on."""
    stream = data.Stream(source, seed=7).shuffle()
    return data.batches(stream, batch, state=data.batches(stream, batch).state_at(step))


def end_input(iterator: Any) -> None:
    """Ends the threads of an iterator."""
    iterator.close()
