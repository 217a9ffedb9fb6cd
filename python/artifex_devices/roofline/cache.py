# SPDX-License-Identifier: Apache-2.0
"""Measurements stored on disk, one JSON file for each machine fingerprint and scope.

Nothing here raises for the state of the disk: what cannot be read or written is reported and measured again.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
import os
import stat
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Protocol, TypeVar

from artifex_devices._base.safe_repr import safe_repr

VARIABLE = "ARTIFEX_DEVICES_CACHE"
_FORMAT = 2
_LARGEST_FILE = 64 << 10
_MAX_NOTES = 16
_LONGEST_NOTE = 1000


class Measurement(Protocol):
    """A stored dataclass with notes."""

    @property
    def notes(self) -> tuple[str, ...]:
        """Caveats for the reader."""

    def to_dict(self) -> dict[str, Any]:
        """All numbers, for JSON."""


_M = TypeVar("_M", bound=Measurement)


def cache_directory(cache: str | os.PathLike[str] | bool | None) -> tuple[Path | None, str]:
    """The directory where measurements are stored, or None and the reason.

    Args:
        cache: A directory, True for the user's, False for none; None reads the environment variable
            ARTIFEX_DEVICES_CACHE ("off", or a directory) and otherwise means the user's:
            $XDG_CACHE_HOME/artifex_devices, or ~/.cache/artifex_devices.
    """
    if cache is False:
        return None, "not stored: cache=False"
    if cache is None:
        variable = os.environ.get(VARIABLE, "")
        if variable.lower() in ("off", "0", "false", "no"):
            return None, f"not stored: {VARIABLE}={variable}"
        cache = variable or None
    if cache is not None and cache is not True:
        try:
            return Path(os.path.abspath(cache)), ""  # stays valid when the process changes its directory
        except OSError as error:
            return None, f"not stored: {error}: the current directory; pass an absolute path as cache"
    base = os.environ.get("XDG_CACHE_HOME", "")
    if not os.path.isabs(base):  # the XDG specification ignores relative paths
        home = os.path.expanduser("~")
        if os.environ.get("HOME") == "" or not os.path.isabs(home):
            return None, f"not stored: there is no home directory; set {VARIABLE} to a directory"
        base = os.path.join(home, ".cache")
    return Path(base, "artifex_devices"), ""


def check_cache(operation: str, cache: Any) -> None:
    """Raises ValueError or TypeError for a wrong `cache` argument."""
    if isinstance(cache, os.PathLike):
        cache = os.fspath(cache)
    if isinstance(cache, str) and (not cache or "\0" in cache):
        raise ValueError(
            f"{operation}: cache is {safe_repr(cache)}; expected the path of a directory, a bool or None; "
            'write cache=False to store nothing, or cache="." for the current directory'
        )
    if cache is not None and not isinstance(cache, (str, bool)):
        raise TypeError(
            f"{operation}: cache is {safe_repr(cache)} ({type(cache).__name__}); expected a directory, a bool or None; "
            "write cache=False to store nothing"
        )


def measurement_path(directory: Path, fingerprint: Mapping[str, Any], prefix: str) -> Path:
    """The path of a fingerprint's file; `prefix` names the kind of measurement."""
    digest = hashlib.sha256(_canonical(fingerprint).encode()).hexdigest()
    return directory / f"{prefix}-{digest[:24]}.json"


def read_measurement(path: Path, fingerprint: Mapping[str, Any], read: Callable[[Any], _M]) -> tuple[_M | None, str]:
    """The file's content converted by `read`, or None and why it is not used ("" if the file does not exist)."""
    try:
        text = _read_own_file(path)
    except FileNotFoundError:
        return None, ""
    except (OSError, ValueError) as error:
        return None, f"{path} is not used: {error}"
    try:
        content = json.loads(text)
        if not isinstance(content, dict) or "format" not in content:
            raise ValueError("it is not a measurement")
        if content["format"] != _FORMAT:
            raise ValueError("it has another format")
        if set(content) != {"format", "fingerprint", "measurement", "notes"}:
            raise ValueError("it is not a measurement")
        if _canonical(content["fingerprint"]) != _canonical(fingerprint):
            raise ValueError("it is of another machine")
        found = read(content["measurement"])
        return dataclasses.replace(found, notes=_notes(content["notes"])), ""  # type: ignore[type-var]
    except (ValueError, TypeError, RecursionError) as error:
        return None, f"{path} is not used: {str(error) or type(error).__name__}"


def write_measurement(path: Path, fingerprint: Mapping[str, Any], found: Measurement) -> str:
    """Writes the complete file or nothing; returns a note with its path, or with the reason."""
    content = {
        "format": _FORMAT,
        "fingerprint": dict(fingerprint),
        "measurement": found.to_dict(),
        "notes": list(found.notes),
    }
    text = json.dumps(content, indent=1)
    temporary = ""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        number, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.stem.partition('-')[0]}-", suffix=".tmp")
        with os.fdopen(number, "w", encoding="utf-8") as file:
            file.write(text + "\n")
        os.replace(temporary, path)
    except BaseException as error:
        if temporary:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
        if not isinstance(error, OSError):
            raise
        return f"not stored: {error}"
    return f"stored in {path}"


def _notes(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list) or len(value) > _MAX_NOTES:
        raise ValueError("notes is not a list of texts")
    for note in value:
        if not isinstance(note, str) or len(note) > _LONGEST_NOTE or not note.isprintable():
            raise ValueError("a note is not a text of one line")
    return tuple(value)


def _canonical(value: Any) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


def _read_own_file(path: Path) -> str:
    # Other users may write to the directory: no links, pipes or files of other users.
    number = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(number, "rb") as file:
        facts = os.fstat(number)
        if not stat.S_ISREG(facts.st_mode):
            raise ValueError("it is not a regular file")
        if facts.st_uid not in (os.geteuid(), 0):
            raise ValueError("it belongs to another user")
        content = file.read(_LARGEST_FILE + 1)
    if len(content) > _LARGEST_FILE:
        raise ValueError(f"it is larger than {_LARGEST_FILE} bytes")
    return content.decode("utf-8")
