# SPDX-License-Identifier: Apache-2.0
"""Where things stand in a TOML file, for errors: the parser does not tell."""

from __future__ import annotations

import sys
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

__all__ = ["line_of", "line_text"]

_LINES = 2000  # beyond it nothing is searched: the search parses once a line


def line_of(text: str, *keys: str) -> int | None:
    r"""The line, from 1 on, that says a key first.

    The file is parsed as far as each of its lines; the first part that has the key ends with the statement that says
    it. That knows of all that TOML can do, where a search for words would not.

    Args:
        text: Of a file that is TOML.
        keys: From the outermost table on.

    Returns:
        None where the file does not say it (or is longer than 2,000 lines).

    Example:
        >>> line_of('name = "lab"\n[slice]\ndims = [\n  4,\n]\n', "slice", "dims")
        3
    """
    lines = text.split("\n")
    if len(lines) > _LINES:
        return None
    start = 0
    for end in range(1, len(lines) + 1):
        try:
            told = tomllib.loads("\n".join(lines[:end]))
        except tomllib.TOMLDecodeError:
            continue  # in the middle of a statement
        if _has(told, keys):
            blank = (not line.strip() or line.lstrip().startswith("#") for line in lines[start:end])
            return start + 1 + next((i for i, each in enumerate(blank) if not each), 0)
        start = end
    return None


def line_text(text: str, *keys: str) -> str:
    """For an error: "line 3: ", or nothing where the file does not say it."""
    line = line_of(text, *keys)
    return "" if line is None else f"line {line}: "


def _has(told: Any, keys: tuple[str, ...]) -> bool:
    for key in keys:
        if not isinstance(told, dict) or key not in told:
            return False
        told = told[key]
    return True
