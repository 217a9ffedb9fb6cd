# SPDX-License-Identifier: Apache-2.0
"""Limits the threads of NumPy's BLAS while several of its calls run in parallel."""

from __future__ import annotations

import os
import sys
import weakref
from typing import Any, NamedTuple

# The limit in force, if any, under one key. setdefault and pop of a dict are atomic for Ctrl-C; a lock would stay held
# if Ctrl-C came between acquiring it and recording that.
_limits: dict[str, _Limit] = {}
_controller: Any = None  # of the BLAS libraries; created at the first use, which takes milliseconds


class _Limit(NamedTuple):
    """The block that limits BLAS, and the libraries with the numbers of threads that they had before."""

    block: weakref.ref[shared_cores]
    before: list[tuple[Any, int]]


def _new_controller() -> Any:
    """Returns a controller; removes the environment variable for OpenMP that the import of threadpoolctl sets."""
    name = "KMP_DUPLICATE_LIB_OK"
    is_set = "threadpoolctl" in sys.modules or name in os.environ
    import threadpoolctl

    if not is_set:
        os.environ.pop(name, None)
    return threadpoolctl.ThreadpoolController()


class shared_cores:  # noqa: N801 - used like a function
    """Limits the threads of BLAS in a `with` block: `calls` parallel calls share the cores.

    The limit applies to the process; inner blocks, and parallel ones on other threads, have no effect.
    """

    __slots__ = ("__weakref__", "_threads")

    def __init__(self, calls: int) -> None:
        cores = len(os.sched_getaffinity(0))
        self._threads = max(1, cores // max(1, calls))

    def __enter__(self) -> None:
        global _controller
        block = weakref.ref(self, _restore)  # called only if Ctrl-C prevents the end of the block
        limit = _Limit(block, [])
        if _limits.setdefault("blas", limit) is not limit:
            return
        try:
            if _controller is None:
                _controller = _new_controller()
            libraries = [library for library in _controller.lib_controllers if library.user_api == "blas"]
            limit.before.extend((library, library.get_num_threads()) for library in libraries)
            for library in libraries:
                library.set_num_threads(self._threads)
        except BaseException:  # Ctrl-C
            _restore(block)
            raise

    def __exit__(self, *_: object) -> None:
        limit = _limits.get("blas")
        if limit is not None and limit.block() is self:
            _restore(limit.block)


def _restore(block: weakref.ref[shared_cores]) -> None:
    """Restores the numbers of threads that the block has limited; may be repeated after an interruption."""
    limit = _limits.get("blas")
    if limit is not None and limit.block is block:
        for library, number in limit.before:
            library.set_num_threads(number)
        _limits.pop("blas", None)


os.register_at_fork(after_in_child=_limits.clear)
