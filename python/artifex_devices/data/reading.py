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


class Samples(NamedTuple):
    """Samples in the order of their positions, and those of them that replace others."""

    samples: list[Any]
    replaced: list[Replacement]


def read(stream: Positions, positions: NDArray[np.int64], *, skips: bool, operation: str, fix: str) -> Samples:
    """Reads the samples at positions of a stream. Arguments and exceptions as for `Fetched` and its `samples`."""
    fetched = Fetched(stream, positions, skips=skips, operation=operation, fix=fix)
    return Samples(list(fetched.samples()), fetched.replaced)


class Fetched:
    """Samples at positions of a stream as their sources read them, before the functions of `map`.

    Attributes:
        replaced: Samples that could not be read, among those that `samples` has yielded.
    """

    def __init__(
        self, stream: Positions, positions: NDArray[np.int64], *, skips: bool, operation: str, fix: str
    ) -> None:
        """Reads from the sources, each of which reads all its samples at once.

        Args:
            stream: The stream.
            positions: Positions, in any order.
            skips: Whether the next sample of the same source in the order of the stream that can be read replaces a
                sample that cannot; after the last position of the stream the search continues at the first.
            operation: Name of the operation, for messages.
            fix: End of the message of a SampleError.
        """
        self.replaced: list[Replacement] = []
        self._stream = stream
        self._positions = positions
        self._skips = skips
        self._operation = operation
        self._fix = fix
        numbers, self._indices, self._keys = stream._resolve(positions)
        self._numbers: list[int] = numbers.tolist()
        self._raw: list[Any] = [None] * len(positions)
        for number in sorted(set(self._numbers)):
            places = np.flatnonzero(numbers == number)
            found = _read_source(stream._leaves[number], self._indices[places])
            for place, sample in zip(places.tolist(), found, strict=True):
                self._raw[place] = sample

    def samples(self) -> Iterator[Any]:
        """Yields the sample at each position, after the functions of `map`.

        Raises:
            SampleError: A sample cannot be read, or be replaced.
        """
        for place, error_or_sample in enumerate(self._mapped()):
            if not isinstance(error_or_sample, SampleError):
                yield error_or_sample
            elif self._skips:
                yield self._replacement(place, error_or_sample)
            else:
                raise error_or_sample

    def _mapped(self) -> Iterator[Any]:
        """Yields the sample at each position, or its SampleError."""
        leaves = self._stream._leaves
        for place, number in enumerate(self._numbers):
            sample, leaf = self._raw[place], leaves[number]
            if isinstance(sample, _Unread):
                yield self._error(place, sample.error)
                continue
            try:
                for step in leaf.steps:
                    if step.mark is None:
                        sample = step.function(sample)
                    else:
                        sample = step.function(sample, step.generator(self._keys[step.mark, place]))
            except Exception as error:
                sample = self._error(place, error)
            yield sample

    def _replacement(self, place: int, error: SampleError) -> Any:
        """Returns the sample that replaces another; raises the error where none can be read."""
        failed, number, tries = int(self._positions[place]), self._numbers[place], 0
        for block in _following(failed, self._stream.length):
            numbers, _, _ = self._stream._resolve(block)
            for position in block[numbers == number]:
                other = Fetched(
                    self._stream, np.array([position]), skips=False, operation=self._operation, fix=self._fix
                )
                [sample] = other._mapped()
                if not isinstance(sample, SampleError):
                    self.replaced.append(Replacement(failed, number, int(self._indices[place]), int(position)))
                    return sample
                tries += 1
                if tries == _MOST_TRIES:
                    raise error
        raise error

    def _error(self, place: int, cause: Exception) -> SampleError:
        leaf = self._stream._leaves[self._numbers[place]]
        index, position = int(self._indices[place]), int(self._positions[place])
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


def _following(position: int, length: int | None) -> Iterator[NDArray[np.int64]]:
    """Yields blocks of positions after a position, and then those before it; of an endless stream only those after."""
    stops = [(position + 1, _END if length is None else length)] + ([] if length is None else [(0, position)])
    size = 64
    for start, stop in stops:
        while start < stop:
            end = min(start + size, stop)
            yield np.arange(start, end, dtype=np.int64)
            start, size = end, min(2 * size, 1 << 16)
