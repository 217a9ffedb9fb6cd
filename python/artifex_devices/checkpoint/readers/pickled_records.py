# SPDX-License-Identifier: Apache-2.0
"""Reads a pickle as data: nothing is imported, and no function of it is called.

No value is copied, and only texts and records, whose hashes take constant time, are keys: so memory and time grow with
the bytes of the pickle.
"""

from __future__ import annotations

import pickletools
from collections.abc import Callable, Mapping
from typing import Any

_ARGUMENTS = {"BININT1", "BININT", "BININT2", "LONG1", "BINFLOAT", "SHORT_BINUNICODE", "BINUNICODE"}
_NEW: dict[str, Callable[[], Any]] = {
    "EMPTY_DICT": dict,
    "EMPTY_LIST": list,
    "NONE": lambda: None,
    "NEWTRUE": lambda: True,
    "NEWFALSE": bool,
}
_TAKEN = {  # number of values that an opcode takes; None for all behind the last mark
    "EMPTY_TUPLE": 0, "TUPLE1": 1, "TUPLE2": 2, "TUPLE3": 3, "TUPLE": None, "REDUCE": 2, "NEWOBJ": 2, "BUILD": 1,
    "SETITEM": 2, "SETITEMS": None, "APPEND": 1, "APPENDS": None, "STACK_GLOBAL": 2,
}  # fmt: skip


class Record:
    """Stands for an object of a class: its state, a dict of attributes unless the class pickles another value."""

    __slots__ = ("state",)

    def __init__(self, _: object = ()) -> None:
        self.state: Any = {}


def read_pickle(content: bytes, names: Mapping[str, Any]) -> Any:
    """Returns the value of a pickle of protocol 2 to 5.

    Args:
        content: The bytes.
        names: What stands for a name such as "torch.Size": a text, or a function of the tuple of arguments.

    Raises:
        ValueError, LookupError, TypeError: It is damaged, or has an opcode, a name or a change that is not allowed.
    """
    stack: list[Any] = []
    marks: list[int] = []
    memo: dict[int, Any] = {}
    argument: Any
    for opcode, argument, _ in pickletools.genops(content):
        name = opcode.name
        if name == "MEMOIZE":
            memo[len(memo)] = stack[-1]
        elif name in ("BINGET", "LONG_BINGET"):
            stack.append(memo[argument])
        elif name in _ARGUMENTS:
            stack.append(argument)
        elif name in _TAKEN:
            count = _TAKEN[name]
            first = marks.pop() if count is None else len(stack) - count
            if first < 0:
                raise ValueError(f"its opcode {name} has too few values")
            values = stack[first:]
            del stack[first:]
            _apply(name, stack, values, names)
        elif name == "MARK":
            marks.append(len(stack))
        elif name in _NEW:
            stack.append(_NEW[name]())
        elif name in ("BINPUT", "LONG_BINPUT"):
            memo[argument] = stack[-1]
        elif name == "GLOBAL":
            stack.append(_named(names, argument.replace(" ", ".")))
        elif name == "FRAME":
            if argument > len(content):
                raise ValueError("it has a frame that is longer than the data")
        elif name not in ("PROTO", "STOP"):
            raise ValueError(f"it has the opcode {name}, which no metadata needs")
    return stack.pop()


def _apply(name: str, stack: list[Any], values: list[Any], names: Mapping[str, Any]) -> None:
    if "TUPLE" in name:
        stack.append(tuple(values))
    elif name in ("REDUCE", "NEWOBJ"):
        function, arguments = values
        if not callable(function) or type(arguments) is not tuple:
            raise ValueError(f"it calls a {type(function).__name__} with a {type(arguments).__name__}")
        stack.append(function(arguments))
    elif name == "BUILD":
        _checked(name, stack[-1], Record).state = values[0]
    elif name.startswith("SETITEM"):
        target = _checked(name, stack[-1], dict)
        for key, value in zip(values[::2], values[1::2], strict=True):
            target[_checked(name, key, str, Record)] = value
    elif name.startswith("APPEND"):
        _checked(name, stack[-1], list).extend(values)
    else:
        stack.append(_named(names, ".".join(values)))  # TypeError unless both are texts


def _checked(opcode: str, value: Any, *kinds: type) -> Any:
    if type(value) not in kinds:
        raise ValueError(f"its opcode {opcode} is applied to {type(value).__name__}")
    return value


def _named(names: Mapping[str, Any], name: str) -> Any:
    if name not in names:
        raise ValueError(f"it names {name}, which is not a class of the metadata")
    return names[name]
