# SPDX-License-Identifier: Apache-2.0
"""The samples of a file: their number, columns and lengths."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from artifex_devices.data.files import FileSource
from artifex_devices.data.finding import source
from artifex_devices.data.lengths import lengths_of
from artifex_devices.data.stream import Stream

_BLOCK = 256  # samples that are read together
_MOST_BARS = 12


@dataclasses.dataclass(frozen=True)
class Column:
    """A column of samples; `least` and `most` are its lengths, None where it has none."""

    name: str
    type: str
    least: int | None
    most: int | None


@dataclasses.dataclass(frozen=True)
class Inspection:
    """What a file contains.

    Attributes:
        path: The file, folder or pattern.
        digest: Digest of the source, as states of batches have it.
        samples: Number of samples.
        files: Number of files.
        bytes: Size of all files.
        examined: Number of samples that were read.
        columns: The columns of the samples that were read.
        by: Column of the histogram; "" where samples are arrays, None without a histogram.
        median: Median length.
        mean: Mean length.
        histogram: Pairs of the least and the most length of a bar, each with its number of samples.
    """

    path: str
    digest: str
    samples: int
    files: int
    bytes: int
    examined: int
    columns: tuple[Column, ...]
    by: str | None
    median: float | None
    mean: float | None
    histogram: tuple[tuple[int, int, int], ...]

    @property
    def is_part(self) -> bool:
        """Whether some samples were not read."""
        return self.examined < self.samples

    def to_dict(self) -> dict[str, Any]:
        """Returns the values of the JSON document."""
        bars = [{"least": least, "most": most, "samples": count} for least, most, count in self.histogram]
        return {**dataclasses.asdict(self), "histogram": bars}


def inspect(path: str, count: int, by: str | None) -> Inspection:
    """Reads some samples of a file, and the lengths of all samples if `by` names their column."""
    found = source(path)
    total = len(found)
    files = found.files if isinstance(found, FileSource) else []
    chosen = np.unique(np.linspace(0, max(total - 1, 0), min(count, total)).astype(np.int64))
    lengths: dict[str, list[int | None]] = {}
    types: dict[str, list[str]] = {}
    for start in range(0, len(chosen), _BLOCK):
        for sample in found.read(chosen[start : start + _BLOCK]):
            for name, value in sample.items() if isinstance(sample, Mapping) else [("", sample)]:
                kind, length = _kind(value)
                lengths.setdefault(str(name), []).append(length)
                types.setdefault(str(name), []).append(kind)
    columns = tuple(_column(name, types[name], lengths[name]) for name in lengths)
    if by is not None:
        [table] = lengths_of(Stream(found), by, None, workers=2)
        name, values, examined = by, table.values, total
    else:
        varied = [each.name for each in columns if each.least != each.most]
        name, examined = (varied[0] if varied else None), len(chosen)
        values = np.array([length for length in lengths.get(name or "", []) if length is not None], np.int64)
    has_bars = name is not None and len(values) > 0
    return Inspection(
        path=path,
        digest=found.digest(),
        samples=total,
        files=len(files),
        bytes=sum(each.size for each in files),
        examined=examined,
        columns=columns,
        by=name if has_bars else None,
        median=float(np.median(values)) if has_bars else None,
        mean=float(np.mean(values)) if has_bars else None,
        histogram=_histogram(values) if has_bars else (),
    )


def _kind(value: Any) -> tuple[str, int | None]:
    """Returns the type of a value without its length, and the length."""
    if isinstance(value, (str, bytes)):
        return "text" if isinstance(value, str) else "bytes", len(value)
    array = np.asarray(value)
    if not array.ndim:
        return str(array.dtype), None
    return f"{array.dtype}[{', '.join(['n', *map(str, array.shape[1:])])}]", len(array)


def _column(name: str, types: list[str], lengths: list[int | None]) -> Column:
    known = [length for length in lengths if length is not None]
    kinds = list(dict.fromkeys(types))
    return Column(name, " or ".join(kinds[:3]), min(known, default=None), max(known, default=None))


def _histogram(values: NDArray[np.int64]) -> tuple[tuple[int, int, int], ...]:
    """Returns a bar for each length, or for lengths between powers of 2 where they are many."""
    least, most = int(values.min()), int(values.max())
    if most - least < _MOST_BARS:
        edges = list(range(least, most + 2))
    else:
        powers = [0, *(1 << bit for bit in range(most.bit_length() + 1))]
        edges = [edge for edge, following in zip(powers, [*powers[1:], most + 1], strict=True) if following > least]
    counts, _ = np.histogram(values, [*edges[:-1], edges[-1] - 0.5])
    return tuple(
        (begin, end - 1, int(count)) for begin, end, count in zip(edges[:-1], edges[1:], counts.tolist(), strict=True)
    )
