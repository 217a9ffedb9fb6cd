# SPDX-License-Identifier: Apache-2.0
"""Measurements kept on disk, one JSON file for each machine fingerprint and scope.

Nothing here raises for what it finds on disk: what cannot be read or written is told, and measured anew.
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

from artifex_devices._base.safe_repr import shown

__all__ = [
    "VARIABLE",
    "Measurement",
    "cache_directory",
    "check_cache",
    "file_of",
    "read_measurement",
    "write_measurement",
]

VARIABLE = "ARTIFEX_DEVICES_CACHE"
_FORMAT = 2
_LARGEST_FILE = 64 << 10
_MOST_NOTES = 16
_LONGEST_NOTE = 1000


class Measurement(Protocol):
    """What is kept: a dataclass with notes."""

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader must know."""

    def to_dict(self) -> dict[str, Any]:
        """All numbers, for JSON."""


_M = TypeVar("_M", bound=Measurement)


def cache_directory(cache: str | os.PathLike[str] | bool | None) -> tuple[Path | None, str]:
    """Where measurements are kept, or None and why not.

    Args:
        cache: A directory, True for the user's, False for none; None is what the environment variable
            ARTIFEX_DEVICES_CACHE says ("off", or a directory), else the user's: $XDG_CACHE_HOME/artifex_devices,
            ~/.cache/artifex_devices without it.
    """
    if cache is False:
        return None, "not kept: cache=False"
    if cache is None:
        said = os.environ.get(VARIABLE, "")
        if said.lower() in ("off", "0", "false", "no"):
            return None, f"not kept: {VARIABLE}={said}"
        if said:
            cache = said
    if cache is not None and cache is not True:
        try:
            return Path(os.path.abspath(cache)), ""  # the same one when the process changes its directory
        except OSError as error:
            return None, f"not kept: {error}: the current directory; name the cache by an absolute path"
    base = os.environ.get("XDG_CACHE_HOME", "")
    if not os.path.isabs(base):  # relative ones are to be ignored, says the XDG specification
        home = os.path.expanduser("~")
        if os.environ.get("HOME") == "" or not os.path.isabs(home):
            return None, f"not kept: there is no home directory; set {VARIABLE} to a directory"
        base = os.path.join(home, ".cache")
    return Path(base, "artifex_devices"), ""


def check_cache(operation: str, cache: Any) -> None:
    """Raises ValueError or TypeError for what is no `cache`."""
    if isinstance(cache, os.PathLike):
        cache = os.fspath(cache)
    if isinstance(cache, str) and (not cache or "\0" in cache):
        raise ValueError(
            f"{operation}: cache is {shown(cache)}; expected the path of a directory, a bool or None; "
            'say cache=False to keep nothing, or "." for the current directory'
        )
    if cache is not None and not isinstance(cache, (str, bool)):
        raise TypeError(
            f"{operation}: cache is {shown(cache)} ({type(cache).__name__}); expected a directory, a bool or None; "
            "say cache=False to keep nothing"
        )


def file_of(directory: Path, fingerprint: Mapping[str, Any], prefix: str) -> Path:
    """The file of a fingerprint; `prefix` says what was measured."""
    digest = hashlib.sha256(_canonical(fingerprint).encode()).hexdigest()
    return directory / f"{prefix}-{digest[:24]}.json"


def read_measurement(path: Path, fingerprint: Mapping[str, Any], read: Callable[[Any], _M]) -> tuple[_M | None, str]:
    """What `read` makes of what the file holds, or None and why it is not used ("" where there is none)."""
    try:
        text = _read_own_file(path)
    except FileNotFoundError:
        return None, ""
    except (OSError, ValueError) as error:
        return None, f"{path} is not used: {error}"
    try:
        told = json.loads(text)
        if not isinstance(told, dict) or "format" not in told:
            raise ValueError("it is no measurement")
        if told["format"] != _FORMAT:
            raise ValueError("it has another format")
        if set(told) != {"format", "fingerprint", "measurement", "notes"}:
            raise ValueError("it is no measurement")
        if _canonical(told["fingerprint"]) != _canonical(fingerprint):
            raise ValueError("it is of another machine")
        made = read(told["measurement"])
        return dataclasses.replace(made, notes=_notes(told["notes"])), ""  # type: ignore[type-var]
    except (ValueError, TypeError, RecursionError) as error:
        return None, f"{path} is not used: {str(error) or type(error).__name__}"


def write_measurement(path: Path, fingerprint: Mapping[str, Any], found: Measurement) -> str:
    """Writes the file as a whole or not at all; where it is, or why it is not."""
    told = {
        "format": _FORMAT,
        "fingerprint": dict(fingerprint),
        "measurement": found.to_dict(),
        "notes": list(found.notes),
    }
    text = json.dumps(told, indent=1)
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
        return f"not kept: {error}"
    return f"kept in {path}"


def _notes(told: Any) -> tuple[str, ...]:
    if not isinstance(told, list) or len(told) > _MOST_NOTES:
        raise ValueError("notes is no list of texts")
    for note in told:
        if not isinstance(note, str) or len(note) > _LONGEST_NOTE or not note.isprintable():
            raise ValueError("a note is no text of one line")
    return tuple(told)


def _canonical(value: Any) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


def _read_own_file(path: Path) -> str:
    # Neither a link nor a pipe, and of nobody else: the directory may be one that others write to.
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
