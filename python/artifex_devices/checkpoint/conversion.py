# SPDX-License-Identifier: Apache-2.0
"""Conversion: what convert did, or would do."""

from __future__ import annotations

from dataclasses import dataclass

from artifex_devices._base.public_path import public
from artifex_devices._base.text import bytes_text, counted, printable, seconds_text


@public("artifex_devices.checkpoint")
@dataclass(frozen=True)
class Conversion:
    """A conversion that is done, or planned by `dry_run`. Its text is the table of a dry run, or a summary.

    Attributes:
        path: Absolute path of the new checkpoint.
        format: Its format.
        files: Names of its files with arrays.
        nbytes: Bytes of its arrays.
        seconds: Measured duration; None for a dry run.
        table: Each target array and its sources, arrays that are left over, bytes and memory.
    """

    path: str
    format: str
    files: tuple[str, ...]
    nbytes: int
    seconds: float | None
    table: str

    def __str__(self) -> str:
        """Formats the table of a dry run; else bytes, files, seconds and bytes per second, as measured."""
        what = f"{printable(self.path)}: {self.format}, {bytes_text(self.nbytes)} in {counted(len(self.files), 'file')}"
        if self.seconds is None:
            return f"{self.table}\n{what}; nothing is written"
        rate = bytes_text(round(self.nbytes / self.seconds)) if self.seconds else "0 bytes"
        return f"{what}; measured {seconds_text(self.seconds)}, {rate}/s"
