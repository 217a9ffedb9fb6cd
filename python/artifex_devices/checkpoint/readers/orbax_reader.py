# SPDX-License-Identifier: Apache-2.0
"""Reader of checkpoints of Orbax, through tensorstore: Zarr 2 and 3, in one OCDBT database or in folders."""

from __future__ import annotations

import importlib
import math
import os
import threading
from typing import Any

import numpy as np

from artifex_devices._base.checks import failure
from artifex_devices._base.safe_repr import safe_repr
from artifex_devices.checkpoint.named_leaves import list_of
from artifex_devices.checkpoint.readers.orbax_metadata import TreeMetadata, is_name_within, read_tree_metadata
from artifex_devices.checkpoint.readers.reader import Box, ReadArray, Reader, closed

_DATABASE = "manifest.ocdbt"
_HEADERS = {"/.zarray": False, "/zarr.json": True}  # file of an array: whether it is Zarr 3
_CACHE = 256 << 20  # bytes of decoded chunks, for the next box, and of nodes of a database, for the next array
_TEMPORARY = ".orbax-checkpoint-tmp"  # in the name of a folder that is not committed


class OrbaxReader(Reader):
    """Reads boxes of the arrays of one item of an Orbax checkpoint."""

    def __init__(self, operation: str, path: str) -> None:
        self._operation = operation
        self._path = path
        if _TEMPORARY in path:
            raise failure(
                ValueError,
                operation,
                f"{path!r} was not committed: its save was interrupted, or is running",
                expected="a complete checkpoint",
                fix="open another step",
            )
        self._tensorstore = _import_tensorstore(operation, path)
        self._is_database = os.path.exists(f"{path}/{_DATABASE}")
        found = read_tree_metadata(operation, path)
        storage = "one OCDBT database" if self._is_database else "a folder for each array"
        if found is None:
            found = self._listed()
            notes = [f"It is orbax: arrays in {storage}; there is no _METADATA, so a missing array cannot be noticed."]
        else:
            notes = [f"It is orbax: arrays of Zarr {3 if found.is_zarr3 else 2} in {storage}, named by _METADATA."]
        notes.append("A read decodes each chunk that its box touches.")
        if not found.stores_fill_values:
            notes.append("Chunks that have only zeros may be absent, so the loss of a chunk cannot be noticed.")
        if found.left_out:
            notes.append(f"Left out, because they are None or empty: {list_of(found.left_out)}.")
        self._is_zarr3 = found.is_zarr3
        self._stores_fill_values = found.stores_fill_values
        self._stores = self._open(found.names)
        self._lock = threading.Lock()  # of the next attribute
        self._large: tuple[str, Any] = ("", None)  # the last array that was read of those with large chunks
        arrays = {name: _described(store) for name, store in self._stores.items()}
        largest = max(map(_chunk_bytes, self._stores.values()), default=0)
        self._kept_bytes = _CACHE + (
            2 * largest if largest > _CACHE // 2 else 0
        )  # a large chunk is there compressed too
        super().__init__(path, "orbax", tuple(notes), arrays, found.texts)

    def _read(self, operation: str, name: str, dtype: np.dtype[Any], box: Box, verify: bool) -> np.ndarray[Any, Any]:
        store = self._stores.get(name)
        if store is None:  # another thread has closed it
            raise closed(operation)
        origin, shape = box
        if 0 in shape:
            return np.empty(shape, dtype)
        slices = tuple(slice(begin, begin + size) for begin, size in zip(origin, shape, strict=True))
        try:
            if (chunk_bytes := _chunk_bytes(store)) > _CACHE // 2:
                store = self._with_own_cache(name, chunk_bytes)
            content = store[slices].read(order="C").result()
        except (ValueError, OSError, RuntimeError) as error:
            raise self._damaged(operation, name, error) from None
        return np.asarray(content, dtype).reshape(shape)

    def _checksums(self) -> str:
        return "tensorstore decoded all chunks. Changed elements are noticed only where chunks have a checksum."

    def _close(self) -> None:
        self._stores = {}
        with self._lock:
            self._large = ("", None)

    def _listed(self) -> TreeMetadata:
        """Returns the names of the arrays that are there."""
        found = TreeMetadata()
        if self._is_database:
            spec = {"driver": "ocdbt", "base": f"file://{self._path}/"}
            try:
                keys = [key.decode() for key in self._tensorstore.KvStore.open(spec).result().list().result()]
            except (ValueError, OSError, RuntimeError) as error:
                raise self._damaged(self._operation, _DATABASE, error) from None
        else:
            keys = [
                os.path.relpath(os.path.join(at, file), self._path)
                for at, _, files in os.walk(self._path)
                for file in files
            ]
        for key in sorted(keys):
            for header, is_zarr3 in _HEADERS.items():
                if key.endswith(header) and is_name_within(key):
                    found.names.append(key.removesuffix(header))
                    found.is_zarr3 = is_zarr3
        return found

    def _open(self, names: list[str]) -> dict[str, Any]:
        """Opens all arrays: their headers are read at the same time."""
        context = self._cache(_CACHE)
        futures = {name: self._opened(name, context) for name in names}
        stores = {}
        for name, future in futures.items():
            try:
                stores[name] = future.result()
            except (ValueError, OSError, RuntimeError) as error:
                raise self._damaged(self._operation, name, error) from None
        return stores

    def _opened(self, name: str, context: Any) -> Any:
        kvstore = (
            {"driver": "ocdbt", "base": f"file://{self._path}/", "path": f"{name}/"}
            if self._is_database
            else {"driver": "file", "path": f"{self._path}/{name}/"}
        )
        spec = {
            "driver": "zarr3" if self._is_zarr3 else "zarr",
            "kvstore": kvstore,
            "fill_missing_data_reads": not self._stores_fill_values,
        }
        return self._tensorstore.open(spec, read=True, open=True, context=context)

    def _cache(self, nbytes: int) -> Any:
        return self._tensorstore.Context({"cache_pool": {"total_bytes_limit": nbytes}})

    def _with_own_cache(self, name: str, chunk_bytes: int) -> Any:
        """Opens an array with a cache for one of its chunks, and frees the cache of the array before it."""
        with self._lock:
            if self._large[0] != name:
                self._large = ("", None)
                self._large = (name, self._opened(name, self._cache(chunk_bytes + _CACHE // 2)).result())
            return self._large[1]

    def _damaged(self, operation: str, name: str, error: Exception) -> ValueError:
        return failure(
            ValueError,
            operation,
            f"{name!a} of {self._path!r} cannot be read: {safe_repr(error)[:400]}",
            expected="every array of the checkpoint",
            fix="copy the checkpoint again",
        )


def _import_tensorstore(operation: str, path: str) -> Any:
    try:
        return importlib.import_module("tensorstore")
    except ImportError:
        raise ModuleNotFoundError(
            f"{operation}: {path!r} is a checkpoint of Orbax, which tensorstore reads, and tensorstore is not "
            "installed; expected it; run `pip install tensorstore`",
            name="tensorstore",
        ) from None


def _chunk_bytes(store: Any) -> int:
    nbytes: int = store.dtype.numpy_dtype.itemsize * math.prod(store.chunk_layout.read_chunk.shape or (1,))
    return nbytes


def _described(store: Any) -> ReadArray:
    dtype = store.dtype.numpy_dtype
    return ReadArray(tuple(store.shape), None if dtype.hasobject or dtype.kind in "SU" else dtype, store.dtype.name)
