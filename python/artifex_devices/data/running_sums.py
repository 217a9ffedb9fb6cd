# SPDX-License-Identifier: Apache-2.0
"""Running sums of the lengths in the order of a stream, stored beside its source: a resume does not add them again."""

from __future__ import annotations

import json
import threading

from artifex_devices._base.digest import digest_of
from artifex_devices._core.data import PackedRows
from artifex_devices.data.length_file import read_table, write_table
from artifex_devices.data.lengths import Lengths, table_path
from artifex_devices.data.state import VERSION
from artifex_devices.data.stream import Stream

_LEAST = 1 << 13  # new sums, each of 512 samples, that are worth a file: adding them up takes about 0.1 s


class RunningSums:
    """The running sums of packed rows, and their file."""

    def __init__(self, rows: PackedRows, stream: Stream, table: list[Lengths], limit: int | None) -> None:
        """Gives stored sums to `rows`.

        Args:
            rows: The rows.
            stream: The stream of samples. The file is beside its first source that has a path.
            table: Lengths of the samples of each source.
            limit: Most tokens of a sample, which are checked while lengths are added up; None: any number.
        """
        paths = [leaf.source.path for leaf in stream._leaves if leaf.source.path is not None]
        identity = [VERSION, stream._order_identity(), [each.digest for each in table], limit]
        self._key = digest_of(json.dumps(identity)).hex()
        self._file = table_path(paths[0], self._key).with_suffix(".sums") if paths else None
        self._rows = rows
        self._lock = threading.Lock()
        self._stored = self._take()

    def _take(self) -> int:
        """Gives the sums in the file to the rows; returns their number."""
        found = None if self._file is None else read_table(self._file, self._key)
        return len(found[0]) if found is not None and self._rows.take_sums(found[0]) else 0

    def store(self) -> None:
        """Writes the file again if many sums were added; where it cannot be written, the next run adds them again."""
        file = self._file
        if file is None or self._rows.sum_count() - self._stored < _LEAST:
            return
        if not self._lock.acquire(blocking=False):
            return  # another thread is about to write it
        try:
            before = self._take()  # another process of the job may have stored more
            sums = self._rows.sums()
            if len(sums) > before:
                write_table(file, self._key, sums)
            self._stored = len(sums)
        except OSError:
            self._file = None
        finally:
            self._lock.release()
