# SPDX-License-Identifier: Apache-2.0
"""Where things stand in a TOML file, for errors: the parser does not tell."""

from __future__ import annotations

import functools
import sys
from collections.abc import Iterator
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

__all__ = ["line_of", "line_text"]

_LINES = 2000  # beyond it nothing is searched
_WORK = 1 << 19  # characters that are parsed; a statement is parsed once for each of its lines
_DEPTH = 3  # keys that anybody looks for


def line_of(text: str, *keys: str) -> int | None:
    r"""The line, from 1 on, that says a key first.

    Each statement is parsed by itself, under the table that it stands in. That knows of all that TOML can do, where a
    search for words would not.

    Args:
        text: Of a file that is TOML.
        keys: From the outermost table on, three at most.

    Returns:
        None where the file does not say it; or is longer than 2,000 lines, or has statements before it that are too
        long to be looked through.

    Example:
        >>> line_of('name = "lab"\n[slice]\ndims = [\n  4,\n]\n', "slice", "dims")
        3
    """
    return _lines_of(text).get(keys)


@functools.lru_cache(maxsize=1)  # an error asks for many keys of one text
def _lines_of(text: str) -> dict[tuple[str, ...], int]:
    lines = text.split("\n")
    found: dict[tuple[str, ...], int] = {}
    if len(lines) > _LINES:
        return found
    table, start, work = "", 0, 0
    for end in range(1, len(lines) + 1):
        statement = "\n".join(lines[start:end])
        work += len(statement) + len(table)
        if work > _WORK:
            return found
        try:
            tomllib.loads(statement)
        except tomllib.TOMLDecodeError:
            continue  # in the middle of it
        if statement.lstrip().startswith("["):
            table = statement
            told = tomllib.loads(table)
        else:
            told = tomllib.loads(f"{table}\n{statement}")
        for keys in _paths(told, ()):
            found.setdefault(keys, start + 1)
        start = end
    return found


def _paths(told: Any, outer: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    if not isinstance(told, dict) or len(outer) == _DEPTH:
        return
    for key, value in told.items():
        yield (*outer, key)
        yield from _paths(value, (*outer, key))


def line_text(text: str, *keys: str) -> str:
    """For an error: "line 3: ", or nothing where the file does not say it."""
    line = line_of(text, *keys)
    return "" if line is None else f"line {line}: "
