# SPDX-License-Identifier: Apache-2.0
"""Executes a conversion: pieces are read and changed on a few threads, and written in the order of the files."""

from __future__ import annotations

import contextvars
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent import futures
from functools import partial
from typing import Any, TypeVar

import numpy as np

from artifex_devices._core import internal
from artifex_devices.checkpoint.pieces import Box, tiles_of
from artifex_devices.checkpoint.planned_reader import PlannedReader
from artifex_devices.checkpoint.readers.reader import Reader
from artifex_devices.checkpoint.scratch import Scratch
from artifex_devices.checkpoint.writers.writer import Record, TargetBox, TargetFile, Writer

_MAX_WORKERS = 4


def worker_count() -> int:
    """Returns the number of threads that read pieces; each has at most two pieces in memory."""
    return min(_MAX_WORKERS, len(os.sched_getaffinity(0)))


class Execution:
    """One conversion, from a plan and a reader to a writer."""

    def __init__(self, plan: internal.ConversionPlan, reader: Reader, writer: Writer) -> None:
        self._source = PlannedReader(writer.target.operation, plan, reader)
        self._writer = writer
        self.bytes_written = 0
        self._verified: dict[str, int] = {}  # bytes of files that were finished before; one thread counts each
        self._is_stopped = False
        self._scratch: Scratch | None = None  # of the box whose slabs are read

    @property
    def bytes_done(self) -> int:
        """Bytes that are written so far, and verified of files that were finished before."""
        return self.bytes_written + sum(self._verified.values())

    @property
    def scratch_bytes(self) -> int:
        """Largest size of the scratch file."""
        boxes = [box for file in self._writer.files() for box in file.boxes]
        return max((box.nbytes for box in boxes if self._tile(box)), default=0)

    def run(
        self, folder: str, scratch: str, finished: Mapping[str, Record], record: Callable[[str, Record], None]
    ) -> None:
        """Writes all files into a folder, except those in `finished` that are unchanged; `scratch` is a new path."""
        self._scratch_path = scratch
        files = self._writer.files()
        self._verified = {file.name: 0 for file in files if file.name in finished}

        def is_unchanged(file: TargetFile) -> bool:
            def count(nbytes: int) -> None:
                if self._is_stopped:
                    raise futures.CancelledError
                self._verified[file.name] += nbytes

            is_same = self._writer.is_finished(folder, file, finished[file.name], count)
            self._verified[file.name] = sum(box.nbytes for box in file.boxes) if is_same else 0
            return is_same

        pool = futures.ThreadPoolExecutor(worker_count(), "artifex_devices-convert")
        try:
            before = [file for file in files if file.name in finished]
            done = {file.name for file, is_same in zip(before, pool.map(is_unchanged, before), strict=True) if is_same}
            for file in files:
                for box in file.boxes if file.name in done else ():
                    for piece in self._reads(box):
                        self._source.skip(box.name, piece)
            self._write(folder, [file for file in files if file.name not in done], record, pool)
            deque(pool.map(self._source.check, self._source.unchecked()), maxlen=0)
        finally:
            self._is_stopped = True
            pool.shutdown(cancel_futures=True)
            if self._scratch is not None:  # after an error, which may keep this object
                self._scratch.close()
        self._writer.finish(folder)

    def _write(
        self,
        folder: str,
        files: Sequence[TargetFile],
        record: Callable[[str, Record], None],
        pool: futures.ThreadPoolExecutor,
    ) -> None:
        pieces = _ahead(pool, self._calls(files, pool))
        for file in files:
            writer = self._writer.begin(folder, file)
            try:
                for box in file.boxes:
                    for origin, _ in self._source.pieces(box.name, box.box):
                        piece = next(pieces)
                        writer.write(box, origin, piece)
                        self.bytes_written += piece.nbytes
                        del piece
                finished = writer.finish()
            finally:
                writer.close()
            record(file.name, finished)

    def _reads(self, box: TargetBox) -> Iterator[Box]:
        """Yields the boxes in which a box is read: tiles or slabs."""
        tile = self._tile(box)
        return tiles_of(box.box, tile) if tile else self._source.pieces(box.name, box.box)

    def _tile(self, box: TargetBox) -> tuple[int, ...] | None:
        slab = next(self._source.pieces(box.name, box.box))
        return self._source.tile(box.name, box.box, slab)

    def _calls(
        self, files: Sequence[TargetFile], pool: futures.ThreadPoolExecutor
    ) -> Iterator[Callable[[], np.ndarray[Any, Any]] | None]:
        """Yields the calls that read slabs, in the order of the files; None where those before must end first."""
        for file in files:
            for box in file.boxes:
                if tile := self._tile(box):
                    yield None  # tiles take their memory
                    yield from self._calls_by_tiles(box, tile, pool)
                else:
                    yield from (partial(self._source.read, box.name, slab) for slab in self._reads(box))

    def _calls_by_tiles(
        self, box: TargetBox, tile: tuple[int, ...], pool: futures.ThreadPoolExecutor
    ) -> Iterator[Callable[[], np.ndarray[Any, Any]]]:
        scratch = self._scratch = Scratch(self._scratch_path, box.box, tile, box.dtype)
        fill = partial(self._fill, scratch, box.name)
        deque(_ahead(pool, (partial(fill, each) for each in self._reads(box))), maxlen=0)
        yield from (partial(scratch.read, slab) for slab in self._source.pieces(box.name, box.box))
        self._scratch = None  # it vanishes after the last of these calls

    def _fill(self, scratch: Scratch, name: str, tile: Box) -> None:
        scratch.write(tile, self._source.read(name, tile))


_Result = TypeVar("_Result")


def _ahead(pool: futures.ThreadPoolExecutor, calls: Iterable[Callable[[], _Result] | None]) -> Iterator[_Result]:
    """Yields what calls return, in their order, while threads make the next ones; a None waits for those before."""
    running: deque[futures.Future[_Result]] = deque()
    for call in calls:
        if call is not None:
            running.append(pool.submit(contextvars.copy_context().run, call))
        while len(running) > (0 if call is None else worker_count()):
            yield running.popleft().result()
    while running:
        yield running.popleft().result()
