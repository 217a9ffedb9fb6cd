# SPDX-License-Identifier: Apache-2.0
"""How many threads NumPy's BLAS takes while several of its calls run side by side."""

from __future__ import annotations

import os
import sys
from types import TracebackType
from typing import Any

__all__ = ["shared_cores"]

# Who bounds BLAS now: the token of a block, under one key. A dict, because setdefault and pop are one step each,
# whenever Ctrl-C comes; a lock would stay held where it comes between taking it and noting so.
_holder: dict[str, object] = {}
_controller: Any = None  # knows the BLAS libraries of the process; made at the first use, as that takes milliseconds


def _new_controller() -> Any:
    """Leaves the environment as it was: threadpoolctl sets a variable for OpenMP as it is imported."""
    name = "KMP_DUPLICATE_LIB_OK"
    is_theirs = "threadpoolctl" in sys.modules or name in os.environ
    import threadpoolctl

    if not is_theirs:
        os.environ.pop(name, None)
    return threadpoolctl.ThreadpoolController()


class shared_cores:  # noqa: N801 - used like a function
    """Bounds BLAS for a with block, so that `calls` of it at a time do not take each other's cores.

    The bound is the process's; blocks inside another one, or beside it on another thread, change nothing.

    Args:
        calls: How many calls run side by side.

    Example:
        >>> from artifex_devices._base.blas_threads import shared_cores
        >>> with shared_cores(8):
        ...     pass
    """

    __slots__ = ("_before", "_threads", "_token")

    def __init__(self, calls: int) -> None:
        """See the class."""
        cores = len(os.sched_getaffinity(0))
        self._threads = max(1, cores // max(1, calls))
        self._token = object()
        self._before: list[tuple[Any, int]] = []  # BLAS libraries and their numbers of threads

    def __enter__(self) -> None:
        """Sets the bound."""
        global _controller
        if _holder.setdefault("blas", self._token) is not self._token:
            return
        try:
            if _controller is None:
                _controller = _new_controller()
            libraries = [library for library in _controller.lib_controllers if library.user_api == "blas"]
            self._before = [(library, library.get_num_threads()) for library in libraries]
            for library in libraries:
                library.set_num_threads(self._threads)
        except BaseException:  # Ctrl-C
            self._restore()
            raise

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Restores what was."""
        self._restore()

    def __del__(self) -> None:
        """Restores what was where Ctrl-C came before the end of the block could."""
        try:
            self._restore()
        except KeyboardInterrupt:
            self._restore()

    def _restore(self) -> None:
        if _holder.get("blas") is self._token:  # can be done again when it was interrupted
            for library, number in self._before:
                library.set_num_threads(number)
            _holder.pop("blas", None)


os.register_at_fork(after_in_child=_holder.clear)
