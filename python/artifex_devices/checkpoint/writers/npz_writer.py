# SPDX-License-Identifier: Apache-2.0
"""Writer of one .npz file, as numpy.savez writes it: an archive of .npy files that are not compressed."""

from __future__ import annotations

import zipfile
from typing import IO, Any, cast

import numpy as np

from artifex_devices._base.checks import failure
from artifex_devices.checkpoint.named_leaves import list_of
from artifex_devices.checkpoint.writers.writer import FileWriter, Record, Stream, Target, TargetBox, TargetFile, Writer

_MOST_NAME = 60_000  # bytes: the archive has 16 bits for them


class NpzWriter(Writer):
    """Writes complete arrays to one file."""

    format = "npz"

    def __init__(self, target: Target) -> None:
        super().__init__(target)
        self._check_types(".npy files have", lambda dtype: dtype.isbuiltin == 1)
        wrong = [name for name in target.arrays if "\0" in name or len(name.encode()) > _MOST_NAME]
        if wrong:
            raise failure(
                ValueError,
                target.operation,
                f"{list_of(wrong)} cannot be names in an archive",
                expected=f"at most {_MOST_NAME} bytes, without null characters",
                fix="rename them by rules.rename",
            )

    @property
    def writes_one_file(self) -> bool:
        """Whether the target is a file: always."""
        return True

    def files(self) -> list[TargetFile]:
        """Returns the archive, which has all arrays."""
        return [TargetFile("arrays.npz", tuple(map(self.target.whole, self.target.arrays)))]

    def begin(self, folder: str, file: TargetFile) -> FileWriter:
        """Creates the archive."""
        return _ArchiveWriter(f"{folder}/{file.name}")


class _Output:
    """A Stream as a file without positions: what zipfile then writes needs no second visit."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream

    def write(self, data: bytes | memoryview) -> int:
        self._stream.write(data if isinstance(data, bytes) else np.frombuffer(data, np.uint8))
        return memoryview(data).nbytes

    def flush(self) -> None:
        pass


class _ArchiveWriter(FileWriter):
    def __init__(self, path: str) -> None:
        self._stream = Stream(path)
        self._archive = zipfile.ZipFile(cast(IO[bytes], _Output(self._stream)), "w")
        self._member: IO[bytes] | None = None
        self._left = 0  # bytes of the open member that are not written yet

    def write(self, box: TargetBox, origin: tuple[int, ...], piece: np.ndarray[Any, Any]) -> None:
        if self._member is None:
            info = zipfile.ZipInfo(f"{box.name}.npy")  # with the same time in each file
            self._member = self._archive.open(info, "w", force_zip64=True)
            header = {"descr": np.lib.format.dtype_to_descr(box.dtype), "fortran_order": False, "shape": box.shape}
            np.lib.format.write_array_header_1_0(self._member, header)
            self._left = box.nbytes
        self._member.write(piece.reshape(-1).view(np.uint8).data)
        self._left -= piece.nbytes
        if not self._left:
            self._member.close()
            self._member = None

    def finish(self) -> Record:
        self._archive.close()
        return self._stream.finish()

    def close(self) -> None:
        self._archive.fp = None  # otherwise its destructor writes a directory
        self._stream.close()
