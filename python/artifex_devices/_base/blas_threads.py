# SPDX-License-Identifier: Apache-2.0
"""Limits the threads of NumPy's BLAS while several of its calls run in parallel."""

from __future__ import annotations

import os
import sys
from typing import Any

# The token of the block that limits BLAS, under one key. setdefault and pop of a dict are atomic for Ctrl-C; a lock
# would stay held if Ctrl-C came between acquiring it and recording that.
_holder: dict[str, object] = {}
_controller: Any = None  # of the BLAS libraries; created at the first use, which takes milliseconds


def _new_controller() -> Any:
    """Returns a controller; removes the environment variable for OpenMP that the import of threadpoolctl sets."""
    name = "KMP_DUPLICATE_LIB_OK"
    is_set = "threadpoolctl" in sys.modules or name in os.environ
    import threadpoolctl

    if not is_set:
        os.environ.pop(name, None)
    return threadpoolctl.ThreadpoolController()


class shared_cores:  # noqa: N801 - used like a function
    """Limits the threads of BLAS in a `with` block, so that `calls` parallel calls share the cores.

    The limit applies to the process; inner blocks, and parallel ones on other threads, have no effect.
    """

    __slots__ = ("_before", "_threads", "_token")

    def __init__(self, calls: int) -> None:
        cores = len(os.sched_getaffinity(0))
        self._threads = max(1, cores // max(1, calls))
        self._token = object()
        self._before: list[tuple[Any, int]] = []  # BLAS libraries and their numbers of threads

    def __enter__(self) -> None:
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

    def __exit__(self, *_: object) -> None:
        self._restore()

    def __del__(self) -> None:
        """Restores the numbers of threads if Ctrl-C prevented the end of the block."""
        try:
            self._restore()
        except KeyboardInterrupt:
            self._restore()

    def _restore(self) -> None:
        if _holder.get("blas") is self._token:  # may be repeated after an interruption
            for library, number in self._before:
                library.set_num_threads(number)
            _holder.pop("blas", None)


os.register_at_fork(after_in_child=_holder.clear)
