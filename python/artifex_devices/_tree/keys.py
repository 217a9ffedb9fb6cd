# SPDX-License-Identifier: Apache-2.0
"""The entries of a path through a tree, and the text of a path."""

from __future__ import annotations

import operator
from collections.abc import Iterable
from typing import Any, TypeVar

from artifex_devices._base.checks import bounded_list, check_str, check_type
from artifex_devices._base.public_path import public

KeyEntry = TypeVar("KeyEntry", bound=Any)
KeyPath = tuple[KeyEntry, ...]


class _Key:
    """The place of a child: a value and the class that gives its meaning. Equal by both, hashable, picklable."""

    __slots__ = ("_value",)
    __match_args__: tuple[str, ...] = ()
    _format = ""
    _value: Any

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and bool(self._value == other._value)

    def __hash__(self) -> int:
        return hash(self._value)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.__match_args__[0]}={self._value!r})"

    def __str__(self) -> str:
        return self._format.format(self._value)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._value,)


_value_of = operator.attrgetter("_value")


@public("artifex_devices.tree_util")
class SequenceKey(_Key):
    """The position `idx` in a list or tuple; written `[0]`."""

    __slots__ = ()
    __match_args__ = ("idx",)
    _format = "[{}]"
    idx = property(_value_of, doc="The position.")

    def __init__(self, idx: int) -> None:
        self._value = idx if type(idx) is int else operator.index(idx)


@public("artifex_devices.tree_util")
class DictKey(_Key):
    """The key `key` of a dict; written `['a']`."""

    __slots__ = ()
    __match_args__ = ("key",)
    _format = "[{!r}]"
    key = property(_value_of, doc="The key of the dict.")

    def __init__(self, key: object) -> None:
        self._value = key


@public("artifex_devices.tree_util")
class GetAttrKey(_Key):
    """The attribute `name` of a named tuple or an object; written `.a`."""

    __slots__ = ()
    __match_args__ = ("name",)
    _format = ".{}"
    name = property(_value_of, doc="The name of the attribute.")

    def __init__(self, name: str) -> None:
        self._value = check_str("GetAttrKey", "name", name)


@public("artifex_devices.tree_util")
class FlattenedIndexKey(_Key):
    """Child number `key` of a node whose type names no keys; written `[<flat index 0>]`."""

    __slots__ = ()
    __match_args__ = ("key",)
    _format = "[<flat index {}>]"
    key = property(_value_of, doc="The number of the child.")

    def __init__(self, key: int) -> None:
        self._value = key if type(key) is int else operator.index(key)


def keystr(keys: Iterable[Any], *, simple: bool = False, separator: str = "") -> str:
    """Formats a path as Python would write it.

    Args:
        keys: The entries of the path, from the root on.
        simple: Whether to write names and numbers only; 'a' and .a then look the same.
        separator: The text between entries.

    Raises:
        TypeError: `keys` is not a path.

    Example:
        >>> from artifex_devices import tree_util
        >>> [(path, _)] = tree_util.tree_flatten_with_path({"a": [1]})[0]
        >>> tree_util.keystr(path)
        "['a'][0]"
        >>> tree_util.keystr(path, simple=True, separator="/")
        'a/0'
    """
    check_type("keystr", "keys", keys, Iterable, "a path of tree_flatten_with_path")
    check_str("keystr", "separator", separator, 'write separator="/"')
    path = bounded_list("keystr", "keys", keys)
    if simple:
        return separator.join(str(key._value if isinstance(key, _Key) else key) for key in path)
    return separator.join(map(str, path))
