# SPDX-License-Identifier: Apache-2.0
"""What must hold for every input of a Python fuzz target."""

from __future__ import annotations

import pickle
from typing import Any

LONGEST = 100_000  # letters of an error, for inputs of up to 16 KiB


class Fault(Exception):  # noqa: N818 - as the fuzzers call it
    """Not an AssertionError: no `except` of the library takes it."""


def require(holds: bool, text: str) -> None:
    """A Fault where it does not hold."""
    if not holds:
        raise Fault(text)


def check_refusal(error: BaseException, *classes: type[BaseException]) -> bool:
    """Whether an input was refused in words, by exactly one of these classes; False, what a target answers then."""
    text = str(error)
    require(type(error) in classes, f"{type(error).__name__} instead of {classes}: {text}")
    where, colon, rest = text.partition(": ")
    require(bool(colon) and bool(where) and "expected" in rest, f"not operation: what; expected: {text!r}")
    require(text.isprintable(), f"a terminal would act on it: {text!r}")
    require(len(text) <= LONGEST, f"an error of {len(text)} letters: {text[:200]!r}")
    return False


def check_pickle(value: Any) -> None:
    """A value is equal to what its pickle gives."""
    require(pickle.loads(pickle.dumps(value)) == value, f"another one after pickling: {value!r}")


def text_of(data: bytes) -> str:
    """As the system passes words of a command: what is not UTF-8 becomes surrogates."""
    return data.decode("utf-8", "surrogateescape")
