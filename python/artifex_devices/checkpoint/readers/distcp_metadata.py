# SPDX-License-Identifier: Apache-2.0
"""The file .metadata of torch.distributed.checkpoint, a pickle, read without PyTorch and without running its code.

Records stand for the classes of the pickle. Any other class or function is refused before it is called.
"""

from __future__ import annotations

import io
import itertools
import pickle
from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple

from artifex_devices._base.checks import failure
from artifex_devices._base.regular_file import read_regular_file
from artifex_devices._base.safe_repr import safe_repr
from artifex_devices.checkpoint.readers.torch_library import DTYPES

FILE = ".metadata"
_MAX_BYTES = 1 << 28
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


class _Record:
    """Stands for an object of torch: its attributes."""

    def __init__(self, *arguments: object) -> None:
        self.arguments = arguments

    def __setstate__(self, state: Any) -> None:
        self.__dict__.update(state if isinstance(state, dict) else {"state": state})


def _sizes(values: Any = ()) -> tuple[int, ...]:
    return _dims(tuple(values))


def _same(value: object) -> object:
    return value


_ALLOWED: dict[tuple[str, str], Any] = {
    **{(f"{_MODULE}.metadata", name): _Record for name in (
        "Metadata", "TensorStorageMetadata", "BytesStorageMetadata", "ChunkStorageMetadata", "MetadataIndex",
        "TensorProperties", "_MEM_FORMAT_ENCODING", "StorageMeta",
    )},
    (f"{_MODULE}.filesystem", "_StorageInfo"): _Record,
    (f"{_MODULE}.filesystem", "_StoragePrefix"): _Record,
    ("torch.serialization", "_get_layout"): _same,
    ("torch", "Size"): _sizes,
    ("torch", "device"): _Record,
    ("collections", "OrderedDict"): dict,
    **{("megatron.core.dist_checkpointing.strategies.torch", name): _Record for name in (
        "MCoreMetadata", "MCoreSavePlan",
    )},
    **{(module, name): _Record for module in ("pathlib", "pathlib._local") for name in ("PosixPath", "WindowsPath")},
    **{("torch", name): f"torch.{name}" for name in DTYPES},
}  # fmt: skip


def _flat(load: Callable[[Any], None]) -> Callable[[Any], None]:
    """Returns a function that loads a tuple, and refuses deep ones: their hash may take exponential time."""

    def load_flat(unpickler: Any) -> None:
        load(unpickler)
        inner = [each for each in unpickler.stack[-1] if type(each) is tuple]
        if any(type(each) is tuple for each in itertools.chain(*inner)):
            raise pickle.UnpicklingError("it has tuples in tuples in tuples")

    return load_flat


def _build(unpickler: Any) -> None:
    """Sets the attributes of a record; UnpicklingError for another object, such as the class of all records."""
    state = unpickler.stack.pop()
    if type(unpickler.stack[-1]) is not _Record:
        raise pickle.UnpicklingError(f"it sets attributes of {safe_repr(unpickler.stack[-1])}")
    unpickler.stack[-1].__setstate__(state)


class _Unpickler(pickle._Unpickler):  # the one in C allocates what a number asks for
    def find_class(self, module: str, name: str) -> Any:
        """Returns what stands for a class; UnpicklingError for a class that no metadata has."""
        try:
            return _ALLOWED[module, name]
        except KeyError:
            raise pickle.UnpicklingError(f"it names {module}.{name}, which is not a class of the metadata") from None

    def persistent_load(self, pid: object) -> Any:
        """Raises UnpicklingError."""
        raise pickle.UnpicklingError("it refers to other objects")

    dispatch: ClassVar[dict[int, Callable[[Any], None]]] = {
        **pickle._Unpickler.dispatch,
        pickle.BUILD[0]: _build,
        **{
            code[0]: _flat(pickle._Unpickler.dispatch[code[0]])
            for code in (pickle.TUPLE, pickle.TUPLE1, pickle.TUPLE2, pickle.TUPLE3)
        },
    }


def read_metadata(operation: str, folder: str) -> tuple[dict[str, StoredTensor], dict[str, Place]]:
    """Returns the tensors, and the places of the Python objects, of a folder of .distcp files, by name.

    Raises:
        ValueError: The file is not the metadata of torch.distributed.checkpoint.
        OSError: It cannot be read.
    """
    path = f"{folder}/{FILE}"
    try:
        root = _Unpickler(io.BytesIO(read_regular_file(path, _MAX_BYTES))).load()
        places = {_key(index): _place(info) for index, info in root.storage_data.items()}
        tensors, objects = {}, {}
        for name, item in root.state_dict_metadata.items():
            if not isinstance(name, str):
                raise ValueError(f"the name {safe_repr(name)}")
            if hasattr(item, "chunks"):
                tensors[name] = _tensor(name, item, places)
            else:
                objects[name] = places[name, None]
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


def _tensor(name: str, item: Any, places: dict[Any, Place]) -> StoredTensor:
    dtype = item.properties.state[0] if hasattr(item.properties, "state") else item.properties.dtype
    if not isinstance(dtype, str):
        raise ValueError(f"the dtype of {name!a} is {safe_repr(dtype)}")
    chunks = []
    for chunk in item.chunks:
        origin = _dims(chunk.offsets)
        chunks.append(Chunk(origin, _dims(chunk.sizes), places[name, origin]))
    return StoredTensor(dtype, _dims(item.size), tuple(chunks))


def _key(index: Any) -> tuple[str, tuple[int, ...] | None]:
    offset = getattr(index, "offset", None)
    return index.fqn, None if offset is None else _dims(offset)


def _dims(values: Any) -> tuple[int, ...]:
    if not isinstance(values, tuple) or not all(type(value) is int and 0 <= value < 1 << 63 for value in values):
        raise ValueError(f"sizes are {safe_repr(values)}")
    return values


def _place(info: Any) -> Place:
    begin, nbytes = _dims((info.offset, info.length))
    file = info.relative_path
    if not isinstance(file, str) or "/" in file or "\0" in file or not file or file.startswith(".."):
        raise ValueError(f"it names the file {safe_repr(file)}")
    if getattr(info, "transform_descriptors", None):
        raise ValueError(f"{file!a} is transformed by {safe_repr(info.transform_descriptors)}, which is not read here")
    return Place(file, begin, nbytes)
