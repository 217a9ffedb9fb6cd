# SPDX-License-Identifier: Apache-2.0
"""Threads that read several batches at the same time."""

from __future__ import annotations

import collections
import contextvars
import queue
from collections.abc import Callable, Generator, Iterable
from typing import Any, TypeVar

from artifex_devices._base.daemon_thread import DaemonThread

_Argument = TypeVar("_Argument")
_Value = TypeVar("_Value")


class _Call:
    """One call of the function; `outcome` gets its value or its exception."""

    def __init__(self, argument: Any) -> None:
        self.argument = argument
        self.outcome: queue.SimpleQueue[tuple[Any, BaseException | None]] = queue.SimpleQueue()


def map_in_order(
    function: Callable[[_Argument], _Value], arguments: Iterable[_Argument], workers: int
) -> Generator[_Value, None, None]:
    """Yields `function(argument)` for each argument, in their order; threads compute the next values in advance.

    One worker is the calling thread itself. An exception of a call is raised where its value would be yielded, and ends
    the threads, as closing the generator does.

    Args:
        function: The function; threads call it in a copy of the context of the first `next`.
        arguments: The arguments.
        workers: Number of threads; at most one call more than that has begun or waits.
    """
    if workers == 1:
        yield from map(function, arguments)
        return
    calls: queue.SimpleQueue[_Call | None] = queue.SimpleQueue()
    threads = [
        DaemonThread("artifex_devices-data", contextvars.copy_context().run, _serve, function, calls)
        for _ in range(workers)
    ]
    waiting: collections.deque[_Call] = collections.deque()
    try:
        for thread in threads:
            thread.start()
        for argument in arguments:
            waiting.append(_Call(argument))
            calls.put(waiting[-1])
            if len(waiting) > workers:
                yield _value(waiting.popleft())
        while waiting:
            yield _value(waiting.popleft())
    finally:
        while not calls.empty():
            calls.get()
        for _ in threads:
            calls.put(None)
        for thread in threads:
            thread.join()


def _serve(function: Callable[[Any], Any], calls: queue.SimpleQueue[_Call | None]) -> None:
    while (call := calls.get()) is not None:
        try:
            call.outcome.put((function(call.argument), None))
        except BaseException as error:
            call.outcome.put((None, error))
        del call  # a waiting thread must not keep a batch alive


def _value(call: _Call) -> Any:
    value, error = call.outcome.get()
    if error is None:
        return value
    try:
        raise error
    finally:
        del error  # it refers to this frame
