# SPDX-License-Identifier: Apache-2.0
"""The small files of /proc and /sys below a root: "/", or a copy of a machine's files."""

from __future__ import annotations

import errno
import os
from pathlib import Path

from artifex_devices._base.regular_file import read_regular_file

_MOST_BYTES = 1 << 20


class SystemFiles:
    """Reads small files; a missing or empty one is not an error."""

    def __init__(self, root: str | os.PathLike[str] = "/") -> None:
        """Takes the folder of proc and sys."""
        self._root = Path(root)

    def read(self, path: str) -> tuple[str | None, str | None]:
        """Returns the stripped text, or None and the reason; OSError where no file can be opened."""
        try:
            content = read_regular_file(self._root / path.lstrip("/"), _MOST_BYTES)
        except OSError as error:
            if error.errno in (errno.EMFILE, errno.ENFILE, errno.ENOMEM):  # callers store the result
                raise
            return None, f"{path} cannot be read ({error.strerror or error})"
        except ValueError as error:
            return None, f"{path} {error}"
        text = content.decode("utf-8", "replace").strip()
        return (text, None) if text else (None, f"{path} is empty")

    def number(self, path: str) -> int | None:
        """Returns the whole number that is the text of a file, or None."""
        text, _ = self.read(path)
        return int(text) if text is not None and text.isdecimal() else None

    def table(self, path: str) -> tuple[dict[str, int], str | None]:
        """Reads numbers from lines of the form "Name:   12 kB", kB as bytes; returns them and the problem."""
        text, problem = self.read(path)
        table = {}
        for line in (text or "").splitlines():
            name, _, rest = line.partition(":")
            words = rest.split()
            if words and words[0].isdecimal():
                table[name.strip()] = int(words[0]) * (1024 if words[1:] == ["kB"] else 1)
        return table, problem
