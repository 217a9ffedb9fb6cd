# SPDX-License-Identifier: Apache-2.0
"""How many threads NumPy's BLAS takes while several of its calls run side by side."""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from types import TracebackType
from typing import Any

__all__ = ["shared_cores"]

_lock = threading.Lock()
_controller: Any = None  # knows the BLAS libraries of the process; made at the first use, as that takes milliseconds


def _set_threads(numbers: Sequence[tuple[Any, int]]) -> None:
    for library, number in numbers:
        library.set_num_threads(number)


class shared_cores:  # noqa: N801 - used like a function
    """Bounds BLAS for a with block, so that `calls` of it at a time do not take each other's cores.

    The bound is the process's; blocks inside another one, or beside it on another thread, change nothing.

    Args:
        calls: How many calls run side by side.

    Example:
        >>> from artifex_devices.blas_threads import shared_cores
        >>> with shared_cores(8):
        ...     pass
    """

    __slots__ = ("_before", "_threads")

    def __init__(self, calls: int) -> None:
        """See the class."""
        cores = len(os.sched_getaffinity(0))
        self._threads = max(1, cores // max(1, calls))
        self._before: list[tuple[Any, int]] | None = None  # BLAS libraries and their numbers of threads

    def __enter__(self) -> None:
        """Sets the bound."""
        global _controller
        if not _lock.acquire(blocking=False):
            return
        try:
            if _controller is None:
                import threadpoolctl

                _controller = threadpoolctl.ThreadpoolController()
            libraries = [library for library in _controller.lib_controllers if library.user_api == "blas"]
            before = [(library, library.get_num_threads()) for library in libraries]
        except BaseException:
            _lock.release()
            raise
        self._before = before
        try:
            for library in libraries:
                library.set_num_threads(self._threads)
        except BaseException:  # Ctrl-C
            self.__exit__(None, None, None)
            raise

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Restores what was."""
        before, self._before = self._before, None
        if before is None:
            return
        try:
            _set_threads(before)
        except BaseException:  # Ctrl-C
            _set_threads(before)
            raise
        finally:
            _lock.release()


def _start_anew() -> None:
    global _lock
    _lock = threading.Lock()


os.register_at_fork(after_in_child=_start_anew)
