# SPDX-License-Identifier: Apache-2.0
"""Texts of callers' objects in messages: bounded, printable, and never an error of the object."""

import artifex_devices as ad
import pytest
from artifex_devices._base.safe_repr import safe_repr


def test_a_text_is_the_repr():
    assert safe_repr("x") == "'x'"
    assert safe_repr([1, None]) == "[1, None]"
    assert safe_repr("\ud800\n") == "'\\ud800\\n'"


@pytest.mark.parametrize("text", ["\ud800", "é€𝄞"])
def test_a_text_of_any_characters(text):
    assert safe_repr(type("Odd", (), {"__repr__": lambda self: text})()) == text.replace("\ud800", "\\ud800")


def test_a_long_text_is_cut_in_the_middle():
    assert safe_repr("a" * 498) == "'" + "a" * 498 + "'"
    assert safe_repr("a" * 400 + "€" * 100) == "'" + "a" * 399 + " ... " + "€" * 79 + "'"
    assert len(safe_repr(list(range(100000)))) == 485


def test_a_repr_that_raises_is_replaced_by_its_class():
    class OwnError(Exception):
        pass

    class Odd:
        error: type[BaseException] = OwnError

        def __repr__(self):
            raise self.error("no text")

    class NoText(Odd):
        __repr__ = None

    class Number(Odd):
        def __repr__(self):
            return 3

    assert safe_repr(Odd()) == "<Odd, whose repr raised OwnError>"
    assert safe_repr([Odd()]) == "<list, whose repr raised OwnError>"
    assert safe_repr(NoText()) == "<NoText, whose repr raised TypeError>"
    assert safe_repr(Number()) == "<Number, whose repr raised TypeError>"
    nested: list = []
    for _ in range(10**5):
        nested = [nested]
    assert safe_repr(nested) == "<list, whose repr raised RecursionError>"
    for error in (KeyboardInterrupt, SystemExit, GeneratorExit):
        Odd.error = error
        with pytest.raises(error, match="no text"):
            safe_repr(Odd())
        with pytest.raises(error, match="no text"):
            ad.device_put(1, Odd())
