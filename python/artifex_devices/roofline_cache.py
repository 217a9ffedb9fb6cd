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
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from artifex_devices.measured_roofline import MeasuredRoofline

__all__ = ["VARIABLE", "cache_directory", "read_measurement", "write_measurement"]

VARIABLE = "ARTIFEX_DEVICES_CACHE"
_FORMAT = 2
_LARGEST_FILE = 64 << 10
_MOST_NOTES = 16
_LONGEST_NOTE = 1000


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


def file_of(directory: Path, fingerprint: Mapping[str, Any]) -> Path:
    """The file of a fingerprint."""
    digest = hashlib.sha256(_canonical(fingerprint).encode()).hexdigest()
    return directory / f"roofline-{digest[:24]}.json"


def read_measurement(path: Path, fingerprint: Mapping[str, Any]) -> tuple[MeasuredRoofline | None, str]:
    """What the file holds, or None and why it is not used ("" where there is none)."""
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
        return dataclasses.replace(MeasuredRoofline.from_dict(told["measurement"]), notes=_notes(told["notes"])), ""
    except (ValueError, TypeError, RecursionError) as error:
        return None, f"{path} is not used: {str(error) or type(error).__name__}"


def write_measurement(path: Path, fingerprint: Mapping[str, Any], found: MeasuredRoofline) -> str:
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
        number, temporary = tempfile.mkstemp(dir=path.parent, prefix=".roofline-", suffix=".tmp")
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
            raise ValueError("it is no regular file")
        if facts.st_uid not in (os.geteuid(), 0):
            raise ValueError("it belongs to another user")
        content = file.read(_LARGEST_FILE + 1)
    if len(content) > _LARGEST_FILE:
        raise ValueError(f"it is larger than {_LARGEST_FILE} bytes")
    return content.decode("utf-8")
