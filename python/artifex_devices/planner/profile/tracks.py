# SPDX-License-Identifier: Apache-2.0
"""Finds the operations of the devices in a trace in the JSON format of Chrome."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from artifex_devices._base.safe_repr import safe_repr

_GPU_CATEGORIES = {"kernel", "gpu_memcpy", "gpu_memset", "memcpy", "memset"}  # of PyTorch's profiler
_OUR_CATEGORIES = {"collective", "transfer"}  # of artifex_devices.profiler.trace
_DEVICE = re.compile(r"/device:([A-Za-z]+):(\d+)$")  # of XLA's profiler
_ASYNC_OPS = "Async XLA Ops"
_OPS = ("XLA Ops", _ASYNC_OPS)


class Operation(NamedTuple):
    """An event of a device; times are microseconds."""

    name: str
    begin: float
    end: float
    arguments: Mapping[str, object]


class DeviceTracks(NamedTuple):
    """Operations by device, the steps that the trace marks, and notes on facts that the trace lacks."""

    operations: dict[str, list[Operation]]
    steps: int
    steps_from: str
    notes: list[str]


def find_devices(events: Sequence[Any]) -> DeviceTracks:
    """Sorts the operations of a trace by device, and counts its steps."""
    rows = [event for event in events if isinstance(event, Mapping)]
    names = _Names(rows)
    found: dict[str, list[Operation]] = {}
    skipped = 0
    marks: dict[str, set[str]] = {}
    has_async, has_starts = False, False
    for event in rows:
        if event.get("ph") != "X":
            continue
        _add_mark(marks, event, names)
        device = names.device_of(event)
        if device is None:
            continue
        device = safe_repr(device)[1:-1]  # a terminal does not act on it
        begin, length = _number(event.get("ts")), _number(event.get("dur", 0))
        if begin is None or length is None or length < 0:
            skipped += 1
            continue
        name = str(event.get("name", ""))
        has_async = has_async or names.thread_of(event) == _ASYNC_OPS
        has_starts = has_starts or (names.thread_of(event) == _OPS[0] and "-done" in name)
        found.setdefault(device, []).append(Operation(name, begin, begin + length, _arguments(event)))
    notes = []
    if skipped:
        notes.append(f"{skipped} events of devices have no time and are left out")
    if has_starts and not has_async:
        notes.append(f"the trace has no track {_ASYNC_OPS!r}: of messages in the background only the waits are known")
    kind = next((text for text in _MARKS if text in marks), None)
    return DeviceTracks(
        dict(sorted(found.items(), key=lambda item: _natural(item[0]))),
        len(marks[kind]) if kind else 0,
        kind or "",
        notes,
    )


_MARKS = (  # the first kind that a trace has counts
    "steps of torch.profiler (ProfilerStep#)",
    "steps of the track Steps",
    "steps of jax.profiler.StepTraceAnnotation",
    "spans of profiler.annotate('step')",
)


def _add_mark(marks: dict[str, set[str]], event: Mapping[str, object], names: _Names) -> None:
    """Notes the number of a step that the event marks."""
    torch, track, jax, ours = _MARKS
    name, arguments = str(event.get("name", "")), _arguments(event)
    if re.fullmatch(r"ProfilerStep#\d+", name):
        marks.setdefault(torch, set()).add(name)
    elif names.thread_of(event) == "Steps":
        marks.setdefault(track, set()).add(name)
    elif "step_num" in arguments:
        marks.setdefault(jax, set()).add(str(arguments["step_num"]))
    elif event.get("cat") == "span" and name == "step":
        marks.setdefault(ours, set()).add(f"{event.get('pid')} {event.get('tid')} {event.get('ts')}")


class _Names:
    """Names of processes and threads."""

    def __init__(self, rows: Sequence[Mapping[str, object]]) -> None:
        self._processes: dict[Any, str] = {}
        self._threads: dict[Any, str] = {}
        for event in rows:
            if event.get("ph") != "M":
                continue
            name = str(_arguments(event).get("name", ""))
            if event.get("name") == "process_name":
                self._processes[str(event.get("pid"))] = name
            elif event.get("name") == "thread_name":
                self._threads[str(event.get("pid")), str(event.get("tid"))] = name

    def thread_of(self, event: Mapping[str, object]) -> str:
        return self._threads.get((str(event.get("pid")), str(event.get("tid"))), "")

    def device_of(self, event: Mapping[str, object]) -> str | None:
        """Returns the device of an operation, or None for events of a host and events that summarise others."""
        category, arguments = str(event.get("cat", "")).lower(), _arguments(event)
        if category in _GPU_CATEGORIES:
            return f"gpu:{arguments.get('device', event.get('pid'))}"
        thread = self.thread_of(event)
        if category in _OUR_CATEGORIES:
            return thread or None
        process = self._processes.get(str(event.get("pid")), "")
        device = _DEVICE.search(process)
        if device is not None:
            is_track = thread in _OPS or thread.startswith("Stream #")
            return f"{device[1].lower()}:{device[2]}" if is_track else None
        if process.startswith("/host:CPU") and "hlo_op" in arguments:
            return f"cpu:{arguments.get('device_ordinal', 0)}"
        return None


def _arguments(event: Mapping[str, object]) -> Mapping[str, object]:
    arguments = event.get("args")
    return arguments if isinstance(arguments, Mapping) else {}


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def _natural(name: str) -> tuple[str, int, str]:
    """Sorts gpu:10 behind gpu:9."""
    digits = re.search(r":(\d{1,9})$", name)
    return (name[: digits.start()], int(digits[1]), "") if digits else (name, -1, name)
