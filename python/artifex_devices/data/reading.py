# SPDX-License-Identifier: Apache-2.0
"""Reading samples at positions of a stream: from the source, through the functions of `map`."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from artifex_devices._base.public_path import public
from artifex_devices.data.leaves import Leaf, Positions
from artifex_devices.distributed.failure_notice import error_text

_MOST_TRIES = 1000  # samples of a source in a row that cannot be read
_END = 2**63 - 1  # of an endless stream


@public("artifex_devices.data")
class SampleError(RuntimeError):
    """A sample that cannot be read, or on which a function of `map` fails; `__cause__` is the original exception.

    Attributes:
        source: Name of the source.
        index: Index of the sample in its source.
        position: Position of the sample in the stream.
    """

    source: str = ""
    index: int = -1
    position: int = -1


@dataclasses.dataclass(frozen=True)
class Replacement:
    """A sample that could not be read, and the position of the sample that was used instead of it."""

    position: int
    leaf: int
    index: int
    used: int


def read(stream: Positions, positions: NDArray[np.int64], *, skips: bool, operation: str, fix: str) -> Samples:
    """Reads the samples at positions of a stream.

    Args:
        stream: The stream.
        positions: Positions, in any order.
        skips: Whether the next sample of the same source in the order of the stream that can be read replaces a
            sample that cannot; after the last position of the stream the search continues at the first.
        operation: Name of the operation, for messages.
        fix: End of the message of a SampleError.

    Raises:
        SampleError: A sample cannot be read; of several, the one that comes first in `positions`.
    """
    reader = _Reader(stream, operation, fix)
    found = list(reader.read(positions))
    replaced: list[Replacement] = []
    for place, sample in enumerate(found):
        if not isinstance(sample, _Failed):
            continue
        if not skips:
            raise sample.error
        found[place], replacement = reader.replace(sample)
        replaced.append(replacement)
    return Samples(found, replaced)


class Samples(NamedTuple):
    """Samples in the order of their positions, and those of them that replace others."""

    samples: list[Any]
    replaced: list[Replacement]


@dataclasses.dataclass(frozen=True)
class _Failed:
    """A sample that cannot be read."""

    position: int
    leaf: int
    index: int
    error: SampleError


class _Reader:
    def __init__(self, stream: Positions, operation: str, fix: str) -> None:
        self._stream = stream
        self._operation = operation
        self._fix = fix

    def read(self, positions: NDArray[np.int64]) -> Iterator[Any]:
        """Yields the sample at each position, or a _Failed; sources read all their samples at once."""
        numbers, indices, keys = self._stream._resolve(positions)
        raw: list[Any] = [None] * len(positions)
        for number in range(len(self._stream._leaves)) if len(self._stream._leaves) == 1 else np.unique(numbers):
            places = np.flatnonzero(numbers == number)
            found = _read_source(self._stream._leaves[number], indices[places])
            for place, sample in zip(places.tolist(), found, strict=True):
                raw[place] = sample
        for place, sample in enumerate(raw):
            leaf = self._stream._leaves[numbers[place]]
            error = sample.error if isinstance(sample, _Unread) else None
            if error is None and leaf.steps:
                try:
                    sample = _mapped(leaf, sample, keys[:, place])
                except Exception as raised:
                    error = raised
            if error is None:
                yield sample
                continue
            position, number, index = int(positions[place]), int(numbers[place]), int(indices[place])
            yield _Failed(position, number, index, self._error(leaf, index, position, error))

    def replace(self, failed: _Failed) -> tuple[Any, Replacement]:
        """Returns the sample that replaces another; raises SampleError where none can be read."""
        tries = 0
        for block in _following(failed.position, self._stream.length):
            numbers, _, _ = self._stream._resolve(block)
            for position in block[numbers == failed.leaf]:
                [sample] = self.read(np.array([position]))
                if not isinstance(sample, _Failed):
                    return sample, Replacement(failed.position, failed.leaf, failed.index, int(position))
                tries += 1
                if tries == _MOST_TRIES:
                    raise failed.error
        raise failed.error

    def _error(self, leaf: Leaf, index: int, position: int, cause: Exception) -> SampleError:
        error = SampleError(
            f"{self._operation}: the sample at position {position}, index {index} of the source {leaf.name!r} "
            f"({leaf.source.describe(index)}), cannot be read: {error_text(cause)}; {self._fix}"
        )
        error.source, error.index, error.position = leaf.name, index, position
        error.__cause__ = cause
        return error


class _Unread(NamedTuple):
    """The exception of a source for a sample."""

    error: Exception


def _read_source(leaf: Leaf, indices: NDArray[np.int64]) -> list[Any]:
    """Returns the samples of a source; after an error each sample is read alone, and has its own exception."""
    try:
        return leaf.source.read(indices)
    except Exception:
        found: list[Any] = []
        for index in indices:
            try:
                found += leaf.source.read(np.array([index]))
            except Exception as error:
                found.append(_Unread(error))
        return found


def _mapped(leaf: Leaf, sample: Any, keys: NDArray[np.uint64]) -> Any:
    """Returns the sample after the functions of `map`; `keys` has epoch and position for each random one."""
    for step in leaf.steps:
        sample = step.function(sample) if step.mark is None else step.function(sample, step.generator(keys[step.mark]))
    return sample


def _following(position: int, length: int | None) -> Iterator[NDArray[np.int64]]:
    """Yields blocks of positions after a position, and then those before it; of an endless stream only those after."""
    stops = [(position + 1, _END if length is None else length)] + ([] if length is None else [(0, position)])
    size = 64
    for start, stop in stops:
        while start < stop:
            end = min(start + size, stop)
            yield np.arange(start, end, dtype=np.int64)
            start, size = end, min(2 * size, 1 << 16)
