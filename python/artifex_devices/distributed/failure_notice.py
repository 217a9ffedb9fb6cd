# SPDX-License-Identifier: Apache-2.0
"""Reports to the other processes that this process ends by an exception; they then stop waiting for it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import TracebackType
from typing import Any

NOTICE_WAIT_S = 5.0  # how long a failed process waits for the messages of other processes before the launcher ends them
EXIT_DELAY_S = 1.0  # how long a successful process stays when another has failed; usually the launcher ends it first

_notify: Callable[[str], None] | None = None
_previous_hook: Any = None
_failed = False


def install(notify: Callable[[str], None]) -> None:
    """Calls `notify(reason)`, before anything is printed, when the program ends by an exception."""
    global _notify, _previous_hook
    _notify, _previous_hook = notify, sys.excepthook
    sys.excepthook = _hook


def uninstall() -> None:
    """Restores the hook of before `install`, unless another hook has been installed since."""
    global _notify
    _notify = None
    if sys.excepthook is _hook:
        sys.excepthook = _previous_hook


def error_text(error: BaseException) -> str:
    """Returns the class and the text of an error."""
    try:
        text = str(error)
    except Exception:
        text = "its text cannot be read"
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def has_failed() -> bool:
    """Returns whether the program ends by an exception."""
    return _failed


def _hook(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    global _failed
    _failed = True
    if _notify is not None:
        _notify(error_text(error))
    (_previous_hook or sys.__excepthook__)(kind, error, trace)
