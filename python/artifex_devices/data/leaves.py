# SPDX-License-Identifier: Apache-2.0
"""The sources at the leaves of a stream, each with the functions that are applied to its samples."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from artifex_devices.data.sources import Source


class MapStep(NamedTuple):
    """A function of `map`.

    Attributes:
        function: Called as `function(sample)`, or as `function(sample, generator)` if it is random.
        mark: Number of its keys in the result of `resolve`; None if it is not random.
        key: Number that differs between the random functions of a stream and between seeds.
    """

    function: Callable[..., Any]
    mark: int | None
    key: int

    def generator(self, place: NDArray[np.uint64]) -> np.random.Generator:
        """Returns the generator of one sample, whose place is its epoch and its position before the function."""
        epoch, position = place
        counter = np.array([0, 0, position, epoch], np.uint64)  # the first two count the drawn numbers
        return np.random.Generator(np.random.Philox(key=np.array([self.key, 0], np.uint64), counter=counter))


class Leaf(NamedTuple):
    """A source of a stream."""

    source: Source
    name: str
    steps: tuple[MapStep, ...]


class Positions(Protocol):
    """A stream, for functions that read samples at positions."""

    @property
    def length(self) -> int | None:
        """Number of positions; None if it is endless."""

    @property
    def _leaves(self) -> tuple[Leaf, ...]: ...

    def _resolve(
        self, positions: NDArray[np.int64]
    ) -> tuple[NDArray[np.int32], NDArray[np.int64], NDArray[np.uint64]]: ...
