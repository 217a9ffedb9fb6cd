# SPDX-License-Identifier: Apache-2.0
"""Settings of the process that several owners ask for: the newest open owner's hold, and all can be taken back.

What an owner asked for that was dropped without `release` holds until another one asks for the same key or gives it up.
"""

from __future__ import annotations

import contextvars
import os
import re
import threading
import weakref
from abc import ABC, abstractmethod
from collections.abc import Hashable, Mapping
from typing import Any

from artifex_devices._core import Device
from artifex_devices.config import config

_FLAG = re.compile(r"""(?:[^\s"']|"[^"]*"?|'[^']*'?)+""")  # quotes keep blanks inside a flag


class Settings(ABC):
    """One kind of setting, by key; thread-safe."""

    def __init__(self) -> None:
        """Nothing is asked for."""
        self._lock = threading.RLock()
        self._asked: dict[Any, list[tuple[weakref.ref[Any], Any]]] = {}  # oldest first
        self._user: dict[Any, Any] = {}  # what stood there before the first owner
        self._ours: dict[Any, Any] = {}  # what was written last
        os.register_at_fork(after_in_child=self._renew_lock)

    @abstractmethod
    def read(self, key: Any) -> Any:
        """The value that stands."""

    @abstractmethod
    def write(self, key: Any, value: Any) -> None:
        """Makes it the value that stands."""

    def combined(self, key: Any, user: Any, asked: list[Any]) -> Any:
        """What is written where the user has one value and the owners, oldest first, ask for others."""
        return asked[-1]

    def ask(self, owner: Hashable, key: Any, value: Any) -> Any:
        """Sets a value for an owner.

        Returns:
            What the user had there before any owner.
        """
        with self._lock:
            if key in self._asked and self.read(key) != self._ours[key]:
                self._forget(key)  # somebody else wrote since: that is the user's
            if key not in self._asked:
                self._user[key] = self.read(key)
                self._asked[key] = []
            open_ones = [entry for entry in self._asked[key] if entry[0]() is not None]
            self._asked[key] = [*open_ones, (weakref.ref(owner), value)]
            self._write_newest(key)
            return self._user[key]

    def ask_all(self, owner: Hashable, values: Mapping[Any, Any]) -> None:
        """Sets values for an owner; of several threads that do it at once one's hold, all of them."""
        with self._lock:
            for key, value in values.items():
                self.ask(owner, key, value)

    def release(self, owner: Hashable) -> None:
        """Takes back what an owner asked for; what somebody else has written since stays."""
        with self._lock:
            for key in list(self._asked):
                before = self._asked[key]
                after = [entry for entry in before if entry[0]() is not owner]
                if len(after) < len(before):
                    self._settle(key, [entry for entry in after if entry[0]() is not None])

    def _settle(self, key: Any, entries: list[tuple[weakref.ref[Any], Any]]) -> None:
        if self.read(key) != self._ours[key]:
            self._forget(key)
        elif entries:
            self._asked[key] = entries
            self._write_newest(key)
        else:
            self.write(key, self._user[key])
            self._forget(key)

    def _write_newest(self, key: Any) -> None:
        self.write(key, self.combined(key, self._user[key], [value for _, value in self._asked[key]]))
        self._ours[key] = self.read(key)

    def _forget(self, key: Any) -> None:
        for table in (self._asked, self._user, self._ours):
            table.pop(key, None)

    def _renew_lock(self) -> None:
        self._lock = threading.RLock()  # another thread may have held it when the process was forked


class _Limits(Settings):
    """Bytes that Arrays may hold, by Device; None for no limit. A tighter limit of the user's stays."""

    def read(self, key: Device) -> int | None:
        return key.bytes_limit

    def write(self, key: Device, value: int | None) -> None:
        key.set_bytes_limit(value)

    def combined(self, key: Device, user: int | None, asked: list[int]) -> int:
        return asked[-1] if user is None else min(user, asked[-1])


class _Variables(Settings):
    """Environment variables by name; None where there is none. XLA_FLAGS are merged."""

    def read(self, key: str) -> str | None:
        return os.environ.get(key)

    def write(self, key: str, value: str | None) -> None:
        if value is None:
            os.environ.pop(key, None)
        else:
            os.environ[key] = value

    def combined(self, key: str, user: str | None, asked: list[str]) -> str:
        if key != "XLA_FLAGS":
            return asked[-1]
        flags = user
        for more in asked:
            flags = merged_flags(flags, more)[0]
        return flags or ""


class _X64(Settings):
    """The process's jax_enable_x64, whatever the scopes around say."""

    def read(self, key: str) -> bool:
        return bool(contextvars.Context().run(config.read, key))

    def write(self, key: str, value: bool) -> None:
        config.update(key, value)


def merged_flags(there: str | None, asked: str) -> tuple[str, list[str]]:
    """Adds flags to those of XLA_FLAGS; of two with one name the one that is asked for wins.

    Args:
        there: The variable's text; None where it is not set. Text that begins without "-" names a file of flags,
            which cannot be merged.
        asked: The flags to have, separated by blanks.

    Returns:
        The new text, and the flags that were dropped from the old one.

    Example:
        >>> merged_flags("--a=1 --b=2", "--b=3")
        ('--a=1 --b=3', ['--b=2'])
    """
    if not there or not there.strip():
        return asked, []
    if not there.lstrip().startswith("-"):
        return asked, [there] if there != asked else []
    old, new = ([_closed(flag) for flag in _FLAG.findall(text)] for text in (there, asked))
    names = {flag.partition("=")[0] for flag in new}
    kept = [flag for flag in old if flag.partition("=")[0] not in names]
    dropped = [flag for flag in old if flag not in kept and flag not in new]
    return (there, []) if set(new) <= set(old) and not dropped else (" ".join(kept + new), dropped)


def _closed(flag: str) -> str:
    """A flag that ends inside of a quote, as one that does not: another could not follow it."""
    quote = ""
    for sign in flag:
        if sign == quote:
            quote = ""
        elif sign in ("'", '"') and not quote:
            quote = sign
    return flag + quote


LIMITS = _Limits()
VARIABLES = _Variables()
X64 = _X64()
