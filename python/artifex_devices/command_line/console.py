# SPDX-License-Identifier: Apache-2.0
"""Exit codes, amounts in options, and output of all commands."""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

OK = 0
ATTENTION = 1
USAGE = 2
FAILED = 3
INTERRUPTED = 130
BROKEN_PIPE = 141


class UsageError(ValueError):
    """What was asked for cannot be understood: the text says why and what to write instead; exit code 2."""


_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12, "ki": 2**10, "mi": 2**20, "gi": 2**30, "ti": 2**40}


def count_of(text: str) -> int:
    """A whole number from 1 on; 1,024 and 1_024 are taken too."""
    try:
        value = int(text.replace(",", ""))
    except ValueError:
        value = 0
    if value < 1:
        raise argparse.ArgumentTypeError(f"expected a whole number from 1 on, got {text!r}")
    return value


def bytes_of(text: str) -> int:
    """`4000000`, `4MB` (of a million), `4MiB` (of 2 to the 20th), `1.5 GB`."""
    match = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?) ?([kmgt]i?)?b?", text.strip().lower())
    if match is None:
        raise argparse.ArgumentTypeError(f"expected bytes such as 4000000, 4MB or 4MiB, got {text!r}")
    unit = _UNITS[match[2] or ""]
    return round(float(match[1]) * unit) if "." in match[1] else int(match[1]) * unit


def has_signs(signs: str) -> bool:
    """Whether standard output can show these signs."""
    try:
        signs.encode(getattr(sys.stdout, "encoding", None) or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def write_text(text: str) -> None:
    """Writes to standard output; signs that its encoding does not have are escaped.

    Raises:
        OSError: It is closed, or what it leads to is full or gone.
    """
    stream = sys.stdout
    if stream is None:
        raise OSError("standard output is closed")
    encoding = getattr(stream, "encoding", None) or "ascii"
    stream.write(text.encode(encoding, "backslashreplace").decode(encoding))


def write_json(value: Mapping[str, Any]) -> None:
    """Writes one JSON document, in ASCII."""
    write_text(json.dumps(value, indent=2, allow_nan=False) + "\n")


def write_picture(path: str, picture: str) -> None:
    """Writes an SVG picture to a file, to standard output where the path is "-".

    Raises:
        UsageError: It cannot be written there.
        OSError: Standard output is closed, or what it leads to is full or gone.
    """
    if path == "-":
        write_text(picture)
    else:
        write_file(path, picture)


def write_file(path: str, text: str) -> None:
    """Writes a file in UTF-8.

    Raises:
        UsageError: It cannot be written there.
    """
    try:
        Path(path).write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{path!r} cannot be written ({error.strerror or error}); name a file that can be") from None
