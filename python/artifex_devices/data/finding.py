# SPDX-License-Identifier: Apache-2.0
"""data.source: finds what reads the samples of files and objects."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from artifex_devices._base.checks import failure, wrong_type
from artifex_devices._base.public_path import public
from artifex_devices._base.text import shortened_list
from artifex_devices.data.array_record_files import ArrayRecordFiles
from artifex_devices.data.arrow_files import ArrowFiles, ParquetFiles
from artifex_devices.data.files import FileSource
from artifex_devices.data.npy_files import NpyFiles
from artifex_devices.data.sources import ArraySource, ObjectSource, Source

_OPERATION = "data.source"
_READERS: dict[str, type[FileSource]] = {
    ".npy": NpyFiles,
    ".array_record": ArrayRecordFiles,
    ".arrayrecord": ArrayRecordFiles,
    ".parquet": ParquetFiles,
    ".arrow": ArrowFiles,
    ".feather": ArrowFiles,
}
_KINDS = ", ".join(_READERS)


@public("artifex_devices.data")
def source(samples: object) -> Source:
    """Returns what reads samples by number.

    Files are numbered through in the order of their names. A sample of `.npy` is a row, of ArrayRecord bytes, of
    Parquet and Arrow a dict of columns. Columns of numbers give NumPy numbers, lists of numbers arrays, and texts str;
    columns with missing values give Python objects, None too.

    Args:
        samples: A file, a folder, a pattern such as `train/*.parquet`, or a list of files, of one kind; an array,
            whose rows are the samples; or an object with `__len__` and `__getitem__` or `read(indices)`: a list, a
            dataset of torch, Hugging Face or Grain.

    Raises:
        TypeError: `samples` cannot be read by number.
        FileNotFoundError: There is no such file, or no file of the pattern.
        ValueError: A file is damaged, of an unknown kind, or unlike the others.
        ImportError: The package that reads these files is not installed.

    Example:
        >>> import numpy as np
        >>> from artifex_devices import data
        >>> source = data.source(np.arange(6).reshape(3, 2))
        >>> len(source), source[1]
        (3, array([2, 3]))
    """
    if isinstance(samples, Source):
        return samples
    if isinstance(samples, (str, os.PathLike)):
        return _of_files(_paths(samples))
    if isinstance(samples, (list, tuple)) and samples and all(_is_path(each) for each in samples):
        return _of_files([path for each in samples for path in _paths(each)])
    if isinstance(samples, np.ndarray) and samples.ndim > 0:
        return ArraySource(samples)
    reads = callable(getattr(samples, "__getitem__", None)) or callable(getattr(samples, "read", None))
    if not hasattr(samples, "__len__") or not reads or isinstance(samples, (dict, set, bytes, type)):
        raise wrong_type(
            _OPERATION,
            "samples",
            samples,
            "files, an array, or an object with __len__ and __getitem__",
            'write data.source("train/*.npy") or data.source(list_of_samples); a stream without __len__ has no order '
            "to go on from: write it to files first",
        )
    return ObjectSource(samples)


def _is_path(value: object) -> bool:
    """Returns whether an element of a list is a file; other texts are samples."""
    return isinstance(value, os.PathLike) or (isinstance(value, str) and Path(value).suffix in _READERS)


def _paths(text: str | os.PathLike[str]) -> list[Path]:
    """Returns the files that a path, a folder or a pattern names."""
    name = os.fspath(text)
    path = Path(name)
    if path.is_dir():
        return _one_kind(path, sorted(each for each in path.iterdir() if each.suffix in _READERS))
    if path.exists():
        return [path]
    found = [Path(each) for each in sorted(glob.glob(name, recursive=True))] if glob.has_magic(name) else []
    if not found:
        problem = f"no file matches {name!r}" if glob.has_magic(name) else f"there is no file {name!r}"
        raise failure(
            FileNotFoundError,
            _OPERATION,
            problem,
            expected="at least one file",
            fix=f"correct the path; this is {os.getcwd()!r}",
        )
    return found


def _one_kind(folder: Path, paths: list[Path]) -> list[Path]:
    readers = {_READERS[path.suffix] for path in paths}
    if len(readers) == 1:
        return paths
    kinds = sorted({path.suffix for path in paths})
    raise failure(
        ValueError,
        _OPERATION,
        f"the folder {str(folder)!r} has {f'files of several kinds, {kinds}' if kinds else 'no file of samples'}",
        expected=f"files of one kind: {_KINDS}",
        fix=f"name the files: data.source({str(folder / ('*' + (kinds[0] if kinds else '.npy')))!r})",
    )


def _of_files(paths: Iterable[Path]) -> Source:
    listed = list(paths)
    readers = {_READERS.get(path.suffix) for path in listed}
    reader = readers.pop()
    if readers or reader is None:
        unknown = [path.name for path in listed if path.suffix not in _READERS]
        problem = (
            f"{shortened_list(unknown, 4)} cannot be read by number" if unknown else "the files are of several kinds"
        )
        raise failure(
            ValueError,
            _OPERATION,
            problem,
            expected=f"files of one kind: {_KINDS}",
            fix="write the samples to one of these, or give an object with __len__ and __getitem__",
        )
    found = reader(listed)
    if len({each.path for each in found.files}) != len(listed):
        raise failure(
            ValueError, _OPERATION, "a file is named twice", expected="each file once", fix="remove one of them"
        )
    return found
