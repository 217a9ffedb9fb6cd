# SPDX-License-Identifier: Apache-2.0
"""The folder in which a checkpoint is written, and its commit: one rename after everything is on the storage.

Paths are texts, as the caller of `save_async` waits for the steps before the write, and `pathlib` takes most of them.
"""

from __future__ import annotations

import errno
import fcntl
import os
import re
import stat
from contextlib import suppress
from typing import Any

from artifex_devices import _core
from artifex_devices._base.checks import wrong_type
from artifex_devices.checkpoint import manifest

_OURS = re.compile(r"shard-\d{5,}-model-\d{5,}-of-\d{5,}\.safetensors|checkpoint\.json")


def check_path(operation: str, name: str, value: Any) -> str:
    """Returns an absolute path; TypeError for other types, ValueError for text that is not valid Unicode."""
    try:
        text = os.fspath(value)
    except TypeError:
        text = b""
    if not isinstance(text, str) or not text:
        raise wrong_type(operation, name, value, "a path", 'write "checkpoints/1000"')
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ValueError(f"{operation}: {name} is {text!a}; expected a name in Unicode; rename the folder") from None
    if "\0" in text:
        raise ValueError(f"{operation}: {name} is {text!a}; expected a path without null characters; correct it")
    return os.path.abspath(text)


def is_checkpoint(folder: str) -> bool:
    """Returns whether a folder is a checkpoint of this package; OSError if it cannot be searched."""
    try:
        return stat.S_ISREG(os.stat(f"{folder}/{manifest.FILE}").st_mode)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError as error:
        if error.errno == errno.ELOOP:
            return False
        raise


def remove(folder: str) -> None:
    """Removes a checkpoint or what is left of one; OSError if it has other files, which stay."""
    with suppress(FileNotFoundError):
        names = sorted(os.listdir(folder))
        others = [name for name in names if not _OURS.fullmatch(name)]
        if others:
            raise OSError(
                errno.ENOTEMPTY,
                f"checkpoint: {folder!r} has files that are not of a checkpoint, such as {others[0]!r}; expected "
                "none; move them away",
            )
        for name in names:
            with suppress(FileNotFoundError):
                os.unlink(f"{folder}/{name}")
        os.rmdir(folder)


def sync(folder: str) -> None:
    """Waits until the storage has the entries of a folder."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


class FolderLock:
    """The lock of one save on a folder, which keeps other saves out of it."""

    def __init__(self) -> None:
        self._descriptor: int | None = None

    @property
    def is_held(self) -> bool:
        """Whether a folder is locked."""
        return self._descriptor is not None

    def take(self, folder: str) -> bool:
        """Locks a folder; returns False if there is none, BlockingIOError if another save has locked it."""
        try:
            self._descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if self.is_at(folder):
                return True
        except FileNotFoundError:
            pass
        except BaseException:
            self.release()
            raise
        self.release()  # another save has just renamed it
        return False

    def is_at(self, path: str) -> bool:
        """Returns whether the locked folder is the one at a path; False without a lock."""
        try:
            return self._descriptor is not None and os.path.samestat(os.fstat(self._descriptor), os.lstat(path))
        except FileNotFoundError:
            return False

    def release(self) -> None:
        """Unlocks the folder, if it is locked."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            os.close(descriptor)


class Staging:
    """The folder beside `target` in which a save writes, locked against other saves to the same target.

    Ctrl-C can end any step. So what is there is found on the storage, and not by variables that a step sets at its end.
    """

    def __init__(self, operation: str, target: str, overwrite: bool) -> None:
        target = _core._real_path(target) or os.path.realpath(target)  # a link stays, and its target is replaced
        self._parent, name = os.path.split(target)
        if not name:
            raise ValueError(f"{operation}: the path is {target!r}; expected that of a new folder; add a name")
        self.folder = os.path.join(self._parent, f".{name}.saving")
        self._operation = operation
        self._target = target
        self._overwrite = overwrite
        self._new = FolderLock()  # on the folder of this save, before and after it is renamed
        self._old = FolderLock()  # on the checkpoint that it replaces
        self._may_exist = False  # the folder of this save, or the old checkpoint in its place
        self._is_committed = False

    def create(self) -> None:
        """Creates the folder, and removes what an interrupted save left in it; the caller abandons it at an error.

        Raises:
            FileExistsError: The target exists and is not to be overwritten.
            ValueError: The target to be overwritten is not a checkpoint.
            BlockingIOError: Another save to the target is running.
            OSError: The folder cannot be created.
        """
        self._check_target()
        self._may_exist = True
        self._make_folder()
        while not self._lock(self._new, self.folder):
            self._make_folder()
        for name in os.listdir(self.folder):
            if not _OURS.fullmatch(name):
                raise OSError(
                    errno.ENOTEMPTY,
                    f"{self._operation}: {self.folder!r} has the file {name!r}; expected a folder that only "
                    "saves use; move it away",
                )
            os.unlink(f"{self.folder}/{name}")

    def _lock(self, lock: FolderLock, folder: str) -> bool:
        """Locks a folder, with the errors of a save; returns False if there is none."""
        try:
            return lock.take(folder)
        except BlockingIOError:
            raise BlockingIOError(
                errno.EWOULDBLOCK,
                f"{self._operation}: another save to {self._target!r} is running; expected one at a time; "
                "wait() for it, or save to another path",
            ) from None
        except OSError as error:
            raise self._cannot("create" if lock is self._new else "replace", folder, error) from None

    def _make_folder(self) -> None:
        """Creates the folder, and those above it, unless it exists."""
        with suppress(FileExistsError, FileNotFoundError, NotADirectoryError):
            os.mkdir(self.folder)
            return
        try:
            os.makedirs(self._parent, exist_ok=True)
        except FileExistsError:
            raise NotADirectoryError(
                errno.ENOTDIR,
                f"{self._operation}: {self._parent!r} is a file; expected a folder; save to another path",
            ) from None
        except OSError as error:
            raise self._cannot("create", self.folder, error) from None
        try:
            with suppress(FileExistsError):
                os.mkdir(self.folder)
        except OSError as error:
            raise self._cannot("create", self.folder, error) from None

    def _cannot(self, verb: str, folder: str, error: OSError) -> OSError:
        expected = "a checkpoint that this process can read"
        if verb == "create":
            expected = "a folder in which this process can create files; nothing was written"
        return type(error)(
            error.errno,
            f"{self._operation}: cannot {verb} {folder!r}: {error.strerror}; expected {expected}; save to another path",
        )

    def commit(self) -> None:
        """Renames the folder to the target, in one step, and removes the old target."""
        sync(self.folder)
        if self._overwrite and self._lock(self._old, self._target):
            if not _core._exchange_paths(self.folder, self._target, self._operation):
                raise OSError(
                    errno.EOPNOTSUPP,
                    f"{self._operation}: the file system of {self._target!r} cannot exchange two folders in one "
                    "step; expected a new path; save to one and remove the old folder afterwards",
                )
        else:
            self._check_target()
            os.rename(self.folder, self._target)
        self._end()

    def abandon(self) -> str:
        """Removes the folder if this save has created it, and returns what is left, as a text for an error.

        What cannot be removed is removed by the next save.
        """
        is_begun = self._may_exist
        if is_begun:
            try:
                with suppress(OSError):
                    if not self._is_committed and not self._new.is_held:  # it was interrupted between its steps
                        self._new.take(self.folder)
                    self._end()
            finally:
                self._release()  # also after another Ctrl-C
        target = repr(self._target)
        if self._is_committed:
            return f"the checkpoint {target} is complete"
        remains = f"{target} is as it was" if os.path.lexists(self._target) else f"there is nothing at {target}"
        if not is_begun:
            return remains
        if not os.path.lexists(self.folder):
            return f"{remains}; the files of this save are removed"
        return f"{remains}; the folder {self.folder!r} is left, which the next save to this path removes"

    def _end(self) -> None:
        """Removes what is at the place of the folder: it, or the old checkpoint once they are exchanged."""
        self._is_committed = self._is_committed or self._new.is_at(self._target)
        if self._is_committed:
            sync(self._parent)
        with suppress(OSError):
            if (self._old if self._is_committed else self._new).is_at(self.folder):
                remove(self.folder)
        self._release()
        self._may_exist = False

    def _release(self) -> None:
        self._new.release()
        self._old.release()

    def _check_target(self) -> None:
        target = self._target
        if self._overwrite and is_checkpoint(target):
            return
        if not os.path.lexists(target):
            return
        if not self._overwrite:
            raise FileExistsError(
                errno.EEXIST,
                f"{self._operation}: {target!r} exists; expected a new path; pass overwrite=True to replace it",
            )
        raise ValueError(
            f"{self._operation}: {target!r} exists and is not a checkpoint; expected a folder with {manifest.FILE}; "
            "save to another path"
        )
