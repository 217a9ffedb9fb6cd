# SPDX-License-Identifier: Apache-2.0
"""save and save_async: every process writes its own part, and the first one commits the checkpoint."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np

from artifex_devices import tree_util
from artifex_devices._base.checks import check_bool, failure, wrong_type
from artifex_devices._base.digest import digest_of
from artifex_devices._base.leaf_types import Tree
from artifex_devices._base.raised_exceptions import set_attribute
from artifex_devices._base.refused_arguments import hides_unknown, unknown_argument
from artifex_devices._core import Array, internal
from artifex_devices._placement.host_local import spans_processes
from artifex_devices.checkpoint import manifest
from artifex_devices.checkpoint.folders import StagingFolder, StrPath, check_path
from artifex_devices.checkpoint.future import SaveFuture
from artifex_devices.checkpoint.manifest import VALUE_TYPES, Manifest
from artifex_devices.checkpoint.named_leaves import name_leaves, path_of
from artifex_devices.checkpoint.processes import CheckpointProcesses
from artifex_devices.checkpoint.reporting import check_progress, run_reported


@hides_unknown
def save(
    path: StrPath,
    tree: Tree,
    *,
    overwrite: bool = False,
    progress: Callable[[int], None] | None = None,
    **_unknown: NoReturn,
) -> None:
    """Saves a tree of arrays as a checkpoint.

    The checkpoint appears at `path` in one step, after everything is on the storage; an interrupted save leaves what
    was there before. With several processes, every process must call it, with a path on storage that they share: each
    process writes the parts of Arrays that it holds, and processes that hold the same part divide it evenly. Process 0
    writes ndarrays and Python values.

    Args:
        path: Folder of the checkpoint; folders above it are created.
        tree: Tree of Arrays, ndarrays, NumPy scalars, bools, ints, floats, complex numbers and texts.
        overwrite: Whether a checkpoint at `path` is replaced.
        progress: Called with the number of bytes that this process has written so far: ten times a second on another
            thread, and when its files are written.

    Raises:
        FileExistsError: `path` exists and `overwrite` is false.
        TypeError: A leaf is of another type.
        ValueError: Two leaves have the same name, `path` is not a checkpoint that could be replaced, or an Array is
            only on devices of this process, of several.
        OSError: A file cannot be written, or the checkpoint to be replaced contains files that no save wrote.
        BlockingIOError: Another save to `path` is running.
        CollectiveError: Another process failed, is missing or saves another tree.

    Example:
        >>> import tempfile
        >>> import artifex_devices as ad
        >>> import numpy as np
        >>> from artifex_devices import checkpoint
        >>> folder = tempfile.TemporaryDirectory()
        >>> mesh = ad.make_mesh((8,), ("x",))
        >>> w = ad.device_put(np.arange(16.0), ad.NamedSharding(mesh, ad.P("x")))
        >>> checkpoint.save(f"{folder.name}/10", {"w": w, "step": 10})
        >>> checkpoint.restore(f"{folder.name}/10", {"w": w, "step": 0})["step"]
        10
    """
    if _unknown:
        raise unknown_argument("checkpoint.save", _unknown)
    check_progress("checkpoint.save", progress)
    Save("checkpoint.save", path, tree, overwrite).run(progress)


def save_async(path: StrPath, tree: Tree, *, overwrite: bool = False) -> SaveFuture:
    """Starts to save a tree and returns at once; a thread writes it.

    Arrays are immutable, so nothing is copied: the caller may delete or donate them at once, and their memory is held
    until it is written. ndarrays are copied. The interpreter waits at exit for saves that are running. With several
    processes, all of them call it and, later, `wait()`, which commits the checkpoint. An error that no
    `wait()` raised is reported as a RuntimeWarning, at exit at the latest.

    Args:
        path: As in `save`.
        tree: As in `save`.
        overwrite: As in `save`.

    Returns:
        A SaveFuture: `wait()` returns when the checkpoint exists, or raises the error of the save.

    Raises:
        FileExistsError: As in `save`; also TypeError, ValueError and BlockingIOError. `wait()` raises other errors.

    Example:
        >>> import tempfile
        >>> import numpy as np
        >>> from artifex_devices import checkpoint
        >>> folder = tempfile.TemporaryDirectory()
        >>> future = checkpoint.save_async(f"{folder.name}/10", {"w": np.ones(4)})
        >>> future.wait()
        >>> checkpoint.metadata(f"{folder.name}/10").arrays["w"].shape
        (4,)
    """
    return SaveFuture(Save("checkpoint.save_async", path, tree, overwrite, is_async=True))


class Save:
    """One save with checked arguments. `run` does it; a SaveFuture starts, writes and commits it on two threads.

    `commit` commits the written folder, in process 0.
    """

    def __init__(
        self,
        operation: str,
        path: StrPath,
        tree: Tree,
        overwrite: bool,
        *,
        is_async: bool = False,
        commit: Callable[[StagingFolder], None] = StagingFolder.commit,
    ) -> None:
        self.path = check_path(operation, "path", path)
        check_bool(operation, "overwrite", overwrite)
        self._commit_staging = commit
        self._is_started = self._is_written = False  # by all processes
        self.operation = operation
        self._leaves, self._structure = tree_util.tree_flatten(tree)
        self._part = internal.SavePart(operation)
        spanning_client, others = self._part.add_arrays(self._leaves)
        self._is_async = is_async
        self._processes = CheckpointProcesses(spanning_client or internal.current_client(), operation)
        self.has_several_processes = self._processes.count > 1
        self._staging = StagingFolder(operation, self.path, overwrite)
        if others:
            self._add_others(others, copies=is_async)
        self._names: list[str] = []
        self._manifest = Manifest({}, {}, self._processes.count, {})

    @property
    def nbytes(self) -> int:
        """Bytes that this process writes."""
        return self._part.bytes

    @property
    def bytes_written(self) -> int:
        """Bytes that this process has written so far."""
        return self._part.bytes_written

    def run(self, progress: Callable[[int], None] | None = None) -> None:
        """Creates the folder, writes the files of this process, and commits the checkpoint with the other processes."""
        try:
            self.start()
            self._processes.step("written", lambda: run_reported(self.write, lambda: self.bytes_written, progress))
            self._finish()
        except BaseException as error:
            self.give_up(error)
            raise

    def start(self) -> None:
        """Creates the folder; after an error the caller gives up."""
        if not self._is_async or self.has_several_processes:
            self._name()  # otherwise the thread does it: the caller waits for this method
        self._processes.step("start", self._create, identity=self._identity())
        self._is_started = True

    def write(self) -> None:
        """Writes the files of this process, on any thread; after an error the caller commits with it."""
        if not self._names:
            self._name()
        self._part.write(self._staging.folder, self._names, self._processes.index)
        self._leaves = []  # the part has released their memory

    def commit(self, error: BaseException | None = None) -> None:
        """Waits until all processes have written, then commits; `error` is the error of `write`."""

        def raise_error() -> None:
            if error is not None:
                raise error

        try:
            self._processes.step("written", raise_error)
            self._finish()
        except BaseException as raised:
            self.give_up(raised)
            raise

    def _finish(self) -> None:
        self._is_written = True
        self._processes.step("committed", self._commit)

    def give_up(self, error: BaseException) -> None:
        """Removes the written files, and adds to the error which files are left."""
        remains = self._staging.abandon()
        if isinstance(error, OSError) and not self._is_started:
            return  # it is about the path, and nothing was written
        if self._processes.index != 0 and self._is_written:
            remains = f"{self.path!r} is the new checkpoint if process 0 has committed it, else unchanged"
        if isinstance(error, OSError) and isinstance(error.strerror, str):
            set_attribute(error, "strerror", f"{error.strerror}; {remains}")
        elif isinstance(error, (KeyboardInterrupt, MemoryError, RuntimeError)):
            text = f"{error}; {remains}" if error.args else f"{self.operation}: interrupted; {remains}"
            set_attribute(error, "args", (text,))

    def _add_others(self, numbers: list[int], *, copies: bool) -> None:
        """Adds the leaves that are not Arrays. Process 0 saves ndarrays; other types are a TypeError."""
        leaves = self._leaves
        ndarrays: dict[int, Any] = {}
        for number in numbers:
            leaf = leaves[number]
            if type(leaf) in VALUE_TYPES:
                continue
            if not isinstance(leaf, (np.ndarray, np.generic)):
                name = name_leaves(self.operation, self._structure)[number]
                expected = "an Array, ndarray, number or text"
                raise wrong_type(self.operation, f"the leaf {name!r}", leaf, expected, "convert it by np.asarray(x)")
            if copies and isinstance(leaf, np.ndarray):
                leaf = leaves[number] = np.array(leaf)
            ndarrays[number] = leaf
        if self._processes.index == 0:
            self._part.add_ndarrays(ndarrays, self.operation)

    def _name(self) -> None:
        """Names the leaves, and describes them in the manifest."""
        names = self._names = name_leaves(self.operation, self._structure)
        paths = map(path_of, self._structure.paths())
        self._manifest.paths.update((name, path) for name, path in zip(names, paths, strict=True) if path != (name,))
        for name, leaf in zip(names, self._leaves, strict=True):
            if type(leaf) in VALUE_TYPES:
                self._manifest.values[name] = leaf
                continue
            self._manifest.arrays[name] = (leaf.shape, leaf.dtype)
            if self.has_several_processes and isinstance(leaf, Array) and not spans_processes(leaf):
                holder = next(iter(leaf.sharding.device_set)).process_index
                raise failure(
                    ValueError,
                    self.operation,
                    f"the Array {name!r} is only on devices of process {holder}",
                    expected="one on devices of all processes, as each process has another value",
                    fix="save np.asarray(x) of process 0, or place it by device_put(x, NamedSharding(mesh, P()))",
                )

    def _create(self) -> None:
        if self._processes.index == 0:
            self._staging.create()

    def _commit(self) -> None:
        if self._processes.index != 0:
            return
        manifest.write(self._staging.folder, self._manifest)
        self._commit_staging(self._staging)

    def _identity(self) -> str:
        if self._processes.count == 1:
            return ""
        rows = [(name, shape, dtype.name) for name, (shape, dtype) in self._manifest.arrays.items()]
        text = repr((self.path, rows, list(self._manifest.values)))
        return digest_of(text).hex()
