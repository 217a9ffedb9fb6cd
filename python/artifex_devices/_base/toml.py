# SPDX-License-Identifier: Apache-2.0
"""TOML files that people write: parsed, or refused with the mistakes and their lines."""

from __future__ import annotations

import functools
import re
import tomllib
from collections.abc import Iterator, Sequence
from typing import Any

from artifex_devices._base.regular_file import read_regular_file
from artifex_devices._base.text import printable, shortened

_LARGEST_FILE = 256 << 10
_MAX_MISTAKES = 50  # in one error
_LONGEST_KEY = 16  # parts; tomllib's time and memory grow with their square: a key of 64 KiB takes a minute
_PART = r"""(?:[A-Za-z0-9_-]+|"[^"\n]*"|'[^'\n]*')"""
_LONG_KEY = re.compile(rf"(?<![A-Za-z0-9_-]){_PART}(?:[ \t]*\.[ \t]*{_PART}){{{_LONGEST_KEY}}}")

# Limits of the search for the line of a key.
_MAX_LINES = 2000
_MAX_CHARACTERS = 1 << 19  # that are parsed; a statement of several lines is parsed once per line
_MAX_KEYS = 3  # of a path


def read_toml(operation: str, path: str) -> tuple[dict[str, Any], str]:
    """Returns the content of a file and its text: UTF-8, with or without a byte order mark.

    Raises:
        OSError: The file cannot be read; of the class that `open` raises.
        ValueError: The file is not TOML, not a path, not a regular file, larger than 256 KiB, or has a dotted key of
            more than 16 parts.
    """
    hint = "expected a TOML file; correct the path"
    try:
        content = read_regular_file(path, _LARGEST_FILE)
    except OSError as error:
        refusal = type(error)(f"{operation}: {path!r} cannot be read: {error.strerror or error}; {hint}")
        refusal.errno = error.errno
        raise refusal from None
    except ValueError as error:
        problem = f"{path!r} is not a path: it has a null character" if "\0" in path else f"{printable(path)} {error}"
        raise ValueError(f"{operation}: {problem}; {hint}") from None
    try:
        text = content.decode("utf-8-sig").replace("\r\n", "\n")
        if long := _LONG_KEY.search(text):
            line = text.count("\n", 0, long.start()) + 1
            raise ValueError(f"line {line} has a dotted key of more than {_LONGEST_KEY} parts")
        return tomllib.loads(text), text
    except (ValueError, RecursionError) as error:  # of decoding, of TOML; one nested too deeply
        problem = f"{printable(path)} is not TOML: {error}"
        raise ValueError(f"{operation}: {problem}; expected TOML; correct the file") from None


def all_mistakes(wrong: Sequence[str]) -> str:
    """Joins the mistakes in a file, the first fifty at most.

    Example:
        >>> all_mistakes(["a is 1", "b is 2"]), all_mistakes(["no"] * 52)[-24:]
        ('a is 1; b is 2', 'no; no; no; and 2 others')
    """
    return "; ".join(shortened(wrong, _MAX_MISTAKES, "and {} others"))


def key_text(key: str) -> str:
    r"""Returns a key of a file for an error, escaped where a terminal would take it for a command.

    Example:
        >>> key_text("name"), key_text("na\x1bme") == repr("na\x1bme")
        ('name', True)
    """
    return key if key.isprintable() else repr(key)


def unprintable(value: object, text: str, *keys: str) -> list[str]:
    """Returns the mistake of a text with characters that a terminal takes for commands, as a list of one or none.

    Args:
        value: The value of the key.
        text: The text of the file.
        keys: The path of the key from the outermost table on.
    """
    if not isinstance(value, str) or value.isprintable():
        return []
    where = f" of [{keys[-2]}]" if len(keys) > 1 else ""
    return [f"{line_text(text, *keys)}{keys[-1]}{where} is {value!r}; expected characters that can be printed"]


def line_of(text: str, *keys: str) -> int | None:
    r"""Returns the number of the line, from 1 on, that first sets a key.

    Each statement is parsed by itself, under its table, because the parser does not report lines.

    Args:
        text: The text of a TOML file.
        keys: The path of the key from the outermost table on, three names at most.

    Returns:
        None where the file does not set the key, is longer than 2,000 lines, or has too long statements before it.

    Example:
        >>> line_of('name = "lab"\n[slice]\ndims = [\n  4,\n]\n', "slice", "dims")
        3
    """
    return _lines_of(text).get(keys)


@functools.lru_cache(maxsize=1)  # an error names many keys of one text
def _lines_of(text: str) -> dict[tuple[str, ...], int]:
    lines = text.split("\n")
    found: dict[tuple[str, ...], int] = {}
    if len(lines) > _MAX_LINES:
        return found
    table, start, parsed = "", 0, 0
    for end in range(1, len(lines) + 1):
        statement = "\n".join(lines[start:end])
        parsed += len(statement) + len(table)
        if parsed > _MAX_CHARACTERS:
            return found
        try:
            tomllib.loads(statement)
        except tomllib.TOMLDecodeError:
            continue  # the statement continues
        if statement.lstrip().startswith("["):
            table = statement
            content = tomllib.loads(table)
        else:
            content = tomllib.loads(f"{table}\n{statement}")
        for keys in _paths(content, ()):
            found.setdefault(keys, start + 1)
        start = end
    return found


def _paths(content: object, outer: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    if not isinstance(content, dict) or len(outer) == _MAX_KEYS:
        return
    for key, value in content.items():
        yield (*outer, key)
        yield from _paths(value, (*outer, key))


def line_text(text: str, *keys: str) -> str:
    """Returns "line 3: " for an error, or nothing where the line is not found."""
    line = line_of(text, *keys)
    return "" if line is None else f"line {line}: "
