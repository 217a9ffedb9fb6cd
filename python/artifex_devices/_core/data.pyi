# SPDX-License-Identifier: Apache-2.0
# Made by tools/make_stubs.py --generate from the built extension.
"""
Orders of samples as arithmetic on positions, and rows of arrays.
"""

import collections.abc
import typing

import numpy
import numpy.typing

__all__: list[str] = ["Order", "PackedRows", "copy_to_rows", "read_rows"]

class Order:
    """
    An order of samples: a function from positions to samples of sources.
    """

    @staticmethod
    def concatenate(orders: collections.abc.Sequence[Order]) -> Order:
        """
        Returns one order after the other.
        """

    @staticmethod
    def mix(orders: collections.abc.Sequence[Order], parts: collections.abc.Sequence[int], repeat: bool) -> Order:
        """
        Returns a mix of orders in proportion to parts.
        """

    @staticmethod
    def range(size: int | None) -> Order:
        """
        Returns the samples of one source in their order; None is endless.
        """

    def indices(self, start: int, stop: int) -> numpy.typing.NDArray[numpy.int64]:
        """
        Returns the index in its source of each position.
        """

    def mark(self) -> Order:
        """
        Returns the same order, which notes epoch and position here.
        """

    def repeat(self, times: int | None) -> Order:
        """
        Returns the order several times; None is endless.
        """

    def resolve(
        self, positions: numpy.typing.ArrayLike
    ) -> tuple[
        numpy.typing.NDArray[numpy.int32], numpy.typing.NDArray[numpy.int64], numpy.typing.NDArray[numpy.uint64]
    ]:
        """
        Returns source, index and keys (mark, position, (epoch, position)) of each position.
        """

    def select(self, chosen: numpy.typing.ArrayLike) -> Order:
        """
        Returns the positions in an array.
        """

    def shuffle(self, seed: int, window: int | None) -> Order:
        """
        Returns the order shuffled, whole or inside windows.
        """

    def shuffle_shards(self, seed: int, starts: numpy.typing.ArrayLike) -> Order:
        """
        Returns the order with shards in random order, each shuffled.
        """

    def slice(self, start: int, count: int | None, step: int) -> Order:
        """
        Returns positions at equal distance; None is endless.
        """

    @property
    def leaves(self) -> int:
        """
        Number of sources.
        """

    @property
    def marks(self) -> int:
        """
        Number of marks.
        """

    @property
    def size(self) -> int | None:
        """
        Number of positions; None for an endless order.
        """

class PackedRows:
    """
    Samples one after the other, cut into rows of equal length.
    """

    def __init__(
        self, order: Order, lengths: collections.abc.Sequence[numpy.typing.ArrayLike], row_length: int, too_long: str
    ) -> None: ...
    def pieces(
        self, rows: numpy.typing.ArrayLike
    ) -> tuple[
        numpy.typing.NDArray[numpy.int64],
        numpy.typing.NDArray[numpy.int64],
        numpy.typing.NDArray[numpy.int64],
        numpy.typing.NDArray[numpy.int64],
    ]:
        """
        Returns where the pieces of each row begin, and position, first token and count of each piece.
        """

    def size(self) -> int | None:
        """
        Returns the number of rows; None for an endless order.
        """

    def sum_count(self) -> int:
        """
        Returns the number of sums.
        """

    def sums(self) -> numpy.typing.NDArray[numpy.int64]:
        """
        Returns the tokens before every 512th sample of the order, as far as they were added up.
        """

    def take_sums(self, sums: numpy.typing.ArrayLike) -> bool:
        """
        Takes sums of the same order and lengths; returns False where they cannot be.
        """

def copy_to_rows(arrays: collections.abc.Sequence[typing.Any], out: numpy.typing.NDArray[typing.Any], row: int) -> int:
    """
    Copies arrays to rows of another from one on; stops where dtype or shape differ. Returns their number.
    """

def read_rows(
    descriptor: int, offset: int, rows: numpy.typing.ArrayLike, out: numpy.typing.NDArray[typing.Any]
) -> bool:
    """
    Reads rows of an open file, whose numbers ascend, into an array; returns False at the end of the file.
    """
