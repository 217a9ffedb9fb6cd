# SPDX-License-Identifier: Apache-2.0
"""Tells the other processes when this one ends by an exception, so that they do not wait for it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import TracebackType
from typing import Any

__all__ = ["LAST_SIGHT_S", "LAST_WORDS_S", "failed", "install", "uninstall"]

LAST_WORDS_S = 5.0  # how long a process that ends badly lets the others speak before the launcher ends them
LAST_SIGHT_S = 1.0  # how long one that ends well stays when others have ended badly, mostly to be ended itself

_say: Callable[[str], None] | None = None
_hook_before: Any = None
_failed = False


def install(say: Callable[[str], None]) -> None:
    """From now on `say(reason)` is called, before anything is printed, when the program ends by an exception."""
    global _say, _hook_before
    _say, _hook_before = say, sys.excepthook
    sys.excepthook = _hook


def uninstall() -> None:
    """As before `install`, unless somebody else has put a hook in front since."""
    global _say
    _say = None
    if sys.excepthook is _hook:
        sys.excepthook = _hook_before


def failed() -> bool:
    """Whether the program ends by an exception."""
    return _failed


def _hook(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    global _failed
    _failed = True
    if _say is not None:
        try:
            text = str(error)
        except Exception:
            text = "its text cannot be had"
        _say(f"{kind.__name__}: {text}" if text else kind.__name__)
    (_hook_before or sys.__excepthook__)(kind, error, trace)
