# SPDX-License-Identifier: Apache-2.0
"""Leaves of trees, for the annotations of functions that return a tree with an Array for each leaf."""

from __future__ import annotations

from typing import Any, Protocol, TypeAlias, TypeVar

import numpy as np

from artifex_devices._core import Array


class NamedTuple(Protocol):
    """Part of `typing.NamedTuple` that plain tuples lack."""

    def _asdict(self) -> dict[str, Any]: ...


ArrayLeaf: TypeAlias = Array | np.ndarray[Any, Any]

# An int and a float are accepted where a complex is expected.
Leaf: TypeAlias = ArrayLeaf | np.generic | complex

# Trees whose elements may be trees too.
Container: TypeAlias = dict[Any, Any] | list[Any] | tuple[Any, ...]

# A leaf, or a container of any class, which may be registered anywhere.
Tree: TypeAlias = object

# The same where a function returns it or gives it to a callback: the program knows its type, type checkers do not.
PyTree: TypeAlias = Any

# Values by name; the description of the function has the names.
Record: TypeAlias = dict[str, Any]

# What ndarray.item and ndarray.tolist return: the dtype and the shape of the array decide.
PythonNumber: TypeAlias = Any
NestedNumbers: TypeAlias = Any

K = TypeVar("K")
T = TypeVar("T")
LeafT = TypeVar("LeafT", bound=Leaf)
ArrayLeafT = TypeVar("ArrayLeafT", bound=ArrayLeaf)
NamedTupleT = TypeVar("NamedTupleT", bound=NamedTuple)
