# SPDX-License-Identifier: Apache-2.0
"""The folder of a conversion that is not complete: it is continued by the same call, and renamed at the end.

`TARGET.partial` has the folder `files`, which becomes the target in one step, and `journal.jsonl`: a line about the
call, then a line for each file that is finished and on the storage.
"""

from __future__ import annotations

import errno
import json
import os
import shutil
from contextlib import suppress
from typing import Any

from artifex_devices._base.checks import failure
from artifex_devices._base.text import counted
from artifex_devices.checkpoint.folders import StagingFolder, sync
from artifex_devices.checkpoint.writers.writer import Record

_FORMAT = "artifex_devices.conversion"
_JOURNAL = "journal.jsonl"
_FILES = "files"
_SCRATCH = "scratch"


class PartialFolder(StagingFolder):
    """The folder of a conversion, locked against others to the same target. `folder` is where its files are."""

    def __init__(self, operation: str, target: str, overwrite: bool) -> None:
        super().__init__(operation, target, overwrite)
        self.outer = f"{self._target}.partial"
        self.folder = f"{self.outer}/{_FILES}"
        self.scratch = f"{self.outer}/{_SCRATCH}"  # name that a file has for a moment
        self._journal: Any = None  # open file
        self._length = 0
        self._file: os.stat_result | None = None  # that becomes the target

    def resume(self, call: str, source: str) -> dict[str, Record]:
        """Creates the folder, or continues one of the same call. Returns the records of finished files, by name.

        Args:
            call: Digest of the call.
            source: Digest of sizes and times of the source's files.

        Raises:
            FileExistsError: The target exists and is not to be overwritten.
            ValueError: The folder belongs to another call, or the source has changed.
            BlockingIOError: Another conversion to the target is running.
            OSError: The folder cannot be created, or contains files that no conversion wrote.
        """
        self._remove_completed()
        self._check_target()
        while not self._lock(self._new, self.folder):
            try:
                os.makedirs(self.folder, exist_ok=True)
            except OSError as error:
                raise self._cannot("create", self.folder, error) from None
        lines = self._read()
        if not lines:
            self._start(call, source)
            return {}
        for name, found, expected in (("call", "another call", call), ("source", "a source that has changed", source)):
            if lines[0].get(name) != expected:
                raise failure(
                    ValueError,
                    self._operation,
                    f"{self.outer!r} is of {found}",
                    expected="the rest of the same conversion",
                    fix=f"remove it to start again: rm -r {self.outer}",
                )
        self._journal = self._open("r+b")
        self._journal.truncate(self._journal.seek(self._length))
        return {line["file"]: line["record"] for line in lines[1:]}

    @property
    def is_begun(self) -> bool:
        """Whether `resume` has returned, so that an error is not about the path."""
        return self._journal is not None

    def add(self, name: str, record: Record) -> None:
        """Records that a file is finished."""
        sync(os.path.dirname(f"{self.folder}/{name}"))
        self._append({"file": name, "record": record})

    def complete(self, file: str | None) -> None:
        """Renames the files to the target: the folder, or the one file of this name."""
        if file is None:
            self.commit()
        else:
            self._check_target()
            self._file = os.stat(f"{self.folder}/{file}")
            os.rename(f"{self.folder}/{file}", self._target)
            self._end()
        self._remove_outer()
        self.release()

    def leave(self, *, keeps_files: bool) -> str:
        """Unlocks the folder after an error, and removes it unless it has finished files that are kept.

        Returns:
            A text about the remaining files, for the error.
        """
        count = 0
        try:
            with suppress(OSError):
                if not self._is_complete() and not self._new.is_held:  # it was interrupted between its steps
                    self._new.take(self.folder)
                if self._is_complete() or self._new.is_held:
                    lines = [] if self._is_complete() else self._read()
                    count = len(lines[1:]) if lines and (keeps_files or self._journal is None) else 0
                    if not count:
                        self._remove_outer()
        finally:
            self.release()  # also after another Ctrl-C
        if count:
            files = counted(count, "finished file")
            return f"{self.outer!r} has {files}; the same call continues, or remove it to start again"
        if self._is_complete():
            return f"the checkpoint {self._target!r} is complete"
        return (
            f"{self._target!r} is unchanged"
            if os.path.lexists(self._target)
            else f"there is nothing at {self._target!r}"
        )

    def _is_complete(self) -> bool:
        """Returns whether the target is what this conversion wrote."""
        if not self._is_committed and self._file is not None:
            with suppress(FileNotFoundError):
                self._is_committed = os.path.samestat(self._file, os.stat(self._target))
        elif not self._is_committed:
            self._is_committed = self._new.is_at(self._target)
        return self._is_committed

    def release(self) -> None:
        """Releases all locks and closes the journal."""
        if self._journal is not None:
            self._journal.close()
        super().release()

    def _remove_completed(self) -> None:
        """Removes the journal of a conversion that was killed after its target was complete."""
        with suppress(OSError):
            if os.path.lexists(self._target) and set(os.listdir(self.outer)) - {_SCRATCH} == {_JOURNAL}:
                self._remove_outer()

    def _remove_outer(self) -> None:
        with suppress(OSError):
            shutil.rmtree(self.outer)
            sync(self._parent)

    def _start(self, call: str, source: str) -> None:
        self._journal = self._open("wb")
        self._append({"format": _FORMAT, "version": 1, "call": call, "source": source})
        sync(self.outer)

    def _open(self, mode: str) -> Any:
        return open(f"{self.outer}/{_JOURNAL}", mode, buffering=0)

    def _append(self, line: dict[str, Any]) -> None:
        self._journal.write(json.dumps(line).encode() + b"\n")
        os.fsync(self._journal.fileno())

    def _read(self) -> list[dict[str, Any]]:
        """Returns the complete lines of the journal, of `_length` bytes; none if nothing has begun."""
        others = set(os.listdir(self.outer)) - {_FILES, _JOURNAL, _SCRATCH}
        lines = []
        self._length = 0
        with suppress(FileNotFoundError, ValueError), open(f"{self.outer}/{_JOURNAL}", "rb") as file:
            for text in file:
                if not text.endswith(b"\n"):
                    break
                lines.append(json.loads(text))
                self._length += len(text)
        if not others and not lines and not os.listdir(self.folder):
            return []
        if others or not lines or lines[0].get("format") != _FORMAT:
            name = next(iter(others), _FILES)
            raise OSError(
                errno.ENOTEMPTY,
                f"{self._operation}: {self.outer!r} contains {name!r}, which no conversion wrote; expected only files "
                "of a conversion; move it away",
            )
        return lines


def identity_of(path: str, without: str) -> list[tuple[str, int, int]]:
    """Returns names, sizes and times of all files of a checkpoint, except below the path `without`.

    The first entry has the number of its folder or file, which is another one after it was replaced.
    """
    rows = [("", os.stat(path).st_ino, 0)]
    if os.path.isfile(path) and not path.endswith(".json"):
        return [*rows, _status(path)]
    for parent, folders, files in os.walk(path if os.path.isdir(path) else os.path.dirname(path)):
        folders[:] = sorted(name for name in folders if f"{parent}/{name}" != without)
        rows += [_status(f"{parent}/{name}") for name in sorted(files)]
    return rows


def has_changed(path: str, without: str, before: list[tuple[str, int, int]]) -> bool:
    """Returns whether files of a checkpoint have changed in place. One that was replaced is read as it was."""
    try:
        after = identity_of(path, without)
    except FileNotFoundError:
        return False
    return after != before and after[0] == before[0]


def _status(path: str) -> tuple[str, int, int]:
    status = os.stat(path, follow_symlinks=os.path.exists(path))
    return path, status.st_size, status.st_mtime_ns
