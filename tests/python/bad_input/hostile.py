# SPDX-License-Identifier: Apache-2.0
"""Objects that misbehave when they are looked at."""

import numpy as np


class NoRepr:
    """Has no text."""

    def __repr__(self):
        raise ZeroDivisionError("no text")


class BadIndex:
    """Raises instead of being an int."""

    def __index__(self):
        raise ZeroDivisionError("no int")


class BadArray:
    """Raises instead of being an array."""

    def __array__(self, dtype=None, copy=None):
        raise ZeroDivisionError("no array")


class BadEq:
    """Cannot be compared, nor hashed."""

    __hash__ = None  # type: ignore[assignment]

    def __eq__(self, other):
        raise ZeroDivisionError("no answer")


class BadIter:
    """Ends in an error after one item."""

    def __iter__(self):
        yield 1
        raise ZeroDivisionError("no more")


class BadLen:
    """Says that it has fewer items than none."""

    def __len__(self):
        return -1

    def __getitem__(self, index):
        raise ZeroDivisionError("no item")


class Text(str):
    """A str of its own class whose repr fails."""

    def __repr__(self):
        raise ZeroDivisionError("no text")


class Tensor:
    """An array of a library whose operators do not know Arrays, as torch's."""

    def __array__(self, dtype=None, copy=None):
        return np.ones((8, 8), np.float32)

    def __dlpack__(self):
        raise NotImplementedError
