# SPDX-License-Identifier: Apache-2.0
"""How many threads NumPy's BLAS takes while several of its calls run side by side."""

from __future__ import annotations

import os
import threading
from types import TracebackType
from typing import Any

__all__ = ["shared_cores"]

_lock = threading.Lock()
_controller: Any = None  # knows the BLAS libraries of the process; made at the first use, as that takes milliseconds


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

    _limit: Any = None

    def __init__(self, calls: int) -> None:
        """See the class."""
        cores = len(os.sched_getaffinity(0))
        self._threads = max(1, cores // max(1, calls))

    def __enter__(self) -> None:
        """Sets the bound."""
        global _controller
        if not _lock.acquire(blocking=False):
            return
        try:
            if _controller is None:
                import threadpoolctl

                _controller = threadpoolctl.ThreadpoolController()
            self._limit = _controller.limit(limits=self._threads, user_api="blas")
        except BaseException:
            _lock.release()
            raise

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Restores what was."""
        if self._limit is not None:
            self._limit.restore_original_limits()
            self._limit = None
            _lock.release()

    def __del__(self) -> None:
        self.__exit__(None, None, None)  # for Ctrl-C between __enter__ and the block


def _start_anew() -> None:
    global _lock
    _lock = threading.Lock()


os.register_at_fork(after_in_child=_start_anew)
