# SPDX-License-Identifier: Apache-2.0
"""Sets a hashable `__repr__` on the classes of the C++ core, because pprint finds printers by it.

pybind11 binds methods as `instancemethod` objects, which compare but have no hash.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from artifex_devices import _core


def _function_of(owner: type, bound: Callable[..., Any]) -> Any:
    """Returns a Python function that calls the bound method."""

    def __repr__(self: Any) -> str:  # noqa: N807 - it becomes a method
        text: str = bound(self)
        return text

    __repr__.__qualname__ = f"{owner.__qualname__}.__repr__"
    return __repr__


for _owner in (*vars(_core).values(), *vars(_core.internal).values()):
    if isinstance(_owner, type) and "__repr__" in vars(_owner):
        _owner.__repr__ = _function_of(_owner, vars(_owner)["__repr__"])  # type: ignore[method-assign]
