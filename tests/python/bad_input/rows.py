# SPDX-License-Identifier: Apache-2.0
"""What a table of bad calls is made of.

A row is a call that must fail, the class that it must raise (that one, no subclass) and words that its text must hold. A
row may name the part of the text that says how to mend the call; the test takes that part out of the text and runs it.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Bad:
    """One bad call, as Python text over the names of `world.names`.

    Attributes:
        call: The text.
        error: The class raised.
        words: What the message holds.
        repair: A regular expression whose group 1, found in the message, is code that works.
        then: The code that is run for the repair, with {} where the group's text goes.
        given: Statements that make the names which the message speaks of.
    """

    call: str
    error: type[BaseException]
    words: tuple[str, ...]
    repair: str | None = None
    then: str = "{}"
    given: str = ""


@dataclass(frozen=True)
class Calls:
    """The bad calls of one public name.

    Attributes:
        name: As reached from the package: "Device.memory", "lax.psum".
        good: A call that works, run after each bad one.
        bad: The rows.
        where: Statements that make further names for all of them.
    """

    name: str
    good: str
    bad: list[Bad]
    where: str = ""


def bad(call: str, error: type[BaseException], *words: str, repair: str | None = None, then: str = "{}", given: str = "") -> Bad:
    """A row."""
    return Bad(call, error, words, repair, then, given)
