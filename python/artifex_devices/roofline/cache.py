# SPDX-License-Identifier: Apache-2.0
"""Measurements stored on disk, one JSON file for each machine fingerprint and scope.

If a file cannot be read or written, these functions report it and do not raise; the rates are then measured again.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
import os
import tempfile
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from artifex_devices._base.checks import check_type, wrong_value
from artifex_devices._base.regular_file import read_regular_file
from artifex_devices._base.state_validation import checked_text

VARIABLE = "ARTIFEX_DEVICES_CACHE"
_FORMAT = 2
_LARGEST_FILE = 64 << 10
_MAX_NOTES = 16

# Simultaneous measurements would disturb each other. The lock is reentrant, as a user's sys.stderr that gets the
# progress may measure too.
_lock = threading.RLock()
_M = TypeVar("_M")  # a dataclass with `notes`, `from_cache` and `to_dict`


def measurement_lock() -> contextlib.AbstractContextManager[bool]:
    """Returns the lock that a measurement of this machine holds."""
    return _lock


def _replace_lock() -> None:
    global _lock
    _lock = threading.RLock()  # another thread may have held it when the process was forked


os.register_at_fork(after_in_child=_replace_lock)


def find_or_measure(
    known: dict[Path, _M],
    place: tuple[Path | None, str],
    fingerprint: Mapping[str, Any],
    read: Callable[[Any], _M],
    measure: Callable[[], _M],
    *,
    refresh: bool,
    notes: tuple[str, ...] = (),
    why_unfit: Callable[[_M], str] = lambda found: "",
) -> _M:
    """Returns the stored measurement unless `refresh` is True, otherwise measures and stores.

    `known` has the measurements of this process by the paths of their files, `place` is a result of `measurement_path`.
    `notes` are on a new measurement and not stored with it. `why_unfit` returns why a stored one is not used, or "".
    """
    path, reason = place
    with measurement_lock():
        if path is not None and not refresh:
            found: Any = known.get(path)
            if found is None:
                found, reason = read_measurement(path, fingerprint, read)
                if found is not None:
                    found = known[path] = dataclasses.replace(found, notes=(*found.notes, f"read from {path}"))
            if found is not None:
                reason = why_unfit(found)
                if not reason:
                    return dataclasses.replace(found, from_cache=True)  # type: ignore[no-any-return]
                reason = f"{path} is not used: {reason}"
        found = measure()
        stored = (write_measurement(path, fingerprint, found),) if path is not None else ()
        found = dataclasses.replace(found, notes=(*found.notes, *filter(None, [reason]), *notes, *stored))
        if path is not None:
            known[path] = found
        return found  # type: ignore[no-any-return]


def cache_directory(cache: str | os.PathLike[str] | bool | None) -> tuple[Path | None, str]:
    """Returns the directory of stored measurements, or None and the reason; `measure_roofline` describes `cache`.

    The user's is $XDG_CACHE_HOME/artifex_devices, or ~/.cache/artifex_devices.
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


def check_cache(operation: str, cache: object) -> None:
    """Raises ValueError or TypeError for a wrong `cache` argument."""
    if isinstance(cache, os.PathLike):
        cache = os.fspath(cache)
    fix = "write cache=False to store nothing"
    if isinstance(cache, str) and (not cache or "\0" in cache):
        fix += ', or cache="." for the current directory'
        raise wrong_value(operation, "cache", cache, "the path of a directory, a bool or None", fix)
    check_type(operation, "cache", cache, (str, bool, type(None)), "a directory, a bool or None", fix)


def measurement_path(
    cache: str | os.PathLike[str] | bool | None, fingerprint: Mapping[str, Any], prefix: str
) -> tuple[Path | None, str]:
    """Returns the path of a fingerprint's file, or None and the reason; `prefix` names the kind of measurement."""
    directory, reason = cache_directory(cache)
    digest = hashlib.sha256(_canonical(fingerprint).encode()).hexdigest()
    return (directory / f"{prefix}-{digest[:24]}.json" if directory else None), reason


def read_measurement(path: Path, fingerprint: Mapping[str, Any], read: Callable[[Any], _M]) -> tuple[_M | None, str]:
    """Returns the file's content converted by `read`, or None and why it is not used ("" without a file)."""
    try:
        text = _read_own_file(path)
    except FileNotFoundError:
        return None, ""
    except IsADirectoryError:
        return None, f"{path} is not used: it is not a regular file"
    except OSError as error:
        return None, f"{path} is not used: {error}"
    except ValueError as error:
        return None, f"{path} is not used: it {error}"
    try:
        content = json.loads(text)
        if isinstance(content, dict) and content.get("format", _FORMAT) != _FORMAT:
            raise ValueError("it has another format")
        if not isinstance(content, dict) or set(content) != {"format", "fingerprint", "measurement", "notes"}:
            raise ValueError("it is not a measurement")
        if _canonical(content["fingerprint"]) != _canonical(fingerprint):
            raise ValueError("it is of another machine")
        found = read(content["measurement"])
        return dataclasses.replace(found, notes=_notes(content["notes"])), ""  # type: ignore[type-var]
    except (ValueError, TypeError, RecursionError) as error:
        return None, f"{path} is not used: {str(error) or type(error).__name__}"


def write_measurement(path: Path, fingerprint: Mapping[str, Any], found: Any) -> str:
    """Writes the complete file or nothing; returns a note with its path, or with the reason."""
    content = {
        "format": _FORMAT,
        "fingerprint": dict(fingerprint),
        "measurement": found.to_dict(),
        "notes": list(found.notes),
    }
    temporary = ""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        number, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.stem.partition('-')[0]}-", suffix=".tmp")
        with os.fdopen(number, "w", encoding="utf-8") as file:
            file.write(json.dumps(content, indent=1) + "\n")
        os.replace(temporary, path)
    except BaseException as error:
        if temporary:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
        if not isinstance(error, OSError):
            raise
        return f"not stored: {error}"
    return f"stored in {path}"


def _notes(value: object) -> tuple[str, ...]:
    if not isinstance(value, list) or len(value) > _MAX_NOTES:
        raise ValueError("notes is not a list of texts")
    return tuple(checked_text(note, "a note") for note in value)


def _canonical(value: object) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


def _read_own_file(path: Path) -> str:
    def check(status: os.stat_result) -> None:
        if status.st_uid not in (os.geteuid(), 0):
            raise ValueError("belongs to another user")

    # Other users may write to the directory: no links, pipes or files of other users.
    return read_regular_file(path, _LARGEST_FILE, flags=os.O_NOFOLLOW, check=check).decode("utf-8")
