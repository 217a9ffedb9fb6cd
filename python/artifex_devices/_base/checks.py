# SPDX-License-Identifier: Apache-2.0
"""Errors of the form `operation: problem; expected X, got Y; fix`, and checks of arguments that raise them.

`operation` is the name of the public function, `name` the argument, and `fix` a repair that the caller can paste.
"""

from __future__ import annotations

import itertools
import numbers
import operator
import sys
from collections.abc import Iterable, Sized
from typing import Any, TypeVar

from artifex_devices._base.safe_repr import safe_repr
from artifex_devices._base.text import alternatives, parse_bytes
from artifex_devices._base.unspecified import UNSPECIFIED

_Error = TypeVar("_Error", bound=Exception)
_FIX = "correct it"
MAX_DIMENSIONS = 64  # NumPy's
MAX_ITEMS = 1 << 20  # of a sequence that is an argument
_LARGEST = sys.float_info.max  # larger integers have no float


def failure(
    error: type[_Error],
    operation: str,
    problem: str,
    *,
    expected: object,
    got: object = UNSPECIFIED,
    fix: str = "",
) -> _Error:
    """Returns the error `operation: problem; expected X, got Y; fix`, without the parts that are left out."""
    found = "" if got is UNSPECIFIED else f", got {got}"
    return error(f"{operation}: {problem}; expected {expected}{found}{'; ' if fix else ''}{fix}")


def entered_twice(operation: str, what: str, block: str) -> RuntimeError:
    """Returns the error for a second `with` block of an object that records one."""
    return failure(
        RuntimeError, operation, what, expected="a new one for each block", fix=f"write `with {block}` again"
    )


def never_entered(operation: str, block: str) -> RuntimeError:
    """Returns the error for the end of a `with` block that has not begun."""
    problem = "left without having been entered"
    return failure(RuntimeError, operation, problem, expected="a `with` block", fix=f"write `with {block}:`")


def wrong_type(
    operation: str,
    name: str,
    value: object,
    expected: str,
    fix: str = _FIX,
    error: type[_Error] = TypeError,  # type: ignore[assignment]
) -> _Error:
    """Returns the error for a value of a wrong type; `error` is ValueError where JAX raises that."""
    problem = f"{name} is {safe_repr(value)} ({type(value).__name__})"
    return failure(error, operation, problem, expected=expected, fix=fix)


def wrong_value(operation: str, name: str, value: object, expected: str, fix: str = _FIX) -> ValueError:
    """Returns the error for a value of the right type that is not allowed."""
    return failure(ValueError, operation, f"{name} is {safe_repr(value)}", expected=expected, fix=fix)


def check_type(
    operation: str,
    name: str,
    value: object,
    types: type | tuple[type, ...],
    expected: str,
    fix: str = _FIX,
    error: type[Exception] = TypeError,
) -> None:
    """Raises `error` unless the value is an instance of `types`."""
    if not isinstance(value, types):
        raise wrong_type(operation, name, value, expected, fix, error)


def check_types(operation: str, rows: Iterable[tuple[str, Any, Any, str]], fix: str = _FIX) -> None:
    """Raises one TypeError for all rows (name, value, types, expected) whose value is of another type.

    `types` is a type, a tuple of types, or a function of the value such as `is_integer`.
    """
    wrong = [
        f"{name} is {safe_repr(value)} ({type(value).__name__}), expected {expected}"
        for name, value, types, expected in rows
        if not (isinstance(value, types) if isinstance(types, (type, tuple)) else types(value))
    ]
    if wrong:
        raise TypeError(f"{operation}: {'; '.join(wrong)}; {fix}")


def is_integer(value: object) -> bool:
    """Returns whether a value has `__index__` and is not a bool."""
    return not isinstance(value, bool) and hasattr(value, "__index__")


def check_bool(operation: str, name: str, value: object, fix: str = _FIX) -> bool:
    """Returns the bool; anything else is a TypeError."""
    if not isinstance(value, bool):
        raise wrong_type(operation, name, value, "True or False", fix)
    return value


def check_str(operation: str, name: str, value: object, fix: str = _FIX, *, expected: str = "a str") -> str:
    """Returns the str; anything else is a TypeError."""
    if not isinstance(value, str):
        raise wrong_type(operation, name, value, expected, fix)
    return value


def check_callable(
    operation: str,
    name: str,
    value: object,
    expected: str = "a function",
    fix: str = "give the function itself, not its result",
) -> None:
    """Raises TypeError unless the value can be called."""
    if not callable(value):
        raise wrong_type(operation, name, value, expected, fix)


def check_int(
    operation: str,
    name: str,
    value: Any,
    fix: str = _FIX,
    *,
    minimum: int | None = None,
    maximum: int | None = None,
    expected: str = "an int",
) -> int:
    """Returns the value as an int.

    Raises:
        TypeError: The value is a bool, or has no `__index__`, as floats.
        ValueError: It is below `minimum` or above `maximum`.
    """
    if isinstance(value, bool):
        raise wrong_type(operation, name, value, expected, fix)
    try:
        number = operator.index(value)
    except TypeError:
        raise wrong_type(operation, name, value, expected, fix) from None
    if (minimum is not None and number < minimum) or (maximum is not None and number > maximum):
        raise wrong_value(operation, name, number, _range_text(minimum, maximum), fix)
    return number


def _range_text(minimum: int | None, maximum: int | None) -> str:
    if maximum is None:
        return f"{minimum} or more"
    bound = "2**63 - 1" if maximum == 2**63 - 1 else str(maximum)
    return f"{bound} or less" if minimum is None else f"{minimum} to {bound}"


def check_number(
    operation: str,
    name: str,
    value: object,
    fix: str = _FIX,
    *,
    minimum: float | None = None,
    above: float | None = None,
    expected: str = "a number",
) -> float:
    """Returns the number. With `minimum` (included) or `above` (excluded) it must also be finite.

    Raises:
        TypeError: The value is a bool or not a real number.
        ValueError: It is out of range.
    """
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise wrong_type(operation, name, value, expected, fix)
    number: Any = value
    if above is not None and not above < number <= _LARGEST:
        raise wrong_value(operation, name, value, f"a finite number above {above:g}", fix)
    if minimum is not None and not minimum <= number <= _LARGEST:
        raise wrong_value(operation, name, value, f"a finite number of {minimum:g} or more", fix)
    return number  # type: ignore[no-any-return]


def check_bytes(operation: str, name: str, value: object, fix: str = "write 40_000_000 or '40 MB'") -> int:
    """Returns a number of bytes, given as an int or as a text such as "1 MiB".

    Raises:
        TypeError: The value is neither an int nor a str.
        ValueError: It is negative, or the text is not an amount of bytes.
    """
    expected = "bytes, as a number or a text such as '40 MB'"
    if not isinstance(value, str):
        return check_int(operation, name, value, fix, minimum=0, expected=expected)
    found = parse_bytes(value)
    if found is None:
        raise wrong_value(operation, name, value, expected, fix)
    return found


def check_choice(
    operation: str, name: str, value: object, choices: Iterable[Any], fix: str = "choose one of them"
) -> None:
    """Raises ValueError unless the value equals one of the choices and is of its type."""
    listed = tuple(choices)
    if not any(isinstance(value, type(choice)) and value == choice for choice in listed):
        raise wrong_value(operation, name, value, alternatives(listed), fix)


def bounded_list(
    operation: str, name: str, values: Iterable[Any], maximum: int = MAX_ITEMS, fix: str = "shorten it"
) -> list[Any]:
    """Returns the values as a list; ValueError for more than `maximum`, as an iterator may have no end.

    MAX_ITEMS bounds iterators only, not lists and other values with a length.
    """
    if maximum == MAX_ITEMS and isinstance(values, Sized):
        return list(values)
    listed = list(itertools.islice(values, maximum + 1))
    if len(listed) <= maximum:
        return listed
    count = len(values) if isinstance(values, Sized) else f"more than {maximum}"
    limit = ", NumPy's limit of dimensions" if maximum == MAX_DIMENSIONS else ""
    raise ValueError(f"{operation}: {name} has {count} entries; expected at most {maximum}{limit}; {fix}")


def check_sequence(
    operation: str, name: str, values: object, expected: str, fix: str = _FIX, *, maximum: int = MAX_ITEMS
) -> list[Any]:
    """Returns the values as a list.

    Raises:
        TypeError: `values` is a text, or cannot be iterated over.
        ValueError: It has more than `maximum` entries.
    """
    if isinstance(values, (str, bytes)) or not isinstance(values, Iterable):
        raise wrong_type(operation, name, values, expected, fix)
    return bounded_list(operation, name, values, maximum, fix)


def check_sequence_of_ints(
    operation: str, name: str, values: object, fix: str = "write (2, 4)", *, maximum: int = MAX_ITEMS
) -> tuple[int, ...]:
    """Returns the values as a tuple of ints; errors as of check_sequence, and TypeError for other entries."""
    listed = check_sequence(operation, name, values, "a sequence of ints", fix, maximum=maximum)
    return tuple(check_int(operation, f"{name}[{i}]", value, fix) for i, value in enumerate(listed))
