# SPDX-License-Identifier: Apache-2.0
"""restore: each process reads exactly the bytes of its shards."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np

from artifex_devices import tree_util
from artifex_devices._array.shape_dtype import ShapeDtypeStruct
from artifex_devices._base.checks import check_bool, failure, wrong_type
from artifex_devices._base.leaf_types import PyTree, Tree
from artifex_devices._base.refused_arguments import hides_unknown, unknown_argument
from artifex_devices._base.text import shortened
from artifex_devices._core import Array, Sharding
from artifex_devices._placement.device_put import device_put
from artifex_devices._placement.target import PLACES, resolve_target, sharding_of_new
from artifex_devices.checkpoint.folders import StrPath, check_path
from artifex_devices.checkpoint.manifest import VALUE_TYPES, damaged
from artifex_devices.checkpoint.named_leaves import list_of, name_leaves, tree_of
from artifex_devices.checkpoint.opening import open_reader
from artifex_devices.checkpoint.readers.reader import Reader
from artifex_devices.checkpoint.reporting import check_progress, run_reported
from artifex_devices.layout import Format

_SHOWN = 8  # faults in a message
_OPERATION = "checkpoint.restore"


@hides_unknown
def restore(
    path: StrPath | Reader,
    like: Tree = None,
    *,
    strict: bool = True,
    verify: bool = False,
    follow_links: bool = False,
    progress: Callable[[int], None] | None = None,
    **_unknown: NoReturn,
) -> PyTree:
    """Restores a checkpoint of `save`, or of another program in any format that `checkpoint.open` reads.

    Each process reads only the boxes of its devices, whatever the shardings and the number of processes were at the
    save. Leaves are found by their names: the path in the tree, such as `params.layers.0.weight`.

    Args:
        path: Folder or file of the checkpoint, or its Reader. safetensors files have precedence in a folder of several
            formats.
        like: Tree of the leaves to restore. A ShapeDtypeStruct with a sharding, an Array, a Sharding or another target
            of `device_put` becomes an Array so placed; a target takes shape and dtype of the checkpoint. A
            ShapeDtypeStruct without a sharding and an ndarray become ndarrays. A bool, int, float, complex number or
            text becomes the stored value. None restores everything as ndarrays and values: in the dicts and lists of
            the saved tree, or, from files of other programs, in a dict by name.
        strict: Whether a name in the checkpoint that `like` lacks is an error.
        verify: Whether checksums are compared; pieces of 1 MiB are then read completely.
        follow_links: Whether files may be links that leave the folder, as in `checkpoint.open`.
        progress: Called with the number of bytes that this process has read so far: ten times a second on another
            thread, and at the end.

    Returns:
        The tree, in the structure of `like`.

    Raises:
        FileNotFoundError: `path` has no checkpoint.
        TypeError: A leaf of `like` is of another type.
        ValueError: Names, shapes or dtypes differ from the checkpoint, or it is damaged; a link leaves the folder.
        ModuleNotFoundError: The format needs a library that is not installed.
        OSError: A file cannot be read.
        ResourceExhaustedError: The arrays do not fit in memory.

    Example:
        >>> import tempfile
        >>> import artifex_devices as ad
        >>> import numpy as np
        >>> from artifex_devices import checkpoint
        >>> folder = tempfile.TemporaryDirectory()
        >>> checkpoint.save(f"{folder.name}/10", {"w": np.arange(16.0).reshape(8, 2)})
        >>> mesh = ad.make_mesh((4, 2), ("x", "y"))
        >>> tree = checkpoint.restore(f"{folder.name}/10", {"w": ad.NamedSharding(mesh, ad.P("x", "y"))})
        >>> tree["w"].addressable_shards[0].data.shape
        (2, 1)
    """
    if _unknown:
        raise unknown_argument("checkpoint.restore", _unknown)
    check_bool(_OPERATION, "strict", strict)
    check_bool(_OPERATION, "verify", verify)
    check_bool(_OPERATION, "follow_links", follow_links)
    check_progress(_OPERATION, progress)
    if isinstance(path, Reader):
        return _restore(path, like, strict, verify, progress)
    name = check_path(_OPERATION, "path", path)
    with open_reader(_OPERATION, name, None, follow_links, prefers_stored=True) as reader:
        return _restore(reader, like, strict, verify, progress)


def _restore(reader: Reader, like: Tree, strict: bool, verify: bool, progress: Callable[[int], None] | None) -> PyTree:
    if like is None:
        names = [*reader._arrays, *reader.values]
        leaves: list[Any] = _read(reader, [(name, None) for name in reader._arrays], verify, progress)
        leaves += reader.values.values()
        try:
            return tree_of(names, leaves, reader.paths)
        except ValueError as error:
            raise damaged(_OPERATION, reader.path, "path", error) from None
    leaves, structure = tree_util.tree_flatten(like)
    leaves = [resolve_target(_OPERATION, leaf) if isinstance(leaf, PLACES) else leaf for leaf in leaves]
    names = name_leaves(_OPERATION, structure)
    _check_names(reader, names, strict)
    faults: list[str] = []
    for name, leaf in zip(names, leaves, strict=True):
        fault = _fault(reader, name, leaf)
        if fault:
            faults.append(f"{name!a} {fault}")
    if faults:
        raise ValueError(
            f"{_OPERATION}: {'; '.join(shortened(faults, _SHOWN))}; give the shapes and dtypes of "
            f"checkpoint.open({reader.path!r})"
        )
    requests = [(name, _sharding(leaf)) for name, leaf in zip(names, leaves, strict=True) if name in reader._arrays]
    arrays = iter(_read(reader, requests, verify, progress))
    found = [next(arrays) if name in reader._arrays else reader.values[name] for name in names]
    return tree_util.tree_unflatten(structure, list(map(_finished, leaves, found)))


def _check_names(reader: Reader, names: list[str], strict: bool) -> None:
    available = {**reader._arrays, **reader.values}
    missing = [name for name in names if name not in available]
    if missing:
        raise ValueError(
            f"{_OPERATION}: the checkpoint {reader.path!r} does not have {list_of(missing)}; it has "
            f"{list_of(list(available)) or 'nothing'}; remove the leaves from `like`, or rename them"
        )
    wanted = set(names)
    unexpected = [name for name in available if name not in wanted]
    if strict and unexpected:
        raise failure(
            ValueError,
            _OPERATION,
            f"`like` does not have {list_of(unexpected)} of the checkpoint {reader.path!r}",
            expected="a leaf for each name",
            fix="add them, or pass strict=False to leave them out",
        )


def _fault(reader: Reader, name: str, leaf: object) -> str:
    """Returns how a leaf differs from the stored leaf, or an empty text; TypeError for a leaf of another type."""
    array = reader._arrays.get(name)
    if type(leaf) in VALUE_TYPES:
        if name not in reader.values:
            return f"is an array in the checkpoint; expected a value of type {type(leaf).__name__}"
        kind = type(reader.values[name])
        return "" if kind is type(leaf) else f"is a value of type {kind.__name__}; expected {type(leaf).__name__}"
    if not isinstance(leaf, (Array, ShapeDtypeStruct, np.ndarray, np.generic, *PLACES)):
        expected = "a ShapeDtypeStruct, a Sharding, an Array, an ndarray or a number"
        raise wrong_type(_OPERATION, f"the leaf {name!a} of `like`", leaf, expected, "write ad.ShapeDtypeStruct(...)")
    if array is None:
        return f"is the value {reader.values[name]!a} in the checkpoint; expected an array"
    if array.dtype is None:
        return f"is stored as {array.type}, which has no dtype here"
    if isinstance(leaf, PLACES):
        return ""
    if tuple(leaf.shape) == array.shape and leaf.dtype == array.dtype:
        return ""
    return (
        f"is {array.dtype.name} of shape {array.shape} in the checkpoint; expected {leaf.dtype} of shape {leaf.shape}"
    )


def _sharding(leaf: object) -> Sharding | None:
    """Returns the sharding of the Array to read into, or None for an ndarray."""
    sharding: Sharding | None = (
        sharding_of_new(_OPERATION, leaf) if isinstance(leaf, PLACES) else getattr(leaf, "sharding", None)
    )
    return sharding


def _finished(leaf: Any, value: Any) -> Any:
    """Returns the value that was read in the form that the leaf asks for."""
    if isinstance(leaf, Format):
        return device_put(value, leaf, donate=True)  # files are row-major
    return value[()] if isinstance(leaf, np.generic) else value


def _read(
    reader: Reader,
    requests: list[tuple[str, Sharding | None]],
    verify: bool,
    progress: Callable[[int], None] | None,
) -> list[Any]:
    found: list[Any] = []
    before = reader._count_read()

    def read() -> None:
        found.extend(reader._restore(_OPERATION, requests, verify))

    run_reported(read, lambda: reader._count_read() - before, progress)
    return found
