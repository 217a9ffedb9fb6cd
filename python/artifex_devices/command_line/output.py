# SPDX-License-Identifier: Apache-2.0
"""Writing to standard output: signs that the encoding has, colours where a terminal shows them, files."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from artifex_devices.command_line.exit_codes import UsageError


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
