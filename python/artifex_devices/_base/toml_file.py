# SPDX-License-Identifier: Apache-2.0
"""TOML files that people write: read, or refused with what is wrong."""

from __future__ import annotations

import errno
import os
import re
import stat
import sys
from collections.abc import Sequence
from typing import Any

from artifex_devices._base.toml_lines import line_text

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

__all__ = ["all_mistakes", "key_text", "read_toml", "unprintable"]

_LARGEST_FILE = 256 << 10
_MOST_MISTAKES = 50  # that an error names
_LONGEST_KEY = 16  # parts; tomllib's time and memory grow with their square: a key of 64 KiB takes a minute
_PART = r"""(?:[A-Za-z0-9_-]+|"[^"\n]*"|'[^'\n]*')"""
_LONG_KEY = re.compile(rf"(?<![A-Za-z0-9_-]){_PART}(?:[ \t]*\.[ \t]*{_PART}){{{_LONGEST_KEY}}}")


def read_toml(operation: str, path: str) -> tuple[dict[str, Any], str]:
    """What a file says, and its text: UTF-8, with or without a byte order mark.

    Args:
        operation: That errors begin with.
        path: The file.

    Raises:
        OSError: It cannot be read; of the class that `open` raises.
        ValueError: It is no TOML, no path at all, no regular file, larger than 256 KiB, or has a dotted key of more
            than 16 parts.
    """
    try:
        content = _content(path)
    except OSError as error:
        told = type(error)(
            f"{operation}: {path!r} cannot be read: {error.strerror or error}; expected a TOML file; correct the path"
        )
        told.errno = error.errno
        raise told from None
    except ValueError as error:  # a zero in it
        raise ValueError(f"{operation}: {path!r} is no path: {error}; expected a TOML file; correct the path") from None
    if content is None:
        raise ValueError(f"{operation}: {path!r} is no regular file; expected a TOML file; correct the path")
    if len(content) > _LARGEST_FILE:
        raise ValueError(
            f"{operation}: {path} has more than {_LARGEST_FILE >> 10} KiB; expected a TOML file that somebody wrote; "
            "correct the path"
        )
    try:
        text = content.decode("utf-8-sig").replace("\r\n", "\n")
        if long := _LONG_KEY.search(text):
            line = text.count("\n", 0, long.start()) + 1
            raise ValueError(f"line {line} has a dotted key of more than {_LONGEST_KEY} parts")
        return tomllib.loads(text), text
    except (ValueError, RecursionError) as error:  # of decoding, of TOML; one nested too deeply
        raise ValueError(f"{operation}: {path} is no TOML: {error}; expected TOML; correct the file") from None


def _content(path: str) -> bytes | None:
    """Of a regular file, as far as it is looked at: a pipe may never begin."""
    number = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        mode = os.fstat(number).st_mode
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        if not stat.S_ISREG(mode):
            return None
        with os.fdopen(number, "rb", closefd=False) as file:
            return file.read(_LARGEST_FILE + 1)
    finally:
        os.close(number)


def all_mistakes(wrong: Sequence[str]) -> str:
    """What an error says of a file: everything that is wrong, or the first fifty.

    Example:
        >>> all_mistakes(["a is 1", "b is 2"]), all_mistakes(["no"] * 52)[-24:]
        ('a is 1; b is 2', 'no; no; no; and 2 others')
    """
    rest = len(wrong) - _MOST_MISTAKES
    return "; ".join([*wrong[:_MOST_MISTAKES], *([f"and {rest} others"] if rest > 0 else [])])


def key_text(key: str) -> str:
    r"""A key of a file for an error: escaped where a terminal would take it for an order.

    Example:
        >>> key_text("name"), key_text("na\x1bme") == repr("na\x1bme")
        ('name', True)
    """
    return key if key.isprintable() else repr(key)


def unprintable(value: Any, text: str, *keys: str) -> list[str]:
    """What is wrong with a name of a file: characters that a terminal takes for orders. Nothing else is looked at.

    Args:
        value: Of the key.
        text: Of the file.
        keys: From the outermost table on.
    """
    if not isinstance(value, str) or value.isprintable():
        return []
    where = f" of [{keys[-2]}]" if len(keys) > 1 else ""
    return [f"{line_text(text, *keys)}{keys[-1]}{where} is {value!r}; expected characters that can be printed"]
