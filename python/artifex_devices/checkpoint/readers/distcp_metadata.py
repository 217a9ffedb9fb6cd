# SPDX-License-Identifier: Apache-2.0
"""The file .metadata of torch.distributed.checkpoint, a pickle, read without PyTorch and without running its code.

Records stand for the classes of the pickle. Any other class or function is refused.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from artifex_devices._base.checks import failure
from artifex_devices._base.regular_file import read_regular_file
from artifex_devices._base.safe_repr import safe_repr
from artifex_devices.checkpoint.readers.pickled_records import Record, read_pickle
from artifex_devices.checkpoint.readers.torch_library import DTYPES

FILE = ".metadata"
_MAX_BYTES = 1 << 28
_MOST_DIMS = 64  # of an array
_MODULE = "torch.distributed.checkpoint"


class Place(NamedTuple):
    """The bytes of one item: file, first byte and size."""

    file: str
    begin: int
    nbytes: int


class Chunk(NamedTuple):
    """One stored box of a tensor."""

    origin: tuple[int, ...]
    shape: tuple[int, ...]
    place: Place


class StoredTensor(NamedTuple):
    """One tensor: its dtype as torch names it, its shape, and its chunks."""

    dtype: str
    shape: tuple[int, ...]
    chunks: tuple[Chunk, ...]


def _empty(arguments: tuple[Any, ...]) -> dict[Any, Any]:
    if arguments:
        raise ValueError("an OrderedDict has arguments")
    return {}


def _sizes(arguments: tuple[Any, ...]) -> tuple[int, ...]:
    return _dims(*arguments)


_ALLOWED: dict[str, Any] = {
    **{f"{_MODULE}.metadata.{name}": Record for name in (
        "Metadata", "TensorStorageMetadata", "BytesStorageMetadata", "ChunkStorageMetadata", "MetadataIndex",
        "TensorProperties", "_MEM_FORMAT_ENCODING", "StorageMeta",
    )},
    f"{_MODULE}.filesystem._StorageInfo": Record,
    f"{_MODULE}.filesystem._StoragePrefix": Record,
    "torch.serialization._get_layout": Record,
    "torch.Size": _sizes,
    "torch.device": Record,
    "collections.OrderedDict": _empty,
    **{f"megatron.core.dist_checkpointing.strategies.torch.{name}": Record for name in (
        "MCoreMetadata", "MCoreSavePlan",
    )},
    **{f"{module}.{name}": Record for module in ("pathlib", "pathlib._local") for name in ("PosixPath", "WindowsPath")},
    **{f"torch.{name}": f"torch.{name}" for name in DTYPES},
}  # fmt: skip


def read_metadata(operation: str, folder: str) -> tuple[dict[str, StoredTensor], dict[str, Place]]:
    """Returns the tensors, and the places of the Python objects, of a folder of .distcp files, by name.

    Raises:
        ValueError: The file is not the metadata of torch.distributed.checkpoint.
        OSError: It cannot be read.
    """
    path = f"{folder}/{FILE}"
    try:
        root = _attributes(read_pickle(read_regular_file(path, _MAX_BYTES), _ALLOWED))
        places = {_key(index): _place(info) for index, info in root["storage_data"].items()}
        tensors, objects = {}, {}
        for name, item in root["state_dict_metadata"].items():
            name.encode()  # UnicodeError for half a surrogate pair
            if "chunks" in (found := _attributes(item)):
                tensors[name] = _tensor(name, found, places)
            else:
                objects[name] = _taken(places, name, None)
    except OSError:
        raise
    except Exception as error:  # any: the pickle decides which operations meet which objects
        raise failure(
            ValueError,
            operation,
            f"{path!r} is not metadata of torch.distributed.checkpoint: {safe_repr(error)[:300]}",
            expected="the file that torch.distributed.checkpoint.save wrote",
            fix="copy the checkpoint again",
        ) from None
    return tensors, objects


def _tensor(name: str, item: dict[str, Any], places: dict[Any, Place]) -> StoredTensor:
    properties = item["properties"].state
    dtype = properties[0] if type(properties) is tuple else properties["dtype"]
    if not isinstance(dtype, str):
        raise ValueError(f"the dtype of {name!a} is a {type(dtype).__name__}")
    chunks = []
    for chunk in map(_attributes, item["chunks"]):
        origin = _dims(chunk["offsets"])
        chunks.append(Chunk(origin, _dims(chunk["sizes"]), _taken(places, name, origin)))
    return StoredTensor(dtype, _dims(item["size"]), tuple(chunks))


def _attributes(item: Any) -> dict[str, Any]:
    if type(item) is not Record or type(item.state) is not dict:
        raise ValueError(f"it has a {type(item).__name__} instead of an object with attributes")
    return item.state


def _taken(places: dict[Any, Place], name: str, origin: tuple[int, ...] | None) -> Place:
    """Removes a place: the same parts in many tensors would take quadratic time."""
    if (name, origin) not in places:
        raise ValueError(f"it has no bytes, or twice the same bytes, of {name!a} at {origin}")
    return places.pop((name, origin))


def _key(index: Any) -> tuple[str, tuple[int, ...] | None]:
    found = _attributes(index)
    name, offset = found["fqn"], found.get("offset")
    if type(name) is not str:
        raise ValueError(f"a name is a {type(name).__name__}")
    return name, None if offset is None else _dims(offset)


def _dims(values: Any = ()) -> tuple[int, ...]:
    if not isinstance(values, (tuple, list)) or len(values) > _MOST_DIMS:
        raise ValueError(f"sizes are a {type(values).__name__}")
    if not all(type(value) is int and 0 <= value < 1 << 63 for value in values):
        raise ValueError(f"sizes are {[value if type(value) is int else type(value) for value in values]}")
    return tuple(values)


def _place(info: Any) -> Place:
    found = _attributes(info)
    begin, nbytes = _dims((found["offset"], found["length"]))
    file = found["relative_path"]
    if (
        type(file) is not str
        or not 0 < len(file.encode()) < 256
        or "/" in file
        or "\0" in file
        or file.startswith("..")
    ):
        raise ValueError(f"it names the file {safe_repr(file) if type(file) is str else type(file)}")
    if found.get("transform_descriptors"):
        raise ValueError(f"{file!a} is transformed, which is not read here")
    return Place(file, begin, nbytes)
