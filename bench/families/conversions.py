# SPDX-License-Identifier: Apache-2.0
"""Conversions of checkpoints, beside `cp` of the same files, Orbax and torch.

`cp` copies the files of the source and waits for the storage, as a conversion does. Orbax restores its checkpoint with
the shardings of 8 devices and saves it. torch converts a file of torch.save by its own torch_save_to_dcp. All read
from the page cache of the system.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from measure import Row

BYTES = 1 << 30
ARRAYS = 16
SHAPE_ROWS = 4096
# What a peer does with arrays of float32, and what the row is named.
KINDS = {
    "renamed": "safetensors, other names",
    "processes": "safetensors, for 8 processes",
    "transposed": "safetensors, transposed",
    "stacked": "safetensors, layers transposed and stacked at axis 1",
    "cast": "safetensors, to bfloat16",
    "orbax": "Orbax, for 8 processes",
    "torch": "torch.save, to torch.distributed.checkpoint",
}


def rows(peer: Any, *, quick: bool) -> Iterator[Row]:
    """A row for each conversion that the peer knows."""
    if not hasattr(peer, "convert"):
        return
    size = BYTES >> 4 if quick else BYTES
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        value = np.random.default_rng(0).standard_normal((SHAPE_ROWS, size // ARRAYS // SHAPE_ROWS // 4), np.float32)
        arrays = {f"layers.{number}.weight": value for number in range(ARRAYS)}
        for kind in peer.CONVERSIONS:
            source = _source(peer, folder / kind, kind, arrays)
            target = folder / "target"

            def remove(target: Path = target) -> None:
                shutil.rmtree(target, ignore_errors=True)

            def run(_: Any, source: Path = source, target: Path = target, kind: str = kind) -> None:
                peer.convert(source, target, kind)

            yield Row(f"convert {size >> 20} MiB of {KINDS[kind]}", run, prepare=remove, bytes=size, repeats=5)
            remove()
            shutil.rmtree(folder / kind)


def _source(peer: Any, folder: Path, kind: str, arrays: dict[str, np.ndarray]) -> Path:
    """Writes what the peer converts: a checkpoint of its own, or model.safetensors."""
    folder.mkdir()
    if kind in ("orbax", "torch"):
        return Path(peer.write_source(folder, kind, arrays))
    header: dict[str, Any] = {}
    begin = 0
    for name, value in arrays.items():
        header[name] = {"dtype": "F32", "shape": value.shape, "data_offsets": [begin, begin + value.nbytes]}
        begin += value.nbytes
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(folder / "model.safetensors", "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for value in arrays.values():
            file.write(value)
    return folder
