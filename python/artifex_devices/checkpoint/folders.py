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


class Staging:
    """The folder beside `target` in which a save writes, locked against other saves to the same target."""

    def __init__(self, operation: str, target: str, overwrite: bool) -> None:
        target = _core._real_path(target) or os.path.realpath(target)  # a link stays, and its target is replaced
        self._parent, name = os.path.split(target)
        if not name:
            raise ValueError(f"{operation}: the path is {target!r}; expected that of a new folder; add a name")
        self.folder = os.path.join(self._parent, f".{name}.saving")
        self._operation = operation
        self._target = target
        self._overwrite = overwrite
        self._descriptor: int | None = None
        self._is_committed = False

    def create(self) -> None:
        """Creates the folder, and removes what an interrupted save left in it.

        Raises:
            FileExistsError: The target exists and is not to be overwritten.
            ValueError: The target to be overwritten is not a checkpoint.
            BlockingIOError: Another save to the target is running.
            OSError: The folder cannot be created.
        """
        self._check_target()
        while True:
            self._make_folder()
            try:
                descriptor = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            except FileNotFoundError:
                continue  # another save has just renamed it
            except OSError as error:
                raise self._cannot_create(error) from None
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if not os.path.samestat(os.fstat(descriptor), os.stat(self.folder)):
                    raise FileNotFoundError
            except FileNotFoundError:
                os.close(descriptor)
                continue
            except BlockingIOError:
                os.close(descriptor)
                raise BlockingIOError(
                    errno.EWOULDBLOCK,
                    f"{self._operation}: another save to {self._target!r} is running; expected one at a time; "
                    "wait() for it, or save to another path",
                ) from None
            except BaseException:
                os.close(descriptor)
                raise
            break
        self._descriptor = descriptor
        try:
            for name in os.listdir(self.folder):
                if not _OURS.fullmatch(name):
                    raise OSError(
                        errno.ENOTEMPTY,
                        f"{self._operation}: {self.folder!r} has the file {name!r}; expected a folder that only "
                        "saves use; move it away",
                    )
                os.unlink(f"{self.folder}/{name}")
        except BaseException:
            self._unlock()
            raise

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
            raise self._cannot_create(error) from None
        try:
            with suppress(FileExistsError):
                os.mkdir(self.folder)
        except OSError as error:
            raise self._cannot_create(error) from None

    def _cannot_create(self, error: OSError) -> OSError:
        return type(error)(
            error.errno,
            f"{self._operation}: cannot create {self.folder!r}: {error.strerror}; expected a folder in which this "
            "process can create files; nothing was written, save to another path",
        )

    def commit(self) -> None:
        """Renames the folder to the target, in one step, and removes the old target."""
        sync(self.folder)
        if self._overwrite and os.path.exists(self._target):
            if not _core._exchange_paths(self.folder, self._target, self._operation):
                raise OSError(
                    errno.EOPNOTSUPP,
                    f"{self._operation}: the file system of {self._target!r} cannot exchange two folders in one "
                    "step; expected a new path; save to one and remove the old folder afterwards",
                )
            self._is_committed = True
            sync(self._parent)
            with suppress(OSError):  # what stays is removed by the next save
                remove(self.folder)
        else:
            self._check_target()
            os.rename(self.folder, self._target)
            self._is_committed = True
            sync(self._parent)
        self._unlock()

    def abandon(self) -> None:
        """Removes the folder if it was created; what cannot be removed is removed by the next save."""
        if self._descriptor is None:
            return
        with suppress(OSError):
            remove(self.folder)
        self._unlock()

    @property
    def is_created(self) -> bool:
        """Whether this process has created the folder, and has neither committed nor abandoned it."""
        return self._descriptor is not None

    def describe_target(self) -> str:
        """Returns what an unsuccessful save has left at the target, for its error."""
        target = repr(self._target)
        if self._is_committed:
            return f"the checkpoint {target} is complete"
        return f"{target} is as it was" if os.path.lexists(self._target) else f"there is nothing at {target}"

    def describe_folder(self) -> str:
        """Returns what an abandoned save of this process has left beside the target, for its error."""
        if not os.path.lexists(self.folder):
            return "the files of this save are removed"
        return f"the folder {self.folder!r} is left, which the next save to this path removes"

    def _unlock(self) -> None:
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            os.close(descriptor)

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
