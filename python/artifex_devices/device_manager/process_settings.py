# SPDX-License-Identifier: Apache-2.0
"""Settings of the process that several managers set.

The settings of the newest open owner hold, and all can be undone. The settings of an owner that was dropped without
`release` hold until another owner sets or releases the same key.
"""

from __future__ import annotations

import contextvars
import os
import re
import threading
import weakref
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any

from artifex_devices._core import Device
from artifex_devices.config import config

_FLAG = re.compile(r"""(?:[^\s"']|"[^"]*"?|'[^']*'?)+""")  # quotes keep blanks inside a flag


_Read = Callable[[Any], Any]
_Write = Callable[[Any, Any], None]
_Combined = Callable[[Any, Any, list[Any]], Any]
_Requests = list[tuple[weakref.ref[Any], Any]]  # owners with their values, oldest owner first


@dataclass
class _Entry:
    user: Any  # the value before the first owner
    written: Any = None  # the value that was written last
    requests: _Requests = field(default_factory=list)


class Settings:
    """One kind of setting, by key; thread-safe."""

    def __init__(self, read: _Read, write: _Write, combined: _Combined = lambda key, user, values: values[-1]) -> None:
        """Takes functions; `combined` returns the value to write for a key, of the user's and the owners' values."""
        self.read, self.write, self.combined = read, write, combined
        self._lock = threading.RLock()
        self._entries: dict[Any, _Entry] = {}
        os.register_at_fork(after_in_child=self._renew_lock)

    def set(self, owner: Hashable, values: Mapping[Any, Any]) -> dict[Any, Any]:
        """Sets the values of keys for an owner; returns the user's values before any owner."""
        users = {}
        with self._lock:
            for key, value in values.items():
                entry = self._entries.get(key)
                if entry is None or self.read(key) != entry.written:  # other code has written a value: it is the user's
                    entry = self._entries[key] = _Entry(self.read(key))
                entry.requests = [*_live(entry.requests), (weakref.ref(owner), value)]
                self._write_newest(key, entry)
                users[key] = entry.user
        return users

    def release(self, owner: Hashable) -> None:
        """Undoes the values of an owner, except where other code has written a value since."""
        with self._lock:
            for key, entry in list(self._entries.items()):
                others = [request for request in entry.requests if request[0]() is not owner]
                if len(others) == len(entry.requests):
                    continue
                entry.requests = _live(others)
                if self.read(key) != entry.written:
                    del self._entries[key]
                elif entry.requests:
                    self._write_newest(key, entry)
                else:
                    self.write(key, entry.user)
                    del self._entries[key]

    def _write_newest(self, key: object, entry: _Entry) -> None:
        self.write(key, self.combined(key, entry.user, [value for _, value in entry.requests]))
        entry.written = self.read(key)

    def _renew_lock(self) -> None:
        self._lock = threading.RLock()  # another thread may have held it when the process was forked


def _live(requests: _Requests) -> _Requests:
    return [request for request in requests if request[0]() is not None]


def _tighter(device: Device, user: int | None, values: list[int]) -> int:
    return values[-1] if user is None else min(user, values[-1])


def _write_variable(name: str, value: str | None) -> None:
    if value is None:
        os.environ.pop(name, None)
    else:
        os.environ[name] = value


def _combined_variable(name: str, user: str | None, values: list[str]) -> str:
    if name != "XLA_FLAGS":
        return values[-1]
    flags = user
    for value in values:
        flags = merged_flags(flags, value)[0]
    return flags or ""


def merged_flags(current: str | None, added: str) -> tuple[str, list[str]]:
    """Adds flags to the current text of XLA_FLAGS; returns the new text and the flags that were replaced.

    Text that does not begin with "-" names a file of flags, and is replaced as a whole.

    Example:
        >>> merged_flags("--a=1 --b=2", "--b=3")
        ('--a=1 --b=3', ['--b=2'])
    """
    if not current or not current.strip():
        return added, []
    if not current.lstrip().startswith("-"):
        return added, [current] if current != added else []
    old, new = ([_closed(flag) for flag in _FLAG.findall(text)] for text in (current, added))
    names = {flag.partition("=")[0] for flag in new}
    kept = [flag for flag in old if flag.partition("=")[0] not in names]
    dropped = [flag for flag in old if flag not in kept and flag not in new]
    return (current, []) if set(new) <= set(old) and not dropped else (" ".join(kept + new), dropped)


def _closed(flag: str) -> str:
    """Closes an open quote of a flag; another flag can then follow it."""
    rest = re.sub(r""""[^"]*"|'[^']*'""", "", flag)
    return flag + next((sign for sign in rest if sign in "'\""), "")


# Bytes that Arrays may take, by Device, or None for no limit. A tighter limit of the user stays.
LIMITS = Settings(lambda device: device.bytes_limit, lambda device, value: device.set_bytes_limit(value), _tighter)
# Environment variables by name, or None for an unset variable. XLA_FLAGS are merged.
VARIABLES = Settings(os.environ.get, _write_variable, _combined_variable)
# jax_enable_x64 of the process, outside of all scopes.
X64 = Settings(lambda name: bool(contextvars.Context().run(config.read, name)), config.update)
