# SPDX-License-Identifier: Apache-2.0
"""Reads a pickle as data: no class or function is imported or called, and nothing outside its values is changed.

Only the opcodes that plain values and dataclasses need are known. Memory and time grow with the bytes of the pickle,
because no value is copied, and only texts and records, whose hashes take constant time, are keys.
"""

from __future__ import annotations

import pickletools
from collections.abc import Mapping
from typing import Any

_CONSTANTS = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False}
_ARGUMENTS = {"BININT1", "BININT", "BININT2", "LONG1", "BINFLOAT", "SHORT_BINUNICODE", "BINUNICODE"}
_TUPLES = {"EMPTY_TUPLE": 0, "TUPLE1": 1, "TUPLE2": 2, "TUPLE3": 3}


class Record:
    """Stands for an object of a class: its state, a dict of attributes unless the class pickles another value."""

    __slots__ = ("state",)

    def __init__(self, arguments: tuple[Any, ...] = ()) -> None:
        self.state: Any = {}


def read_pickle(content: bytes, names: Mapping[str, Any]) -> Any:
    """Returns the value of a pickle of protocol 2 to 5.

    Args:
        content: The bytes.
        names: What stands for a class or a value of a module, by its module and name, joined by a dot: a text, or a
            function that returns a new value for the tuple of arguments of a call.

    Raises:
        ValueError, LookupError, TypeError: It is damaged, or has an opcode, a name or a change that is not allowed.
    """
    stack: list[Any] = []
    marks: list[int] = []
    memo: dict[int, Any] = {}
    argument: Any

    def since_mark() -> list[Any]:
        mark = marks.pop()
        found = stack[mark:]
        del stack[mark:]
        return found

    for opcode, argument, _ in pickletools.genops(content):
        name = opcode.name
        if name == "MEMOIZE":
            memo[len(memo)] = stack[-1]
        elif name in ("BINGET", "LONG_BINGET"):
            stack.append(memo[argument])
        elif name in _ARGUMENTS:
            stack.append(argument)
        elif name in _TUPLES:
            stack.append(tuple([stack.pop() for _ in range(_TUPLES[name])][::-1]))
        elif name == "MARK":
            marks.append(len(stack))
        elif name == "TUPLE":
            stack.append(tuple(since_mark()))
        elif name in ("REDUCE", "NEWOBJ"):
            arguments = stack.pop()
            function = stack.pop()
            if not callable(function):
                raise _wrong(name, function)
            stack.append(function(_checked(arguments, name, tuple)))
        elif name == "EMPTY_DICT":
            stack.append({})
        elif name in ("SETITEM", "SETITEMS"):
            items = since_mark() if name == "SETITEMS" else [stack.pop(-2), stack.pop()]
            target = _checked(stack[-1], name, dict)
            for key, value in zip(items[::2], items[1::2], strict=True):
                target[_checked(key, name, str, Record)] = value
        elif name == "BUILD":
            state = stack.pop()
            _checked(stack[-1], name, Record).state = state
        elif name == "EMPTY_LIST":
            stack.append([])
        elif name in ("APPEND", "APPENDS"):
            items = since_mark() if name == "APPENDS" else [stack.pop()]
            _checked(stack[-1], name, list).extend(items)
        elif name in ("STACK_GLOBAL", "GLOBAL"):
            path = argument.split(" ") if name == "GLOBAL" else [stack.pop(-2), stack.pop()]
            text = ".".join(path)  # TypeError unless both are texts
            if text not in names:
                raise ValueError(f"it names {text}, which is not a class of the metadata")
            stack.append(names[text])
        elif name in _CONSTANTS:
            stack.append(_CONSTANTS[name])
        elif name in ("BINPUT", "LONG_BINPUT"):
            memo[argument] = stack[-1]
        elif name == "FRAME":
            if argument > len(content):
                raise ValueError("it has a frame that is longer than the data")
        elif name not in ("PROTO", "STOP"):
            raise ValueError(f"it has the opcode {name}, which no metadata needs")
    return stack.pop()


def _checked(value: Any, opcode: str, *kinds: type) -> Any:
    if type(value) not in kinds:
        raise _wrong(opcode, value)
    return value


def _wrong(opcode: str, value: object) -> ValueError:
    return ValueError(f"its opcode {opcode} is applied to {type(value).__name__}")
