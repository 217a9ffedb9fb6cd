# SPDX-License-Identifier: Apache-2.0
"""Reads the events of a trace in Chrome's JSON format one by one, and stores the fields that profiles use."""

from __future__ import annotations

import gzip
import json
import os
import re
import sys
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from artifex_devices._base.checks import failure, wrong_type
from artifex_devices._base.regular_file import decompressed, read_regular_file
from artifex_devices._base.safe_repr import safe_repr

_OPERATION = "read_profile"
_FIX = "write read_profile('trace.json.gz')"
_NAMES = ("trace.json.gz", "trace.json")  # of files in a folder

# Traces of published runs have up to some hundred MB and shrink to a tenth to a fortieth.
_MOST_BYTES = 1 << 30
_MOST_SHRINKING = 64
_ALWAYS_ALLOWED = 64 << 20

_KEYS = ("ph", "name", "cat", "pid", "tid", "ts", "dur")
_ARGUMENTS = ("name", "device", "device_ordinal", "step_num", "hlo_op", "hlo_category", "tf_op", "Collective name")
_BLANK = re.compile(r"[ \t\n\r]*")


def read_events(source: object) -> tuple[str, list[Any]]:
    """Returns a name and the events of a file, a folder that `jax.profiler.trace` wrote, or parsed JSON."""
    if isinstance(source, (str, os.PathLike)):
        path = _file_in(Path(source)) if os.path.isdir(source) else Path(source)
        return path.name, _events_in(path)
    if isinstance(source, (Mapping, list)):
        events = source.get("traceEvents") if isinstance(source, Mapping) else source
        if not isinstance(events, list):
            raise _no_events("source")
        return "a trace", events
    raise wrong_type(_OPERATION, "source", source, "a path, or a trace as json.load returns it", _FIX)


def _file_in(folder: Path) -> Path:
    found = [path for path in folder.rglob("*") if path.name.endswith(_NAMES) and path.is_file()]
    if not found:
        raise failure(
            ValueError,
            _OPERATION,
            f"no file in {safe_repr(str(folder))} ends in {' or '.join(_NAMES)}",
            expected="the folder of a trace",
            fix="with JAX write jax.profiler.trace(folder, create_perfetto_trace=True)",
        )
    return max(found, key=lambda path: (path.stat().st_mtime, path.name))


def _events_in(path: Path) -> list[Any]:
    try:
        content = read_regular_file(path, _MOST_BYTES)
        content = decompressed(content, min(_MOST_BYTES, max(_ALWAYS_ALLOWED, _MOST_SHRINKING * len(content))))
    except ValueError as error:
        raise ValueError(f"{_OPERATION}: {safe_repr(path.name)} {error}; expected a trace; {_FIX}") from None
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise _not_json(path, error) from error
    try:
        text = content.decode("utf-8-sig")
        del content
        events = _TraceText(text).events()
    except (ValueError, RecursionError) as error:
        raise _not_json(path, error) from error
    if events is None:
        raise _no_events(path.name)
    return events


def _not_json(path: Path, error: Exception) -> ValueError:
    return failure(
        ValueError,
        _OPERATION,
        f"{safe_repr(path.name)} is not JSON: {error}",
        expected="a trace in the JSON format of Chrome, plain or compressed by gzip",
        fix=_FIX,
    )


def _no_events(name: str) -> ValueError:
    return failure(
        ValueError,
        _OPERATION,
        f"{safe_repr(name)} has no list of traceEvents",
        expected="a trace in the JSON format of Chrome, as jax.profiler, torch.profiler and profiler.trace write it",
        fix=_FIX,
    )


class _TraceText:
    """The JSON text of a trace, whose events are parsed one by one.

    A trace that is parsed at once takes twenty times the size of its text in memory, and does not stop for Ctrl-C.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self._decode = json.JSONDecoder().raw_decode
        self._at = 0

    def events(self) -> list[Any] | None:
        """Returns the events of the list, or of the member traceEvents of the object, or None without this member."""
        found: list[Any] | None = None
        if self._next() == "[":
            found = self._list()
        elif self._next() == "{":
            for name in self._members():
                if name == "traceEvents":
                    found = self._list() if self._next() == "[" else None
                if name != "traceEvents" or found is None:
                    self._value()
        else:
            self._value()
        if self._next():
            raise self._error("Extra data")
        return found

    def _members(self) -> Iterator[str]:
        """Yields the name of each member of an object, before its value."""
        for _ in self._items("}"):
            name = self._value() if self._next() == '"' else None
            if not isinstance(name, str) or self._next() != ":":
                raise self._error("Expecting a name and ':'")
            self._at += 1
            yield name

    def _list(self) -> list[Any]:
        found = []
        for _ in self._items("]"):
            event = self._value()
            if isinstance(event, dict) and event.get("ph") in ("X", "M"):
                found.append(_reduced(event))
        return found

    def _items(self, end: str) -> Iterator[None]:
        """Yields before each item of a list or object."""
        self._at += 1
        if self._next() != end:
            yield
            while self._next() == ",":
                self._at += 1
                yield
        if self._next() != end:
            raise self._error(f"Expecting ',' or {end!r}")
        self._at += 1

    def _next(self) -> str:
        """Returns the next character that is not blank; empty at the end."""
        self._at = _BLANK.match(self._text, self._at).end()  # type: ignore[union-attr]
        return self._text[self._at : self._at + 1]

    def _value(self) -> Any:
        self._next()
        value, self._at = self._decode(self._text, self._at)
        return value

    def _error(self, text: str) -> ValueError:
        return json.JSONDecodeError(text, self._text, self._at)


def _reduced(event: dict[str, object]) -> dict[str, object]:
    """Returns the parts of an event that a profile needs. Equal names are one object."""
    kept: dict[str, Any] = {key: event[key] for key in _KEYS if key in event}
    for key in ("name", "cat"):
        if type(kept.get(key)) is str:
            kept[key] = sys.intern(kept[key])
    arguments = event.get("args")
    if isinstance(arguments, dict):
        chosen = {key: arguments[key] for key in _ARGUMENTS if key in arguments}
        if chosen:
            kept["args"] = chosen
    return kept
