# SPDX-License-Identifier: Apache-2.0
"""The order of a stream for Grain. Grain is not imported: it takes any object with these methods."""

from __future__ import annotations

from collections.abc import Sequence
from typing import SupportsIndex

import numpy as np

from artifex_devices._base.checks import check_int, wrong_type
from artifex_devices._base.leaf_types import PyTree
from artifex_devices._base.public_path import public
from artifex_devices.data.reading import read
from artifex_devices.data.stream import Stream

_FIX = "repair the source, or leave the sample out by filter"


@public("artifex_devices.data")
class GrainSource:
    """A random-access source for Grain whose record k is the sample of a stream at position k.

    Grain must read it in order, without its own shuffle: `grain.MapDataset.source(source)`, or a DataLoader with a
    sequential sampler. Its state is then a position of the stream.

    Args:
        stream: A stream with an end: `stream.take(n)` of an endless one.

    Raises:
        TypeError: `stream` is not a Stream, or has no end.

    Example:
        >>> from artifex_devices import data
        >>> source = data.GrainSource(data.Stream([5, 6, 7], seed=1)[::-1])
        >>> len(source), source[0], source.__getitems__([2, 1])
        (3, 7, [5, 6])
    """

    def __init__(self, stream: Stream) -> None:
        if not isinstance(stream, Stream):
            raise wrong_type("data.GrainSource", "stream", stream, "a Stream", "write data.Stream(source)")
        len(stream)  # raises for an endless one
        self._stream = stream

    def __len__(self) -> int:
        """Returns the number of samples."""
        return len(self._stream)

    def __getitem__(self, position: SupportsIndex) -> PyTree:
        """Returns the sample at a position."""
        return self._stream.at(check_int("GrainSource", "position", position, "give a position of the stream"))

    def __getitems__(self, positions: Sequence[SupportsIndex]) -> list[PyTree]:
        """Returns the samples at several positions; the source reads them together."""
        numbers = np.array([int(position) for position in positions], np.int64)
        return read(self._stream, numbers, skips=False, operation="GrainSource", fix=_FIX).samples

    def __repr__(self) -> str:
        return f"GrainSource({self._stream!r})"
