# SPDX-License-Identifier: Apache-2.0
"""The states of the folder of a checkpoint, and every step between them.

    nothing --create--> staged --commit--> committed --retire--> retired --remove--> nothing

A save writes into the staged folder `.NAME.saving`, which it has locked. `commit` renames it to NAME; if that replaces
a checkpoint, one step exchanges the two, and the old one is removed from where the new one was. A Manager retires old
checkpoints: it renames NAME to `.NAME.removed`, and removes that. Each step is one call of the system, which another
process may have done: the state is found on the storage.

Rules for all steps:

- A folder belongs to one save; none is used again. So a reader that has opened it reads files of this save only.
- Files that no save wrote are not removed, and links are not followed: a save that would have to remove such a file is
  an error before it writes, and a Manager leaves the checkpoint.

Paths are strings, because the caller of `save_async` waits for the steps before the write, and `pathlib` would take
most of that time.
"""

from __future__ import annotations

import errno
import itertools
import os
import re
import stat
import time
from contextlib import suppress
from typing import Any, TypeAlias

from artifex_devices._base.checks import failure, wrong_type
from artifex_devices._core import internal
from artifex_devices.checkpoint import commit_times, manifest

_OURS = re.compile(
    rf"shard-\d{{5,}}-model-\d{{5,}}-of-\d{{5,}}\.safetensors|{re.escape(manifest.FILE)}|{re.escape(commit_times.FILE)}"
)
_RETIRED = re.compile(r"\.[0-9]+(\.[0-9]+)?\.removed")
StrPath: TypeAlias = str | os.PathLike[str]

_POLL_S = 0.005  # interval at which a Manager tries to lock the folder of its run
_RUN_LOCK_S = 60.0  # longest wait for it; a Manager holds it for a few calls of the system


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


def _own_files(operation: str, folder: str, descriptor: int, fix: str) -> list[str]:
    """Returns the names of the files in an open folder; OSError if it has entries that no save wrote."""
    names = sorted(os.listdir(descriptor))
    for name in names:
        with suppress(FileNotFoundError):
            status = os.stat(name, dir_fd=descriptor, follow_symlinks=False)
            if not _OURS.fullmatch(name) or stat.S_ISDIR(status.st_mode):
                raise OSError(
                    errno.ENOTEMPTY,
                    f"{operation}: {folder!r} contains {name!r}, which no save wrote; expected only files of a "
                    f"checkpoint, because the save removes this folder; {fix}",
                )
    return names


def check_own(operation: str, folder: str, fix: str) -> None:
    """Raises OSError if a folder has entries that no save wrote; another process may have removed it."""
    with suppress(FileNotFoundError):
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            _own_files(operation, folder, descriptor, fix)
        finally:
            os.close(descriptor)


def remove(folder: str) -> None:
    """Removes a checkpoint or the rest of one; OSError for a link and for a folder with other files, which stay.

    Several processes may remove one folder at a time.
    """
    with suppress(FileNotFoundError):
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        try:
            for name in _own_files("checkpoint", folder, descriptor, "move it away"):
                with suppress(FileNotFoundError):
                    os.unlink(name, dir_fd=descriptor)
        finally:
            os.close(descriptor)
        os.rmdir(folder)


def retire(folder: str) -> None:
    """Hides a checkpoint from readers by renaming it in one step; `remove_retired` removes it.

    A link, a folder with files that no save wrote, and a checkpoint that a save has locked stay. It is not an error
    if another process has retired the checkpoint.
    """
    lock = internal.FolderLock()
    parent, name = os.path.split(folder)
    try:
        check_own("checkpoint", folder, "move it away")
        if not lock.take(folder):
            return
        for number in itertools.count():
            more = f".{number}" if number else ""
            try:
                os.rename(folder, f"{parent}/.{name}{more}.removed")
                return
            except OSError as error:  # a folder of this name has files that no save wrote
                if error.errno not in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR):
                    raise
    except (FileNotFoundError, NotADirectoryError, BlockingIOError):
        return
    except OSError as error:
        if error.errno not in (errno.ENOTEMPTY, errno.ELOOP):
            raise
    finally:
        lock.release()


def remove_retired(parent: str) -> None:
    """Removes the retired checkpoints of all processes in a folder; skips files that cannot be removed."""
    with suppress(OSError):
        for name in os.listdir(parent):
            if _RETIRED.fullmatch(name):
                with suppress(OSError):
                    remove(f"{parent}/{name}")


def sync(folder: str) -> None:
    """Waits until the storage has the entries of a folder."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


class StagingFolder:
    """The folder next to `target` that a save writes to; it is locked against other saves to the same target.

    Ctrl-C can end any step. So the state is read from the storage, and not from variables that a step sets at its end.
    """

    def __init__(self, operation: str, target: str, overwrite: bool) -> None:
        target = internal.real_path(target) or os.path.realpath(target)  # a link stays, and its target is replaced
        self._parent, name = os.path.split(target)
        if not name:
            raise ValueError(f"{operation}: the path is {target!r}; expected that of a new folder; add a name")
        self.folder = os.path.join(self._parent, f".{name}.saving")
        self._operation = operation
        self._target = target
        self._overwrite = overwrite
        self._new = internal.FolderLock()  # on the folder of this save, before and after it is renamed
        self._old = internal.FolderLock()  # on the checkpoint that it replaces
        self._run = internal.FolderLock()  # on the folder of all checkpoints of a Manager, while it commits
        self._may_exist = False  # the folder of this save, or the old checkpoint in its place
        self._is_committed = False

    def create(self) -> None:
        """Creates the folder, after removing that of an interrupted save; the caller abandons it at an error.

        Raises:
            FileExistsError: The target exists and is not to be overwritten.
            ValueError: The target to be overwritten is not a checkpoint.
            BlockingIOError: Another save to the target is running.
            OSError: The folder cannot be created, or it contains files that no save wrote.
        """
        self._check_target()
        self._may_exist = True
        while True:
            is_new = self._make_folder()
            if not self._lock(self._new, self.folder):
                continue
            if is_new and not os.listdir(self.folder):
                return
            check_own(self._operation, self.folder, "move it away")
            try:
                remove(self.folder)
            except OSError as error:
                raise self._cannot("create", self.folder, error) from None
            self._new.release()

    def _lock(self, lock: internal.FolderLock, folder: str) -> bool:
        """Locks a folder, with the errors of a save; returns False if it does not exist."""
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

    def _make_folder(self) -> bool:
        """Creates the folder, and its missing parents; returns False if it exists."""
        try:
            try:
                os.mkdir(self.folder)
            except (FileNotFoundError, NotADirectoryError):
                os.makedirs(self._parent, exist_ok=True)
                os.mkdir(self.folder)
        except FileExistsError:
            if os.path.isdir(self._parent):
                return False
            raise NotADirectoryError(
                errno.ENOTDIR,
                f"{self._operation}: {self._parent!r} is a file; expected a folder; save to another path",
            ) from None
        except OSError as error:
            raise self._cannot("create", self.folder, error) from None
        return True

    def _cannot(self, verb: str, folder: str, error: OSError) -> OSError:
        expected = "a checkpoint that this process can read"
        if verb == "create":
            expected = "a folder in which this process can create files; nothing was written"
        return type(error)(
            error.errno,
            f"{self._operation}: cannot {verb} {folder!r}: {error.strerror}; expected {expected}; save to another path",
        )

    def lock_run(self, directory: str) -> None:
        """Waits until no other Manager commits a checkpoint in a folder, and locks it until `release` or `abandon`.

        A save in a signal handler that interrupted a commit of this thread is part of that commit.
        """
        end_s = time.monotonic() + _RUN_LOCK_S
        while True:
            folder = os.path.realpath(directory)
            with suppress(BlockingIOError):
                if internal.FolderLock.is_taken_by_this_thread(folder) or self._run.take(folder):
                    return
            if not os.path.isdir(directory):
                raise FileNotFoundError(
                    errno.ENOENT,
                    f"{self._operation}: {directory!r} was removed during the save; expected a folder; save again",
                )
            if time.monotonic() > end_s:
                raise BlockingIOError(
                    errno.EWOULDBLOCK,
                    f"{self._operation}: another process or thread has locked {directory!r} for {_RUN_LOCK_S:.0f} s; "
                    "expected only the time of a commit; end it, and save again",
                )
            time.sleep(_POLL_S)

    def commit(self) -> None:
        """Renames the folder to the target, in one step, and removes the old target."""
        replaces = self._overwrite and self._lock(self._old, self._target)
        if replaces:
            self._check_target()
            self._keep_time()
        sync(self.folder)
        if not replaces:
            self._check_target()
            os.rename(self.folder, self._target)
        elif not internal.exchange_paths(self.folder, self._target, self._operation):
            raise OSError(
                errno.EOPNOTSUPP,
                f"{self._operation}: the file system of {self._target!r} cannot exchange two folders in one "
                "step; expected a new path; save to one and remove the old folder afterwards",
            )
        self._end()

    def abandon(self) -> str:
        """Removes the folder if this save has created it, and returns a text about the remaining files, for an error.

        The next save removes files that cannot be removed now.
        """
        is_begun = self._may_exist
        try:
            if is_begun:
                with suppress(OSError):
                    if not self._is_committed and not self._new.is_held:  # it was interrupted between its steps
                        self._new.take(self.folder)
                    self._end()
        finally:
            self.release()  # also after another Ctrl-C
        target = repr(self._target)
        if self._is_committed:
            return f"the checkpoint {target} is complete"
        remains = f"{target} is unchanged" if os.path.lexists(self._target) else f"there is nothing at {target}"
        if not is_begun:
            return remains
        if not os.path.lexists(self.folder):
            return f"{remains}; the files of this save are removed"
        return f"{remains}; the folder {self.folder!r} is left, which the next save to this path removes"

    def release(self) -> None:
        """Releases all locks."""
        self._new.release()
        self._old.release()
        self._run.release()

    def _end(self) -> None:
        """Removes this save's folder, or the old checkpoint if the two have been exchanged."""
        self._is_committed = self._is_committed or self._new.is_at(self._target)
        if self._is_committed:
            sync(self._parent)
        with suppress(OSError):
            if (self._old if self._is_committed else self._new).is_at(self.folder):
                remove(self.folder)
        self._new.release()
        self._old.release()
        self._may_exist = False

    def _check_target(self) -> None:
        target = self._target
        if self._overwrite and is_checkpoint(target):
            check_own(self._operation, target, "move it away, or save to another path")
            return
        if not os.path.lexists(target):
            return
        if not self._overwrite:
            raise FileExistsError(
                errno.EEXIST,
                f"{self._operation}: {target!r} exists; expected a new path; pass overwrite=True to replace it",
            )
        raise failure(
            ValueError,
            self._operation,
            f"{target!r} exists and is not a checkpoint",
            expected=f"a folder with {manifest.FILE}",
            fix="save to another path",
        )

    def _keep_time(self) -> None:
        """Gives the new checkpoint the place of the old one in the order of its run, unless a Manager commits it."""
        committed_ns = commit_times.read(self._target)
        if committed_ns and not os.path.lexists(f"{self.folder}/{commit_times.FILE}"):
            commit_times.write(self.folder, committed_ns)
