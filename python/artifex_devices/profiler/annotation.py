# SPDX-License-Identifier: Apache-2.0
"""Spans of the program in traces: `with profiler.annotate("step"):`."""

from __future__ import annotations

import contextlib

from artifex_devices._base.checks import check_str
from artifex_devices._base.safe_repr import safe_repr
from artifex_devices._core import internal


class annotate(contextlib.ContextDecorator):  # noqa: N801 (used as a function)
    """Names a part of the program in open traces. A `with` block, or a decorator of a function.

    Without an open trace it does nothing.

    Args:
        name: Text of the span.
        **details: Values that the trace shows with it.

    Raises:
        TypeError: `name` is not a str.

    Example:
        >>> import artifex_devices as ad
        >>> with ad.profiler.trace() as trace:
        ...     with ad.profiler.annotate("step", number=3):
        ...         pass
        >>> [(event.kind, event.name, event.detail) for event in trace.events]
        [('span', 'step', 'number=3')]
    """

    def __init__(self, name: str, **details: object) -> None:
        check_str("annotate", "name", name, "write annotate('step')")
        self._name = name
        self._details = details
        self._begin_ns: list[int] = []

    def _recreate_cm(self) -> annotate:
        return annotate(self._name, **self._details)

    def __enter__(self) -> annotate:
        self._begin_ns.append(internal.trace_begin())
        return self

    def __exit__(self, *_: object) -> None:
        begin_ns = self._begin_ns.pop()
        if begin_ns:
            details = ", ".join(f"{name}={safe_repr(value)}" for name, value in self._details.items())
            internal.trace_event("span", self._name, details, begin_ns, internal.current_client().process_index())
