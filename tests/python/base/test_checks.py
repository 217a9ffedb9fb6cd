# SPDX-License-Identifier: Apache-2.0
"""Checks of arguments: values that pass, and the messages for values that do not."""

from __future__ import annotations

import numpy as np
import pytest
from artifex_devices._base import checks


def test_good_values_are_returned():
    assert checks.check_int("f", "x", np.int8(3), minimum=3, maximum=3) == 3
    assert checks.check_number("f", "x", 2.5, above=0) == 2.5
    assert checks.check_bool("f", "x", True) is True
    assert checks.check_str("f", "x", "a") == "a"
    assert checks.check_sequence_of_ints("f", "x", np.arange(3)) == (0, 1, 2)
    assert checks.check_sequence("f", "x", (1, "a"), "values") == [1, "a"]
    checks.check_callable("f", "x", len)
    checks.check_type("f", "x", 1, (int, str), "an int or a str")
    checks.check_choice("f", "x", None, ("a", None))
    assert checks.check_int("f", "x", 8, minimum=1, maximum=8) == 8
    assert checks.check_number("f", "x", 1.7976931348623157e308, minimum=0, above=-1) == 1.7976931348623157e308
    assert checks.check_number("f", "x", 2, minimum=2) == 2
    assert checks.check_number("f", "x", float("inf")) == float("inf")


# fmt: off
_WRONG = [
    (lambda: checks.check_int("f", "x", True), TypeError, "x is True (bool); expected an int; correct it"),
    (lambda: checks.check_int("f", "x", 1.0, "write 1"), TypeError, "x is 1.0 (float); expected an int; write 1"),
    (lambda: checks.check_int("f", "x", 0, minimum=1), ValueError, "x is 0; expected 1 or more; correct it"),
    (lambda: checks.check_int("f", "x", 9, maximum=8), ValueError, "x is 9; expected 8 or less; correct it"),
    (lambda: checks.check_int("f", "x", 9, minimum=1, maximum=8), ValueError, "x is 9; expected 1 to 8; correct it"),
    (lambda: checks.check_number("f", "x", "a"), TypeError, "x is 'a' (str); expected a number; correct it"),
    (lambda: checks.check_number("f", "x", float("nan"), minimum=0), ValueError,
     "x is nan; expected a finite number of 0 or more; correct it"),
    (lambda: checks.check_number("f", "x", True), TypeError, "x is True (bool); expected a number; correct it"),
    (lambda: checks.check_number("f", "x", 1, minimum=2), ValueError,
     "x is 1; expected a finite number of 2 or more; correct it"),
    (lambda: checks.check_number("f", "x", float("inf"), minimum=2), ValueError,
     "x is inf; expected a finite number of 2 or more; correct it"),
    (lambda: checks.check_number("f", "x", float("inf"), above=2), ValueError,
     "x is inf; expected a finite number above 2; correct it"),
    (lambda: checks.check_int("f", "x", 2**63, minimum=0, maximum=2**63 - 1), ValueError,
     "x is 9223372036854775808; expected 0 to 2**63 - 1; correct it"),
    (lambda: checks.check_int("f", "x", 2**63, maximum=2**63 - 2), ValueError,
     "x is 9223372036854775808; expected 9223372036854775806 or less; correct it"),
    (lambda: checks.check_types("f", [("x", 1, str, "a str"), ("y", 1, checks.is_integer, "an int")]), TypeError,
     "x is 1 (int), expected a str; correct it"),
    (lambda: checks.check_types("f", [("x", 1, (str, bytes), "a str"), ("y", True, checks.is_integer, "an int")]),
     TypeError, "x is 1 (int), expected a str; y is True (bool), expected an int; correct it"),
    (lambda: checks.check_number("f", "x", 0, above=0), ValueError,
     "x is 0; expected a finite number above 0; correct it"),
    (lambda: checks.check_bool("f", "x", 1), TypeError, "x is 1 (int); expected True or False; correct it"),
    (lambda: checks.check_str("f", "x", 1), TypeError, "x is 1 (int); expected a str; correct it"),
    (lambda: checks.check_callable("f", "x", 1), TypeError,
     "x is 1 (int); expected a function; give the function itself, not its result"),
    (lambda: checks.check_choice("f", "x", "c", ("a", "b", None)), ValueError,
     "x is 'c'; expected 'a', 'b' or None; choose one of them"),
    (lambda: checks.check_choice("f", "x", 1, (True,)), ValueError, "x is 1; expected True; choose one of them"),
    (lambda: checks.check_type("f", "x", 1, str, "a name", "name it", ValueError), ValueError,
     "x is 1 (int); expected a name; name it"),
    (lambda: checks.check_sequence_of_ints("f", "x", "12"), TypeError,
     "x is '12' (str); expected a sequence of ints; write (2, 4)"),
    (lambda: checks.check_sequence_of_ints("f", "x", (1, 2.0)), TypeError,
     "x[1] is 2.0 (float); expected an int; write (2, 4)"),
]
# fmt: on


@pytest.mark.parametrize(("check", "error", "message"), _WRONG)
def test_other_values_raise_the_standard_message(check, error, message):
    with pytest.raises(error) as caught:
        check()
    assert str(caught.value) == f"f: {message}"


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"expected": "2 axes"}, "op: it is wrong; expected 2 axes"),
        ({"expected": (2, 4), "got": None}, "op: it is wrong; expected (2, 4), got None"),
        ({"expected": 1, "fix": "write 1"}, "op: it is wrong; expected 1; write 1"),
        ({"expected": 1, "got": 2, "fix": "write 1"}, "op: it is wrong; expected 1, got 2; write 1"),
    ],
)
def test_a_failure_joins_its_parts(parts, message):
    error = checks.failure(KeyError, "op", "it is wrong", **parts)
    assert type(error) is KeyError
    assert error.args == (message,)
