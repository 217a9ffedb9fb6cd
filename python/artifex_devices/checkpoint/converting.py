# SPDX-License-Identifier: Apache-2.0
"""convert: a checkpoint in another format, for another job, with changes by rules; piece by piece, without a device."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from artifex_devices._base.checks import (
    check_bool,
    check_choice,
    check_int,
    check_type,
    failure,
    wrong_type,
)
from artifex_devices._base.digest import digest_of
from artifex_devices._base.leaf_types import Tree
from artifex_devices._base.raised_exceptions import set_attribute
from artifex_devices._base.text import bytes_text, parse_bytes
from artifex_devices._core import Mesh, internal
from artifex_devices.checkpoint.conversion import Conversion
from artifex_devices.checkpoint.executing import Execution, worker_count
from artifex_devices.checkpoint.folders import StrPath, check_path
from artifex_devices.checkpoint.named_leaves import list_of
from artifex_devices.checkpoint.opening import open_reader
from artifex_devices.checkpoint.partial_folder import PartialFolder, has_changed, identity_of
from artifex_devices.checkpoint.planning import plan_conversion
from artifex_devices.checkpoint.readers.reader import Reader
from artifex_devices.checkpoint.reporting import check_progress, run_reported
from artifex_devices.checkpoint.rule import Rule, check_pattern, fields_of
from artifex_devices.checkpoint.target_parts import equal_parts, processes_of, sharded_parts
from artifex_devices.checkpoint.target_tree import TargetTree
from artifex_devices.checkpoint.writers.artifex_writer import ArtifexWriter
from artifex_devices.checkpoint.writers.dcp_writer import DcpWriter
from artifex_devices.checkpoint.writers.npz_writer import NpzWriter
from artifex_devices.checkpoint.writers.orbax_writer import OrbaxWriter
from artifex_devices.checkpoint.writers.safetensors_writer import SafetensorsWriter
from artifex_devices.checkpoint.writers.writer import Target, Writer

_OPERATION = "checkpoint.convert"
WRITERS: dict[str, type[Writer]] = {
    each.format: each for each in (ArtifexWriter, SafetensorsWriter, DcpWriter, OrbaxWriter, NpzWriter)
}


def convert(
    source: StrPath | Reader,
    target: StrPath,
    *,
    like: Tree = None,
    mesh: Mesh | None = None,
    num_files: int = 1,
    rules: Rule | Iterable[Rule] = (),
    format: str = "artifex",
    dtype: DTypeLike | None = None,
    max_shard_size: int | str | None = None,
    allow_missing: Sequence[str] = (),
    allow_extra: Sequence[str] = (),
    dry_run: bool = False,
    overwrite: bool = False,
    follow_links: bool = False,
    progress: Callable[[int], None] | None = None,
) -> Conversion:
    """Writes the arrays and values of a checkpoint to a new checkpoint: for another job, in another format or layout.

    Arrays are read, changed and written in pieces of at most 64 MiB: no array is in memory as a whole, and no device is
    used. The target appears in one step, when it is complete. Until then `TARGET.partial` has its files. After a kill,
    Ctrl-C or an error of the storage, the same call verifies the finished files and continues.

    Args:
        source: Path of a checkpoint in any format that `open` reads, or a reader.
        target: Folder of the new checkpoint; a file for the format "npz", and for a name that ends in ".safetensors".
        like: Tree of the new checkpoint as `restore` takes it in the future job: Shardings, ShapeDtypeStructs, arrays
            and values. Each process of the shardings gets a file with what it reads. Names left over on either side are
            an error. None takes all arrays after the rules.
        mesh: Mesh of the future job instead of `like`: each of its processes gets an equal part of each array.
        num_files: Number of processes instead of `mesh`.
        rules: Rules of `checkpoint.rules`, in their order.
        format: "artifex", "safetensors", "dcp" (torch.distributed.checkpoint in safetensors files), "orbax" or "npz".
        dtype: Dtype of all arrays of floating-point numbers; None leaves them as they are after the rules.
        max_shard_size: Largest size of a safetensors file, in bytes or as text such as "5 GB"; a larger array has its
            own file. None writes one file.
        allow_missing: Patterns of names in `like` that the source may lack.
        allow_extra: Patterns of arrays and values that are left out if `like` or the format lacks them.
        dry_run: Whether only the plan is made and checked.
        overwrite: Whether a checkpoint of this package at `target` is replaced.
        follow_links: As in `open`.
        progress: Called with the number of bytes written so far, or verified after a kill: ten times a second on
            another thread, and at the end.

    Returns:
        A Conversion, whose text has bytes, seconds and rate, or the table of a dry run.

    Raises:
        FileNotFoundError: `source` has no checkpoint.
        FileExistsError: `target` exists and `overwrite` is false.
        ValueError: The source is damaged; rules do not fit; names are left over on either side; the format cannot store
            an array or a value; `TARGET.partial` is of another call, or the source has changed since.
        TypeError: An argument or a leaf of `like` is of another type.
        BlockingIOError: Another conversion to `target` is running.
        OSError: A file cannot be read or written.

    Example:
        >>> import tempfile
        >>> import numpy as np
        >>> from artifex_devices import checkpoint
        >>> from artifex_devices.checkpoint import rules
        >>> folder = tempfile.TemporaryDirectory()
        >>> checkpoint.save(f"{folder.name}/one", {"up.w": np.arange(6.0).reshape(2, 3)})
        >>> done = checkpoint.convert(
        ...     f"{folder.name}/one",
        ...     f"{folder.name}/model.safetensors",
        ...     rules=[rules.transpose("*.w", (1, 0)), rules.rename("*.w", "*/kernel")],
        ...     format="safetensors",
        ... )
        >>> with checkpoint.open(f"{folder.name}/model.safetensors") as reader:
        ...     reader.read("up/kernel").tolist()
        [[0.0, 3.0], [1.0, 4.0], [2.0, 5.0]]
    """
    check_choice(_OPERATION, "format", format, tuple(WRITERS))
    for name, value in (("dry_run", dry_run), ("overwrite", overwrite), ("follow_links", follow_links)):
        check_bool(_OPERATION, name, value)
    check_int(_OPERATION, "num_files", num_files, "write 1", minimum=1, maximum=99_999)
    check_progress(_OPERATION, progress)
    path = check_path(_OPERATION, "target", target)
    _check_suffix(path, format)
    rules = [Rule(**fields) for fields in fields_of(_OPERATION, rules)]
    floats = None if dtype is None else _float_dtype(dtype)
    shard_bytes = _shard_bytes(max_shard_size, format)
    patterns = [_patterns("allow_missing", allow_missing), _patterns("allow_extra", allow_extra)]
    if sum((like is not None, mesh is not None, num_files != 1)) > 1:
        raise failure(
            ValueError,
            _OPERATION,
            "two of like, mesh and num_files are given",
            expected="one, because each says which processes read the target",
            fix="leave the others out",
        )
    if mesh is not None:
        check_type(_OPERATION, "mesh", mesh, Mesh, "a Mesh", "write ad.make_mesh((8,), ('x',))")
    tree = None if like is None else TargetTree(_OPERATION, like)
    reader = (
        source
        if isinstance(source, Reader)
        else open_reader(_OPERATION, check_path(_OPERATION, "source", source), None, follow_links, prefers_stored=True)
    )
    try:
        begin_s = time.monotonic()
        sources = reader._types(_OPERATION)
        expected = None
        if tree is not None:
            expected = tree.types(lambda: plan_conversion(_OPERATION, sources, rules, floats=floats).targets())
        plan = plan_conversion(_OPERATION, sources, rules, expected, floats, *patterns)
        arrays = {name: (shape, dtype) for name, shape, dtype in plan.targets()}
        parts = (
            sharded_parts(arrays, tree.shardings)
            if tree is not None
            else equal_parts(arrays, num_files if mesh is None else len(processes_of(mesh)))
        )
        paths = tree.paths if tree is not None else {} if rules else reader.paths
        values = _values(reader, WRITERS[format], None if tree is None else tree.values, *patterns)
        writer = WRITERS[format](Target(_OPERATION, path, arrays, parts, values, paths, shard_bytes))
        execution = Execution(plan, reader, writer)
        seconds = None
        if not dry_run:
            call = _digest((sources, rules, floats, format, writer.target))
            _execute(execution, reader, writer, call, overwrite, progress)
            seconds = time.monotonic() - begin_s
        text = plan.text(worker_count(), execution.scratch_bytes)
        if reader._kept_bytes:
            text += f"; the reader of {reader.format} needs at most {bytes_text(reader._kept_bytes)} more"
        return Conversion(path, format, writer.names(), plan.bytes_written, seconds, text)
    finally:
        if reader is not source:
            reader.close()


def _execute(
    execution: Execution,
    reader: Reader,
    writer: Writer,
    call: str,
    overwrite: bool,
    progress: Callable[[int], None] | None,
) -> None:
    """Writes the files, and renames them to the target."""
    partial = PartialFolder(_OPERATION, writer.target.path, overwrite)
    try:
        source = identity_of(reader.path, partial.outer)
        finished = partial.resume(call, _digest(source[1:]))
        run_reported(
            lambda: execution.run(partial.folder, partial.scratch, finished, partial.add),
            lambda: execution.bytes_done,
            progress,
        )
        if has_changed(reader.path, partial.outer, source):
            raise failure(
                ValueError,
                _OPERATION,
                f"files of {reader.path!r} have changed while they were read",
                expected="a checkpoint that nothing writes to",
                fix="convert it again",
            )
        partial.complete(writer.files()[0].name if writer.writes_one_file else None)
    except BaseException as error:
        remains = partial.leave(keeps_files=isinstance(error, (OSError, KeyboardInterrupt)))
        if isinstance(error, OSError) and isinstance(error.strerror, str) and partial.is_begun:
            set_attribute(error, "strerror", f"{error.strerror}; {remains}")
        elif isinstance(error, KeyboardInterrupt):
            set_attribute(error, "args", (f"{_OPERATION}: interrupted; {remains}",))
        raise


def _check_suffix(path: str, format: str) -> None:
    """Raises ValueError for a target that is named like a file of another format."""
    suffix = os.path.splitext(path)[1]
    named = {".safetensors": "safetensors", ".npz": "npz"}.get(suffix, format)
    if named != format:
        raise failure(
            ValueError,
            _OPERATION,
            f"the target ends in {suffix!r}, and format is {format!r}",
            expected=f"format={named!r}",
            fix=f"pass format={named!r}, or rename the target",
        )


def _digest(identity: object) -> str:
    return digest_of(repr(identity)).hex()


def _values(
    reader: Reader,
    writer: type[Writer],
    like: Mapping[str, Any] | None,
    allow_missing: list[str],
    allow_extra: list[str],
) -> dict[str, Any]:
    """Returns the Python values of the target; ValueError for values that are left over on either side."""
    values = dict(reader.values)
    extra = [name for name in values if not writer.has_values or (like is not None and name not in like)]
    allowed = internal.matching_names(allow_extra, extra, _OPERATION)
    refused = [name for name in extra if name not in allowed]
    if refused:
        why = "like does not have" if writer.has_values else f"the format {writer.format!r} cannot store"
        raise failure(
            ValueError,
            _OPERATION,
            f"{why} the values {list_of(refused)}",
            expected="only arrays" if not writer.has_values else "the values of like",
            fix=f"pass allow_extra={refused!r} to leave them out",
        )
    if like is not None:
        missing = [name for name, kind in like.items() if type(values.get(name)) is not kind]
        allowed = internal.matching_names(allow_missing, missing, _OPERATION)
        refused = [name for name in missing if name not in allowed]
        if refused:
            raise failure(
                ValueError,
                _OPERATION,
                f"the source does not have the values {list_of(refused)} of like, of their types",
                expected="all values of like",
                fix=f"pass allow_missing={refused!r}",
            )
    return {name: value for name, value in values.items() if name not in extra}


def _float_dtype(dtype: DTypeLike) -> np.dtype[Any]:
    found: np.dtype[Any] = internal.rule_dtype(dtype, _OPERATION)
    return found


def _shard_bytes(size: object, format: str) -> int | None:
    """Returns the bytes of a size; ValueError for a text that is not a size, and for other formats."""
    if size is None:
        return None
    fix = 'write max_shard_size="5 GB"'
    if not isinstance(size, str):
        what = 'bytes or a text such as "5 GB"'
        found: int | None = check_int(_OPERATION, "max_shard_size", size, fix, minimum=1, expected=what)
    else:
        found = parse_bytes(size)
        if not found:
            raise failure(ValueError, _OPERATION, f"max_shard_size is {size!a}", expected="a positive size", fix=fix)
    if format != "safetensors":
        raise failure(
            ValueError,
            _OPERATION,
            f"max_shard_size is given with format={format!r}",
            expected="None, because processes decide its files",
            fix="pass num_files, mesh or like",
        )
    return found


def _patterns(name: str, patterns: object) -> list[str]:
    if isinstance(patterns, (str, bytes)) or not isinstance(patterns, Sequence):
        raise wrong_type(_OPERATION, name, patterns, "a list of patterns of names", f'write {name}=["lm_head.*"]')
    return [check_pattern(_OPERATION, f"{name}[{number}]", each) for number, each in enumerate(patterns)]
